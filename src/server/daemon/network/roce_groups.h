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

/* A queue pair's membership in a group, as known by rdma_cm. */
enum daemon_roce_joined {
	DAEMON_ROCE_NOBODY,     /* its port is no member that receives */
	DAEMON_ROCE_SENDS_ONLY, /* likewise, and its program has joined to send */
	DAEMON_ROCE_IS_MEMBER,  /* its port receives */
};

/*
 * Attaches @qp, and joins the group on the network if the settings say so, but not for a program
 * that has joined to send only. The log tells of attaching without a join. 0; -ENOMEM: a limit of
 * the settings or of the kernel (the log names it), or memory; -errno.
 */
int daemon_roce_attach(struct daemon_roce *r, const struct daemon_qp *qp,
                       const struct control_attach *to, enum daemon_roce_joined joined);

/* Joins a group on a port's network, once more; undoes one join. 0 or -errno. */
int daemon_roce_join(struct daemon_roce *r, struct fabric_port *port, const struct ib_gid *mgid);
void daemon_roce_leave(struct daemon_roce *r, struct fabric_port *port, const struct ib_gid *mgid);

#endif
