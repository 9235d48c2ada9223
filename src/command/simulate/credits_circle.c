/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links that wait for each other: see credits.h. Nothing happens any more, so a packet that waits
 * waits for room in a full buffer, whose first packet waits, too: a walk along them gets into a
 * circle.
 */
#include <errno.h>
#include <stdlib.h>

#include "simulate/credits.h"

/* The number of a lane of a link, from 0. */
static uint32_t number_of(const struct credits_hop *hop)
{
	return hop->link * CREDITS_LANES + hop->lane;
}

static struct credits_lane *lane_at(const struct credits *c, uint32_t number)
{
	return &c->lane[number / CREDITS_LANES][number % CREDITS_LANES];
}

/* For each lane: the packet at the lane's end that waits for room in another lane; CREDITS_NONE if
 * no packet does. */
static uint32_t *list_waiters(const struct credits *c)
{
	uint32_t n = c->n_links * CREDITS_LANES;
	uint32_t *waiter = malloc(((size_t)n + 1) * sizeof(*waiter));

	for (uint32_t i = 0; waiter && i < n; i++)
		waiter[i] = CREDITS_NONE;
	for (uint32_t i = 0; waiter && i < n; i++)
		for (uint32_t p = lane_at(c, i)->waiting.first; p != CREDITS_NONE;
		     p = c->packet[p].next) {
			uint32_t from = c->packet[p].from;

			if (from != CREDITS_NONE)
				waiter[number_of(&c->hop[c->packet[from].hop])] = p;
		}
	return waiter;
}

/* The number of the lane that the end of lane @number waits for. */
static uint32_t follow(const struct credits *c, const uint32_t *waiter, uint32_t number)
{
	return number_of(&c->hop[c->packet[waiter[number]].hop]);
}

static int note(struct credits *c, const uint32_t *waiter, uint32_t first)
{
	uint32_t at = first, n = 0;

	do {
		at = follow(c, waiter, at);
		n++;
	} while (at != first);
	c->circle = calloc(n, sizeof(*c->circle));
	if (!c->circle)
		return -ENOMEM;
	for (c->n_circle = 0; c->n_circle < n; at = follow(c, waiter, at))
		c->circle[c->n_circle++] =
		        (struct credits_wait){ .link = at / CREDITS_LANES,
			                       .lane = (uint8_t)(at % CREDITS_LANES),
			                       .message = c->packet[waiter[at]].message };
	return 0;
}

int credits_find_circle(struct credits *c)
{
	uint32_t n = c->n_links * CREDITS_LANES, at = 0, low;
	uint32_t *waiter = list_waiters(c);
	int ret;

	if (!waiter)
		return -ENOMEM;
	while (at < n && waiter[at] == CREDITS_NONE)
		at++;
	if (at == n) {
		free(waiter);
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) /* more steps than there are lanes end on a circle */
		at = follow(c, waiter, at);
	low = at; /* it begins with the first of its links */
	for (uint32_t i = follow(c, waiter, at); i != at; i = follow(c, waiter, i))
		low = i < low ? i : low;
	ret = note(c, waiter, low);
	free(waiter);
	return ret;
}
