/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events of queue pairs: see qp.h.
 */
#include <errno.h>

#include "daemon/clients/holder.h"
#include "daemon/clients/qp.h"
#include "shm/connection.h"
#include "shm/events.h"
#include "shm/packets.h"

/* Unless its process has destroyed it already, by a request that is on its way. */
static void send_event(struct daemon_qps *all, struct daemon_qp *qp, enum ibv_event_type type,
                       uint32_t element)
{
	_Atomic uint32_t *word = &shm_connection_at(all->f->region, SHM_QP_INDEX(qp->qpn))->events;

	if (shm_events_send(word))
		qp->events += daemon_hca_event(qp->hca, type, element);
}

void daemon_qp_event(struct daemon_qps *all, struct daemon_qp *qp, enum ibv_event_type type)
{
	send_event(all, qp, type, qp->qpn);
}

int daemon_qp_peer_event(struct daemon_qps *all, uint32_t qpn, uint32_t type)
{
	struct daemon_qp *qp = daemon_qp_find(all, qpn);
	const struct shm_connection *c = shm_connection_at(all->f->region, SHM_QP_INDEX(qpn));
	struct daemon_qp_user *user;
	bool *told;

	if (!qp || !qp->hca)
		return -EINVAL;
	/* the marks in shared memory are what anybody can check; without one the request is wrong
	 */
	if (type == IBV_EVENT_COMM_EST) {
		told = &qp->told_established;
		if (!atomic_load_explicit(&c->established, memory_order_acquire))
			return -EINVAL;
	} else {
		told = &qp->told_error;
		if (atomic_load_explicit(&c->error, memory_order_acquire) != type)
			return -EINVAL;
	}
	if (!*told) {
		daemon_qp_event(all, qp, type);
		LIST_FOREACH(user, &qp->users, of_qp)
		user->events += daemon_hca_event(user->hca, type, qp->qpn);
	}
	*told = true;
	return 0;
}

int daemon_qp_drained(struct daemon_qps *all, uint32_t qpn)
{
	struct daemon_qp *qp = daemon_qp_find(all, qpn);
	struct shm_wire *w = shm_wire_at(all->f->region, SHM_QP_INDEX(qpn));
	uint8_t drained = SHM_WIRE_DRAINED;

	/* likewise */
	if (!qp || !qp->hca ||
	    !atomic_compare_exchange_strong_explicit(&w->drains, &drained, SHM_WIRE_TELLS_NOBODY,
	                                             memory_order_acq_rel, memory_order_relaxed))
		return -EINVAL;
	daemon_qp_event(all, qp, IBV_EVENT_SQ_DRAINED);
	return 0;
}

int daemon_qp_limit(struct daemon_qps *all, uint32_t qpn)
{
	struct daemon_qp *qp = daemon_qp_find(all, qpn);

	/* likewise */
	if (!qp || qp->holder->dead ||
	    shm_qp_at(all->f->region, SHM_QP_INDEX(qpn))->type != SHM_QPT_XRC_SRQ ||
	    !atomic_exchange_explicit(&daemon_qp_ring(all, qp)->limit_reached, 0,
	                              memory_order_acq_rel))
		return -EINVAL;
	send_event(all, qp, IBV_EVENT_SRQ_LIMIT_REACHED, SHM_XRC_SRQ | qpn);
	return 0;
}
