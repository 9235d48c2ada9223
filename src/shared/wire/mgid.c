/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MGID mapping: see mgid.h. An MGID is FF, flags and scope, 16 bits of signature, 16 bits of P_Key,
 * then the group ID.
 */
#include <endian.h>
#include <string.h>

#include "wire/mgid.h"

#define FLAG_TRANSIENT 0x10

static void begin(struct ib_gid *mgid, uint16_t signature, uint16_t pkey, bool udp)
{
	memset(mgid, 0, sizeof(*mgid));
	mgid->raw[0] = 0xFF;
	mgid->raw[1] = FLAG_TRANSIENT | WIRE_SCOPE_LINK;
	mgid->raw[2] = signature >> 8;
	mgid->raw[3] = udp ? 0x01 : signature & 0xFF;
	mgid->raw[4] = pkey >> 8;
	mgid->raw[5] = pkey & 0xFF;
}

void wire_mgid_from_ipv4(struct ib_gid *mgid, in_addr_t addr, uint16_t pkey, bool udp)
{
	uint32_t group = htobe32(be32toh(addr) & 0x0FFFFFFF);

	begin(mgid, WIRE_SIGNATURE_IPV4, pkey, udp);
	memcpy(mgid->raw + 12, &group, 4);
}

void wire_mgid_from_ipv6(struct ib_gid *mgid, const struct in6_addr *addr, uint16_t pkey, bool udp)
{
	const uint8_t *a = addr->s6_addr;

	if (a[0] == 0xFF && (a[1] & 0xF0) == FLAG_TRANSIENT && a[2] == (WIRE_SIGNATURE_CM >> 8) &&
	    a[3] == (WIRE_SIGNATURE_CM & 0xFF)) {
		memcpy(mgid->raw, a, 16);
		return;
	}
	begin(mgid, WIRE_SIGNATURE_IPV6, pkey, udp);
	memcpy(mgid->raw + 6, a + 6, 10);
}

void wire_mgid_broadcast(struct ib_gid *mgid, uint16_t pkey)
{
	begin(mgid, WIRE_SIGNATURE_IPV4, pkey, false);
	memset(mgid->raw + 12, 0xFF, 4); /* all 32 bits; of a group only 28 are used */
}
