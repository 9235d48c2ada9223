/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ibv_wr_ way of posting (ibv_wr_post(3)): calls between ibv_wr_start() and
 * ibv_wr_complete() build a list of work requests, which is then posted by the same
 * code as any other list, all or nothing. The send lock is not held meanwhile: as
 * on hardware, one thread at a time builds on a queue pair.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"

struct hca_wr_batch {
	struct ibv_send_wr *wr;      /* max_send_wr of them, each with its sg_list */
	struct ibv_sge *sge;         /* max_send_sge for each, at least one */
	char *inline_data;           /* max_inline_data for each */
	struct ibv_send_wr *current; /* the request that the setters are about, or NULL */
	uint32_t n;
	int error; /* what ibv_wr_complete() is to say */
};

static struct hca_qp *qp_of(struct ibv_qp_ex *ex)
{
	return (struct hca_qp *)ex;
}

/* Made when it is first needed: most programs post the other way. */
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
	struct hca_wr_batch *b = base_likely(qp->batch) ? qp->batch : new_batch(qp);

	if (!b)
		return;
	b->current = NULL;
	b->n = 0;
	b->error = 0;
}

/* The batch fails: what follows goes nowhere. */
static BASE_COLD void fail(struct hca_wr_batch *b, int error)
{
	b->current = NULL;
	if (!b->error)
		b->error = error;
}

/* The request that the setters are about; NULL: there is none, and the batch fails. */
static struct ibv_send_wr *current_wr(struct hca_qp *qp)
{
	struct hca_wr_batch *b = qp->batch;

	if (base_unlikely(!b))
		return NULL;
	if (base_unlikely(!b->current))
		fail(b, EINVAL);
	return b->current;
}

static BASE_HOT void begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint64_t op_flag,
                           __be32 imm)
{
	struct hca_qp *qp = qp_of(ex);
	struct hca_wr_batch *b = qp->batch;
	struct ibv_send_wr *wr;

	if (base_unlikely(!b || b->error))
		return;
	if (base_unlikely(!(qp->send_ops_flags & op_flag))) {
		fail(b, EINVAL);
		return;
	}
	if (base_unlikely(b->n >= qp->cap.max_send_wr)) {
		fail(b, ENOMEM);
		return;
	}
	wr = b->current = &b->wr[b->n++];
	wr->next = wr + 1; /* the last one's is none: wr_complete() */
	wr->wr_id = ex->wr_id;
	wr->num_sge = 0;
	wr->opcode = opcode;
	wr->send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE;
	wr->imm_data = imm;
	wr->wr.ud.ah = NULL;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND, IBV_QP_EX_WITH_SEND, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin(ex, IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM, imm);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr *wr = current_wr(qp_of(ex));

	if (!wr)
		return;
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
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

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct hca_qp *qp = qp_of(ex);
	struct hca_wr_batch *b = qp->batch;
	uint32_t room;

	if (!b)
		return ENOMEM;
	if (b->error)
		return b->error;
	if (!b->n)
		return 0;
	room = qp->cap.max_send_wr - qp->n_deferred -
	       (qp->sq_posted - atomic_load_explicit(&qp->sq_done, memory_order_acquire));
	if (b->n > room)
		return ENOMEM; /* all or nothing */
	b->wr[b->n - 1].next = NULL;
	return -hca_post_send(qp, b->wr, &(struct ibv_send_wr *){ NULL });
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct hca_wr_batch *b = qp_of(ex)->batch;

	if (!b)
		return;
	b->current = NULL;
	b->n = 0;
}

void hca_wr_api_init(struct hca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_start = wr_start;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
}
