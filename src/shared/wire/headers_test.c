/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The headers of packets, byte by byte, and the table of opcodes that says which ones a packet has.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/headers.h"

/* The bytes of immediate data 0x04030201 as it lies in a little-endian host's memory. */
#define IMM_BYTES 1, 2, 3, 4

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

CASE(the_fields_are_where_the_specification_has_them)
{
	uint8_t raw[WIRE_BTH_BYTES];

	wire_bth_encode(&sample, raw);
	assert_memory_equal(raw, sample_bytes, sizeof(raw));
}

CASE(a_bth_that_was_encoded_decodes)
{
	struct wire_bth bth;

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

CASE(each_flag_has_a_bit_of_its_own)
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

	for (size_t i = 0; EACH_ROW(i, row); i++) {
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

CASE(numbers_too_large_spill_nowhere)
{
	const struct wire_bth bth = { .dest_qpn = 0xFF000001, .psn = 0xFF000002 };
	static const uint8_t expected[] = { [7] = 1, [11] = 2 };
	uint8_t raw[WIRE_BTH_BYTES];

	wire_bth_encode(&bth, raw);
	assert_memory_equal(raw, expected, sizeof(expected));
}

/* The headers behind the BTH of each kind of packet, as the specification draws them. */
CASE(headers_follow_in_the_order_of_the_specification)
{
	static const struct {
		struct wire_headers h;
		uint8_t bytes[WIRE_HEADERS_MAX_BYTES - WIRE_BTH_BYTES];
		unsigned n;
	} row[] = {
		{ { .bth.opcode = WIRE_OPCODE_UD_SEND_ONLY,
		    .deth = { .qkey = 0x80010000, .src_qpn = 0xFF123456 } },
		  { 0x80, 0x01, 0, 0, 0, 0x12, 0x34, 0x56 },
		  8 },
		{ { .bth.opcode = WIRE_OPCODE_UD_SEND_ONLY_IMM,
		    .deth = { .qkey = 1, .src_qpn = 2 },
		    .imm_data = 0x04030201 },
		  { 0, 0, 0, 1, 0, 0, 0, 2, IMM_BYTES },
		  12 },
		{ { .bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_SEND_MIDDLE) }, { 0 }, 0 },
		{ { .bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_UC, WIRE_WRITE_ONLY_IMM),
		    .reth = { .va = 0x0102030405060708, .rkey = 0x11121314, .dma_length = 0x21 },
		    .imm_data = 0x04030201 },
		  { 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 0x21, IMM_BYTES },
		  20 },
		{ { .bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_XRC, WIRE_COMPARE_SWAP),
		    .xrc_srqn = 0xFF0A0B0C,
		    .atomic = { .va = 1, .rkey = 2, .swap_or_add = 3, .compare = 4 } },
		  { 0, 0x0A, 0x0B, 0x0C, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2,
		    0, 0,    0,    0,    0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4 },
		  32 },
		{ { .bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_FLUSH),
		    .feth = { .placement = 0xF3, .selectivity = 0xFD },
		    .reth = { .va = 0x0102030405060708, .rkey = 0x11121314, .dma_length = 0x21 } },
		  { 0, 0, 0, 0x13, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 0x21 },
		  20 },
		{ { .bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_ATOMIC_WRITE),
		    .reth = { .va = 1, .rkey = 2, .dma_length = 8 } },
		  { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 8 },
		  16 },
		{ { .bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_ATOMIC_ACKNOWLEDGE),
		    .aeth = { .syndrome = 0x1F, .msn = 0xFF040506 },
		    .atomic_original = 0x55 },
		  { 0x1F, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0x55 },
		  12 },
		{ { .bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_SEND_LAST_INVALIDATE),
		    .invalidate_rkey = 0x01020304 },
		  { 1, 2, 3, 4 },
		  4 },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		uint8_t raw[WIRE_HEADERS_MAX_BYTES], again[WIRE_HEADERS_MAX_BYTES];
		unsigned n = WIRE_BTH_BYTES + row[i].n;
		struct wire_headers back = { 0 };

		assert_int_equal(wire_headers_encode(&row[i].h, raw), n);
		assert_memory_equal(raw + WIRE_BTH_BYTES, row[i].bytes, row[i].n);
		assert_int_equal(wire_headers_decode(raw, n, &back), n);
		assert_int_equal(wire_headers_encode(&back, again), n);
		assert_memory_equal(again, raw, n);
		assert_int_equal(wire_headers_decode(raw, n - 1, &back), 0);
	}
}

