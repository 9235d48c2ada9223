/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The TUN device: see tun.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ipoib/link.h"
#include "ipoib/merge.h"
#include "ipoib/tun.h"

#define BUFFER_BYTES 8192
#define NO_ADDRESSES 1 /* IN6_ADDR_GEN_MODE_NONE: a TUN device's would be random */

/* ---- rtnetlink ---- */

static int talk_by(struct mnl_socket *nl, struct nlmsghdr *request)
{
	char reply[BUFFER_BYTES];
	ssize_t n;

	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) ||
	    mnl_socket_sendto(nl, request, request->nlmsg_len) < 0)
		return -errno;
	n = mnl_socket_recvfrom(nl, reply, sizeof(reply));
	if (n < 0 || mnl_cb_run(reply, (size_t)n, request->nlmsg_seq, mnl_socket_get_portid(nl),
	                        NULL, NULL) < 0)
		return -errno;
	return 0;
}

/* Sends the request, and waits for the kernel's word, which is there at once. */
static int talk(struct nlmsghdr *request)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	int ret;

	if (!nl)
		return -errno;
	request->nlmsg_seq = 1;
	request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	ret = talk_by(nl, request);
	mnl_socket_close(nl);
	return ret;
}

static struct nlmsghdr *link_request(char *buffer, const struct ipoib_tun *tun,
                                     struct ifinfomsg **ifi)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);

	nlh->nlmsg_type = RTM_NEWLINK;
	*ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(**ifi));
	(*ifi)->ifi_index = tun->index;
	return nlh;
}

int ipoib_tun_set_mtu(const struct ipoib_tun *tun, unsigned mtu)
{
	char buffer[BUFFER_BYTES];
	struct ifinfomsg *ifi;
	struct nlmsghdr *nlh = link_request(buffer, tun, &ifi);

	mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	return talk(nlh);
}

int ipoib_tun_set_alias(const struct ipoib_tun *tun, const char *text)
{
	char buffer[BUFFER_BYTES];
	struct ifinfomsg *ifi;
	struct nlmsghdr *nlh = link_request(buffer, tun, &ifi);

	mnl_attr_put_str(nlh, IFLA_IFALIAS, text);
	return talk(nlh);
}

/* Before the device is up. Kernels without IPv6 need not be told. */
static void set_no_addresses(const struct ipoib_tun *tun)
{
	char buffer[BUFFER_BYTES];
	struct ifinfomsg *ifi;
	struct nlmsghdr *nlh = link_request(buffer, tun, &ifi);
	struct nlattr *all = mnl_attr_nest_start(nlh, IFLA_AF_SPEC);
	struct nlattr *inet6 = mnl_attr_nest_start(nlh, AF_INET6);

	mnl_attr_put_u8(nlh, IFLA_INET6_ADDR_GEN_MODE, NO_ADDRESSES);
	mnl_attr_nest_end(nlh, inet6);
	mnl_attr_nest_end(nlh, all);
	talk(nlh);
}

/* No packet in more segments than we have headers for. Kernels that cannot be told have TCP send
 * what we drop only if the MTU is tiny. */
static void set_segments(const struct ipoib_tun *tun)
{
	char buffer[BUFFER_BYTES];
	struct ifinfomsg *ifi;
	struct nlmsghdr *nlh = link_request(buffer, tun, &ifi);

	mnl_attr_put_u32(nlh, IFLA_GSO_MAX_SEGS, IPOIB_MAX_SEGMENT);
	talk(nlh);
}

int ipoib_tun_set_up(const struct ipoib_tun *tun)
{
	char buffer[BUFFER_BYTES];
	struct ifinfomsg *ifi;
	struct nlmsghdr *nlh = link_request(buffer, tun, &ifi);

	ifi->ifi_flags = ifi->ifi_change = IFF_UP;
	return talk(nlh);
}

int ipoib_tun_add_address(const struct ipoib_tun *tun, const struct netdev_address *address)
{
	char buffer[BUFFER_BYTES];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct ifaddrmsg *ifa;
	in_addr_t ipv4;

	nlh->nlmsg_type = RTM_NEWADDR;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
	ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	ifa->ifa_index = (unsigned)tun->index;
	ifa->ifa_prefixlen = address->prefix;
	ifa->ifa_family = AF_INET6;
	if (!wire_gid_is_ipv4(&address->gid)) {
		mnl_attr_put(nlh, IFA_LOCAL, sizeof(address->gid), &address->gid);
		return talk(nlh);
	}
	ifa->ifa_family = AF_INET;
	ipv4 = wire_gid_to_ipv4(&address->gid);
	mnl_attr_put(nlh, IFA_LOCAL, sizeof(ipv4), &ipv4);
	mnl_attr_put(nlh, IFA_ADDRESS, sizeof(ipv4), &ipv4);
	if (address->prefix < 31) {
		ipv4 |= htonl(UINT32_MAX >> address->prefix);
		mnl_attr_put(nlh, IFA_BROADCAST, sizeof(ipv4), &ipv4);
	}
	return talk(nlh);
}

