/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Global Route Header, byte for byte.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/grh.h"

static const struct wire_grh sample = {
	.traffic_class = 0xA5,
	.hop_limit = 64,
	.flow_label = 0xBCDEF,
	.payload_bytes = 0x1234,
	.sgid = { { 0xFE, 0x80, [15] = 1 } },
	.dgid = { { 0xFF, 0x12, 0x40, 0x1B, [15] = 2 } },
};

CASE(the_fields_are_where_the_specification_has_them)
{
	static const uint8_t head[8] = { 0x6A, 0x5B, 0xCD, 0xEF, 0x12, 0x34, 0x1B, 64 };
	uint8_t raw[IB_GRH_BYTES];

	memset(raw, 0xEE, sizeof(raw));
	wire_grh_encode(&sample, raw);
	assert_memory_equal(raw, head, sizeof(head));
	assert_memory_equal(raw + 8, sample.sgid.raw, 16);
	assert_memory_equal(raw + 24, sample.dgid.raw, 16);
}

CASE(what_was_encoded_decodes)
{
	uint8_t raw[IB_GRH_BYTES];
	struct wire_grh grh;

	wire_grh_encode(&sample, raw);
	wire_grh_decode(raw, &grh);
	assert_int_equal(grh.traffic_class, sample.traffic_class);
	assert_int_equal(grh.hop_limit, sample.hop_limit);
	assert_int_equal(grh.flow_label, sample.flow_label);
	assert_int_equal(grh.payload_bytes, sample.payload_bytes);
	assert_memory_equal(&grh.sgid, &sample.sgid, 16);
	assert_memory_equal(&grh.dgid, &sample.dgid, 16);
}

CASE(a_flow_label_of_more_than_20_bits_spills_nowhere)
{
	struct wire_grh grh = { .traffic_class = 0, .flow_label = 0xFFFFFFFF };
	uint8_t raw[IB_GRH_BYTES];

	wire_grh_encode(&grh, raw);
	wire_grh_decode(raw, &grh);
	assert_int_equal(grh.traffic_class, 0);
	assert_int_equal(grh.flow_label, 0xFFFFF);
	assert_int_equal(raw[0] >> 4, 6);
}

CASE(the_payload_length_counts_headers_padding_and_crc)
{
	static const struct {
		uint32_t message;
		int immediate;
		uint16_t bytes;
	} row[] = { { 0, 0, 24 }, { 1, 0, 28 }, { 4, 0, 28 },
		    { 5, 0, 32 }, { 0, 1, 28 }, { 4096, 1, 4124 } };

	for (size_t i = 0; EACH_ROW(i, row); i++)
		assert_int_equal(wire_grh_ud_payload(row[i].message, row[i].immediate),
		                 row[i].bytes);
}
