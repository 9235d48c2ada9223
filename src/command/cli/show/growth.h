/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * By how much counters have grown since they were asked for last: for `umbel show counters
 * --watch`. Single-threaded.
 */
#ifndef CLI_GROWTH_H
#define CLI_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

struct cli_table;
struct json_object;

/* The counters of the last time. All zero: there was none. */
struct cli_growth {
	struct json_object *before; /* elements by what they are of */
	uint64_t at_ns;
};

/* Whether the field of an element says what it is that counts: all other integers are counters. */
bool cli_growth_is_identity(const char *key, struct json_object *value);

/*
 * Adds to the view "counters" the "seconds" since the last time, and to each element that was there
 * then what its counters "grew" by, and by how much "per_second". A counter that is less than it
 * was has begun anew, and nobody knows when: it is in neither. Remembers the counters for the next
 * time.
 */
void cli_growth_add(struct cli_growth *g, struct json_object *counters, uint64_t now_ns);
void cli_growth_fini(struct cli_growth *g);

/* A cell: the count, and by what it grew if it did: "120 +20 10.0/s". */
void cli_growth_add_cell(struct cli_table *t, struct json_object *element, const char *key);

#endif
