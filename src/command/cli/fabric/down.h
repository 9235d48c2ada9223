/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ending fabrics: `umbel down`, and what `umbel run` has of it. Single-threaded.
 */
#ifndef CLI_DOWN_H
#define CLI_DOWN_H

#include <stdbool.h>

struct cli_command;

/* `umbel down --all` */
struct cli_down_all {
	bool yes;                     /* nobody is asked */
	bool force;                   /* fabrics on which programs run, too */
	int (*end)(const char *name); /* ends one, and says so: 0, CLI_FAILED or CLI_USAGE */
};

/* Ends all fabrics of the user that may end: down_all.c. CLI_FAILED: one stays. */
int cli_down_all(const struct cli_command *self, const struct cli_down_all *how);

/* Ends all fabrics in the runtime directory but @except, and waits until they are down. It prints
 * what goes wrong, and nothing else. */
void cli_end_fabrics(const char *except);

#endif
