/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the link to the device: see interface.h. IP goes to the kernel. ARP and neighbour discovery
 * end here: for the kernel the device has no link-layer addresses.
 */
#include "ipoib/arp.h"
#include "ipoib/interface.h"
#include "ipoib/nd.h"

#define GRH_SGID_AT 8
#define GRH_DGID_AT 24

void ipoib_deliver(void *arg, const struct virtio_net_hdr *vnet, const struct iovec *piece,
                   unsigned n)
{
	struct ipoib_interface *i = arg;

	if (ipoib_tun_write(&i->tun, vnet, piece, n))
		i->counters.delivered++;
	else
		i->counters.not_delivered++;
}

/* ---- the owners of addresses ---- */

/* Whether a packet is from the interface that it names. */
enum origin {
	ORIGIN_FALSE,
	ORIGIN_POSSIBLE, /* nothing tells */
	ORIGIN_CERTAIN,
};

/* The port of @gid is somewhere else than we think. */
static void has_moved(struct ipoib_interface *i, const struct ib_gid *gid)
{
	ipoib_paths_doubt(&i->paths, gid);
	if (i->options->connected)
		ipoib_connections_doubt(&i->connections, gid);
}

/*
 * The HCA writes the GRH, so it says from which port a packet is. Then, if it does not come by the
 * path that we know, the path is out of date. Without a GRH the path has to agree. A peer with a
 * connection has named itself by it, and can be nobody else.
 */
static enum origin origin_of(struct ipoib_interface *i, const struct ipoib_received *r,
                             const struct ipoib_address *named)
{
	enum ipoib_path_match path = ipoib_paths_match(&i->paths, &named->gid, r->lid);

	if (r->peer && !ipoib_address_equal(r->peer, named))
		return ORIGIN_FALSE;
	if (!r->grh && path == IPOIB_PATH_UNKNOWN)
		return ORIGIN_POSSIBLE;
	if (!r->grh)
		return path == IPOIB_PATH_MATCHES ? ORIGIN_CERTAIN : ORIGIN_FALSE;
	if (memcmp(r->grh + GRH_SGID_AT, named->gid.raw, sizeof(named->gid.raw)) != 0)
		return ORIGIN_FALSE;
	if (path == IPOIB_PATH_DIFFERS)
		has_moved(i, &named->gid);
	return ORIGIN_CERTAIN;
}

static bool to_group(const struct ipoib_received *r)
{
	return r->grh && r->grh[GRH_DGID_AT] == 0xFF;
}

/* Answers a question for @s->target, an address of ours. */
static void answer(struct ipoib_interface *i, const struct ipoib_solicitation *s)
{
	static const struct ib_gid all_nodes = { { 0xFF, 0x02, [15] = 0x01 } };
	bool is_ipv4 = wire_gid_is_ipv4(&s->target);
	bool has_source = !ib_gid_is_zero(&s->source);
	struct ipoib_solicitation reply = { .source = s->source,
		                            .target = s->target,
		                            .address = ipoib_own_address(i),
		                            .has_address = true,
		                            .is_answer = true,
		                            .solicited = has_source,
		                            .override = true };
	const struct ipoib_address *to = &s->address;
	struct ipoib_packet p;
	struct ib_gid mgid;

	if (!ipoib_own_packet(i, &p, is_ipv4 ? IPOIB_TYPE_ARP : IPOIB_TYPE_IPV6))
		return;
	i->counters.resolved++;
	if (is_ipv4) {
		p.bytes = IPOIB_ARP_BYTES;
		ipoib_arp_encode(&reply, &s->address, p.data);
	} else {
		p.bytes = ipoib_nd_encode(&reply, has_source ? &s->source : &all_nodes, p.data);
	}
	if (!is_ipv4 && !has_source) {
		ipoib_map_group(i, &all_nodes, &mgid);
		ipoib_send_to_group(i, &mgid, &p);
		return;
	}
	/* a solicitation that came to us alone need not say where from: we know, or ask */
	if (!s->has_address)
		to = ipoib_neighbours_use(&i->neighbours, &s->source, &p);
	if (to)
		ipoib_send_to(i, to, &p);
}

static void question(struct ipoib_interface *i, const struct ipoib_solicitation *s,
                     enum origin origin)
{
	bool for_us = ipoib_is_ours(i, &s->target);
	struct ipoib_news news = { .ip = s->source,
		                   .address = s->address,
		                   .override = true,
		                   .create = for_us && ipoib_is_on_link(i, &s->source),
		                   .certain = origin == ORIGIN_CERTAIN };

