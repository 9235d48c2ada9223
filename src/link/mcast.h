/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Membership of IP multicast groups on one network device: the kernel speaks IGMP and MLD for
 * us, answers queries, and opens the device's filter, as long as some socket is a member. A
 * socket can be a member of few groups only (IPv4: net.ipv4.igmp_max_memberships; IPv6:
 * net.core.optmem_max), so there are as many sockets as it takes; they receive nothing
 * themselves: link_udp_open_receive()'s socket gets the datagrams.
 *
 * Each join counts; the group is left with the last leave. Not thread-safe.
 */
#ifndef LINK_MCAST_H
#define LINK_MCAST_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/ib.h"

struct link_mcast;

/* For the device of that index. 0 or -errno. */
int link_mcast_new(struct link_mcast **mcast, int ifindex);

/* Leaves all groups. */
void link_mcast_free(struct link_mcast *mcast);

/*
 * Joins @group, IPv4-mapped or IPv6, once more. 0, or -errno with @why, @len bytes, saying
 * what went wrong, and if a limit of the kernel's bit, the name of its sysctl; -EINVAL: no
 * multicast address; -ENODEV: the device is gone.
 */
int link_mcast_join(struct link_mcast *mcast, const struct ib_gid *group, char *why, size_t len);

/* Takes one join back. 0, or -ENOENT: there is none. */
int link_mcast_leave(struct link_mcast *mcast, const struct ib_gid *group);

/* Groups that are joined, each once, and the sockets that they take. */
unsigned link_mcast_groups(const struct link_mcast *mcast);
unsigned link_mcast_sockets(const struct link_mcast *mcast);

/*
 * The device was away and has come back, maybe with another index: all memberships anew.
 * Returns 0 or the last -errno with @why; what could not be joined stays counted and is
 * tried again by the next call.
 */
int link_mcast_renew(struct link_mcast *mcast, int ifindex, char *why, size_t len);

#endif
