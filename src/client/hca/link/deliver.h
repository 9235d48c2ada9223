/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delivery of a packet to one receiver in shared memory, which is current and lets it in. Inline,
 * as it is most of what sending costs: for the link (link_shm.c), and for UD, which by itself
 * repeats what went by that link (ud_send.c).
 *
 * Threads may call it at the same time with different senders.
 */
#ifndef HCA_DELIVER_H
#define HCA_DELIVER_H

#include <string.h>

#include "base/log.h"
#include "hca/link/packet.h"
#include "hca/link/payload.h"
#include "hca/link/receiver.h"
#include "hca/queue/cq.h"

/* Writes the packet to a claimed slot. The copies have a fixed size, so the compiler calls nothing.
 */
static BASE_HOT void hca_deliver_fill(struct shm_arrival *slot, const struct hca_packet *pkt,
                                      bool plain)
{
	const size_t state = offsetof(struct shm_arrival, src_qpn);

	memcpy((char *)slot + state, (const char *)&pkt->a + state,
	       offsetof(struct shm_arrival, data) - state);
	/* with a payload, only packets from the network have data there as well */
	if (plain ||
	    (pkt->a.flags & (SHM_ARRIVAL_PAYLOAD | SHM_ARRIVAL_ROCE)) != SHM_ARRIVAL_PAYLOAD)
		memcpy(slot->data, pkt->a.data, SHM_INLINE);
}

/* The packet is in position @pos of the ring: remembers that its payload is used, and logs it. */
static BASE_HOT void hca_deliver_note(const struct hca_packet *pkt, const struct hca_receiver *r,
                                      uint32_t pos)
{
	if (!hca_packet_is_small(pkt))
		pkt->payload->hold[pkt->payload->n++] = (struct hca_payload_hold){
			.ring = r->ring.ring, .gen = shm_slot_gen(r->ring.claim), .pos = pos
		};
	if (base_unlikely(pkt->a.flags & SHM_ARRIVAL_TRACED))
		base_log_trace(packet, "QP 0x%06x: delivered to QP 0x%06x: position %u of its ring",
		               pkt->a.src_qpn, r->qpn, pos);
}

/* Whether hca_deliver_into() has nothing to do for @r but to deliver. */
static inline bool hca_receiver_is_plain(const struct hca_receiver *r)
{
	return !(r->flags & (SHM_QP_STAMPS | SHM_QP_COUNT_ARRIVALS));
}

/*
 * No receive is posted: waits for one, if the setting ud_wait_us says so, and if nobody has waited
 * in vain since the receiver posted its last one. As shm_ring_claim(); NULL: the packet is lost,
 * and counted. Packets from the network do not wait: the thread that receives them may be the one
 * that is to post. Nor do IPoIB's, whose interface sends for all programs of a host.
 */
struct shm_arrival *hca_deliver_wait(struct hca_process *p, const struct hca_packet *pkt,
                                     const struct hca_receiver *r, uint32_t *pos);

/*
 * Claims a receive, writes the packet there, publishes it, and wakes the receiver that waits.
 * @plain is a constant: that the receiver is (hca_receiver_is_plain()), and that the packet is
 * small and not traced. Then the steps that only other packets need are left out.
 */
static BASE_HOT void hca_deliver_into(struct hca_process *p, const struct hca_packet *pkt,
                                      const struct hca_receiver *r, struct hca_ahead ahead,
                                      bool plain)
{
	struct shm_arrival *slot;
	uint32_t pos;

	/* release: the receiver is known before anything is claimed */
	atomic_store_explicit(&pkt->sender->target_qpn, r->qpn, memory_order_release);
	slot = shm_ring_claim(&r->ring, &pos);
	if (base_unlikely(!slot)) {
		uint32_t late; /* not pos, which then need not be in memory */

		slot = hca_deliver_wait(p, pkt, r, &late);
		if (!slot)
			return;
		pos = late;
	}
	hca_deliver_fill(slot, pkt, plain);
	if (!plain && base_unlikely(!hca_receiver_is_plain(r)))
		hca_cq_note_arrival(p, r->cq, r->flags, slot);
	shm_ring_publish(&r->ring, slot, pos);
	if (!plain && (pkt->a.flags & (SHM_ARRIVAL_PAYLOAD | SHM_ARRIVAL_TRACED)))
		hca_deliver_note(pkt, r, pos);
	/* a large one is written for so long that fetching early gains nothing */
	if (plain || hca_packet_is_small(pkt))
		shm_ring_prefetch_list(&r->ring, pos + 1, ahead.n, ahead.fetched,
		                       SHM_RING_LIST_AHEAD, true);
	hca_cq_announce(r->cq, r->ready_bit);
	hca_cq_notify_arrival(p, r->cq, &pkt->a);
}

/* It was delivered to all its receivers. */
static inline void hca_deliver_end(const struct hca_packet *pkt)
{
	/* release: the deliveries come before "delivers to nobody" */
	atomic_store_explicit(&pkt->sender->target_qpn, 0, memory_order_release);
}

#endif
