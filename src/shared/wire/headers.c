/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encoding and decoding of transport headers: see headers.h.
 */
#include <endian.h>
#include <string.h>

#include "wire/headers.h"

#define MASK_24 0xFFFFFFu

static void put32(uint8_t *to, uint32_t v)
{
	v = htobe32(v);
	memcpy(to, &v, 4);
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, 4);
	return be32toh(v);
}

static void put64(uint8_t *to, uint64_t v)
{
	v = htobe64(v);
	memcpy(to, &v, 8);
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, 8);
	return be64toh(v);
}

void wire_bth_encode(const struct wire_bth *bth, uint8_t out[static WIRE_BTH_BYTES])
{
	out[0] = bth->opcode;
	out[1] = (uint8_t)(bth->solicited << 7 | bth->migrated << 6 | (bth->pad & 3) << 4 |
	                   (bth->version & 0xF));
	out[2] = bth->pkey >> 8;
	out[3] = bth->pkey & 0xFF;
	put32(out + 4,
	      (uint32_t)bth->fecn << 31 | (uint32_t)bth->becn << 30 | (bth->dest_qpn & MASK_24));
	put32(out + 8, (uint32_t)bth->ack_requested << 31 | (bth->psn & MASK_24));
}

void wire_bth_decode(const uint8_t in[static WIRE_BTH_BYTES], struct wire_bth *bth)
{
	uint32_t qpn = get32(in + 4), psn = get32(in + 8);

	*bth = (struct wire_bth){
		.opcode = in[0],
		.solicited = in[1] >> 7,
		.migrated = in[1] >> 6 & 1,
		.pad = in[1] >> 4 & 3,
		.version = in[1] & 0xF,
		.pkey = (uint16_t)(in[2] << 8 | in[3]),
		.fecn = qpn >> 31,
		.becn = qpn >> 30 & 1,
		.dest_qpn = qpn & MASK_24,
		.ack_requested = psn >> 31,
		.psn = psn & MASK_24,
	};
}

/* ---- one function a header and direction; each returns the header's bytes ---- */

static unsigned put_bth(const struct wire_headers *h, uint8_t *out)
{
	wire_bth_encode(&h->bth, out);
	return WIRE_BTH_BYTES;
}

static unsigned get_bth(const uint8_t *in, struct wire_headers *h)
{
	wire_bth_decode(in, &h->bth);
	return WIRE_BTH_BYTES;
}

static unsigned put_deth(const struct wire_headers *h, uint8_t *out)
{
	put32(out, h->deth.qkey);
	put32(out + 4, h->deth.src_qpn & MASK_24);
	return WIRE_DETH_BYTES;
}

static unsigned get_deth(const uint8_t *in, struct wire_headers *h)
{
	h->deth = (struct wire_deth){ .qkey = get32(in), .src_qpn = get32(in + 4) & MASK_24 };
	return WIRE_DETH_BYTES;
}

static unsigned put_xrceth(const struct wire_headers *h, uint8_t *out)
{
	put32(out, h->xrc_srqn & MASK_24);
	return WIRE_XRCETH_BYTES;
}

static unsigned get_xrceth(const uint8_t *in, struct wire_headers *h)
{
	h->xrc_srqn = get32(in) & MASK_24;
	return WIRE_XRCETH_BYTES;
}

static unsigned put_feth(const struct wire_headers *h, uint8_t *out)
{
	put32(out, (h->feth.selectivity & 3u) << 4 | (h->feth.placement & 0xFu));
	return WIRE_FETH_BYTES;
}

static unsigned get_feth(const uint8_t *in, struct wire_headers *h)
{
	/* the other bits are reserved */
	h->feth = (struct wire_feth){ .placement = in[3] & 0xF, .selectivity = in[3] >> 4 & 3 };
	return WIRE_FETH_BYTES;
}

static unsigned put_reth(const struct wire_headers *h, uint8_t *out)
{
	put64(out, h->reth.va);
	put32(out + 8, h->reth.rkey);
	put32(out + 12, h->reth.dma_length);
	return WIRE_RETH_BYTES;
}

static unsigned get_reth(const uint8_t *in, struct wire_headers *h)
{
	h->reth = (struct wire_reth){ .va = get64(in),
		                      .rkey = get32(in + 8),
		                      .dma_length = get32(in + 12) };
	return WIRE_RETH_BYTES;
}

