/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layouts: a table with one row for each field describes the encoding of a header, an attribute
 * or a record of the InfiniBand specification. One function encodes by any table and one decodes,
 * so that a new attribute needs no code: it is listed in a .def file (words.h), of which its struct
 * and its table are made.
 *
 * A table has every bit in the order of the encoding, reserved bits too; so the place of a field in
 * it is its number in the SA's component mask. Constant; pure functions.
 */
#ifndef WIRE_FIELD_H
#define WIRE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_layout;

/* How a field is encoded, where there is a shorter way than bit by bit. */
enum wire_kind {
	WIRE_BITS, /* anything */
	WIRE_OCTET,
	WIRE_OCTETS, /* @count */
	WIRE_BE16,
	WIRE_BE32,
	WIRE_BE64,
};

/*
 * Bits [bit, bit + count * width) of the encoding; bit 0 is the most significant bit of byte 0.
 * They are @count numbers, each in @size bytes of the struct in host order; or @count structs of
 * @size bytes, each with the layout @nested; or, if @size is 0, reserved bits, wherever they are.
 */
struct wire_field {
	const char *name; /* the member's; NULL: reserved */
	const struct wire_layout *nested;
	uint16_t bit, width, count;
	uint16_t offset, size;
	uint16_t components; /* bits in a component mask; 0: those of the nested fields */
	uint8_t kind;        /* enum wire_kind */
};

struct wire_layout {
	const char *name;
	const struct wire_field *field;
	uint16_t n_fields;
	uint16_t bytes;      /* of the encoding */
	uint16_t host_bytes; /* sizeof the struct */
};

/*
 * Writes @layout->bytes bytes to @wire. Reserved bits are 0; a number that is too large for its
 * field loses its high bits.
 */
void wire_encode(const struct wire_layout *layout, const void *host, uint8_t *wire);

/* Reads @layout->bytes bytes from @wire. Writes all bytes of the struct, its padding too. */
void wire_decode(const struct wire_layout *layout, const uint8_t *wire, void *host);

/*
 * Whether two structs are equal in the components that @mask names (section 15.4.4). Bits of
 * reserved fields and bits beyond the last field are ignored. Selectors are compared as numbers:
 * a caller that interprets a selector clears the bits of the selector and of the field that it
 * selects.
 */
bool wire_match(const struct wire_layout *layout, uint64_t mask, const void *a, const void *b);

#define WIRE_COMPONENT(n) (UINT64_C(1) << (n))

/* ---- of layouts that a .def file lists (words.h) ---- */

/* Numbers of so many bits. */
typedef uint8_t wire_u1, wire_u2, wire_u3, wire_u4, wire_u5, wire_u6, wire_u7, wire_u8;
typedef uint16_t wire_u9, wire_u10, wire_u11, wire_u12, wire_u13, wire_u14, wire_u15, wire_u16;
typedef uint32_t wire_u17, wire_u18, wire_u19, wire_u20, wire_u21, wire_u22, wire_u23, wire_u24,
        wire_u25, wire_u26, wire_u27, wire_u28, wire_u29, wire_u30, wire_u31, wire_u32;
typedef uint64_t wire_u33, wire_u34, wire_u35, wire_u36, wire_u37, wire_u38, wire_u39, wire_u40,
        wire_u41, wire_u42, wire_u43, wire_u44, wire_u45, wire_u46, wire_u47, wire_u48, wire_u49,
        wire_u50, wire_u51, wire_u52, wire_u53, wire_u54, wire_u55, wire_u56, wire_u57, wire_u58,
        wire_u59, wire_u60, wire_u61, wire_u62, wire_u63, wire_u64;

/* The byte of the encoding of struct wire_@x in which the field @m begins. */
#define WIRE_AT(x, m) (offsetof(struct wire_##x##_bits, m) / 8)

/* The bits of the field @m of struct wire_@x in a component mask: m[i] has one, m may have many. */
#define WIRE_COMPONENTS(x, m)                                                 \
	((WIRE_COMPONENT(sizeof(((struct wire_##x##_components *)0)->m)) - 1) \
	 << offsetof(struct wire_##x##_components, m))

#endif
