/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Telling neighbours our addresses unasked: see interface.h. It wakes every host of the link, so an
 * address is announced only if somebody may know it from another place: not each time that the
 * kernel reports another one, and not by an interface that is new.
 */
#include "base/util.h"
#include "ipoib/arp.h"
#include "ipoib/interface.h"
#include "ipoib/nd.h"

/* A request of ARP for our own address, an advertisement that nobody has asked for. */
static void announce(struct ipoib_interface *i, const struct ib_gid *ip)
{
	static const struct ib_gid all_nodes = { { 0xFF, 0x02, [15] = 0x01 } };
	bool is_ipv4 = wire_gid_is_ipv4(ip);
	struct ipoib_solicitation s = { .source = *ip,
		                        .target = *ip,
		                        .address = ipoib_own_address(i),
		                        .has_address = true,
		                        .is_answer = !is_ipv4,
		                        .override = true };
	struct ib_gid mgid = i->groups.broadcast->mgid;
	struct ipoib_packet p;

	if (!ipoib_own_packet(i, &p, is_ipv4 ? IPOIB_TYPE_ARP : IPOIB_TYPE_IPV6))
		return;
	if (is_ipv4) {
		p.bytes = IPOIB_ARP_BYTES;
		ipoib_arp_encode(&s, NULL, p.data);
	} else {
		p.bytes = ipoib_nd_encode(&s, &all_nodes, p.data);
		ipoib_map_group(i, &all_nodes, &mgid);
	}
	ipoib_send_to_group(i, &mgid, &p);
}

static struct ipoib_told *find(struct ipoib_interface *i, const struct ib_gid *ip)
{
	for (unsigned n = 0; n < i->n_told; n++) {
		if (ib_gid_equal(&i->told[n].ip, ip))
			return &i->told[n];
	}
	return NULL;
}

/* Forgets addresses that are ours no longer; addresses that the kernel has not reported yet
 * stay. */
static void forget_lost(struct ipoib_interface *i)
{
	unsigned kept = 0;

	for (unsigned n = 0; n < i->n_told; n++) {
		bool is_ours = ipoib_is_ours(i, &i->told[n].ip);

		if (i->told[n].seen && !is_ours)
			continue;
		i->told[n].seen |= is_ours;
		i->told[kept++] = i->told[n];
	}
	i->n_told = kept;
}

void ipoib_announce_told(struct ipoib_interface *i, const struct ib_gid *ip)
{
	if (i->n_told < ARRAY_SIZE(i->told))
		i->told[i->n_told++] = (struct ipoib_told){ .ip = *ip };
}

void ipoib_announce(struct ipoib_interface *i)
{
	const struct netdev *dev = ipoib_device(i);

	forget_lost(i);
	for (unsigned n = 0; i->tun.carrier && dev && n < dev->n_addresses; n++) {
		if (find(i, &dev->address[n].gid))
			continue;
		announce(i, &dev->address[n].gid);
		ipoib_announce_told(i, &dev->address[n].gid);
	}
	ipoib_link_flush(i->link);
}

void ipoib_announce_again(struct ipoib_interface *i)
{
	i->n_told = 0;
	ipoib_announce(i);
}
