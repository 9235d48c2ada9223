/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The legend of `umbel show counters --explain`: what each counter that is not 0 means, and what to
 * do about it. The daemon has the texts.
 */
#ifndef CLI_LEGEND_H
#define CLI_LEGEND_H

#include <stdbool.h>

struct json_object;

/* An array of {"counter", "of", "text"}, to be put: for all that is not 0 in the arrays of
 * @counters. @texts: the daemon's view "counter_texts". */
struct json_object *cli_legend(struct json_object *counters, struct json_object *texts);

/* Whether @element, which counts, has all counters of @texts, a table of that view: two kinds of
 * ports may have one of the same name. */
bool cli_legend_fits(struct json_object *element, struct json_object *texts);

/* Prints it to standard output. */
void cli_legend_print(struct json_object *legend);

#endif
