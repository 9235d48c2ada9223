/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encoding by tables; and all tables of src/shared/wire: each has every bit once and every byte of
 * the struct at most once, and no input makes it leave its bounds. ibmad_test.c, ib_types_test.c
 * and cm_mad_test.c check that the fields are in the right places.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/cc.h"
#include "wire/cm_mad.h"
#include "wire/perf.h"
#include "wire/sa_records.h"

#define ROUNDS 200

#define LAYOUTS "wire/testing_sample.def"
#include "wire/declare.def"

#include "wire/words.h"

#define PASS WIRE_TABLE_
#include "wire/testing_sample.def"
#undef PASS

static const struct wire_layout *const layouts[] = {
#define PASS WIRE_LIST_
#include "wire/all.def"
#include "wire/testing_sample.def"
#undef PASS
	&wire_smp_notice_layout,
};

static void scramble(void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)p)[i] = rand();
}

static bool is_number(size_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

CASE(each_field_follows_the_one_before_it)
{
	for (size_t i = 0; EACH_ROW(i, layouts); i++) {
		const struct wire_layout *l = layouts[i];
		unsigned bit = 0;

		print_message("%s\n", l->name);
		for (unsigned k = 0; k < l->n_fields; k++) {
			if (l->field[k].size) /* reserved bits need no place */
				assert_int_equal(l->field[k].bit, bit);
			bit += l->field[k].width * l->field[k].count;
		}
		assert_int_equal(bit, 8 * l->bytes);
	}
}

CASE(fields_keep_to_their_part_of_the_struct)
{
	for (size_t i = 0; EACH_ROW(i, layouts); i++) {
		const struct wire_layout *l = layouts[i];
		uint8_t *used = test_calloc(l->host_bytes, 1);

		print_message("%s\n", l->name);
		for (unsigned k = 0; k < l->n_fields; k++) {
			const struct wire_field *f = &l->field[k];

			assert_true(f->offset + f->count * f->size <= l->host_bytes);
			for (unsigned b = 0; b < f->count * f->size; b++)
				assert_int_equal(used[f->offset + b]++, 0);
			if (f->nested)
				assert_true(f->size == f->nested->host_bytes && f->bit % 8 == 0);
			else if (f->size)
				assert_true(is_number(f->size) && f->width <= 8 * f->size &&
				            f->bit % 8 + f->width <= 64);
		}
		test_free(used);
	}
}

/* Sets the bits that are not reserved. */
static void meaning(const struct wire_layout *l, uint8_t *wire)
{
	for (unsigned k = 0; k < l->n_fields; k++) {
		const struct wire_field *f = &l->field[k];

		for (unsigned i = 0; i < f->count; i++)
			if (f->nested)
				meaning(f->nested, wire + (f->bit + i * f->width) / 8);
		if (f->nested || !f->size)
			continue;
		for (unsigned i = 0, bit = f->bit; i < (unsigned)f->width * f->count; i++, bit++)
			wire[bit / 8] |= 0x80 >> bit % 8;
	}
}

CASE(of_any_bytes_the_defined_bits_come_back)
{
	for (size_t i = 0; EACH_ROW(i, layouts); i++) {
		const struct wire_layout *l = layouts[i];
		/* of the exact size, so that sanitizers see an overflow */
		uint8_t *in = test_malloc(l->bytes), *out = test_malloc(l->bytes);
		uint8_t *defined = test_calloc(l->bytes, 1);
		void *host = test_malloc(l->host_bytes);

		print_message("%s\n", l->name);
		meaning(l, defined);
		for (unsigned round = 0; round < ROUNDS; round++) {
			scramble(in, l->bytes);
			scramble(out, l->bytes);
			wire_decode(l, in, host);
			wire_encode(l, host, out);
			for (unsigned b = 0; b < l->bytes; b++)
				in[b] &= defined[b];
			assert_memory_equal(in, out, l->bytes);
		}
		test_free(in);
		test_free(out);
		test_free(defined);
		test_free(host);
	}
}

CASE(any_struct_encodes_to_what_decodes_to_the_same_bytes)
{
	for (size_t i = 0; EACH_ROW(i, layouts); i++) {
		const struct wire_layout *l = layouts[i];
		uint8_t *first = test_malloc(l->bytes), *second = test_malloc(l->bytes);
		void *host = test_malloc(l->host_bytes);

		for (unsigned round = 0; round < ROUNDS; round++) {
			scramble(host, l->host_bytes); /* numbers too large for their fields */
			wire_encode(l, host, first);
			wire_decode(l, first, host);
			wire_encode(l, host, second);
			assert_memory_equal(first, second, l->bytes);
		}
		test_free(first);
		test_free(second);
		test_free(host);
	}
}

CASE(decoding_writes_the_whole_struct)
{
	for (size_t i = 0; EACH_ROW(i, layouts); i++) {
		const struct wire_layout *l = layouts[i];
		uint8_t *in = test_malloc(l->bytes);
		uint8_t *a = test_malloc(l->host_bytes), *b = test_malloc(l->host_bytes);

		scramble(in, l->bytes);
		memset(a, 0x55, l->host_bytes);
		memset(b, 0xAA, l->host_bytes);
		wire_decode(l, in, a);
		wire_decode(l, in, b);
		assert_memory_equal(a, b, l->host_bytes);
		test_free(in);
		test_free(a);
		test_free(b);
	}
}

CASE(numbers_are_big_endian_from_the_high_bit_down)
{
	static const struct wire_sample sample = { .one = 1,
		                                   .seven = 0x23,
		                                   .twenty = 0x45678,
		                                   .long_one = 0x123456789ABCDEF,
		                                   .pair = { 0x0102, 0x0304 } };
	static const uint8_t bytes[] = { 0xA3, 0x04, 0x56, 0x78, 0x01, 0x23, 0x45, 0x67, 0x89,
		                         0xAB, 0xCD, 0xEF, 0x01, 0x02, 0x03, 0x04, 0x00 };
	uint8_t out[sizeof(bytes)];
	struct wire_sample back;

	wire_sample_encode(&sample, out);
	assert_memory_equal(out, bytes, sizeof(bytes));
	wire_sample_decode(out, &back);
	assert_int_equal(back.long_one, sample.long_one);
	assert_int_equal(back.twenty, sample.twenty);
}

CASE(a_number_too_large_spills_nowhere)
{
	static const struct wire_sample sample = { .one = 0xFE, .twenty = 0xFFF00000 };
	static const uint8_t zero[wire_sample_bytes];
	uint8_t out[wire_sample_bytes];

	wire_sample_encode(&sample, out);
	assert_memory_equal(out, zero, sizeof(zero));
}

CASE(reserved_bits_are_ignored_and_sent_as_zero)
{
	static const uint8_t reserved[wire_sample_bytes] = { [1] = 0xF0, [4] = 0xF0, [16] = 0xFF };
	static const uint8_t zero[wire_sample_bytes];
	static const struct wire_sample none;
	uint8_t out[wire_sample_bytes];
	struct wire_sample sample;

	wire_sample_decode(reserved, &sample);
	assert_memory_equal(&sample, &none, sizeof(none));
	wire_sample_encode(&sample, out);
	assert_memory_equal(out, zero, sizeof(zero));
}

static bool sample_match(uint64_t mask, const struct wire_sample *a, const struct wire_sample *b)
{
	return wire_match(&wire_sample_layout, mask, a, b);
}

CASE(only_the_components_of_the_mask_are_compared)
{
	struct wire_sample a = { .seven = 1, .pair = { 1, 2 } };
	struct wire_sample b = { .seven = 2, .pair = { 1, 3 } };

	assert_true(sample_match(0, &a, &b));
	assert_true(sample_match(WIRE_COMPONENT(0) | WIRE_COMPONENT(3), &a, &b));
	assert_false(sample_match(WIRE_COMPONENT(1), &a, &b));
	assert_true(sample_match(WIRE_COMPONENT(6), &a, &b));
	assert_false(sample_match(WIRE_COMPONENT(7), &a, &b));
}

CASE(mask_bits_for_nothing_match_anything)
{
	struct wire_sample a, b;

	memset(&a, 1, sizeof(a));
	memset(&b, 2, sizeof(b));
	assert_true(
	        sample_match(WIRE_COMPONENT(2) | WIRE_COMPONENT(4) | WIRE_COMPONENT(8), &a, &b));
	assert_true(sample_match(~UINT64_C(0) << 9, &a, &b));
}
