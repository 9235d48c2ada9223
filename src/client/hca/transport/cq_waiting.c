/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of connected queue pairs that wait: polling any completion queue of the process goes on
 * with them. See cq.h.
 */
#include <limits.h>

#include "base/pause.h"
#include "base/util.h"
#include "hca/process/weak.h"
#include "hca/queue/cq.h"
#include "hca/transport/connected.h"

/* So often a program that will sleep waits for another thread's lock, which posts just now. */
#define LOCK_TRIES 1000
/* Then it is woken, to look again. */
#define LOOK_AGAIN_NS 20000000

static void add_waiting(struct hca_cq *cq, struct hca_qp *qp)
{
	struct hca_process *p = cq->ctx->process;

	base_lock(&p->waiting_lock);
	if (!qp->is_waiting && !qp->goes) {
		TAILQ_INSERT_TAIL(&p->waiting, qp, waiting);
		atomic_fetch_add_explicit(&p->n_waiting, 1, memory_order_relaxed);
		qp->is_waiting = true;
	}
	if (p->weak && qp->is_waiting)
		hca_weak_due_add(&p->waits, &qp->weak_wait, base_now_ns());
	base_unlock(&p->waiting_lock);
	base_lock(&cq->lock);
	cq->failed = true;
	base_unlock(&cq->lock);
	if (p->weak && !hca_weak_is_thread())
		hca_weak_wake(p->weak);
}

void hca_cq_add_waiting(struct hca_cq *cq, struct hca_qp *qp)
{
	if (cq->ctx->process->weak)
		hca_weak_due_moved(&qp->weak_wait, base_now_ns());
	add_waiting(cq, qp);
}

/* With waiting_lock held. */
static void take_waiting(struct hca_process *p, struct hca_qp *qp)
{
	TAILQ_REMOVE(&p->waiting, qp, waiting);
	atomic_fetch_sub_explicit(&p->n_waiting, 1, memory_order_relaxed);
	qp->is_waiting = false;
	hca_weak_due_drop(&qp->weak_wait);
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

static struct hca_qp *first_due(struct hca_process *p, uint64_t now_ns)
{
	struct hca_weak_wait *w = hca_weak_due_take(&p->waits, now_ns);

	return w ? container_of(w, struct hca_qp, weak_wait) : NULL;
}

/* The next QP of the process whose requests wait, or NULL. Its in_use is raised. @now_ns: only one
 * that is due by then on a weak fabric; 0: any. */
static struct hca_qp *next_waiting(struct hca_process *p, uint64_t now_ns)
{
	struct hca_qp *qp;

	base_lock(&p->waiting_lock);
	qp = now_ns ? first_due(p, now_ns) : TAILQ_FIRST(&p->waiting);
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

/* Goes on with requests of a queue pair. @sleeper: the queue by which the program is woken; else it
 * will poll again, and nobody's lock is waited for. */
static void serve_one(struct hca_qp *qp, const struct hca_cq *sleeper)
{
	bool locked = lock_sends(qp, sleeper), again = true;

	if (locked) {
		qp->transport->poll(qp);
		again = qp->sq_kept;
		base_unlock(&qp->send_lock);
	}
	if (again)
		add_waiting(qp->send_cq, qp);
	/* release: pairs with the acquire in hca_qp_destroy() */
	atomic_fetch_sub_explicit(&qp->in_use, 1, memory_order_release);
}

/* The same of up to @most queue pairs. */
static void serve(struct hca_process *p, unsigned most, const struct hca_cq *sleeper)
{
	unsigned n = atomic_load_explicit(&p->n_waiting, memory_order_relaxed);
	struct hca_qp *qp;

	for (n = n < most ? n : most; n && (qp = next_waiting(p, 0)); n--)
		serve_one(qp, sleeper);
}

BASE_COLD void hca_cq_serve_waiting(struct hca_process *p, unsigned most)
{
	serve(p, most, NULL);
}

uint64_t hca_cq_serve_due(struct hca_process *p)
{
	const uint64_t began_ns = base_now_ns();
	uint64_t next_ns, now_ns;
	struct hca_qp *qp;

	while ((qp = next_waiting(p, began_ns)))
		serve_one(qp, NULL);
	base_lock(&p->waiting_lock);
	next_ns = base_timers_next(&p->waits);
	base_unlock(&p->waiting_lock);
	now_ns = base_now_ns();
	return next_ns == BASE_TIMER_NEVER ? UINT64_MAX : next_ns > now_ns ? next_ns - now_ns : 0;
}

/* Others may have completed requests while a thread posted, which had looked before. No program
 * that sleeps sees these completions: their event was fired before it was armed. */
BASE_COLD void hca_cq_serve_armed(const struct hca_cq *cq)
{
	serve(cq->ctx->process, UINT_MAX, cq);
}
