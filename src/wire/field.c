/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encoding, decoding and matching by table: see field.h.
 */
#include <string.h>

#include "wire/field.h"

/* Reads the bits byte by byte: of each byte those that belong to the field. */
static uint64_t get_bits(const uint8_t *wire, unsigned bit, unsigned width)
{
	uint64_t v = 0;

	while (width) {
		unsigned left = 8 - bit % 8;
		unsigned n = width < left ? width : left;

		v = v << n | (wire[bit / 8] >> (left - n) & ((1u << n) - 1));
		bit += n;
		width -= n;
	}
	return v;
}

/* Writes @width bits, which must be 0 before. */
static void put_bits(uint8_t *wire, unsigned bit, unsigned width, uint64_t v)
{
	while (width) {
		unsigned left = 8 - bit % 8;
		unsigned n = width < left ? width : left;

		width -= n;
		wire[bit / 8] |= (v >> width & ((1u << n) - 1)) << (left - n);
		bit += n;
	}
}

static uint64_t load(const uint8_t *host, unsigned size)
{
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (size) {
	case 1:
		return *host;
	case 2:
		memcpy(&v16, host, 2);
		return v16;
	case 4:
		memcpy(&v32, host, 4);
		return v32;
	default:
		memcpy(&v64, host, 8);
		return v64;
	}
}

static void store(uint8_t *host, unsigned size, uint64_t v)
{
	uint16_t v16 = v;
	uint32_t v32 = v;

	switch (size) {
	case 1:
		*host = v;
		break;
	case 2:
		memcpy(host, &v16, 2);
		break;
	case 4:
		memcpy(host, &v32, 4);
		break;
	default:
		memcpy(host, &v, 8);
		break;
	}
}

static bool is_bytes(const struct wire_field *f)
{
	return !f->nested && f->size == 1 && f->width == 8 && f->bit % 8 == 0;
}

static void encode_field(const struct wire_field *f, const uint8_t *host, uint8_t *wire)
{
	if (is_bytes(f)) {
		memcpy(wire + f->bit / 8, host, f->count);
		return;
	}
	for (unsigned i = 0; i < f->count; i++, host += f->size) {
		unsigned bit = f->bit + i * f->width;

		if (f->nested)
			wire_encode(f->nested, host, wire + bit / 8);
		else
			put_bits(wire, bit, f->width, load(host, f->size));
	}
}

void wire_encode(const struct wire_layout *layout, const void *host, uint8_t *wire)
{
	memset(wire, 0, layout->bytes);
	for (unsigned i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];

		if (f->size)
			encode_field(f, (const uint8_t *)host + f->offset, wire);
	}
}

static void decode_field(const struct wire_field *f, const uint8_t *wire, uint8_t *host)
{
	if (is_bytes(f)) {
		memcpy(host, wire + f->bit / 8, f->count);
		return;
	}
	for (unsigned i = 0; i < f->count; i++, host += f->size) {
		unsigned bit = f->bit + i * f->width;

		if (f->nested)
			wire_decode(f->nested, wire + bit / 8, host);
		else
			store(host, f->size, get_bits(wire, bit, f->width));
	}
}

void wire_decode(const struct wire_layout *layout, const uint8_t *wire, void *host)
{
	memset(host, 0, layout->host_bytes);
	for (unsigned i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];

		if (f->size)
			decode_field(f, wire, (uint8_t *)host + f->offset);
	}
}

/* Whether component number @i of the field is equal in @a and @b. */
static bool same_component(const struct wire_field *f, unsigned i, const uint8_t *a,
                           const uint8_t *b)
{
	size_t bytes = (size_t)f->count * f->size;

	if (f->components == f->count) {
		bytes = f->size;
		a += i * bytes;
		b += i * bytes;
	}
	return memcmp(a, b, bytes) == 0;
}

/* As wire_match(). *@component: the number of the first component; counts up over all fields. */
static bool match(const struct wire_layout *layout, uint64_t mask, const void *a, const void *b,
                  unsigned *component)
{
	for (unsigned i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];
		const uint8_t *in_a = (const uint8_t *)a + f->offset;
		const uint8_t *in_b = (const uint8_t *)b + f->offset;

		if (f->components == 0 && !match(f->nested, mask, in_a, in_b, component))
			return false;
		for (unsigned k = 0; k < f->components; k++, (*component)++)
			if (*component < 64 && (mask & WIRE_COMPONENT(*component)) && f->size &&
			    !same_component(f, k, in_a, in_b))
				return false;
	}
	return true;
}

bool wire_match(const struct wire_layout *layout, uint64_t mask, const void *a, const void *b)
{
	unsigned component = 0;

	return match(layout, mask, a, b, &component);
}
