/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ibv_wr_ calls (ibv_wr_post(3)): those between ibv_wr_start() and ibv_wr_complete() build a
 * list of work requests, which the transport then posts as any other list. The list is posted
 * as a whole or not at all: each setter checks its arguments, and wr_complete() that there is
 * room. The send lock is held from ibv_wr_start() to ibv_wr_complete() or ibv_wr_abort(), so
 * other threads wait meanwhile. The thread that builds the list may change the queue pair's state:
 * the list is posted in the new one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "hca/queue/ah.h"
#include "hca/queue/explain.h"
#include "hca/queue/qp.h"

struct hca_wr_batch {
	struct ibv_send_wr *wr;      /* max_send_wr of them, each with its sg_list */
	struct ibv_sge *sge;         /* max_send_sge for each, at least one */
	char *inline_data;           /* max_inline_data for each */
	struct ibv_send_wr *current; /* the request that the setters change, or NULL */
	uint32_t n;
	int error; /* what ibv_wr_complete() will return */
};

static struct hca_qp *qp_of(struct ibv_qp_ex *ex)
{
	return (struct hca_qp *)ex;
}

/* Called when a program first needs it: most programs only use ibv_post_send(). */
static BASE_COLD struct hca_wr_batch *new_batch(struct hca_qp *qp)
{
	uint32_t n = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1;
	uint32_t sges = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
	struct hca_wr_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->wr = calloc(n, sizeof(*b->wr));
	b->sge = calloc((size_t)n * sges, sizeof(*b->sge));
	b->inline_data = malloc((size_t)n * qp->cap.max_inline_data);
	qp->batch = b;
	if (!b->wr || !b->sge || !b->inline_data) {
		hca_wr_api_fini(qp);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		b->wr[i].sg_list = &b->sge[(size_t)i * sges];
	return b;
}

void hca_wr_api_fini(struct hca_qp *qp)
{
	if (!qp->batch)
		return;
	free(qp->batch->wr);
	free(qp->batch->sge);
	free(qp->batch->inline_data);
	free(qp->batch);
	qp->batch = NULL;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct hca_qp *qp = qp_of(ex);
	struct hca_wr_batch *b;

	base_lock(&qp->send_lock);
	if (!base_is_alone())
		atomic_store_explicit(&qp->builder, (uintptr_t)pthread_self(),
		                      memory_order_relaxed);
	b = base_likely(qp->batch) ? qp->batch : new_batch(qp);
	if (!b)
		return;
	b->current = NULL;
	b->n = 0;
	b->error = 0;
}

/* The list has come to its end. */
static void unlock(struct hca_qp *qp)
{
	atomic_store_explicit(&qp->builder, 0, memory_order_relaxed);
	base_unlock(&qp->send_lock);
}

/* Relaxed: a thread sees what it has stored itself, and no other thread stores this one's number.
 */
bool hca_wr_lock(struct hca_qp *qp)
{
	if (atomic_load_explicit(&qp->builder, memory_order_relaxed) == (uintptr_t)pthread_self())
		return false;
	base_lock(&qp->send_lock);
	return true;
}

const struct ibv_send_wr *hca_wr_list(const struct hca_qp *qp, uint32_t *n)
{
	*n = qp->batch ? qp->batch->n : 0;
	return qp->batch ? qp->batch->wr : NULL;
}

/* Makes the batch fail: ibv_wr_complete() posts none of it. */
static BASE_COLD void fail(struct hca_wr_batch *b, int error)
{
	b->current = NULL;
	if (!b->error)
		b->error = error;
}

/* The request that the setters change; NULL: there is none, and the batch fails. */
static struct ibv_send_wr *current_wr(struct hca_qp *qp)
{
	struct hca_wr_batch *b = qp->batch;

	if (base_unlikely(!b))
		return NULL;
	if (base_unlikely(!b->current))
		fail(b, EINVAL);
	return b->current;
}

/* Begins a request. NULL: it cannot be, and the batch fails. */
static BASE_HOT struct ibv_send_wr *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
                                          __be32 imm)
{
	struct hca_qp *qp = qp_of(ex);
	struct hca_wr_batch *b = qp->batch;
	struct ibv_send_wr *wr;

	if (base_unlikely(!b || b->error))
		return NULL;
	if (base_unlikely(!(qp->send_ops_flags & hca_operation_calls(opcode)))) {
		fail(b, EINVAL);
		return NULL;
	}
	if (base_unlikely(b->n >= qp->cap.max_send_wr)) {
		fail(b, ENOMEM);
		return NULL;
	}
	wr = b->current = &b->wr[b->n++];
	wr->next = wr + 1; /* the last one's is none: wr_complete() */
	wr->wr_id = ex->wr_id;
	wr->num_sge = 0;
	wr->opcode = opcode;
	wr->send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE;
	wr->imm_data = imm;
	wr->wr.ud.ah = NULL;
	return wr;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin(ex, IBV_WR_SEND_WITH_IMM, imm);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin(ex, IBV_WR_SEND_WITH_INV, rkey);
}

