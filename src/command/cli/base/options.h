/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of commands. An option is declared once, as a row of its command's table: the help prints
 * the rows, and the command line is read by them. Single-threaded.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_command;
struct cli_option;

/* The values of an option that may be given more than once. The texts are not copied. */
struct cli_list {
	const char **at;
	unsigned n;
};

/* An option on the command line, with its value. */
struct cli_value {
	const struct cli_command *cmd;
	const struct cli_option *option;
	const char *text; /* NULL: it takes none */
};

/*
 * A row. Its line in the help says the letter, the name and whether there is a value:
 * "  -n, --name NAME   the fabric\n" has all three. "      --json        as JSON\n" has no letter,
 * and no value, as two blanks follow the name; "--checked[=MODE]" has one that may be left out. A
 * table ends with the row of --help, or with one that is all zero.
 */
struct cli_option {
	const char *line;
	/* without a line: the rows of this table stand here, and their struct is at @offset */
	const struct cli_option *more;
	/* Takes the value. @to: the member of the command's struct that is at @offset. 0, or the
	 * exit status. NULL in the last row. */
	int (*store)(const struct cli_value *v, void *to);
	size_t offset;
	long min, max;     /* of a number */
	const char *wrong; /* of a number: the text behind "'VALUE'" if it is none */
	size_t given;      /* not 0: a struct cli_list at this offset gets the option as given */
};

/* How a row goes on behind its line: the member of the command's struct that gets the value, a
 * bool, a const char *, a struct cli_list, a long. */
/* clang-format off */
#define CLI_STORE(how, type, member) .store = (how), .offset = offsetof(type, member)
/* The same; does not compile if the member is no @of. */
#define CLI_STORE_TYPE(how, type, member, of) .store = (how), \
	.offset = offsetof(type, member) + 0 * sizeof(_Generic(((type *)0)->member, of: 0))
#define CLI_FLAG(type, member) CLI_STORE_TYPE(cli_store_flag, type, member, bool)
#define CLI_TEXT(type, member) CLI_STORE_TYPE(cli_store_text, type, member, const char *)
#define CLI_LIST(type, member) CLI_STORE_TYPE(cli_store_list, type, member, struct cli_list)
#define CLI_NUMBER(type, member, least, most) \
	CLI_STORE_TYPE(cli_store_number, type, member, long), .min = (least), .max = (most)

/* Rows that many commands have. */
#define CLI_NAME_LINE "  -n, --name NAME   the fabric (default: $UMBEL_FABRIC, else 'default')\n"
#define CLI_NO_NUMBER "'%s' is no number from %ld to %ld"
#define CLI_HELP_ROW { .line = "  -h, --help        this text\n" }
/* clang-format on */

/* Adds a text, which is not copied. 0 or CLI_FAILED. */
int cli_list_add(struct cli_list *list, const char *text);

int cli_store_flag(const struct cli_value *v, void *to);
int cli_store_text(const struct cli_value *v, void *to);
int cli_store_list(const struct cli_value *v, void *to);
int cli_store_number(const struct cli_value *v, void *to);
int cli_store_unsigned(const struct cli_value *v, void *to); /* likewise, into an unsigned */

/* The rows and the struct of a command that has these two options alone. */
struct cli_name_options {
	const char *name;
};
extern const struct cli_option cli_name_options[];

void cli_print_help(const struct cli_command *cmd);

enum { CLI_HELPED = -1 };

/* Reads the options of @argv into @options, the command's struct. 0, and the words begin at optind;
 * CLI_HELPED after --help; or the exit status. */
int cli_read_options(const struct cli_command *cmd, int argc, char **argv, void *options);

#endif
