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
#include <unistd.h>

#include "base/log.h"
#include "cli/base/exit.h"
#include "cli/base/table.h"

struct column {
	size_t width;
	bool other; /* a cell under the header is no number */
};

struct cli_table {
	unsigned columns;
	struct column *column;
	char **cells; /* the first row is the header */
	size_t n_cells, room;
	bool failed;
};

static bool is_number(const char *cell)
{
	return *cell && (cell[strspn(cell, "0123456789.")] == '\0' || !strcmp(cell, "-"));
}

/* Cells are measured as they come: a table may have millions. */
static void measure(struct cli_table *t, const char *cell)
{
	struct column *c = &t->column[t->n_cells % t->columns];
	size_t width = strlen(cell);

	if (width > c->width)
		c->width = width;
	if (t->n_cells >= t->columns && !is_number(cell))
		c->other = true;
}

static void append(struct cli_table *t, char *cell)
{
	size_t room = t->n_cells < t->room ? t->room : 2 * t->room + 64;
	char **grown = t->cells;

	if (cell && room > t->room)
		grown = realloc(t->cells, room * sizeof(*grown));
	if (!cell || !grown) {
		free(cell);
		t->failed = true;
		return;
	}
	t->cells = grown;
	t->room = room;
	measure(t, cell);
	t->cells[t->n_cells++] = cell;
}

struct cli_table *cli_table_new(unsigned columns, const char *const *headers)
{
	struct cli_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->column = calloc(columns + 1, sizeof(*t->column));
	if (!t->column) {
		free(t);
		return NULL;
	}
	t->columns = columns;
	for (unsigned i = 0; headers && i < columns; i++)
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

static void print_cell(const struct cli_table *t, size_t i, FILE *to)
{
	unsigned column = i % t->columns;
	bool last = column == t->columns - 1 || i == t->n_cells - 1;
	bool numbers = !t->column[column].other && t->n_cells > t->columns;
	int width = (int)t->column[column].width;

	if (column)
		fputs("  ", to);
	if (numbers)
		fprintf(to, "%*s", width, t->cells[i]);
	else if (last) /* no blanks at the end of a line */
		fputs(t->cells[i], to);
	else
		fprintf(to, "%-*s", width, t->cells[i]);
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

int cli_table_end(struct cli_table *t)
{
	int ret = cli_table_print(t, stdout, cli_colour());

	if (ret)
		base_log("%s", strerror(-ret));
	cli_table_free(t);
	return ret ? CLI_FAILED : 0;
}

void cli_table_free(struct cli_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t->column);
	free(t);
}

bool cli_colour(void)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");

	if (!isatty(STDOUT_FILENO) || (no_colour && *no_colour))
		return false;
	return term && strcmp(term, "dumb");
}
