/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Extents: they do not overlap, and memory that was freed serves requests of any size.
 */
#include <harness.h>

#include "shm/extent.h"

#define UNIT  4096
#define UNITS 1000
#define FROM  (3 * UNIT)
#define BYTES (UNITS * UNIT)

static int setup(void **state)
{
	struct shm_extents *e = malloc(sizeof(*e));

	shm_extents_init(e, UNIT, FROM, BYTES);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct shm_extents *e = *state;

	shm_extents_fini(e);
	free(e);
	return 0;
}

CASE_WITH(a_small_extent_has_as_many_units_as_it_needs, setup, teardown)
{
	struct shm_extents *e = *state;
	uint64_t a = shm_extent_get(e, 1), b = shm_extent_get(e, UNIT);
	uint64_t c = shm_extent_get(e, 2 * UNIT + 1), d = shm_extent_get(e, 1);

	assert_int_equal(a, FROM);
	assert_int_equal(b, a + UNIT);
	assert_int_equal(c, b + UNIT);
	assert_int_equal(d, c + 3 * UNIT);
	assert_int_equal(e->in_use, 6 * UNIT);
}

CASE_WITH(a_large_extent_is_larger_by_a_sixteenth_at_most, setup, teardown)
{
	struct shm_extents *e = *state;

	for (unsigned units = 1; units <= UNITS / 2; units++) {
		uint64_t off = shm_extent_get(e, units * UNIT);

		assert_true(shm_extent_bytes(e, off) >= units * UNIT);
		assert_true(shm_extent_bytes(e, off) <= (units + units / 16) * UNIT);
		shm_extent_put(e, off);
	}
}

CASE_WITH(there_is_no_more_than_there_is, setup, teardown)
{
	struct shm_extents *e = *state;

	assert_int_equal(shm_extent_get(e, 0), 0);
	assert_int_equal(shm_extent_get(e, BYTES + 1), 0);
	assert_int_equal(shm_extent_get(e, UINT64_MAX), 0);
	assert_int_not_equal(shm_extent_get(e, BYTES), 0);
	assert_int_equal(shm_extent_get(e, 1), 0);
	assert_int_equal(e->in_use, BYTES);
}

/* Allocates extents of @units until there is no more; frees them in an order that depends on @step,
 * which UNITS and it have no divisor of in common. Returns how many. */
static unsigned fill_and_free(struct shm_extents *e, unsigned units, unsigned step)
{
	uint64_t off[UNITS];
	unsigned n = 0;

	while ((off[n] = shm_extent_get(e, units * UNIT)) && ++n < UNITS)
		;
	for (unsigned i = 0; i < UNITS; i++) {
		unsigned k = i * step % UNITS;

		if (k < n)
			shm_extent_put(e, off[k]);
	}
	assert_int_equal(e->in_use, 0);
	return n;
}

CASE_WITH(what_was_freed_serves_requests_of_any_size, setup, teardown)
{
	struct shm_extents *e = *state;
	const unsigned step[] = { 1, 3, 7, 999, 501 };

	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(fill_and_free(e, 1, step[i]), UNITS);
		assert_int_equal(fill_and_free(e, UNITS, step[i]), 1);
		assert_int_equal(fill_and_free(e, 15, step[i]), UNITS / 15);
		assert_int_equal(fill_and_free(e, 17, step[i]), UNITS / 17);
		assert_int_equal(fill_and_free(e, 128, step[i]), UNITS / 128);
		assert_int_equal(fill_and_free(e, 480, step[i]), 2);
	}
}

CASE_WITH(all_holes_of_one_size_serve_again, setup, teardown)
{
	struct shm_extents *e = *state;
	uint64_t off[UNITS];

	for (unsigned i = 0; i < UNITS; i++)
		off[i] = shm_extent_get(e, UNIT);
	for (unsigned i = 1; i < UNITS; i += 2)
		shm_extent_put(e, off[i]);
	for (unsigned i = 1; i < UNITS; i += 2)
		if (!shm_extent_get(e, UNIT))
			fail_msg("hole %u of %u is not found", i / 2 + 1, UNITS / 2);
	assert_int_equal(e->in_use, BYTES);
}

