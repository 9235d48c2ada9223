/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How each thing that `umbel show` shows looks as text. The input is the manager's JSON;
 * what is missing in it shows as '-'.
 */
#ifndef CLI_VIEWS_H
#define CLI_VIEWS_H

struct json_object;

struct cli_view {
	const char *what;
	/* Prints to standard output. 0 or CLI_FAILED. */
	int (*print)(struct json_object *answer);
};

/* NULL if there is no such thing to show. */
const struct cli_view *cli_view_find(const char *what);

#endif
