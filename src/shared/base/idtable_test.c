/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that are allocated and freed.
 */
#include <harness.h>

#include "base/idtable.h"
#include "base/util.h"

static int thing[64];

static uint32_t add(struct base_idtable *t, void *p)
{
	uint32_t id;

	assert_int_equal(base_idtable_add(t, p, &id), 0);
	return id;
}

CASE(the_first_numbers_are_the_lowest)
{
	struct base_idtable t;

	base_idtable_init(&t, 100);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(add(&t, &thing[i]), i);
	for (uint32_t i = 0; i < 40; i++)
		assert_ptr_equal(base_idtable_get(&t, i), &thing[i]);
	base_idtable_fini(&t);
}

CASE(a_number_rests_before_it_is_used_again)
{
	struct base_idtable t;

	base_idtable_init(&t, 100);
	assert_int_equal(add(&t, &thing[0]), 0);
	assert_int_equal(add(&t, &thing[1]), 1);
	base_idtable_remove(&t, 0);
	assert_int_equal(add(&t, &thing[2]), 2);
	base_idtable_fini(&t);
}

CASE(a_free_number_is_found_behind_the_last_one)
{
	struct base_idtable t;

	base_idtable_init(&t, 4);
	for (int i = 0; i < 4; i++)
		add(&t, &thing[i]);
	base_idtable_remove(&t, 2);
	assert_int_equal(add(&t, &thing[5]), 2);
	base_idtable_fini(&t);
}

CASE(a_full_table_says_so)
{
	static const uint32_t limits[] = { 0, 1, 16, 17, 40 };
	struct base_idtable t;
	uint32_t id;

	for (unsigned i = 0; EACH_ROW(i, limits); i++) {
		base_idtable_init(&t, limits[i]);
		for (uint32_t k = 0; k < limits[i]; k++)
			assert_true(add(&t, &thing[k]) < limits[i]);
		assert_int_equal(base_idtable_add(&t, &thing[0], &id), -ENOSPC);
		base_idtable_fini(&t);
	}
}

CASE(null_is_not_stored)
{
	struct base_idtable t;
	uint32_t id;

	base_idtable_init(&t, 4);
	assert_int_equal(base_idtable_add(&t, NULL, &id), -EINVAL);
	assert_int_equal(t.used, 0);
	base_idtable_fini(&t);
}

CASE(a_free_number_finds_nothing)
{
	struct base_idtable t;

	base_idtable_init(&t, 100);
	assert_null(base_idtable_get(&t, 0));
	assert_null(base_idtable_remove(&t, 0));
	add(&t, &thing[0]);
	assert_null(base_idtable_get(&t, 1));
	assert_null(base_idtable_get(&t, 0xFFFFFFFF));
	assert_ptr_equal(base_idtable_remove(&t, 0), &thing[0]);
	assert_null(base_idtable_remove(&t, 0));
	base_idtable_fini(&t);
}

CASE(random_use_agrees_with_an_array)
{
	struct base_idtable t;
	void *model[64] = { NULL };
	unsigned seed = 1, used = 0;

	base_idtable_init(&t, 64);
	for (int i = 0; i < 20000; i++) {
		uint32_t id = rand_r(&seed) % 64;

		if (rand_r(&seed) % 2) {
			assert_ptr_equal(base_idtable_remove(&t, id), model[id]);
			used -= model[id] != NULL;
			model[id] = NULL;
		} else if (used == 64) {
			assert_int_equal(base_idtable_add(&t, thing, &id), -ENOSPC);
		} else {
			id = add(&t, &thing[i % 64]);
			assert_in_range(id, 0, 63);
			assert_null(model[id]);
			model[id] = &thing[i % 64];
			used++;
		}
		assert_int_equal(t.used, used);
	}
	base_idtable_fini(&t);
}

CASE(a_number_can_be_asked_for)
{
	struct base_idtable t;
	int a, b;
	uint32_t id;

	base_idtable_init(&t, 100);
	assert_int_equal(base_idtable_add_at(&t, &a, 70), 0);
	assert_ptr_equal(base_idtable_get(&t, 70), &a);
	assert_int_equal(base_idtable_add_at(&t, &b, 70), -ENOSPC);
	assert_int_equal(base_idtable_add_at(&t, &b, 100), -ENOSPC);
	assert_int_equal(base_idtable_add_at(&t, NULL, 3), -EINVAL);
	for (uint32_t i = 0; i < 99; i++) { /* the others are still there, once each */
		assert_int_equal(base_idtable_add(&t, &b, &id), 0);
		assert_int_not_equal(id, 70);
	}
	assert_int_equal(base_idtable_add(&t, &b, &id), -ENOSPC);
	assert_ptr_equal(base_idtable_remove(&t, 70), &a);
	assert_int_equal(base_idtable_add(&t, &b, &id), 0);
	assert_int_equal(id, 70);
	base_idtable_fini(&t);
}

CASE(a_table_from_1_has_no_0)
{
	struct base_idtable t;
	uint32_t id;
	int a;

	base_idtable_init_from_1(&t, 40);
	assert_int_equal(base_idtable_add_at(&t, &a, 0), -ENOSPC);
	for (unsigned round = 0; round < 100; round++) {
		assert_int_equal(base_idtable_add(&t, &a, &id), 0);
		assert_int_equal(id, 1 + round % 15);
		base_idtable_remove(&t, id);
	}
	for (unsigned i = 1; i < 40; i++)
		assert_int_equal(base_idtable_add(&t, &a, &id), 0);
	assert_null(base_idtable_get(&t, 0));
	assert_int_equal(base_idtable_add(&t, &a, &id), -ENOSPC);
	base_idtable_fini(&t);
	assert_int_equal(base_idtable_add(&t, &a, &id), 0);
	assert_int_equal(id, 1);
	base_idtable_fini(&t);
}
