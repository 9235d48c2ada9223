/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random ranges beside a list that is searched from its beginning.
 */
#include <harness.h>

#include "checked/ranges.h"

#define MANY  400
#define STEPS 20000
#define SPACE 1000

static struct {
	struct checked_range r[MANY];
	bool in[MANY];
	struct checked_ranges all;
} t;

static unsigned met_in_list(uint64_t from, uint64_t to)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MANY; i++)
		n += t.in[i] && t.r[i].from < to && t.r[i].to > from;
	return n;
}

static unsigned met_in_tree(uint64_t from, uint64_t to)
{
	uint64_t before = 0;
	unsigned n = 0;

	for (struct checked_range *r = checked_ranges_first(&t.all, from, to); r;
	     r = checked_ranges_next(r, from, to)) {
		assert_true(r->from < to && r->to > from);
		assert_true(r->from >= before);
		before = r->from;
		n++;
	}
	return n;
}

CASE(the_tree_finds_what_a_list_finds)
{
	srand(7);
	for (unsigned step = 0; step < STEPS; step++) {
		const unsigned i = (unsigned)rand() % MANY;
		const uint64_t from = (uint64_t)rand() % SPACE;
		const uint64_t to = from + 1 + (uint64_t)rand() % (step % 3 ? 20 : SPACE);

		if (t.in[i]) {
			checked_ranges_remove(&t.all, &t.r[i]);
		} else {
			t.r[i] = (struct checked_range){ .from = from, .to = to };
			checked_ranges_add(&t.all, &t.r[i]);
		}
		t.in[i] = !t.in[i];
		assert_int_equal(met_in_tree(from, to), met_in_list(from, to));
	}
}

CASE(a_range_meets_what_it_touches_and_no_neighbour)
{
	struct checked_range r = { .from = 10, .to = 20 };
	struct checked_ranges one = { 0 };

	checked_ranges_add(&one, &r);
	assert_null(checked_ranges_first(&one, 0, 10));
	assert_null(checked_ranges_first(&one, 20, 30));
	assert_ptr_equal(checked_ranges_first(&one, 19, 20), &r);
	assert_ptr_equal(checked_ranges_first(&one, 0, 100), &r);
	checked_ranges_remove(&one, &r);
	assert_null(checked_ranges_first(&one, 0, 100));
}