static unsigned put_atomiceth(const struct wire_headers *h, uint8_t *out)
{
	put64(out, h->atomic.va);
	put32(out + 8, h->atomic.rkey);
	put64(out + 12, h->atomic.swap_or_add);
	put64(out + 20, h->atomic.compare);
	return WIRE_ATOMICETH_BYTES;
}

static unsigned get_atomiceth(const uint8_t *in, struct wire_headers *h)
{
	h->atomic = (struct wire_atomiceth){ .va = get64(in),
		                             .rkey = get32(in + 8),
		                             .swap_or_add = get64(in + 12),
		                             .compare = get64(in + 20) };
	return WIRE_ATOMICETH_BYTES;
}

static unsigned put_aeth(const struct wire_headers *h, uint8_t *out)
{
	put32(out, (uint32_t)h->aeth.syndrome << 24 | (h->aeth.msn & MASK_24));
	return WIRE_AETH_BYTES;
}

static unsigned get_aeth(const uint8_t *in, struct wire_headers *h)
{
	h->aeth = (struct wire_aeth){ .syndrome = in[0], .msn = get32(in) & MASK_24 };
	return WIRE_AETH_BYTES;
}

static unsigned put_atomicack(const struct wire_headers *h, uint8_t *out)
{
	put64(out, h->atomic_original);
	return WIRE_ATOMICACK_BYTES;
}

static unsigned get_atomicack(const uint8_t *in, struct wire_headers *h)
{
	h->atomic_original = get64(in);
	return WIRE_ATOMICACK_BYTES;
}

static unsigned put_immdt(const struct wire_headers *h, uint8_t *out)
{
	memcpy(out, &h->imm_data, WIRE_IMMDT_BYTES);
	return WIRE_IMMDT_BYTES;
}

static unsigned get_immdt(const uint8_t *in, struct wire_headers *h)
{
	memcpy(&h->imm_data, in, WIRE_IMMDT_BYTES);
	return WIRE_IMMDT_BYTES;
}

static unsigned put_ieth(const struct wire_headers *h, uint8_t *out)
{
	put32(out, h->invalidate_rkey);
	return WIRE_IETH_BYTES;
}

static unsigned get_ieth(const uint8_t *in, struct wire_headers *h)
{
	h->invalidate_rkey = get32(in);
	return WIRE_IETH_BYTES;
}

/* Indexed by the bit number of enum wire_header. */
static const struct {
	unsigned (*put)(const struct wire_headers *h, uint8_t *out);
	unsigned (*get)(const uint8_t *in, struct wire_headers *h);
} codecs[WIRE_HEADER_KINDS] = {
	{ put_bth, get_bth },   { put_deth, get_deth },           { put_xrceth, get_xrceth },
	{ put_feth, get_feth }, { put_reth, get_reth },           { put_atomiceth, get_atomiceth },
	{ put_aeth, get_aeth }, { put_atomicack, get_atomicack }, { put_immdt, get_immdt },
	{ put_ieth, get_ieth },
};

unsigned wire_headers_encode(const struct wire_headers *h, uint8_t *out)
{
	unsigned bytes = 0;

	for (unsigned left = wire_opcodes[h->bth.opcode].headers; left; left &= left - 1)
		bytes += codecs[__builtin_ctz(left)].put(h, out + bytes);
	return bytes;
}

unsigned wire_headers_decode(const uint8_t *in, size_t bytes, struct wire_headers *h)
{
	const struct wire_opcode *op;
	unsigned done = 0;

	if (bytes < WIRE_BTH_BYTES)
		return 0;
	get_bth(in, h);
	op = &wire_opcodes[h->bth.opcode];
	if (bytes < op->header_bytes)
		return 0;
	for (unsigned left = op->headers; left; left &= left - 1)
		done += codecs[__builtin_ctz(left)].get(in + done, h);
	return done;
}

/* ---- credits: powers of two, and what lies in the middle between two of them ---- */

unsigned wire_credits_encode(uint32_t n)
{
	unsigned log2, code;

	if (n < 2)
		return n;
	log2 = 31 - (unsigned)__builtin_clz(n);
	code = 2 * log2 + (n >> (log2 - 1) & 1);
	return code < WIRE_AETH_NO_CREDITS ? code : WIRE_AETH_NO_CREDITS - 1;
}

uint32_t wire_credits_decode(unsigned code)
{
	return code < 2 ? code : (2 + (code & 1)) << (code / 2 - 1);
}
