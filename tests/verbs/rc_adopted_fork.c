/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fork() of a process with adopted memory (src/client/hca/memory/adopt.h): the child keeps what was
 * there, whatever its parent and the peer write later, and the other way round. A process that has
 * forked adopts nothing any more, so each test runs in a process of its own.
 *
 * With one thread.
 */
#include "adopted_lab.h"
#include "uring_lab.h"

#include <spawn.h>

#include "base/util.h"

static bool has_pattern(const char *m, unsigned seed)
{
	for (unsigned i = 0; i < LAB_ADOPTED_BYTES; i++)
		if ((uint8_t)m[i] != lab_pattern(seed, i))
			return false;
	return true;
}

/* Forks a child. When both ends have written, it must have pattern 1 still, and its writes are its
 * own. */
static void fork_and_compare(struct lab_peer *p[2], char *m)
{
	int go[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) {
		bool good = read(go[0], &c, 1) == 1 && has_pattern(m, 1) &&
		            !lab_adopted_pages(m, LAB_ADOPTED_PAGES);

		memset(m, 0, LAB_ADOPTED_BYTES);
		_exit(!good);
	}
	assert_true(pid > 0);
	memset(m, 1, LAB_ADOPTED_BYTES); /* first of all after fork() */
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	m[0] = (char)~m[0];
	assert_int_equal(write(go[1], &c, 1), 1);
	harness_expect_success(pid);
	m[0] = (char)~m[0];
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	close(go[0]);
	close(go[1]);
}

static void a_child_has_what_was_there_when_it_was_forked(void **state)
{
	char *m = lab_adopted_memory();
	struct lab_peer **p;
	struct ibv_mr *mr;

	(void)state;
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 1); /* the peer has mapped it */
	fork_and_compare(p, m);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 1);
	fork_and_compare(p, m);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	/* a process that forks once may do so again */
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 4);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 4);
	lab_adopted_deregister(mr);
	munmap(m, LAB_ADOPTED_BYTES);
}

static void a_child_has_it_also_if_another_region_overlaps(void **state)
{
	char *m = lab_adopted_memory();
	struct lab_peer **p;
	struct ibv_mr *mr, *other;

	(void)state;
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, 4 * LAB_ADOPTED_PAGE);
	other = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES); /* which the peer uses */
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 4);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 1);
	fork_and_compare(p, m);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 4);
	lab_adopted_deregister(other);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	munmap(m, LAB_ADOPTED_BYTES);
}

static void a_child_has_it_also_if_pages_are_pinned(void **state)
{
	char *m = lab_adopted_memory();
	struct lab_uring ring;
	struct lab_peer **p;
	struct ibv_mr *mr;

	(void)state;
	if (!lab_uring_is_there())
		return; /* containers forbid it: nothing can be pinned so */
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 1);
	lab_uring_open(&ring, m, LAB_ADOPTED_BYTES);
	fork_and_compare(p, m);
	lab_uring_read(&ring, m, LAB_ADOPTED_PAGE, 5);
	lab_adopted_holds(m, 0, LAB_ADOPTED_PAGE, 5);
	lab_uring_close(&ring);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_holds(m, 0, LAB_ADOPTED_PAGE, 5);
	munmap(m, LAB_ADOPTED_BYTES);
}

static void a_child_of_one_of_two_threads_has_it(void **state)
{
	char *m = lab_adopted_memory();
	struct lab_peer **p;
	struct ibv_mr *mr;
	struct lab_sleeper s;

	(void)state;
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 1);
	lab_sleeper_begin(&s);
	fork_and_compare(p, m);
	lab_sleeper_end(&s);
	lab_adopted_deregister(mr);
	lab_adopted_is_emptied(m);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- in a signal handler ---- */

static char *volatile looked_at;
static volatile sig_atomic_t forks, bad;

