/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arrays that grow: room, contents, and sizes that no memory has.
 */
#include <harness.h>

#include "base/array.h"

CASE(elements_keep_their_values_while_the_array_grows)
{
	uint64_t *a = NULL;
	uint32_t room = 0;

	for (uint32_t n = 0; n < 1000; n++) {
		assert_int_equal(base_array_reserve(&a, &room, n + 1), 0);
		assert_true(room > n);
		a[n] = n;
	}
	for (uint32_t n = 0; n < 1000; n++)
		assert_int_equal(a[n], n);
	free(a);
}

CASE(room_doubles)
{
	uint16_t *a = NULL;
	uint32_t room = 0, grown = 0;

	for (uint32_t n = 0; n < 4096; n++) {
		uint32_t before = room;

		assert_int_equal(base_array_reserve(&a, &room, n + 1), 0);
		if (room != before) {
			assert_true(room >= 2 * before);
			grown++;
		}
	}
	assert_true(grown <= 12);
	free(a);
}

CASE(many_elements_are_reserved_at_once)
{
	char *a = NULL;
	uint32_t room = 0;

	assert_int_equal(base_array_reserve(&a, &room, 1000), 0);
	assert_true(room >= 1000);
	a[999] = 1;
	free(a);
}

CASE(room_that_suffices_stays_as_it_is)
{
	int *a = NULL, *before;
	uint32_t room = 0;

	assert_int_equal(base_array_reserve(&a, &room, 0), 0);
	assert_null(a);
	assert_int_equal(base_array_reserve(&a, &room, 5), 0);
	before = a;
	assert_int_equal(base_array_reserve(&a, &room, 5), 0);
	assert_int_equal(base_array_reserve(&a, &room, 1), 0);
	assert_ptr_equal(a, before);
	assert_int_equal(room, 5);
	free(a);
}

CASE(a_size_that_overflows_is_refused_and_nothing_changes)
{
	uint64_t *a = NULL, *before;
	uint32_t room = 0;

	assert_int_equal(base_array_reserve(&a, &room, 3), 0);
	a[2] = 7;
	before = a;
	assert_int_equal(base_array_reserve(&a, &room, (size_t)UINT32_MAX + 1), -ENOMEM);
	assert_int_equal(base_array_reserve(&a, &room, SIZE_MAX), -ENOMEM);
	/* 16 elements of this size are more than SIZE_MAX bytes */
	assert_int_equal(base_array_reserve_bytes(&a, &room, 16, SIZE_MAX / 8), -ENOMEM);
	assert_ptr_equal(a, before);
	assert_int_equal(room, 4);
	assert_int_equal(a[2], 7);
	free(a);
}
