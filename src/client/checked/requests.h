/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory, address handles and queue entries of requests that have not completed. The callers
 * hold the lock of the checker.
 */
#ifndef CHECKED_REQUESTS_H
#define CHECKED_REQUESTS_H

#include "checked/moves.h"
#include "checked/objects.h"

/* Once, before all else. */
void checked_requests_start(checked_lost *lost);

void checked_request_begin(struct hca_record *r);
/* @wc: its completion; NULL: it has none of its own. */
void checked_request_complete(struct hca_record *r, const struct ibv_wc *wc);
/* It is not carried out, or nobody will know. */
void checked_request_forget(struct hca_record *r);

/* A queue pair, or a shared receive queue, does nothing any more with what is posted. */
void checked_requests_let_go(const struct ibv_qp *qp, const struct ibv_srq *srq);

/* The process is a child of fork(): none is its own. */
void checked_requests_forget(void);

/* These are about to go. @caller: as of checked_place(). */
void checked_region_ends(const struct checked_object *region, const void *caller);
void checked_receives_end(const struct checked_object *qp);
void checked_handle_ends(const struct checked_object *handle, const void *caller);

/* Memory goes, or went: unmapped, or freed. */
void checked_memory_goes(const struct checked_move *m);

/* "IBV_WR_SEND", "a receive". */
const char *checked_request_name(const struct hca_record *r);

#endif
