/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processors of hosts: each host gets its own, and a process on a host runs on those alone.
 */
#include <harness.h>

#include "hosts/processors.h"

#define ALL 1000

/* The processors of @all that host number @host gets, as "0 2". */
static const char *pick(const bool *all, unsigned host, unsigned n)
{
	static char text[256];
	bool own[ALL];
	int bytes = 0;

	hosts_processors_pick(all, ALL, host, n, own);
	text[0] = '\0';
	for (unsigned i = 0; i < ALL; i++)
		if (own[i])
			bytes += snprintf(text + bytes, sizeof(text) - (size_t)bytes,
			                  bytes ? " %u" : "%u", i);
	return text;
}

CASE(hosts_get_processors_in_turn)
{
	static const bool all[ALL] = { true, true, true, true, true, true };

	assert_string_equal(pick(all, 0, 2), "0 1");
	assert_string_equal(pick(all, 1, 2), "2 3");
	assert_string_equal(pick(all, 2, 2), "4 5");
	assert_string_equal(pick(all, 3, 2), "0 1");
	assert_string_equal(pick(all, 1, 4), "0 1 4 5");
}

CASE(only_processors_that_one_may_have_count)
{
	static const bool all[ALL] = { [1] = true, [5] = true, [900] = true };
	static const bool none[ALL];

	assert_string_equal(pick(all, 0, 1), "1");
	assert_string_equal(pick(all, 2, 1), "900");
	assert_string_equal(pick(all, 3, 2), "1 5");
	assert_string_equal(pick(all, 0, 3), "1 5 900");
	assert_string_equal(pick(all, 7, 100), "1 5 900");
	assert_string_equal(pick(none, 1, 1), "");
}

CASE(without_a_limit_nothing_changes)
{
	cpu_set_t before, after;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(hosts_processors_limit(1, 0, false), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

CASE(a_process_is_limited_and_gets_out_again)
{
	cpu_set_t own, other, both;

	assert_int_equal(hosts_processors_limit(0, 1, false), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	assert_int_equal(CPU_COUNT(&own), 1);
	assert_int_equal(hosts_processors_limit(0, CPU_SETSIZE, true), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(other), &other), 0);
	CPU_AND(&both, &own, &other);
	assert_true(CPU_EQUAL(&both, &own));
}
