/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs on a weak fabric: see weak.h. How a failure is made small is in weak_shrink.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "base/weak.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/run/weak.h"
#include "cli/run/weak_shrink.h"
#include "control/directory.h"

#define RUNS 200
/* A run may take so many times what the one on the strong fabric took. */
#define PATIENCE      20
#define LEAST_LIMIT_S 10
#define GRACE_MS      3000 /* to end, before it is killed */

static int store_weak(const struct cli_value *v, void *to)
{
	struct cli_weak *w = to;

	w->on = true;
	w->text = v->text;
	return 0;
}

const struct cli_option cli_weak_rows[] = {
	{ "      --weak[=SEED]     the fabric does what the specification allows, by a seed; as\n"
	  "                        SEED,gather,place it is weak by these only (docs/weak.md); or "
	  "FILE,\n"
	  "                        with the choices of a failure\n",
	  .store = store_weak },
	{ 0 },
};

const struct cli_option cli_weak_search_rows[] = {
	{ "      --runs N          with --weak: look for a seed that fails, N at most (default: "
	  "200)\n",
	  CLI_NUMBER(struct cli_weak, runs, 1, 1000000) },
	{ "      --limit SECONDS   a run that takes longer hangs (default: 20 times the strong "
	  "one's, at\n"
	  "                        least 10)\n",
	  CLI_NUMBER(struct cli_weak, limit_s, 1, 86400) },
	{ "      --save FILE       where the choices go that a failure needs (default:\n"
	  "                        umbel-weak-SEED.txt)\n",
	  CLI_TEXT(struct cli_weak, save) },
	{ 0 },
};

/* ---- what was given ---- */

static bool is_file(const char *text)
{
	return strchr(text, '/') || *text < '0' || *text > '9';
}

static int check_file(const char *path)
{
	FILE *from = fopen(path, "re");
	struct base_weak_choice c;
	unsigned n = 0;
	int ret = 1;

	if (!from) {
		base_log("cannot read '%s': %s", path, strerror(errno));
		return CLI_USAGE;
	}
	for (; ret > 0; n++)
		ret = base_weak_read(from, &c);
	fclose(from);
	if (!ret)
		return 0;
	base_log("'%s': choice %u is none: a line has HOST PROCESS OBJECT REQUEST STEP AMOUNT",
	         path, n);
	return CLI_USAGE;
}

int cli_weak_check(const struct cli_weak *w)
{
	struct base_weak says;
	char why[200];

	if (!w->on && (w->runs || w->limit_s || w->save)) {
		base_log("--runs, --limit and --save go with --weak");
		return CLI_USAGE;
	}
	if (!w->on || !w->text)
		return 0;
	if (is_file(w->text))
		return check_file(w->text);
	if (base_weak_parse(w->text, &says, why, sizeof(why)))
		return 0;
	base_log("--weak: %s", why);
	return CLI_USAGE;
}

bool cli_weak_searches(const struct cli_weak *w)
{
	return w->on && (w->runs || !w->text);
}

static int set_choices(const char *path)
{
	char *all = realpath(path, NULL);
	int ret = all ? setenv(BASE_WEAK_CHOICES, all, 1) : -1;

	if (ret)
		base_log("cannot read '%s': %s", path, strerror(errno));
	free(all);
	return ret ? CLI_USAGE : setenv(BASE_WEAK_VARIABLE, "0", 1);
}

int cli_weak_begin(const struct cli_weak *w)
{
	if (!w->on || !w->text)
		return 0;
	if (is_file(w->text))
		return set_choices(w->text);
	return setenv(BASE_WEAK_VARIABLE, w->text, 1) ? CLI_FAILED : 0;
}

/* ---- one run of many ---- */

struct search {
	const struct cli_weak *w;
	int (*run)(void *arg);
	void *arg;
	sigset_t signals, old;
	uint64_t limit_ns;
	char dir[PATH_MAX]; /* where processes note their choices */
	int output;         /* of the last run */
	int stopped_by;     /* a signal: the search ends */
};

