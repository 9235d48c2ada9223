/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transport headers of a packet, from the BTH to the payload (InfiniBand specification
 * volume 1, sections 9.2 and 9.3; annex A14.4.1 for the XRCETH; annex A19 for the FETH). The opcode
 * says which headers a packet has: one pair of functions encodes and decodes the headers of any
 * opcode in the table of opcode.h. Fields are in host order unless a comment says otherwise. Pure
 * functions.
 */
#ifndef WIRE_HEADERS_H
#define WIRE_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/opcode.h"

#define WIRE_ICRC_BYTES 4

/* The headers of the opcode that has most: atomic operations of XRC. */
#define WIRE_HEADERS_MAX_BYTES (WIRE_BTH_BYTES + WIRE_XRCETH_BYTES + WIRE_ATOMICETH_BYTES)

#define WIRE_BTH_VERSION 0 /* TVer */
#define WIRE_PSN_BITS    24
#define WIRE_PSN_MASK    0xFFFFFFu

struct wire_bth {
	uint8_t opcode;
	uint8_t pad;     /* bytes after the payload, 0 to 3 */
	uint8_t version; /* 4 bits */
	bool solicited, migrated;
	bool fecn, becn; /* RoCEv2 has these in the IP header; the ICRC does not cover them */
	bool ack_requested;
	uint16_t pkey;
	uint32_t dest_qpn; /* 24 bits */
	uint32_t psn;      /* 24 bits */
};

struct wire_deth {
	uint32_t qkey;
	uint32_t src_qpn; /* 24 bits */
};

/* Which of them a FLUSH concerns: bits of enum ibv_placement_type, and an enum
 * ibv_selectivity_level. */
struct wire_feth {
	uint8_t placement;   /* 4 bits */
	uint8_t selectivity; /* 2 bits */
	uint8_t rxe_icrc;    /* bool, none of the header's fields: see wire_roce_build() */
};

struct wire_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_length; /* bytes */
};

struct wire_atomiceth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_or_add, compare;
};

/* Bits 6 and 5 of an AETH's syndrome (section 9.7.5.2.4, table 44). The others are the credits of
 * an ACK, of which all ones say nothing; the timer of an RNR NAK; the code of a NAK (table 46). */
enum wire_aeth_kind { WIRE_AETH_ACK = 0, WIRE_AETH_RNR = 1, WIRE_AETH_NAK = 3 };
#define WIRE_AETH_SYNDROME(kind, value) ((uint8_t)((kind) << 5 | (value)))
#define WIRE_AETH_NO_CREDITS            31

/* The credits of an ACK, as section 9.7.7.2 encodes them: 0, 1, 2, 3, 4, 6, 8, 12, 16, and so on up
 * to 32,768. The code of the largest such number that is not above @n; and the number of a code
 * that is not WIRE_AETH_NO_CREDITS. */
unsigned wire_credits_encode(uint32_t n);
uint32_t wire_credits_decode(unsigned code);

/* Codes of a NAK. */
enum wire_nak {
	WIRE_NAK_SEQUENCE,
	WIRE_NAK_INVALID_REQUEST,
	WIRE_NAK_REMOTE_ACCESS,
	WIRE_NAK_REMOTE_OPERATION,
	WIRE_NAK_INVALID_RD_REQUEST,
};

struct wire_aeth {
	uint8_t syndrome;
	uint32_t msn; /* 24 bits */
};

/* All headers that a packet may have. Only those of its opcode are valid. */
struct wire_headers {
	struct wire_bth bth;
	struct wire_deth deth;
	uint32_t xrc_srqn; /* 24 bits */
	union {
		struct wire_reth reth;
		struct wire_atomiceth atomic;
		struct {
			struct wire_aeth aeth;
			uint64_t atomic_original;
		};
	};
	union {
		uint32_t imm_data; /* network order, as in verbs */
		uint32_t invalidate_rkey;
		struct wire_feth feth;
	};
};

/*
 * Writes the headers of @h->bth.opcode, at most WIRE_HEADERS_MAX_BYTES, to @out. Returns how many
 * bytes; 0: there is no such opcode. A number that is too large for its field loses its high bits.
 */
unsigned wire_headers_encode(const struct wire_headers *h, uint8_t *out);

/*
 * Reads the headers of a packet from the @bytes bytes at @in. Returns how many bytes they have; 0:
 * there is no such opcode, or @bytes is too small; then only the BTH is filled in, if it is there.
 */
unsigned wire_headers_decode(const uint8_t *in, size_t bytes, struct wire_headers *h);

/* The BTH alone. */
void wire_bth_encode(const struct wire_bth *bth, uint8_t out[static WIRE_BTH_BYTES]);
void wire_bth_decode(const uint8_t in[static WIRE_BTH_BYTES], struct wire_bth *bth);

#endif
