/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the device to the link: see interface.h. A packet is for a group, or for a neighbour, whose
 * link-layer address and path have to be known. The functions that ask for addresses are here as
 * well.
 */
#include "ipoib/arp.h"
#include "ipoib/interface.h"
#include "ipoib/nd.h"
#include "ipoib/icmp.h"
#include "wire/mgid.h"

#define BATCH      32
#define IGMP       2
#define HOP_BY_HOP 0 /* MLD has a router alert */

/* The kernel makes smaller ones, when it has heard of it: as in Linux, whether or not the packet
 * may be fragmented. */
static void too_large(struct ipoib_interface *i, const struct ipoib_packet *p, unsigned mtu)
{
	uint8_t message[IPOIB_ICMP_BYTES];
	struct iovec piece = { message, ipoib_icmp_too_large(p->data, p->bytes, mtu, message) };
	static const struct virtio_net_hdr none;

	i->counters.too_large++;
	if (piece.iov_len)
		ipoib_tun_write(&i->tun, &none, &piece, 1);
}

static void send_by(struct ipoib_interface *i, struct ibv_ah *ah, uint32_t qpn,
                    struct ipoib_packet *p)
{
	if (ipoib_wire_bytes(p) > i->mtu)
		too_large(i, p, i->mtu);
	else if (ipoib_link_send(i->link, ah, qpn, p))
		i->counters.sent++;
	else
		i->counters.cannot_send++;
}

void ipoib_send_to(struct ipoib_interface *i, const struct ipoib_address *to,
                   struct ipoib_packet *p)
{
	struct ibv_ah *ah = ipoib_paths_use(&i->paths, &to->gid, to->qpn, p);

	if (ah)
		send_by(i, ah, to->qpn, p);
}

/* By a connection, if the neighbour offers that and we do. */
static void send_unicast(struct ipoib_interface *i, const struct ipoib_address *to,
                         struct ipoib_packet *p)
{
	enum ipoib_connection_use use = IPOIB_BY_DATAGRAM;
	struct ipoib_connection *c = NULL;

	if (i->options->connected && to->flags & IPOIB_FLAG_RC)
		use = ipoib_connections_use(&i->connections, to, p, &c);
	if (use == IPOIB_BY_NOTHING)
		return;
	if (use == IPOIB_BY_CONNECTION && ipoib_wire_bytes(p) > c->mtu)
		too_large(i, p, c->mtu);
	else if (use == IPOIB_BY_CONNECTION)
		i->counters.sent += ipoib_connections_send(&i->connections, c, p);
	else if (c && c->failures < IPOIB_CONNECTION_FAILURES && ipoib_wire_bytes(p) > i->mtu)
		i->connections.dropped++; /* what the kernel hears it keeps for ten minutes */
	else
		ipoib_send_to(i, to, p);
}

void ipoib_send_to_group(struct ipoib_interface *i, const struct ib_gid *mgid,
                         struct ipoib_packet *p)
{
	struct ibv_ah *ah = ipoib_groups_use(&i->groups, mgid, p);

	if (ah)
		send_by(i, ah, IB_QPN_MCAST, p);
}

/* ---- packets that are not in a slot ---- */

bool ipoib_own_packet(struct ipoib_interface *i, struct ipoib_packet *p, enum ipoib_type type)
{
	*p = (struct ipoib_packet){ .data = ipoib_link_slot(i->link), .type = type };
	i->counters.no_slot += !p->data;
	return p->data;
}

/* Copies @p into a slot. */
static bool into_slot(struct ipoib_interface *i, const struct ipoib_packet *p,
                      struct ipoib_packet *in_slot)
{
	if (!ipoib_own_packet(i, in_slot, p->type))
		return false;
	in_slot->vnet = p->vnet;
	in_slot->bytes = p->bytes;
	memcpy(in_slot->data, p->data, p->bytes);
	return true;
}

void ipoib_send_held(void *arg, struct ibv_ah *ah, uint32_t qpn, const struct ipoib_packet *p)
{
	struct ipoib_interface *i = arg;
	struct ipoib_packet copy;

	if (into_slot(i, p, &copy))
		send_by(i, ah, qpn, &copy);
}

void ipoib_send_held_to_group(void *arg, struct ibv_ah *ah, const struct ipoib_packet *p)
{
	ipoib_send_held(arg, ah, IB_QPN_MCAST, p);
}

/* ---- what the table of neighbours wants done ---- */

void ipoib_send_resolved(void *arg, const struct ipoib_address *to, const struct ipoib_packet *p)
{
	struct ipoib_interface *i = arg;
	struct ipoib_packet copy;

	if (into_slot(i, p, &copy))
		send_unicast(i, to, &copy);
}

static void unreachable(void *arg, const struct ipoib_packet *p)
{
	struct ipoib_interface *i = arg;
	uint8_t message[IPOIB_ICMP_BYTES];
	struct iovec piece = { message, ipoib_icmp_unreachable(p->data, p->bytes, message) };
	static const struct virtio_net_hdr none;

	if (piece.iov_len)
		ipoib_tun_write(&i->tun, &none, &piece, 1);
}

static void doubt(void *arg, const struct ipoib_address *at)
{
	struct ipoib_interface *i = arg;

	ipoib_paths_doubt(&i->paths, &at->gid);
	if (i->options->connected)
		ipoib_connections_doubt(&i->connections, &at->gid);
}

/* Our address to ask from: one on the same link as @ip if there is any, else any of its family.
 * Zero: there is none. */
