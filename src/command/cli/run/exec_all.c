/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel exec --all`: see exec_all.h. Each command is a process group of its own, so that a signal
 * reaches all that it has started, and none of that stays when it has ended. A process that leaves
 * the group becomes our child at the latest when its parent ends, and ends with us. The output of
 * commands comes by pipes, and leaves line by line behind the name of the host.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/run/exec_all.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/signals.h"
#include "control/client.h"

#define LINE        65536   /* bytes of a line that are kept until it ends; longer ones are cut */
#define NAME        208     /* the name of a host before it */
#define MOST_LEFT   1048576 /* of output behind the end of a command */
#define MOST_SHOWN  8       /* hosts of which is said how the command failed */
#define MS_TO_WRITE 1000    /* after a signal, to the reader of their output */
#define STREAMS     2       /* standard output, standard error */

/* The output that comes by one pipe. */
struct stream {
	int from, to; /* -1: it has ended */
	size_t n;
	char *line; /* of LINE bytes */
};

/* A command that runs; pid 0: none does. */
struct job {
	pid_t pid;
	size_t host;
	struct stream stream[STREAMS];
};

struct output {
	char text[2 * LINE];
	size_t n;
};

struct all {
	const struct cli_exec_all *how;
	struct json_object *hosts;
	size_t n_hosts, started;
	int *status; /* by host */
	struct job *job;
	unsigned running, failed;
	sigset_t old_signals;
	int signal_fd, child_fd;
	int signal;           /* that has ended it all; 0: none */
	struct output output; /* lines of one stream */
};

static const char *name_of(const struct all *a, size_t host)
{
	return cli_json_text(cli_json_at(a->hosts, host), "name");
}

/* ---- output ---- */

/* Sends a signal to all commands, and to what they have started. A stopped process gets it when it
 * continues. */
static void signal_all(const struct all *a, int signal)
{
	for (unsigned i = 0; i < a->how->jobs; i++) {
		if (!a->job[i].pid)
			continue;
		kill(-a->job[i].pid, signal);
		kill(-a->job[i].pid, SIGCONT);
	}
}

/* The first signal ends the commands as they like; a second one does it at once. */
static void end_all(struct all *a, int signal)
{
	signal_all(a, a->signal ? SIGKILL : signal);
	if (!a->signal)
		a->signal = signal;
}

/* Waits until a write of a piece does not block; signals count meanwhile. False: it would, and they
 * have ended it all. */
static bool wait_for_room(struct all *a, int fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLOUT },
		                { .fd = a->signal_fd, .events = POLLIN } };
	bool typed;
	int signo;

	for (;;) {
		int n = poll(fds, ARRAY_SIZE(fds), a->signal ? MS_TO_WRITE : -1);

		while ((signo = cli_signals_next(a->signal_fd, &typed)))
			end_all(a, signo);
		if (n > 0 && fds[0].revents)
			return true;
		if (n == 0)
			return false;
	}
}

/* Nobody reads @fd any more: a command that writes on gets EPIPE, whatever it thinks of the
 * signal. */
static void close_pipes_to(struct all *a, int fd)
{
	for (unsigned i = 0; i < a->how->jobs; i++) {
		for (unsigned k = 0; a->job[i].pid && k < STREAMS; k++) {
			struct stream *s = &a->job[i].stream[k];

			if (s->to != fd || s->from < 0)
				continue;
			close(s->from);
			s->from = -1;
		}
	}
}

static void flush(struct all *a, int fd)
{
	struct output *o = &a->output;
	const char *from = o->text;

	while (o->n && wait_for_room(a, fd)) {
		ssize_t n = write(fd, from, o->n < PIPE_BUF ? o->n : PIPE_BUF);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0) {
			if (errno != EPIPE)
				base_log("cannot write what the commands print: %s",
				         strerror(errno));
			close_pipes_to(a, fd);
			if (!a->signal)
				end_all(a, SIGPIPE);
			break;
		}
		from += n;
		o->n -= (size_t)n;
	}
	o->n = 0;
}

/* One line: the host's name, @bytes of it, and an end of line. */
static void put_line(struct all *a, const struct job *job, const struct stream *s, const char *line,
                     size_t bytes)
{
	struct output *o = &a->output;

	if (o->n + NAME + bytes + 1 > sizeof(o->text))
		flush(a, s->to);
	o->n += (size_t)snprintf(o->text + o->n, NAME, "%.200s: ", name_of(a, job->host));
	memcpy(o->text + o->n, line, bytes);
	o->n += bytes;
	o->text[o->n++] = '\n';
}

/* Prints whole lines, and pieces as long as a line may be. @all: and the rest. */
static void print_lines(struct all *a, const struct job *job, struct stream *s, bool all)
{
	const char *line = s->line, *const last = s->line + s->n, *end;

	while (line < last && (end = memchr(line, '\n', (size_t)(last - line)))) {
		put_line(a, job, s, line, (size_t)(end - line));
		line = end + 1;
	}
	if (line < last && (all || line + LINE == last)) {
		put_line(a, job, s, line, (size_t)(last - line));
		line = last;
	}
	flush(a, s->to);
	s->n = (size_t)(last - line);
	memmove(s->line, line, s->n);
}

/* Reads once. False: there is nothing more now. */
static bool read_stream(struct all *a, const struct job *job, struct stream *s)
{
	ssize_t n;

	if (s->from < 0)
		return false;
	n = read(s->from, s->line + s->n, LINE - s->n);
	if (n < 0)
		return errno == EINTR;
	if (!n) {
		close(s->from);
		s->from = -1;
		return false;
	}
	s->n += (size_t)n;
	print_lines(a, job, s, false);
	return true;
}

static void close_stream(struct all *a, const struct job *job, struct stream *s)
{
	/* a process that has left the group may still write, without an end */
	for (unsigned left = MOST_LEFT / LINE; left-- && read_stream(a, job, s);)
		;
	if (s->n)
		print_lines(a, job, s, true);
	if (s->from >= 0)
		close(s->from);
	free(s->line);
	*s = (struct stream){ .from = -1 };
}

/* ---- start ---- */

/* In the child: becomes the command on the host. */
static _Noreturn void become(const struct all *a, const char *host, const int to[STREAMS],
                             pid_t parent)
{
	const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int ret;

	setpgid(0, 0);
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(to[0], STDOUT_FILENO) < 0 ||
	    dup2(to[1], STDERR_FILENO) < 0)
		_exit(CLI_FAILED);
	ret = cli_environ_set(a->how->fabric, host);
	if (!ret && !a->how->stay)
		ret = cli_enter_host(a->how->fabric, host, false);
	sigprocmask(SIG_SETMASK, &a->old_signals, NULL);
	/* not before: entering a host gives capabilities, which clears it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(CLI_FAILED);
	_exit(ret ? ret : cli_exec_command(a->how->argv));
}

static int open_streams(struct job *job, int to[STREAMS])
{
	int pair[2];

	for (unsigned i = 0; i < STREAMS; i++) {
		job->stream[i] =
		        (struct stream){ .from = -1, .to = i ? STDERR_FILENO : STDOUT_FILENO };
		to[i] = -1;
	}
	for (unsigned i = 0; i < STREAMS; i++) {
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		job->stream[i].from = pair[0];
		to[i] = pair[1];
		fcntl(pair[0], F_SETFL, O_NONBLOCK);
		job->stream[i].line = malloc(LINE);
		if (!job->stream[i].line)
			return -ENOMEM;
	}
	return 0;
}

static void failed(struct all *a, size_t host, int status)
{
	a->status[host] = status;
	a->failed++;
}

/* Starts the command on the next host. */
static void start(struct all *a, struct job *job)
{
	const pid_t self = getpid();
	int to[STREAMS], ret;

	job->host = a->started++;
	ret = open_streams(job, to);
	if (!ret) {
		job->pid = fork();
		if (job->pid < 0)
			ret = -errno;
	}
	if (!ret && !job->pid)
		become(a, name_of(a, job->host), to, self);
	for (unsigned i = 0; i < STREAMS; i++)
		if (to[i] >= 0)
			close(to[i]);
	if (!ret) {
		setpgid(job->pid, job->pid); /* parent or child, the first one */
		a->running++;
		return;
	}
	base_log("cannot start the command on host '%s': %s", name_of(a, job->host),
	         strerror(-ret));
	for (unsigned i = 0; i < STREAMS; i++)
		close_stream(a, job, &job->stream[i]);
	job->pid = 0;
	failed(a, job->host, CLI_CANNOT_RUN);
}

/* ---- end ---- */

/* How it has ended, if it has failed. */
static void say_failed(const struct all *a, size_t host, int status)
{
	if (a->failed > MOST_SHOWN)
		return;
	if (WIFSIGNALED(status))
		base_log("host '%s': signal %d (%s) has ended the command", name_of(a, host),
		         WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		base_log("host '%s': the command's exit status is %d", name_of(a, host),
		         WEXITSTATUS(status));
}

static void end(struct all *a, struct job *job)
{
	int status;

	/* it is a zombie still, so nobody else's group has the number */
	kill(-job->pid, SIGKILL);
	waitpid(job->pid, &status, 0);
	job->pid = 0;
	for (unsigned i = 0; i < STREAMS; i++)
		close_stream(a, job, &job->stream[i]);
	a->running--;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	failed(a, job->host, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	if (!a->signal)
		say_failed(a, job->host, status);
}

static struct job *find_job(const struct all *a, pid_t pid)
{
	for (unsigned i = 0; i < a->how->jobs; i++)
		if (a->job[i].pid == pid)
			return &a->job[i];
	return NULL;
}

/* Commands that have ended, or stopped; and processes that these had started, which are our
 * children then. */
static void look_at_children(struct all *a)
{
	siginfo_t info = { 0 };
	struct job *job;

	while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
		job = find_job(a, info.si_pid);
		if (job)
			end(a, job);
		else
			waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
	while (!waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG) && info.si_pid) {
		job = find_job(a, info.si_pid);
		if (job)
			base_log("host '%s': signal %d (%s) has stopped the command, process %d",
			         name_of(a, job->host), info.si_status, strsignal(info.si_status),
			         (int)job->pid);
		info.si_pid = 0;
	}
}

/* The children that we have: calls @each for them. Whether that says so of one. */
static bool any_child(bool (*each)(pid_t pid))
{
	char path[64];
	bool any = false;
	FILE *from;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	from = fopen(path, "re");
	while (from && fscanf(from, "%d", &pid) == 1)
		any |= each(pid);
	if (from)
		fclose(from);
	return any;
}

static bool is_child(pid_t pid)
{
	return pid > 0;
}

/* Another user's cannot be ended. */
static bool end_child(pid_t pid)
{
	return !kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid;
}

/* Ends those that have left their command's group, as by setsid(). */
static void end_orphans(void)
{
	while (any_child(end_child))
		; /* their children are ours now */
}

/* ---- all ---- */

static void start_some(struct all *a)
{
	for (unsigned i = 0; i < a->how->jobs && a->started < a->n_hosts && !a->signal; i++)
		if (!a->job[i].pid)
			start(a, &a->job[i]);
}

/* Waits until something happens, and does what there is to do. @fds: room for all. */
static void turn(struct all *a, struct pollfd *fds)
{
	nfds_t n = 0;
	bool typed;
	int signo;

	fds[n++] = (struct pollfd){ .fd = a->signal_fd, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = a->child_fd, .events = POLLIN };
	for (unsigned i = 0; i < a->how->jobs; i++)
		for (unsigned k = 0; a->job[i].pid && k < STREAMS; k++)
			if (a->job[i].stream[k].from >= 0)
				fds[n++] = (struct pollfd){ .fd = a->job[i].stream[k].from,
					                    .events = POLLIN };
	if (poll(fds, n, -1) < 0)
		return;
	while ((signo = cli_signals_next(a->signal_fd, &typed)))
		end_all(a, signo);
	for (unsigned i = 0; i < a->how->jobs; i++)
		for (unsigned k = 0; a->job[i].pid && k < STREAMS; k++)
			read_stream(a, &a->job[i], &a->job[i].stream[k]);
	cli_signals_clear_child(a->child_fd);
	look_at_children(a);
}

static int result(const struct all *a)
{
	if (a->failed > MOST_SHOWN && !a->signal)
		base_log("the command has failed on %u of %zu hosts", a->failed, a->n_hosts);
	if (a->signal)
		return 128 + a->signal;
	for (size_t i = 0; i < a->n_hosts; i++)
		if (a->status[i])
			return a->status[i];
	return CLI_OK;
}

static int run_all(struct all *a)
{
	const unsigned jobs = a->how->jobs;
	const bool inherits = any_child(is_child); /* of the program that became us by exec() */
	struct pollfd *fds = calloc(2 + STREAMS * jobs, sizeof(*fds));
	int ret = CLI_FAILED;

	a->status = calloc(a->n_hosts + 1, sizeof(*a->status));
	a->job = calloc(jobs, sizeof(*a->job));
	if (!fds || !a->status || !a->job) {
		base_log("%s", strerror(ENOMEM));
		goto out;
	}
	a->signal_fd = cli_signals_open(&a->old_signals);
	if (a->signal_fd < 0)
		goto out;
	a->child_fd = cli_signals_open_child();
	if (a->child_fd < 0) {
		base_log("cannot wait for commands: %s", strerror(errno));
		goto out_signals;
	}
	cli_signals_hold_pipe();
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans become our children */
	fflush(stdout);
	for (start_some(a); a->running; start_some(a))
		turn(a, fds);
	if (!inherits)
		end_orphans();
	ret = result(a);
	close(a->child_fd);
out_signals:
	close(a->signal_fd);
out:
	free(a->job);
	free(a->status);
	free(fds);
	return ret;
}

int cli_exec_all(const struct cli_exec_all *how)
{
	static struct all a; /* large */
	struct control_client *client;
	int ret = cli_connect(&client, how->fabric);

	if (ret)
		return ret;
	a.how = how;
	a.hosts = cli_request_json(client, "hosts");
	control_close(client);
	if (!a.hosts)
		return CLI_FAILED;
	a.n_hosts = cli_json_count(a.hosts);
	ret = run_all(&a);
	json_object_put(a.hosts);
	return ret;
}
