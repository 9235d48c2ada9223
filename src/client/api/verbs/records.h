/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeping the records of requests, for the layer (layer.h). All functions but those that make a
 * record are called with the layer's lock held.
 */
#ifndef API_VERBS_RECORDS_H
#define API_VERBS_RECORDS_H

#include "api/verbs/layered.h"

/* A record of the request, in no queue yet. NULL: there is no memory, and nothing is recorded. */
struct hca_record *verbs_record_send(const struct hca_qp *qp, const struct ibv_send_wr *wr,
                                     const void *caller);
/* One of @qp and @srq is NULL. */
struct hca_record *verbs_record_receive(struct ibv_qp *qp, struct ibv_srq *srq,
                                        const struct ibv_recv_wr *wr, const void *caller);

/* The request is about to be carried out: the watcher is told. */
void verbs_record_begin(struct verbs_layer *l, struct hca_record_queue *queue,
                        struct hca_record *r);

/* The call that posts it is about to return: it was accepted, or refused with an errno. The record
 * may have ended before. */
void verbs_record_posted(struct verbs_layer *l, struct hca_record_queue *queue,
                         struct hca_record *r, int error);

/* A completion of the queue. Those of a send queue end earlier requests, too. */
void verbs_record_end(struct verbs_layer *l, struct hca_record_queue *queue,
                      const struct ibv_wc *wc);

/* The queue is empty now. */
void verbs_record_drop_all(struct verbs_layer *l, struct hca_record_queue *queue);

#endif