static void begin_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
                       const struct ibv_send_wr *what)
{
	struct ibv_send_wr *wr = begin(ex, opcode, what->imm_data);

	if (base_likely(wr))
		wr->wr = what->wr;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	const struct ibv_send_wr what = { .wr.rdma = { .remote_addr = addr, .rkey = rkey } };

	begin_rdma(ex, IBV_WR_RDMA_WRITE, &what);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	const struct ibv_send_wr what = { .imm_data = imm,
		                          .wr.rdma = { .remote_addr = addr, .rkey = rkey } };

	begin_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, &what);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	const struct ibv_send_wr what = { .wr.rdma = { .remote_addr = addr, .rkey = rkey } };

	begin_rdma(ex, IBV_WR_RDMA_READ, &what);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
                              uint64_t swap)
{
	const struct ibv_send_wr what = { .wr.atomic = { .remote_addr = addr,
		                                         .compare_add = compare,
		                                         .swap = swap,
		                                         .rkey = rkey } };

	begin_rdma(ex, IBV_WR_ATOMIC_CMP_AND_SWP, &what);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	const struct ibv_send_wr what = {
		.wr.atomic = { .remote_addr = addr, .compare_add = add, .rkey = rkey }
	};

	begin_rdma(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, &what);
}

/* The word is the request's own: swap, in a place that rdma has not (connected_send.c). */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *word)
{
	struct ibv_send_wr what = { 0 };

	memcpy(&what.wr.atomic.swap, word, sizeof(what.wr.atomic.swap));
	what.wr.rdma.remote_addr = addr;
	what.wr.rdma.rkey = rkey;
	begin_rdma(ex, (enum ibv_wr_opcode)HCA_WR_ATOMIC_WRITE, &what);
}

/* ibv_wr_flush() of rdma-core 45. The request has the bytes in compare_add, and in swap what is
 * asked for (hca_flush_what()). */
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t length,
                     uint8_t type, uint8_t level)
{
	const struct ibv_send_wr what = { .wr.atomic = { .remote_addr = addr,
		                                         .compare_add = length,
		                                         .swap = hca_flush_what(type, level),
		                                         .rkey = rkey } };
	struct hca_wr_batch *b = qp_of(ex)->batch;

	begin_rdma(ex, (enum ibv_wr_opcode)HCA_WR_FLUSH, &what);
	if (b && (!hca_flush_is_known(type, level) ||
	          (level == HCA_FLUSH_RANGE && length > HCA_MAX_MESSAGE)))
		fail(b, EINVAL);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin(ex, IBV_WR_BIND_MW, 0);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin(ex, IBV_WR_LOCAL_INV, rkey);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr *wr = current_wr(qp_of(ex));

	if (!wr)
		return;
	if (base_unlikely(!ah || ((struct hca_ah *)ah)->alive != HCA_AH_ALIVE)) {
		fail(qp_of(ex)->batch, EINVAL);
		return;
	}
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	struct ibv_send_wr *wr = current_wr(qp_of(ex));

	if (wr)
		wr->qp_type.xrc.remote_srqn = srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct hca_qp *qp = qp_of(ex);
	struct ibv_send_wr *wr = current_wr(qp);

	if (!wr)
		return;
	if (n > qp->cap.max_send_sge) {
		fail(qp->batch, EINVAL);
		return;
	}
	memcpy(wr->sg_list, list, n * sizeof(*list));
	wr->num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct hca_qp *qp = qp_of(ex);
	struct ibv_send_wr *wr = current_wr(qp);

	if (!wr)
		return;
	if (base_unlikely(!qp->cap.max_send_sge)) {
		fail(qp->batch, EINVAL);
		return;
	}
	wr->sg_list[0] = (struct ibv_sge){ .addr = addr, .length = length, .lkey = lkey };
	wr->num_sge = 1;
}

/* Where the inline data of @wr, the last request, is kept. */
static char *inline_room(const struct hca_qp *qp)
{
	return qp->batch->inline_data + (size_t)(qp->batch->n - 1) * qp->cap.max_inline_data;
}

