/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Linked into every test program with cmocka, between it and cmocka_run_group_tests(). It has the
 * list of cases that register themselves (CASE()), and a main() for programs that have none.
 *
 * CMOCKA_TEST_FILTER: runs only the cases that it names ('*' and '?' as in a shell). Without it,
 * all. UMBEL_TEST_LEFT_OUT: patterns, of cases that do not run. UMBEL_TEST_THREAD: a second thread
 * sleeps meanwhile. In a process with one thread the library's locks are empty.
 *
 * A case that fails says at which row of a table it was, if it goes through one (EACH_ROW()). One
 * that does not end is ended, and says where it was: after four minutes (deadline.h says how these
 * are scaled), or half a minute before ctest would end the program.
 */
#include "harness.h"

#include <elf.h>
#include <execinfo.h>
#include <fnmatch.h>
#include <link.h>

#include "deadline.h"

#define CASE_S    240
#define PROGRAM_S 570
#define SIGNAL    (SIGRTMIN + 5) /* SIGALRM may be the test's */
#define FRAMES    64
#define ROWS      4

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

int __real__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction set_up, CMFixtureFunction tear_down);
int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction set_up, CMFixtureFunction tear_down);

extern const ElfW(Ehdr) __executable_start;
extern const char etext;

struct row {
	const char *table; /* NULL: the loop is over */
	size_t i;
	const char *name; /* of the row; NULL: it has none */
};

static struct {
	const struct CMUnitTest **cases; /* those that run, in turn */
	size_t next;
	const char *name; /* of that which runs */
	double left;      /* of the program's seconds */
	int limit;        /* of the case's */
	timer_t timer;
	bool serves;
	struct row row[ROWS]; /* at which the case is, of each loop */
	bool returned;        /* the case has come to its end */
	char path[4096];      /* of the program */
} run;

static struct {
	struct CMUnitTest *tests; /* in the order in which they stand in the program */
	size_t n;
} registered;

/* ---- a case that does not end ---- */

/* Has addr2line say which functions and lines of the program these are, the innermost first. */
static void print_places(void *const *frame, int n)
{
	const uintptr_t start = (uintptr_t)&__executable_start;
	const uintptr_t base = __executable_start.e_type == ET_DYN ? start : 0;
	static char text[FRAMES][24];
	const char *argv[FRAMES + 8] = { "addr2line", "-ipsfe", run.path };
	int argc = 3;
	pid_t pid;

	for (int i = 0; i < n; i++) {
		const uintptr_t at = (uintptr_t)frame[i] - 1; /* within the call */

		if (at < start || at >= (uintptr_t)&etext)
			continue;
		snprintf(text[i], sizeof(text[i]), "%#lx", (unsigned long)(at - base));
		argv[argc++] = text[i];
	}
	pid = vfork(); /* without the functions of pthread_atfork(3) */
	if (pid == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void harness_say_where(void)
{
	void *frame[FRAMES];

	print_places(frame, backtrace(frame, FRAMES));
}

/* The program ends here, so what it interrupts does not matter. Only the backtrace may need a lock
 * that is held: for that there is an alarm. */
static void on_limit(int signal)
{
	char text[256];
	int length;

	(void)signal;
	length = snprintf(text, sizeof(text),
	                  "FAIL: the case %s has not ended after %d s. The first thread is, from "
	                  "inside out, at\n",
	                  run.name, run.limit);
	if (write(STDERR_FILENO, text, (size_t)length) != length)
		_exit(1);
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	alarm(20);
	harness_say_where();
	_exit(1);
}

static void watch(const char *name)
{
	struct itimerspec left = { 0 };
	double seconds = CASE_S * deadline_scale();

	timer_gettime(run.timer, &left);
	if (run.serves)
		return;
	if (run.name) /* what the one before has used */
		run.left -= run.limit - (double)left.it_value.tv_sec;
	if (seconds > run.left)
		seconds = run.left;
	run.name = name;
	run.limit = seconds < 1 ? 1 : (int)seconds;
	timer_settime(run.timer, 0, &(struct itimerspec){ .it_value.tv_sec = run.limit }, NULL);
}

static void make_watch(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL };

	if (run.serves)
		return;
	run.left = PROGRAM_S * deadline_scale();
	event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	sigaction(SIGNAL, &(struct sigaction){ .sa_handler = on_limit, .sa_flags = SA_RESTART },
	          NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &run.timer)) {
		perror("timer_create");
		exit(1);
	}
}

