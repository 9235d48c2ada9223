/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbours by rtnetlink: see neighbour.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdev/neighbour.h"
#include "netdev/netlink.h"
#include "wire/ip.h"

#define REPLY_BYTES 8192
#define PROBE_PORT  9 /* discard */

/* ---- requests ---- */

void netdev_neighbours_close(struct netdev_neighbours *n)
{
	if (n->nl)
		mnl_socket_close(n->nl);
	n->nl = NULL;
}

static int open_socket(struct netdev_neighbours *n)
{
	if (n->nl)
		return 0;
	n->nl = netdev_netlink_open(n->network);
	if (n->nl && !fcntl(mnl_socket_get_fd(n->nl), F_SETFL, O_NONBLOCK) &&
	    !mnl_socket_bind(n->nl, 0, MNL_SOCKET_AUTOPID))
		return 0;
	netdev_neighbours_close(n);
	return -errno;
}

/* Sends a request, and has @take called with the reply. 0; -errno of the kernel's; -EIO: no reply
 * to this has come. */
static int ask(struct netdev_neighbours *n, struct nlmsghdr *nlh, mnl_cb_t take, void *arg)
{
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
	unsigned portid = mnl_socket_get_portid(n->nl);
	ssize_t got = -1;

	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = ++n->seq;
	if (mnl_socket_sendto(n->nl, nlh, nlh->nlmsg_len) >= 0)
		got = mnl_socket_recvfrom(n->nl, reply, sizeof(reply));
	if (got >= 0 && mnl_cb_run(reply, (size_t)got, n->seq, portid, take, arg) >= 0)
		return 0;
	if (got >= 0 && errno != EPROTO && errno != ESRCH)
		return -errno;
	netdev_neighbours_close(n); /* the next one begins afresh */
	return -EIO;
}

static void put_gid(struct nlmsghdr *nlh, uint16_t type, const struct ib_gid *gid)
{
	if (wire_gid_is_ipv4(gid))
		mnl_attr_put_u32(nlh, type, wire_gid_to_ipv4(gid));
	else
		mnl_attr_put(nlh, type, sizeof(*gid), gid);
}

static uint8_t family_of(const struct ib_gid *gid)
{
	return wire_gid_is_ipv4(gid) ? AF_INET : AF_INET6;
}

/* ---- routes ---- */

struct route {
	struct netdev_hop *hop;
	bool is_direct; /* to a neighbour */
};

/* A gateway of another family than the destination's. */
static void read_via(const struct nlattr *attr, struct ib_gid *gid)
{
	const struct rtvia *via = mnl_attr_get_payload(attr);
	size_t bytes = mnl_attr_get_payload_len(attr);

	if (bytes == sizeof(*via) + sizeof(*gid) && via->rtvia_family == AF_INET6)
		memcpy(gid, via->rtvia_addr, sizeof(*gid));
}

static int take_route(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct route *r = arg;
	const struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWROUTE || mnl_nlmsg_get_payload_len(nlh) < sizeof(*rtm))
		return MNL_CB_OK;
	r->is_direct = rtm->rtm_type == RTN_UNICAST;
	mnl_attr_for_each(attr, nlh, sizeof(*rtm))
	{
		switch (mnl_attr_get_type(attr)) {
		case RTA_OIF:
			if (mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
				r->hop->ifindex = (int)mnl_attr_get_u32(attr);
			break;
		case RTA_GATEWAY:
			netdev_netlink_gid(attr, rtm->rtm_family, &r->hop->gid);
			break;
		case RTA_VIA:
			read_via(attr, &r->hop->gid);
			break;
		}
	}
	return MNL_CB_OK;
}

