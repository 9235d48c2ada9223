/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manager as a process that a command starts, waits for and ends. Used by `umbel
 * up`, which then leaves it alone, and by `umbel run`, which owns it: a pipe that only
 * `umbel run` holds open is its life, so it ends with its owner, however that ends.
 */
#ifndef CLI_MANAGER_H
#define CLI_MANAGER_H

#include <sys/types.h>

#include "cli/cli.h"

struct cli_manager {
	pid_t pid;
	int life_fd; /* closing it ends the manager; -1 when it is not owned */
	bool stuck;  /* it had to be killed to end */
};

struct cli_manager_start {
	const struct cli_fabric_options *fabric;
	const char *owned_dir; /* NULL, or: owned, and this is removed at its end */
	int interrupt_fd;      /* readable: give up. -1: never */
};

/*
 * Starts the manager of a fabric, detached from the terminal and logging to RUNTIME/NAME/log,
 * and waits until it serves. 0 or CLI_FAILED, and then nothing is left running; says why,
 * unless interrupted.
 */
int cli_manager_start(struct cli_manager *m, const struct cli_manager_start *how);

/*
 * Ends an owned manager and waits for it, killing it if it does not go. Returns its wait
 * status.
 */
int cli_manager_stop(struct cli_manager *m);

/* Waits until the process behind @pidfd is gone. 0, or -ETIMEDOUT after @ms. */
int cli_wait_gone(int pidfd, int ms);

/* Prints the last lines of fabric @name's log to standard error. */
void cli_manager_print_log(const char *name);

/* Removes what a manager leaves when it ends, its log, unless the name is in use again. */
void cli_manager_remove_log(const char *name);

#endif
