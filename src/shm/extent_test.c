/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Extents: they do not overlap, come back, and leave no memory behind.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/extent.h"

#define UNIT  4096
#define FROM  (3 * UNIT)
#define BYTES (64 * UNIT)

static int setup(void **state)
{
	struct shm_extents *e = malloc(sizeof(*e));
	int fd = memfd_create("extents", 0);

	assert_int_equal(ftruncate(fd, FROM + BYTES), 0);
	shm_extents_init(e, fd, UNIT, FROM, BYTES);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct shm_extents *e = *state;

	close(e->fd);
	shm_extents_fini(e);
	free(e);
	return 0;
}

static void an_extent_is_a_power_of_two_of_units(void **state)
{
	struct shm_extents *e = *state;
	uint64_t a = shm_extent_get(e, 1), b = shm_extent_get(e, UNIT);
	uint64_t c = shm_extent_get(e, 2 * UNIT + 1), d = shm_extent_get(e, 1);

	assert_int_equal(a, FROM);
	assert_int_equal(b, a + UNIT);
	assert_int_equal(c, b + UNIT);
	assert_int_equal(d, c + 4 * UNIT);
	assert_int_equal(e->in_use, 7 * UNIT);
}

static void there_is_no_more_than_there_is(void **state)
{
	struct shm_extents *e = *state;

	assert_int_equal(shm_extent_get(e, 2 * BYTES), 0);
	assert_int_equal(shm_extent_get(e, UINT64_MAX / 2), 0);
	assert_int_not_equal(shm_extent_get(e, BYTES), 0);
	assert_int_equal(shm_extent_get(e, 1), 0);
	assert_int_equal(e->in_use, BYTES);
}

static void what_comes_back_is_given_again(void **state)
{
	struct shm_extents *e = *state;

	for (unsigned round = 0; round < 3; round++) {
		uint64_t off[64];

		for (unsigned i = 0; i < 64; i++) {
			off[i] = shm_extent_get(e, UNIT);
			assert_int_not_equal(off[i], 0);
			for (unsigned k = 0; k < i; k++)
				assert_int_not_equal(off[i], off[k]);
		}
		assert_int_equal(shm_extent_get(e, 1), 0);
		for (unsigned i = 0; i < 64; i++)
			shm_extent_put(e, off[(i * 7) % 64], UNIT);
		assert_int_equal(e->in_use, 0);
	}
}

static void what_comes_back_serves_its_own_size_only(void **state)
{
	struct shm_extents *e = *state;
	uint64_t large = shm_extent_get(e, BYTES);

	shm_extent_put(e, large, BYTES);
	assert_int_equal(shm_extent_get(e, UNIT), 0);
	assert_int_equal(shm_extent_get(e, BYTES), large);
}

static blkcnt_t blocks(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_blocks;
}

static void the_pages_of_an_extent_go_back_to_the_system(void **state)
{
	struct shm_extents *e = *state;
	char text[UNIT] = "something";
	uint64_t off = shm_extent_get(e, 8 * UNIT);

	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pwrite(e->fd, text, UNIT, (off_t)(off + i * UNIT)), UNIT);
	assert_int_equal(blocks(e->fd), 8 * UNIT / 512);
	shm_extent_put(e, off, 8 * UNIT);
	assert_int_equal(blocks(e->fd), 0);
	assert_int_equal(shm_extent_get(e, 8 * UNIT), off);
	assert_int_equal(pread(e->fd, text, UNIT, (off_t)off), UNIT);
	for (unsigned i = 0; i < UNIT; i++)
		assert_int_equal(text[i], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_extent_is_a_power_of_two_of_units),
		TEST(there_is_no_more_than_there_is),
		TEST(what_comes_back_is_given_again),
		TEST(what_comes_back_serves_its_own_size_only),
		TEST(the_pages_of_an_extent_go_back_to_the_system),
	};

	return cmocka_run_group_tests_name("shm.extent", tests, NULL, NULL);
}
