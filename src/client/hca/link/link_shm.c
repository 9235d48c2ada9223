/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The link in shared memory: see link_shm.h.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/pause.h"
#include "base/reason.h"
#include "base/util.h"
#include "hca/link/deliver.h"
#include "hca/link/flow.h"
#include "hca/link/link_shm.h"
#include "hca/queue/cq.h"
#include "shm/ring.h"

#define AHEAD 8  /* receivers whose slots are being fetched while one is served */
#define MANY  16 /* receivers: a whole message's slots are too many to fetch ahead */

/* Whether the receiver takes packets with this P_Key; if so, that is known from now on. Rarely
 * called, but not BASE_COLD: gcc would then place all that comes after it apart. */
static __attribute__((noinline)) bool has_pkey(struct hca_process *p, struct hca_receiver *r,
                                               uint16_t pkey)
{
	struct shm_qp q;

	shm_qp_read(&p->region, r->qpn, &q);
	if (!(r->flags & SHM_QP_RECEIVES) || !ib_pkey_match(q.pkey, pkey))
		return false;
	r->good_pkey = pkey;
	return true;
}

/* Whether @r is on port @port (index, or HCA_ANY_PORT) and has the packet's Q_Key. */
static BASE_HOT bool is_meant(const struct hca_receiver *r, const struct hca_packet *pkt,
                              uint32_t port)
{
	return base_likely(r->qkey == pkt->qkey && (port == HCA_ANY_PORT || r->port == port));
}

static BASE_HOT bool lets_in(struct hca_process *p, struct hca_receiver *r,
                             const struct hca_packet *pkt, uint32_t port)
{
	return is_meant(r, pkt, port) &&
	       (base_likely(r->good_pkey == pkt->a.pkey) || has_pkey(p, r, pkt->a.pkey));
}

bool hca_receiver_lets_in(const struct hca_receiver *r, const struct hca_packet *pkt, uint32_t port)
{
	return is_meant(r, pkt, port) && r->good_pkey == pkt->a.pkey;
}

/* The sender's process is told of a key that its receiver does not have. */
static void tell_refused(struct hca_process *p, const struct hca_receiver *r,
                         const struct hca_packet *pkt, bool is_qkey)
{
	const struct base_failure f = { .part = BASE_LOG_PART_verbs,
		                        .error = EKEYREJECTED,
		                        .again = (uint64_t)pkt->a.src_qpn << 32 | r->qpn };
	struct shm_qp to;

	if (!base_log_on(verbs, BASE_LOG_WARNING))
		return;
	shm_qp_read(&p->region, r->qpn, &to);
	if (is_qkey)
		base_because(f.error,
		             "it has Q_Key 0x%08x, the message 0x%08x: wr.ud.remote_qkey has to be "
		             "the receiver's (with its highest bit set, the sender's own is sent)",
		             r->qkey, pkt->qkey);
	else
		base_because(f.error, "it has P_Key 0x%04x, the message 0x%04x: see pkey_index",
		             to.pkey, pkt->a.pkey);
	base_failure_log(&f, "QP 0x%06x: a message does not get to QP 0x%06x", pkt->a.src_qpn,
	                 r->qpn);
}

/* Counts a packet with a key that its receiver does not have, and notes it for a trap. */
static void refuse_key(struct hca_process *p, const struct hca_receiver *r,
                       const struct hca_packet *pkt, uint32_t port, bool is_qkey)
{
	struct shm_port_count *c = shm_port_count_at(&p->region, port);
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
	if (!p->must_not_block)
		tell_refused(p, r, pkt, is_qkey);
}

