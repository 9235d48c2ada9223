/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network devices of this host, from the kernel's rtnetlink messages: state, MTU and addresses, now
 * and as they change; and from them the GID table and the active MTU of a RoCEv2 port.
 *
 * All devices are watched, so that the caller can wait for one that does not exist yet or was
 * removed. Not thread-safe. Nothing runs by itself: the caller polls netdev_watch_fd() for input
 * and calls netdev_watch_dispatch(). Only netdev_watch_open() and a dispatch that lists everything
 * again wait, for the kernel's reply.
 */
#ifndef NETDEV_NETDEV_H
#define NETDEV_NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "netdev/network.h"
#include "wire/ib.h"

#define NETDEV_MAC_BYTES 6

/* A usable address. Tentative and duplicate ones are not listed. */
struct netdev_address {
	struct ib_gid gid; /* IPv4: mapped */
	uint8_t prefix;    /* length in bits: up to 32 (IPv4) or 128 */
};

struct netdev {
	int index;
	char name[IFNAMSIZ];
	bool up;      /* set up by the administrator */
	bool carrier; /* the link works */
	bool loopback;
	bool noarp; /* it does not ask for neighbours: a tunnel */
	uint32_t mtu;
	uint8_t mac[NETDEV_MAC_BYTES]; /* zeros: it has none */
	unsigned n_addresses;
	struct netdev_address *address; /* in the order in which the kernel reported them */
};

/* Changes of a device. */
enum netdev_change {
	NETDEV_CHANGE_NEW = 1,
	NETDEV_CHANGE_GONE = 2,  /* or moved to another network namespace */
	NETDEV_CHANGE_STATE = 4, /* up, carrier */
	NETDEV_CHANGE_MTU = 8,
	NETDEV_CHANGE_ADDRESSES = 16,
	NETDEV_CHANGE_NAME = 32,
	NETDEV_CHANGE_MAC = 64,
	/* messages were lost: it may have been away meanwhile, as another device with its index */
	NETDEV_CHANGE_UNSURE = 128,
};

/*
 * netdev_watch_dispatch() calls it; @changes: enum netdev_change, ORed. @dev is valid in the call.
 */
typedef void netdev_changed(void *arg, const struct netdev *dev, unsigned changes);

struct netdev_watch;

/*
 * Begins to watch the devices of @network (NULL: this process's). When it returns, all present
 * devices can be found; @changed is not called for them. Returns 0 and *@watch, which
 * netdev_watch_close() frees; or -errno.
 */
int netdev_watch_open(struct netdev_watch **watch, const struct netdev_network *network,
                      netdev_changed *changed, void *arg);
void netdev_watch_close(struct netdev_watch *watch);

/* The descriptor to poll: when it is readable, call netdev_watch_dispatch(). The watch owns it. */
int netdev_watch_fd(const struct netdev_watch *watch);

/*
 * Reads all messages of the kernel and calls @changed for each change. If the kernel has dropped
 * messages, lists all devices again and calls @changed for each, with the differences. Returns 0 or
 * -errno.
 */
int netdev_watch_dispatch(struct netdev_watch *watch);

/* A neighbour of device @ifindex is known now, or known still: packets that were sent to it have
 * left. */
typedef void netdev_neighbour_came(void *arg, int ifindex, const struct ib_gid *gid);

/*
 * Watches neighbours, too, from now on, and has @came called, with the watch's arg, for each that
 * comes, while messages of them are not lost; NULL: no longer. 0 or -errno. Networks may have
 * thousands, so they are watched only while somebody waits for one.
 */
int netdev_watch_neighbours(struct netdev_watch *watch, netdev_neighbour_came *came);

/* The device of that name, or index; NULL: there is none. Valid until the next dispatch. */
const struct netdev *netdev_watch_find(const struct netdev_watch *watch, const char *name);
const struct netdev *netdev_watch_at(const struct netdev_watch *watch, int index);

/* ---- the GID table and MTU of a RoCEv2 port on a device: pure functions ---- */

#define NETDEV_GIDS 32

/* All entries are of type RoCEv2. */
struct netdev_gid_table {
	struct ib_gid gid[NETDEV_GIDS];  /* zeros: empty */
	struct ib_gid last[NETDEV_GIDS]; /* what is there, or was there last */
};

/*
 * These two update @table to @dev's addresses, by the rules of the kernel for a RoCEv2 port. Entry
 * 0 is the link-local IPv6 address; if the device has none, the one made from its MAC. The others
 * are in the order in which they came. An address keeps its index; the next new address gets the
 * entry of one that was removed. If the table is full, an address has no entry.
 *
 * The first one empties the entries of addresses that are gone; the second one fills entries. It
 * leaves those of @used, a bit for each, empty for the address that was there, as somebody still
 * sends from it. Each returns a bit for each entry that changed.
 */
uint32_t netdev_gid_table_drop(struct netdev_gid_table *table, const struct netdev *dev);
uint32_t netdev_gid_table_add(struct netdev_gid_table *table, const struct netdev *dev,
                              uint32_t used);

/* Whether an address of @dev has no entry. */
bool netdev_gid_table_lacks(const struct netdev_gid_table *table, const struct netdev *dev);

/*
 * The MTU (enum ibv_mtu) of a RoCEv2 port on a device whose MTU is @mtu bytes: the largest that
 * leaves 80 bytes for headers, as in Linux's rdma_rxe; at least 256 bytes.
 */
unsigned netdev_active_mtu(uint32_t mtu);

#endif
