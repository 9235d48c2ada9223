/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_getaddrinfo(3): the C library's getaddrinfo() with the words of RDMA. There is
 * no ibacm to ask for routes. Returns what getaddrinfo() returns, as the original does.
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rdmacm.h"

static const struct rdma_addrinfo no_hints;

/* Whether names are GIDs, which are written as IPv6 addresses are. */
static bool asks_for_gid(const struct rdma_addrinfo *hints)
{
	const int gid = RAI_FAMILY | RAI_NUMERICHOST;

	return (hints->ai_flags & gid) == gid && hints->ai_family == AF_IB;
}

static void to_libc_hints(const struct rdma_addrinfo *rai, struct addrinfo *ai)
{
	*ai = (struct addrinfo){ 0 };
	if (rai->ai_flags & RAI_PASSIVE)
		ai->ai_flags |= AI_PASSIVE;
	if (rai->ai_flags & RAI_NUMERICHOST)
		ai->ai_flags |= AI_NUMERICHOST;
	if (asks_for_gid(rai))
		ai->ai_family = AF_INET6;
	else if (rai->ai_family != AF_IB)
		ai->ai_family = rai->ai_family;
	if (rai->ai_qp_type == IBV_QPT_UD)
		ai->ai_socktype = SOCK_DGRAM;
	else if (rai->ai_qp_type)
		ai->ai_socktype = SOCK_STREAM;
	if (rai->ai_port_space == RDMA_PS_TCP)
		ai->ai_protocol = IPPROTO_TCP;
	else if (rai->ai_port_space == RDMA_PS_UDP || rai->ai_port_space == RDMA_PS_IPOIB)
		ai->ai_protocol = IPPROTO_UDP;
	else if (rai->ai_port_space == RDMA_PS_IB && ai->ai_socktype)
		ai->ai_protocol = ai->ai_socktype == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
}

/* ---- addresses ---- */

static int copy_addr(const struct sockaddr *from, socklen_t bytes, struct sockaddr **to,
                     socklen_t *to_bytes)
{
	*to = malloc(bytes);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, bytes);
	*to_bytes = bytes;
	return 0;
}

/* A GID written as an IPv6 address, with the service ID of the port. */
static int to_ib(const struct sockaddr_in6 *from, int ps, struct sockaddr **to, socklen_t *to_bytes)
{
	struct sockaddr_ib *ib = calloc(1, sizeof(*ib));
	uint64_t mask = ps ? RDMA_IB_IP_PS_MASK : 0;

	if (!ib)
		return -ENOMEM;
	ib->sib_family = AF_IB;
	ib->sib_pkey = htobe16(0xFFFF);
	ib->sib_flowinfo = from->sin6_flowinfo;
	memcpy(&ib->sib_addr, &from->sin6_addr, sizeof(ib->sib_addr));
	ib->sib_sid = htobe64(((uint64_t)ps << 16) + be16toh(from->sin6_port));
	if (from->sin6_port)
		mask |= RDMA_IB_IP_PORT_MASK;
	ib->sib_sid_mask = htobe64(mask);
	ib->sib_scope_id = from->sin6_scope_id;
	*to = (struct sockaddr *)ib;
	*to_bytes = sizeof(*ib);
	return 0;
}

static int set_addr(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints,
                    const struct addrinfo *ai)
{
	bool passive = ai->ai_flags & AI_PASSIVE;
	struct sockaddr **to = passive ? &rai->ai_src_addr : &rai->ai_dst_addr;
	socklen_t *bytes = passive ? &rai->ai_src_len : &rai->ai_dst_len;

	if (asks_for_gid(hints)) {
		rai->ai_family = AF_IB;
		return to_ib((const struct sockaddr_in6 *)ai->ai_addr, rai->ai_port_space, to,
		             bytes);
	}
	rai->ai_family = ai->ai_family;
	return copy_addr(ai->ai_addr, ai->ai_addrlen, to, bytes);
}

static int from_libc(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints,
                     const struct addrinfo *ai)
{
	bool passive = ai->ai_flags & AI_PASSIVE;
	char **name = passive ? &rai->ai_src_canonname : &rai->ai_dst_canonname;

	rai->ai_qp_type = hints->ai_qp_type;
	if (!rai->ai_qp_type)
		rai->ai_qp_type = ai->ai_socktype == SOCK_DGRAM ? IBV_QPT_UD : IBV_QPT_RC;
	rai->ai_port_space = hints->ai_port_space;
	if (!rai->ai_port_space)
		rai->ai_port_space = ai->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (passive)
		rai->ai_flags = RAI_PASSIVE;
	if (ai->ai_canonname)
		*name = strdup(ai->ai_canonname);
	return set_addr(rai, hints, ai);
}

/* ---- the call ---- */

static int by_name(const char *node, const char *service, const struct rdma_addrinfo *hints,
                   struct rdma_addrinfo *rai)
{
	struct addrinfo ai_hints, *ai;
	int ret;

	to_libc_hints(hints, &ai_hints);
	ret = getaddrinfo(node, service, hints == &no_hints ? NULL : &ai_hints, &ai);
	if (ret)
		return ret;
	ret = from_libc(rai, hints, ai);
	freeaddrinfo(ai);
	return rdmacm_return(ret);
}

static int by_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
	if (!hints->ai_dst_len)
		return 0;
	return rdmacm_return(copy_addr(hints->ai_dst_addr, hints->ai_dst_len, &rai->ai_dst_addr,
	                               &rai->ai_dst_len));
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *rai;
	int ret;

	if ((!node && !service && !hints) || !res)
		return rdmacm_return(-EINVAL);
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return rdmacm_return(-ENOMEM);
	if (!hints)
		hints = &no_hints;
	ret = node || service ? by_name(node, service, hints, rai) : by_hints(hints, rai);
	if (!ret && !rai->ai_src_len && hints->ai_src_len)
		ret = rdmacm_return(copy_addr(hints->ai_src_addr, hints->ai_src_len,
		                              &rai->ai_src_addr, &rai->ai_src_len));
	if (ret) {
		rdma_freeaddrinfo(rai);
		return ret;
	}
	*res = rai;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
