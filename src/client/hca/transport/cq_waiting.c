/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of connected queue pairs that wait: polling any completion queue of the process goes on
 * with them. See cq.h.
 */
#include <limits.h>

#include "base/pause.h"
#include "hca/process/weak.h"
#include "hca/queue/cq.h"
#include "hca/transport/connected.h"

/* So often a program that will sleep waits for another thread's lock, which posts just now. */
#define LOCK_TRIES 1000
/* Then it is woken, to look again. */
#define LOOK_AGAIN_NS 20000000

void hca_cq_add_waiting(struct hca_cq *cq, struct hca_qp *qp)
{
	struct hca_process *p = cq->ctx->process;

	base_lock(&p->waiting_lock);
	if (!qp->is_waiting && !qp->goes) {
		TAILQ_INSERT_TAIL(&p->waiting, qp, waiting);
		atomic_fetch_add_explicit(&p->n_waiting, 1, memory_order_relaxed);
		qp->is_waiting = true;
	}
	base_unlock(&p->waiting_lock);
	base_lock(&cq->lock);
	cq->failed = true;
	base_unlock(&cq->lock);
	if (p->weak)
		hca_weak_wake(p->weak);
}

/* With waiting_lock held. */
static void take_waiting(struct hca_process *p, struct hca_qp *qp)
{
	TAILQ_REMOVE(&p->waiting, qp, waiting);
	atomic_fetch_sub_explicit(&p->n_waiting, 1, memory_order_relaxed);
	qp->is_waiting = false;
}

void hca_cq_remove_waiting(struct hca_process *p, struct hca_qp *qp)
{
	if (!qp->transport->poll)
		return;
	base_lock(&p->waiting_lock);
	if (qp->is_waiting)
		take_waiting(p, qp);
	qp->goes = true; /* a thread that has it just now does not add it again */
	base_unlock(&p->waiting_lock);
}

/* The next QP of the process whose requests wait, or NULL. Its in_use is raised. */
static struct hca_qp *next_waiting(struct hca_process *p)
{
	struct hca_qp *qp;

	base_lock(&p->waiting_lock);
	qp = TAILQ_FIRST(&p->waiting);
	if (qp) {
		take_waiting(p, qp);
		atomic_fetch_add_explicit(&qp->in_use, 1, memory_order_relaxed);
	}
	base_unlock(&p->waiting_lock);
	return qp;
}

/* @sleeper: as below. */
static bool lock_sends(struct hca_qp *qp, const struct hca_cq *sleeper)
{
	struct control_wait req = { .qpn = qp->sender.qpn, .ns = LOOK_AGAIN_NS };
	struct base_pause pause = { 0 };

	while (!base_trylock(&qp->send_lock)) {
		if (!sleeper)
			return false;
		/* the thread may be this one, between ibv_wr_start() and ibv_wr_complete() */
		if (pause.looks > LOCK_TRIES) {
			req.cq = sleeper->id;
			hca_request(sleeper->ctx->process, CONTROL_WAIT, &req, sizeof(req));
			return false;
		}
		base_pause(&pause);
	}
	return true;
}

/* Goes on with requests that wait, of up to @most queue pairs. @sleeper: the queue by which the
 * program is woken; else it will poll again, and nobody's lock is waited for. */
static void serve(struct hca_process *p, unsigned most, const struct hca_cq *sleeper)
{
	unsigned n = atomic_load_explicit(&p->n_waiting, memory_order_relaxed);
	struct hca_qp *qp;

	for (n = n < most ? n : most; n && (qp = next_waiting(p)); n--) {
		bool locked = lock_sends(qp, sleeper), again = true;

		if (locked) {
			qp->transport->poll(qp);
			again = qp->sq_kept;
			base_unlock(&qp->send_lock);
		}
		if (again)
			hca_cq_add_waiting(qp->send_cq, qp);
		/* release: pairs with the acquire in hca_qp_destroy() */
		atomic_fetch_sub_explicit(&qp->in_use, 1, memory_order_release);
	}
}

BASE_COLD void hca_cq_serve_waiting(struct hca_process *p, unsigned most)
{
	serve(p, most, NULL);
}

bool hca_cq_serve_all(struct hca_process *p)
{
	serve(p, UINT_MAX, NULL);
	return atomic_load_explicit(&p->n_waiting, memory_order_relaxed);
}

/* Others may have completed requests while a thread posted, which had looked before. No program
 * that sleeps sees these completions: their event was fired before it was armed. */
BASE_COLD void hca_cq_serve_armed(const struct hca_cq *cq)
{
	serve(cq->ctx->process, UINT_MAX, cq);
}