/* ---- a thread ---- */

static void *sleeps(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

/* All signals are for the first thread. */
static void start_thread(void)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, sleeps, NULL)) {
		perror("pthread_create");
		exit(1);
	}
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- the cases ---- */

void harness_serve(void)
{
	unsetenv("CMOCKA_TEST_FILTER");
	run.serves = true;
}

void harness_expect_success_at(pid_t child, const char *file, int line)
{
	int status = -1;

	_assert_true(child > 0, "a child", file, line);
	_assert_int_equal((LargestIntegralType)waitpid(child, &status, 0),
	                  (LargestIntegralType)child, file, line);
	_assert_int_equal((LargestIntegralType)status, 0, file, line);
}

unsigned harness_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", "..", its own */
}

bool harness_row(const char *table, size_t i, size_t n, const char *name)
{
	struct row *r = run.row;

	while (r < run.row + ROWS - 1 && r->table && strcmp(r->table, table))
		r++;
	r->table = i < n ? table : NULL;
	r->i = i;
	r->name = name;
	return i < n;
}

static int begin_case(void **state)
{
	const struct CMUnitTest *t = run.cases[run.next++];

	watch(t->name);
	run.returned = false;
	memset(run.row, 0, sizeof(run.row));
	return t->setup_func ? t->setup_func(state) : 0;
}

static void run_case(void **state)
{
	run.cases[run.next - 1]->test_func(state);
	run.returned = true;
}

static int end_case(void **state)
{
	const struct CMUnitTest *t = run.cases[run.next - 1];

	for (const struct row *r = run.row; !run.returned && r < run.row + ROWS; r++)
		if (r->table)
			print_error("%s: at %s[%zu]%s%s\n", t->name, r->table, r->i,
			            r->name ? ": " : "", r->name ? r->name : "");
	return t->teardown_func ? t->teardown_func(state) : 0;
}

static bool is_left_out(const char *name)
{
	const char *left_out = getenv("UMBEL_TEST_LEFT_OUT");
	char *patterns = strdup(left_out ? left_out : ""), *rest = patterns;
	bool found = false;

	for (const char *p = strtok_r(patterns, " ", &rest); p; p = strtok_r(NULL, " ", &rest))
		found |= !fnmatch(p, name, 0);
	free(patterns);
	return found;
}

int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	const char *pattern = getenv("CMOCKA_TEST_FILTER");
	struct CMUnitTest *copy = calloc(n + 1, sizeof(*copy));
	ssize_t length = readlink("/proc/self/exe", run.path, sizeof(run.path) - 1);
	size_t chosen = 0;
	int failed;

	run.path[length > 0 ? length : 0] = '\0';
	run.cases = calloc(n + 1, sizeof(*run.cases));
	if (!copy || !run.cases)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if ((pattern && *pattern && fnmatch(pattern, tests[i].name, 0)) ||
		    is_left_out(tests[i].name))
			continue;
		run.cases[chosen] = &tests[i];
		copy[chosen] = tests[i];
		copy[chosen].setup_func = begin_case;
		copy[chosen].test_func = run_case;
		copy[chosen++].teardown_func = end_case;
	}
	run.next = 0;
	if (getenv("UMBEL_TEST_THREAD"))
		start_thread();
	make_watch();
	watch("(set-up)");
	failed = __real__cmocka_run_group_tests(group, copy, chosen, set_up, tear_down);
	if (!run.serves)
		timer_delete(run.timer);
	free(run.cases);
	free(copy);
	return failed;
}

/* ---- the program ---- */

void harness_add(const char *name, void (*test)(void **state), int (*set_up)(void **state),
                 int (*tear_down)(void **state), void *state)
{
	registered.tests =
	        reallocarray(registered.tests, registered.n + 1, sizeof(*registered.tests));
	if (!registered.tests)
		abort();
	registered.tests[registered.n++] =
	        (struct CMUnitTest){ name, test, set_up, tear_down, state };
}

int harness_run(int (*set_up)(void **state), int (*tear_down)(void **state))
{
	return _cmocka_run_group_tests("tests", registered.tests, registered.n, set_up, tear_down);
}

__attribute__((weak)) int main(void)
{
	return harness_run(NULL, NULL);
}
