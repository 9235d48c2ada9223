/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Settings by name.
 */
#include <harness.h>

#include "fabric/testing.h"

static struct shm_settings defaults(void)
{
	struct shm_settings s;

	memset(&s, 0xEE, sizeof(s));
	fabric_settings_default(&s);
	return s;
}

CASE(defaults_are_within_their_own_limits)
{
	struct shm_settings s = defaults(), t = s;
	const char *key;
	uint32_t value;
	char text[16];
	unsigned n = 0;

	for (; fabric_settings_get(&s, n, &key, &value); n++) {
		const char *name = fabric_settings_name(&s, n);

		snprintf(text, sizeof(text), "%u", value);
		assert_int_equal(fabric_settings_set(&t, key, name ? name : text, false), 0);
	}
	assert_true(n >= 10);
	assert_memory_equal(&s, &t, sizeof(s));
}

CASE(a_setting_is_set_and_no_other)
{
	struct shm_settings s = defaults(), want = s;

	want.max_mcast_grp = 5;
	assert_int_equal(fabric_settings_set(&s, "max_mcast_grp", "5", false), 0);
	assert_memory_equal(&s, &want, sizeof(s));
}

CASE(what_cannot_be_set_changes_nothing)
{
	static const struct {
		const char *key, *value;
		int error;
	} row[] = {
		{ "no_such", "1", -ENOENT },        { "", "1", -ENOENT },
		{ "max_mcast_grp", "", -EINVAL },   { "max_mcast_grp", "many", -EINVAL },
		{ "max_mcast_grp", "-1", -ERANGE }, { "max_sge", "0", -ERANGE },
		{ "max_sge", "257", -ERANGE },      { "mft_capacity", "16384", -ERANGE },
		{ "mtu", "1000", -EINVAL },         { "mtu", "255", -ERANGE },
		{ "mtu", "8192", -ERANGE },         { "mtu", "5", -ERANGE },
	};
	struct shm_settings s = defaults(), before = s;

	s.mtu = before.mtu = IBV_MTU_1024;
	for (size_t i = 0; EACH_NAMED(i, row, key); i++) {
		assert_int_equal(fabric_settings_set(&s, row[i].key, row[i].value, false),
		                 row[i].error);
		assert_memory_equal(&s, &before, sizeof(s));
	}
}

CASE(mtu_is_in_bytes)
{
	static const struct {
		const char *text;
		uint32_t mtu;
	} row[] = { { "256", IBV_MTU_256 },
		    { "512", IBV_MTU_512 },
		    { "1024", IBV_MTU_1024 },
		    { "2048", IBV_MTU_2048 },
		    { "4096", IBV_MTU_4096 } };
	struct shm_settings s = defaults();

	for (size_t i = 0; EACH_NAMED(i, row, text); i++) {
		const char *key;
		uint32_t value;

		assert_int_equal(fabric_settings_set(&s, "mtu", row[i].text, false), 0);
		assert_int_equal(s.mtu, row[i].mtu);
		for (unsigned k = 0; fabric_settings_get(&s, k, &key, &value); k++)
			if (!strcmp(key, "mtu"))
				assert_int_equal(value, atoi(row[i].text));
	}
}

CASE(routing_is_by_name)
{
	struct shm_settings s = defaults();

	assert_int_equal(fabric_settings_set(&s, "routing", "updn", false), 0);
	assert_int_equal(s.routing, 1);
	assert_int_equal(fabric_settings_set(&s, "routing", "minhop", false), 0);
	assert_int_equal(s.routing, 0);
	assert_int_equal(fabric_settings_set(&s, "routing", "1", false), -EINVAL);
	assert_int_equal(fabric_settings_set(&s, "routing", "", false), -EINVAL);
}

CASE(attachments_in_all_are_no_more_than_those_of_all_groups)
{
	static const struct {
		uint32_t groups, qps, total, fits;
	} row[] = {
		{ 3, 4, 1u << 20, 12 },
		{ 3, 4, 7, 7 },
		{ 0, 1024, 1u << 20, 0 },
		{ 1u << 20, SHM_MAX_QPS, 1u << 30, 1u << 30 },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct shm_settings s = defaults();

		s.max_mcast_grp = row[i].groups;
		s.max_mcast_qp_attach = row[i].qps;
		s.max_total_mcast_qp_attach = row[i].total;
		fabric_settings_fit(&s);
		assert_int_equal(s.max_total_mcast_qp_attach, row[i].fits);
	}
}

CASE(while_up_only_some_may_change)
{
	struct shm_settings s = defaults();

	assert_int_equal(fabric_settings_set(&s, "sa_send_only", "0", true), 0);
	assert_int_equal(fabric_settings_set(&s, "mft_delay_ms", "50", true), 0);
	assert_int_equal(s.sa_send_only, 0);
	assert_int_equal(s.mft_delay_ms, 50);
	assert_int_equal(fabric_settings_set(&s, "mtu", "1024", true), -EPERM);
	assert_int_equal(fabric_settings_set(&s, "max_mcast_grp", "1", true), -EPERM);
	assert_int_equal(fabric_settings_set(&s, "no_such", "1", true), -ENOENT);
}
