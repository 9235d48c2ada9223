/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands whose programs are checked (src/client/checked): `umbel run --checked`, `umbel exec
 * --checked`. All processes of the command leave their reports in a folder; when it has ended, they
 * become one status. Single-threaded.
 */
#ifndef CLI_CHECKED_H
#define CLI_CHECKED_H

#include <limits.h>
#include <stdbool.h>

#include "cli/base/options.h"
#include "cli/run/junit.h"

#define CLI_CHECKED_ERRORS 99 /* exit status */

struct cli_checked {
	bool on, only_warns;
	const char *json, *suppressions, *card; /* NULL: not given */
	char dir[PATH_MAX];                     /* the folder; "": there is none */
	struct cli_junit *junit;
};

/* --checked and what goes with it. */
extern const struct cli_option cli_checked_rows[];

/* Programs are checked on this fabric: as if --checked had been given, if it was not and no command
 * around this one collects the reports. */
void cli_checked_by_fabric(struct cli_checked *c, const char *fabric);

/* If programs are to be checked: makes the folder, and the environment in which they are. @junit:
 * gets a case for each error. 0, or the exit status after saying what is wrong. */
int cli_checked_begin(struct cli_checked *c, struct cli_junit *junit);

/* The command has ended with @status: tells what was found, and returns the status that counts. */
int cli_checked_end(struct cli_checked *c, int status);

/* Runs the command as a child, and returns its status, or that of its errors. */
int cli_checked_exec(struct cli_checked *c, char **argv);

#endif