int netdev_neighbour_route(struct netdev_neighbours *n, int ifindex, const struct ib_gid *sgid,
                           const struct ib_gid *dgid, struct netdev_hop *hop)
{
	char buffer[256] = "";
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct rtmsg *rtm;
	struct route r = { .hop = hop };
	int ret = open_socket(n);

	if (ret)
		return 0;
	*hop = (struct netdev_hop){ .ifindex = ifindex, .gid = *dgid };
	nlh->nlmsg_type = RTM_GETROUTE;
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = family_of(dgid);
	rtm->rtm_dst_len = wire_gid_is_ipv4(dgid) ? 32 : 128;
	put_gid(nlh, RTA_DST, dgid);
	if (!ib_gid_is_zero(sgid) && wire_gid_is_ipv4(sgid) == wire_gid_is_ipv4(dgid)) {
		rtm->rtm_src_len = rtm->rtm_dst_len;
		put_gid(nlh, RTA_SRC, sgid);
	}
	mnl_attr_put_u32(nlh, RTA_OIF, (uint32_t)ifindex);
	ret = ask(n, nlh, take_route, &r);
	if (!ret)
		return r.is_direct;
	return ret == -ENETUNREACH || ret == -EHOSTUNREACH ? ret : 0;
}

/* ---- neighbours ---- */

static int take_state(const struct nlmsghdr *nlh, void *arg)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	uint16_t *state = arg;

	if (nlh->nlmsg_type == RTM_NEWNEIGH && mnl_nlmsg_get_payload_len(nlh) >= sizeof(*ndm))
		*state = ndm->ndm_state;
	return MNL_CB_OK;
}

int netdev_neighbour_find(struct netdev_neighbours *n, struct netdev_hop *hop)
{
	char buffer[256] = "";
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct ndmsg *ndm;
	uint16_t state = NUD_NONE;
	int ret = open_socket(n);

	if (ret)
		return 0;
	nlh->nlmsg_type = RTM_GETNEIGH;
	ndm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ndm));
	ndm->ndm_family = family_of(&hop->gid);
	ndm->ndm_ifindex = hop->ifindex;
	put_gid(nlh, NDA_DST, &hop->gid);
	ret = ask(n, nlh, take_state, &state);
	if (ret && ret != -ENOENT) /* before Linux 5.0 they can only be listed */
		return 0;
	hop->is_asked_for = state & NUD_INCOMPLETE;
	return state & NETDEV_NUD_KNOWN ? 0 : -EINPROGRESS;
}

/* ---- probes ---- */

/* The route says by which device, as for a socket that is bound to it: that needs no privilege
 * with any kernel. */
static int send_probe(int fd, const struct netdev_hop *hop)
{
	const uint32_t ifindex = htonl((uint32_t)hop->ifindex);
	const int hops = 1;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(PROBE_PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		                    .sin6_port = htons(PROBE_PORT),
		                    .sin6_scope_id = (uint32_t)hop->ifindex };
	ssize_t sent;

	if (wire_gid_is_ipv4(&hop->gid)) {
		in.sin_addr.s_addr = wire_gid_to_ipv4(&hop->gid);
		setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &ifindex, sizeof(ifindex));
		setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof(hops));
		sent = sendto(fd, "", 0, MSG_DONTWAIT | MSG_DONTROUTE | MSG_NOSIGNAL,
		              (const struct sockaddr *)&in, sizeof(in));
	} else {
		memcpy(&in6.sin6_addr, hop->gid.raw, sizeof(in6.sin6_addr));
		setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, &ifindex, sizeof(ifindex));
		setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof(hops));
		sent = sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&in6,
		              sizeof(in6));
	}
	return sent < 0 && (errno == EPERM || errno == EACCES) ? -EPERM : 0;
}

int netdev_neighbour_probe(struct netdev_neighbours *n, const struct netdev_hop *hop)
{
	int fd = netdev_network_socket(n->network, family_of(&hop->gid), SOCK_DGRAM, 0), ret;

	if (fd < 0)
		return fd == -EAFNOSUPPORT ? -EPERM : 0;
	ret = send_probe(fd, hop);
	close(fd);
	return ret;
}
