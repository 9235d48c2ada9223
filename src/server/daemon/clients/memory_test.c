/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where rings lie, that one which begins within a page is closed from its first slot to its last,
 * and that the payload memory of a sender that has gone stays while messages in it are unread.
 */
#include <harness.h>

#include "daemon/clients/memory.h"
#include "daemon/clients/pages.h"

#define RINGS 64
#define UNIT  sizeof(struct shm_arrival)
#define QPN   0x10007
#define NS    1000000000ull

static const uint8_t SHIFTS[] = { 0, 1, 4, 5, 6, 8 };

struct lab {
	uint64_t now;
	struct base_timers timers;
	struct daemon_chores chores;
	struct shm_region region;
	struct daemon_memory memory;
	uint16_t alive;        /* may be filling slots */
	struct shm_ring *ring; /* the only one, of two slots; NULL: there is none */
};

static bool may_fill(void *arg, uint16_t index, uint32_t qpn)
{
	(void)qpn;
	return index == ((struct lab *)arg)->alive;
}

static struct shm_ring *next_ring(void *arg, uint32_t *index, uint8_t *shift)
{
	*shift = 1;
	return *index ? NULL : ((struct lab *)arg)->ring;
}

static uint32_t qpn_of(void *arg, uint32_t index)
{
	return index || !((struct lab *)arg)->ring ? 0 : QPN;
}

static uint64_t now_ns(void *arg)
{
	return ((struct lab *)arg)->now;
}

static void work(struct lab *l)
{
	while (daemon_chores_wait(&l->chores))
		daemon_chores_slice(&l->chores);
}

/* A while in which what has retired is looked at again, and spare memory is freed. */
static void wait_a_while(struct lab *l)
{
	for (unsigned i = 0; i < 4; i++) {
		l->now += 3 * NS;
		base_timers_run(&l->timers);
		work(l);
	}
}

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	*state = l;
	if (!l || shm_region_create(&l->region, 1, 1))
		return -1;
	l->now = NS;
	base_timers_init(&l->timers, &(struct base_clock){ .now_ns = now_ns, .arg = l });
	daemon_chores_init(&l->chores, &l->timers);
	daemon_memory_init(
	        &l->memory, &l->region, &l->chores,
	        &(struct daemon_memory_users){
	                .may_fill = may_fill, .next_ring = next_ring, .qpn_of = qpn_of, .arg = l });
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	shm_extents_fini(&l->memory.rings);
	shm_extents_fini(&l->memory.payloads);
	free(l->memory.now.marks);
	daemon_chores_fini(&l->chores);
	shm_region_unmap(&l->region);
	free(l);
	return 0;
}

/* A sender to many looks at the heads and at the next slots of all their rings. */
CASE_WITH(lines_of_rings_share_no_few_places_of_a_cache, setup, teardown)
{
	struct lab *l = *state;

	for (unsigned i = 0; i < sizeof(SHIFTS); i++) {
		const uint64_t bytes = shm_ring_bytes(SHIFTS[i]);
		unsigned at[DAEMON_PAGE / UNIT] = { 0 };
		uint64_t off[RINGS];

		for (unsigned k = 0; k < RINGS; k++) {
			off[k] = daemon_memory_ring(&l->memory, SHIFTS[i]);
			assert_true(off[k]);
			assert_int_equal(off[k] % UNIT, 0);
			assert_true(shm_extent_bytes(&l->memory.rings, off[k]) >=
			            off[k] % DAEMON_PAGE + bytes);
			at[off[k] % DAEMON_PAGE / UNIT]++;
		}
		/* a cache has eight lines or more in a place */
		for (unsigned k = 0; k < DAEMON_PAGE / UNIT; k++)
			assert_true(at[k] <= 8);
		for (unsigned k = 0; k < RINGS; k++)
			daemon_memory_retire_ring(&l->memory, off[k], SHIFTS[i], 0);
		wait_a_while(l);
		assert_int_equal(l->memory.rings.in_use, 0);
	}
}