static struct ib_gid source_for(const struct ipoib_interface *i, const struct ib_gid *ip)
{
	const struct netdev *dev = ipoib_device(i);
	struct ib_gid found = { { 0 } };

	for (unsigned n = 0; dev && n < dev->n_addresses; n++) {
		const struct netdev_address *a = &dev->address[n];

		if (ipoib_same_prefix(a, ip))
			return a->gid;
		if (wire_gid_is_ipv4(&a->gid) == wire_gid_is_ipv4(ip) && ib_gid_is_zero(&found))
			found = a->gid;
	}
	return found;
}

struct ipoib_address ipoib_own_address(const struct ipoib_interface *i)
{
	return (struct ipoib_address){ .gid = i->port.gid,
		                       .qpn = ipoib_link_qpn(i->link),
		                       .flags = i->options->connected ? IPOIB_FLAG_RC : 0 };
}

static void ask(void *arg, const struct ib_gid *ip, const struct ipoib_address *at)
{
	struct ipoib_interface *i = arg;
	bool is_ipv4 = wire_gid_is_ipv4(ip);
	struct ipoib_solicitation s = { .source = source_for(i, ip),
		                        .target = *ip,
		                        .address = ipoib_own_address(i),
		                        .has_address = true };
	struct ib_gid group = ipoib_nd_solicited_group(ip), mgid = i->groups.broadcast->mgid;
	struct ipoib_packet p;

	if (ib_gid_is_zero(&s.source) ||
	    !ipoib_own_packet(i, &p, is_ipv4 ? IPOIB_TYPE_ARP : IPOIB_TYPE_IPV6))
		return;
	if (is_ipv4) {
		p.bytes = IPOIB_ARP_BYTES;
		ipoib_arp_encode(&s, at, p.data);
	} else {
		p.bytes = ipoib_nd_encode(&s, at ? ip : &group, p.data);
		ipoib_map_group(i, &group, &mgid);
	}
	if (at)
		ipoib_send_to(i, at, &p);
	else
		ipoib_send_to_group(i, &mgid, &p);
}

const struct ipoib_neighbour_ops ipoib_neighbour_ops = {
	.ask = ask,
	.send = ipoib_send_resolved,
	.unreachable = unreachable,
	.doubt = doubt,
};

/* ---- packets of the kernel ---- */

void ipoib_map_group(const struct ipoib_interface *i, const struct ib_gid *ip, struct ib_gid *mgid)
{
	uint16_t pkey = i->port.pkey | IB_PKEY_FULL_MEMBER;
	struct in6_addr ipv6;

	if (wire_gid_is_ipv4(ip)) {
		wire_mgid_from_ipv4(mgid, wire_gid_to_ipv4(ip), pkey, false);
		return;
	}
	/* these bytes are not mapped; here an address is never an MGID */
	memcpy(&ipv6, ip->raw, sizeof(ipv6));
	memset(ipv6.s6_addr + 2, 0, 4);
	wire_mgid_from_ipv6(mgid, &ipv6, pkey, false);
}

/* Whether it is the IPv4 broadcast address, or that of one of our prefixes. */
static bool is_broadcast(const struct ipoib_interface *i, const struct ib_gid *ip)
{
	const struct netdev *dev = ipoib_device(i);
	uint32_t host = ipoib_get32(ip->raw + 12);

	if (!wire_gid_is_ipv4(ip))
		return false;
	if (host == UINT32_MAX)
		return true;
	for (unsigned n = 0; dev && n < dev->n_addresses; n++) {
		const struct netdev_address *a = &dev->address[n];

		if (a->prefix < 31 && ipoib_same_prefix(a, ip) &&
		    (host | UINT32_MAX << (32 - a->prefix)) == UINT32_MAX)
			return true;
	}
	return false;
}

/* Whether the packet may tell that a socket has joined or left a group. */
static bool is_report(const struct ipoib_packet *p)
{
	if (p->type == IPOIB_TYPE_IPV4)
		return p->data[9] == IGMP;
	return p->data[6] == HOP_BY_HOP;
}

static void transmit(struct ipoib_interface *i, struct ipoib_packet *p)
{
	const struct ipoib_address *to;
	const struct ib_gid *hop;
	struct ib_gid destination, mgid;

	if (!ipoib_ip_destination(p->data, p->bytes, &destination)) {
		i->counters.cannot_send++;
		return;
	}
	p->type = p->data[0] >> 4 == 4 ? IPOIB_TYPE_IPV4 : IPOIB_TYPE_IPV6;
	if (wire_gid_is_ip_mcast(&destination)) {
		i->members_changed |= is_report(p);
		ipoib_map_group(i, &destination, &mgid);
		ipoib_send_to_group(i, &mgid, p);
		return;
	}
	if (is_broadcast(i, &destination)) {
		ipoib_send_to_group(i, &i->groups.broadcast->mgid, p);
		return;
	}
	hop = ipoib_routes_next_hop(i->routes, &destination);
	to = ipoib_neighbours_use(&i->neighbours, hop, p);
	if (to)
		send_unicast(i, to, p);
}

unsigned ipoib_transmit(struct ipoib_interface *i)
{
	struct ipoib_packet p;
	unsigned n = 0;

	while (n < BATCH && i->tun_has_packets && (p.data = ipoib_link_slot(i->link))) {
		i->tun_has_packets = ipoib_tun_read(&i->tun, &p);
		if (!i->tun_has_packets)
			break;
		transmit(i, &p);
		/* the first one after a sleep may be the only one: it does not wait for others */
		if (!n++ && i->has_slept)
			ipoib_link_flush(i->link);
	}
	ipoib_link_flush(i->link);
	return n;
}
