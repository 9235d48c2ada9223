/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The link in shared memory. For each receiving queue pair the sender's thread makes the checks of
 * the receiving HCA, claims a credit of the receive ring, writes the arrival, and wakes a receiver
 * that sleeps. Packets that a port receives from the network are delivered likewise.
 *
 * If the sender dies, the daemon can read how far it came: first the sender writes in its record
 * to whom it delivers, then its own QP index into the slot that it claims.
 *
 * Threads may call it at the same time with different senders.
 */
#ifndef HCA_LINK_SHM_H
#define HCA_LINK_SHM_H

#include "hca/link.h"
#include "hca/packet.h"
#include "hca/process.h"
#include "shm/ring.h"

/* A copy of a receiving queue pair's record. It is valid while the record's seq equals @seq. */
struct hca_receiver {
	uint32_t qpn;
	uint32_t seq;
	const struct shm_qp *record;
	struct shm_ring_view ring; /* for the sender whose copy it is */
	struct shm_cq *cq;
	uint32_t port, qkey;
	uint32_t good_pkey; /* packets with it match the receiver's; beyond 16 bits: none yet */
	uint16_t ready_bit;
	uint8_t flags; /* enum shm_qp_flags; none: there is no such queue pair */
};
static_assert(sizeof(struct hca_receiver) <= 64, "a line of the cache");

#define HCA_NO_PKEY UINT32_MAX

/* Whether @r is what the record says. */
static BASE_HOT bool hca_receiver_is_current(const struct hca_receiver *r)
{
	/* acquire: pairs with the release in shm_write_end() */
	return base_likely(atomic_load_explicit((_Atomic uint32_t *)&r->record->seq,
	                                        memory_order_acquire) == r->seq);
}

/* Makes @r stand for queue pair @qpn, whose record has not been read yet. */
static inline void hca_receiver_init(struct hca_process *p, struct hca_receiver *r, uint32_t qpn)
{
	/* an odd seq: no record that can be read has one */
	*r = (struct hca_receiver){ .qpn = qpn,
		                    .seq = 1,
		                    .good_pkey = HCA_NO_PKEY,
		                    .record = &p->region.qps[SHM_QP_INDEX(qpn)] };
}

#define HCA_ANY_PORT UINT32_MAX

/* Delivers the packet to QP @qpn, which must be on port @port (index) unless that is HCA_ANY_PORT.
 * If it cannot, it counts why. */
void hca_deliver(struct hca_process *p, const struct hca_packet *pkt, uint32_t qpn, uint32_t port);

/* The same for @n receivers. Updates their copies that are out of date. */
void hca_deliver_to(struct hca_process *p, const struct hca_packet *pkt, uint32_t port,
                    struct hca_receiver *to, uint32_t n);

/* Whether it is known that @r, which is current, is there and lets the packet in. */
bool hca_receiver_lets_in(const struct hca_receiver *r, const struct hca_packet *pkt,
                          uint32_t port);

/* Of a packet that is to be traced (link_trace.h), it logs each delivery. */
extern const struct hca_link_ops hca_link_shm;

#endif
