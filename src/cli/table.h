/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of text with aligned columns, filled cell by cell and printed at once.
 * Columns that hold only numbers are aligned to the right. What runs out of memory
 * is remembered and said by cli_table_print(), so that filling needs no checks.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct cli_table;

/* @headers: @columns strings that are copied. NULL if there is no memory, which the other
 * functions take. */
struct cli_table *cli_table_new(unsigned columns, const char *const *headers);

/* The next cell: left to right, then the next row. */
void cli_table_add(struct cli_table *t, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Header, rows; a row that is not full ends early. 0 or -ENOMEM. */
int cli_table_print(const struct cli_table *t, FILE *to, bool colour);

void cli_table_free(struct cli_table *t);

#endif
