/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arrays that grow: room, contents, and sizes that no memory has.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

static void elements_keep_their_values_while_the_array_grows(void **state)
{
	uint64_t *a = NULL;
	uint32_t room = 0;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		assert_int_equal(base_array_reserve(&a, &room, n + 1), 0);
		assert_true(room > n);
		a[n] = n;
	}
	for (uint32_t n = 0; n < 1000; n++)
		assert_int_equal(a[n], n);
	free(a);
}

static void room_doubles(void **state)
{
	uint16_t *a = NULL;
	uint32_t room = 0, grown = 0;

	(void)state;
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

static void many_elements_are_reserved_at_once(void **state)
{
	char *a = NULL;
	uint32_t room = 0;

	(void)state;
	assert_int_equal(base_array_reserve(&a, &room, 1000), 0);
	assert_true(room >= 1000);
	a[999] = 1;
	free(a);
}

static void room_that_suffices_stays_as_it_is(void **state)
{
	int *a = NULL, *before;
	uint32_t room = 0;

	(void)state;
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

static void a_size_that_overflows_is_refused_and_nothing_changes(void **state)
{
	uint64_t *a = NULL, *before;
	uint32_t room = 0;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_keep_their_values_while_the_array_grows),
		cmocka_unit_test(room_doubles),
		cmocka_unit_test(many_elements_are_reserved_at_once),
		cmocka_unit_test(room_that_suffices_stays_as_it_is),
		cmocka_unit_test(a_size_that_overflows_is_refused_and_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
