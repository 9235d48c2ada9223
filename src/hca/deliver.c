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

#define AHEAD      4 /* receivers whose slots are being fetched while one is served */
#define LIST_AHEAD 3 /* messages of a list whose slots are */

BASE_COLD void hca_count(struct hca_process *p, uint32_t port, size_t field)
{
	_Atomic uint64_t *c = (_Atomic uint64_t *)((char *)&p->region.port_counts[port] + field);

	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* Whether @r is on port @port (index, or HCA_ANY_PORT) and lets the packet in. */
static bool lets_in(const struct hca_receiver *r, const struct hca_packet *pkt, uint32_t port)
{
	return (r->flags & SHM_QP_RECEIVES) && (port == HCA_ANY_PORT || r->port == port) &&
	       ib_pkey_match(r->pkey, pkt->a.pkey) && r->qkey == pkt->qkey;
}

/* Counts a packet with a key that its receiver does not have, and notes it for a trap. */
static void refuse_key(struct hca_process *p, const struct hca_receiver *r,
                       const struct hca_packet *pkt, uint32_t port, bool is_qkey)
{
	struct shm_port_count *c = &p->region.port_counts[port];
	struct shm_bad_key *last = is_qkey ? &c->last_bad_qkey : &c->last_bad_pkey;
	uint32_t key = is_qkey ? pkt->qkey : pkt->a.pkey;

	atomic_store_explicit(&last->ends,
	                      (uint64_t)pkt->a.slid << 48 |
	                              (uint64_t)(pkt->a.src_qpn & IB_QPN_MASK) << 24 |
	                              (r->qpn & IB_QPN_MASK),
	                      memory_order_relaxed);
	atomic_store_explicit(&last->key, (uint64_t)pkt->a.sl << 32 | key, memory_order_relaxed);
	atomic_fetch_add_explicit(is_qkey ? &c->bad_qkey : &c->bad_pkey, 1, memory_order_relaxed);
	/* release: pairs with the acquire of fabric_traps_notice_keys() */
	atomic_fetch_add_explicit(&p->region.data->bad_keys, 1, memory_order_release);
}

/* Why it did not: the first reason counts. */
static BASE_COLD void count_refusal(struct hca_process *p, const struct hca_receiver *r,
                                    const struct hca_packet *pkt, uint32_t port)
{
	bool here = port == HCA_ANY_PORT || r->port == port;

	if (port == HCA_ANY_PORT)
		port = r->port;
	if (!(r->flags & SHM_QP_RECEIVES) || !here)
		HCA_COUNT(p, port, no_qp);
	else
		refuse_key(p, r, pkt, port, ib_pkey_match(r->pkey, pkt->a.pkey));
}

/* Whether the message itself lies in the arrival. */
static bool rides(const struct hca_packet *pkt)
{
	return !(pkt->a.flags & SHM_ARRIVAL_PAYLOAD);
}

/* Fills a claimed slot. Copies of one size: no call. */
static void fill(struct shm_arrival *slot, const struct hca_packet *pkt)
{
	const size_t state = offsetof(struct shm_arrival, src_qpn);

	memcpy((char *)slot + state, (const char *)&pkt->a + state,
	       offsetof(struct shm_arrival, data) - state);
	/* with a payload only what came from the wire has something there */
	if ((pkt->a.flags & (SHM_ARRIVAL_PAYLOAD | SHM_ARRIVAL_WIRE)) != SHM_ARRIVAL_PAYLOAD)
		memcpy(slot->data, pkt->a.data, SHM_INLINE);
}

static BASE_COLD void set_ready(_Atomic uint64_t *word, uint64_t bit)
{
	atomic_fetch_or_explicit(word, bit, memory_order_release);
}

static BASE_COLD void count_arrival(struct hca_process *p, struct shm_cq *cq)
{
	if ((int32_t)(atomic_fetch_add_explicit(&cq->arrived, 1, memory_order_relaxed) + 1 -
	              atomic_load_explicit(&cq->limit, memory_order_relaxed)) > 0)
		hca_cq_overrun(p, (uint32_t)(cq - p->region.cqs), cq);
}

/* The arrival is there: let the receiver's CQ know what it cannot see by itself. */
static void announce(struct hca_process *p, const struct hca_receiver *r, bool solicited)
{
	if (r->ready_bit < SHM_CQ_READY_BITS) {
		_Atomic uint64_t *word = &r->cq->ready[r->ready_bit / 64];
		uint64_t bit = 1ull << (r->ready_bit % 64);

		if (base_unlikely(!(atomic_load_explicit(word, memory_order_relaxed) & bit)))
			set_ready(word, bit);
	}
	if (base_unlikely(r->flags & SHM_QP_COUNT_ARRIVALS))
		count_arrival(p, r->cq);
	hca_cq_notify(p, r->cq, solicited);
}

/*
 * Begins to fetch what a packet further on in the list will be written to, and behind the first
 * one of the list what those before that will. Of messages that ride only: another takes so long
 * to write that fetching its slot so early gains nothing.
 */
static void fetch_next(const struct hca_receiver *r, const struct hca_packet *pkt)
{
	for (uint32_t i = pkt->fetched ? LIST_AHEAD - 1 : 0; i < LIST_AHEAD && i < pkt->a.more; i++)
		shm_ring_prefetch(r->ring, r->ring_shift, i, true);
}

/* To a receiver on port @port, who is known. */
static void deliver(struct hca_process *p, const struct hca_packet *pkt,
                    const struct hca_receiver *r, uint32_t port)
{
	const uint16_t gen = r->ring_gen, writer = pkt->writer;
	struct shm_ring *ring = r->ring;
	struct shm_arrival *slot;
	uint32_t pos;

	if (base_unlikely(!lets_in(r, pkt, port))) {
		count_refusal(p, r, pkt, port);
		return;
	}
	atomic_store_explicit(&pkt->sender->target_qpn, r->qpn, memory_order_release);
	slot = shm_ring_claim(ring, r->ring_shift, gen, writer, &pos);
	if (base_unlikely(!slot)) {
		HCA_COUNT(p, r->port, no_receive);
		return;
	}
	fill(slot, pkt);
	shm_ring_publish(slot, pos, gen, writer);
	if (!rides(pkt))
		pkt->payload->hold[pkt->payload->n++] =
		        (struct hca_payload_hold){ .ring = ring, .gen = gen, .pos = pos };
	if (pkt->a.more && rides(pkt))
		fetch_next(r, pkt);
	announce(p, r, pkt->a.flags & SHM_ARRIVAL_SOLICITED);
}

/* Takes from @r's record what it says now. */
static BASE_COLD void read_record(struct hca_process *p, struct hca_receiver *r)
{
	struct shm_qp q;

	shm_qp_read(&p->region, r->qpn, &q);
	r->seq = q.seq;
	r->ring = shm_data_at(&p->region, q.ring_off);
	r->cq = &p->region.cqs[q.cq];
	r->port = q.port;
	r->qkey = q.qkey;
	r->pkey = q.pkey;
	r->ring_gen = q.ring_gen;
	r->ready_bit = q.ready_bit;
	r->ring_shift = q.ring_shift;
	r->flags = q.qpn == r->qpn ? q.flags : 0;
}

/* Begins to fetch what the packet will be written to. Only a hint, so the record need not be
 * looked at. */
static void prefetch(const struct hca_receiver *r, const struct hca_packet *pkt)
{
	if (r->flags & SHM_QP_RECEIVES)
		shm_ring_prefetch(r->ring, r->ring_shift, 0, rides(pkt));
}

void hca_deliver_to(struct hca_process *p, const struct hca_packet *pkt, uint32_t port,
                    struct hca_receiver *to, uint32_t n)
{
	struct hca_receiver *end = to + n, *ahead = pkt->fetched && rides(pkt) ? end : to + 1;

	for (struct hca_receiver *r = to; r < end; r++) {
		for (; ahead < end && ahead <= r + AHEAD; ahead++)
			prefetch(ahead, pkt);
		/* acquire: pairs with the release in shm_write_end() */
		if (base_unlikely(atomic_load_explicit((_Atomic uint32_t *)&r->record->seq,
		                                       memory_order_acquire) != r->seq))
			read_record(p, r);
		deliver(p, pkt, r, port);
	}
	/* release: what was done comes before "doing nothing" */
	atomic_store_explicit(&pkt->sender->target_qpn, 0, memory_order_release);
}

void hca_deliver(struct hca_process *p, const struct hca_packet *pkt, uint32_t qpn, uint32_t port)
{
	struct hca_receiver r;

	hca_receiver_init(p, &r, qpn);
	hca_deliver_to(p, pkt, port, &r, 1);
}
