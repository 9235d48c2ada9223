/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The congestion control agent: attributes that it stores, which kinds of nodes have them, and the
 * CC_Key.
 */
#include <harness.h>

#include "fabric/testing_mads.h"
#include "wire/cc.h"

#define KEY    0x1122334455667788u
#define SECOND 1000000000u

static uint8_t *data_of(struct wire_cc_mad *m)
{
	return m->data + CC_AT_DATA;
}

static struct wire_cc_mad request(uint8_t method, uint16_t attribute, uint32_t modifier)
{
	return (struct wire_cc_mad){ .mad = { .base_version = MAD_BASE_VERSION,
		                              .mgmt_class = MAD_CLASS_CC,
		                              .class_version = MAD_VERSION_CC,
		                              .method = method,
		                              .transaction_id = 7,
		                              .attribute_id = attribute,
		                              .attribute_modifier = modifier } };
}

static struct fabric_mad mad_to(uint16_t lid, const struct wire_cc_mad *m)
{
	struct fabric_mad mad = {
		.slid = 1, .dlid = lid, .src_qpn = 1, .dest_qpn = 1, .qkey = IB_QKEY_GSI
	};

	wire_cc_mad_encode(m, mad.data);
	return mad;
}

/* Host 0 sends the request @m, which becomes the response. Its status. */
static uint16_t ask(struct lab *l, uint16_t lid, struct wire_cc_mad *m)
{
	struct fabric_mad mad = mad_to(lid, m);

	lab_ask(l, lab_host(l, 0), &mad);
	wire_cc_mad_decode(l->got.data, m);
	return m->mad.status;
}

static void not_answered(struct lab *l, uint16_t lid, const struct wire_cc_mad *m)
{
	struct fabric_mad mad = mad_to(lid, m);

	lab_lost(l, lab_host(l, 0), &mad);
}

CASE_WITH(it_says_what_it_can, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_cc_mad m = request(MAD_GET, MAD_ATTR_CLASS_PORT_INFO, 0);
	struct wire_class_port_info c;
	struct wire_cc_info i;

	assert_int_equal(ask(l, SW_LID, &m), MAD_STATUS_OK);
	wire_class_port_info_decode(data_of(&m), &c);
	assert_int_equal(c.class_version, MAD_VERSION_CC);
	m = request(MAD_GET, CC_ATTR_INFO, 0);
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_OK);
	wire_cc_info_decode(data_of(&m), &i);
	assert_int_equal(i.control_table_cap, 2);
	m = request(MAD_SET, CC_ATTR_INFO, 0);
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	m = request(MAD_GET, CC_ATTR_INFO, 0);
	m.mad.class_version = 1;
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_BAD_VERSION);
	m = request(MAD_GET, 0x19, 0);
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

CASE_WITH(settings_are_kept, lab_setup_active, lab_teardown)
{
	static const struct {
		uint16_t lid, other, attribute;
		uint32_t modifier;
		unsigned bytes;
	} kept[] = {
		{ SW_LID, 2, CC_ATTR_SWITCH_SETTING, 0, 76 },
		{ SW_LID, 2, CC_ATTR_SWITCH_PORT_SETTING, 0, (SW_PORTS + 1) * 4 },
		{ 2, SW_LID, CC_ATTR_CA_SETTING, 0, 132 },
		{ 2, SW_LID, CC_ATTR_CONTROL_TABLE, 1, 132 },
	};
	struct lab *l = *state;
	struct wire_cc_mad m;

	for (size_t i = 0; EACH_ROW(i, kept); i++) {
		m = request(MAD_SET, kept[i].attribute, kept[i].modifier);
		memset(data_of(&m), (int)i + 1, CC_DATA_BYTES);
		memset(data_of(&m), 0, 1); /* a limit of the table that is not too high */
		assert_int_equal(ask(l, kept[i].lid, &m), MAD_STATUS_OK);
		m = request(MAD_GET, kept[i].attribute, kept[i].modifier);
		assert_int_equal(ask(l, kept[i].lid, &m), MAD_STATUS_OK);
		for (unsigned k = 1; k < CC_DATA_BYTES; k++)
			assert_int_equal(data_of(&m)[k], k < kept[i].bytes ? i + 1 : 0);
		m = request(MAD_GET, kept[i].attribute, kept[i].modifier);
		assert_int_equal(ask(l, kept[i].other, &m), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	}
	/* what there is not */
	m = request(MAD_GET, CC_ATTR_SWITCH_PORT_SETTING, 1);
	assert_int_equal(ask(l, SW_LID, &m), MAD_STATUS_BAD_FIELD);
	m = request(MAD_GET, CC_ATTR_CONTROL_TABLE, 2);
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_BAD_FIELD);
	m = request(MAD_SET, CC_ATTR_CONTROL_TABLE, 0);
	data_of(&m)[1] = 128; /* the last entry is 127 */
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_BAD_FIELD);
	/* the limit is that of all blocks */
	m = request(MAD_GET, CC_ATTR_CONTROL_TABLE, 0);
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_OK);
	assert_int_equal(data_of(&m)[1], 4);
	assert_int_equal(data_of(&m)[4], 0);
}

