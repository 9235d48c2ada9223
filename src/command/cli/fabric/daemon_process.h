/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon as a process that a command starts, waits for and ends. `umbel up` starts it
 * and leaves it alone. A daemon in the private directory of an `umbel run` ends with that,
 * however it ends (control/owner.h).
 */
#ifndef CLI_DAEMON_PROCESS_H
#define CLI_DAEMON_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/fabric/fabric_options.h"

struct cli_daemon_process {
	pid_t pid;
	bool stuck; /* it had to be killed to end */
};

struct cli_daemon_process_start {
	const struct cli_fabric_options *fabric;
	const char *remove_dir; /* the daemon removes it at its end; NULL: none */
	int interrupt_fd;       /* when it becomes readable, starting is given up; -1: none */
};

/*
 * Starts the daemon of a fabric, detached from the terminal and logging to RUNTIME/NAME/log,
 * and waits until it serves. 0, or CLI_FAILED: nothing is left running, and the reason is
 * printed unless it was interrupted.
 */
int cli_daemon_process_start(struct cli_daemon_process *m,
                             const struct cli_daemon_process_start *how);

/*
 * Waits for the end of a daemon whose owner has ended, or that was told to end; kills it if it does
 * not. Returns its wait status.
 */
int cli_daemon_process_stop(struct cli_daemon_process *m);

/* Waits until daemon @pid, of @pidfd, is gone, or the kernel holds what is left of it. 0, or
 * -ETIMEDOUT after @ms. */
int cli_wait_gone(pid_t pid, int pidfd, int ms);

/* The state of a process, a letter as in proc(5), and the bytes of its address space. False: nobody
 * can tell, as in another PID namespace. */
bool cli_daemon_process_stat(pid_t pid, char *state, unsigned long *bytes);

/* Prints the last lines of fabric @name's log to standard error. */
void cli_daemon_process_print_log(const char *name);

/* Removes the log, which a daemon leaves behind when it ends, unless the name is in use again. */
void cli_daemon_process_remove_log(const char *name);

/*
 * Removes the files that a killed daemon has left, one by one: the user may have put other things
 * into the runtime directory. The daemon that holds the lock lives.
 */
void cli_daemon_process_remove_leftovers(const char *name);

#endif
