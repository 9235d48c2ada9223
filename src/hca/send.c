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

#include "base/util.h"
#include "hca/hca.h"
#include "hca/wire.h"

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
	if ((uint32_t)wr->num_sge > qp->cap.max_send_sge) /* negative ones too */
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
		if (base_unlikely(!from && sge->length))
			return IBV_WC_LOC_PROT_ERR;
		if (sge->length <= BASE_COPY_SHORT)
			base_copy_short(to, from, sge->length);
		else
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

/* What is the same for all requests of one call that go by one address handle. */
struct way {
	struct hca_ah *ah;
	struct hca_flow *flow;
	struct hca_packet pkt;
};

/* The packet's header, but for what a request says. */
static void fill_header(struct hca_qp *qp, const struct hca_ah *ah, struct hca_packet *pkt)
{
	pkt->sender = qp->sender;
	pkt->writer = (uint16_t)SHM_QP_INDEX(qp->ex.qp_base.qp_num);
	pkt->a.src_qpn = qp->ex.qp_base.qp_num;
	pkt->a.src_port = qp->port;
	/* as the port has them now: a subnet manager may change them */
	pkt->a.pkey = qp->process->region.ports[qp->port].pkey[qp->pkey_index];
	pkt->a.slid = qp->process->region.ports[qp->port].lid | ah->dest.path_bits;
	pkt->a.sl = ah->sl;
	if (ah->dest.is_global) {
		pkt->a.class_flow = ah->class_flow;
		pkt->a.hop_limit = ah->hop_limit;
		pkt->a.sgid_index = ah->sgid_index;
		memcpy(&pkt->a.dgid, ah->dest.gid, sizeof(pkt->a.dgid));
	}
}

/* How many requests behind @wr go where it goes. */
static uint8_t count_more(const struct ibv_send_wr *wr)
{
	const struct ibv_send_wr *next = wr->next;
	uint8_t n = 0;

	while (n < UINT8_MAX && next && next->wr.ud.ah == wr->wr.ud.ah &&
	       next->wr.ud.remote_qpn == wr->wr.ud.remote_qpn) {
		next = next->next;
		n++;
	}
	return n;
}

/* Finds the way of a request; how it completes if there is none. */
static enum ibv_wc_status find_way(struct hca_qp *qp, const struct ibv_send_wr *wr, struct way *way)
{
	struct hca_ah *ah = (struct hca_ah *)wr->wr.ud.ah;

	way->ah = NULL;
	if (ah->ah.pd != qp->ex.qp_base.pd || ah->dest.port_num != qp->port_num)
		return IBV_WC_LOC_QP_OP_ERR;
	way->flow = hca_flow_get(qp, ah);
	if (base_unlikely(!way->flow))
		return hca_process_gone(qp->process) ? IBV_WC_FATAL_ERR : IBV_WC_GENERAL_ERR;
	fill_header(qp, ah, &way->pkt);
	way->pkt.a.path_bits = way->flow->path_bits;
	way->pkt.a.more = count_more(wr);
	way->pkt.fetched = false;
	way->ah = ah;
	return IBV_WC_SUCCESS;
}

/* Finds it unless it is the one of the request before, and as it was then. */
static enum ibv_wc_status follow_way(struct hca_qp *qp, const struct ibv_send_wr *wr,
                                     struct way *way)
{
	if (way->ah != (struct hca_ah *)wr->wr.ud.ah || !way->pkt.a.more ||
	    !hca_flow_is_current(way->flow))
		return find_way(qp, wr, way);
	way->pkt.a.more--;
	way->pkt.fetched = true;
	return IBV_WC_SUCCESS;
}

/* What the request says of the packet. */
static void fill_request(struct hca_qp *qp, const struct ibv_send_wr *wr, struct way *way)
{
	struct hca_packet *pkt = &way->pkt;
	uint32_t qkey = wr->wr.ud.remote_qkey;
	uint8_t flags = way->ah->arrival_flags;

	pkt->qkey = qkey & IB_QKEY_CONTROLLED ? qp->qkey : qkey;
	pkt->a.imm = 0;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
		flags |= SHM_ARRIVAL_IMM;
		pkt->a.imm = wr->imm_data;
	}
	if (wr->send_flags & IBV_SEND_SOLICITED)
		flags |= SHM_ARRIVAL_SOLICITED;
	pkt->a.flags = flags;
}

/* To everybody whom the flow reaches. */
static void deliver_all(struct hca_qp *qp, const struct way *way, uint32_t remote_qpn)
{
	struct hca_flow *f = way->flow;

	if (!way->ah->is_mcast) {
		if (base_unlikely(f->to->qpn != remote_qpn))
			hca_receiver_init(qp->process, f->to, remote_qpn);
		hca_deliver_to(qp->process, &way->pkt, f->dest_port, f->to, f->count);
	} else if (base_likely(remote_qpn == IB_QPN_MCAST)) {
		/* a group's packet to another QP is malformed */
		hca_deliver_to(qp->process, &way->pkt, HCA_ANY_PORT, f->to, f->count);
	}
}

