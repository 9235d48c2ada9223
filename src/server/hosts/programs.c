/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs on hosts: see programs.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/newer_libc.h"
#include "base/util.h"
#include "hosts/programs.h"

#define NS_PER_MS   1000000ull
#define AGAIN_NS    (1000 * NS_PER_MS) /* from one start of a program to the next */
#define AT_ONCE     16                 /* programs that are started, and not ready yet */
#define ANSWER_MS   200                /* so long a program may take to tell its status */
#define READ_S      5                  /* so long a reader may take to read */
#define STATUS_ROOM 262144

int hosts_programs_init(struct hosts_programs *p)
{
	p->of = calloc(p->plan->n_programs + 1, sizeof(*p->of));
	if (!p->of)
		return -ENOMEM;
	for (unsigned i = 0; i < p->plan->n_programs; i++)
		p->of[i].status_fd = p->of[i].control_fd = -1;
	return 0;
}

static const char *host_name(const struct hosts_programs *p, unsigned i)
{
	return p->plan->name(p->plan->arg, p->plan->host_of(p->plan->arg, i));
}

/* ---- start ---- */

/* Closes what is open of it. */
static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* In the child: goes to the host and becomes the program. */
static _Noreturn void become(const struct hosts_programs *p, unsigned i, pid_t keeper,
                             const struct hosts_start *how)
{
	unsigned host = p->plan->host_of(p->plan->arg, i);
	sigset_t none;
	int ret;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL); /* which the daemon ignores */
	signal(SIGXFSZ, SIG_DFL);
	ret = hosts_namespaces_enter(&p->ns[host]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(1);
	if (ret) {
		base_log_error(hosts, "host '%s' cannot be entered: %s",
		               p->plan->name(p->plan->arg, host), strerror(-ret));
		_exit(1);
	}
	fcntl(how->status_fd, F_SETFD, 0);
	fcntl(how->control_fd, F_SETFD, 0);
	p->plan->become(p->plan->arg, i, how);
	_exit(1);
}

static int open_ends(int status[2], int control[2])
{
	if (pipe2(status, O_CLOEXEC))
		return -errno;
	if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control))
		return 0;
	close(status[0]);
	close(status[1]);
	return -errno;
}

/* 0 or -errno. */
static int start(struct hosts_programs *p, unsigned i)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };
	struct hosts_program *one = &p->of[i];
	int status[2], control[2], ret = open_ends(status, control);
	struct hosts_start how;
	pid_t keeper = getpid();

	if (ret)
		return ret;
	how = (struct hosts_start){ status[1], control[1], one->started_ns != 0 };
	one->started_ns = base_now_ns();
	one->due_ns = 0;
	one->ready = false;
	one->pid = fork();
	if (one->pid == 0)
		become(p, i, keeper, &how);
	ret = one->pid < 0 ? -errno : 0;
	close(status[1]);
	close(control[1]);
	one->status_fd = status[0];
	one->control_fd = control[0];
	if (!ret && epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, one->status_fd, &event))
		ret = -errno;
	if (ret && one->pid > 0)
		kill(one->pid, SIGKILL); /* it will be reaped */
	if (one->pid < 0) {
		one->pid = 0;
		close_fd(&one->status_fd);
		close_fd(&one->control_fd);
	}
	return ret;
}

/* Starts more, as long as few are on their way: a crowd that asks the daemon at once waits longer,
 * each for all others. */
static void start_more(struct hosts_programs *p)
{
	while (p->n_started < p->plan->n_programs &&
	       p->unready - (p->plan->n_programs - p->n_started) < AT_ONCE) {
		unsigned i = p->n_started++;
		int ret = start(p, i);

		if (!ret)
			continue;
		base_log_error(hosts, "no program on host '%s': %s", host_name(p, i),
		               strerror(-ret));
		if (p->of[i].pid)
			continue;
		p->failed++;
		p->unready--;
	}
}

void hosts_programs_start(struct hosts_programs *p)
{
	p->unready = p->plan->n_programs;
	start_more(p);
}

/* ---- status ---- */

