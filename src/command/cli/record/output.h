/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where commands write that run until a signal ends them: a reader which has stopped does not keep
 * them from ending. Single-threaded.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* The FILE of a descriptor, which stays open, and where *@fd stays. NULL, and errno. */
FILE *cli_output_open(int *fd);

/* From here on a reader that takes nothing for a second is an error, ETIMEDOUT. For handlers of
 * signals, too. */
void cli_output_end(void);
bool cli_output_ends(void);

#endif
