/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether somebody has an address. Linux finds that out before it calls an address resolved, makes
 * an address handle or connects a queue pair. The kernel is asked (netdev/neighbour.h), and asks by
 * ARP and neighbour discovery. An address that an Ethernet port of this fabric has is known without
 * that. Nothing here waits.
 */
#ifndef DAEMON_ROCE_NEIGHBOURS_H
#define DAEMON_ROCE_NEIGHBOURS_H

#include "cm/ops.h"
#include "daemon/network/roce_state.h"

/*
 * 0: somebody has @dgid, or the gateway on the way from @sgid of @port, or it needs nobody;
 * -EINPROGRESS: nobody has answered yet, and the kernel asks from now on; -ENETUNREACH and the
 * like: there is no route.
 */
int daemon_roce_neighbour(struct daemon_roce *r, struct fabric_port *port,
                          const struct ib_gid *sgid, const struct ib_gid *dgid);

/* As cm_ops.search and cm_ops.search_end. */
int daemon_roce_search(struct daemon_roce *r, const struct cm_sought *sought,
                       struct cm_search **search);
void daemon_roce_search_end(struct cm_search *search);

#endif