/* Whether the port takes packets; it says so in the cache line that has its LID. */
static bool can_leave(const struct hca_qp *qp)
{
	return qp->process->region.ports[qp->port].state == IB_PORT_ACTIVE;
}

/* Where the message is written to: the packet itself or a payload slot; NULL: there is none. */
static char *make_room(struct hca_qp *qp, const struct hca_flow *f, struct hca_packet *pkt,
                       uint32_t length)
{
	pkt->a.length = length;
	if (length <= SHM_INLINE)
		return (char *)pkt->a.data;
	pkt->payload = hca_payload_get(qp);
	if (!pkt->payload || hca_payload_reserve(pkt->payload, f->count))
		return NULL;
	pkt->a.flags |= SHM_ARRIVAL_PAYLOAD;
	pkt->a.payload_off = pkt->payload->off;
	return shm_data_at(&qp->process->region, pkt->payload->off);
}

/* Works on one request. How it completes. */
static enum ibv_wc_status transmit(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length,
                                   struct way *way)
{
	enum ibv_wc_status status = follow_way(qp, wr, way);
	char *to;

	if (base_unlikely(status != IBV_WC_SUCCESS))
		return status;
	if (base_unlikely(length > way->flow->mtu || !can_leave(qp))) {
		/* C10-93.1.1, and a port that is not active: no packet, and no error either */
		HCA_COUNT(qp->process, qp->port, xmit_discards);
		return IBV_WC_SUCCESS;
	}
	fill_request(qp, wr, way);
	to = make_room(qp, way->flow, &way->pkt, (uint32_t)length);
	if (base_unlikely(!to)) {
		HCA_COUNT(qp->process, qp->port, no_payload_slot);
		return IBV_WC_SUCCESS;
	}
	status = gather(qp, wr, to);
	if (base_unlikely(status != IBV_WC_SUCCESS))
		return status;
	count_sent(way->flow, (uint32_t)length);
	deliver_all(qp, way, wr->wr.ud.remote_qpn);
	if (base_unlikely(way->flow->flags & SHM_FLOW_WIRE))
		hca_wire_send(qp, &way->pkt, wr->wr.ud.remote_qpn);
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

static void work(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length, struct way *way)
{
	enum ibv_wc_status status = IBV_WC_WR_FLUSH_ERR;

	if (hca_qp_state(qp) == IBV_QPS_RTS) {
		status = transmit(qp, wr, length, way);
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

/* SQD: what is kept counts against the queue as what was worked on does. */
static BASE_COLD int post_deferred(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
	if (qp->sq_posted + qp->n_deferred -
	            atomic_load_explicit(&qp->sq_done, memory_order_acquire) >=
	    qp->cap.max_send_wr)
		return -ENOMEM;
	return defer(qp, wr, length);
}

static int post_one(struct hca_qp *qp, const struct ibv_send_wr *wr, struct way *way)
{
	uint64_t length;
	int ret = check_wr(qp, wr, &length);

	if (base_unlikely(ret))
		return ret;
	if (base_unlikely(hca_qp_state(qp) == IBV_QPS_SQD))
		return post_deferred(qp, wr, length);
	work(qp, wr, length, way);
	return 0;
}

/* 0, or what is wrong with the request that *@wr points to then. */
static int post_list(struct hca_qp *qp, const struct ibv_send_wr **wr)
{
	struct way way;
	int ret = 0;

	way.ah = NULL;
	for (; *wr; *wr = (*wr)->next) {
		ret = post_one(qp, *wr, &way);
		if (base_unlikely(ret))
			break;
	}
	return ret;
}

int hca_post_send(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ibv_send_wr *at = wr;
	int ret = 0;

	base_lock(&qp->send_lock);
	if (!can_post(hca_qp_state(qp)))
		ret = -EINVAL;
	else if (hca_process_gone(qp->process))
		ret = -EIO;
	else
		ret = post_list(qp, &at);
	if (base_unlikely(qp->out))
		hca_wire_flush(qp);
	base_unlock(&qp->send_lock);
	if (ret)
		*bad = (struct ibv_send_wr *)at;
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
		const struct ibv_send_wr *wr = &d->wr;

		post_list(qp, &wr); /* it was found right before */
		free(d);
	}
	if (qp->out)
		hca_wire_flush(qp);
}

void hca_send_discard(struct hca_qp *qp)
{
	struct hca_deferred *d;

	while ((d = next_deferred(qp)))
		free(d);
}
