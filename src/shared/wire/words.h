/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The words of the .def files, which list layouts: headers, attributes and records of the
 * specification. Each has all of its bits, in their order:
 *
 *	#define THIS wire_vl_arb_entry
 *	LAYOUT(2)
 *		RESERVED(4)
 *		INT(4, vl)
 *		INT(8, weight)
 *	END
 *	#undef THIS
 *
 * A .h file declares those of its .def file by
 *
 *	#define LAYOUTS "wire/sm_attr.def"
 *	#include "wire/declare.def"
 *
 * which gives struct wire_vl_arb_entry, with a member for each field, numbers in host order; the
 * constant wire_vl_arb_entry_bytes; the table wire_vl_arb_entry_layout (field.h); the functions
 * wire_vl_arb_entry_encode() and _decode(); and what WIRE_AT() and WIRE_COMPONENTS() need.
 *
 * A word means something else in each pass over a file, of which PASS is the prefix. layouts.c
 * makes the tables so, and tests a list of them. declare.def undefines the words, as their names
 *are short. A file that needs them includes this file once more, after all other headers.
 */
#include <assert.h>

#include "base/util.h"
#include "wire/field.h"
#include "wire/ib.h"

/* ---- the words of a .def file: how long the field is, and the name of the member ---- */

/* @bytes of the encoding. */
#define LAYOUT(bytes) WIRE_WORD(PASS, LAYOUT)(bytes)
#define END           WIRE_WORD(PASS, END)

/* A number of @bits bits. */
#define INT(bits, m) FIELD(wire_u##bits, m, , 1, bits, 1)
/* One that has @comps bits in a component mask. */
#define INT_COMPONENTS(bits, comps, m) FIELD(wire_u##bits, m, , 1, bits, comps)
/* @n numbers of @bits bits: one component; _EACH: one component for each. */
#define ARRAY(bits, n, m)      FIELD(wire_u##bits, m, [n], n, bits, 1)
#define ARRAY_EACH(bits, n, m) FIELD(wire_u##bits, m, [n], n, bits, n)
/* @n bytes. */
#define BYTES(n, m) FIELD(uint8_t, m, [n], n, 8, 1)
#define TEXT(n, m)  FIELD(char, m, [n], n, 8, 1)
#define GID(m)      FIELD(struct ib_gid, m, , sizeof(struct ib_gid), 8, 1)
/* All of those: @n numbers of @bits bits in the member @type m@dim. */
#define FIELD(type, m, dim, n, bits, comps) WIRE_WORD(PASS, FIELD)(type, m, dim, n, bits, comps)

/* A struct with a layout of its own; its fields are components. */
#define NESTED(layout, m) WIRE_WORD(PASS, NESTED)(layout, m)
/* @n of them: one component. */
#define NESTED_ARRAY(layout, n, m) WIRE_WORD(PASS, NESTED_ARRAY)(layout, n, m)
/* A struct whose fields lie among others: each is a PART, the number @in.m. */
#define SCATTERED(layout, m) WIRE_WORD(PASS, SCATTERED)(layout, m)
#define PART(bits, in, m)    WIRE_WORD(PASS, PART)(bits, in, m)

/* Bits that are sent as 0 and ignored when received: one component. */
#define RESERVED(bits) WIRE_WORD(PASS, RESERVED)(bits)

/* ---- what they mean, in each pass over the file ---- */

#define WIRE_WORD(pass, word)  WIRE_WORD_(pass, word)
#define WIRE_WORD_(pass, word) pass##word
#define WIRE_JOIN(a, b)        WIRE_JOIN_(a, b)
#define WIRE_JOIN_(a, b)       a##b
#define WIRE_THIS(suffix)      WIRE_JOIN(THIS, suffix)
#define WIRE_UNNAMED           WIRE_JOIN(unnamed_, __COUNTER__)

/* The fields fill the bytes that it says it has. */
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

/* The width of a number; no constant unless it fits into its member, and lies in eight bytes. */
#define WIRE_FIT(at, bits, size) \
	((bits) + 0 * sizeof(char[(bits) <= 8 * (size) && (at) % 8 + (bits) <= 64 ? 1 : -1]))

