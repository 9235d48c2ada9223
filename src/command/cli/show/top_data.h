/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data that `umbel top` shows: views of the daemon, as rows with columns, and rates, which are
 * computed from two samples of a view. Nothing of the screen. A sample is used by one thread at a
 * time, and so is the history of a view.
 */
#ifndef CLI_TOP_DATA_H
#define CLI_TOP_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct control_client;
struct json_object;

#define CLI_TOP_COLUMNS 14

enum cli_top_kind {
	CLI_TOP_TEXT,
	CLI_TOP_NUMBER, /* as it is */
	CLI_TOP_RATE,   /* by which it grows in a second */
};

struct cli_top_column {
	const char *title, *key;
	enum cli_top_kind kind;
	unsigned width;
	bool alarms; /* a number that is not 0 is bad news */
};

struct cli_top_view {
	const char *name;
	const char *what;  /* the daemon's view */
	const char *id[3]; /* keys of texts that tell a row from others */
	/* Gives rows what columns want and the daemon's view does not have. */
	void (*prepare)(struct json_object *rows, struct json_object *more);
	const char *more; /* the daemon's view that @more is; NULL: none */
	unsigned sort;    /* the column that it is sorted by at first */
	unsigned stretch; /* the column that has what room is left */
	struct cli_top_column columns[CLI_TOP_COLUMNS]; /* up to one without title */
};

#define CLI_TOP_VIEWS 5
extern const struct cli_top_view cli_top_views[CLI_TOP_VIEWS];

unsigned cli_top_n_columns(const struct cli_top_view *view);

/* The index of the view of this name; -1: there is none. */
int cli_top_find(const char *name);

struct cli_top_row {
	struct json_object *o;
	double number[CLI_TOP_COLUMNS]; /* NAN: not known */
};

struct cli_top_sample {
	const struct cli_top_view *view;
	struct json_object *root, *status; /* status: the daemon's view of that name; or NULL */
	struct cli_top_row *row;
	size_t n;
};

/* The values of a view at its last sample. All zero: there was none. */
struct cli_top_history {
	struct base_hash known; /* struct cli_top_known, by ID */
	uint64_t at_ns;
};

/*
 * Rows of @rows, an array, which becomes the sample's; @more as in the view. Rates are what has
 * come since the sample that @history knows; it knows this one then. NULL: no memory.
 */
struct cli_top_sample *cli_top_sample_new(const struct cli_top_view *view, struct json_object *rows,
                                          struct json_object *more, struct cli_top_history *history,
                                          uint64_t now_ns);
void cli_top_sample_free(struct cli_top_sample *s);
void cli_top_history_fini(struct cli_top_history *h);

/* Asks the daemon. @texts: its view "loss_texts", asked for the first time; the caller puts it. 0
 * or -errno. */
int cli_top_sample_take(struct control_client *client, const struct cli_top_view *view,
                        struct cli_top_history *history, struct json_object **texts,
                        struct cli_top_sample **out);

/* How rows are chosen and ordered. */
struct cli_top_order {
	unsigned column;
	bool reverse;       /* numbers: the smallest first; texts: the last */
	const char *filter; /* "": all rows; else rows with a cell that contains this text */
};

/* The numbers of the rows that fit, in their order: @which has room for all. How many. */
size_t cli_top_order(const struct cli_top_sample *s, const struct cli_top_order *order,
                     uint32_t *which);

#define CLI_TOP_CELL 64

/* A cell as text: "1.2M", "-" if it is not known. */
const char *cli_top_cell(const struct cli_top_sample *s, const struct cli_top_row *row,
                         unsigned column, char text[static CLI_TOP_CELL]);

#endif
