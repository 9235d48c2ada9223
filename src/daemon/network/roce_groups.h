/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Groups that Ethernet ports join on their networks, by IGMP and MLD, which the kernel speaks: as
 * long as rdma_cm has joined one, or, if the fabric is set so, as long as a queue pair is attached
 * to one. netdev/mcast.h counts them together.
 */
#ifndef DAEMON_ROCE_GROUPS_H
#define DAEMON_ROCE_GROUPS_H

#include "daemon/network/roce_state.h"

/* 0 or -errno. */
int roce_groups_init(struct daemon_roce *r);

/* The port's ifindex is another one now, or 0; or the device may have been away meanwhile. */
void roce_groups_renew(struct daemon_roce_port *p);

/*
 * Attaches @qp to @mgid, and joins the group on the network if the settings say so. 0; -ENOMEM: a
 * limit of the settings or of the kernel (the log names it), or memory; -errno.
 */
int daemon_roce_attach(struct daemon_roce *r, const struct daemon_qp *qp, const struct ib_gid *mgid,
                       uint16_t mlid);

/* Joins a group on a port's network, once more; undoes one join. 0 or -errno. */
int daemon_roce_join(struct daemon_roce *r, struct fabric_port *port, const struct ib_gid *mgid);
void daemon_roce_leave(struct daemon_roce *r, struct fabric_port *port, const struct ib_gid *mgid);

#endif