/* Whole bytes, one number or many octets, are what most fields are. */
#define WIRE_KIND(at, bits, element, n)                                                \
	((at) % 8 || (bits) != 8 * (element) || ((n) > 1 && (element) > 1) ? WIRE_BITS \
	 : (element) == 1 ? (n) > 1 ? WIRE_OCTETS : WIRE_OCTET                         \
	 : (element) == 2 ? WIRE_BE16                                                  \
	 : (element) == 4 ? WIRE_BE32                                                  \
	                  : WIRE_BE64)

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

/* clang-format off */

/* The struct. */
#define WIRE_STRUCT_LAYOUT(bytes)                       struct THIS {
#define WIRE_STRUCT_FIELD(type, m, dim, n, bits, comps)         type m dim;
#define WIRE_STRUCT_NESTED(layout, m)                           struct layout m;
#define WIRE_STRUCT_NESTED_ARRAY(layout, n, m)                  struct layout m[n];
#define WIRE_STRUCT_SCATTERED(layout, m)                        struct layout m;
#define WIRE_STRUCT_PART(bits, in, m)
#define WIRE_STRUCT_RESERVED(bits)
#define WIRE_STRUCT_END                                 };

/* A struct with a char for each bit of the encoding: offsetof() tells where a field begins. */
#define WIRE_BITS_LAYOUT(bytes)                         enum { WIRE_THIS(_bytes) = (bytes) }; \
                                                        struct WIRE_THIS(_bits) {
#define WIRE_BITS_FIELD(type, m, dim, n, bits, comps)           char m[(n) * (bits)];
#define WIRE_BITS_NESTED(layout, m)                             struct layout##_bits m;
#define WIRE_BITS_NESTED_ARRAY(layout, n, m)                    struct layout##_bits m[n];
#define WIRE_BITS_SCATTERED(layout, m)
#define WIRE_BITS_PART(bits, in, m)                             char in##_##m[bits];
#define WIRE_BITS_RESERVED(bits)                                char WIRE_UNNAMED[bits];
#define WIRE_BITS_END                                   };

/* Likewise, a char for each component. And the declarations. */
#define WIRE_COMPONENTS_LAYOUT(bytes)                   struct WIRE_THIS(_components) {
#define WIRE_COMPONENTS_FIELD(type, m, dim, n, bits, comps)     char m[comps];
#define WIRE_COMPONENTS_NESTED(layout, m)                       struct layout##_components m;
#define WIRE_COMPONENTS_NESTED_ARRAY(layout, n, m)              char m[1];
#define WIRE_COMPONENTS_SCATTERED(layout, m)
#define WIRE_COMPONENTS_PART(bits, in, m)                       char in##_##m[1];
#define WIRE_COMPONENTS_RESERVED(bits)                          char WIRE_UNNAMED[1];
#define WIRE_COMPONENTS_END                             }; WIRE_WHOLE(THIS) WIRE_DECLARE(THIS, THIS)

/* The table. */
#define WIRE_TABLE_LAYOUT(bytes)                        static const struct wire_field WIRE_THIS(_fields)[] = {
#define WIRE_TABLE_FIELD(type, m, dim, n, bits, comps)          WIRE_NUMBERS(m, m, n, bits, comps),
#define WIRE_TABLE_NESTED(layout, m)                            WIRE_WITHIN(layout, m, 1, 0),
#define WIRE_TABLE_NESTED_ARRAY(layout, n, m)                   WIRE_WITHIN(layout, m, n, 1),
#define WIRE_TABLE_SCATTERED(layout, m)
#define WIRE_TABLE_PART(bits, in, m)                            WIRE_NUMBERS(in##_##m, in.m, 1, bits, 1),
#define WIRE_TABLE_RESERVED(bits_)                              { .width = (bits_), .count = 1, .components = 1 },
#define WIRE_TABLE_END                                  }; WIRE_DEFINE(THIS, THIS, 0)

/* The address of the table. */
#define WIRE_LIST_LAYOUT(bytes)                         &WIRE_THIS(_layout),
#define WIRE_LIST_FIELD(type, m, dim, n, bits, comps)
#define WIRE_LIST_NESTED(layout, m)
#define WIRE_LIST_NESTED_ARRAY(layout, n, m)
#define WIRE_LIST_SCATTERED(layout, m)
#define WIRE_LIST_PART(bits, in, m)
#define WIRE_LIST_RESERVED(bits)
#define WIRE_LIST_END

/* clang-format on */
