/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network devices of this host, as the kernel tells of them by rtnetlink: state, MTU and
 * addresses, now and as they change; and what a RoCEv2 port makes of them: its GID table and
 * its active MTU.
 *
 * All devices are followed, so that one that is named before it exists is found when it comes,
 * and again after it was away. Not thread-safe. Nothing here blocks or runs by itself: the
 * caller polls link_watch_fd() for input and calls link_watch_dispatch().
 */
#ifndef LINK_NETDEV_H
#define LINK_NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/ib.h"

#define LINK_MAC_BYTES 6

/* Addresses that may be used: tentative ones and duplicates are not there. */
struct link_address {
	struct ib_gid gid; /* IPv4: mapped */
	uint8_t prefix;    /* length, of the address itself: up to 32 or 128 */
};

struct link_netdev {
	int index;
	char name[IFNAMSIZ];
	bool up;      /* set up by the administrator */
	bool carrier; /* and able to carry something */
	bool loopback;
	uint32_t mtu;
	uint8_t mac[LINK_MAC_BYTES]; /* zeros where there is none */
	unsigned n_addresses;
	struct link_address *address; /* in the order in which the kernel named them */
};

/* What happened to a device. */
enum link_change {
	LINK_CHANGE_NEW = 1,
	LINK_CHANGE_GONE = 2,  /* or moved to another network namespace */
	LINK_CHANGE_STATE = 4, /* up, carrier */
	LINK_CHANGE_MTU = 8,
	LINK_CHANGE_ADDRESSES = 16,
	LINK_CHANGE_NAME = 32,
	LINK_CHANGE_MAC = 64,
};

/* Called by link_watch_dispatch(), @changes of enum link_change. @dev is valid in the call. */
typedef void link_changed(void *arg, const struct link_netdev *dev, unsigned changes);

struct link_watch;

/*
 * Begins to watch; all devices that there are can be found when it returns (no calls for
 * these). 0 or -errno.
 */
int link_watch_open(struct link_watch **watch, link_changed *changed, void *arg);
void link_watch_close(struct link_watch *watch);

/* Readable: call link_watch_dispatch(). */
int link_watch_fd(const struct link_watch *watch);

/*
 * Takes in all that the kernel has said, and tells. If the kernel could not keep up, asks for
 * everything again and tells the difference. 0 or -errno.
 */
int link_watch_dispatch(struct link_watch *watch);

/* The device of that name or index, or NULL. Valid until the next dispatch. */
const struct link_netdev *link_watch_find(const struct link_watch *watch, const char *name);
const struct link_netdev *link_watch_at(const struct link_watch *watch, int index);

/* ---- what a RoCEv2 port makes of a device: pure ---- */

#define LINK_GIDS 32

/* All are of type RoCEv2. */
struct link_gid_table {
	struct ib_gid gid[LINK_GIDS]; /* zeros: empty */
};

/*
 * Brings @table up to date with @dev's addresses, as the kernel does with that of a RoCEv2
 * port. Entry 0 is the link-local IPv6 address, or if the device has none the one that its MAC
 * would give; the others are in the order in which they came. An address keeps its index as
 * long as it is there; one that goes leaves a hole for the next. What finds no place has none.
 * Returns the changed entries, a bit each.
 */
uint32_t link_gid_table_update(struct link_gid_table *table, const struct link_netdev *dev);

/*
 * The MTU (enum ibv_mtu) of a RoCEv2 port on a device whose MTU is @mtu bytes: the largest
 * that fits with 80 bytes of headers, as rdma_rxe reckons; at least 256 bytes.
 */
unsigned link_active_mtu(uint32_t mtu);

#endif
