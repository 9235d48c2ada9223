/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command of `umbel`: how it describes itself to main.c, what it returns, and how it complains
 * about its arguments. Single-threaded. A function of src/command/cli that fails has printed its
 * one line to standard error before it returns.
 *
 * A new command is src/command/cli/ROOM/NAME.c, which defines `const struct cli_command cli_NAME`,
 * its test, a line in the table of main.c, and its page in man/.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/base/exit.h"

struct cli_option;

/* One command. */
struct cli_command {
	const char *name;
	const char *summary;  /* NULL: not listed */
	const char *help;     /* what it says before the options */
	const char *help_end; /* and behind them; NULL: nothing */
	const struct cli_option *options;
	size_t bytes;         /* of the struct that the options are stored in */
	const void *defaults; /* of such a struct; NULL: all zero */
	/* A word among the options. 0 or the exit status. NULL: at the first one the options end.
	 */
	int (*word)(const struct cli_command *self, void *options, const char *word);
	bool has_command;    /* the options end at "--", and a command follows */
	bool runs_words;     /* the first word is a host, and a command follows */
	bool passes_on;      /* the options end at one that is not in the table */
	const char *ignored; /* letters of others that are passed over, as getopt() has them */
	/* Does it, with the words behind the options. Returns the exit status. */
	int (*execute)(const struct cli_command *self, void *options, int argc, char **argv);
};

/* The rows and the struct of a command's options. */
#define CLI_OPTIONS(rows, type) .options = (rows), .bytes = sizeof(type)

/* "umbel CMD: MESSAGE; see umbel CMD --help". Returns CLI_USAGE. */
int cli_usage_error(const struct cli_command *cmd, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* The index of the "--" that ends the options of `exec` and `run`, or @argc. */
int cli_find_dashes(int argc, char **argv);

/* Says that @path (NULL: "-") cannot be read or written, as @verb says, and why (errno). Returns
 * CLI_FAILED. */
int cli_cannot(const char *verb, const char *path);

/* Says that there is no memory. Returns CLI_FAILED. */
int cli_no_memory(void);

/* Says that standard output could not be written, and why (errno). Returns CLI_FAILED. */
int cli_output_failed(void);

/* Flushes standard output. @status, or CLI_FAILED if what was printed did not get out. */
int cli_finish(int status);

#endif
