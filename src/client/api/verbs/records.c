/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of requests: see records.h.
 */
#include <stdlib.h>
#include <string.h>

#include "api/verbs/records.h"
#include "base/util.h"
#include "hca/queue/srq.h"

/* @most: a request with more ranges will be refused, and nobody looks at them. */
static struct hca_record *new_record(const struct ibv_sge *sge, int n, uint32_t most,
                                     const void *caller)
{
	const uint32_t count = n > 0 && (uint32_t)n <= most ? (uint32_t)n : 0;
	struct hca_record *r = calloc(1, sizeof(*r) + count * sizeof(*sge));

	if (!r)
		return NULL;
	r->caller = caller;
	r->n = count;
	if (count)
		memcpy(r->sge, sge, count * sizeof(*sge));
	for (uint32_t i = 0; i < count; i++)
		r->bytes += sge[i].length;
	r->at_ns[HCA_POSTED] = base_now_ns();
	return r;
}

static void name_remote_memory(struct hca_record *r, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		r->rdma_addr = wr->wr.rdma.remote_addr;
		r->rdma_rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		r->rdma_addr = wr->wr.atomic.remote_addr;
		r->rdma_rkey = wr->wr.atomic.rkey;
		break;
	default:
		break;
	}
}

struct hca_record *verbs_record_send(const struct hca_qp *qp, const struct ibv_send_wr *wr,
                                     const void *caller)
{
	const bool has_ranges = wr->opcode != IBV_WR_LOCAL_INV && wr->opcode != IBV_WR_BIND_MW;
	struct hca_record *r =
	        new_record(wr->sg_list, wr->num_sge, has_ranges ? qp->cap.max_send_sge : 0, caller);

	if (!r)
		return NULL;
	r->qp = (struct ibv_qp *)&qp->ex.qp_base;
	r->cq = r->qp->send_cq;
	r->wr_id = wr->wr_id;
	r->opcode = wr->opcode;
	r->is_signaled = qp->signal_all || (wr->send_flags & IBV_SEND_SIGNALED);
	r->is_inline = wr->send_flags & IBV_SEND_INLINE;
	name_remote_memory(r, wr);
	if (r->qp->qp_type == IBV_QPT_UD) {
		r->ah = wr->wr.ud.ah;
		r->remote_qpn = wr->wr.ud.remote_qpn;
		r->remote_qkey = wr->wr.ud.remote_qkey;
	}
	return r;
}

struct hca_record *verbs_record_receive(struct ibv_qp *qp, struct ibv_srq *srq,
                                        const struct ibv_recv_wr *wr, const void *caller)
{
	const uint32_t most = qp ? hca_qp(qp)->cap.max_recv_sge : hca_srq(srq)->max_sge;
	struct hca_record *r = new_record(wr->sg_list, wr->num_sge, most, caller);

	if (!r)
		return NULL;
	r->qp = qp;
	r->srq = srq;
	r->cq = qp ? qp->recv_cq : NULL;
	r->wr_id = wr->wr_id;
	r->is_receive = true;
	r->is_signaled = true;
	return r;
}

/* Receives of a shared queue complete in any order, as queue pairs and threads have it. Of those
 * with one wr_id the oldest one is next. */
static struct hca_record *oldest(const struct hca_record_queue *queue, uint64_t wr_id)
{
	struct base_hash_node *n =
	        base_hash_first(&queue->by_wr_id, base_hash_of(&wr_id, sizeof(wr_id), 0));

	while (n && container_of(n, struct hca_record, by_wr_id)->wr_id != wr_id)
		n = base_hash_next(n);
	return n ? container_of(n, struct hca_record, by_wr_id) : NULL;
}

/* It is the oldest one of its wr_id now. If there is no memory, it is not found, nor are the newer
 * ones. */
static void lead(struct hca_record_queue *queue, struct hca_record *r, struct hca_record *newest)
{
	r->older = NULL;
	r->newest = newest;
	r->is_indexed = !base_hash_add(&queue->by_wr_id, &r->by_wr_id,
	                               base_hash_of(&r->wr_id, sizeof(r->wr_id), 0));
}

