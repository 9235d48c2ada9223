/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the program needs, held against what the card that it is checked for has (card.h), and what
 * no card does. With the lock of the checker held.
 */
#ifndef CHECKED_NEEDS_H
#define CHECKED_NEEDS_H

#include "checked/watcher.h"

/* Reads the card that UMBEL_CHECKED_CARD names. */
void checked_needs_start(void);

void checked_needs_object(enum checked_kind kind, const struct checked_made *how);
void checked_needs_request(const struct hca_record *r);
/* @port: that the queue pair was at before; 0: at none. */
void checked_needs_modified(const struct ibv_qp *qp, uint8_t port, const struct ibv_qp_attr *attr,
                            int mask);
void checked_needs(enum checked_need need, uint64_t n);
void checked_looked_at_gids(void);
void checked_looked_at_ports(void);

#endif