	if (s->has_address && !ib_gid_is_zero(&s->source))
		ipoib_neighbours_learn(&i->neighbours, &news);
	if (for_us &&
	    (s->has_address || !ib_gid_is_zero(&s->source) || !wire_gid_is_ipv4(&s->target)))
		answer(i, s);
}

static void told(struct ipoib_interface *i, const struct ipoib_received *r,
                 const struct ipoib_solicitation *s, enum origin origin)
{
	const struct ipoib_neighbour *n = ipoib_neighbours_find(&i->neighbours, &s->target);
	struct ipoib_news news = { .ip = s->target,
		                   .address = s->address,
		                   .answer = s->solicited && !to_group(r),
		                   .override = s->override };

	if (!n)
		return;
	/* an advertisement that is an answer to our unicast may leave the address out */
	if (!s->has_address && n->state == IPOIB_INCOMPLETE)
		return;
	if (!s->has_address) {
		news.address = n->address;
		origin = origin_of(i, r, &n->address);
	}
	news.certain = origin == ORIGIN_CERTAIN;
	ipoib_neighbours_learn(&i->neighbours, &news);
}

static void resolution(struct ipoib_interface *i, const struct ipoib_received *r,
                       const struct ipoib_solicitation *s)
{
	enum origin origin = s->has_address ? origin_of(i, r, &s->address) : ORIGIN_POSSIBLE;

	if (origin == ORIGIN_FALSE) {
		i->counters.spoofed++;
		return;
	}
	if (ipoib_is_ours(i, s->is_answer ? &s->target : &s->source)) {
		i->counters.conflicts++;
		return;
	}
	if (s->is_answer)
		told(i, r, s, origin);
	else
		question(i, s, origin);
}

/* ---- packets ---- */

static void receive_ip(struct ipoib_interface *i, const struct ipoib_received *r, unsigned type)
{
	uint8_t *packet = r->data + IPOIB_HEADER_BYTES;
	struct ipoib_solicitation s;
	struct ipoib_ip ip;

	if (!ipoib_ip_parse(packet, r->bytes - IPOIB_HEADER_BYTES, &ip) || ip.type != type) {
		i->counters.short_packets++;
		return;
	}
	if (!ipoib_nd_is_one(&ip, packet))
		ipoib_merge_add(&i->merge, packet, &ip);
	else if (ipoib_nd_decode(&ip, packet, &s))
		resolution(i, r, &s);
	else
		i->counters.bad_resolutions++;
}

static void receive_arp(struct ipoib_interface *i, const struct ipoib_received *r)
{
	struct ipoib_solicitation s;

	if (ipoib_arp_decode(r->data + IPOIB_HEADER_BYTES, r->bytes - IPOIB_HEADER_BYTES, &s))
		resolution(i, r, &s);
	else
		i->counters.bad_resolutions++;
}

static void receive(struct ipoib_interface *i, const struct ipoib_received *r)
{
	unsigned type;

	i->counters.received++;
	if (r->bytes <= IPOIB_HEADER_BYTES) {
		i->counters.short_packets++;
		return;
	}
	type = ipoib_get16(r->data);
	switch (type) {
	case IPOIB_TYPE_IPV4:
	case IPOIB_TYPE_IPV6:
		receive_ip(i, r, type);
		break;
	case IPOIB_TYPE_ARP:
		receive_arp(i, r);
		break;
	default:
		i->counters.unknown_types++;
	}
}

void ipoib_receive(struct ipoib_interface *i, const struct ipoib_received *r)
{
	/* what we send to a group comes back to us */
	if (r->qpn != ipoib_link_qpn(i->link) || r->lid != i->port.lid)
		receive(i, r);
}

/* ARP and neighbour discovery may come by a connection, too; there is no GRH. */
void ipoib_receive_connected(struct ipoib_interface *i, const struct ipoib_rc_received *r)
{
	struct ipoib_connection *c = ipoib_connections_received(&i->connections, r->qpn);
	struct ipoib_received packet = { .data = r->data, .bytes = r->bytes };

	if (!c)
		return;
	if (r->failed) {
		ipoib_connection_fail(c);
		return;
	}
	packet.qpn = c->peer.qpn;
	packet.lid = c->lid;
	packet.peer = &c->peer;
	receive(i, &packet);
}
