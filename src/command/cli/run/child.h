/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command that runs as a child, and whose signals are ours: for `umbel run`, and for `umbel exec`
 * where something is to be done when it has ended. Single-threaded.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <signal.h>
#include <sys/types.h>

struct cli_child {
	int signal_fd; /* cli_signals_open() */
	int child_fd;  /* cli_signals_open_child() */
	pid_t pid;     /* 0: it was not started */
	int status;    /* as of waitpid() */
};

/* As fork(), with descriptors for cli_child_wait(). -1: it says why. */
pid_t cli_child_fork(struct cli_child *c);

/* Waits for it, passing signals on. Its exit status as a shell has it. */
int cli_child_wait(struct cli_child *c);

#endif
