/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of programs, for views of processes.
 */
#ifndef DAEMON_PROGRAM_H
#define DAEMON_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#define DAEMON_PROGRAM 32 /* a program's name, with the end */

/* The name of a process, as ps(1) has it. False: it cannot be had. */
bool daemon_program_name(pid_t pid, char name[static DAEMON_PROGRAM]);

#endif