CASE_WITH(logs_have_no_events, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_cc_mad m = request(MAD_GET, CC_ATTR_LOG, 0);

	assert_int_equal(ask(l, SW_LID, &m), MAD_STATUS_OK);
	assert_int_equal(m.data[0], CC_LOG_SWITCH);
	for (unsigned i = 8; i < CC_LOG_BYTES; i++)
		assert_int_equal(m.data[i], 0);
	m = request(MAD_GET, CC_ATTR_LOG, 0);
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_OK);
	assert_int_equal(m.data[0], CC_LOG_CA);
	for (unsigned i = 12; i < CC_LOG_BYTES; i++)
		assert_int_equal(m.data[i], 0);
}

static uint64_t now_of(void *arg)
{
	return *(uint64_t *)arg;
}

CASE_WITH(time_is_told_in_microseconds_or_so, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	uint64_t now = SECOND;
	struct wire_cc_mad m = request(MAD_GET, CC_ATTR_TIMESTAMP, 0);
	struct wire_cc_timestamp t;

	l->f->mads->clock = (struct fabric_clock){ .now_ns = now_of, .arg = &now };
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_OK);
	wire_cc_timestamp_decode(data_of(&m), &t);
	assert_int_equal(t.timestamp, SECOND / 1024);
}

static struct wire_cc_key_info key_info(struct lab *l, uint64_t key)
{
	struct wire_cc_mad m = request(MAD_GET, CC_ATTR_KEY_INFO, 0);
	struct wire_cc_key_info i;

	m.cc_key = key;
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_OK);
	wire_cc_key_info_decode(data_of(&m), &i);
	return i;
}

static void set_key_info(struct lab *l, uint64_t key, const struct wire_cc_key_info *i)
{
	struct wire_cc_mad m = request(MAD_SET, CC_ATTR_KEY_INFO, 0);

	m.cc_key = key;
	wire_cc_key_info_encode(i, data_of(&m));
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_OK);
}

CASE_WITH(a_key_protects_the_settings, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	uint64_t now = SECOND;
	struct wire_cc_mad m = request(MAD_SET, CC_ATTR_CA_SETTING, 0);
	struct wire_cc_key_info i = { .key = KEY, .lease_period = 5 };

	l->f->mads->clock = (struct fabric_clock){ .now_ns = now_of, .arg = &now };
	set_key_info(l, 0, &i);
	assert_true(key_info(l, KEY).key == KEY);
	assert_true(key_info(l, 0).key == 0); /* which is not told */
	not_answered(l, 2, &m);
	assert_int_equal(key_info(l, KEY).violations, 1);
	m.cc_key = KEY;
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_OK);
	/* with the protect bit not even a Get */
	i.protect_bit = 1;
	set_key_info(l, KEY, &i);
	m = request(MAD_GET, CC_ATTR_CA_SETTING, 0);
	not_answered(l, 2, &m);
	assert_int_equal(l->f->mads->stats.bad_cc_key, 2);
	now += 4ull * SECOND;
	not_answered(l, 2, &m);
	now += 2ull * SECOND; /* the lease is over */
	assert_int_equal(ask(l, 2, &m), MAD_STATUS_OK);
	assert_int_equal(key_info(l, 0).protect_bit, 0);
}
