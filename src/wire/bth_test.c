/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BTH and DETH, byte for byte.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/util.h"
#include "wire/bth.h"

static const struct wire_bth sample = {
	.opcode = WIRE_OPCODE_UD_SEND_ONLY_IMM,
	.pad = 3,
	.version = 5,
	.solicited = true,
	.pkey = 0x8123,
	.becn = true,
	.dest_qpn = 0xABCDEF,
	.psn = 0x123456,
};

static const uint8_t sample_bytes[] = { 0x65, 0xB5, 0x81, 0x23, 0x40, 0xAB,
	                                0xCD, 0xEF, 0x00, 0x12, 0x34, 0x56 };

static void the_fields_are_where_the_specification_has_them(void **state)
{
	uint8_t raw[WIRE_BTH_BYTES];

	(void)state;
	wire_bth_encode(&sample, raw);
	assert_memory_equal(raw, sample_bytes, sizeof(raw));
}

static void a_bth_that_was_encoded_decodes(void **state)
{
	struct wire_bth bth;

	(void)state;
	wire_bth_decode(sample_bytes, &bth);
	assert_int_equal(bth.opcode, sample.opcode);
	assert_int_equal(bth.pad, sample.pad);
	assert_int_equal(bth.version, sample.version);
	assert_true(bth.solicited);
	assert_false(bth.migrated);
	assert_int_equal(bth.pkey, sample.pkey);
	assert_false(bth.fecn);
	assert_true(bth.becn);
	assert_int_equal(bth.dest_qpn, sample.dest_qpn);
	assert_false(bth.ack_requested);
	assert_int_equal(bth.psn, sample.psn);
}

static void each_flag_has_a_bit_of_its_own(void **state)
{
	static const struct {
		struct wire_bth bth;
		unsigned at;
		uint8_t bit;
	} row[] = { { { .solicited = true }, 1, 0x80 },
		    { { .migrated = true }, 1, 0x40 },
		    { { .fecn = true }, 4, 0x80 },
		    { { .becn = true }, 4, 0x40 },
		    { { .ack_requested = true }, 8, 0x80 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		uint8_t raw[WIRE_BTH_BYTES], expected[WIRE_BTH_BYTES] = { 0 };
		struct wire_bth back;

		expected[row[i].at] = row[i].bit;
		wire_bth_encode(&row[i].bth, raw);
		assert_memory_equal(raw, expected, sizeof(raw));
		wire_bth_decode(raw, &back);
		wire_bth_encode(&back, raw);
		assert_memory_equal(raw, expected, sizeof(raw));
	}
}

static void numbers_too_large_spill_nowhere(void **state)
{
	const struct wire_bth bth = { .dest_qpn = 0xFF000001, .psn = 0xFF000002 };
	static const uint8_t expected[] = { [7] = 1, [11] = 2 };
	uint8_t raw[WIRE_BTH_BYTES];

	(void)state;
	wire_bth_encode(&bth, raw);
	assert_memory_equal(raw, expected, sizeof(expected));
}

static void a_deth_is_q_key_and_source(void **state)
{
	const struct wire_deth deth = { .qkey = 0x80010000, .src_qpn = 0xFF123456 };
	static const uint8_t expected[] = { 0x80, 0x01, 0x00, 0x00, 0x00, 0x12, 0x34, 0x56 };
	uint8_t raw[WIRE_DETH_BYTES];
	struct wire_deth back;

	(void)state;
	wire_deth_encode(&deth, raw);
	assert_memory_equal(raw, expected, sizeof(expected));
	raw[4] = 0x77; /* reserved */
	wire_deth_decode(raw, &back);
	assert_int_equal(back.qkey, 0x80010000);
	assert_int_equal(back.src_qpn, 0x123456);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fields_are_where_the_specification_has_them),
		cmocka_unit_test(a_bth_that_was_encoded_decodes),
		cmocka_unit_test(each_flag_has_a_bit_of_its_own),
		cmocka_unit_test(numbers_too_large_spill_nowhere),
		cmocka_unit_test(a_deth_is_q_key_and_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
