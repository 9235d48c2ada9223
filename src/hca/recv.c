/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive queue. Posted requests wait in a FIFO of this process; each is a
 * credit in the shared ring. An arrival is taken out by whoever polls the CQ: it
 * takes the oldest request, is checked against its memory regions, copied behind
 * the 40 bytes of GRH, and completes.
 *
 * Positions of the ring and requests of the FIFO are not the same thing: a position
 * that was voided (its sender died) is posted anew, and the request waits on, so
 * that requests are used in the order in which they were posted.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "hca/hca.h"
#include "wire/grh.h"
#include "wire/roce.h"

#define PREFETCH_LINES 8 /* then the processor sees what is going on */

/* How many requests can be posted. */
static uint32_t room(const struct hca_qp *qp)
{
	uint32_t queue = qp->cap.max_recv_wr - (qp->rwqe_tail - qp->rwqe_head);
	uint32_t ring = shm_ring_room(qp->posted, qp->consumed, qp->ring_shift);

	/* after a reset a sender may still be about to let go of a position */
	return qp->flushing || queue < ring ? queue : ring;
}

static void keep(struct hca_qp *qp, const struct ibv_recv_wr *wr)
{
	uint32_t i = qp->rwqe_tail++ & qp->rwqe_mask;
	struct ibv_sge *sge = &qp->rsge[i * qp->cap.max_recv_sge];

	qp->rwqe[i].wr_id = wr->wr_id;
	qp->rwqe[i].n_sge = (uint32_t)wr->num_sge;
	if (base_likely(wr->num_sge == 1))
		*sge = *wr->sg_list;
	else if (wr->num_sge)
		memcpy(sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*sge));
}

int hca_post_recv(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	uint32_t n = 0, left;
	int ret = 0;

	base_lock(&qp->recv_lock);
	left = room(qp);
	if (hca_qp_state(qp) == IBV_QPS_RESET)
		ret = -EINVAL;
	else if (hca_process_gone(qp->process))
		ret = -EIO;
	for (; wr && !ret; wr = wr->next) {
		if (base_unlikely((uint32_t)wr->num_sge > qp->cap.max_recv_sge)) /* or negative */
			ret = -EINVAL;
		else if (base_unlikely(n == left))
			ret = -ENOMEM;
		if (base_unlikely(ret))
			break;
		keep(qp, wr);
		n++;
	}
	if (n && !qp->flushing) {
		shm_ring_post(qp->ring, qp->ring_shift, qp->ring_gen, qp->posted, n);
		qp->posted += n;
	}
	base_unlock(&qp->recv_lock);
	if (n && qp->flushing)
		hca_cq_kick(hca_cq(qp->ex.qp_base.recv_cq), qp);
	if (ret)
		*bad = wr;
	return ret;
}

/* ---- arrivals ---- */

/* Where the next bytes of a message go. */
struct cursor {
	const struct ibv_sge *sge;
	uint32_t n, done; /* entries left, bytes of the first one used */
};

static enum ibv_wc_status scatter(struct hca_qp *qp, struct cursor *c, const void *from,
                                  uint32_t bytes)
{
	while (bytes) {
		uint32_t part;
		char *to;

		if (!c->n)
			return IBV_WC_LOC_LEN_ERR;
		to = hca_mr_resolve(qp->process, qp->ex.qp_base.pd, c->sge, IBV_ACCESS_LOCAL_WRITE);
		if (!to && c->sge->length)
			return IBV_WC_LOC_PROT_ERR;
		part = c->sge->length - c->done;
		if (part > bytes)
			part = bytes;
		if (from && part) {
			memcpy(to + c->done, from, part);
			from = (const char *)from + part;
		}
		bytes -= part;
		c->done += part;
		if (c->done == c->sge->length) {
			c->sge++;
			c->n--;
			c->done = 0;
		}
	}
	return IBV_WC_SUCCESS;
}

/* On Ethernet it is the IP header: as it came, or for a message from a neighbour in memory as it
 * would have come. */
