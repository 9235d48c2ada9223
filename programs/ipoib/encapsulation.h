/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The header that IPoIB puts in front of a packet (RFC 4391, section 6), and the link-layer address
 * of an interface (section 9.1.1): in ARP, in neighbour discovery, and in our tables. An IP address
 * is a GID, IPv4 mapped (wire/ip.h). And the private data of requests for connections (RFC 4755).
 * Pure functions.
 */
#ifndef IPOIB_ENCAPSULATION_H
#define IPOIB_ENCAPSULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/ib.h"
#include "wire/ip.h"

#define IPOIB_HEADER_BYTES  4 /* type, 16 reserved bits */
#define IPOIB_ADDRESS_BYTES 20

enum ipoib_type {
	IPOIB_TYPE_IPV4 = 0x0800,
	IPOIB_TYPE_ARP = 0x0806,
	IPOIB_TYPE_IPV6 = 0x86DD,
};

/* Numbers in packets: big endian, at any address. */
static inline uint16_t ipoib_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t ipoib_get32(const uint8_t *at)
{
	return (uint32_t)ipoib_get16(at) << 16 | ipoib_get16(at + 2);
}

static inline void ipoib_put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void ipoib_put32(uint8_t *at, uint32_t value)
{
	ipoib_put16(at, value >> 16);
	ipoib_put16(at + 2, value & 0xFFFF);
}

static inline void ipoib_header_encode(enum ipoib_type type, uint8_t out[static IPOIB_HEADER_BYTES])
{
	ipoib_put16(out, type);
	ipoib_put16(out + 2, 0);
}

/* Flags of an address: connected modes that the interface offers (RFC 4755, section 3.1). */
#define IPOIB_FLAG_RC 0x80

struct ipoib_address {
	struct ib_gid gid;
	uint32_t qpn;
	uint8_t flags;
};

static inline void ipoib_address_encode(const struct ipoib_address *a,
                                        uint8_t out[static IPOIB_ADDRESS_BYTES])
{
	ipoib_put32(out, (uint32_t)a->flags << 24 | (a->qpn & IB_QPN_MASK));
	memcpy(out + 4, a->gid.raw, sizeof(a->gid.raw));
}

static inline void ipoib_address_decode(const uint8_t in[static IPOIB_ADDRESS_BYTES],
                                        struct ipoib_address *a)
{
	a->flags = in[0];
	a->qpn = ipoib_get32(in) & IB_QPN_MASK;
	memcpy(a->gid.raw, in + 4, sizeof(a->gid.raw));
}

/* Whether an interface can have it: a port's GID, and a queue pair that no other class of packets
 * has. */
static inline bool ipoib_address_valid(const struct ipoib_address *a)
{
	return a->qpn > IB_QPN_GSI && a->qpn != IB_QPN_MCAST && !ib_gid_is_zero(&a->gid) &&
	       !ib_gid_is_mcast(&a->gid);
}

static inline bool ipoib_address_equal(const struct ipoib_address *a, const struct ipoib_address *b)
{
	return a->qpn == b->qpn && ib_gid_equal(&a->gid, &b->gid);
}

/* ---- connections ---- */

/* The largest packet by RC, as Linux has it. On the wire its header comes before it. */
#define IPOIB_CONNECTED_MTU   65520
#define IPOIB_CONNECTED_BYTES (IPOIB_HEADER_BYTES + IPOIB_CONNECTED_MTU)

/* The service at which the interface of a UD queue pair hears requests (RFC 4755, section 3.5; the
 * first byte as Linux writes it). */
static inline uint64_t ipoib_service_id(uint32_t qpn)
{
	return 0x1000000000000000 | (qpn & IB_QPN_MASK);
}

/* The interface that asks for a connection or accepts one: private data of REQ and REP (section
 * 6). */
struct ipoib_offer {
	uint32_t qpn;   /* its UD queue pair */
	uint32_t bytes; /* the longest message that it receives, with IPoIB's header */
};

#define IPOIB_OFFER_BYTES 8

static inline void ipoib_offer_encode(const struct ipoib_offer *o,
                                      uint8_t out[static IPOIB_OFFER_BYTES])
{
	ipoib_put32(out, o->qpn & IB_QPN_MASK);
	ipoib_put32(out + 4, o->bytes);
}

static inline void ipoib_offer_decode(const uint8_t in[static IPOIB_OFFER_BYTES],
                                      struct ipoib_offer *o)
{
	o->qpn = ipoib_get32(in) & IB_QPN_MASK;
	o->bytes = ipoib_get32(in + 4);
}

/* Whether a sound interface makes it: it has a queue pair of its own, and receives at least what
 * every link of IPv6 has to carry. */
static inline bool ipoib_offer_valid(const struct ipoib_offer *o)
{
	return o->qpn > IB_QPN_GSI && o->qpn != IB_QPN_MCAST &&
	       o->bytes >= IPOIB_HEADER_BYTES + 1280;
}

/* A message to another node about an IP address: in ARP or in neighbour discovery. */
struct ipoib_solicitation {
	struct ib_gid source;         /* zero: the sender has none yet, and no address either */
	struct ib_gid target;         /* whose link-layer address is asked for, or told */
	struct ipoib_address address; /* of the source, or in an answer of the target */
	bool has_address;
	bool is_answer;
	bool solicited, override; /* flags of an answer */
};

#endif
