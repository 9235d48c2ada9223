/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encoding, decoding and matching by table: see field.h.
 */
#include <endian.h>
#include <string.h>

#include "base/fast.h"
#include "wire/field.h"

static uint64_t mask_of(unsigned width)
{
	return width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX;
}

static uint64_t get_bits(const uint8_t *wire, unsigned bit, unsigned width)
{
	const uint8_t *at = wire + bit / 8;
	unsigned end = bit % 8 + width; /* counted from there */
	uint64_t v = *at++ & 0xFFu >> bit % 8;

	for (; end > 8; end -= 8)
		v = v << 8 | *at++;
	return v >> (8 - end);
}

/* Writes @width bits, which must be 0 before. */
static void put_bits(uint8_t *wire, unsigned bit, unsigned width, uint64_t v)
{
	unsigned end = bit % 8 + width, over = -end % 8; /* bits of the last byte behind them */
	uint8_t *at = wire + (bit + width - 1) / 8;

	v &= mask_of(width);
	*at |= (uint8_t)(v << over);
	for (v >>= 8 - over; at != wire + bit / 8; v >>= 8)
		*--at |= (uint8_t)v;
}

/* Between host order and that of the encoding, either way. */
static void copy_be16(uint8_t *to, const uint8_t *from)
{
	uint16_t v;

	memcpy(&v, from, sizeof(v));
	v = htobe16(v);
	memcpy(to, &v, sizeof(v));
}

static void copy_be32(uint8_t *to, const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	v = htobe32(v);
	memcpy(to, &v, sizeof(v));
}

static void copy_be64(uint8_t *to, const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	v = htobe64(v);
	memcpy(to, &v, sizeof(v));
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

/* Copies a field of whole octets, either way. False: it is none. Each MAD has dozens. */
static BASE_HOT bool copy_whole(const struct wire_field *f, uint8_t *to, const uint8_t *from)
{
	switch (f->kind) {
	case WIRE_OCTET:
		*to = *from;
		return true;
	case WIRE_OCTETS:
		memcpy(to, from, f->count);
		return true;
	case WIRE_BE16:
		copy_be16(to, from);
		return true;
	case WIRE_BE32:
		copy_be32(to, from);
		return true;
	case WIRE_BE64:
		copy_be64(to, from);
		return true;
	default:
		return false;
	}
}

static void encode_bits(const struct wire_field *f, const uint8_t *host, uint8_t *wire)
{
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
		const uint8_t *from = (const uint8_t *)host + f->offset;

		if (f->size && !copy_whole(f, wire + f->bit / 8, from))
			encode_bits(f, from, wire);
	}
}

static void decode_bits(const struct wire_field *f, const uint8_t *wire, uint8_t *host)
{
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
		uint8_t *to = (uint8_t *)host + f->offset;

		if (f->size && !copy_whole(f, to, wire + f->bit / 8))
			decode_bits(f, wire, to);
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
