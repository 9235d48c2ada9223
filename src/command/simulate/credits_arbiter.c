/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which lane of a link sends next, by arbitration tables: see credits.h. As in InfiniBand's
 * specification, volume 1, section 7.6.9: a table has its lanes send one after the other, each
 * until its weight is used up, which the last packet may exceed, or until it has nothing to send.
 * The rest of a weight is lost. The table of high priority goes first, until its limit is reached;
 * then the other one may send a packet.
 */
#include <errno.h>
#include <stdlib.h>

#include "simulate/credits.h"

#define LIMIT_BLOCKS (4096 / CREDITS_BLOCK)

static uint32_t next_bytes(const struct credits *c, uint32_t link, unsigned lane)
{
	return c->packet[c->lane[link][lane].waiting.first].bytes;
}

static bool can_send(const struct credits *c, uint32_t link, unsigned lane)
{
	return lane < CREDITS_LANES && c->lane[link][lane].waiting.first != CREDITS_NONE &&
	       credits_blocks(next_bytes(c, link, lane)) <= c->lane[link][lane].credits;
}

/* Moves @turn on to an entry that may send. False: there is none; @turn is nowhere. */
static bool find(const struct credits *c, uint32_t link, const struct credits_table *t,
                 struct credits_turn *turn)
{
	for (unsigned i = 0; t->n && i <= t->n; i++) {
		if (turn->left > 0 && can_send(c, link, t->share[turn->at].lane))
			return true;
		turn->at = (turn->at + 1) % t->n;
		turn->left = t->share[turn->at].weight;
	}
	return false;
}

static int32_t limit_of(const struct credits_arbitration *a)
{
	return a->limit ? a->limit * LIMIT_BLOCKS : 1;
}

/* Counts the bytes of a lane that are sent while another lane could have sent. */
static void note_shared(struct credits *c, uint32_t link, unsigned lane)
{
	for (unsigned i = 0; i < CREDITS_LANES; i++)
		if (i != lane && can_send(c, link, i)) {
			c->arbiter[link].shared[lane] += next_bytes(c, link, lane);
			return;
		}
}

unsigned credits_arbitrate(struct credits *c, uint32_t link)
{
	const struct credits_arbitration *a = c->arbitration;
	struct credits_arbiter *s = &c->arbiter[link];
	struct credits_turn high = s->high, low = s->low;
	bool is_high = find(c, link, &a->high, &high), is_low;
	int32_t blocks;
	unsigned lane;

	if (!is_high || s->high_left <= 0) {
		is_low = find(c, link, &a->low, &low);
		if (!is_high && !is_low)
			return CREDITS_LANES;
		s->high_left = limit_of(a);
		is_high = !is_low;
	}
	lane = is_high ? a->high.share[high.at].lane : a->low.share[low.at].lane;
	blocks = (int32_t)credits_blocks(next_bytes(c, link, lane));
	if (is_high) {
		s->high = (struct credits_turn){ high.at, high.left - blocks };
		s->high_left -= a->limit == CREDITS_NO_LIMIT ? 0 : blocks;
	} else {
		s->low = (struct credits_turn){ low.at, low.left - blocks };
	}
	note_shared(c, link, lane);
	return lane;
}

int credits_arbiters_init(struct credits *c)
{
	const struct credits_arbitration *a = c->arbitration;

	c->arbiter = calloc((size_t)c->n_links + 1, sizeof(*c->arbiter));
	if (!c->arbiter)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_links; i++)
		c->arbiter[i] = (struct credits_arbiter){ .high = { 0, a->high.share[0].weight },
			                                  .low = { 0, a->low.share[0].weight },
			                                  .high_left = limit_of(a) };
	return 0;
}

static void mark_served(const struct credits_table *t, bool served[static CREDITS_LANES])
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->share[i].weight && t->share[i].lane < CREDITS_LANES)
			served[t->share[i].lane] = true;
}

unsigned credits_unserved(const struct credits *c)
{
	bool served[CREDITS_LANES] = { false };

	if (!c->arbitration)
		return CREDITS_LANES;
	mark_served(&c->arbitration->high, served);
	mark_served(&c->arbitration->low, served);
	for (uint32_t i = 0; i < c->n_hops; i++)
		if (!served[c->hop[i].lane])
			return c->hop[i].lane;
	return CREDITS_LANES;
}
