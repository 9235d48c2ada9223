/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel exec --all`: a command on each host of a fabric.
 */
#ifndef CLI_EXEC_ALL_H
#define CLI_EXEC_ALL_H

#include <stdbool.h>

#define CLI_MOST_JOBS 256

struct cli_exec_all {
	const char *fabric;
	bool stay; /* on the network that umbel runs on */
	unsigned jobs;
	char **argv; /* the command */
};

/* Runs it. Returns the exit status: 0, or that of the first host where it fails. */
int cli_exec_all(const struct cli_exec_all *how);

#endif
