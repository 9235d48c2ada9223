/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes network devices: see make.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>

#include "netdev/make.h"

#define ROUTE_METRIC    1024 /* worse than that of a route without one */
#define LAST_MEMBER_CS  10   /* hundredths of a second from one question to the next */
#define RESPONSE_CS     100  /* members answer within this time */
#define QUERY_BYTES     1024
#define BRIDGE_IPV6_END 1

struct query {
	struct nlmsghdr *nlh;
	_Alignas(struct nlmsghdr) char buffer[QUERY_BYTES];
};

/* Begins a query of @type; its header of @bytes is zero, and returned. */
static void *begin(struct query *q, uint16_t type, uint16_t flags, size_t bytes)
{
	q->nlh = mnl_nlmsg_put_header(q->buffer);
	q->nlh->nlmsg_type = type;
	q->nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	return mnl_nlmsg_put_extra_header(q->nlh, bytes);
}

/* Sends it, and waits for the answer. 0 or -errno. */
static int ask(struct query *q)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	_Alignas(struct nlmsghdr) char answer[8192];
	ssize_t n;
	int ret;

	if (!nl)
		return -errno;
	ret = mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID);
	if (!ret && mnl_socket_sendto(nl, q->nlh, q->nlh->nlmsg_len) < 0)
		ret = -1;
	n = ret ? -1 : mnl_socket_recvfrom(nl, answer, sizeof(answer));
	if (n < 0 || mnl_cb_run(answer, (size_t)n, 0, mnl_socket_get_portid(nl), NULL, NULL) < 0)
		ret = -errno;
	mnl_socket_close(nl);
	return ret;
}

/* ---- devices ---- */

/* Begins to make a device of @kind, and its data, which the caller ends. */
struct making {
	struct nlattr *info, *data;
};

static struct making begin_data(struct query *q, const char *kind)
{
	struct making m = { .info = mnl_attr_nest_start(q->nlh, IFLA_LINKINFO) };

	mnl_attr_put_strz(q->nlh, IFLA_INFO_KIND, kind);
	m.data = mnl_attr_nest_start(q->nlh, IFLA_INFO_DATA);
	return m;
}

static void end_data(struct query *q, struct making m)
{
	mnl_attr_nest_end(q->nlh, m.data);
	mnl_attr_nest_end(q->nlh, m.info);
}

int netdev_make_bridge(const char *name)
{
	/* link-local, so that it can send queries of MLD */
	static const uint8_t ipv6[16] = { 0xFE, 0x80, [15] = BRIDGE_IPV6_END };
	struct query q;
	struct making m;
	int ret;

	begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(q.nlh, IFLA_IFNAME, name);
	m = begin_data(&q, "bridge");
	mnl_attr_put_u8(q.nlh, IFLA_BR_MCAST_SNOOPING, 1);
	mnl_attr_put_u8(q.nlh, IFLA_BR_MCAST_IGMP_VERSION, 3);
	mnl_attr_put_u8(q.nlh, IFLA_BR_MCAST_MLD_VERSION, 2);
	mnl_attr_put_u64(q.nlh, IFLA_BR_MCAST_LAST_MEMBER_INTVL, LAST_MEMBER_CS);
	/* groups are flooded as long as an answer to the first query could take */
	mnl_attr_put_u64(q.nlh, IFLA_BR_MCAST_QUERY_RESPONSE_INTVL, 0);
	end_data(&q, m);
	ret = ask(&q);
	if (!ret)
		ret = netdev_make_up(name);
	if (!ret)
		ret = netdev_make_ipv6(name, ipv6, 64);
	return ret == -EACCES || ret == -EAFNOSUPPORT ? 0 : ret; /* IPv6 is off */
}