/* Counts a packet that @r does not receive, for the first reason that there is. */
static BASE_COLD void count_refusal(struct hca_process *p, struct hca_receiver *r,
                                    const struct hca_packet *pkt, uint32_t port)
{
	bool here = port == HCA_ANY_PORT || r->port == port;
	const char *why = "it has another P_Key";

	if (port == HCA_ANY_PORT)
		port = r->port;
	if (!r->flags || !here)
		why = "there is no such QP on the port";
	else if (!(r->flags & SHM_QP_RECEIVES))
		why = "it is not ready to receive";
	else if (has_pkey(p, r, pkt->a.pkey))
		why = "it has another Q_Key";
	base_log_debug(packet, "QP 0x%06x: not delivered to QP 0x%06x: %s", pkt->a.src_qpn, r->qpn,
	               why);
	if (!(r->flags & SHM_QP_RECEIVES) || !here)
		HCA_COUNT(p, port, no_qp);
	else
		refuse_key(p, r, pkt, port, has_pkey(p, r, pkt->a.pkey));
}

/* Delivers to @r, whose copy is current. */
static BASE_HOT void deliver(struct hca_process *p, const struct hca_packet *pkt,
                             struct hca_receiver *r, struct hca_ahead ahead, uint32_t port)
{
	if (base_likely(lets_in(p, r, pkt, port)))
		hca_deliver_into(p, pkt, r, ahead, false);
	else
		count_refusal(p, r, pkt, port);
}

/* Copies the record to @r again. */
static BASE_COLD void read_record(struct hca_process *p, struct hca_receiver *r, uint16_t writer)
{
	struct shm_ring *ring;
	struct shm_qp q;

	shm_qp_read(&p->region, r->qpn, &q);
	r->seq = q.seq;
	ring = shm_data_map(&p->region, q.ring_off, shm_ring_bytes(q.ring_shift));
	r->ring = shm_ring_view(ring, q.ring_shift, q.ring_gen, writer);
	r->cq = shm_cq_at(&p->region, q.cq);
	r->port = q.port;
	r->qkey = q.qkey;
	r->good_pkey = HCA_NO_PKEY;
	r->ready_bit = q.ready_bit;
	/* others than UD have no Q_Key: it is 0 in their record, and so may a datagram's be */
	r->flags = ring && q.qpn == r->qpn && q.type == IBV_QPT_UD ? q.flags : 0;
}

/* ---- waiting for a receive ---- */

/* Whether a sender that waits may go on as if the record had not changed: @now is a new copy, and
 * all that delivering by @r looks at is as it was. */
static bool is_as_before(struct hca_process *p, const struct hca_packet *pkt,
                         const struct hca_receiver *r, struct hca_receiver *now)
{
	read_record(p, now, pkt->writer);
	return lets_in(p, now, pkt, r->port) && now->ring.ring == r->ring.ring &&
	       now->ring.claim == r->ring.claim && now->cq == r->cq && now->flags == r->flags &&
	       now->ready_bit == r->ready_bit;
}

/* The note about a receiver that was waited for in vain. */
static uint64_t waited_for(const struct hca_receiver *r)
{
	return (uint64_t)r->qpn << 32 |
	       atomic_load_explicit(&r->ring.ring->posted, memory_order_relaxed);
}

/* Claims a receive that is posted in time. NULL: none is. *@in_vain: the time is over. */
static struct shm_arrival *claim_in_time(struct hca_process *p, const struct hca_packet *pkt,
                                         const struct hca_receiver *r, uint32_t *pos, bool *in_vain)
{
	const struct shm_settings *settings = &p->region.control->settings;
	const uint64_t began = base_now_ns();
	struct hca_receiver now = *r;
	struct base_pause pause = { 0 };
	struct shm_arrival *slot = NULL;

	*in_vain = false;
	while (!slot && !*in_vain) {
		base_pause(&pause); /* the thread that is to post it may need this processor */
		if (hca_process_gone(p) ||
		    (!hca_receiver_is_current(&now) && !is_as_before(p, pkt, r, &now)))
			break;
		slot = shm_ring_claim(&r->ring, pos);
		*in_vain = !slot && base_now_ns() - began >= 1000ull * settings->ud_wait_us;
	}
	return slot;
}

