/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCEv2's invariant CRC, for tests only: InfiniBand specification volume 1, annex A17.3.3,
 * written down a second time, bit by bit. Nothing of Umbel's is used, which is held against it.
 */
#ifndef ROCE_ICRC_H
#define ROCE_ICRC_H

#include <stdint.h>
#include <string.h>

#define ROCE_PORT 4791

static inline uint32_t roce_crc32(uint32_t crc, const uint8_t *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/*
 * The ICRC of the packet whose IP header is at @ip, UDP header at @udp, and ICRC field, which
 * is left out, at @end. Overwrites what may change on the way, with ones.
 */
static inline uint32_t roce_icrc(uint8_t *ip, uint8_t *udp, const uint8_t *end)
{
	static const uint8_t lrh[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint32_t crc;

	if (ip[0] >> 4 == 4) {
		ip[1] = 0xff;             /* type of service */
		ip[8] = 0xff;             /* time to live */
		memset(ip + 10, 0xff, 2); /* checksum */
	} else {
		ip[0] |= 0xf;            /* traffic class, flow label */
		memset(ip + 1, 0xff, 3); /* likewise */
		ip[7] = 0xff;            /* hop limit */
	}
	memset(udp + 6, 0xff, 2); /* checksum */
	udp[8 + 4] = 0xff;        /* BTH: FECN, BECN, reserved */
	crc = roce_crc32(UINT32_MAX, lrh, sizeof(lrh));
	return ~roce_crc32(crc, ip, (uint32_t)(end - ip));
}

#endif
