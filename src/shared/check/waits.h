/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which links wait for which: the channel dependency graph. A packet that has come by a link holds
 * a buffer behind it until the next link has one for it, each link on the lane that it has there.
 * If no links wait for each other in a circle, packets cannot (Dally and Seitz, 1987). Links to and
 * from hosts are on no circle and are left out. Not thread-safe.
 */
#ifndef CHECK_WAITS_H
#define CHECK_WAITS_H

#include <errno.h>
#include <stdbool.h>

#include "check/net.h"

/* A lane of a link: channel * CHECK_LANES + lane. */
typedef uint32_t check_lane_t;

struct check_waits {
	const struct check_net *net;
	size_t *offset;            /* by channel: of its row in ->dep */
	size_t bytes;              /* of all rows */
	uint8_t *dep[CHECK_LANES]; /* by lane, in rows by the next port: the next lanes, bit by bit
	                            */
	uint32_t cause;            /* of what is added: a LID */
	/* a circle, if one is known, and for each of its dependencies a LID that has it */
	check_lane_t *circle;
	uint32_t *causes;
	uint32_t n_circle;
	uint64_t n_left; /* lanes of links that are on circles, or between two */
};

/* 0 or -ENOMEM; check_waits_fini() is due in any case. */
int check_waits_init(struct check_waits *w, const struct check_net *net);
void check_waits_fini(struct check_waits *w);

/* Makes room for links of @lane. 0 or -ENOMEM. */
int check_waits_open(struct check_waits *w, unsigned lane);

/* Forgets all dependencies. */
void check_waits_clear(struct check_waits *w);

/* If the dependency is on the circle, notes its cause. */
void check_waits_note(struct check_waits *w, uint32_t from, unsigned lane, uint32_t out,
                      unsigned next);

/* Channel @from, on @lane, waits for port @out of the switch that it leads to, on lane @next. 0 or
 * -ENOMEM. */
static inline int check_waits_add(struct check_waits *w, uint32_t from, unsigned lane, uint32_t out,
                                  unsigned next)
{
	if (!w->dep[lane] && check_waits_open(w, lane))
		return -ENOMEM;
	w->dep[lane][w->offset[from] + out] |= (uint8_t)(1u << next);
	if (w->n_circle)
		check_waits_note(w, from, lane, out, next);
	return 0;
}

/* Looks for a circle. 1: ->circle has it, a short one; 0: there is none; -ENOMEM. From then on
 * causes are noted of dependencies that are added, until check_waits_clear(). */
int check_waits_search(struct check_waits *w);

/* How many lanes of links are waited for, or wait. */
uint64_t check_waits_count(const struct check_waits *w);

#endif
