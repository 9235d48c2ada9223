/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pictures of `umbel show`: of a topology, of a group's tree, of a path. Single-threaded.
 */
#ifndef CLI_SHOW_PICTURE_H
#define CLI_SHOW_PICTURE_H

#include <stdbool.h>

struct cli_command;
struct cli_list;
struct control_client;

/* The request for a picture. */
struct cli_show_picture {
	bool svg, png, dot;
	const char *output; /* NULL: standard output */
	long most;          /* boxes and lines before equal ones fold; 0: the default */
};

static inline bool cli_wants_picture(const struct cli_show_picture *s)
{
	return s->svg || s->png || s->dot;
}

/* Checks the words of the command line, "topology", "group MGID" or "path A B", and the options. 0
 * or CLI_USAGE. */
int cli_show_picture_check(const struct cli_command *self, const struct cli_show_picture *s,
                           const struct cli_list *words);

/* Draws it; @routes: lines are as wide as they carry routes, not as bytes have been counted. 0,
 * CLI_FAILED or CLI_USAGE. */
int cli_show_picture(const struct cli_show_picture *s, struct control_client *client,
                     const char *fabric, const struct cli_list *words, bool routes);

#endif
