/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sender's copies of the records of queue pairs that receive from it.
 */
#ifndef HCA_RECEIVER_H
#define HCA_RECEIVER_H

#include "hca/process/process.h"
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
		                    .record = shm_qp_at(&p->region, SHM_QP_INDEX(qpn)) };
}

#endif
