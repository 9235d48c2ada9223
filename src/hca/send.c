/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting sends. A work request is checked, gathered once, delivered to everybody
 * whom it reaches and completed, all before ibv_post_send() returns, in the
 * caller's thread. UD only.
 *
 * What is wrong with the request itself is the call's error and stops the list;
 * what only shows when it is worked on completes in error and moves the queue to
 * SQE, as on hardware.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"

static bool can_post(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE ||
	       state == IBV_QPS_ERR;
}

static uint64_t message_length(const struct ibv_send_wr *wr)
{
	uint64_t total = 0;

	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	return total;
}

/* What makes the call itself fail. *@length: of the message. */
static int check_wr(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t *length)
{
	const struct hca_ah *ah = (const struct hca_ah *)wr->wr.ud.ah;

	if (qp->sq_posted - atomic_load_explicit(&qp->sq_done, memory_order_acquire) >=
	    qp->cap.max_send_wr)
		return -ENOMEM;
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		return -EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	if (!ah || ah->alive != HCA_AH_ALIVE)
		return -EINVAL;
	*length = message_length(wr);
	if ((wr->send_flags & IBV_SEND_INLINE) && *length > qp->cap.max_inline_data)
		return -EINVAL;
	return 0;
}

/* Copies the message to @to. Inline data needs no memory region. */
static enum ibv_wc_status gather(struct hca_qp *qp, const struct ibv_send_wr *wr, char *to)
{
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];
		const void *from;

		if (wr->send_flags & IBV_SEND_INLINE)
			from = (const void *)(uintptr_t)sge->addr;
		else
			from = hca_mr_resolve(qp->process, qp->ex.qp_base.pd, sge, 0);
		if (!from && sge->length)
			return IBV_WC_LOC_PROT_ERR;
		if (sge->length)
			memcpy(to, from, sge->length);
		to += sge->length;
	}
	return IBV_WC_SUCCESS;
}

