/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariant CRC: see icrc.h.
 *
 * The CRC's register holds a polynomial over GF(2) modulo that of CRC-32, its top bit the
 * coefficient of x^0. A difference of four bytes of message (the first in the low byte) that
 * are followed by n more becomes that difference times x^(8 * (n + 4)); so the way back
 * is to multiply by x^(-8 * (n + 4)). Powers of x repeat after 2^32 - 1, which gives negative
 * ones their meaning. All lengths are whole words of 32 bits: two tables, for the words up to
 * 31 and for 32 at a time, and two multiplications.
 */
#include <endian.h>
#include <assert.h>
#include <isa-l/crc.h>
#include <string.h>

#include "base/util.h"
#include "wire/icrc.h"

#define CRC32_POLYNOMIAL 0xEDB88320u
#define ONES_BYTES       8
#define BTH_RESERVED     4 /* FECN, BECN, six reserved bits */

/* IPv4's bytes behind the word that identification, flags and fragment offset make. */
#define AFTER_ID_BYTES 12

#define NEAR_WORDS 32
#define FAR_WORDS  1024

/* x^(-32 * i) */
static const uint32_t back_near[NEAR_WORDS] = {
	0x80000000, 0x5B358FD3, 0x2E9BB40B, 0x36511375, 0x12A59A49, 0x278D6E4E, 0x21280F27,
	0x24AC08D5, 0x8DF9403D, 0xD50CBCF7, 0xEBD369B3, 0x3C790F42, 0x9D764201, 0x4CC54C19,
	0xE364FE50, 0x6FEF6BF6, 0x5139DE12, 0xBB26D682, 0x1A28419B, 0xB34F4A13, 0x17958E0B,
	0x9887F8D0, 0xA3B110EE, 0xA06CD294, 0xDB1C4863, 0x18760B90, 0xF11D96DD, 0x23744737,
	0xC31EC6B9, 0x1332AF98, 0x6D1A2FF6, 0x16438DE9,
};

/* x^(-32 * NEAR_WORDS * i); the last is that of FAR_WORDS */
static const uint32_t back_far[FAR_WORDS / NEAR_WORDS + 1] = {
	0x80000000, 0xBA340226, 0x29C45641, 0x2C87538C, 0x12FBC105, 0x948E59AF, 0x8B712BC1,
	0x3C4F050E, 0xECD30C55, 0xB856AE08, 0x930588DC, 0x93E27F2F, 0x3C4C471A, 0xBC2E9B14,
	0x25CD5760, 0x401EF0DB, 0x3755EBD8, 0xBB5B9E1E, 0xE264A9E0, 0xE28939FA, 0xC3A68B42,
	0xEE3102B3, 0x219C9D64, 0xAB9EF0A3, 0x75CC86FA, 0x2BDE52B6, 0xEBCCE135, 0x761D3AC8,
	0x84773A36, 0x48D9880A, 0x4E1B970F, 0xDDF1F7E9, 0x24EE460C,
};

uint32_t wire_icrc_add(uint32_t icrc, const void *at, size_t bytes)
{
	return crc32_gzip_refl(icrc, at, bytes);
}

uint32_t wire_icrc_begin(const struct wire_ip *ip, uint16_t udp_payload, const uint8_t *payload,
                         unsigned bytes)
{
	uint8_t head[ONES_BYTES + WIRE_IPV6_BYTES + WIRE_UDP_BYTES + WIRE_ICRC_MAX_BEGIN];
	const uint16_t udp[] = { htobe16(ip->udp_source), htobe16(WIRE_ROCE_UDP_PORT),
		                 htobe16(WIRE_UDP_BYTES + udp_payload), 0xFFFF };
	uint8_t *at = head + ONES_BYTES;

	static_assert(sizeof(udp) == WIRE_UDP_BYTES, "the UDP header");
	memset(head, 0xFF, ONES_BYTES);
	at += wire_ip_encode_masked(ip, udp_payload, at);
	memcpy(at, udp, WIRE_UDP_BYTES);
	at += WIRE_UDP_BYTES;
	memcpy(at, payload, bytes);
	at[BTH_RESERVED] = 0xFF;
	at += bytes;
	return wire_icrc_add(0, head, (size_t)(at - head));
}

/* The product of two polynomials. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (unsigned i = 0; i < 32; i++) {
		product ^= b & -(a >> 31);
		a <<= 1;
		b = b >> 1 ^ (CRC32_POLYNOMIAL & -(b & 1));
	}
	return product;
}

/* What difference of a word @words words before the end, itself counted, makes @difference? */
static uint32_t run_back(uint32_t difference, uint32_t words)
{
	for (; words >= FAR_WORDS; words -= FAR_WORDS)
		difference = multiply(difference, back_far[FAR_WORDS / NEAR_WORDS]);
	difference = multiply(difference, back_far[words / NEAR_WORDS]);
	return multiply(difference, back_near[words % NEAR_WORDS]);
}

bool wire_icrc_find_id(uint32_t difference, uint16_t udp_payload, struct wire_ip *ip)
{
	uint32_t bytes = 4 + AFTER_ID_BYTES + WIRE_UDP_BYTES + udp_payload - WIRE_ICRC_BYTES;
	uint32_t word = htobe32(htole32(run_back(difference, bytes / 4)));

	/* now as the header has it: identification, flags, fragment offset */
	if (word & 0xBFFF)
		return false;
	ip->ipv4_id ^= word >> 16;
	ip->ipv4_fragmentable = word & 0x4000; /* differs from DF set */
	return true;
}
