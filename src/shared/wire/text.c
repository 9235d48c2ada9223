/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GIDs and addresses as text: see text.h.
 */
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netinet/in.h>

#include "wire/ip.h"
#include "wire/text.h"

const char *wire_gid_format(const void *gid, char text[static WIRE_TEXT])
{
	return inet_ntop(AF_INET6, gid, text, WIRE_TEXT);
}

bool wire_mgid_parse(const char *text, struct ib_gid *mgid)
{
	return inet_pton(AF_INET6, text, mgid->raw) == 1 && ib_gid_is_mcast(mgid);
}

bool wire_group_parse(const char *text, struct ib_gid *group)
{
	return inet_pton(AF_INET6, text, group->raw) == 1 && wire_gid_is_ip_mcast(group);
}

bool wire_group_parse_ipv4(const char *text, struct ib_gid *group)
{
	struct in_addr ipv4;

	if (inet_pton(AF_INET, text, &ipv4) != 1)
		return wire_group_parse(text, group);
	*group = wire_gid_from_ipv4(ipv4.s_addr);
	return wire_gid_is_ip_mcast(group);
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
