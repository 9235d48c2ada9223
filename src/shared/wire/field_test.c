/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encoding by tables; and all tables of src/shared/wire: each has every bit once and every byte of
 * the struct at most once, and no input makes it leave its bounds. ibmad_test.c, ib_types_test.c
 * and cm_mad_test.c check that the fields are in the right places.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <harness.h>

#include <stdlib.h>
#include <string.h>

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

static void each_field_follows_the_one_before_it(void **state)
{
	(void)state;
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

static void fields_keep_to_their_part_of_the_struct(void **state)
{
	(void)state;
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

static void of_any_bytes_the_defined_bits_come_back(void **state)
{
	(void)state;
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

static void any_struct_encodes_to_what_decodes_to_the_same_bytes(void **state)
{
	(void)state;
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

static void decoding_writes_the_whole_struct(void **state)
{
	(void)state;
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

static void numbers_are_big_endian_from_the_high_bit_down(void **state)
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

	(void)state;
	wire_sample_encode(&sample, out);
	assert_memory_equal(out, bytes, sizeof(bytes));
	wire_sample_decode(out, &back);
	assert_int_equal(back.long_one, sample.long_one);
	assert_int_equal(back.twenty, sample.twenty);
}

static void a_number_too_large_spills_nowhere(void **state)
{
	static const struct wire_sample sample = { .one = 0xFE, .twenty = 0xFFF00000 };
	static const uint8_t zero[wire_sample_bytes];
	uint8_t out[wire_sample_bytes];

	(void)state;
	wire_sample_encode(&sample, out);
	assert_memory_equal(out, zero, sizeof(zero));
}

static void reserved_bits_are_ignored_and_sent_as_zero(void **state)
{
	static const uint8_t reserved[wire_sample_bytes] = { [1] = 0xF0, [4] = 0xF0, [16] = 0xFF };
	static const uint8_t zero[wire_sample_bytes];
	static const struct wire_sample none;
	uint8_t out[wire_sample_bytes];
	struct wire_sample sample;

	(void)state;
	wire_sample_decode(reserved, &sample);
	assert_memory_equal(&sample, &none, sizeof(none));
	wire_sample_encode(&sample, out);
	assert_memory_equal(out, zero, sizeof(zero));
}

static bool sample_match(uint64_t mask, const struct wire_sample *a, const struct wire_sample *b)
{
	return wire_match(&wire_sample_layout, mask, a, b);
}

static void only_the_components_of_the_mask_are_compared(void **state)
{
	struct wire_sample a = { .seven = 1, .pair = { 1, 2 } };
	struct wire_sample b = { .seven = 2, .pair = { 1, 3 } };

	(void)state;
	assert_true(sample_match(0, &a, &b));
	assert_true(sample_match(WIRE_COMPONENT(0) | WIRE_COMPONENT(3), &a, &b));
	assert_false(sample_match(WIRE_COMPONENT(1), &a, &b));
	assert_true(sample_match(WIRE_COMPONENT(6), &a, &b));
	assert_false(sample_match(WIRE_COMPONENT(7), &a, &b));
}

static void mask_bits_for_nothing_match_anything(void **state)
{
	struct wire_sample a, b;

	(void)state;
	memset(&a, 1, sizeof(a));
	memset(&b, 2, sizeof(b));
	assert_true(
	        sample_match(WIRE_COMPONENT(2) | WIRE_COMPONENT(4) | WIRE_COMPONENT(8), &a, &b));
	assert_true(sample_match(~UINT64_C(0) << 9, &a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_follows_the_one_before_it),
		cmocka_unit_test(fields_keep_to_their_part_of_the_struct),
		cmocka_unit_test(of_any_bytes_the_defined_bits_come_back),
		cmocka_unit_test(any_struct_encodes_to_what_decodes_to_the_same_bytes),
		cmocka_unit_test(decoding_writes_the_whole_struct),
		cmocka_unit_test(numbers_are_big_endian_from_the_high_bit_down),
		cmocka_unit_test(a_number_too_large_spills_nowhere),
		cmocka_unit_test(reserved_bits_are_ignored_and_sent_as_zero),
		cmocka_unit_test(only_the_components_of_the_mask_are_compared),
		cmocka_unit_test(mask_bits_for_nothing_match_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