BASE_COLD struct shm_arrival *hca_deliver_wait(struct hca_process *p, const struct hca_packet *pkt,
                                               const struct hca_receiver *r, uint32_t *pos)
{
	_Atomic uint64_t *given_up = &shm_connection_at(&p->region, SHM_QP_INDEX(r->qpn))->given_up;
	const uint64_t whom = waited_for(r);
	struct shm_arrival *slot = NULL;
	bool in_vain;

	if (p->region.control->settings.ud_wait_us && pkt->qkey != IPOIB_QKEY &&
	    !(pkt->a.flags & SHM_ARRIVAL_ROCE) &&
	    atomic_load_explicit(given_up, memory_order_relaxed) != whom) {
		atomic_fetch_add_explicit(&shm_port_count_at(&p->region, r->port)->receive_waits, 1,
		                          memory_order_relaxed);
		slot = claim_in_time(p, pkt, r, pos, &in_vain);
		if (in_vain)
			atomic_store_explicit(given_up, whom, memory_order_relaxed);
	}
	if (!slot)
		HCA_COUNT(p, r->port, no_receive);
	return slot;
}

/* ---- delivering ---- */

/* Begins to fetch the slot for the packet. A hint only, so an old copy suffices. */
static BASE_HOT void prefetch(const struct hca_receiver *r, const struct hca_packet *pkt)
{
	if (r->flags & SHM_QP_RECEIVES)
		shm_ring_prefetch(&r->ring, hca_packet_is_small(pkt));
}

/* Delivers to @r. */
static BASE_HOT void deliver_one(struct hca_process *p, const struct hca_packet *pkt, uint32_t port,
                                 struct hca_receiver *r, struct hca_ahead ahead)
{
	if (base_unlikely(!hca_receiver_is_current(r)))
		read_record(p, r, pkt->writer);
	deliver(p, pkt, r, ahead, port);
}

static __attribute__((noinline)) void deliver_to_some(struct hca_process *p,
                                                      const struct hca_packet *pkt, uint32_t port,
                                                      struct hca_receiver *to, uint32_t n)
{
	struct hca_receiver *end = to + n,
	                    *ahead = pkt->ahead.fetched && hca_packet_is_small(pkt) ? end : to + 1;

	for (struct hca_receiver *r = to; r < end; r++) {
		for (; ahead < end && ahead <= r + AHEAD; ahead++)
			prefetch(ahead, pkt);
		deliver_one(p, pkt, port, r, pkt->ahead);
	}
}

/*
 * The slots of a whole message more would not fit into the cache beside what else it takes to
 * deliver: only those of the next few receivers are fetched, after the last ones those that begin
 * the next message of the list.
 */
static __attribute__((noinline)) void deliver_to_many(struct hca_process *p,
                                                      const struct hca_packet *pkt, uint32_t port,
                                                      struct hca_receiver *to, uint32_t n)
{
	const bool is_small = hca_packet_is_small(pkt), goes_on = is_small && pkt->ahead.n;
	const struct hca_ahead none = { .n = 0, .fetched = true };

	for (uint32_t i = 0; !(is_small && pkt->ahead.fetched) && i < AHEAD; i++)
		prefetch(&to[i], pkt);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t next = i + AHEAD;

		if (next < n)
			prefetch(&to[next], pkt);
		else if (goes_on)
			prefetch(&to[next - n], pkt);
		deliver_one(p, pkt, port, &to[i], none);
	}
}

static BASE_HOT void deliver_each(struct hca_process *p, const struct hca_packet *pkt,
                                  uint32_t port, struct hca_receiver *to, uint32_t n)
{
	if (base_likely(n == 1))
		deliver_one(p, pkt, port, to, pkt->ahead);
	else if (n < MANY)
		deliver_to_some(p, pkt, port, to, n);
	else
		deliver_to_many(p, pkt, port, to, n);
	hca_deliver_end(pkt);
}

