/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One packet to one queue pair: the checks that the receiving HCA makes, a credit of
 * its receive ring, the arrival, and a wake-up if somebody sleeps. The sender's
 * thread does it all; what comes from a wire goes the same way.
 *
 * Each step leaves a trace that a dead sender's manager can read: first whose ring,
 * then its own name in the slot.
 */
#include <string.h>

#include "hca/hca.h"

/* Fills a claimed slot. */
static void fill(struct shm_arrival *slot, const struct hca_packet *pkt)
{
	slot->src_qpn = pkt->src_qpn;
	slot->length = pkt->length;
	slot->imm = pkt->imm;
	slot->class_flow = pkt->class_flow;
	slot->slid = pkt->slid;
	slot->pkey = pkt->pkey;
	slot->src_port = pkt->src_port;
	slot->sgid_index = pkt->sgid_index;
	slot->hop_limit = pkt->hop_limit;
	slot->sl = pkt->sl;
	slot->flags = pkt->flags;
	slot->path_bits = 0;
	slot->dgid = pkt->dgid;
	if (pkt->flags & SHM_ARRIVAL_PAYLOAD)
		slot->payload_off = pkt->payload->off;
	else
		memcpy(slot->data, pkt->data, SHM_INLINE); /* of one size: no call */
}

/* The arrival is there: let the receiver's CQ know what it cannot see by itself. */
static void announce(struct hca_process *p, const struct shm_qp *q, bool solicited)
{
	struct shm_cq *cq = &p->region.cqs[q->cq];

	if (q->ready_bit < SHM_CQ_READY_BITS) {
		_Atomic uint64_t *word = &cq->ready[q->ready_bit / 64];
		uint64_t bit = 1ull << (q->ready_bit % 64);

		if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
			atomic_fetch_or_explicit(word, bit, memory_order_release);
	}
	if ((q->flags & SHM_QP_COUNT_ARRIVALS) &&
	    (int32_t)(atomic_fetch_add_explicit(&cq->arrived, 1, memory_order_relaxed) + 1 -
	              atomic_load_explicit(&cq->limit, memory_order_relaxed)) > 0)
		hca_cq_overrun(p, q->cq, cq);
	hca_cq_notify(p, cq, solicited);
}

/* Counts a packet with a key that its receiver does not have, and notes it for a trap. */
static __attribute__((noinline)) void refuse_key(struct hca_process *p,
                                                 const struct hca_packet *pkt, uint32_t qpn,
                                                 uint32_t port, bool is_qkey)
{
	struct shm_port_count *c = &p->region.port_counts[port];
	struct shm_bad_key *last = is_qkey ? &c->last_bad_qkey : &c->last_bad_pkey;
	uint32_t key = is_qkey ? pkt->qkey : pkt->pkey;

	atomic_store_explicit(&last->ends,
	                      (uint64_t)pkt->slid << 48 |
	                              (uint64_t)(pkt->src_qpn & IB_QPN_MASK) << 24 |
	                              (qpn & IB_QPN_MASK),
	                      memory_order_relaxed);
	atomic_store_explicit(&last->key, (uint64_t)pkt->sl << 32 | key, memory_order_relaxed);
	atomic_fetch_add_explicit(is_qkey ? &c->bad_qkey : &c->bad_pkey, 1, memory_order_relaxed);
	/* release: pairs with the acquire of fabric_traps_notice_keys() */
	atomic_fetch_add_explicit(&p->region.data->bad_keys, 1, memory_order_release);
}

void hca_deliver(struct hca_process *p, struct shm_sender *sender, const struct hca_packet *pkt,
                 uint32_t qpn, uint32_t port)
{
	uint16_t writer = (uint16_t)SHM_QP_INDEX(pkt->src_qpn);
	struct shm_arrival *slot;
	struct shm_ring *ring;
	struct shm_qp q;
	uint32_t pos;

	shm_qp_read(&p->region, qpn, &q);
	if (port == HCA_ANY_PORT)
		port = q.port;
	if (q.qpn != qpn || !(q.flags & SHM_QP_RECEIVES) || q.port != port) {
		HCA_COUNT(p, port, no_qp);
		return;
	}
	if (!ib_pkey_match(q.pkey, pkt->pkey)) {
		refuse_key(p, pkt, qpn, port, false);
		return;
	}
	if (q.qkey != pkt->qkey) {
		refuse_key(p, pkt, qpn, port, true);
		return;
	}
	ring = shm_data_at(&p->region, q.ring_off);
	atomic_store_explicit(&sender->target_qpn, qpn, memory_order_release);
	slot = shm_ring_claim(ring, q.ring_shift, q.ring_gen, writer, &pos);
	if (!slot) {
		HCA_COUNT(p, port, no_receive);
		return;
	}
	fill(slot, pkt);
	shm_ring_publish(slot, pos, q.ring_gen, writer);
	if (pkt->flags & SHM_ARRIVAL_PAYLOAD)
		pkt->payload->hold[pkt->payload->n++] =
		        (struct hca_payload_hold){ .ring = ring, .gen = q.ring_gen, .pos = pos };
	announce(p, &q, pkt->flags & SHM_ARRIVAL_SOLICITED);
}