CASE(every_opcode_encodes_as_many_bytes_as_the_table_says)
{
	unsigned n = 0;

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct wire_opcode *op = &wire_opcodes[opcode];
		const struct wire_headers h = { .bth.opcode = (uint8_t)opcode };
		uint8_t raw[WIRE_HEADERS_MAX_BYTES];

		assert_int_equal(wire_headers_encode(&h, raw), op->header_bytes);
		assert_int_equal(!op->name, !op->header_bytes);
		n += op->name != NULL;
	}
	if (n != 63)
		fail_msg(
		        "%u opcodes have a row; known here are 63: RC 25, UC 12, UD 2, XRC 23, CNP",
		        n);
}

/* The numbers of Linux's ib_pack.h and the specification's table 38. */
CASE(opcodes_have_the_numbers_of_the_specification)
{
	static const struct {
		uint8_t opcode;
		const char *name;
	} row[] = {
		{ 0x00, "RC_SEND_FIRST" },         { 0x0C, "RC_READ_REQUEST" },
		{ 0x10, "RC_READ_RESPONSE_ONLY" }, { 0x11, "RC_ACKNOWLEDGE" },
		{ 0x14, "RC_FETCH_ADD" },          { 0x17, "RC_SEND_ONLY_INVALIDATE" },
		{ 0x2B, "UC_WRITE_ONLY_IMM" },     { 0x64, "UD_SEND_ONLY" },
		{ 0x65, "UD_SEND_ONLY_IMM" },      { 0x81, "CNP" },
		{ 0xB3, "XRC_COMPARE_SWAP" },      { 0x1C, "RC_FLUSH" },
		{ 0x1D, "RC_ATOMIC_WRITE" },
	};

	for (size_t i = 0; EACH_NAMED(i, row, name); i++)
		assert_string_equal(wire_opcodes[row[i].opcode].name, row[i].name);
	assert_null(wire_opcodes[0x15].name);
	assert_null(wire_opcodes[0x2C].name); /* UC has no READ */
	assert_null(wire_opcodes[0x60].name);
}

/* A message is one ONLY packet, or FIRST, any MIDDLE, LAST: whatever begins can end. */
CASE(what_begins_a_message_says_so)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct wire_opcode *op = &wire_opcodes[opcode];

		if (!op->name || opcode == WIRE_OPCODE_CNP)
			continue;
		assert_int_equal(!!strstr(op->name, "_FIRST"),
		                 (op->flags & (WIRE_OPCODE_FIRST | WIRE_OPCODE_LAST)) ==
		                         WIRE_OPCODE_FIRST);
		assert_int_equal(!!strstr(op->name, "_MIDDLE"),
		                 !(op->flags & (WIRE_OPCODE_FIRST | WIRE_OPCODE_LAST)));
		assert_true(!(op->flags & WIRE_OPCODE_REQUEST) !=
		            !(op->flags & WIRE_OPCODE_RESPONSE));
		assert_int_equal(!!strstr(op->name, "_IMM"), !!(op->headers & WIRE_IMMDT));
	}
}

CASE(credits_are_encoded_as_the_specification_has_them)
{
	static const uint32_t table[] = { 0,    1,    2,    3,     4,     6,     8,    12,
		                          16,   24,   32,   48,    64,    96,    128,  192,
		                          256,  384,  512,  768,   1024,  1536,  2048, 3072,
		                          4096, 6144, 8192, 12288, 16384, 24576, 32768 };

	assert_int_equal(ARRAY_SIZE(table), WIRE_AETH_NO_CREDITS);
	for (unsigned code = 0; EACH_ROW(code, table); code++) {
		assert_int_equal(wire_credits_decode(code), table[code]);
		assert_int_equal(wire_credits_encode(table[code]), code);
		if (code)
			assert_int_equal(wire_credits_encode(table[code] - 1), code - 1);
	}
	assert_int_equal(wire_credits_encode(49152), 30);
	assert_int_equal(wire_credits_encode(UINT32_MAX), 30);
}
