/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Starting and ending a daemon: see daemon_process.h. The process has one thread, so the
 * child may call anything between fork and exec.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/newer_libc.h"
#include "base/util.h"
#include "cli/fabric/daemon_process.h"
#include "cli/base/fabrics.h"
#include "control/directory.h"
#include "control/path.h"

enum {
	READY_FD = 3, /* the numbers in the daemon */
	TOPOLOGY_FD = 4,
	PARTITIONS_FD = 5,
	LAST_FD = PARTITIONS_FD,
	START_MS = 120000, /* with an interface for each host, or routing=dfsssp for 27,648 */
	STOP_MS = 5000,
	LOOK_MS = 100,
	HELD_LOOKS = 10, /* in a row: what only takes its time has ended meanwhile */
};

/* The ends of the pipes between a command and the daemon it starts. */
struct pipes {
	int ready[2];
	int topology, partitions; /* the text of a file; -1: none */
};

/* The log of a fabric that is about to start. The directory is proven private before. */
static int open_log(const char *name)
{
	char why[CONTROL_WHY_ROOM];
	int dir = control_fabric_open(name, true, why), fd;

	if (dir < 0) {
		base_log("no private directory for fabric '%s': %s; set UMBEL_RUNTIME_DIR to "
		         "another",
		         name, why);
		return dir;
	}
	fd = openat(dir, "log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		base_log("cannot write the log of fabric '%s': %s", name, strerror(errno));
	close(dir);
	return fd;
}

void cli_daemon_process_print_log(const char *name)
{
	char text[2048], why[CONTROL_WHY_ROOM];
	int fd, dir = control_fabric_open(name, false, why);
	ssize_t n;

	if (dir < 0)
		return;
	fd = openat(dir, "log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	close(dir);
	if (fd < 0)
		return;
	lseek(fd, -(off_t)sizeof(text), SEEK_END); /* fails on a short log: from its start */
	while ((n = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, n, stderr);
	close(fd);
}

void cli_daemon_process_remove_log(const char *name)
{
	char path[PATH_MAX], why[CONTROL_WHY_ROOM];
	int dir = control_fabric_open(name, false, why);

	if (dir < 0)
		return;
	if (faccessat(dir, "ctl", F_OK, 0)) {
		unlinkat(dir, "log", 0);
		if (!control_path(path, sizeof(path), name, NULL))
			rmdir(path);
	}
	close(dir);
}

void cli_daemon_process_remove_leftovers(const char *name)
{
	static const char *const leaves[] = { "ctl", "log", "lock" };
	char path[PATH_MAX], within[PATH_MAX], why[CONTROL_WHY_ROOM];
	int dir = control_fabric_open(name, false, why), lock;

	if (dir < 0)
		return;
	lock = openat(dir, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (lock >= 0 && !flock(lock, LOCK_EX | LOCK_NB)) {
		for (size_t i = 0; i < ARRAY_SIZE(leaves); i++)
			unlinkat(dir, leaves[i], 0);
		/* what programs have made to look into, and OpenSM's files */
		if (!control_path(within, sizeof(within), name, CONTROL_STAND_INS))
			control_remove_dir(within);
		if (!control_path(path, sizeof(path), name, NULL))
			rmdir(path); /* stays if something else is in it */
	}
	if (lock >= 0)
		close(lock);
	close(dir);
}

/* Adds an option and its value, if there is one. Returns where the next word goes. */
static const char **add(const char **to, const char *option, const char *value)
{
	if (!value)
		return to;
	to[0] = option;
	to[1] = value;
	return to + 2;
}

/* The command line of the daemon, for exec; NULL if there is no memory. */
static char **daemon_argv(const struct cli_daemon_process_start *how)
{
	const struct cli_fabric_options *f = how->fabric;
	const char **argv = calloc(f->given.n + 16, sizeof(*argv)), **to;
	static char ready[8], topology[8], partitions[8];

	if (!argv)
		return NULL;
	snprintf(ready, sizeof(ready), "%d", READY_FD);
	snprintf(topology, sizeof(topology), "%d", TOPOLOGY_FD);
	snprintf(partitions, sizeof(partitions), "%d", PARTITIONS_FD);
	to = add(argv, "umbel", "daemon");
	to = add(to, "--name", f->daemon.fabric);
	for (unsigned i = 0; i < f->given.n; i++)
		*to++ = f->given.at[i];
	to = add(to, "--topology-fd", f->topology.name ? topology : NULL);
	to = add(to, "--partitions-fd", f->partitions.name ? partitions : NULL);
	to = add(to, "--state", f->daemon.state);
	to = add(to, "--ready-fd", ready);
	add(to, "--remove-dir", how->remove_dir);
	return (char **)argv;
}

/* Moves the descriptors to where the daemon expects them and closes all others. */
static int arrange_fds(const struct pipes *p, int log)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int from[] = { null, log, log, p->ready[1], p->topology, p->partitions };

	for (int i = 0; i <= LAST_FD; i++) {
		if (i >= TOPOLOGY_FD && from[i] < 0)
			continue; /* no file was given */
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, LAST_FD + 1);
		if (from[i] < 0)
			return -1;
	}
	for (int i = 0; i <= LAST_FD; i++) {
		if (from[i] < 0)
			close(i);
		else if (dup2(from[i], i) < 0)
			return -1;
	}
	closefrom(LAST_FD + 1);
	return 0;
}

/* In the child: tells the parent why there is no daemon. */
static _Noreturn void give_up(int ready_fd, const char *what)
{
	dprintf(ready_fd, "cannot start a daemon: %s: %s", what, strerror(errno));
	_exit(CLI_FAILED);
}

/* In the child: becomes the daemon. Detached: no terminal, no directory kept busy. */
static _Noreturn void become_daemon(const struct cli_daemon_process_start *how,
                                    const struct pipes *p, int log)
{
	char exe[PATH_MAX], runtime[PATH_MAX];
	char **argv = daemon_argv(how);
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	sigset_t none;

	if (!argv || cli_runtime_dir(runtime))
		_exit(CLI_FAILED);
	if (n < 0)
		give_up(p->ready[1], "/proc/self/exe cannot be read; is /proc mounted?");
	if (arrange_fds(p, log))
		give_up(p->ready[1], "no descriptors; is there a /dev/null?");
	exe[n] = '\0';
	setenv("UMBEL_RUNTIME_DIR", runtime, 1);
	setsid();
	if (chdir("/"))
		give_up(READY_FD, "/");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(exe, argv);
	give_up(READY_FD, exe);
}

/*
 * Waits until the daemon serves: 0. 1 if interrupted; else -errno. In @said is what the daemon has
 * written, if anything: notes, or why it does not serve.
 */
static int wait_ready(int ready_fd, const struct cli_daemon_process_start *how, char *said,
                      size_t room)
{
	struct pollfd fds[] = {
		{ .fd = ready_fd, .events = POLLIN },
		{ .fd = how->interrupt_fd, .events = POLLIN },
	};
	size_t len = 0;
	ssize_t n;

	for (;;) {
		n = poll(fds, ARRAY_SIZE(fds), START_MS);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ETIMEDOUT;
		if (fds[1].revents)
			return 1;
		n = read(ready_fd, said + len, room - len - 1);
		if (n <= 0)
			break;
		if (memchr(said + len, '\0', (size_t)n))
			return 0;
		len += n;
	}
	said[len] = '\0';
	said[strcspn(said, "\n")] = '\0';
	return -EIO;
}

/* The daemon serves: prints what else it has said, line by line. */
static void print_notes(char *notes)
{
	for (char *line = strtok(notes, "\n"); line; line = strtok(NULL, "\n"))
		base_log("%s", line);
}

static void report_failure(const struct cli_fabric_options *fabric, int ret, const char *error)
{
	const char *name = fabric->daemon.fabric;

	if (ret == 1)
		return;
	if (*error) {
		base_log("%s", error);
	} else if (ret == -ETIMEDOUT) {
		base_log("the daemon of fabric '%s' did not start in %d s", name, START_MS / 1000);
	} else {
		base_log("the daemon of fabric '%s' failed to start:", name);
		cli_daemon_process_print_log(name);
	}
}

static void close_pipes(struct pipes *p)
{
	int fds[] = { p->ready[0], p->ready[1], p->topology, p->partitions };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

/* A descriptor with the text of @f, or -1 if there is no file. 0; -1 and errno. */
static int open_file(const struct cli_file *f, int *fd)
{
	int ret = f->name ? cli_file_fd(f) : -1;

	if (f->name && ret < 0) {
		errno = -ret;
		return -1;
	}
	*fd = ret;
	return 0;
}

/* Advice against an error of launch(). */
static const char *advice(int error)
{
	switch (error) {
	case EAGAIN:
		return "; too many processes, raise the limit (ulimit -u)";
	case EMFILE:
		return "; raise the limit (ulimit -n)";
	case EFBIG:
		return "; raise the limit (ulimit -f)";
	default:
		return "";
	}
}

/* Forks the daemon. Our end of the pipe stays open. */
static int launch(struct cli_daemon_process *m, const struct cli_daemon_process_start *how,
                  struct pipes *p)
{
	int log = open_log(how->fabric->daemon.fabric);

	if (log < 0)
		return -1;
	if (pipe2(p->ready, O_CLOEXEC))
		goto err;
	if (open_file(&how->fabric->topology, &p->topology) ||
	    open_file(&how->fabric->partitions, &p->partitions))
		goto err;
	m->pid = fork();
	if (m->pid < 0)
		goto err;
	if (m->pid == 0)
		become_daemon(how, p, log);
	close(log);
	close(p->ready[1]);
	p->ready[1] = -1;
	return 0;
err:
	base_log("cannot start a daemon: %s%s", strerror(errno), advice(errno));
	close(log);
	return -1;
}

int cli_daemon_process_start(struct cli_daemon_process *m,
                             const struct cli_daemon_process_start *how)
{
	struct pipes p = { { -1, -1 }, -1, -1 };
	char error[1024] = "";
	int ret;

	*m = (struct cli_daemon_process){ 0 };
	if (launch(m, how, &p)) {
		close_pipes(&p);
		return CLI_FAILED;
	}
	ret = wait_ready(p.ready[0], how, error, sizeof(error));
	close_pipes(&p);
	if (!ret) {
		print_notes(error);
		return 0;
	}
	report_failure(how->fabric, ret, error);
	kill(m->pid, SIGTERM); /* it may have begun to serve just now */
	cli_daemon_process_stop(m);
	if (m->stuck)
		cli_daemon_process_remove_leftovers(how->fabric->daemon.fabric);
	cli_daemon_process_remove_log(how->fabric->daemon.fabric);
	return CLI_FAILED;
}

bool cli_daemon_process_stat(pid_t pid, char *state, unsigned long *bytes)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	/* proc(5): its size is the 23rd field */
	return base_read_start(path, text, sizeof(text)) > 0 &&
	       sscanf(text,
	              "%*d (%*[^)]) %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
	              "%*s %*s %*s %*s %lu",
	              state, bytes) == 2;
}

/* Whether the daemon has no memory any more, and is there all the same: the kernel holds it, or a
 * thread of it, as it closes what a program has given it (daemon/core/closer.h), and nobody can end
 * that. */
static bool is_held(pid_t pid)
{
	unsigned long bytes;
	char state;

	return cli_daemon_process_stat(pid, &state, &bytes) && !bytes;
}

/* Whether the process ends, with all its threads. */
static bool ends_in(int pidfd, int ms)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	return poll(&fd, 1, ms) > 0;
}

int cli_wait_gone(pid_t pid, int pidfd, int ms)
{
	uint64_t end = base_now_ns() + (uint64_t)ms * 1000000;
	unsigned held = 0;

	while (!ends_in(pidfd, LOOK_MS) && held < HELD_LOOKS) {
		if (base_now_ns() >= end)
			return -ETIMEDOUT;
		held = is_held(pid) ? held + 1 : 0;
	}
	return 0;
}

/* Waits for the end of a child without a pidfd, which a seccomp filter may deny. 0 or -ETIMEDOUT.
 */
static int wait_child(pid_t pid, int ms)
{
	const struct timespec step = { .tv_sec = 1 };
	uint64_t end = base_now_ns() + (uint64_t)ms * 1000000;
	siginfo_t info = { 0 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	while (!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid) {
		if (base_now_ns() >= end)
			return -ETIMEDOUT;
		sigtimedwait(&child, NULL, &step);
	}
	return 0;
}

int cli_daemon_process_stop(struct cli_daemon_process *m)
{
	int status = 0, flags = 0, pidfd = pidfd_open(m->pid, 0);

	if (pidfd >= 0 ? cli_wait_gone(m->pid, pidfd, STOP_MS) : wait_child(m->pid, STOP_MS)) {
		base_log("the daemon (pid %d) did not end in %d s: killed", (int)m->pid,
		         STOP_MS / 1000);
		kill(m->pid, SIGKILL);
		m->stuck = true;
		if (pidfd >= 0)
			cli_wait_gone(m->pid, pidfd, STOP_MS);
	}
	if (pidfd >= 0 && !ends_in(pidfd, 0))
		flags = WNOHANG;
	if (pidfd >= 0)
		close(pidfd);
	while (waitpid(m->pid, &status, flags) < 0 && errno == EINTR)
		;
	return status;
}