static void note_wr_id(struct hca_record_queue *queue, struct hca_record *r)
{
	struct hca_record *first = oldest(queue, r->wr_id);

	if (!first) {
		lead(queue, r, r);
		return;
	}
	r->older = first->newest;
	first->newest->newer = r;
	first->newest = r;
}

static void forget_wr_id(struct hca_record_queue *queue, struct hca_record *r)
{
	struct hca_record *first = r->older ? oldest(queue, r->wr_id) : NULL;

	if (r->newer)
		r->newer->older = r->older;
	else if (first)
		first->newest = r->older;
	if (r->older)
		r->older->newer = r->newer;
	if (!r->is_indexed)
		return;
	base_hash_remove(&queue->by_wr_id, &r->by_wr_id);
	if (r->newer)
		lead(queue, r->newer, r->newest);
}

static void leave(struct hca_record_queue *queue, struct hca_record *r)
{
	TAILQ_REMOVE(&queue->all, r, entry);
	if (r->srq)
		forget_wr_id(queue, r);
	queue->n--;
}

/* A thread that still posts it frees it. */
static void let_go(struct hca_record *r)
{
	r->has_ended = true;
	if (!r->is_posting)
		free(r);
}

static void end(struct verbs_layer *l, struct hca_record_queue *queue, struct hca_record *r,
                const struct ibv_wc *wc)
{
	leave(queue, r);
	l->watcher->ended(r, wc);
	let_go(r);
}

static void drop(struct verbs_layer *l, struct hca_record_queue *queue, struct hca_record *r)
{
	leave(queue, r);
	l->watcher->dropped(r);
	let_go(r);
}

void verbs_record_begin(struct verbs_layer *l, struct hca_record_queue *queue, struct hca_record *r)
{
	r->is_posting = true;
	r->number = queue->next++;
	queue->n++;
	TAILQ_INSERT_TAIL(&queue->all, r, entry);
	if (r->srq)
		note_wr_id(queue, r);
	l->watcher->posting(r);
}

void verbs_record_posted(struct verbs_layer *l, struct hca_record_queue *queue,
                         struct hca_record *r, int error)
{
	r->is_posting = false;
	if (error && !r->has_ended) {
		leave(queue, r);
		l->watcher->dropped(r);
		r->has_ended = true;
	}
	if (r->has_ended)
		free(r);
}

/* Nearly always the first one that would have a completion. */
static struct hca_record *find(const struct hca_record_queue *queue, const struct ibv_wc *wc)
{
	struct hca_record *r = TAILQ_FIRST(&queue->all);

	if (r && r->srq)
		return oldest(queue, wc->wr_id);
	TAILQ_FOREACH(r, &queue->all, entry)
	{
		if (r->wr_id == wc->wr_id && (r->is_signaled || wc->status != IBV_WC_SUCCESS))
			return r;
	}
	return NULL;
}

/* Another thread may be posting requests that stand before: whether they will be refused is not
 * known yet. */
static void end_earlier(struct verbs_layer *l, struct hca_record_queue *queue,
                        const struct hca_record *r)
{
	struct hca_record *earlier = TAILQ_FIRST(&queue->all), *next;

	for (; earlier != r; earlier = next) {
		next = TAILQ_NEXT(earlier, entry);
		if (!earlier->is_posting)
			end(l, queue, earlier, NULL);
	}
}

void verbs_record_end(struct verbs_layer *l, struct hca_record_queue *queue,
                      const struct ibv_wc *wc)
{
	struct hca_record *r = find(queue, wc);

	if (r && !r->is_receive)
		end_earlier(l, queue, r);
	if (r)
		end(l, queue, r, wc);
}

void verbs_record_drop_all(struct verbs_layer *l, struct hca_record_queue *queue)
{
	while (!TAILQ_EMPTY(&queue->all))
		drop(l, queue, TAILQ_FIRST(&queue->all));
	base_hash_fini(&queue->by_wr_id);
	queue->by_wr_id = (struct base_hash){ 0 };
}
