/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The next hop of a packet that the kernel has sent by our device: the kernel does not say it, so
 * it is asked, once for each destination. Its answers are forgotten when routes change. Not
 * thread-safe.
 */
#ifndef IPOIB_ROUTES_H
#define IPOIB_ROUTES_H

#include "wire/ib.h"

struct ipoib_routes;

/* 0 or -errno. */
int ipoib_routes_open(struct ipoib_routes **routes, int ifindex);
void ipoib_routes_close(struct ipoib_routes *routes);

/* Readable: call ipoib_routes_dispatch(). */
int ipoib_routes_fd(const struct ipoib_routes *routes);
void ipoib_routes_dispatch(struct ipoib_routes *routes);

/* A gateway, or @destination itself, also if the kernel does not know: valid until the next call.
 */
const struct ib_gid *ipoib_routes_next_hop(struct ipoib_routes *routes,
                                           const struct ib_gid *destination);

#endif
