/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP packets: see ip_packet.h. Sums are made of words as they are in memory: the internet checksum
 * is the same in either byte order.
 */
#include "ipoib/ip_packet.h"

#define FRAGMENT_MASK 0x3FFF /* more fragments, or an offset */
#define IPV6_FRAGMENT 44

static struct ib_gid gid_of_ipv4(const uint8_t *at)
{
	in_addr_t addr;

	memcpy(&addr, at, sizeof(addr));
	return wire_gid_from_ipv4(addr);
}

static bool parse_ipv4(const uint8_t *d, size_t bytes, struct ipoib_ip *ip)
{
	if (bytes < IPOIB_IPV4_MIN)
		return false;
	ip->type = IPOIB_TYPE_IPV4;
	ip->header = (d[0] & 0xF) * 4u;
	ip->length = ipoib_get16(d + 2);
	ip->protocol = d[9];
	ip->fragment = ipoib_get16(d + 6) & FRAGMENT_MASK;
	ip->source = gid_of_ipv4(d + 12);
	ip->destination = gid_of_ipv4(d + 16);
	return ip->header >= IPOIB_IPV4_MIN && ip->header <= ip->length && ip->length <= bytes;
}

static bool parse_ipv6(const uint8_t *d, size_t bytes, struct ipoib_ip *ip)
{
	if (bytes < IPOIB_IPV6_MIN)
		return false;
	ip->type = IPOIB_TYPE_IPV6;
	ip->header = IPOIB_IPV6_MIN;
	ip->length = IPOIB_IPV6_MIN + ipoib_get16(d + 4);
	ip->protocol = d[6];
	ip->fragment = d[6] == IPV6_FRAGMENT;
	memcpy(ip->source.raw, d + 8, 16);
	memcpy(ip->destination.raw, d + 24, 16);
	return ip->length <= bytes;
}

bool ipoib_ip_parse(const uint8_t *data, size_t bytes, struct ipoib_ip *ip)
{
	if (!bytes)
		return false;
	if (data[0] >> 4 == 4)
		return parse_ipv4(data, bytes, ip);
	return data[0] >> 4 == 6 && parse_ipv6(data, bytes, ip);
}

bool ipoib_ip_destination(const uint8_t *data, size_t bytes, struct ib_gid *destination)
{
	if (bytes >= IPOIB_IPV4_MIN && data[0] >> 4 == 4) {
		*destination = gid_of_ipv4(data + 16);
		return true;
	}
	if (bytes >= IPOIB_IPV6_MIN && data[0] >> 4 == 6) {
		memcpy(destination->raw, data + 24, 16);
		return true;
	}
	return false;
}

/* ---- checksums ---- */

/* Words of 32 bits: 2^32 of them fit into a sum. */
typedef uint64_t lanes __attribute__((vector_size(32)));
/* As they are in a packet: gcc copies bytes to vectors by way of memory, in smaller pieces than it
 * reads there, for which a processor waits. */
typedef uint64_t packed_lanes __attribute__((vector_size(32), aligned(1), may_alias));

#define BLOCK (2 * sizeof(lanes))

/* Compiled for each kind of processor. */
static inline __attribute__((always_inline)) uint64_t sum_blocks(const uint8_t *data, size_t blocks)
{
	lanes low[2] = { { 0 } }, high[2] = { { 0 } };

	for (; blocks; blocks--, data += BLOCK) {
		for (unsigned i = 0; i < 2; i++) {
			const lanes words = ((const packed_lanes *)data)[i];

			low[i] += words & UINT32_MAX;
			high[i] += words >> 32;
		}
	}
	low[0] += low[1] + high[0] + high[1];
	return low[0][0] + low[0][1] + low[0][2] + low[0][3];
}

typedef uint64_t sum_of_blocks(const uint8_t *data, size_t blocks);

static uint64_t on_any(const uint8_t *data, size_t blocks)
{
	return sum_blocks(data, blocks);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static uint64_t with_avx2(const uint8_t *data, size_t blocks)
{
	return sum_blocks(data, blocks);
}

#define ON_THIS (__builtin_cpu_supports("avx2") ? with_avx2 : on_any)
#else
#define ON_THIS on_any
#endif

static inline uint64_t sum_by(sum_of_blocks *way, const uint8_t *data, size_t bytes, uint64_t sum)
{
	size_t blocks = bytes / BLOCK;
	uint32_t last = 0;

	if (blocks)
		sum += way(data, blocks);
	data += blocks * BLOCK;
	for (bytes %= BLOCK; bytes >= 4; data += 4, bytes -= 4) {
		uint32_t word;

		memcpy(&word, data, sizeof(word));
		sum += word;
	}
	memcpy(&last, data, bytes);
	return sum + last;
}

uint64_t ipoib_sum_plainly(const uint8_t *data, size_t bytes, uint64_t sum)
{
	return sum_by(on_any, data, bytes, sum);
}

uint64_t ipoib_sum(const uint8_t *data, size_t bytes, uint64_t sum)
{
	return sum_by(ON_THIS, data, bytes, sum);
}

uint16_t ipoib_fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16 & 0xFFFF) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)((sum & 0xFFFF) + (sum >> 16));
}

uint64_t ipoib_pseudo_sum(const struct ipoib_ip *ip, uint8_t protocol, uint32_t bytes)
{
	bool is_ipv4 = ip->type == IPOIB_TYPE_IPV4;
	uint8_t rest[8];
	uint64_t sum;

	ipoib_put32(rest, bytes);
	ipoib_put32(rest + 4, protocol);
	sum = ipoib_sum(rest, sizeof(rest), 0);
	if (is_ipv4) {
		sum = ipoib_sum(ip->source.raw + 12, 4, sum);
		return ipoib_sum(ip->destination.raw + 12, 4, sum);
	}
	sum = ipoib_sum(ip->source.raw, 16, sum);
	return ipoib_sum(ip->destination.raw, 16, sum);
}

void ipoib_ipv4_checksum(uint8_t *header, unsigned bytes)
{
	uint16_t sum;

	memset(header + 10, 0, 2);
	sum = (uint16_t)~ipoib_fold(ipoib_sum(header, bytes, 0));
	memcpy(header + 10, &sum, sizeof(sum));
}

bool ipoib_transport_is_sound(const struct ipoib_ip *ip, const uint8_t *data, uint32_t bytes)
{
	uint64_t sum = ipoib_pseudo_sum(ip, ip->protocol, bytes);

	return ipoib_fold(ipoib_sum(data, bytes, sum)) == 0xFFFF;
}