/* Sets a bridge's option, of 1 or 8 bytes. */
static int set_bridge(const char *name, uint16_t option, uint64_t value, bool byte)
{
	struct query q;
	struct making m;

	begin(&q, RTM_NEWLINK, 0, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(q.nlh, IFLA_IFNAME, name);
	m = begin_data(&q, "bridge");
	if (byte)
		mnl_attr_put_u8(q.nlh, option, (uint8_t)value);
	else
		mnl_attr_put_u64(q.nlh, option, value);
	end_data(&q, m);
	return ask(&q);
}

int netdev_make_querier(const char *bridge)
{
	return set_bridge(bridge, IFLA_BR_MCAST_QUERIER, 1, true);
}

int netdev_make_settled(const char *bridge)
{
	return set_bridge(bridge, IFLA_BR_MCAST_QUERY_RESPONSE_INTVL, RESPONSE_CS, false);
}

/* The number of the device; 0: there is none. */
static uint32_t index_of(const char *name)
{
	return if_nametoindex(name);
}

int netdev_make_pair(const struct netdev_pair *pair)
{
	uint32_t bridge = index_of(pair->bridge);
	struct ifinfomsg *ifi;
	struct nlattr *peer;
	struct making m;
	struct query q;

	if (!bridge)
		return -ENODEV;
	ifi = begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(*ifi));
	ifi->ifi_flags = ifi->ifi_change = IFF_UP;
	mnl_attr_put_strz(q.nlh, IFLA_IFNAME, pair->port);
	mnl_attr_put_u32(q.nlh, IFLA_MTU, pair->mtu);
	mnl_attr_put_u32(q.nlh, IFLA_MASTER, bridge);
	m = begin_data(&q, "veth");
	peer = mnl_attr_nest_start(q.nlh, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(q.nlh, sizeof(*ifi));
	mnl_attr_put_strz(q.nlh, IFLA_IFNAME, pair->name);
	mnl_attr_put_u32(q.nlh, IFLA_MTU, pair->mtu);
	mnl_attr_put(q.nlh, IFLA_ADDRESS, NETDEV_MAC_BYTES, pair->mac);
	mnl_attr_put_u32(q.nlh, IFLA_NET_NS_FD, (uint32_t)pair->net);
	mnl_attr_nest_end(q.nlh, peer);
	end_data(&q, m);
	return ask(&q);
}

int netdev_make_shared(const char *parent, const uint8_t mac[static NETDEV_MAC_BYTES], int net)
{
	uint32_t index = index_of(parent);
	struct making m;
	struct query q;

	if (!index)
		return -ENODEV;
	begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(q.nlh, IFLA_IFNAME, parent);
	mnl_attr_put(q.nlh, IFLA_ADDRESS, NETDEV_MAC_BYTES, mac);
	mnl_attr_put_u32(q.nlh, IFLA_LINK, index);
	mnl_attr_put_u32(q.nlh, IFLA_NET_NS_FD, (uint32_t)net);
	m = begin_data(&q, "macvlan");
	mnl_attr_put_u32(q.nlh, IFLA_MACVLAN_MODE, MACVLAN_MODE_BRIDGE);
	end_data(&q, m);
	return ask(&q);
}

int netdev_make_up(const char *name)
{
	struct ifinfomsg *ifi;
	struct query q;

	ifi = begin(&q, RTM_NEWLINK, 0, sizeof(*ifi));
	ifi->ifi_flags = ifi->ifi_change = IFF_UP;
	mnl_attr_put_strz(q.nlh, IFLA_IFNAME, name);
	return ask(&q);
}

/* ---- addresses and routes ---- */

static int add_address(const char *name, uint8_t family, const void *address, uint8_t prefix)
{
	size_t bytes = family == AF_INET ? 4 : 16;
	struct ifaddrmsg *ifa;
	struct query q;

	ifa = begin(&q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*ifa));
	ifa->ifa_family = family;
	ifa->ifa_prefixlen = prefix;
	ifa->ifa_index = index_of(name);
	ifa->ifa_flags = IFA_F_NODAD; /* the network's maker knows that they are unique */
	mnl_attr_put(q.nlh, IFA_LOCAL, bytes, address);
	mnl_attr_put(q.nlh, IFA_ADDRESS, bytes, address);
	return ask(&q);
}

int netdev_make_ipv4(const char *name, uint32_t address, uint8_t prefix)
{
	return add_address(name, AF_INET, &address, prefix);
}

int netdev_make_ipv6(const char *name, const uint8_t address[static 16], uint8_t prefix)
{
	return add_address(name, AF_INET6, address, prefix);
}

int netdev_make_arp_its_own(const char *name)
{
	struct nlattr *families, *ipv4, *settings;
	struct query q;

	begin(&q, RTM_NEWLINK, 0, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(q.nlh, IFLA_IFNAME, name);
	families = mnl_attr_nest_start(q.nlh, IFLA_AF_SPEC);
	ipv4 = mnl_attr_nest_start(q.nlh, AF_INET);
	settings = mnl_attr_nest_start(q.nlh, IFLA_INET_CONF);
	mnl_attr_put_u32(q.nlh, IPV4_DEVCONF_ARP_IGNORE, 1);
	mnl_attr_nest_end(q.nlh, settings);
	mnl_attr_nest_end(q.nlh, ipv4);
	mnl_attr_nest_end(q.nlh, families);
	return ask(&q);
}

int netdev_make_multicast_route(const char *name)
{
	const uint32_t groups = htonl(0xE0000000);
	struct rtmsg *rt;
	struct query q;

	rt = begin(&q, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, sizeof(*rt));
	rt->rtm_family = AF_INET;
	rt->rtm_dst_len = 4;
	rt->rtm_table = RT_TABLE_MAIN;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_scope = RT_SCOPE_LINK;
	rt->rtm_type = RTN_UNICAST;
	mnl_attr_put(q.nlh, RTA_DST, sizeof(groups), &groups);
	mnl_attr_put_u32(q.nlh, RTA_OIF, index_of(name));
	mnl_attr_put_u32(q.nlh, RTA_PRIORITY, ROUTE_METRIC);
	return ask(&q);
}