/* Forks a child, which looks at the memory. */
static void on_alarm(int signal)
{
	pid_t pid = fork();
	int status;

	(void)signal;
	if (!pid) {
		char *m = looked_at;
		bool good = has_pattern(m, 1);

		memset(m, 0, LAB_ADOPTED_BYTES);
		_exit(!good);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		bad = 1;
	forks++;
}

/* Wherever the signal interrupts a registration. */
static void a_signal_handler_may_fork(void **state)
{
	char *m = lab_adopted_memory();
	struct lab_peer **p;

	(void)state;
#ifdef __SANITIZE_THREAD__
	return; /* a child begins a thread of the sanitizer's, which allocates */
#endif
	p = lab_adopted_begin();
	looked_at = m;
	signal(SIGALRM, on_alarm);
	for (unsigned i = 0; forks < 100; i++) {
		/* once each, later and later */
		struct itimerval once = { .it_value = { 0, 1 + 37 * i % 3000 } };

		setitimer(ITIMER_REAL, &once, NULL);
		lab_adopted_deregister(lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES));
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	assert_false(bad);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 1);
	munmap(m, LAB_ADOPTED_BYTES);
}

static bool children_are_slow;

/* In the child of a fork(), before it takes the memory. */
static void be_slow(void)
{
	struct timespec rest = { 1, 500000000 };

	while (children_are_slow && nanosleep(&rest, &rest))
		;
}

static void a_slow_child_is_waited_for(void **state)
{
	char *m = lab_adopted_memory();
	struct lab_peer **p;
	struct ibv_mr *mr;

	(void)state;
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 1);
	children_are_slow = true;
	fork_and_compare(p, m);
	lab_adopted_deregister(mr);
	munmap(m, LAB_ADOPTED_BYTES);
}

enum { BEFORE = 'b', AFTER = 'a' }; /* what a byte is */
static char *handlers_write;

static void write_in_parent(void)
{
	if (handlers_write)
		handlers_write[0] = AFTER;
}

static void write_in_child(void)
{
	if (handlers_write)
		handlers_write[1] = AFTER;
}

static void what_a_handler_of_fork_writes_is_its_processs(void **state)
{
	char *m = lab_adopted_memory();
	struct lab_peer **p;
	struct ibv_mr *mr;
	pid_t pid;

	(void)state;
	assert_int_equal(pthread_atfork(NULL, write_in_parent, write_in_child), 0);
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	m[0] = m[1] = BEFORE;
	handlers_write = m;
	pid = fork();
	if (!pid)
		_exit(m[0] != BEFORE || m[1] != AFTER);
	assert_true(pid > 0);
	assert_int_equal(m[0], AFTER);
	assert_int_equal(m[1], BEFORE);
	harness_expect_success(pid);
	lab_adopted_deregister(mr);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- signals ---- */

/* Private memory: so much that a child is interrupted while it takes the memory. */
#define MUCH (32u << 20)

static char *volatile last; /* its last byte */
static volatile sig_atomic_t alarms;

static char *much_memory(void)
{
	char *m = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(m, MAP_FAILED);
	memset(m, BEFORE, MUCH);
	last = m + MUCH - 1;
	return m;
}

static void look_at_last(int signal)
{
	(void)signal;
	alarms++;
	if (*last != BEFORE)
		bad = 1;
}

static bool children_have_alarms;

/* In the child of a fork(), before it takes the memory: signals from now on. */
static void begin_alarms(void)
{
	if (children_have_alarms)
		setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 200 }, { 0, 200 } }, NULL);
}

static void a_childs_signal_handler_finds_the_memory(void **state)
{
	char *m = much_memory();
	struct lab_peer **p;
	struct ibv_mr *mr;
	pid_t pid;

	(void)state;
#ifdef __SANITIZE_THREAD__
	return; /* it has signals wait */
#endif
	signal(SIGALRM, look_at_last);
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, MUCH);
	lab_adopted_expect(m, MUCH / LAB_ADOPTED_PAGE, MUCH / LAB_ADOPTED_PAGE);
	children_have_alarms = true;
	pid = fork();
	if (!pid) {
		while (!alarms)
			;
		_exit(bad);
	}
	harness_expect_success(pid);
	lab_adopted_deregister(mr);
	munmap(m, MUCH);
}

