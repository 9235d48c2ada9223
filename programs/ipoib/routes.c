/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Next hops: see routes.h. The kernel answers RTM_GETROUTE within the system call that asks.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "ipoib/routes.h"
#include "wire/ip.h"

#define BUFFER_BYTES 8192
#define MAX_ENTRIES  4096

struct entry {
	struct base_hash_node node;
	struct ib_gid destination, next_hop;
};

struct ipoib_routes {
	struct mnl_socket *questions, *events;
	unsigned portid;
	uint32_t sequence;
	int ifindex;
	struct base_hash known;
	const struct entry *last; /* used; most packets go where the one before went */
	struct ib_gid unknown;    /* what there was no memory to remember */
};

static void forget(struct ipoib_routes *r)
{
	base_hash_free(&r->known, offsetof(struct entry, node));
	r->last = NULL;
}

static int listen_to(struct mnl_socket *nl)
{
	static const int group[] = { RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE,
		                     RTNLGRP_IPV6_RULE,  RTNLGRP_NEXTHOP,    RTNLGRP_IPV4_IFADDR,
		                     RTNLGRP_LINK };

	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(group); i++) {
		int g = group[i];

		if (mnl_socket_setsockopt(nl, NETLINK_ADD_MEMBERSHIP, &g, sizeof(g)))
			return -errno;
	}
	return 0;
}

int ipoib_routes_open(struct ipoib_routes **routes, int ifindex)
{
	struct ipoib_routes *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->ifindex = ifindex;
	r->questions = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	r->events = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!r->questions || !r->events || mnl_socket_bind(r->questions, 0, MNL_SOCKET_AUTOPID)) {
		ret = -errno;
		goto err_close;
	}
	r->portid = mnl_socket_get_portid(r->questions);
	ret = listen_to(r->events);
	if (ret)
		goto err_close;
	*routes = r;
	return 0;

err_close:
	ipoib_routes_close(r);
	return ret;
}

void ipoib_routes_close(struct ipoib_routes *r)
{
	forget(r);
	if (r->questions)
		mnl_socket_close(r->questions);
	if (r->events)
		mnl_socket_close(r->events);
	free(r);
}

int ipoib_routes_fd(const struct ipoib_routes *r)
{
	return mnl_socket_get_fd(r->events);
}

void ipoib_routes_dispatch(struct ipoib_routes *r)
{
	char buffer[BUFFER_BYTES];

	/* what was lost is as good as what came */
	while (mnl_socket_recvfrom(r->events, buffer, sizeof(buffer)) > 0 || errno == ENOBUFS)
		;
	forget(r);
}

/* ---- asking ---- */

/* mnl_cb_t */
static int read_route(const struct nlmsghdr *nlh, void *arg)
{
	struct ib_gid *hop = arg;
	const struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWROUTE ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(struct rtmsg))
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(struct rtmsg))
	{
		const uint8_t *address = mnl_attr_get_payload(attr);
		uint16_t bytes = mnl_attr_get_payload_len(attr), type = mnl_attr_get_type(attr);
		in_addr_t ipv4;

		/* of another family: struct rtvia */
		if (type == RTA_VIA && bytes == sizeof(uint16_t) + sizeof(*hop)) {
			memcpy(hop, address + sizeof(uint16_t), sizeof(*hop));
		} else if (type == RTA_GATEWAY && bytes == sizeof(*hop)) {
			memcpy(hop, address, sizeof(*hop));
		} else if (type == RTA_GATEWAY && bytes == sizeof(ipv4)) {
			memcpy(&ipv4, address, sizeof(ipv4));
			*hop = wire_gid_from_ipv4(ipv4);
		}
	}
	return MNL_CB_OK;
}

static void ask(struct ipoib_routes *r, const struct ib_gid *destination, struct ib_gid *hop)
{
	char buffer[BUFFER_BYTES];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	bool is_ipv4 = wire_gid_is_ipv4(destination);
	struct rtmsg *rtm;
	ssize_t n;

	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = ++r->sequence;
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = is_ipv4 ? AF_INET : AF_INET6;
	rtm->rtm_dst_len = is_ipv4 ? 32 : 128;
	if (is_ipv4)
		mnl_attr_put_u32(nlh, RTA_DST, wire_gid_to_ipv4(destination));
	else
		mnl_attr_put(nlh, RTA_DST, sizeof(*destination), destination);
	mnl_attr_put_u32(nlh, RTA_OIF, (uint32_t)r->ifindex);
	if (mnl_socket_sendto(r->questions, nlh, nlh->nlmsg_len) < 0)
		return;
	n = mnl_socket_recvfrom(r->questions, buffer, sizeof(buffer));
	if (n > 0)
		mnl_cb_run(buffer, (size_t)n, r->sequence, r->portid, read_route, hop);
}

const struct ib_gid *ipoib_routes_next_hop(struct ipoib_routes *r, const struct ib_gid *destination)
{
	uint64_t hash = base_hash_of(destination, sizeof(*destination), 0);
	struct entry *e;

	if (r->last && ib_gid_equal(&r->last->destination, destination))
		return &r->last->next_hop;
	BASE_HASH_FOREACH(e, &r->known, hash, node)
		if (ib_gid_equal(&e->destination, destination)) {
			r->last = e;
			return &e->next_hop;
		}
	if (r->known.n == MAX_ENTRIES)
		forget(r);
	r->unknown = *destination;
	ask(r, destination, &r->unknown);
	e = calloc(1, sizeof(*e));
	if (!e || base_hash_add(&r->known, &e->node, hash)) {
		free(e);
		return &r->unknown;
	}
	e->destination = *destination;
	e->next_hop = r->unknown;
	r->last = e;
	return &e->next_hop;
}