static int talk_of_groups(const struct ipoib_tun *tun, uint16_t type, bool ipv6, unsigned mtu)
{
	static const struct in6_addr ipv6_groups = { .s6_addr = { 0xFF } };
	const uint32_t ipv4_groups = htonl(0xE0000000);
	char buffer[BUFFER_BYTES];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct nlattr *metrics;
	struct rtmsg *rtm;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = type == RTM_NEWROUTE ? NLM_F_CREATE : 0;
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = ipv6 ? AF_INET6 : AF_INET;
	rtm->rtm_dst_len = ipv6 ? 8 : 4;
	rtm->rtm_table = ipv6 ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
	rtm->rtm_protocol = RTPROT_STATIC;
	rtm->rtm_scope = ipv6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	rtm->rtm_type = ipv6 ? RTN_MULTICAST : RTN_UNICAST;
	if (ipv6)
		mnl_attr_put(nlh, RTA_DST, sizeof(ipv6_groups), &ipv6_groups);
	else
		mnl_attr_put(nlh, RTA_DST, sizeof(ipv4_groups), &ipv4_groups);
	mnl_attr_put_u32(nlh, RTA_OIF, (uint32_t)tun->index);
	if (ipv6) /* the kernel has one of its own, of metric 256 */
		mnl_attr_put_u32(nlh, RTA_PRIORITY, 128);
	metrics = mnl_attr_nest_start(nlh, RTA_METRICS);
	mnl_attr_put_u32(nlh, RTAX_MTU, mtu);
	mnl_attr_nest_end(nlh, metrics);
	return talk(nlh);
}

int ipoib_tun_route_groups(const struct ipoib_tun *tun, bool ipv6, unsigned mtu, unsigned before)
{
	if (before)
		talk_of_groups(tun, RTM_DELROUTE, ipv6, before);
	return talk_of_groups(tun, RTM_NEWROUTE, ipv6, mtu);
}

/* ---- the device ---- */

int ipoib_tun_open(struct ipoib_tun *tun, const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR };
	unsigned offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	int ret;

	tun->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tun->fd < 0)
		return -errno;
	strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
	if (ioctl(tun->fd, TUNSETIFF, &request) || ioctl(tun->fd, TUNSETOFFLOAD, offloads))
		goto err_close;
	memcpy(tun->name, request.ifr_name, sizeof(tun->name));
	tun->index = (int)if_nametoindex(tun->name);
	if (!tun->index)
		goto err_close;
	tun->carrier = true;
	ipoib_tun_set_carrier(tun, false);
	set_no_addresses(tun);
	set_segments(tun);
	return 0;

err_close:
	ret = -errno;
	close(tun->fd);
	tun->fd = -1;
	return ret;
}

void ipoib_tun_close(struct ipoib_tun *tun)
{
	close(tun->fd);
}

void ipoib_tun_set_carrier(struct ipoib_tun *tun, bool carrier)
{
	int on = carrier;

	if (tun->carrier == carrier)
		return;
	tun->carrier = carrier;
	ioctl(tun->fd, TUNSETCARRIER, &on);
}

bool ipoib_tun_read(const struct ipoib_tun *tun, struct ipoib_packet *p)
{
	struct iovec iov[] = { { &p->vnet, sizeof(p->vnet) }, { p->data, IPOIB_MAX_PACKET } };
	ssize_t n = readv(tun->fd, iov, 2);

	if (n <= (ssize_t)sizeof(p->vnet))
		return false;
	p->bytes = (uint32_t)((size_t)n - sizeof(p->vnet));
	return true;
}

bool ipoib_tun_write(const struct ipoib_tun *tun, const struct virtio_net_hdr *vnet,
                     const struct iovec *piece, unsigned n)
{
	struct iovec iov[1 + IPOIB_MERGE_PIECES];

	iov[0] = (struct iovec){ (void *)vnet, sizeof(*vnet) };
	memcpy(iov + 1, piece, n * sizeof(*piece));
	return writev(tun->fd, iov, (int)n + 1) > 0;
}
