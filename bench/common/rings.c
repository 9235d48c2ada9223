/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bare rings to many receivers: see rings.h.
 */
#include "common/util.h"
#include "common/rings.h"

#define LINE  64
#define AHEAD 8 /* slots that are being fetched while one is written */

/* The state is odd while the slot is claimed. */
struct slot {
	_Alignas(LINE) _Atomic uint64_t state;
	char header[LINE - sizeof(uint64_t)];
	char data[LINE];
};

struct bench_rings {
	unsigned n;
	uint32_t bytes, mask;
	bool in_slot;   /* the message is */
	char *payload;  /* else it is here, in a place for each position */
	uint32_t sent;  /* the sender's */
	uint32_t taken; /* the receiver's */
	char *message;  /* what is sent */
	char *buffer;   /* where it is taken to */
	struct slot slot[];
};

struct bench_rings *bench_rings_new(unsigned n, uint32_t bytes, uint32_t depth)
{
	struct bench_rings *r = bench_alloc(sizeof(*r) + (size_t)n * depth * sizeof(*r->slot), 1);

	r->n = n;
	r->bytes = bytes;
	r->mask = depth - 1;
	r->in_slot = bytes <= LINE;
	r->payload = bench_alloc((size_t)depth * bytes, 1);
	r->message = bench_alloc(bytes + LINE, 0);
	r->buffer = bench_alloc(bytes + LINE, 0);
	return r;
}

static struct slot *slot_of(struct bench_rings *r, unsigned ring, uint32_t position)
{
	return &r->slot[(size_t)ring * (r->mask + 1) + (position & r->mask)];
}

static char *payload_of(struct bench_rings *r, uint32_t position)
{
	return r->payload + (size_t)(position & r->mask) * r->bytes;
}

/* Fetches the slot that is written AHEAD slots after that of ring @i, be it the next message's. */
static void fetch(struct bench_rings *r, unsigned i, bool is_last)
{
	const unsigned next = i + AHEAD;
	struct slot *s;

	if (next >= r->n && is_last)
		return;
	s = slot_of(r, next % r->n, r->sent + next / r->n);
	__builtin_prefetch(s, 1);
	if (r->in_slot)
		__builtin_prefetch(s->data, 1);
}

static void send_to(struct bench_rings *r, unsigned ring)
{
	struct slot *s = slot_of(r, ring, r->sent);
	uint64_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
	const uint64_t claimed = state | 1;

	atomic_compare_exchange_strong_explicit(&s->state, &state, claimed, memory_order_acquire,
	                                        memory_order_relaxed);
	memcpy(s->header, r->message, sizeof(s->header));
	if (r->in_slot)
		memcpy(s->data, r->message, sizeof(s->data));
	state = claimed;
	atomic_compare_exchange_strong_explicit(&s->state, &state, claimed + 1,
	                                        memory_order_seq_cst, memory_order_relaxed);
}

void bench_rings_send(struct bench_rings *r, unsigned messages)
{
	for (; messages; messages--, r->sent++) {
		if (!r->in_slot)
			memcpy(payload_of(r, r->sent), r->message, r->bytes);
		for (unsigned i = 0; i < r->n; i++) {
			fetch(r, i, messages == 1);
			send_to(r, i);
		}
	}
}

void bench_rings_take(struct bench_rings *r, unsigned messages)
{
	for (; messages; messages--, r->taken++)
		for (unsigned i = 0; i < r->n; i++) {
			struct slot *s = slot_of(r, i, r->taken);
			const char *from = r->in_slot ? s->data : payload_of(r, r->taken);

			/* acquire: pairs with the publishing in send_to() */
			bench_must(!(atomic_load_explicit(&s->state, memory_order_acquire) & 1),
			           "a slot that is not published");
			memcpy(r->buffer, from, r->bytes);
			/* as Umbel's receivers, for processors that fetch no line that others have
			 * a copy of */
			*(volatile char *)s->header = 0;
			if (r->in_slot)
				*(volatile char *)s->data = 0;
		}
}
