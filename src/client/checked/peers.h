/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of a peer that a request reads or writes, where the peer is of this process: then its
 * tools are told (tools.h). A peer's library in another process does not learn of it. With the lock
 * of the checker held.
 */
#ifndef CHECKED_PEERS_H
#define CHECKED_PEERS_H

#include "checked/objects.h"
#include "checked/tools.h"

/* @qp: its queue pair; NULL: not known. */
void checked_peer_lend(struct checked_lent *l, const struct hca_record *r,
                       struct checked_object *qp, uint32_t place);

#endif
