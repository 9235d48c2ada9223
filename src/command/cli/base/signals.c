/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals that are read from descriptors: see signals.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/signals.h"

static int open_set(const sigset_t *set, sigset_t *old)
{
	int fd;

	sigprocmask(SIG_BLOCK, set, old);
	signal(SIGCHLD, SIG_DFL); /* if it were ignored, there would be no exit status */
	fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		base_log("signalfd4() fails: %s; a container may have to allow it (seccomp)",
		         strerror(errno));
	return fd;
}

int cli_signals_open(sigset_t *old)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(&set, numbers[i]);
	return open_set(&set, old);
}

int cli_signals_open_all(sigset_t *old)
{
	static const int own[] = { SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGILL,
		                   SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,  SIGSEGV, SIGSYS };
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		sigdelset(&set, own[i]);
	return open_set(&set, old);
}

void cli_signals_catch(void (*handler)(int number))
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND };
	struct sigaction before;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i] != SIGHUP || sigaction(SIGHUP, NULL, &before) ||
		    before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

int cli_signals_next(int fd, bool *typed)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	*typed = info.ssi_code > 0;
	return (int)info.ssi_signo;
}

void cli_signals_hold_pipe(void)
{
	sigset_t pipe;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe, NULL);
}

int cli_signals_open_child(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

void cli_signals_clear_child(int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) > 0)
		;
}
