/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of rtnetlink that the files of this folder share.
 */
#ifndef NETDEV_NETLINK_H
#define NETDEV_NETLINK_H

#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <stdbool.h>

#include "netdev/network.h"
#include "wire/ib.h"

/* States in which the kernel sends to a neighbour at once: NUD_VALID of its own headers. */
#define NETDEV_NUD_KNOWN \
	(NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

/* A socket of rtnetlink in @network. NULL: see errno. */
struct mnl_socket *netdev_netlink_open(const struct netdev_network *network);

/* The address of @family in an attribute, IPv4 mapped; false, and @gid as it was, if it has another
 * length. */
bool netdev_netlink_gid(const struct nlattr *attr, int family, struct ib_gid *gid);

#endif
