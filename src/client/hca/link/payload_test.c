/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a sender's payload slot is free again: a receiver's ring, and a sender that has all the
 * slots that it needs, so that nobody asks a daemon for more.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/link/payload.h"
#include "hca/queue/sender.h"
#include "shm/ring.h"

#define GEN   7
#define SLOTS 16
#define ROWS  1024 /* as many slots as rows make a window have */
#define MANY  64   /* receivers */
#define PAGE  4096

struct lab {
	struct hca_sender sender;
	struct shm_sender shm;
	struct shm_ring *ring;
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));
	struct hca_payloads *all = &l->sender.payloads;

	l->sender.shm = &l->shm;
	l->ring = aligned_alloc(128, sizeof(*l->ring));
	shm_ring_init(l->ring, GEN, 1, false);
	all->slot = calloc(SLOTS, sizeof(*all->slot));
	all->seen = calloc(1, 65536);
	all->n = all->window = SLOTS;
	for (unsigned i = 0; i < SLOTS; i++)
		all->slot[i].off = (uint64_t)i * SHM_PAYLOAD_SLOT;
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	hca_payload_fini(&l->sender.payloads);
	free(l->ring);
	free(l);
	return 0;
}

/* Sends a message that lies at position @pos of the ring. Its slot. */
static struct hca_payload *send_at(struct lab *l, uint32_t pos)
{
	struct hca_payload *p = hca_payload_get(&l->sender);

	assert_non_null(p);
	assert_int_equal(hca_payload_reserve(p, 1), 0);
	p->hold[p->n++] =
	        (struct hca_payload_hold){ .ring = l->ring, .gen = l->ring->gen, .pos = pos };
	return p;
}

/* Whether the slot's turn comes in a round of all slots. */
static bool comes_free(struct lab *l, const struct hca_payload *p)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (hca_payload_get(&l->sender) == p)
			return true;
	return false;
}

/* A message of @bytes at position @pos. The number of its first slot, or -1. */
static int send_row(struct lab *l, uint32_t pos, uint32_t bytes)
{
	struct hca_payload *p = hca_payload_get_row(&l->sender, bytes);

	if (!p)
		return -1;
	hca_payload_hold_row(
	        p, bytes,
	        &(struct hca_payload_hold){ .ring = l->ring, .gen = l->ring->gen, .pos = pos });
	return (int)(p - l->sender.payloads.slot);
}

/* As many slots as rows need. */
static void have_rows(struct hca_payloads *all)
{
	all->slot = realloc(all->slot, ROWS * sizeof(*all->slot));
	assert_non_null(all->slot);
	for (unsigned i = all->n; i < ROWS; i++)
		all->slot[i] = (struct hca_payload){ .off = (uint64_t)i * SHM_PAYLOAD_SLOT };
	all->n = ROWS;
}

/* Sizes to whole rows, and a byte more or less. Where nobody asks a daemon, slots are all there is.
 */
CASE_WITH(rows_lie_in_a_row_and_are_held_whole, setup, teardown)
{
	struct lab *l = *state;
	struct hca_payloads *all = &l->sender.payloads;

	assert_int_equal(hca_payload_get(&l->sender) - all->slot, 0);
	have_rows(all);
	all->window = ROWS; /* as large as rows make it: they ask for no more */
	assert_int_equal(send_row(l, 0, 2 * SHM_PAYLOAD_SLOT), 1);
	assert_int_equal(send_row(l, 1, 2 * SHM_PAYLOAD_SLOT + 1), 3);
	assert_int_equal(send_row(l, 2, SHM_PAYLOAD_MOST), 6);
	assert_int_equal(send_row(l, 3, 1), 10);
	for (unsigned i = 0; i < ROWS; i++)
		assert_int_equal(all->slot[i].n, i >= 1 && i <= 10);
	all->slot[12].off++; /* here other memory begins */
	assert_int_equal(send_row(l, 4, SHM_PAYLOAD_MOST), 13);
	all->slot[19].pinned = true;
	assert_int_equal(send_row(l, 5, 2 * SHM_PAYLOAD_SLOT), 17);
	assert_int_equal(send_row(l, 6, 2 * SHM_PAYLOAD_SLOT), 20);
	all->cursor = ROWS - 2;
	/* the rest, and the first; a round without a busy slot has made the window smaller */
	assert_int_equal(send_row(l, 7, 3 * SHM_PAYLOAD_SLOT), ROWS / 2);
	assert_int_equal(all->window, ROWS);
	all->cursor = 1;
	assert_int_equal(send_row(l, 8, 3 * SHM_PAYLOAD_SLOT), -1); /* all are in use */
	hca_payload_end(&l->sender); /* nor does the first one of a post ask for more */
	assert_int_equal(send_row(l, 8, 3 * SHM_PAYLOAD_SLOT), -1);
	assert_int_equal(all->window, ROWS);
	shm_ring_consume(l->ring, 1);
	all->cursor = 1;
	assert_int_equal(send_row(l, 9, 2 * SHM_PAYLOAD_SLOT), 1);
}