/* A packet leaves by this flow. The counters have one writer: us. */
static void count_sent(struct hca_flow *f, uint32_t bytes)
{
	struct shm_flow_count *c = f->sent;

	atomic_store_explicit(&c->packets,
	                      atomic_load_explicit(&c->packets, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
	atomic_store_explicit(&c->bytes,
	                      atomic_load_explicit(&c->bytes, memory_order_relaxed) + bytes,
	                      memory_order_relaxed);
}

static void fill_header(struct hca_qp *qp, const struct ibv_send_wr *wr, const struct hca_ah *ah,
                        struct hca_packet *pkt)
{
	uint32_t qkey = wr->wr.ud.remote_qkey;

	pkt->src_qpn = qp->ex.qp_base.qp_num;
	pkt->src_port = qp->port;
	pkt->qkey = qkey & IB_QKEY_CONTROLLED ? qp->qkey : qkey;
	pkt->pkey = qp->pkey;
	/* as the port has it now: a subnet manager may change it */
	pkt->slid = qp->process->region.ports[qp->port].lid | ah->dest.path_bits;
	pkt->sl = ah->sl;
	pkt->flags = 0;
	pkt->imm = 0;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
		pkt->flags |= SHM_ARRIVAL_IMM;
		pkt->imm = wr->imm_data;
	}
	if (wr->send_flags & IBV_SEND_SOLICITED)
		pkt->flags |= SHM_ARRIVAL_SOLICITED;
	if (ah->dest.is_global) {
		pkt->flags |= SHM_ARRIVAL_GRH;
		pkt->class_flow = ah->class_flow;
		pkt->hop_limit = ah->hop_limit;
		pkt->sgid_index = ah->sgid_index;
		memcpy(&pkt->dgid, ah->dest.gid, sizeof(pkt->dgid));
	}
}

/* To everybody whom the flow reaches. */
static void deliver_all(struct hca_qp *qp, const struct hca_flow *f, const struct hca_packet *pkt,
                        uint32_t remote_qpn, bool is_mcast)
{
	struct hca_process *p = qp->process;

	if (!is_mcast) {
		if (f->count)
			hca_deliver(p, qp->sender, pkt, remote_qpn, f->dest_port);
	} else if (remote_qpn == IB_QPN_MCAST) { /* a group's packet to another QP is malformed */
		for (uint32_t i = 0; i < f->count; i++)
			hca_deliver(p, qp->sender, pkt, f->list[i], HCA_ANY_PORT);
	}
	/* release: what was done comes before "doing nothing" */
	atomic_store_explicit(&qp->sender->target_qpn, 0, memory_order_release);
}

/* Whether the port takes packets; it says so in the cache line that has its LID. */
static bool can_leave(const struct hca_qp *qp)
{
	return qp->process->region.ports[qp->port].state == IB_PORT_ACTIVE;
}

/* Works on one request. How it completes. */
static enum ibv_wc_status transmit(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
	struct hca_ah *ah = (struct hca_ah *)wr->wr.ud.ah;
	_Alignas(64) char small[SHM_INLINE];
	struct hca_packet pkt;
	struct hca_flow *f;
	enum ibv_wc_status status;
	char *to = small;

	if (ah->ah.pd != qp->ex.qp_base.pd || ah->dest.port_num != qp->port_num)
		return IBV_WC_LOC_QP_OP_ERR;
	f = hca_flow_get(qp, ah);
	if (!f)
		return hca_process_gone(qp->process) ? IBV_WC_FATAL_ERR : IBV_WC_GENERAL_ERR;
	if (length > f->mtu || !can_leave(qp)) {
		/* C10-93.1.1, and a port that is not active: no packet, and no error either */
		HCA_COUNT(qp->process, qp->port, xmit_discards);
		return IBV_WC_SUCCESS;
	}
	fill_header(qp, wr, ah, &pkt);
	pkt.length = (uint32_t)length;
	pkt.data = small;
	if (length > SHM_INLINE) {
		pkt.flags |= SHM_ARRIVAL_PAYLOAD;
		pkt.payload = hca_payload_get(qp);
		if (!pkt.payload || hca_payload_reserve(pkt.payload, f->count)) {
			HCA_COUNT(qp->process, qp->port, no_payload_slot);
			return IBV_WC_SUCCESS;
		}
		to = shm_data_at(&qp->process->region, pkt.payload->off);
	}
	status = gather(qp, wr, to);
	if (status != IBV_WC_SUCCESS)
		return status;
	count_sent(f, pkt.length);
	deliver_all(qp, f, &pkt, wr->wr.ud.remote_qpn, ah->is_mcast);
	return IBV_WC_SUCCESS;
}

/* The request is done with. */
static void complete(struct hca_qp *qp, uint64_t wr_id, bool signaled, enum ibv_wc_status status)
{
	qp->sq_posted++;
	if (!signaled && !qp->signal_all && status == IBV_WC_SUCCESS)
		return;
	hca_cq_push(hca_cq(qp->ex.qp_base.send_cq), &(struct hca_cqe){ .wr_id = wr_id,
	                                                               .qp = qp,
	                                                               .sq_after = qp->sq_posted,
	                                                               .status = status,
	                                                               .is_send = true });
}

static void work(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
	enum ibv_wc_status status = IBV_WC_WR_FLUSH_ERR;

	if (hca_qp_state(qp) == IBV_QPS_RTS) {
		status = transmit(qp, wr, length);
		if (status != IBV_WC_SUCCESS)
			atomic_store_explicit(&qp->state, IBV_QPS_SQE, memory_order_relaxed);
	}
	complete(qp, wr->wr_id, wr->send_flags & IBV_SEND_SIGNALED, status);
}

/* SQD: keeps the request, and copies of its address handle and of what it says inline. */
static int defer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	size_t sges = (size_t)wr->num_sge * sizeof(struct ibv_sge);
	struct hca_deferred *d;
	char *copy;

	d = malloc(sizeof(*d) + sges + (is_inline ? length : 0));
	if (!d)
		return -ENOMEM;
	d->wr = *wr;
	d->wr.next = NULL;
	d->wr.sg_list = d->sge;
	hca_ah_copy(&d->ah, (const struct hca_ah *)wr->wr.ud.ah);
	d->wr.wr.ud.ah = &d->ah.ah;
	copy = (char *)d->sge + sges;
	for (int i = 0; i < wr->num_sge; i++) {
		d->sge[i] = wr->sg_list[i];
		if (!is_inline || !d->sge[i].length)
			continue;
		memcpy(copy, (const void *)(uintptr_t)d->sge[i].addr, d->sge[i].length);
		d->sge[i].addr = (uintptr_t)copy;
		copy += d->sge[i].length;
	}
	STAILQ_INSERT_TAIL(&qp->deferred, d, entry);
	qp->n_deferred++;
	return 0;
}

static int post_one(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length;
	int ret = check_wr(qp, wr, &length);

	if (ret)
		return ret;
	if (hca_qp_state(qp) == IBV_QPS_SQD) {
		if (qp->sq_posted + qp->n_deferred -
		            atomic_load_explicit(&qp->sq_done, memory_order_acquire) >=
		    qp->cap.max_send_wr)
			return -ENOMEM;
		return defer(qp, wr, length);
	}
	work(qp, wr, length);
	return 0;
}

int hca_post_send(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int ret = 0;

	base_lock(&qp->send_lock);
	if (!can_post(hca_qp_state(qp)))
		ret = -EINVAL;
	else if (hca_process_gone(qp->process))
		ret = -EIO;
	for (; wr && !ret; wr = wr->next) {
		ret = post_one(qp, wr);
		if (ret)
			break;
	}
	base_unlock(&qp->send_lock);
	if (ret)
		*bad = wr;
	return ret;
}

static struct hca_deferred *next_deferred(struct hca_qp *qp)
{
	struct hca_deferred *d = STAILQ_FIRST(&qp->deferred);

	if (d) {
		STAILQ_REMOVE_HEAD(&qp->deferred, entry);
		qp->n_deferred--;
	}
	return d;
}

void hca_send_resume(struct hca_qp *qp)
{
	struct hca_deferred *d;

	while ((d = next_deferred(qp))) {
		work(qp, &d->wr, message_length(&d->wr));
		free(d);
	}
}

void hca_send_discard(struct hca_qp *qp)
{
	struct hca_deferred *d;

	while ((d = next_deferred(qp)))
		free(d);
}
