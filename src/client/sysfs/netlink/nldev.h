/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA netlink as the kernel answers it (<rdma/rdma_netlink.h>, RDMA_NL_NLDEV): devices, ports,
 * objects, counters. `rdma` of iproute2 asks so. Requests that would change something are refused
 * (-EOPNOTSUPP). Thread-safe.
 */
#ifndef SYSFS_NETLINK_NLDEV_H
#define SYSFS_NETLINK_NLDEV_H

#include "sysfs/netlink/message.h"

/* Adds to @a what answers the requests in @data, of a socket whose address is @port. */
void sysfs_nldev_answer(const void *data, size_t bytes, uint32_t port, struct netlink_answer *a);

#endif
