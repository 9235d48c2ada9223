/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command umbel: see command.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/umbel/command.h"

#define REASON 1024 /* bytes, with the end */

static _Thread_local char reason[REASON];

const char *umbel_reason(void)
{
	return reason;
}

void umbel_set_reason(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
}

/* A pipe from the command, and the text that came by it. */
struct stream {
	int from, to; /* -1: closed */
	FILE *into;
	char *text; /* once @into is closed */
	size_t bytes;
};

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int stream_open(struct stream *s)
{
	int ends[2];

	*s = (struct stream){ .from = -1, .to = -1 };
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	s->from = ends[0];
	s->to = ends[1];
	s->into = open_memstream(&s->text, &s->bytes);
	return s->into ? 0 : -1;
}

/* The text that came, to be freed; NULL: there was no memory for all of it. */
static char *stream_close(struct stream *s)
{
	bool lost;

	close_end(&s->from);
	close_end(&s->to);
	if (!s->into)
		return NULL;
	lost = ferror(s->into);
	if (!fclose(s->into) && !lost)
		return s->text;
	free(s->text);
	return NULL;
}

/* Reads what is there. At the end, or after an error, it is closed. */
static void stream_read(struct stream *s)
{
	char bytes[4096];
	ssize_t n = read(s->from, bytes, sizeof(bytes));

	if (n > 0)
		fwrite(bytes, 1, (size_t)n, s->into);
	else if (!n || errno != EINTR)
		close_end(&s->from);
}

/* Reads up to the ends of both, @err may be NULL, or until the command has ended and all that it
 * has printed was read: a child that another thread has forked meanwhile may hold their other ends
 * for long. @pidfd: -1 if there is none. */
static void read_all(struct stream *out, struct stream *err, int pidfd)
{
	static struct stream none = { .from = -1, .to = -1 };

	err = err ? err : &none;
	while (out->from >= 0 || err->from >= 0) {
		struct pollfd fds[3] = { { out->from, POLLIN, 0 },
			                 { err->from, POLLIN, 0 },
			                 { pidfd, POLLIN, 0 } };

		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[0].revents)
			stream_read(out);
		if (fds[1].revents)
			stream_read(err);
		if (fds[2].revents && !fds[0].revents && !fds[1].revents)
			break;
	}
	close_end(&out->from);
	close_end(&err->from);
}

static int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* The arguments behind the command's name; to be freed. */
static char **vector_of(const char *const *arguments)
{
	size_t n = 0;
	char **argv;

	while (arguments[n])
		n++;
	argv = malloc((n + 2) * sizeof(*argv));
	if (!argv)
		return NULL;
	argv[0] = (char *)"umbel";
	memcpy(argv + 1, arguments, (n + 1) * sizeof(*argv));
	return argv;
}

/* Signals are as for any program, whatever the test does with them. */
static int start(const char *const *arguments, const struct stream *out, const struct stream *err,
                 pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char **argv = vector_of(arguments);
	sigset_t none, all;
	int ret;

	if (!argv)
		return ENOMEM;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	ret = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&actions, out->to, STDOUT_FILENO);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&actions, err->to, STDERR_FILENO);
	if (!ret)
		ret = posix_spawnp(pid, "umbel", &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	free(argv);
	return ret;
}

/* Its status; -1 with errno. */
static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			return -1;
	return status;
}

/* Runs it up to its end. 0 or an errno, with the reason. */
static int run(const char *const *arguments, struct stream *out, struct stream *err)
{
	pid_t pid;
	int ret = start(arguments, out, err, &pid), pidfd;

	if (ret) {
		umbel_set_reason("cannot run umbel: %s", strerror(ret));
		return ret;
	}
	close_end(&out->to);
	close_end(&err->to);
	pidfd = pidfd_of(pid);
	read_all(out, err, pidfd);
	close_end(&pidfd);
	ret = wait_for(pid);
	if (ret < 0) {
		ret = errno;
		umbel_set_reason("cannot wait for umbel: %s", strerror(ret));
		return ret;
	}
	return ret ? EPROTO : 0;
}

/* Keeps the command's line about its error, without the newline. */
static void keep_reason(const char *printed)
{
	umbel_set_reason("%.*s", (int)strcspn(printed, "\n"), printed);
	if (!*reason)
		umbel_set_reason("umbel has failed and does not say why");
}

char *umbel_command(const char *const *arguments)
{
	struct stream out, err;
	char *text, *errors;
	int ret;

	umbel_set_reason("%s", "");
	ret = stream_open(&out) ? errno : 0;
	if (stream_open(&err) && !ret)
		ret = errno;
	if (ret)
		umbel_set_reason("cannot read from umbel: %s", strerror(ret));
	else
		ret = run(arguments, &out, &err);
	text = stream_close(&out);
	errors = stream_close(&err);
	if (ret == EPROTO && !*reason)
		keep_reason(errors ? errors : "");
	if (!ret && !text) {
		ret = ENOMEM;
		umbel_set_reason("no memory for what umbel prints");
	}
	free(errors);
	if (!ret)
		return text;
	free(text);
	errno = ret;
	return NULL;
}

/* ---- in the background ---- */

struct umbel_running {
	pid_t pid;
	struct stream printed; /* on both descriptors */
};

/* The last line that it has printed. */
static void keep_last_reason(const char *printed)
{
	size_t n = strlen(printed);

	while (n && printed[n - 1] == '\n')
		n--;
	while (n && printed[n - 1] != '\n')
		n--;
	keep_reason(printed + n);
}

/* Up to the sign, or its end. Whether it has come. */
static bool read_sign(struct stream *s, const char *sign)
{
	while (s->from >= 0) {
		stream_read(s);
		if (!fflush(s->into) && s->text && strstr(s->text, sign))
			return true;
	}
	return false;
}

/* Frees it. Returns the text that it has printed; NULL with errno and a reason. */
static char *finish(struct umbel_running *r, bool wanted)
{
	int status, error, pidfd = pidfd_of(r->pid);
	char *text;

	read_all(&r->printed, NULL, pidfd);
	close_end(&pidfd);
	status = wait_for(r->pid);
	error = status < 0 ? errno : status || !wanted ? EPROTO : 0;
	text = stream_close(&r->printed);
	free(r);
	if (!error && text)
		return text;
	if (!error) {
		error = ENOMEM;
		umbel_set_reason("no memory for what umbel prints");
	} else if (error == EPROTO) {
		keep_last_reason(text ? text : "");
	} else {
		umbel_set_reason("cannot wait for umbel: %s", strerror(error));
	}
	free(text);
	errno = error;
	return NULL;
}

struct umbel_running *umbel_command_begin(const char *const *arguments, const char *sign)
{
	struct umbel_running *r = malloc(sizeof(*r));
	int ret;

	umbel_set_reason("%s", "");
	if (!r) {
		umbel_set_reason("no memory for what umbel prints");
		return NULL;
	}
	ret = stream_open(&r->printed) ? errno : 0;
	if (!ret)
		ret = start(arguments, &r->printed, &r->printed, &r->pid);
	if (ret) {
		umbel_set_reason("cannot run umbel: %s", strerror(ret));
		free(stream_close(&r->printed));
		free(r);
		errno = ret;
		return NULL;
	}
	close_end(&r->printed.to);
	if (read_sign(&r->printed, sign))
		return r;
	free(finish(r, false));
	return NULL;
}

char *umbel_command_end(struct umbel_running *r)
{
	umbel_set_reason("%s", "");
	kill(r->pid, SIGINT);
	return finish(r, true);
}
