/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that wait for their responses.
 */
#include <harness.h>

#include "ibsim/requests.h"

static struct ibsim_requests requests;

static uint32_t add(uint8_t first, uint64_t now)
{
	uint8_t mad[MAD_BYTES] = { first };

	return ibsim_requests_add(&requests, mad, now);
}

/* The first byte of the request of that number, or -1. */
static int take(uint32_t number)
{
	uint8_t mad[MAD_BYTES];

	return ibsim_requests_take(&requests, number, mad) ? mad[0] : -1;
}

static int empty(void **state)
{
	(void)state;
	ibsim_requests_fini(&requests);
	return 0;
}

CASE_WITH(a_request_is_taken_once, NULL, empty)
{
	uint32_t one, two;

	assert_int_equal(take(1), -1);
	one = add(11, 0);
	two = add(22, 0);
	assert_int_not_equal(one, two);
	assert_int_equal(take(two), 22);
	assert_int_equal(take(two), -1);
	assert_int_equal(take(one + IBSIM_MAX_REQUESTS), -1);
	assert_int_equal(take(one), 11);
	assert_int_equal(take(0), -1);
}

CASE_WITH(too_many_are_refused_until_one_is_taken, NULL, empty)
{
	uint32_t number = 0, first = add(1, 0);

	for (unsigned i = 1; i < IBSIM_MAX_REQUESTS; i++)
		assert_int_not_equal(number = add(2, 0), 0);
	assert_int_equal(add(3, 0), 0);
	assert_int_equal(take(number), 2);
	number = add(4, 0);
	assert_int_equal(take(number), 4);
	assert_int_equal(take(first), 1);
}

CASE_WITH(old_ones_make_room, NULL, empty)
{
	uint32_t old, young;

	for (unsigned i = 1; i < IBSIM_MAX_REQUESTS; i++)
		assert_int_not_equal(old = add(1, 0), 0);
	young = add(2, 1);
	assert_int_equal(add(3, IBSIM_REQUEST_NS - 1), 0);
	assert_int_not_equal(add(3, IBSIM_REQUEST_NS), 0);
	assert_int_equal(take(old), -1);
	assert_int_equal(take(young), 2);
}

CASE_WITH(numbers_begin_again_but_for_0, NULL, empty)
{
	add(1, 0);
	requests.last = UINT32_MAX;
	assert_int_equal(add(2, 0), 2); /* 1 is in use */
	assert_int_equal(take(2), 2);
	assert_int_equal(take(1), 1);
}
