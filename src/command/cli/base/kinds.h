/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links by kind: the names of both ends without their numbers, "leaf>spine". A table of what the
 * links of each kind carry, for `umbel show routes --load`, `umbel simulate` and `umbel check`.
 * Single-threaded.
 */
#ifndef CLI_KINDS_H
#define CLI_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

struct cli_kinds {
	struct base_hash by_name;
};

/* A link and what crosses it. */
struct cli_kinds_link {
	const char *from, *to; /* the names of its ends; to NULL: no link but a switch */
	uint64_t messages, lids;
};

/* Adds it. 0 or -ENOMEM; cli_kinds_fini() is due in any case. */
int cli_kinds_add(struct cli_kinds *k, const struct cli_kinds_link *link);
void cli_kinds_fini(struct cli_kinds *k);

/* A kind, for callers that print it otherwise. */
struct cli_kind {
	const char *name;
	uint64_t n, unused, max;
	double mean;
};

/* Calls @each for every kind, by name. 0 or -ENOMEM. */
int cli_kinds_each(const struct cli_kinds *k, void (*each)(void *arg, const struct cli_kind *kind),
                   void *arg);

/* Prints the table, @lids: with the numbers of LIDs. 0 or -ENOMEM. */
int cli_kinds_print(const struct cli_kinds *k, bool lids);

#endif
