/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GID table and MTU of a RoCEv2 port: the pure part of netdev.h.
 */
#include <string.h>

#include "netdev/netdev.h"

#define HEADER_BYTES 80 /* IP, UDP and the largest transport headers, as in rdma_rxe */

/* fe80::/10 */
static bool is_link_local(const struct ib_gid *gid)
{
	return gid->raw[0] == 0xFE && (gid->raw[1] & 0xC0) == 0x80;
}

static bool has(const struct netdev *dev, const struct ib_gid *gid)
{
	for (unsigned i = 0; i < dev->n_addresses; i++)
		if (ib_gid_equal(&dev->address[i].gid, gid))
			return true;
	return false;
}

/* The link-local address of a MAC (RFC 4291, appendix A). */
static struct ib_gid from_mac(const uint8_t *mac)
{
	struct ib_gid gid = { { 0xFE, 0x80, [11] = 0xFF, [12] = 0xFE } };

	memcpy(gid.raw + 8, mac, 3);
	memcpy(gid.raw + 13, mac + 3, 3);
	gid.raw[8] ^= 2;
	return gid;
}

/* What entry 0 must be; it is @now. */
static struct ib_gid default_gid(const struct netdev *dev, const struct ib_gid *now)
{
	if (is_link_local(now) && has(dev, now))
		return *now;
	for (unsigned i = 0; i < dev->n_addresses; i++)
		if (is_link_local(&dev->address[i].gid))
			return dev->address[i].gid;
	return from_mac(dev->mac);
}

/* Gives @gid the first free entry, if it has none yet. */
static void add(struct netdev_gid_table *table, const struct ib_gid *gid)
{
	for (unsigned i = 0; i < NETDEV_GIDS; i++)
		if (ib_gid_equal(&table->gid[i], gid))
			return;
	for (unsigned i = 1; i < NETDEV_GIDS; i++)
		if (ib_gid_is_zero(&table->gid[i])) {
			table->gid[i] = *gid;
			return;
		}
}

uint32_t netdev_gid_table_update(struct netdev_gid_table *table, const struct netdev *dev)
{
	const struct netdev_gid_table before = *table;
	uint32_t changed = 0;

	table->gid[0] = default_gid(dev, &before.gid[0]);
	for (unsigned i = 1; i < NETDEV_GIDS; i++)
		if (!has(dev, &table->gid[i]) || ib_gid_equal(&table->gid[i], &table->gid[0]))
			memset(&table->gid[i], 0, sizeof(table->gid[i]));
	for (unsigned i = 0; i < dev->n_addresses; i++)
		add(table, &dev->address[i].gid);

	for (unsigned i = 0; i < NETDEV_GIDS; i++)
		if (!ib_gid_equal(&table->gid[i], &before.gid[i]))
			changed |= UINT32_C(1) << i;
	return changed;
}

unsigned netdev_active_mtu(uint32_t mtu)
{
	unsigned active = 5;

	while (active > 1 && IB_MTU_BYTES(active) + HEADER_BYTES > mtu)
		active--;
	return active;
}
