/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that say that host 192.0.2.H or 2001:db8::H has a link-layer address, to host 192.0.2.1
 * or 2001:db8::1: for programs that send bad ones. Each function returns the bytes, IPoIB's header
 * included.
 */
#ifndef TESTS_IPOIB_CLAIM_H
#define TESTS_IPOIB_CLAIM_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>

#define CLAIM_ADDRESS_BYTES 20
#define CLAIM_BYTES         92 /* of the longest */
#define CLAIM_ARP_BYTES     60

enum claim_kind {
	CLAIM_ARP_REQUEST,
	CLAIM_ARP_REPLY,
	CLAIM_SOLICITATION,
	CLAIM_ADVERTISEMENT,
	CLAIM_KINDS,
};

static inline void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void put_address(uint8_t at[static CLAIM_ADDRESS_BYTES], const union ibv_gid *gid,
                               uint32_t qpn)
{
	put16(at, qpn >> 16);
	put16(at + 2, qpn & 0xFFFF);
	memcpy(at + 4, gid->raw, 16);
}

static inline unsigned claim_arp(uint8_t *p, enum claim_kind kind, uint8_t host,
                                 const uint8_t address[static CLAIM_ADDRESS_BYTES])
{
	memcpy(p, "\x08\x06\0\0\0\x20\x08\0\x14\x04\0", 11);
	p[11] = kind == CLAIM_ARP_REQUEST ? 1 : 2;
	memcpy(p + 12, address, CLAIM_ADDRESS_BYTES);
	memcpy(p + 32, (uint8_t[]){ 192, 0, 2, host }, 4);
	memcpy(p + 36, address, CLAIM_ADDRESS_BYTES);
	memcpy(p + 56, (uint8_t[]){ 192, 0, 2, 1 }, 4);
	return CLAIM_ARP_BYTES;
}

static inline uint16_t claim_checksum(const uint8_t *ip, unsigned bytes)
{
	uint32_t sum = 58 + bytes;

	for (unsigned i = 8; i < 40 + bytes; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)~sum;
}

/* With its checksum. */
static inline unsigned claim_nd(uint8_t *p, enum claim_kind kind, uint8_t host,
                                const uint8_t address[static CLAIM_ADDRESS_BYTES])
{
	static const uint8_t prefix[16] = { 0x20, 0x01, 0x0D, 0xB8 };
	uint8_t *ip = p + 4, *icmp = ip + 40;
	unsigned is_question = kind == CLAIM_SOLICITATION;

	memset(p, 0, CLAIM_BYTES);
	put16(p, 0x86DD);
	ip[0] = 0x60;
	put16(ip + 4, 48);
	ip[6] = 58;
	ip[7] = 255;
	memcpy(ip + 8, prefix, 16);
	memcpy(ip + 24, prefix, 16);
	ip[8 + 15] = host;
	ip[24 + 15] = 1;
	icmp[0] = is_question ? 135 : 136;
	icmp[4] = 0x60;
	memcpy(icmp + 8, is_question ? ip + 24 : ip + 8, 16);
	icmp[24] = is_question ? 1 : 2;
	icmp[25] = 3;
	memcpy(icmp + 28, address, CLAIM_ADDRESS_BYTES);
	put16(icmp + 2, claim_checksum(ip, 48));
	return CLAIM_BYTES;
}

static inline unsigned claim(uint8_t *p, enum claim_kind kind, uint8_t host,
                             const uint8_t address[static CLAIM_ADDRESS_BYTES])
{
	if (kind == CLAIM_ARP_REQUEST || kind == CLAIM_ARP_REPLY)
		return claim_arp(p, kind, host, address);
	return claim_nd(p, kind, host, address);
}

#endif
