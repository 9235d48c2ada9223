/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: packets that came before their turn, as one before them got lost or is late. They are
 * kept until it comes, so that the peer need not send them again: see packet_connection.h.
 *
 * Kept is a copy, in the process that received the packet. Whatever becomes of the copy, the peer
 * sends again the packets that are not acknowledged. So a process that has no room keeps nothing,
 * and the copies of a process that does not receive any more are of no use.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "hca/transport/packet_connection.h"

/* So far ahead packets are kept: as many as a requester of ours has under way. */
#define AHEAD_MOST 256
/* So many a port's receiver keeps, of all its queue pairs: 4 MiB, if they are as large as may be.
 */
#define KEPT_MOST 1024
/* A packet that has waited for longer makes room for others. */
#define KEPT_NS 100000000

struct hca_wire_copy *hca_wire_copy(const struct wire_roce_packet *p)
{
	struct hca_wire_copy *c = malloc(sizeof(*c) + p->payload_bytes);

	if (!c)
		return NULL;
	c->packet = *p;
	if (p->payload_bytes)
		memcpy(c->payload, p->payload, p->payload_bytes);
	c->packet.payload = c->payload;
	return c;
}

/* Where the half is: the PSN whose turn it is, and before it how often PSNs have come around. */
static uint64_t position_of(const struct hca_wire *w, enum hca_wire_half half)
{
	const struct shm_wire *s = w->shm;

	return half == HCA_WIRE_REQUESTER
	               ? (uint64_t)s->acked_rounds << WIRE_PSN_BITS | s->acked
	               : (uint64_t)s->in.expected_rounds << WIRE_PSN_BITS | s->in.expected;
}

/* It is kept no longer. */
static void take(struct hca_wire_copy *c)
{
	struct hca_wires *wires = c->wire->wires;

	TAILQ_REMOVE(&c->wire->ahead[c->half], c, entry);
	TAILQ_REMOVE(&wires->ahead, c, all);
	wires->n_ahead--;
}

static void forget(struct hca_wire_copy *c)
{
	take(c);
	free(c);
}

void hca_wire_forget_ahead(struct hca_wire *w)
{
	for (unsigned half = 0; half < HCA_WIRE_HALVES; half++)
		while (!TAILQ_EMPTY(&w->ahead[half]))
			forget(TAILQ_FIRST(&w->ahead[half]));
}

/* Whether there is room for one more, if need be instead of the oldest. */
static bool has_room(struct hca_wires *wires, uint64_t now)
{
	struct hca_wire_copy *oldest = TAILQ_FIRST(&wires->ahead);

	if (wires->n_ahead == KEPT_MOST && now - oldest->kept_ns > KEPT_NS)
		forget(oldest);
	return wires->n_ahead < KEPT_MOST;
}

/* The one behind which the packet at @position belongs; mostly it is the last one. NULL: before
 * all. */
static struct hca_wire_copy *find_before(struct hca_wire_ahead_list *list, uint64_t position)
{
	struct hca_wire_copy *c = TAILQ_LAST(list, hca_wire_ahead_list);

	while (c && c->position > position)
		c = TAILQ_PREV(c, hca_wire_ahead_list, entry);
	return c;
}

void hca_wire_keep_ahead(struct hca_wire *w, enum hca_wire_half half,
                         const struct wire_roce_packet *p)
{
	const uint64_t at = position_of(w, half), now = base_now_ns();
	const int32_t n = wire_psn_diff(p->h.bth.psn, (uint32_t)at & WIRE_PSN_MASK);
	struct hca_wire_copy *c, *last;

	if (!w->wires || n > AHEAD_MOST || !has_room(w->wires, now))
		return;
	hca_wire_first_ahead(w, half); /* forgets those that are of no use */
	last = find_before(&w->ahead[half], at + (uint32_t)n);
	if (last && last->position == at + (uint32_t)n)
		return;
	c = hca_wire_copy(p);
	if (!c)
		return;
	c->wire = w;
	c->half = half;
	c->position = at + (uint32_t)n;
	c->kept_ns = now;
	c->open = w->open;
	if (last)
		TAILQ_INSERT_AFTER(&w->ahead[half], last, c, entry);
	else
		TAILQ_INSERT_HEAD(&w->ahead[half], c, entry);
	TAILQ_INSERT_TAIL(&w->wires->ahead, c, all);
	w->wires->n_ahead++;
}

struct hca_wire_copy *hca_wire_first_ahead(struct hca_wire *w, enum hca_wire_half half)
{
	const uint64_t at = position_of(w, half);
	struct hca_wire_copy *c;

	while ((c = TAILQ_FIRST(&w->ahead[half])) != NULL &&
	       (c->open != w->open || c->position < at))
		forget(c);
	return c;
}

struct hca_wire_copy *hca_wire_take_ahead(struct hca_wire *w, enum hca_wire_half half)
{
	struct hca_wire_copy *c = hca_wire_first_ahead(w, half);

	if (!c || c->position != position_of(w, half))
		return NULL;
	take(c);
	return c;
}
