/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of rsockets: as the program has them, with IPv4 mapped into IPv6, and as they are here.
 */
#include <errno.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket.h"

static void unmap(union control_cm_addr *a)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = a->in6.sin6_port };

	if (a->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		return;
	memcpy(&in.sin_addr, &a->in6.sin6_addr.s6_addr[12], 4);
	memset(a, 0, sizeof(*a));
	a->in = in;
}

static void map(union control_cm_addr *a)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = a->in.sin_port };

	if (a->sa.sa_family != AF_INET)
		return;
	in6.sin6_addr.s6_addr[10] = in6.sin6_addr.s6_addr[11] = 0xFF;
	memcpy(&in6.sin6_addr.s6_addr[12], &a->in.sin_addr, 4);
	memset(a, 0, sizeof(*a));
	a->in6 = in6;
}

static void get_in(const struct sockaddr_in *in, union control_cm_addr *out)
{
	out->in.sin_family = AF_INET;
	out->in.sin_port = in->sin_port;
	out->in.sin_addr = in->sin_addr;
}

static void get_in6(const struct sockaddr_in6 *in6, union control_cm_addr *out)
{
	out->in6.sin6_family = AF_INET6;
	out->in6.sin6_port = in6->sin6_port;
	out->in6.sin6_addr = in6->sin6_addr;
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		out->in6.sin6_scope_id = in6->sin6_scope_id;
	unmap(out);
}

int rsocket_addr_get(const struct rsocket *rs, const struct sockaddr *addr, socklen_t bytes,
                     union control_cm_addr *out)
{
	memset(out, 0, sizeof(*out));
	if (!addr || bytes < sizeof(addr->sa_family))
		return -EINVAL;
	if (addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	if (bytes < rdmacm_addr_bytes(addr))
		return -EINVAL;
	if (addr->sa_family == AF_INET)
		get_in((const struct sockaddr_in *)addr, out);
	else if (addr->sa_family == AF_INET6)
		get_in6((const struct sockaddr_in6 *)addr, out);
	else
		memcpy(&out->ib, addr, sizeof(out->ib));
	return 0;
}

void rsocket_addr_put(const struct rsocket *rs, union control_cm_addr addr, void *to,
                      socklen_t *bytes)
{
	socklen_t all;

	if (rs->domain == AF_INET6)
		map(&addr);
	all = rdmacm_addr_bytes(&addr.sa);
	memcpy(to, &addr, *bytes < all ? *bytes : all);
	*bytes = all;
}

bool rsocket_is_group(const union control_cm_addr *a)
{
	if (a->sa.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(a->in.sin_addr.s_addr));
	if (a->sa.sa_family == AF_IB)
		return a->ib.sib_addr.sib_raw[0] == 0xFF;
	return IN6_IS_ADDR_MULTICAST(&a->in6.sin6_addr);
}