static _Noreturn void become_run(struct search *s)
{
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setpgid(0, 0); /* what it leaves behind is found by it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(s->output, STDOUT_FILENO);
	dup2(s->output, STDERR_FILENO);
	sigprocmask(SIG_SETMASK, &s->old, NULL);
	_exit(s->run(s->arg));
}

/* Waits for @ms at most. Whether the child has ended. */
static bool wait_for(struct search *s, pid_t pid, int64_t ms, int *status)
{
	const uint64_t until = base_now_ns() + (uint64_t)ms * 1000000;
	struct timespec left;
	uint64_t now;
	int signo;

	while (waitpid(pid, status, WNOHANG) != pid) {
		now = base_now_ns();
		if (now >= until)
			return false;
		left = (struct timespec){ .tv_sec = (time_t)((until - now) / 1000000000),
			                  .tv_nsec = (long)((until - now) % 1000000000) };
		signo = sigtimedwait(&s->signals, NULL, &left);
		if (signo > 0 && signo != SIGCHLD) {
			s->stopped_by = signo;
			return false;
		}
	}
	return true;
}

static void end_child(struct search *s, pid_t pid)
{
	const int stopped_by = s->stopped_by;
	int status;

	kill(pid, SIGTERM);
	if (!wait_for(s, pid, GRACE_MS, &status)) {
		kill(-pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	kill(-pid, SIGKILL); /* what does not end by itself */
	if (stopped_by)
		s->stopped_by = stopped_by;
}

/* Runs the command once. Its status, or CLI_WEAK_HANGS. */
static int run_once(struct search *s)
{
	int status = 0;
	pid_t pid;

	if (ftruncate(s->output, 0) || lseek(s->output, 0, SEEK_SET))
		return CLI_FABRIC_FAILED;
	fflush(stdout);
	pid = fork();
	if (!pid)
		become_run(s);
	if (pid < 0) {
		base_log("cannot start the command: %s", strerror(errno));
		return CLI_FABRIC_FAILED;
	}
	if (!wait_for(s, pid, (int64_t)(s->limit_ns / 1000000), &status)) {
		end_child(s, pid);
		return CLI_WEAK_HANGS;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void print_output(const struct search *s)
{
	char text[4096];
	ssize_t n;
	off_t at = 0;

	fflush(stdout);
	while ((n = pread(s->output, text, sizeof(text), at)) > 0) {
		if (write(STDERR_FILENO, text, (size_t)n) < 0)
			return;
		at += n;
	}
}

static const char *outcome(int status, char text[static 64])
{
	if (status == CLI_WEAK_HANGS)
		return "hangs";
	if (status > 128)
		snprintf(text, 64, "ends by signal %d (%s)", status - 128, strsignal(status - 128));
	else
		snprintf(text, 64, "fails with status %d", status);
	return text;
}

/* ---- the search ---- */

/* 0, or the status of a program that fails where nothing is weak. */
static int run_strong(struct search *s)
{
	const uint64_t begun = base_now_ns();
	char text[64];
	int ret;

	s->limit_ns = s->w->limit_s ? (uint64_t)s->w->limit_s * 1000000000 : INT64_MAX;
	unsetenv(BASE_WEAK_VARIABLE);
	ret = run_once(s);
	if (ret && !s->stopped_by) {
		print_output(s);
		base_log("the program %s on a strong fabric, too", outcome(ret, text));
	}
	if (!s->w->limit_s)
		s->limit_ns = PATIENCE * (base_now_ns() - begun);
	if (s->limit_ns < LEAST_LIMIT_S * 1000000000ull && !s->w->limit_s)
		s->limit_ns = LEAST_LIMIT_S * 1000000000ull;
	return ret;
}

static int run_choices(void *arg, const char *path)
{
	struct search *s = arg;
	int ret;

	if (s->stopped_by)
		return 0;
	if (setenv(BASE_WEAK_CHOICES, path, 1))
		return CLI_FABRIC_FAILED;
	ret = run_once(s);
	unsetenv(BASE_WEAK_CHOICES);
	return s->stopped_by ? 0 : ret;
}

static int tell_failure(struct search *s, uint32_t seed, const char *kinds, uint32_t runs,
                        int status)
{
	char name[64], text[64];
	const struct cli_weak_shrink shrink = { .dir = s->dir,
		                                .save = s->w->save ? s->w->save : name,
		                                .seed = seed,
		                                .status = status,
		                                .run = run_choices,
		                                .arg = s };

	snprintf(name, sizeof(name), "umbel-weak-%" PRIu32 ".txt", seed);
	print_output(s);
	base_log("the program %s with --weak=%" PRIu32 "%s, behind %" PRIu32 " that it passes",
	         outcome(status, text), seed, kinds, runs - 1);
	cli_weak_shrink(&shrink);
	return status;
}

static int try_seed(struct search *s, uint32_t seed, const char *kinds, bool notes)
{
	char text[200];

	snprintf(text, sizeof(text), "%" PRIu32 "%s", seed, kinds);
	if (setenv(BASE_WEAK_VARIABLE, text, 1) ||
	    (notes ? setenv(BASE_WEAK_FOLDER, s->dir, 1) : unsetenv(BASE_WEAK_FOLDER)))
		return CLI_FABRIC_FAILED;
	return run_once(s);
}

static void progress(uint32_t n, uint32_t runs)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rseed %" PRIu32 " of %" PRIu32 " \r", n, runs);
}

static int try_seeds(struct search *s)
{
	const uint32_t first = s->w->text ? (uint32_t)strtoul(s->w->text, NULL, 10) : 1;
	const char *comma = s->w->text ? strchr(s->w->text, ',') : NULL;
	const char *kinds = comma ? comma : "";
	const uint32_t runs = s->w->runs ? (uint32_t)s->w->runs : RUNS;
	int ret = 0;

	for (uint32_t i = 0; i < runs && !ret; i++) {
		progress(i + 1, runs);
		cli_weak_forget_notes(s->dir);
		ret = try_seed(s, first + i, kinds, true);
		if (!s->stopped_by && ret)
			ret = tell_failure(s, first + i, kinds, i + 1, ret);
		if (s->stopped_by)
			return 128 + s->stopped_by;
	}
	if (!ret)
		base_log("the program passes with %" PRIu32 " seeds, from %" PRIu32 " on", runs,
		         first);
	return ret;
}

static int make_folder(struct search *s)
{
	char runtime[PATH_MAX];

	if (cli_runtime_dir(runtime) || cli_make_dir(runtime))
		return CLI_FABRIC_FAILED;
	if (snprintf(s->dir, sizeof(s->dir), "%s/.weak-XXXXXX", runtime) < (int)sizeof(s->dir) &&
	    mkdtemp(s->dir))
		return 0;
	base_log("cannot make a directory in '%s': %s", runtime, strerror(errno));
	return CLI_FABRIC_FAILED;
}

int cli_weak_search(const struct cli_weak *w, int (*run)(void *arg), void *arg)
{
	struct search s = { .w = w, .run = run, .arg = arg };
	int ret;

	if (w->text && is_file(w->text)) {
		base_log("--runs goes with a seed, and not with a file of choices");
		return CLI_USAGE;
	}
	s.output = memfd_create("umbel-output", MFD_CLOEXEC);
	if (s.output < 0 || make_folder(&s))
		return CLI_FABRIC_FAILED;
	sigemptyset(&s.signals);
	sigaddset(&s.signals, SIGCHLD);
	sigaddset(&s.signals, SIGINT);
	sigaddset(&s.signals, SIGTERM);
	sigaddset(&s.signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &s.signals, &s.old);
	ret = run_strong(&s);
	if (!ret && !s.stopped_by)
		ret = try_seeds(&s);
	if (s.stopped_by)
		ret = 128 + s.stopped_by;
	control_remove_dir(s.dir);
	close(s.output);
	return ret;
}
