/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the tests of the receive ring: a ring in memory that children share, and its owner, which
 * receives messages and checks that they are complete.
 */
#ifndef SHM_TESTING_H
#define SHM_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "shm/ring.h"

#define GEN     77
#define ME      7 /* writers' QP indices */
#define OTHER   9
#define LARGE   10 /* the largest ring here: log2 */
#define WRITERS 128

/* A ring and its owner's state. */
struct lab {
	struct shm_ring *ring;
	unsigned shift;
	uint16_t gen;
	uint32_t posted, consumed;
	uint32_t *scratch;             /* shared with children, zero at first */
	bool single;                   /* claims are in the header */
	struct shm_ring_single *known; /* by writer: what it remembers; each process has its own */
};

static inline int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	l->ring = mmap(NULL, shm_ring_bytes(LARGE), PROT_READ | PROT_WRITE,
	               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	l->scratch = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(l->ring, MAP_FAILED);
	assert_ptr_not_equal(l->scratch, MAP_FAILED);
	l->known = calloc(WRITERS, sizeof(*l->known));
	*state = l;
	return 0;
}

/* A ring of RC or UC, which has one sender. */
static inline int setup_single(void **state)
{
	setup(state);
	((struct lab *)*state)->single = true;
	return 0;
}

static inline int teardown(void **state)
{
	struct lab *l = *state;

	munmap(l->ring, shm_ring_bytes(LARGE));
	munmap(l->scratch, 4096);
	free(l->known);
	free(l);
	return 0;
}

/* A new ring, in the state after @first receives were posted and consumed. */
static inline void start_at(struct lab *l, unsigned shift, uint16_t gen, uint32_t first)
{
	l->shift = shift;
	l->gen = gen;
	l->posted = l->consumed = first;
	memset((void *)l->ring, 0, shm_ring_bytes(shift));
	memset(l->scratch, 0, 4096);
	shm_ring_init(l->ring, gen, 0x10042, l->single);
	if (l->single)
		l->ring->claim = shm_slot_state(first - 1, gen, 0, SHM_SLOT_VOID);
	for (unsigned i = 0; i < WRITERS; i++)
		l->known[i] = shm_ring_single(false);
	if (first < 1u << shift)
		shm_ring_post_first_lap(l->ring, shift, gen, 0, first);
	for (uint32_t pos = first - (1u << shift); pos != first && first >= 1u << shift; pos++)
		shm_ring_slot(l->ring, shift, pos)->state =
		        shm_slot_state(pos, gen, 0, SHM_SLOT_DONE);
	l->ring->posted = l->ring->consumed = l->ring->tail = l->ring->posted_seen = first;
}

static inline void start(struct lab *l, unsigned shift)
{
	start_at(l, shift, GEN, 0);
}

static inline void post(struct lab *l, uint32_t n)
{
	assert_true(n <= shm_ring_room(l->posted, l->consumed, l->shift));
	shm_ring_post(l->ring, l->shift, l->gen, l->posted, n);
	l->posted += n;
}

static inline struct shm_arrival *claim(const struct lab *l, uint16_t writer, uint32_t *pos)
{
	const struct shm_ring_view v = shm_ring_view(l->ring, l->shift, l->gen, writer);

	return l->single ? shm_ring_claim_single(&v, &l->known[writer], pos)
	                 : shm_ring_claim(&v, pos);
}

static inline bool publish(const struct lab *l, uint16_t writer, struct shm_arrival *slot,
                           uint32_t pos)
{
	const struct shm_ring_view v = shm_ring_view(l->ring, l->shift, l->gen, writer);

	return l->single ? shm_ring_publish_single(&v, &l->known[writer], slot, pos)
	                 : shm_ring_publish(&v, slot, pos);
}

static inline void fill(struct shm_arrival *slot, uint16_t writer, uint32_t message)
{
	slot->src_qpn = writer;
	slot->imm = message;
	slot->length = SHM_INLINE;
	memset(slot->data, (int)(message & 0xFF), SHM_INLINE);
}

/* Sends @message as @writer. True: there was a credit for it. */
static inline bool send_as(const struct lab *l, uint16_t writer, uint32_t message)
{
	uint32_t pos = 0;
	struct shm_arrival *slot = claim(l, writer, &pos);

	if (!slot)
		return false;
	fill(slot, writer, message);
	return publish(l, writer, slot, pos);
}

static inline bool is_whole(const struct shm_arrival *slot)
{
	for (unsigned i = 0; i < SHM_INLINE; i++)
		if (slot->data[i] != (slot->imm & 0xFF))
			return false;
	return slot->length == SHM_INLINE;
}

struct received {
	uint32_t writer, message;
};

/* The owner receives the next message, and posts void positions again. False: there is none. */
static inline bool receive(struct lab *l, struct received *t)
{
	while (l->consumed != l->posted) {
		struct shm_arrival *slot = shm_ring_slot(l->ring, l->shift, l->consumed);
		enum shm_slot_kind kind = shm_ring_peek(l->ring, l->shift, l->consumed);

		if (kind == SHM_SLOT_CLOSED)
			return false;
		if (kind == SHM_SLOT_DONE) {
			assert_true(is_whole(slot));
			*t = (struct received){ slot->src_qpn, slot->imm };
		}
		shm_ring_consume(l->ring, ++l->consumed);
		if (kind == SHM_SLOT_DONE)
			return true;
		post(l, 1);
	}
	return false;
}

static inline void expect_received(struct lab *l, uint32_t writer, uint32_t message)
{
	struct received t = { 0 };

	assert_true(receive(l, &t));
	assert_int_equal(t.writer, writer);
	assert_int_equal(t.message, message);
}

static inline void expect_empty(struct lab *l)
{
	struct received t = { 0 };

	assert_false(receive(l, &t));
}

/* Sends until there is no credit, and receives all of it. Returns how many credits there were. */
static inline uint32_t count_credits(struct lab *l)
{
	uint32_t n = 0;

	while (send_as(l, OTHER, n))
		n++;
	for (uint32_t i = 0; i < n; i++)
		expect_received(l, OTHER, i);
	expect_empty(l);
	return n;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
/* As a ring of RC or UC, too. */
#define TEST_BOTH(name)                                                   \
	TEST(name),                                                       \
	{                                                                 \
#name " (one sender)", name, setup_single, teardown, NULL \
	}

/* Voids all that @writer has claimed and not published. Returns how many. */
static inline unsigned void_writer(struct lab *l, unsigned shift, uint16_t writer)
{
	struct shm_ring_walk w;
	struct shm_arrival *slot;
	unsigned n = 0;
	uint64_t s;

	shm_ring_walk_begin(&w, l->ring, shift);
	while ((slot = shm_ring_walk_next(&w, &s)))
		n += shm_ring_void(slot, s, writer);
	return n;
}

/* Closes the ring. Returns how many slots stay claimed by writers that are alive. */
static inline unsigned close_ring(struct lab *l, unsigned shift,
                                  bool (*is_alive)(void *arg, uint16_t writer))
{
	const struct shm_ring_writers writers = { .is_alive = is_alive };

	shm_ring_close_claim(l->ring, shift);
	return shm_ring_close(l->ring, 0, 1u << shift, &writers);
}

#endif