static void change_last(int signal)
{
	(void)signal;
	*last = AFTER;
}

static bool children_signal;

/* In the child of a fork(), before it takes the memory. Its parent does not take the signal before
 * that; it gets time to do so nevertheless. */
static void signal_the_parent(void)
{
	uint64_t began = base_now_ns();

	if (!children_signal)
		return;
	kill(getppid(), SIGUSR1);
	while (*last == BEFORE && base_now_ns() - began < 300000000)
		;
}

static void what_a_parents_signal_handler_writes_is_not_its_childs(void **state)
{
	char *m = much_memory();
	struct lab_peer **p;
	struct ibv_mr *mr;
	pid_t pid;

	(void)state;
#ifdef __SANITIZE_THREAD__
	return; /* it has signals wait */
#endif
	signal(SIGUSR1, change_last);
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, MUCH);
	lab_adopted_expect(m, MUCH / LAB_ADOPTED_PAGE, MUCH / LAB_ADOPTED_PAGE);
	children_signal = true;
	pid = fork();
	if (!pid)
		_exit(*last != BEFORE);
	assert_true(pid > 0);
	assert_int_equal(*last, AFTER);
	harness_expect_success(pid);
	lab_adopted_deregister(mr);
	munmap(m, MUCH);
}

/* Handlers that run before the library's: those of the program itself are later ones. */
static void come_first(int argc, char **argv, char **environment)
{
	(void)argc, (void)argv, (void)environment;
	pthread_atfork(NULL, NULL, be_slow);
	pthread_atfork(NULL, NULL, begin_alarms);
	pthread_atfork(NULL, NULL, signal_the_parent);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **,
                                                                            char **) = come_first;

static bool adopting_is_interrupted, is_child;

/* That of the C library, and once a signal when adopting has just made its file. */
__attribute__((visibility("default"))) int memfd_create(const char *name, unsigned flags)
{
	int fd = (int)syscall(SYS_memfd_create, name, flags);

	if (adopting_is_interrupted)
		raise(SIGALRM);
	adopting_is_interrupted = false;
	return fd;
}

/* The child goes on with what was interrupted, while its parent waits. */
static void fork_and_return(int signal)
{
	pid_t pid = fork();
	int status;

	(void)signal;
	forks++;
	is_child = !pid;
	if (pid && (pid < 0 || waitpid(pid, &status, 0) != pid || status))
		bad = 1;
}

static void begin_peers(void *p)
{
	*(struct lab_peer ***)p = lab_adopted_begin();
}

