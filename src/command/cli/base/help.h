/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text of --help, within the width of a terminal. Single-threaded.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#define CLI_HELP_WIDTH 80

/*
 * Prints @text. A paragraph, or an entry ("  -n, --name NAME  what it is", with its further lines
 * indented to the same column), that has a line which is too long is filled anew; all else stays as
 * it is written.
 */
void cli_help_print(const char *text, FILE *to);

#endif
