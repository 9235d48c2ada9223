/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets for the tests of this folder.
 */
#ifndef IPOIB_TESTING_H
#define IPOIB_TESTING_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ipoib/ip_packet.h"
#include "ipoib/tcp.h"

/* The GID of an address as text, of either family. */
static inline struct ib_gid testing_ip(const char *text)
{
	struct ib_gid gid;
	in_addr_t ipv4;

	if (inet_pton(AF_INET, text, &ipv4) == 1)
		return wire_gid_from_ipv4(ipv4);
	if (inet_pton(AF_INET6, text, gid.raw) != 1)
		abort();
	return gid;
}

/* The checksum of RFC 1071 in the plainest way: 16 bits after the other. */
static inline uint16_t testing_checksum(const uint8_t *data, size_t bytes, uint32_t sum)
{
	for (size_t i = 0; i < bytes; i++)
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The remainder of the checksum of a TCP packet, whose IPv4 header has no options: 0, if it is
 * right. */
static inline uint16_t testing_tcp_remainder(const uint8_t *p)
{
	bool is_ipv4 = p[0] >> 4 == 4;
	unsigned header = is_ipv4 ? 20 : 40;
	unsigned bytes = is_ipv4 ? ipoib_get16(p + 2) - header : ipoib_get16(p + 4);
	uint32_t sum = IPOIB_TCP + bytes;

	for (unsigned i = is_ipv4 ? 12 : 8; i < header; i += 2)
		sum += ipoib_get16(p + i);
	return testing_checksum(p + header, bytes, sum);
}

struct testing_tcp {
	const char *source, *destination;
	uint32_t sequence;
	uint8_t flags;
	unsigned options, payload; /* bytes */
};

/* Writes a TCP packet with its checksums to @p; the payload's bytes count from the sequence number.
 * Returns its bytes. */
static inline unsigned testing_tcp_packet(const struct testing_tcp *t, uint8_t *p)
{
	struct ib_gid source = testing_ip(t->source), destination = testing_ip(t->destination);
	bool is_ipv4 = wire_gid_is_ipv4(&source);
	unsigned header = is_ipv4 ? 20 : 40, tcp_header = 20 + t->options;
	unsigned bytes = header + tcp_header + t->payload;
	uint8_t *tcp = p + header;

	memset(p, 0, header + tcp_header);
	if (is_ipv4) {
		p[0] = 0x45;
		ipoib_put16(p + 2, bytes);
		ipoib_put16(p + 4, 0xFFFE);
		p[6] = 0x40;
		p[8] = 64;
		p[9] = IPOIB_TCP;
		memcpy(p + 12, source.raw + 12, 4);
		memcpy(p + 16, destination.raw + 12, 4);
		ipoib_put16(p + 10, testing_checksum(p, 20, 0));
	} else {
		p[0] = 0x60;
		ipoib_put16(p + 4, bytes - header);
		p[6] = IPOIB_TCP;
		p[7] = 64;
		memcpy(p + 8, source.raw, 16);
		memcpy(p + 24, destination.raw, 16);
	}
	ipoib_put32(tcp, 40000u << 16 | 5201);
	ipoib_put32(tcp + TCP_AT_SEQUENCE, t->sequence);
	ipoib_put32(tcp + TCP_AT_ACK, 7);
	tcp[TCP_AT_OFFSET] = (uint8_t)(tcp_header / 4 << 4);
	tcp[TCP_AT_FLAGS] = t->flags;
	ipoib_put16(tcp + 14, 500);
	memset(tcp + 20, 1, t->options);
	for (unsigned i = 0; i < t->payload; i++)
		tcp[tcp_header + i] = (uint8_t)((t->sequence + i) * 7 + ((t->sequence + i) >> 8));
	ipoib_put16(tcp + TCP_AT_CHECKSUM, testing_tcp_remainder(p));
	return bytes;
}

#endif
