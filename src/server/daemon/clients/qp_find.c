/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding queue pairs, by number and index, and what else a look at them tells: see qp.h.
 */
#include <stdatomic.h>

#include "daemon/clients/holder.h"
#include "daemon/clients/qp.h"

struct daemon_qp *daemon_qp_at(const struct daemon_qps *all, uint32_t index)
{
	struct daemon_qp *qp = index > IB_QPN_GSI ? base_idtable_get(&all->ids, index) : NULL;

	return qp && qp->state == DAEMON_QP_LIVE ? qp : NULL;
}

struct daemon_qp *daemon_qp_live_at(const struct daemon_qps *all, uint32_t index)
{
	struct daemon_qp *qp = daemon_qp_at(all, index);

	return qp && !qp->holder->dead ? qp : NULL;
}

struct daemon_qp *daemon_qp_find(const struct daemon_qps *all, uint32_t qpn)
{
	struct daemon_qp *qp = daemon_qp_at(all, SHM_QP_INDEX(qpn));

	return qp && qp->qpn == qpn ? qp : NULL;
}

bool daemon_qp_was(const struct daemon_qps *all, uint32_t qpn)
{
	return qpn >> 16 < all->round[SHM_QP_INDEX(qpn)];
}

unsigned daemon_qps_count(const struct daemon_qps *all)
{
	return all->n_in[DAEMON_QP_LIVE] - all->n_roce;
}

struct shm_ring *daemon_qp_ring(const struct daemon_qps *all, const struct daemon_qp *qp)
{
	return daemon_memory_ring_at(all->memory, qp->ring_off);
}

bool daemon_qps_have_wires(const struct daemon_qps *all)
{
	const struct fabric *f = all->f;

	return f->region->control->n_ports > f->n_ib_ports || f->flows->detoured;
}

/* ---- the users of memory ---- */

bool daemon_qp_may_fill(void *qps, uint16_t index, uint32_t qpn)
{
	const struct daemon_qps *all = qps;
	const struct shm_sender *sender = shm_sender_at(all->f->region, index);

	/* acquire: pairs with the release of a sender that has come to the end of its deliveries */
	uint32_t target =
	        atomic_load_explicit((_Atomic uint32_t *)&sender->target_qpn, memory_order_acquire);

	return daemon_qp_live_at(all, index) && (!qpn || (target & IB_QPN_MASK) == qpn);
}

struct shm_ring *daemon_qp_next_ring(void *qps, uint32_t *index, uint8_t *shift)
{
	const struct daemon_qps *all = qps;
	const struct daemon_qp *qp;

	for (; *index < all->ids.size; ++*index) {
		qp = daemon_qp_live_at(all, *index);
		if (!qp || qp->is_roce_sender)
			continue;
		*shift = qp->ring_shift;
		return daemon_qp_ring(all, qp);
	}
	return NULL;
}

uint32_t daemon_qp_number_of(void *qps, uint32_t index)
{
	const struct daemon_qp *qp = daemon_qp_live_at(qps, index);

	return qp ? qp->qpn : 0;
}
