/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Coming events, by time. Of events that are due at the same time, the one that was added first
 * comes first. So the same simulation has the same course on every machine. Not thread-safe.
 */
#ifndef SIMULATE_EVENTS_H
#define SIMULATE_EVENTS_H

#include <stdint.h>

struct simulate_event {
	uint64_t at_ps;
	uint64_t number; /* simulate_events_add() */
	uint32_t what;
	uint16_t blocks;
	uint8_t kind, lane;
};

struct simulate_events {
	struct simulate_event *heap;
	uint32_t n, room;
	uint64_t added;
};

/* 0 or -ENOMEM. */
int simulate_events_add(struct simulate_events *e, const struct simulate_event *event);

/* The first one, which is taken out; there must be one. */
struct simulate_event simulate_events_take(struct simulate_events *e);

void simulate_events_fini(struct simulate_events *e);

#endif
