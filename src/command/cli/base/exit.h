/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The exit status of `umbel`. Functions of src/command/cli that can fail return it, too.
 */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_DEADLOCK = 3,        /* umbel simulate --credits */
	CLI_FABRIC_FAILED = 125, /* umbel run: not the command failed but its fabric */
	CLI_CANNOT_RUN = 126,    /* as a shell has them */
	CLI_NOT_FOUND = 127,
};

#endif
