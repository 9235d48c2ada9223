/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of text with aligned columns, filled cell by cell and printed at once.
 * Columns that hold only numbers are aligned to the right. If memory runs out, the table
 * remembers it, and cli_table_print() returns the error; so filling needs no checks.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct cli_table;

/* @headers: @columns strings, which are copied; NULL: they are added as the first row. NULL if
 * there is no memory; the other functions accept NULL. */
struct cli_table *cli_table_new(unsigned columns, const char *const *headers);

/* Adds the next cell: from left to right, then the next row. */
void cli_table_add(struct cli_table *t, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Prints header and rows; a last row that is not full ends early. 0 or -ENOMEM. */
int cli_table_print(const struct cli_table *t, FILE *to, bool colour);

/* Prints it to standard output and frees it. 0 or CLI_FAILED. */
int cli_table_end(struct cli_table *t);

void cli_table_free(struct cli_table *t);

/* Whether standard output wants colour: it is a terminal, and neither TERM nor NO_COLOR object. */
bool cli_colour(void);

#endif
