/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text of --help: see help.h.
 */
#include <stdbool.h>
#include <string.h>

#include "cli/base/help.h"

#define USAGE "Usage: "
#define HANG  4 /* how far the further lines of a usage are indented behind its begin */
#define LEAST                                                                                    \
	4 /* the indentation of further lines of a paragraph is that of its first one up to here \
	   */

/* Lines that belong together, as they stand in the text. */
struct block {
	const char *begin, *end;
	size_t longest;
	size_t head; /* columns of what an entry is about, and before it: kept as they are */
	bool is_entry;
	size_t indent; /* of lines behind the first one */
};

static size_t indent_of(const char *line)
{
	return strspn(line, " ");
}

static size_t length_of(const char *line)
{
	return strcspn(line, "\n");
}

static const char *next_line(const char *line)
{
	const char *end = line + length_of(line);

	return *end ? end + 1 : end;
}

/* Where the second column of an entry begins: behind two blanks, or one if its word is long. 0: it
 * is no entry. */
static size_t second_column(const char *line)
{
	const size_t n = length_of(line), from = indent_of(line);

	if (from < 2)
		return 0;
	for (size_t i = from; i + 2 < n; i++)
		if (line[i] == ' ' && line[i + 1] == ' ')
			return i + indent_of(line + i);
	return 0;
}

static bool is_usage(const char *line)
{
	return !strncmp(line, USAGE, strlen(USAGE)) ||
	       !strncmp(line, "       umbel ", strlen("       umbel "));
}

/* Whether the line goes on with what the block says. */
static bool goes_on(const struct block *b, const char *line)
{
	if (!length_of(line) || !length_of(b->begin) || is_usage(line) || is_usage(b->begin))
		return false;
	if (b->is_entry) /* further lines of an entry, which begin at its second column */
		return indent_of(line) == b->indent;
	return !indent_of(line) && !indent_of(b->begin);
}

/* The column of an entry whose word is so long that one blank follows: that of its next line. */
static size_t late_column(const char *line)
{
	const char *next = next_line(line);
	const size_t at = *next ? indent_of(next) : 0;

	if (indent_of(line) < 2 || at <= indent_of(line) + LEAST)
		return 0;
	return at;
}

static struct block block_at(const char *line)
{
	struct block b = { .begin = line, .end = next_line(line), .longest = length_of(line) };

	if (is_usage(line)) {
		b.indent = strlen(USAGE) + HANG;
		return b;
	}
	b.head = second_column(line);
	b.indent = b.head ? b.head : indent_of(line);
	if (late_column(line) && line[indent_of(line)] == '-')
		b.indent = late_column(line);
	b.is_entry = b.indent > indent_of(line);
	while (*b.end && goes_on(&b, b.end)) {
		if (length_of(b.end) > b.longest)
			b.longest = length_of(b.end);
		b.end = next_line(b.end);
	}
	return b;
}

/* How long the word at @at is, with a word behind it that must not begin a line: "--option" there
 * would look as if it were one of the command's. */
static size_t room_for(const char *at, const char *end)
{
	const size_t word = strcspn(at, " \n"), gap = strspn(at + word, " \n");

	if (at + word + gap >= end || at[word + gap] != '-')
		return word;
	return word + 1 + strcspn(at + word + gap, " \n");
}

/* Prints the words of the block, as many in a line as fit. The text before the second column stays
 * as it is. */
static void fill(const struct block *b, FILE *to)
{
	size_t column = b->head ? b->head : indent_of(b->begin), word;
	bool first = true;

	fprintf(to, "%.*s", (int)column, b->begin);
	for (const char *at = b->begin + column; at < b->end; at += word) {
		at += strspn(at, " \n");
		word = strcspn(at, " \n");
		if (at >= b->end || !word)
			break;
		if (!first && column + 1 + room_for(at, b->end) > CLI_HELP_WIDTH) {
			fprintf(to, "\n%*s", (int)b->indent, "");
			column = b->indent;
		} else if (!first) {
			fputc(' ', to);
			column++;
		}
		fprintf(to, "%.*s", (int)word, at);
		column += word;
		first = false;
	}
	fputc('\n', to);
}

void cli_help_print(const char *text, FILE *to)
{
	while (*text) {
		const struct block b = block_at(text);

		if (b.longest > CLI_HELP_WIDTH)
			fill(&b, to);
		else
			fprintf(to, "%.*s", (int)(b.end - b.begin), b.begin);
		text = b.end;
	}
}