/* Has all tell their status, at once. */
static void ask_all(const struct hosts_programs *p, char *text)
{
	for (unsigned i = 0; i < p->plan->n_programs; i++) {
		const struct hosts_program *one = &p->of[i];

		if (!one->ready || one->control_fd < 0)
			continue;
		/* what was too late the last time */
		while (recv(one->control_fd, text, STATUS_ROOM, MSG_DONTWAIT) > 0)
			;
		send(one->control_fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

/* The status of a program, in @text; 0 bytes: it tells none until then. */
static size_t answer_of(const struct hosts_program *one, char *text, uint64_t last_ns)
{
	struct pollfd answer = { .fd = one->control_fd, .events = POLLIN };
	ssize_t n;

	if (!one->ready || one->control_fd < 0 ||
	    poll(&answer, 1, base_now_ns() < last_ns ? ANSWER_MS : 0) <= 0)
		return 0;
	n = recv(one->control_fd, text, STATUS_ROOM, MSG_DONTWAIT | MSG_TRUNC);
	return n > 0 && n <= STATUS_ROOM && text[0] == '{' ? (size_t)n : 0;
}

static void show_all(const struct hosts_programs *p, FILE *to, char *text)
{
	uint64_t last_ns = base_now_ns() + 10 * ANSWER_MS * NS_PER_MS;

	ask_all(p, text);
	fputc('[', to);
	for (unsigned i = 0; i < p->plan->n_programs && !ferror(to); i++) {
		size_t n = answer_of(&p->of[i], text, last_ns);

		fprintf(to, "%s{\"host\":\"%s\",\"pid\":%d", i ? "," : "", host_name(p, i),
		        (int)p->of[i].pid);
		if (n) /* its members follow ours */
			fprintf(to, "%s%.*s", n > 2 ? "," : "", (int)n - 1, text + 1);
		else
			fputc('}', to);
	}
	fputc(']', to);
}

/* Writes the text, to a reader that may not read. Nothing else is open, and nobody waits. */
static void write_out(int fd, const char *text, size_t bytes)
{
	if (fd > 0)
		close_range(0, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0u, 0);
	signal(SIGALRM, SIG_DFL);
	alarm(READ_S);
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n <= 0)
			return;
		text += n;
		bytes -= (size_t)n;
	}
}

/* In a process of its own: collects the answers, and leaves the reader to another one. */
static _Noreturn void collect(const struct hosts_programs *p, int fd, pid_t keeper)
{
	char *all = NULL, *text = malloc(STATUS_ROOM);
	size_t bytes = 0;
	FILE *to = text ? open_memstream(&all, &bytes) : NULL;
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper || !to)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	show_all(p, to, text);
	if (!fclose(to) && fork() == 0)
		write_out(fd, all, bytes);
	_exit(0);
}

/* Collects for the next viewer. One viewer at a time: the answers do not say which one has
 * asked. */
static void show_next(struct hosts_programs *p)
{
	pid_t keeper = getpid();

	while (!p->collector && p->n_viewers) {
		int fd = p->viewer[0];

		p->collector = fork();
		if (p->collector == 0)
			collect(p, fd, keeper);
		if (p->collector < 0)
			p->collector = 0;
		close(fd);
		p->n_viewers--;
		memmove(p->viewer, p->viewer + 1, p->n_viewers * sizeof(*p->viewer));
	}
}

void hosts_programs_show(struct hosts_programs *p, int fd)
{
	int copy = p->n_viewers < ARRAY_SIZE(p->viewer) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (copy < 0)
		return; /* it gets an end without a word */
	p->viewer[p->n_viewers++] = copy;
	show_next(p);
}

/* ---- life ---- */

void hosts_programs_heard(struct hosts_programs *p, unsigned i)
{
	struct hosts_program *one = &p->of[i];
	char byte;

	if (one->status_fd >= 0 && read(one->status_fd, &byte, 1) == 1) {
		one->ready = true;
		if (p->unready)
			p->unready--;
		start_more(p);
	}
	close_fd(&one->status_fd); /* if it has closed it without a word, its end will say why */
}

/* Says how it has ended. */
static void explain(const struct hosts_programs *p, unsigned i, int status)
{
	base_log_error(hosts, "the program of host '%s' (pid %d) %s %d%s", host_name(p, i),
	               (int)p->of[i].pid,
	               WIFSIGNALED(status) ? "was ended by signal" : "has ended with status",
	               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
	               p->of[i].ready ? "; it is started again" : "");
}

static void ended(struct hosts_programs *p, unsigned i, int status)
{
	struct hosts_program *one = &p->of[i];

	explain(p, i, status);
	if (one->status_fd >= 0)
		hosts_programs_heard(p, i); /* it may have been ready for a moment */
	if (one->ready || !p->unready) {
		one->due_ns = one->started_ns + AGAIN_NS;
	} else {
		p->failed++;
		p->unready--;
	}
	close_fd(&one->control_fd);
	one->pid = 0;
	one->ready = false;
	start_more(p);
}

void hosts_programs_reap(struct hosts_programs *p)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == p->collector)
			p->collector = 0;
		for (unsigned i = 0; i < p->plan->n_programs; i++)
			if (p->of[i].pid == pid)
				ended(p, i, status);
	}
	show_next(p);
}

int hosts_programs_restart(struct hosts_programs *p)
{
	uint64_t now = base_now_ns(), next = 0;

	for (unsigned i = 0; i < p->plan->n_programs; i++) {
		struct hosts_program *one = &p->of[i];

		if (one->due_ns && one->due_ns <= now && start(p, i) && !one->pid)
			one->due_ns = now + AGAIN_NS;
		if (one->due_ns && (!next || one->due_ns < next))
			next = one->due_ns;
	}
	return next ? (int)((next - now) / NS_PER_MS) + 1 : -1;
}

void hosts_programs_kill(struct hosts_programs *p)
{
	for (unsigned i = 0; i < p->plan->n_programs; i++)
		if (p->of[i].pid)
			kill(p->of[i].pid, SIGKILL);
	for (unsigned i = 0; i < p->plan->n_programs; i++)
		while (p->of[i].pid && waitpid(p->of[i].pid, NULL, 0) < 0 && errno == EINTR)
			;
}
