/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compares the needs of the program with the features of the card that it is checked for (card.h),
 * and with what no card can do. The callers hold the lock of the checker.
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