CASE_WITH(a_hole_serves_what_fits_in_it, setup, teardown)
{
	struct shm_extents *e = *state;
	uint64_t hole, last;

	assert_int_not_equal(shm_extent_get(e, 100 * UNIT), 0);
	hole = shm_extent_get(e, 32 * UNIT);
	last = shm_extent_get(e, (UNITS - 100 - 32 - 4) * UNIT); /* rounded up to the rest */
	if (!last)
		last = shm_extent_get(e, 800 * UNIT);
	assert_int_not_equal(last, 0);
	while (shm_extent_get(e, UNIT))
		;
	shm_extent_put(e, hole);
	assert_int_equal(shm_extent_get(e, 33 * UNIT), 0);
	assert_int_equal(shm_extent_get(e, 20 * UNIT), hole);
	assert_int_equal(shm_extent_get(e, 12 * UNIT), hole + 20 * UNIT);
	assert_int_equal(shm_extent_get(e, 1), 0);
}

#define HELD 64

struct held {
	uint64_t off, bytes;
};

static void check_apart(const struct shm_extents *e, const struct held *held, unsigned new)
{
	assert_true(held[new].off >= FROM);
	assert_true(held[new].off + held[new].bytes <= FROM + BYTES);
	assert_true(shm_extent_bytes(e, held[new].off) >= held[new].bytes);
	for (unsigned i = 0; i < HELD; i++)
		if (i != new &&held[i].off)
			assert_true(held[i].off + held[i].bytes <= held[new].off ||
			            held[new].off + held[new].bytes <= held[i].off);
}

CASE_WITH(extents_never_overlap_and_all_of_them_merge_again, setup, teardown)
{
	struct shm_extents *e = *state;
	struct held held[HELD] = { 0 };
	unsigned seed = 1;

	for (unsigned step = 0; step < 100000; step++) {
		unsigned i = (unsigned)rand_r(&seed) % HELD;
		uint64_t bytes = (uint64_t)(rand_r(&seed) % (UNIT << (rand_r(&seed) % 8))) + 1;

		if (held[i].off)
			shm_extent_put(e, held[i].off);
		held[i] = (struct held){ .off = shm_extent_get(e, bytes), .bytes = bytes };
		if (held[i].off)
			check_apart(e, held, i);
	}
	for (unsigned i = 0; i < HELD; i++)
		if (held[i].off)
			shm_extent_put(e, held[i].off);
	assert_int_equal(e->in_use, 0);
	assert_int_equal(shm_extent_get(e, BYTES), FROM);
}

struct walk_test {
	uint64_t held[HELD];
	bool stays[UNITS]; /* free since the walk began */
	unsigned seed;
};

static void note(struct walk_test *t, const struct shm_extents *e, uint64_t off, bool free)
{
	uint64_t first = (off - FROM) / UNIT;

	for (uint64_t u = 0; u < shm_extent_bytes(e, off) / UNIT; u++)
		t->stays[first + u] = free;
}

/* One comes or goes. */
static void change(struct walk_test *t, struct shm_extents *e)
{
	uint64_t *held = &t->held[rand_r(&t->seed) % HELD];

	if (*held)
		shm_extent_put(e, *held);
	*held = rand_r(&t->seed) % 3 ? shm_extent_get(e, UNIT * (1 + rand_r(&t->seed) % 40)) : 0;
	if (*held)
		note(t, e, *held, false);
}

/* Whatever comes and goes while a walk pauses, in the middle of a range too. */
CASE_WITH(a_walk_misses_nothing_that_stays_free, setup, teardown)
{
	struct shm_extents *e = *state;
	struct walk_test t = { .seed = 5 };
	struct shm_extent_range_at r;

	for (unsigned round = 0; round < 500; round++) {
		bool seen[UNITS] = { false };
		uint64_t at = 0;

		memset(t.stays, true, sizeof(t.stays));
		for (unsigned i = 0; i < HELD; i++)
			if (t.held[i])
				note(&t, e, t.held[i], false);
		shm_extent_walk_begin(e);
		while (shm_extent_walk(e, &r)) {
			uint64_t stop = r.from + UNIT * (rand_r(&t.seed) % 60);

			at = at < r.from ? r.from : at;
			for (; r.free && at < r.to && at < stop; at += UNIT)
				seen[(at - FROM) / UNIT] = true;
			if (!r.free || at >= r.to)
				shm_extent_walk_on(e);
			change(&t, e);
		}
		for (unsigned u = 0; u < UNITS; u++)
			assert_true(seen[u] || !t.stays[u]);
	}
}