static void set_inline(struct ibv_send_wr *wr, const char *data, size_t length)
{
	wr->send_flags |= IBV_SEND_INLINE;
	wr->sg_list[0] = (struct ibv_sge){ .addr = (uintptr_t)data, .length = (uint32_t)length };
	wr->num_sge = 1;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *buf)
{
	struct hca_qp *qp = qp_of(ex);
	struct ibv_send_wr *wr = current_wr(qp);
	size_t total = 0;
	char *to;

	if (!wr)
		return;
	to = inline_room(qp);
	for (size_t i = 0; i < n; i++) {
		if (buf[i].length > qp->cap.max_inline_data - total) {
			fail(qp->batch, EINVAL);
			return;
		}
		memcpy(to + total, buf[i].addr, buf[i].length);
		total += buf[i].length;
	}
	set_inline(wr, to, total);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct hca_qp *qp = qp_of(ex);
	struct ibv_send_wr *wr = current_wr(qp);
	char *to;

	if (!wr)
		return;
	if (base_unlikely(length > qp->cap.max_inline_data)) {
		fail(qp->batch, EINVAL);
		return;
	}
	to = inline_room(qp);
	if (base_likely(length <= BASE_COPY_SHORT))
		base_copy_short(to, addr, length);
	else
		memcpy(to, addr, length);
	set_inline(wr, to, length);
}

/* The error of the whole list; 0: it can be posted. */
static BASE_HOT int check_batch(const struct hca_qp *qp, const struct hca_wr_batch *b)
{
	uint32_t room = qp->cap.max_send_wr - hca_qp_sq_used(qp);

	if (base_unlikely(b->error))
		return b->error;
	return base_unlikely(b->n > room) ? ENOMEM : 0;
}

/* Each request has a destination. */
static BASE_HOT int check_ud(const struct hca_qp *qp, const struct hca_wr_batch *b)
{
	int ret = check_batch(qp, b);

	if (base_unlikely(ret))
		return ret;
	for (uint32_t i = 0; i < b->n; i++)
		if (base_unlikely(!b->wr[i].wr.ud.ah))
			return EINVAL;
	return 0;
}

static int check_connected(const struct hca_qp *qp, const struct hca_wr_batch *b)
{
	int ret = check_batch(qp, b);

	for (uint32_t i = 0; !ret && i < b->n; i++)
		ret = -qp->transport->check(qp, &b->wr[i]);
	return ret;
}

static BASE_HOT int post_batch(struct hca_qp *qp, struct hca_wr_batch *b, int ret)
{
	const struct ibv_send_wr *wr = b->wr;

	if (base_unlikely(ret || !b->n))
		return ret;
	b->wr[b->n - 1].next = NULL;
	return -qp->transport->post_checked(qp, &wr);
}

/* ibv_wr_complete() fails with @error, a positive errno. */
static BASE_COLD void log_refusal(const struct hca_qp *qp, int error)
{
	const struct hca_wr_batch *b = qp->batch;

	if (error == ENOMEM)
		hca_explain_full(qp);
	if (b && error == ENOMEM)
		base_because(-error,
		             "the send queue of QP 0x%06x has room for %u requests (max_send_wr): "
		             "not for %u more now",
		             qp->sender.qpn, qp->cap.max_send_wr, b->n);
	else if (b && b->error)
		base_because(-error, "a call since ibv_wr_start() was wrong: an operation that "
		                     "send_ops_flags did not name, too many entries or bytes");
	for (uint32_t i = 0; b && !b->error && error != ENOMEM && i < b->n; i++)
		hca_explain_send(qp, &b->wr[i], -error);
	base_call_failed(verbs, "ibv_wr_complete", error);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct hca_qp *qp = qp_of(ex);
	int ret = base_likely(qp->batch) ? post_batch(qp, qp->batch, check_ud(qp, qp->batch))
	                                 : ENOMEM;

	if (base_unlikely(ret))
		log_refusal(qp, ret);
	unlock(qp);
	return ret;
}

static int wr_complete_connected(struct ibv_qp_ex *ex)
{
	struct hca_qp *qp = qp_of(ex);
	int ret = qp->batch ? post_batch(qp, qp->batch, check_connected(qp, qp->batch)) : ENOMEM;

	if (base_unlikely(ret))
		log_refusal(qp, ret);
	unlock(qp);
	return ret;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	unlock(qp_of(ex));
}

void hca_wr_api_init(struct hca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_start = wr_start;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	qp->all.newer.wr_flush = wr_flush;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_complete = qp->rq->connected ? wr_complete_connected : wr_complete;
	ex->wr_abort = wr_abort;
}