static void make_ip_header(struct hca_qp *qp, const struct shm_arrival *a,
                           uint8_t out[IB_GRH_BYTES])
{
	const struct shm_region *r = &qp->process->region;
	struct wire_roce_packet packet = { .payload_bytes = a->length };

	if (a->flags & SHM_ARRIVAL_WIRE) {
		memcpy(out, a->data, IB_GRH_BYTES);
		return;
	}
	packet.ip = (struct wire_ip){ .traffic_class = (uint8_t)(a->class_flow >> 20),
		                      .flow_label = a->class_flow & 0xFFFFF,
		                      .hop_limit = a->hop_limit,
		                      .dgid = a->dgid };
	packet.bth.opcode = a->flags & SHM_ARRIVAL_IMM ? WIRE_OPCODE_UD_SEND_ONLY_IMM
	                                               : WIRE_OPCODE_UD_SEND_ONLY;
	if (a->src_port < r->control->n_ports && a->sgid_index < SHM_GIDS)
		packet.ip.sgid = r->ports[a->src_port].gid[a->sgid_index];
	wire_ip_grh(&packet.ip, wire_roce_udp_payload(&packet), out);
}

static BASE_HOT void make_grh(struct hca_qp *qp, const struct shm_arrival *a,
                              uint8_t out[IB_GRH_BYTES])
{
	const struct shm_region *r = &qp->process->region;
	struct wire_grh grh = { .traffic_class = (uint8_t)(a->class_flow >> 20),
		                .flow_label = a->class_flow & 0xFFFFF,
		                .hop_limit = a->hop_limit,
		                .dgid = a->dgid };

	if (__builtin_expect(a->flags & SHM_ARRIVAL_ETHERNET, 0)) {
		make_ip_header(qp, a, out);
		return;
	}
	grh.payload_bytes = wire_grh_ud_payload(a->length, a->flags & SHM_ARRIVAL_IMM);
	if (a->src_port < r->control->n_ports && a->sgid_index < SHM_GIDS)
		grh.sgid = r->ports[a->src_port].gid[a->sgid_index];
	wire_grh_encode(&grh, out);
}

/* The message's bytes, which may be at @small; NULL if the arrival names memory that is no payload.
 */
static const void *message_of(struct hca_qp *qp, const struct shm_arrival *a, const void *small)
{
	if (a->flags & SHM_ARRIVAL_PAYLOAD)
		return shm_payload_at(&qp->process->region, a->payload_off, a->length);
	return a->length <= SHM_INLINE ? small : NULL;
}

