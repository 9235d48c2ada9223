/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text form of the views of `umbel show`. The input is the daemon's JSON; values that it lacks
 * are shown as '-'.
 */
#ifndef CLI_VIEWS_H
#define CLI_VIEWS_H

#include <stdbool.h>

struct json_object;

struct cli_view {
	const char *what;
	bool interfaces; /* those of the hosts are part of it: cli/show/interfaces.h */
	/* Prints to standard output. 0 or CLI_FAILED. */
	int (*print)(struct json_object *reply);
};

/* The view of @what; NULL if there is none. */
const struct cli_view *cli_view_find(const char *what);

/* views_programs.c */
int cli_views_qps(struct json_object *qps);
int cli_views_connections(struct json_object *connections);
int cli_views_processes(struct json_object *processes);
int cli_views_mrs(struct json_object *mrs);

#endif
