/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layouts: a table with one line for each field describes the encoding of a header, an attribute
 * or a record of the InfiniBand specification. One function encodes by any table and one decodes,
 * so that a new attribute needs a struct and a table, but no code.
 *
 * A table has every bit in the order of the encoding, reserved bits too. So each field follows the
 * one before it (field_test.c checks this), and the position of a field in the table is its number
 * in the SA's component mask.
 *
 * In a .h file, WIRE_LAYOUT() declares the table, the size and typed functions of struct wire_X;
 * the .c file defines the table between a #define THIS and its #undef. Constant; pure functions.
 */
#ifndef WIRE_FIELD_H
#define WIRE_FIELD_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

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
 * @size bytes, each with the layout @nested; or, if @size is 0, reserved bits.
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
 * callers that interpret them clear their bits, and those of what they select.
 */
bool wire_match(const struct wire_layout *layout, uint64_t mask, const void *a, const void *b);

#define WIRE_COMPONENT(n) (UINT64_C(1) << (n))

/* ---- what words.h makes layouts of .def files of ---- */

/* The byte of the encoding of struct wire_@x in which the field @m begins. */
#define WIRE_AT(x, m) (offsetof(struct wire_##x##_bits, m) / 8)

/* The bits of the field @m of struct wire_@x in a component mask: m[i] has one, m may have many. */
#define WIRE_COMPONENTS(x, m)                                                 \
	((WIRE_COMPONENT(sizeof(((struct wire_##x##_components *)0)->m)) - 1) \
	 << offsetof(struct wire_##x##_components, m))

/* The smallest type for numbers of @bits. */
#define WIRE_NUMBER(bits)                          \
	__typeof__(__builtin_choose_expr(          \
	        (bits) <= 8, (uint8_t)0,           \
	        __builtin_choose_expr(             \
	                (bits) <= 16, (uint16_t)0, \
	                __builtin_choose_expr((bits) <= 32, (uint32_t)0, (uint64_t)0))))

/* Its fields are as many bits as it says that it has bytes. */
#define WIRE_WHOLE(layout) WIRE_WHOLE_(layout)
#define WIRE_WHOLE_(layout) \
	static_assert(sizeof(struct layout##_bits) == 8 * layout##_bytes, #layout);

/* Declares the table @layout_layout and its functions. @host: the tag of the struct. */
#define WIRE_DECLARE(layout, host) WIRE_DECLARE_(layout, host)
#define WIRE_DECLARE_(layout, host)                                                 \
	extern const struct wire_layout layout##_layout;                            \
	static inline void layout##_encode(const struct host *in,                   \
	                                   uint8_t out[static layout##_bytes])      \
	{                                                                           \
		wire_encode(&layout##_layout, in, out);                             \
	}                                                                           \
	static inline void layout##_decode(const uint8_t in[static layout##_bytes], \
	                                   struct host *out)                        \
	{                                                                           \
		wire_decode(&layout##_layout, in, out);                             \
	}

/* Defines the table: the fields of @host but for the last @without. */
#define WIRE_DEFINE(layout, host, without) WIRE_DEFINE_(layout, host, without)
#define WIRE_DEFINE_(layout, host, without)                        \
	const struct wire_layout layout##_layout = {               \
		.name = #layout,                                   \
		.field = host##_fields,                            \
		.n_fields = ARRAY_SIZE(host##_fields) - (without), \
		.bytes = layout##_bytes,                           \
		.host_bytes = sizeof(struct host),                 \
	};

/* The row of @n numbers: struct THIS has them in @m, struct THIS_bits in @place. */
#define WIRE_NUMBERS(place, m, n, bits, comps) \
	WIRE_NUMBERS_AT(offsetof(struct WIRE_THIS(_bits), place), m, n, bits, comps)
#define WIRE_NUMBERS_AT(at, m, n, bits, comps)                                                \
	{                                                                                     \
		.name = #m, .bit = (at), .width = WIRE_FIT(at, bits, WIRE_SIZE(m) / (n)),     \
		.count = (n), .offset = offsetof(struct THIS, m), .size = WIRE_SIZE(m) / (n), \
		.components = (comps), .kind = WIRE_KIND(at, bits, WIRE_SIZE(m) / (n), n)     \
	}
#define WIRE_SIZE(m) sizeof(((struct THIS *)0)->m)

/* The row of @n structs that have a layout. */
#define WIRE_WITHIN(layout, m, n, comps)                                                      \
	{                                                                                     \
		.name = #m, .nested = &layout##_layout,                                       \
		.bit = offsetof(struct WIRE_THIS(_bits), m), .width = 8 * layout##_bytes,     \
		.count = (n), .offset = offsetof(struct THIS, m), .size = WIRE_SIZE(m) / (n), \
		.components = (comps)                                                         \
	}

/* ---- the same for tables of .c files ---- */

/* Declares the table and the encode and decode functions of struct wire_@host, of @size bytes. */
#define WIRE_LAYOUT_OF(name, host, size)                                       \
	extern const struct wire_layout wire_##name##_layout;                  \
	enum { wire_##name##_bytes = (size) };                                 \
	static inline void wire_##name##_encode(const struct wire_##host *in,  \
	                                        uint8_t out[static size])      \
	{                                                                      \
		wire_encode(&wire_##name##_layout, in, out);                   \
	}                                                                      \
	static inline void wire_##name##_decode(const uint8_t in[static size], \
	                                        struct wire_##host *out)       \
	{                                                                      \
		wire_decode(&wire_##name##_layout, in, out);                   \
	}                                                                      \
	struct wire_##host

#define WIRE_LAYOUT(name, size) WIRE_LAYOUT_OF(name, name, size)

/* Defines the layout of struct THIS. @fields: the table, an array. */
#define WIRE_LAYOUT_DEFINE(name_, fields)                  \
	const struct wire_layout wire_##name_##_layout = { \
		.name = #name_,                            \
		.field = (fields),                         \
		.n_fields = ARRAY_SIZE(fields),            \
		.bytes = wire_##name_##_bytes,             \
		.host_bytes = sizeof(THIS),                \
	}

/* The lines of a table. @at: the first bit; @bits: the width of a number; @m: a member of THIS. */
#define WIRE_SIZEOF(m) sizeof(((THIS *)0)->m)
#define WIRE_FIT(at, bits, size) \
	((bits) + 0 * sizeof(char[(bits) <= 8 * (size) && (at) % 8 + (bits) <= 64 ? 1 : -1]))

/* Whole bytes, one number or many octets, are what most fields are. */
#define WIRE_KIND(at, bits, element, n)                                                \
	((at) % 8 || (bits) != 8 * (element) || ((n) > 1 && (element) > 1) ? WIRE_BITS \
	 : (element) == 1 ? (n) > 1 ? WIRE_OCTETS : WIRE_OCTET                         \
	 : (element) == 2 ? WIRE_BE16                                                  \
	 : (element) == 4 ? WIRE_BE32                                                  \
	                  : WIRE_BE64)

#define WIRE_ROW(at, bits, m, element, comps)                                     \
	{                                                                         \
		.name = #m, .bit = (at), .width = WIRE_FIT(at, bits, element),    \
		.count = WIRE_SIZEOF(m) / (element), .offset = offsetof(THIS, m), \
		.size = (element), .components = (comps),                         \
		.kind = WIRE_KIND(at, bits, element, WIRE_SIZEOF(m) / (element))  \
	}

/* A number. */
#define WIRE_INT(at, bits, m) WIRE_ROW(at, bits, m, WIRE_SIZEOF(m), 1)
/* A number that has @comps bits in the component mask. */
#define WIRE_INT_COMPONENTS(at, bits, m, comps) WIRE_ROW(at, bits, m, WIRE_SIZEOF(m), comps)
/* Bytes that are copied: a GID, a path, text. */
#define WIRE_BYTES(at, m) WIRE_ROW(at, 8, m, 1, 1)
/* An array of numbers of @bits each: one component; _EACH: one component for each. */
#define WIRE_ARRAY(at, bits, m) WIRE_ROW(at, bits, m, WIRE_SIZEOF(m[0]), 1)
#define WIRE_ARRAY_EACH(at, bits, m) \
	WIRE_ROW(at, bits, m, WIRE_SIZEOF(m[0]), WIRE_SIZEOF(m) / WIRE_SIZEOF(m[0]))

#define WIRE_STRUCTS(at, m, n, layout_, comps)                                                  \
	{                                                                                       \
		.name = #m, .nested = &wire_##layout_##_layout, .bit = (at),                    \
		.width = 8 * wire_##layout_##_bytes, .count = (n), .offset = offsetof(THIS, m), \
		.size = WIRE_SIZEOF(m) / (n), .components = (comps)                             \
	}
/* A struct with the layout of that name; its fields are components. */
#define WIRE_NESTED(at, m, layout_) WIRE_STRUCTS(at, m, 1, layout_, 0)
/* An array of @n structs, one component. */
#define WIRE_NESTED_ARRAY(at, m, n, layout_) WIRE_STRUCTS(at, m, n, layout_, 1)
/* Reserved bits: sent as 0, ignored when received. */
#define WIRE_RESERVED(at, bits)                                           \
	{                                                                 \
		.bit = (at), .width = (bits), .count = 1, .components = 1 \
	}

#endif
