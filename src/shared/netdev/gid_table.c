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

/* The GID that entry 0 must have; it has @now. */
static struct ib_gid default_gid(const struct netdev *dev, const struct ib_gid *now)
{
	if (is_link_local(now) && has(dev, now))
		return *now;
	for (unsigned i = 0; i < dev->n_addresses; i++)
		if (is_link_local(&dev->address[i].gid))
			return dev->address[i].gid;
	return from_mac(dev->mac);
}

/* The entry that has @gid, or NETDEV_GIDS. */
static unsigned find(const struct netdev_gid_table *table, const struct ib_gid *gid)
{
	unsigned i = 0;

	while (i < NETDEV_GIDS && !ib_gid_equal(&table->gid[i], gid))
		i++;
	return i;
}

static void empty(struct netdev_gid_table *table, unsigned i)
{
	memset(&table->gid[i], 0, sizeof(table->gid[i]));
}

static void fill(struct netdev_gid_table *table, unsigned i, const struct ib_gid *gid)
{
	table->gid[i] = table->last[i] = *gid;
}

static bool is_empty(const struct netdev_gid_table *table, unsigned i)
{
	return ib_gid_is_zero(&table->gid[i]);
}

/* Whether @gid may have entry @i: nobody sends from another one there. */
static bool may_have(const struct netdev_gid_table *table, unsigned i, const struct ib_gid *gid,
                     uint32_t used)
{
	return is_empty(table, i) && (!(used >> i & 1) || ib_gid_equal(&table->last[i], gid));
}

/* Gives @gid an entry, if it has none yet: the one from which somebody still sends as @gid, else
 * the first that is free. */
static void add(struct netdev_gid_table *table, const struct ib_gid *gid, uint32_t used)
{
	unsigned to = NETDEV_GIDS;

	if (find(table, gid) < NETDEV_GIDS)
		return;
	for (unsigned i = NETDEV_GIDS - 1; i; i--)
		if (may_have(table, i, gid, used))
			to = i;
	for (unsigned i = 1; i < NETDEV_GIDS; i++)
		if ((used >> i & 1) && may_have(table, i, gid, used))
			to = i;
	if (to < NETDEV_GIDS)
		fill(table, to, gid);
}

/* The link-local address moves to entry 0, unless it is in use where it is. */
static void add_default(struct netdev_gid_table *table, const struct netdev *dev, uint32_t used)
{
	struct ib_gid gid = default_gid(dev, &table->gid[0]);
	unsigned at = find(table, &gid);

	if (!may_have(table, 0, &gid, used) || (at < NETDEV_GIDS && (used >> at & 1)))
		return;
	if (at < NETDEV_GIDS)
		empty(table, at);
	fill(table, 0, &gid);
}

static uint32_t difference(const struct netdev_gid_table *a, const struct netdev_gid_table *b)
{
	uint32_t changed = 0;

	for (unsigned i = 0; i < NETDEV_GIDS; i++)
		if (!ib_gid_equal(&a->gid[i], &b->gid[i]))
			changed |= UINT32_C(1) << i;
	return changed;
}

uint32_t netdev_gid_table_drop(struct netdev_gid_table *table, const struct netdev *dev)
{
	const struct netdev_gid_table before = *table;
	struct ib_gid first = default_gid(dev, &before.gid[0]);

	if (!ib_gid_equal(&table->gid[0], &first))
		empty(table, 0);
	for (unsigned i = 1; i < NETDEV_GIDS; i++)
		if (!has(dev, &table->gid[i]))
			empty(table, i);
	return difference(table, &before);
}

uint32_t netdev_gid_table_add(struct netdev_gid_table *table, const struct netdev *dev,
                              uint32_t used)
{
	const struct netdev_gid_table before = *table;

	add_default(table, dev, used);
	for (unsigned i = 0; i < dev->n_addresses; i++)
		add(table, &dev->address[i].gid, used);
	return difference(table, &before);
}

bool netdev_gid_table_lacks(const struct netdev_gid_table *table, const struct netdev *dev)
{
	for (unsigned i = 0; i < dev->n_addresses; i++)
		if (find(table, &dev->address[i].gid) == NETDEV_GIDS)
			return true;
	return is_empty(table, 0);
}

unsigned netdev_active_mtu(uint32_t mtu)
{
	unsigned active = 5;

	while (active > 1 && IB_MTU_BYTES(active) + HEADER_BYTES > mtu)
		active--;
	return active;
}
