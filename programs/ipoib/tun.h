/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface that the host sees: a TUN device. It exists as long as its descriptor is open.
 * Not thread-safe.
 */
#ifndef IPOIB_TUN_H
#define IPOIB_TUN_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "ipoib/packet.h"
#include "netdev/netdev.h"

struct ipoib_tun {
	int fd, index;
	char name[IFNAMSIZ];
	bool carrier;
};

/* Makes it, without addresses and carrier, not up. 0 or -errno. */
int ipoib_tun_open(struct ipoib_tun *tun, const char *name);
void ipoib_tun_close(struct ipoib_tun *tun);

int ipoib_tun_set_mtu(const struct ipoib_tun *tun, unsigned mtu);
/* The description of the device, for people and for src/client/sysfs. */
int ipoib_tun_set_alias(const struct ipoib_tun *tun, const char *text);
int ipoib_tun_set_up(const struct ipoib_tun *tun);
int ipoib_tun_add_address(const struct ipoib_tun *tun, const struct netdev_address *address);
/* Has what is sent to groups of IPv4, or IPv6, leave by it, in packets of at most @mtu bytes; anew
 * if
 * @before was another MTU than 0. */
int ipoib_tun_route_groups(const struct ipoib_tun *tun, bool ipv6, unsigned mtu, unsigned before);
/* Whether the link works. */
void ipoib_tun_set_carrier(struct ipoib_tun *tun, bool carrier);

/* Reads the next packet to @p->data, where IPOIB_MAX_PACKET bytes are. False: there is none. */
bool ipoib_tun_read(const struct ipoib_tun *tun, struct ipoib_packet *p);
/* Gives the kernel a packet; it may not want it. */
bool ipoib_tun_write(const struct ipoib_tun *tun, const struct virtio_net_hdr *vnet,
                     const struct iovec *piece, unsigned n);

#endif