static void who_is_forked_in_the_middle_of_adopting_has_memory_of_its_own(void **state)
{
	char *m = lab_adopted_memory();
	struct lab_peer **p;
	struct ibv_mr *mr;

	(void)state;
#ifdef __SANITIZE_THREAD__
	return; /* it has signals wait */
#endif
	lab_without_moving(begin_peers, &p); /* nothing is adopted yet */
	signal(SIGALRM, fork_and_return);
	adopting_is_interrupted = true;
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	if (is_child)
		_exit(!has_pattern(m, 1) || lab_adopted_pages(m, LAB_ADOPTED_PAGES));
	assert_int_equal(forks, 1);
	assert_false(bad);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_deregister(mr);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- a program that closes what it does not know ---- */

#define MOST_REPLACED 8

/* Has another file in place of each descriptor of the library's that has to do with adopted memory.
 * Returns how many: *@fds has them. */
static unsigned replace_descriptors(int file, int *fds)
{
	unsigned n = 0;

	for (int fd = 3; fd < 256 && n < MOST_REPLACED; fd++) {
		char name[32], link[64] = "";

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		if (readlink(name, link, sizeof(link) - 1) < 0 ||
		    (strcmp(link, "/proc") && !strstr(link, "umbel-adopted")))
			continue;
		assert_int_equal(dup2(file, fd), fd);
		fds[n++] = fd;
	}
	return n;
}

/* Whether all of them are the file, and nothing was written there. */
static bool are_untouched(int file, const int *fds, unsigned n)
{
	struct stat s, other;

	if (fstat(file, &s) || s.st_size || s.st_blocks)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (fstat(fds[i], &other) || other.st_ino != s.st_ino || other.st_dev != s.st_dev)
			return false;
	return true;
}

/* A file of the program's own in memory, as it may be in /tmp. */
static int make_file(void)
{
	int fd = memfd_create("program", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void files_of_the_program_are_not_taken_for_the_librarys(void **state)
{
	char *m = lab_adopted_memory();
	int file = make_file(), fds[MOST_REPLACED];
	struct lab_peer **p;
	struct ibv_mr *mr;
	unsigned n;
	pid_t pid;

	(void)state;
	p = lab_adopted_begin();
	lab_adopted_deregister(lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES));
	n = replace_descriptors(file, fds);
	assert_true(n);
	pid = fork();
	if (!pid)
		_exit(!are_untouched(file, fds, n));
	harness_expect_success(pid);
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_deregister(mr);
	assert_true(are_untouched(file, fds, n));
	munmap(m, LAB_ADOPTED_BYTES);
}

static void memory_comes_back_though_the_program_has_closed_its_file(void **state)
{
	char *m = lab_adopted_memory();
	int file = make_file(), fds[MOST_REPLACED];
	struct lab_peer **p;
	struct ibv_mr *mr;
	unsigned n;

	(void)state;
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 1);
	n = replace_descriptors(file, fds);
	assert_true(n);
	fork_and_compare(p, m);
	assert_int_equal(mprotect(m, LAB_ADOPTED_PAGE, PROT_NONE), 0);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	assert_int_equal(mprotect(m, LAB_ADOPTED_PAGE, PROT_READ | PROT_WRITE), 0);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_is_emptied(m);
	assert_true(are_untouched(file, fds, n));
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- each in a process of its own ---- */

static const struct CMUnitTest tests[] = {
	LAB_TEST(a_child_has_what_was_there_when_it_was_forked),
	LAB_TEST(a_child_has_it_also_if_another_region_overlaps),
	LAB_TEST(a_child_has_it_also_if_pages_are_pinned),
	LAB_TEST(a_child_of_one_of_two_threads_has_it),
	LAB_TEST(a_signal_handler_may_fork),
	LAB_TEST(a_slow_child_is_waited_for),
	LAB_TEST(what_a_handler_of_fork_writes_is_its_processs),
	LAB_TEST(a_childs_signal_handler_finds_the_memory),
	LAB_TEST(what_a_parents_signal_handler_writes_is_not_its_childs),
	LAB_TEST(who_is_forked_in_the_middle_of_adopting_has_memory_of_its_own),
	LAB_TEST(files_of_the_program_are_not_taken_for_the_librarys),
	LAB_TEST(memory_comes_back_though_the_program_has_closed_its_file),
};

/* Runs this program for one test. */
static int run(const char *name, char *const argv[])
{
	int status;
	pid_t pid;

	setenv("CMOCKA_TEST_FILTER", name, 1);
	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) ||
	    waitpid(pid, &status, 0) != pid)
		return 1;
	return status != 0;
}

int main(int argc, char *argv[])
{
	int failed = 0;

	(void)argc;
	if (getenv("CMOCKA_TEST_FILTER")) {
		lab_peers_begin();
		return cmocka_run_group_tests(tests, NULL, NULL);
	}
	for (unsigned i = 0; i < LAB_ARRAY(tests); i++)
		failed += run(tests[i].name, argv);
	return failed;
}