/* The common case: one buffer for all. Its region is looked up once. */
static enum ibv_wc_status take_in_one(struct hca_qp *qp, const struct shm_arrival *a,
                                      const struct ibv_sge *sge, const void *message)
{
	char *to = hca_mr_resolve(qp->process, qp->ex.qp_base.pd, sge, IBV_ACCESS_LOCAL_WRITE);

	if (base_unlikely(!to))
		return IBV_WC_LOC_PROT_ERR;
	if (base_unlikely(sge->length < IB_GRH_BYTES || sge->length - IB_GRH_BYTES < a->length))
		return IBV_WC_LOC_LEN_ERR;
	if (a->flags & SHM_ARRIVAL_GRH)
		make_grh(qp, a, (uint8_t *)to);
	if (a->length <= BASE_COPY_SHORT)
		base_copy_short(to + IB_GRH_BYTES, message, a->length);
	else
		memcpy(to + IB_GRH_BYTES, message, a->length);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status take_in_many(struct hca_qp *qp, const struct shm_arrival *a,
                                       struct cursor *c, const void *message)
{
	enum ibv_wc_status status;
	uint8_t grh[IB_GRH_BYTES];
	const void *head = NULL; /* without GRH its room stays as it is */

	if (a->flags & SHM_ARRIVAL_GRH) {
		make_grh(qp, a, grh);
		head = grh;
	}
	status = scatter(qp, c, head, IB_GRH_BYTES);
	return status == IBV_WC_SUCCESS ? scatter(qp, c, message, a->length) : status;
}

static enum ibv_wc_status take_in(struct hca_qp *qp, const struct shm_arrival *a,
                                  const void *message, const struct hca_rwqe *rwqe,
                                  const struct ibv_sge *sge)
{
	if (base_unlikely(!message))
		return IBV_WC_GENERAL_ERR;
	if (base_likely(rwqe->n_sge == 1))
		return take_in_one(qp, a, sge, message);
	return take_in_many(qp, a, &(struct cursor){ .sge = sge, .n = rwqe->n_sge }, message);
}

static struct hca_rwqe *next_rwqe(struct hca_qp *qp, const struct ibv_sge **sge)
{
	uint32_t i = qp->rwqe_head++ & qp->rwqe_mask;

	*sge = &qp->rsge[i * qp->cap.max_recv_sge];
	return &qp->rwqe[i];
}

/* Takes the arrival in and describes it. */
static void complete(struct hca_qp *qp, const struct shm_arrival *slot, struct ibv_wc *wc)
{
	struct hca_cq *cq = hca_cq(qp->ex.qp_base.recv_cq);
	const struct ibv_sge *sge;
	struct hca_rwqe *rwqe = next_rwqe(qp, &sge);
	struct shm_arrival copy, *a = &copy;

	/* what has been checked must not change; but anybody can write to the slot */
	memcpy((void *)a, (const void *)slot, offsetof(struct shm_arrival, data));
	if (base_unlikely(a->flags & SHM_ARRIVAL_WIRE))
		memcpy(a->data, slot->data, sizeof(a->data));
	atomic_signal_fence(memory_order_acq_rel);
	wc->wr_id = rwqe->wr_id;
	wc->status = take_in(qp, a, message_of(qp, a, slot->data), rwqe, sge);
	wc->opcode = IBV_WC_RECV;
	wc->vendor_err = 0;
	wc->byte_len = a->length + IB_GRH_BYTES;
	wc->imm_data = a->imm;
	wc->qp_num = qp->ex.qp_base.qp_num;
	wc->src_qp = a->src_qpn;
	wc->wc_flags = (a->flags & SHM_ARRIVAL_GRH ? IBV_WC_GRH : 0) |
	               (a->flags & SHM_ARRIVAL_IMM ? IBV_WC_WITH_IMM : 0);
	wc->pkey_index = 0;
	wc->slid = a->slid;
	wc->sl = a->sl;
	wc->dlid_path_bits = a->path_bits;
	cq->announced = a->more;
	if (base_unlikely(wc->status != IBV_WC_SUCCESS))
		qp->failed = cq->failed = true;
}

static void complete_flushed(struct hca_qp *qp, struct ibv_wc *wc)
{
	const struct ibv_sge *sge;

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = next_rwqe(qp, &sge)->wr_id;
	wc->status = IBV_WC_WR_FLUSH_ERR;
	wc->opcode = IBV_WC_RECV;
	wc->qp_num = qp->ex.qp_base.qp_num;
}

static bool before(uint32_t pos, uint32_t limit)
{
	return (int32_t)(pos - limit) < 0;
}

/* Begins to fetch what the next arrival brings, if it is there, while this one is copied. */
static void prefetch_payload(struct hca_qp *qp, uint32_t pos)
{
	const struct shm_arrival *a = shm_ring_slot(qp->ring, qp->ring_shift, pos);
	const char *payload;

	if (shm_ring_peek(qp->ring, qp->ring_shift, pos) != SHM_SLOT_DONE ||
	    !(a->flags & SHM_ARRIVAL_PAYLOAD))
		return;
	payload = shm_payload_at(&qp->process->region, a->payload_off, a->length);
	for (int i = 0; payload && i < PREFETCH_LINES; i++)
		__builtin_prefetch(payload + BASE_CACHE_LINE * i);
}

/*
 * What can be taken out at @pos. While a queue flushes and the manager has gone, a claim may be
 * that of a dead sender, and nobody is left to say so: void.
 */
static enum shm_slot_kind look_at(struct hca_qp *qp, uint32_t pos)
{
	enum shm_slot_kind kind = shm_ring_peek(qp->ring, qp->ring_shift, pos);

	if (kind == SHM_SLOT_CLOSED && base_unlikely(qp->flushing) && hca_process_gone(qp->process))
		return SHM_SLOT_VOID;
	return kind;
}

int hca_recv_poll(struct hca_qp *qp, int n, struct ibv_wc *wc, uint32_t *arrivals)
{
	uint32_t pos, again = 0;
	int done = 0;

	base_lock(&qp->recv_lock);
	for (pos = qp->consumed; pos != qp->posted && done < n && !qp->failed; pos++) {
		const struct shm_arrival *a = shm_ring_slot(qp->ring, qp->ring_shift, pos);
		enum shm_slot_kind kind = look_at(qp, pos);

		if (kind == SHM_SLOT_CLOSED)
			break;
		if (base_unlikely(kind == SHM_SLOT_VOID)) {
			again += !before(pos, qp->void_below);
			continue;
		}
		++*arrivals;
		if (base_unlikely(before(pos, qp->discard_below)))
			continue;
		if (a->flags & SHM_ARRIVAL_PAYLOAD)
			prefetch_payload(qp, pos + 1);
		complete(qp, a, &wc[done++]);
	}
	if (pos != qp->consumed) {
		qp->consumed = pos;
		shm_ring_consume(qp->ring, pos);
	}
	if (base_unlikely(again)) {
		shm_ring_post(qp->ring, qp->ring_shift, qp->ring_gen, qp->posted, again);
		qp->posted += again;
	}
	while (base_unlikely(qp->flushing) && pos == qp->posted && done < n &&
	       qp->rwqe_head != qp->rwqe_tail)
		complete_flushed(qp, &wc[done++]);
	base_unlock(&qp->recv_lock);
	return done;
}

uint32_t hca_recv_arrived(struct hca_qp *qp)
{
	uint32_t n = 0, pos;

	base_lock(&qp->recv_lock);
	for (pos = qp->consumed; pos != qp->posted; pos++)
		n += shm_ring_peek(qp->ring, qp->ring_shift, pos) == SHM_SLOT_DONE;
	base_unlock(&qp->recv_lock);
	return n;
}

uint32_t hca_recv_waiting(struct hca_qp *qp)
{
	uint32_t n = hca_recv_arrived(qp);

	base_lock(&qp->recv_lock);
	if (qp->flushing)
		n = qp->rwqe_tail - qp->rwqe_head;
	base_unlock(&qp->recv_lock);
	return n;
}

void hca_recv_flush(struct hca_qp *qp)
{
	base_lock(&qp->recv_lock);
	qp->flushing = true;
	qp->failed = false;
	shm_ring_withdraw(qp->ring, qp->ring_shift, qp->ring_gen, qp->consumed, qp->posted);
	qp->void_below = qp->posted;
	base_unlock(&qp->recv_lock);
	hca_cq_kick(hca_cq(qp->ex.qp_base.recv_cq), qp);
}

void hca_recv_reset(struct hca_qp *qp)
{
	base_lock(&qp->recv_lock);
	qp->flushing = false;
	qp->failed = false;
	shm_ring_withdraw(qp->ring, qp->ring_shift, qp->ring_gen, qp->consumed, qp->posted);
	qp->void_below = qp->discard_below = qp->posted;
	qp->rwqe_head = qp->rwqe_tail;
	while (qp->consumed != qp->posted &&
	       shm_ring_peek(qp->ring, qp->ring_shift, qp->consumed) != SHM_SLOT_CLOSED)
		qp->consumed++;
	shm_ring_consume(qp->ring, qp->consumed);
	base_unlock(&qp->recv_lock);
}
