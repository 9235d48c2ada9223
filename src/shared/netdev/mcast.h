/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Membership of IP multicast groups on one network device. As long as some socket is a member, the
 * kernel speaks IGMP and MLD for the group and opens the device's filter. A socket can be a member
 * of few groups only (IPv4: net.ipv4.igmp_max_memberships; IPv6: net.core.optmem_max), so there are
 * as many sockets as are needed. They receive nothing: the socket of netdev_udp_open_receive() gets
 * the datagrams.
 *
 * Joins are counted; the last leave ends the membership. Not thread-safe; nothing blocks.
 */
#ifndef NETDEV_MCAST_H
#define NETDEV_MCAST_H

#include <stdbool.h>
#include <stddef.h>

#include "netdev/network.h"
#include "wire/ib.h"

struct netdev_mcast;

/* Memberships on the device with index @ifindex in @network (NULL: this process's). Returns 0 and
 * *@mcast; or -errno. */
int netdev_mcast_new(struct netdev_mcast **mcast, const struct netdev_network *network,
                     int ifindex);

/* Leaves all groups and frees @mcast. */
void netdev_mcast_free(struct netdev_mcast *mcast);

/*
 * Joins @group, IPv4-mapped or IPv6, or counts one join more. Returns 0, or -errno with a message
 * in @why, @len bytes, which names the sysctl if a limit of the kernel is the reason; -EINVAL: no
 * multicast address; -ENODEV: the device is gone.
 */
int netdev_mcast_join(struct netdev_mcast *mcast, const struct ib_gid *group, char *why,
                      size_t len);

/* Undoes one join. Returns 0; -ENOENT: the group is not joined. */
int netdev_mcast_leave(struct netdev_mcast *mcast, const struct ib_gid *group);

/* The number of groups that are joined, and of the sockets that they need. */
unsigned netdev_mcast_groups(const struct netdev_mcast *mcast);
unsigned netdev_mcast_sockets(const struct netdev_mcast *mcast);

/*
 * The device was removed and has come back, perhaps with another index: joins all groups again.
 * @ifindex 0: it is gone, and nothing can be joined until a later call; this ends the memberships,
 * which would otherwise end others' on a device that gets the same index. Returns 0, or the last
 * -errno with @why. Groups that could not be joined keep their count; the
 * next call tries them again.
 */
int netdev_mcast_renew(struct netdev_mcast *mcast, int ifindex, char *why, size_t len);

#endif
