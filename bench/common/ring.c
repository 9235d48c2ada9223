/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The floor for messages: a raw single-producer, single-consumer ring in memory that two
 * processes share, one for each direction. A slot is the payload and, behind it, a
 * sequence number: the receiver waits on the line that is written last, and disturbs the
 * sender in no other. No check, no credit that can be missing, no death: nothing that is
 * not needed to move bytes.
 */
#include "common/util.h"
#include "common/link.h"

/* At the end of a slot. */
struct mark {
	uint32_t bytes;
	_Atomic uint32_t ready; /* the position that lies here, plus one */
};

struct way {
	_Alignas(64) _Atomic uint32_t consumed;
	_Alignas(64) char slots[];
};

struct ring {
	uint32_t bytes, stride, mask;
	/* as producer */
	struct way *out;
	uint32_t sent, room_until;
	const char *message;
	/* as consumer */
	struct way *in;
	uint32_t received;
	struct way *buffers; /* the receiver's own: where messages go */
};

static uint32_t stride_of(const struct bench_spec *spec)
{
	return (uint32_t)((sizeof(struct mark) + spec->bytes + BENCH_ALIGN - 1) &
	                  ~(size_t)(BENCH_ALIGN - 1));
}

static size_t way_bytes(const struct bench_spec *spec)
{
	return sizeof(struct way) + (size_t)stride_of(spec) * spec->depth;
}

static void *ring_prepare(const struct bench_spec *spec)
{
	return bench_alloc(2 * way_bytes(spec), 1);
}

static void *ring_open(void *shared, const struct bench_spec *spec, int side)
{
	struct ring *r = bench_alloc(sizeof(*r), 0);

	r->bytes = spec->bytes;
	r->stride = stride_of(spec);
	r->mask = spec->depth - 1;
	r->out = (struct way *)((char *)shared + (size_t)side * way_bytes(spec));
	r->in = (struct way *)((char *)shared + (size_t)!side * way_bytes(spec));
	r->room_until = spec->depth;
	r->buffers = bench_alloc(way_bytes(spec), 0);
	r->message = bench_alloc(spec->bytes, 0);
	return r;
}

static char *slot_of(struct ring *r, struct way *way, uint32_t position)
{
	return way->slots + (size_t)(position & r->mask) * r->stride;
}

static struct mark *mark_of(struct ring *r, char *slot)
{
	return (struct mark *)(slot + r->stride) - 1;
}

static void ring_send(void *link, unsigned n)
{
	struct ring *r = link;

	for (; n; n--, r->sent++) {
		char *slot = slot_of(r, r->out, r->sent);
		struct mark *mark = mark_of(r, slot);

		while (r->sent == r->room_until)
			/* acquire: pairs with the release in ring_settle() */
			r->room_until =
			        r->mask + 1 +
			        atomic_load_explicit(&r->out->consumed, memory_order_acquire);
		memcpy(slot, r->message, r->bytes);
		mark->bytes = r->bytes;
		/* release: pairs with the acquire in ring_receive() */
		atomic_store_explicit(&mark->ready, r->sent + 1, memory_order_release);
	}
}

static unsigned ring_receive(void *link, unsigned max)
{
	struct ring *r = link;
	unsigned n = 0;

	for (; n < max; n++, r->received++) {
		char *slot = slot_of(r, r->in, r->received);
		char *to = slot_of(r, r->buffers, r->received);
		struct mark *mark = mark_of(r, slot);

		/* acquire: pairs with the release in ring_send() */
		if (atomic_load_explicit(&mark->ready, memory_order_acquire) != r->received + 1)
			break;
		memcpy(to, slot, mark->bytes);
	}
	return n;
}

static void ring_settle(void *link)
{
	struct ring *r = link;
	uint32_t told = atomic_load_explicit(&r->in->consumed, memory_order_relaxed);

	/* release: our reads of the slots come before the next writes */
	if (r->received - told > r->mask / 4)
		atomic_store_explicit(&r->in->consumed, r->received, memory_order_release);
}

static void ring_close(void *link)
{
	(void)link; /* goes with the process */
}

const struct bench_link_ops bench_ring_ops = {
	.name = "ring",
	.exchanges = 10000,
	.messages = 400000,
	.prepare = ring_prepare,
	.open = ring_open,
	.send = ring_send,
	.receive = ring_receive,
	.settle = ring_settle,
	.close = ring_close,
};
