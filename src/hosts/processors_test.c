/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processors of hosts: which they get, and that a process is limited to them.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>

#include "hosts/processors.h"

/* The processors of a set, as "0 2". */
static const char *text_of(const cpu_set_t *set)
{
	static char text[256];
	int n = 0;

	text[0] = '\0';
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set))
			n += snprintf(text + n, sizeof(text) - (size_t)n, n ? " %u" : "%u", cpu);
	return text;
}

static const char *pick(const cpu_set_t *all, unsigned host, unsigned n)
{
	cpu_set_t own;

	hosts_processors_pick(all, sizeof(*all), host, n, &own);
	return text_of(&own);
}

static void hosts_get_processors_in_turn(void **state)
{
	cpu_set_t all;

	(void)state;
	CPU_ZERO(&all);
	for (unsigned cpu = 0; cpu < 6; cpu++)
		CPU_SET(cpu, &all);
	assert_string_equal(pick(&all, 0, 2), "0 1");
	assert_string_equal(pick(&all, 1, 2), "2 3");
	assert_string_equal(pick(&all, 2, 2), "4 5");
	assert_string_equal(pick(&all, 3, 2), "0 1");
	assert_string_equal(pick(&all, 1, 4), "0 1 4 5");
}

static void only_processors_that_one_may_have_count(void **state)
{
	cpu_set_t all;

	(void)state;
	CPU_ZERO(&all);
	CPU_SET(1, &all);
	CPU_SET(5, &all);
	CPU_SET(900, &all);
	assert_string_equal(pick(&all, 0, 1), "1");
	assert_string_equal(pick(&all, 2, 1), "900");
	assert_string_equal(pick(&all, 3, 2), "1 5");
	assert_string_equal(pick(&all, 0, 3), "1 5 900");
	assert_string_equal(pick(&all, 7, 100), "1 5 900");
}

static void without_a_limit_nothing_changes(void **state)
{
	cpu_set_t before, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(hosts_processors_limit(1, 0, false), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

static void a_process_is_limited_and_gets_out_again(void **state)
{
	cpu_set_t own, other, both;

	(void)state;
	assert_int_equal(hosts_processors_limit(0, 1, false), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	assert_int_equal(CPU_COUNT(&own), 1);
	assert_int_equal(hosts_processors_limit(0, CPU_SETSIZE, true), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(other), &other), 0);
	CPU_AND(&both, &own, &other);
	assert_true(CPU_EQUAL(&both, &own));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_get_processors_in_turn),
		cmocka_unit_test(only_processors_that_one_may_have_count),
		cmocka_unit_test(without_a_limit_nothing_changes),
		cmocka_unit_test(a_process_is_limited_and_gets_out_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