void hca_deliver_to(struct hca_process *p, const struct hca_packet *pkt, uint32_t port,
                    struct hca_receiver *to, uint32_t n)
{
	deliver_each(p, pkt, port, to, n);
}

void hca_deliver(struct hca_process *p, const struct hca_packet *pkt, uint32_t qpn, uint32_t port)
{
	struct hca_receiver r;

	hca_receiver_init(p, &r, qpn);
	hca_deliver_to(p, pkt, port, &r, 1);
}

static bool is_own(struct hca_sender *s, struct hca_receiver *r)
{
	if (!hca_receiver_is_current(r))
		read_record(s->process, r, (uint16_t)SHM_QP_INDEX(s->qpn));
	return r->port == s->port;
}

void hca_deliver_copies(struct hca_sender *s, struct hca_flow *f, const struct hca_packet *pkt,
                        bool own)
{
	const struct hca_ahead none = { .n = 0, .fetched = true };

	for (uint32_t i = 0; i < f->count; i++)
		if (is_own(s, &f->to[i]) == own)
			deliver(s->process, pkt, &f->to[i], none, HCA_ANY_PORT);
	hca_deliver_end(pkt);
}

bool hca_deliver_has_both(struct hca_sender *s, struct hca_flow *f)
{
	uint32_t n_own = 0;

	if (!f->is_mcast || f->link != &hca_link_shm)
		return false;
	for (uint32_t i = 0; i < f->count; i++)
		n_own += is_own(s, &f->to[i]);
	return n_own && n_own < f->count;
}

/* *@port: where the receivers of the flow are, as in hca_deliver_to(). False: the packet is
 * malformed and dropped: multicast, but not to QP number 0xFFFFFF. */
static BASE_HOT bool address(struct hca_sender *s, struct hca_flow *f, uint32_t remote_qpn,
                             uint32_t *port)
{
	*port = HCA_ANY_PORT;
	if (f->is_mcast)
		return base_likely(remote_qpn == IB_QPN_MCAST);
	if (base_unlikely(f->to->qpn != remote_qpn))
		hca_receiver_init(s->process, f->to, remote_qpn);
	*port = f->dest_port;
	return true;
}

/* The packet is malformed. */
static BASE_COLD void drop(struct hca_sender *s, const struct hca_packet *pkt, uint32_t remote_qpn)
{
	HCA_COUNT(s->process, s->port, not_mcast_qpn);
	if (pkt->a.flags & SHM_ARRIVAL_TRACED)
		base_log_trace(packet, "QP 0x%06x: dropped: a multicast packet to QP 0x%06x",
		               pkt->a.src_qpn, remote_qpn);
}

static void send_along(struct hca_sender *s, struct hca_flow *f, const struct hca_packet *pkt,
                       uint32_t remote_qpn)
{
	uint32_t port;

	if (address(s, f, remote_qpn, &port))
		deliver_each(s->process, pkt, port, f->to, f->count);
	else
		drop(s, pkt, remote_qpn);
}

/* A group's GID, and the LID of a port: a card sends it, and the port that it comes to drops it. */
static BASE_COLD void send_astray(struct hca_sender *s, struct hca_flow *f,
                                  const struct hca_packet *pkt, uint32_t remote_qpn)
{
	(void)f;
	(void)remote_qpn;
	HCA_COUNT(s->process, s->port, mcast_by_lid);
	if (pkt->a.flags & SHM_ARRIVAL_TRACED)
		base_log_trace(packet, "QP 0x%06x: dropped: a group's GID, and a port's LID",
		               pkt->a.src_qpn);
}

const struct hca_link_ops hca_link_astray = {
	.name = "astray",
	.send = send_astray,
};

const struct hca_link_ops hca_link_shm = {
	.name = "shm",
	.send = send_along,
};
