/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaches queue pairs to multicast groups and detaches them: each change of the attach tables
 * (attach_table.h) updates the flows to that group. Only the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_ATTACH_H
#define FABRIC_ATTACH_H

#include "fabric/model/attach_table.h"

/* 0 (also if it is attached already); -ENOMEM: a limit of the settings, FABRIC_ATTACH_MAX_AGAIN, or
 * memory. */
int fabric_attach_add(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                      uint16_t mlid);

/* 0, or -EINVAL: not attached by this MGID and MLID. */
int fabric_attach_remove(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                         uint16_t mlid);

/*
 * Detaches @qpn, whose record says that it is gone, from one group by one MLID. Flows to that group
 * list it until fabric_flow_prune(), as many are likely to go at once; nobody sends to it.
 */
void fabric_attach_drop(struct fabric *f, uint32_t qpn);

/* Tells the flows that the port of @qpn is another one. */
void fabric_attach_qp_moved(struct fabric *f, uint32_t qpn);

#endif
