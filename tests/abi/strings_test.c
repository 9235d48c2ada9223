/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holds our names and rate conversions against those of Debian's libibverbs: both libraries are
 * loaded by path, side by side, and asked the same. Single-threaded.
 */
#include "harness.h"

/* Names of numbers that are newer than Debian 12's and 13's rdma-core. */
#define SPEED_CHANGE 20 /* an event, since rdma-core 62 */

enum { LOWEST = -2, HIGHEST = 1100 };

static void *ours;
static void *debians;

/* An enum is passed and returned as an int is. */
static int (*find_int_fn(void *lib, const char *name))(int)
{
	int (*fn)(int) = (int (*)(int))(uintptr_t)dlsym(lib, name);

	if (!fn)
		fail_msg("%s", dlerror());
	return fn;
}

static const char *(*find_str_fn(void *lib, const char *name))(int)
{
	const char *(*fn)(int) = (const char *(*)(int))(uintptr_t)dlsym(lib, name);

	if (!fn)
		fail_msg("%s", dlerror());
	return fn;
}

/*
 * @newer: a number that Debian's may not know yet. For a number between two that it knows Debian's
 * may have NULL; ours says "unknown" then, too.
 */
static void compare_strings(const char *name, int newer)
{
	const char *(*our_fn)(int) = find_str_fn(ours, name);
	const char *(*debian_fn)(int) = find_str_fn(debians, name);

	assert_ptr_not_equal(our_fn, debian_fn);
	for (int i = LOWEST; i <= HIGHEST; i++) {
		const char *theirs = debian_fn(i);

		if (i != newer || strcmp(theirs, "unknown"))
			assert_string_equal(our_fn(i), theirs ? theirs : "unknown");
	}
	assert_string_equal(our_fn(INT_MIN), debian_fn(INT_MIN));
	assert_string_equal(our_fn(INT_MAX), debian_fn(INT_MAX));
}

static void compare_ints(const char *name, int lowest, int highest)
{
	int (*our_fn)(int) = find_int_fn(ours, name);
	int (*debian_fn)(int) = find_int_fn(debians, name);

	assert_ptr_not_equal(our_fn, debian_fn);
	for (int i = lowest; i <= highest; i++)
		if (our_fn(i) != debian_fn(i))
			fail_msg("%s(%d) is %d, Debian's is %d", name, i, our_fn(i), debian_fn(i));
	assert_int_equal(our_fn(INT_MIN), debian_fn(INT_MIN));
	assert_int_equal(our_fn(INT_MAX), debian_fn(INT_MAX));
}

CASE(test_node_types_have_debians_names)
{
	compare_strings("ibv_node_type_str", INT_MAX);
}

CASE(test_port_states_have_debians_names)
{
	compare_strings("ibv_port_state_str", INT_MAX);
}

CASE(test_events_have_debians_names)
{
	compare_strings("ibv_event_type_str", SPEED_CHANGE);
}

CASE(test_completion_statuses_have_debians_names)
{
	compare_strings("ibv_wc_status_str", INT_MAX);
}

CASE(test_a_change_of_speed_has_a_name)
{
	assert_string_equal(find_str_fn(ours, "ibv_event_type_str")(SPEED_CHANGE),
	                    "Device link speed change");
}

/* Debian 12's library has no names for them. */
CASE(test_operations_have_debians_names)
{
	const char *const names[] = {
		"rdma-write",    "rdma-write-with-imm", "send",
		"send-with-imm", "rdma-read",           "atomic-cmp-and-swp"
	};
	const char *(*our_fn)(int) = find_str_fn(ours, "ibv_wr_opcode_str");

	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		assert_string_equal(our_fn(i), names[i]);
	assert_string_equal(our_fn(-1), "unknown");
	if (dlsym(debians, "ibv_wr_opcode_str"))
		compare_strings("ibv_wr_opcode_str", INT_MAX);
}

CASE(test_rates_convert_to_debians_multiples)
{
	compare_ints("ibv_rate_to_mult", LOWEST, HIGHEST);
}

CASE(test_multiples_convert_to_debians_rates)
{
	compare_ints("mult_to_ibv_rate", LOWEST, HIGHEST);
}

CASE(test_rates_convert_to_debians_mbps)
{
	compare_ints("ibv_rate_to_mbps", LOWEST, HIGHEST);
}

/* Every number up to past the fastest rate, 1275000: no list of thresholds that could lack one. */
CASE(test_mbps_convert_to_debians_rates)
{
	compare_ints("mbps_to_ibv_rate", LOWEST, 1300000);
}

static void *load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return lib;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s LIBRARY DEBIANS_LIBRARY\n", argv[0]);
		return 2;
	}
	ours = load(argv[1]);
	debians = load(argv[2]);
	return harness_run(NULL, NULL);
}
