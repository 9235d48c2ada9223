/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that the dynamic linker does not preload into: for the log.
 */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

/* Says in the log that the program, by a name as of execvp(3), will see no RDMA devices in /sys and
 * /dev, if that is so: it is static, or runs with another user's rights. */
void cli_program_explain(const char *name);

#endif
