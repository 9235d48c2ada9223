/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals that are read from descriptors, for commands that have children to end first: run.c and
 * exec_all.c. Single-threaded.
 */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* From here on those that end a program are read from the descriptor that it returns, so that none
 * ends us before we have cleaned up. *@old: what was blocked before, for children. -1 after an
 * error. */
int cli_signals_open(sigset_t *old);

/* Likewise with all that mean something to a program which this one stands for, but for those of
 * faults, and of a terminal that stops both. */
int cli_signals_open_all(sigset_t *old);

/* The first SIGINT, SIGTERM or SIGHUP is @handler's, a second one ends the process. Not SIGHUP if
 * it is ignored, as by nohup. */
void cli_signals_catch(void (*handler)(int number));

/* The number of the next signal, or 0. @typed: it came from the terminal, which has sent it to all
 * of our process group. */
int cli_signals_next(int fd, bool *typed);

/* From here on a write without a reader fails with EPIPE and sends no SIGPIPE, and a child keeps
 * one that is sent to it until it has *@old again: one that were ignored until then would be
 * lost. */
void cli_signals_hold_pipe(void);

/* A descriptor that is readable when a child has ended or stopped: a pidfd may be denied. -1, and
 * errno. */
int cli_signals_open_child(void);
/* Reads what is there. */
void cli_signals_clear_child(int fd);

#endif