/* A ring all of whose positions are credits; @l->alive claims the last one. */
static void close_claimed(struct lab *l, uint8_t shift)
{
	const uint64_t off = daemon_memory_ring(&l->memory, shift);
	const uint32_t last = (1u << shift) - 1;
	struct shm_ring *ring = daemon_memory_ring_at(&l->memory, off);
	struct shm_ring_view view;
	uint32_t pos;

	shm_ring_init(ring, 1, QPN, false);
	shm_ring_post(ring, shift, 1, 0, 1u << shift);
	view = shm_ring_view(ring, shift, 1, l->alive);
	for (uint32_t i = 0; i <= last; i++)
		assert_ptr_equal(shm_ring_claim(&view, &pos), shm_ring_slot(ring, shift, i));
	for (uint32_t i = 0; i < last; i++)
		shm_ring_publish(&view, shm_ring_slot(ring, shift, i), i);
	daemon_memory_retire_ring(&l->memory, off, shift, QPN);
	wait_a_while(l);
	for (uint32_t i = 0; i < last; i++)
		assert_int_equal(shm_ring_slot(ring, shift, i)->state, 0);
	/* it stays, as the writer of the last slot lives */
	assert_true(l->memory.rings.in_use);
	assert_true(shm_ring_publish(&view, shm_ring_slot(ring, shift, last), last));
	wait_a_while(l);
	assert_int_equal(l->memory.rings.in_use, 0);
}

CASE_WITH(a_ring_is_closed_to_its_last_slot, setup, teardown)
{
	struct lab *l = *state;

	l->alive = 9;
	for (unsigned i = 0; i < sizeof(SHIFTS); i++)
		for (unsigned k = 0; k < DAEMON_PAGE / UNIT; k++)
			close_claimed(l, SHIFTS[i]);
}

/* A message of @bytes that begins in page @page of 64, whose owner goes. How many bytes stay until
 * it has been read. */
static uint64_t stays(struct lab *l, uint32_t page, uint32_t bytes)
{
	const uint64_t ring = daemon_memory_ring(&l->memory, 1);
	const uint64_t off = daemon_memory_payload(&l->memory, 64ull * DAEMON_PAGE);
	struct shm_ring_view view;
	struct shm_arrival *slot;
	uint64_t left;
	uint32_t pos;

	assert_true(ring && off);
	l->ring = daemon_memory_ring_at(&l->memory, ring);
	shm_ring_init(l->ring, 1, QPN, false);
	shm_ring_post(l->ring, 1, 1, 0, 2);
	view = shm_ring_view(l->ring, 1, 1, l->alive);
	slot = shm_ring_claim(&view, &pos);
	slot->flags = SHM_ARRIVAL_PAYLOAD;
	slot->payload_off = off + (uint64_t)page * DAEMON_PAGE;
	slot->length = bytes;
	shm_ring_publish(&view, slot, pos);
	daemon_memory_retire_payload(&l->memory, off);
	wait_a_while(l);
	left = daemon_memory_in_use(&l->memory, false);
	shm_ring_post(l->ring, 1, 1, 2, 1); /* it has been read, and its slot is a credit again */
	wait_a_while(l);
	assert_int_equal(daemon_memory_in_use(&l->memory, false), 0);
	l->ring = NULL;
	daemon_memory_retire_ring(&l->memory, ring, 1, QPN);
	wait_a_while(l);
	return left;
}

CASE_WITH(payload_stays_until_it_has_been_read, setup, teardown)
{
	const uint64_t piece = 16ull * DAEMON_PAGE; /* is freed at once */
	struct lab *l = *state;

	assert_int_equal(stays(l, 0, 100), piece);
	assert_int_equal(stays(l, 63, 4096), piece);
	assert_int_equal(stays(l, 15, SHM_PAYLOAD_SLOT + 1), 2 * piece);
	assert_int_equal(stays(l, 13, SHM_PAYLOAD_MOST), 2 * piece);
	assert_int_equal(stays(l, 12, SHM_PAYLOAD_MOST - 1), piece);
	/* hostile ones */
	assert_int_equal(stays(l, 0, UINT32_MAX), piece);
	assert_int_equal(stays(l, UINT32_MAX, UINT32_MAX), 0);
}
