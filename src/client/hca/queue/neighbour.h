/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether somebody has the address that a handle or a queue pair leads to, on Ethernet. As Linux
 * has it: its rdma core finds the MAC address first, and waits a second for it.
 */
#ifndef HCA_NEIGHBOUR_H
#define HCA_NEIGHBOUR_H

#include "hca/process/context.h"

/*
 * Waits until somebody has @dgid, or the gateway on the way from @sgid, a second at most. An
 * answer holds for a second. 0; -ETIMEDOUT: nobody has; -ENETUNREACH and the like: there is no
 * route; -EIO. Thread-safe; signals do not end the wait.
 */
int hca_neighbour_await(struct hca_context *ctx, const struct ib_gid *sgid,
                        const struct ib_gid *dgid);

#endif
