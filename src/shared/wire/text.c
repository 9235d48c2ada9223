/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GIDs and addresses as text: see text.h.
 */
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <string.h>

#include "wire/ip.h"
#include "wire/mgid.h"
#include "wire/text.h"

#define DEFAULT_PKEY 0xFFFF

const char *wire_gid_format(const void *gid, char text[static WIRE_TEXT])
{
	return inet_ntop(AF_INET6, gid, text, WIRE_TEXT);
}

bool wire_mgid_parse(const char *text, struct ib_gid *mgid)
{
	return inet_pton(AF_INET6, text, mgid->raw) == 1 && ib_gid_is_mcast(mgid);
}

/* Whether it is an MGID that stands for an IP address, or one that an SA made. */
static bool has_signature(const struct ib_gid *mgid)
{
	switch (mgid->raw[2] << 8 | mgid->raw[3]) {
	case WIRE_SIGNATURE_IPV4:
	case WIRE_SIGNATURE_IPV6:
	case WIRE_SIGNATURE_CM:
	case WIRE_SIGNATURE_IPV4_UDP:
	case WIRE_SIGNATURE_IPV6_UDP:
		return true;
	default:
		return false;
	}
}

unsigned wire_group_gids(const char *text, struct ib_gid gid[static WIRE_GROUP_GIDS])
{
	struct in6_addr ipv6;
	struct in_addr ipv4;

	if (inet_pton(AF_INET, text, &ipv4) == 1) {
		gid[0] = wire_gid_from_ipv4(ipv4.s_addr);
	} else if (inet_pton(AF_INET6, text, &ipv6) == 1) {
		memcpy(gid[0].raw, ipv6.s6_addr, sizeof(gid[0].raw));
		ipv4.s_addr = ipv6.s6_addr32[3];
	} else {
		return 0;
	}
	if (!wire_gid_is_ip_mcast(&gid[0]))
		return 0;
	if (wire_gid_is_ipv4(&gid[0])) {
		wire_mgid_from_ipv4(&gid[1], ipv4.s_addr, DEFAULT_PKEY, true);
		wire_mgid_from_ipv4(&gid[2], ipv4.s_addr, DEFAULT_PKEY, false);
		return 3;
	}
	if (has_signature(&gid[0]))
		return 1;
	wire_mgid_from_ipv6(&gid[1], &ipv6, DEFAULT_PKEY, true);
	wire_mgid_from_ipv6(&gid[2], &ipv6, DEFAULT_PKEY, false);
	return 3;
}

const char *wire_address_format(const struct sockaddr *addr, char text[static WIRE_TEXT])
{
	switch (addr->sa_family) {
	case AF_INET:
		return inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, text,
		                 WIRE_TEXT);
	case AF_INET6:
		return wire_gid_format(&((const struct sockaddr_in6 *)addr)->sin6_addr, text);
	case AF_IB:
		return wire_gid_format(&((const struct sockaddr_ib *)addr)->sib_addr, text);
	default:
		return "?";
	}
}
