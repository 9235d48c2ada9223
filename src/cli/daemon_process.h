/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon as a process that a command starts, waits for and ends. `umbel up` starts it
 * and leaves it alone. `umbel run` owns it: the daemon ends when a pipe is closed that only
 * `umbel run` holds open, and so it ends with its owner, however that ends.
 */
#ifndef CLI_DAEMON_PROCESS_H
#define CLI_DAEMON_PROCESS_H

#include <sys/types.h>

#include "cli/fabric_options.h"

struct cli_daemon_process {
	pid_t pid;
	int life_fd; /* closing it ends the daemon; -1 when it is not owned */
	bool stuck;  /* it had to be killed to end */
};

struct cli_daemon_process_start {
	const struct cli_fabric_options *fabric;
	const char *owned_dir; /* NULL: not owned. The daemon removes it at its end */
	int interrupt_fd;      /* when it becomes readable, starting is given up; -1: none */
};

/*
 * Starts the daemon of a fabric, detached from the terminal and logging to RUNTIME/NAME/log,
 * and waits until it serves. 0, or CLI_FAILED: nothing is left running, and the reason is
 * printed unless it was interrupted.
 */
int cli_daemon_process_start(struct cli_daemon_process *m,
                             const struct cli_daemon_process_start *how);

/*
 * Ends an owned daemon and waits for it; kills it if it does not end. Returns its wait status.
 */
int cli_daemon_process_stop(struct cli_daemon_process *m);

/* Waits until the process behind @pidfd is gone. 0, or -ETIMEDOUT after @ms. */
int cli_wait_gone(int pidfd, int ms);

/* Prints the last lines of fabric @name's log to standard error. */
void cli_daemon_process_print_log(const char *name);

/* Removes the log, which a daemon leaves behind when it ends, unless the name is in use again. */
void cli_daemon_process_remove_log(const char *name);

#endif