/* Rows of several lengths leave gaps, which are too short for the longest. */
CASE_WITH(a_row_is_found_behind_gaps, setup, teardown)
{
	struct lab *l = *state;
	struct hca_payloads *all = &l->sender.payloads;
	const struct hca_payload_hold hold = { .ring = l->ring, .gen = GEN };

	have_rows(all);
	for (unsigned i = 2; i < 6; i += 3) {
		assert_int_equal(hca_payload_reserve(&all->slot[i], 1), 0);
		hca_payload_hold_row(&all->slot[i], 1, &hold);
	}
	assert_int_equal(send_row(l, 1, 3 * SHM_PAYLOAD_SLOT), 6);
	assert_int_equal(all->window, SLOTS);
	all->cursor = 0;
	for (unsigned i = 9; i < SLOTS; i++) {
		assert_int_equal(hca_payload_reserve(&all->slot[i], 1), 0);
		hca_payload_hold_row(&all->slot[i], 1, &hold);
	}
	/* no gap of the window is long enough: it grows, by slots that there are */
	assert_int_equal(send_row(l, 2, 3 * SHM_PAYLOAD_SLOT), SLOTS);
	assert_int_equal(all->window, 2 * SLOTS);
}

CASE_WITH(the_daemon_leaves_memory_alone_while_a_post_uses_it, setup, teardown)
{
	struct lab *l = *state;

	assert_int_equal(l->shm.payload_lease, SHM_LEASE_FREE);
	send_at(l, 0);
	send_at(l, 1);
	assert_int_equal(l->shm.payload_lease, SHM_LEASE_IN_USE);
	hca_sender_finish(&l->sender);
	assert_int_equal(l->shm.payload_lease, SHM_LEASE_FREE);
	hca_sender_finish(&l->sender); /* had nothing to finish */
	assert_int_equal(l->shm.payload_lease, SHM_LEASE_FREE);
}

CASE_WITH(a_slot_is_free_when_the_receiver_has_passed_it, setup, teardown)
{
	struct lab *l = *state;
	struct hca_payload *p = send_at(l, 0);

	assert_false(comes_free(l, p));
	shm_ring_consume(l->ring, 1);
	assert_true(comes_free(l, p));
}

CASE_WITH(a_slot_is_free_when_the_ring_has_gone, setup, teardown)
{
	struct lab *l = *state;
	struct hca_payload *p = send_at(l, 0);

	assert_false(comes_free(l, p));
	shm_ring_init(l->ring, GEN + 1, 1, false);
	assert_true(comes_free(l, p));
}

CASE_WITH(a_slot_is_not_free_because_positions_have_wrapped, setup, teardown)
{
	static const uint32_t passed[] = { 1u << 30, (1u << 31) + 8, 3u << 30, -8u };
	struct lab *l = *state;

	for (size_t i = 0; EACH_ROW(i, passed); i++) {
		uint32_t pos = atomic_load(&l->ring->consumed);
		struct hca_payload *p = send_at(l, pos);

		/* the sender sees that this one has passed */
		shm_ring_consume(l->ring, ++pos);
		assert_true(comes_free(l, p));
		/* small messages of others pass, and then comes ours */
		pos += passed[i];
		shm_ring_consume(l->ring, pos);
		p = send_at(l, pos);
		assert_false(comes_free(l, p));
		shm_ring_consume(l->ring, pos + 1);
		assert_true(comes_free(l, p));
	}
}

/* Two messages that lie in MANY rings, so many bytes apart, which move past them. */
static void send_to_all(struct lab *l, char *rings, size_t bytes)
{
	struct hca_payload *p[2];

	for (uint32_t pos = 0; pos < ARRAY_SIZE(p); pos++) {
		p[pos] = hca_payload_get(&l->sender);
		assert_non_null(p[pos]);
		assert_int_equal(hca_payload_reserve(p[pos], MANY), 0);
	}
	for (unsigned k = 0; k < MANY; k++) {
		struct shm_ring *ring =
		        (void *)(rings + k * bytes + k % 32 * sizeof(struct shm_ring));

		shm_ring_init(ring, GEN, 1 + k, false);
		for (uint32_t pos = 0; pos < ARRAY_SIZE(p); pos++)
			p[pos]->hold[p[pos]->n++] =
			        (struct hca_payload_hold){ .ring = ring, .gen = GEN, .pos = pos };
		shm_ring_consume(ring, ARRAY_SIZE(p));
	}
}

/* Many rings, as the daemon lays them: messages that lie in all of them cost one look at each. */
CASE_WITH(each_of_many_rings_is_looked_at_once, setup, teardown)
{
	static const unsigned ring_pages[] = { 1, 2, 3, 5, 9 };
	struct lab *l = *state;
	const struct hca_payloads *all = &l->sender.payloads;

	for (unsigned i = 0; EACH_ROW(i, ring_pages); i++) {
		const size_t bytes = ring_pages[i] * (size_t)PAGE;
		char *rings = aligned_alloc(PAGE, MANY * bytes);
		uint64_t looks = all->looks;

		assert_non_null(rings);
		send_to_all(l, rings, bytes);
		for (unsigned n = 0; n < SLOTS; n++)
			assert_int_equal(hca_payload_get(&l->sender)->n, 0);
		assert_int_equal(all->looks - looks, MANY);
		free(rings);
	}
}
