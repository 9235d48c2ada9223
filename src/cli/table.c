/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Aligned tables: see table.h. Called by `umbel show` and `umbel status`.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"

struct cli_table {
	unsigned columns;
	char **cells; /* the first row is the header */
	size_t n_cells;
	bool failed;
};

static void append(struct cli_table *t, char *cell)
{
	char **grown;

	if (cell)
		grown = realloc(t->cells, (t->n_cells + 1) * sizeof(*grown));
	if (!cell || !grown) {
		free(cell);
		t->failed = true;
		return;
	}
	t->cells = grown;
	t->cells[t->n_cells++] = cell;
}

struct cli_table *cli_table_new(unsigned columns, const char *const *headers)
{
	struct cli_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->columns = columns;
	for (unsigned i = 0; i < columns; i++)
		append(t, strdup(headers[i]));
	return t;
}

void cli_table_add(struct cli_table *t, const char *format, ...)
{
	va_list args;
	char *cell;

	if (!t)
		return;
	va_start(args, format);
	if (vasprintf(&cell, format, args) < 0)
		cell = NULL;
	va_end(args);
	append(t, cell);
}

static int column_width(const struct cli_table *t, unsigned column)
{
	size_t width = 0;

	for (size_t i = column; i < t->n_cells; i += t->columns) {
		if (strlen(t->cells[i]) > width)
			width = strlen(t->cells[i]);
	}
	return (int)width;
}

static bool is_number(const char *cell)
{
	return *cell && (cell[strspn(cell, "0123456789.")] == '\0' || !strcmp(cell, "-"));
}

/* Whether all cells under the header are numbers. */
static bool column_is_numbers(const struct cli_table *t, unsigned column)
{
	for (size_t i = column + t->columns; i < t->n_cells; i += t->columns) {
		if (!is_number(t->cells[i]))
			return false;
	}
	return t->n_cells > t->columns;
}

static void print_cell(const struct cli_table *t, size_t i, FILE *to)
{
	unsigned column = i % t->columns;
	bool last = column == t->columns - 1 || i == t->n_cells - 1;

	if (column)
		fputs("  ", to);
	if (column_is_numbers(t, column))
		fprintf(to, "%*s", column_width(t, column), t->cells[i]);
	else if (last) /* no blanks at the end of a line */
		fputs(t->cells[i], to);
	else
		fprintf(to, "%-*s", column_width(t, column), t->cells[i]);
	if (last)
		fputc('\n', to);
}

int cli_table_print(const struct cli_table *t, FILE *to, bool colour)
{
	if (!t || t->failed)
		return -ENOMEM;
	if (colour)
		fputs("\033[1m", to);
	for (size_t i = 0; i < t->n_cells; i++) {
		if (i == t->columns && colour)
			fputs("\033[0m", to);
		print_cell(t, i, to);
	}
	if (colour && t->n_cells <= t->columns)
		fputs("\033[0m", to);
	return 0;
}

void cli_table_free(struct cli_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}
