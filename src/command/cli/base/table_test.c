/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of table.c: what a table looks like.
 */
#include <harness.h>

#include "cli/base/table.h"

/* The text that the table prints; to be freed. */
static char *printed(struct cli_table *t, bool colour)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	assert_int_equal(cli_table_print(t, to, colour), 0);
	fclose(to);
	return text;
}

static struct cli_table *new_table(void)
{
	static const char *const headers[] = { "NAME", "N", "PEER" };

	return cli_table_new(3, headers);
}

static void add_row(struct cli_table *t, const char *name, const char *n, const char *peer)
{
	cli_table_add(t, "%s", name);
	cli_table_add(t, "%s", n);
	cli_table_add(t, "%s", peer);
}

static void check(struct cli_table *t, bool colour, const char *expected)
{
	char *text = printed(t, colour);

	assert_string_equal(text, expected);
	free(text);
	cli_table_free(t);
}

CASE(columns_are_as_wide_as_their_widest_cell)
{
	struct cli_table *t = new_table();

	add_row(t, "a", "x", "sw1");
	add_row(t, "longer", "xyz", "s");
	check(t, false,
	      "NAME    N    PEER\n"
	      "a       x    sw1\n"
	      "longer  xyz  s\n");
}

CASE(numbers_are_aligned_to_the_right)
{
	struct cli_table *t = new_table();

	add_row(t, "a", "7", "10");
	add_row(t, "b", "1000", "-");
	check(t, false,
	      "NAME     N  PEER\n"
	      "a        7    10\n"
	      "b     1000     -\n");
}

CASE(a_table_without_rows_is_its_header)
{
	check(new_table(), false, "NAME  N  PEER\n");
}

CASE(a_row_may_end_early)
{
	struct cli_table *t = new_table();

	cli_table_add(t, "%s", "a");
	check(t, false,
	      "NAME  N  PEER\n"
	      "a\n");
}

CASE(colour_is_for_the_header_alone)
{
	struct cli_table *t = new_table();

	add_row(t, "a", "b", "c");
	check(t, true,
	      "\033[1mNAME  N  PEER\n"
	      "\033[0ma     b  c\n");
	check(new_table(), true, "\033[1mNAME  N  PEER\n\033[0m");
}

CASE(no_memory_is_said_at_the_end)
{
	cli_table_add(NULL, "%s", "a");
	assert_int_equal(cli_table_print(NULL, stdout, false), -ENOMEM);
	cli_table_free(NULL);
}

/* If each cell looked at all the others, this would take days. */
CASE(a_table_may_have_a_million_cells)
{
	struct cli_table *t = new_table();
	char *text;

	for (unsigned i = 0; i < 350000; i++) {
		cli_table_add(t, "sw%u", i);
		cli_table_add(t, "%u", i);
		cli_table_add(t, "h%u", i);
	}
	text = printed(t, false);
	assert_non_null(strstr(text, "\nsw5            5  h5\n"));
	assert_non_null(strstr(text, "\nsw349999  349999  h349999\n"));
	free(text);
	cli_table_free(t);
}
