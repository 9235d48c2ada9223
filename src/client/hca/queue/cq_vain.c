/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mistakes that end in waiting for ever: a completion queue that is polled, or whose event is
 * waited for, and where nothing can come. A program is told of them once, if the log of libibverbs
 * is on, or it is checked (process/hearer.h); else nobody looks, and it costs nothing. Functions of
 * cq.h, channel.h and qp.h.
 *
 * Of a queue that is polled: no receive is posted whose completion comes there, and no send is
 * under way; no other queue was ever polled; and either its sends have asked for no completion, or
 * what came lies in the other queue of the same queue pair. After LOOKS polls and LOOK_NS without a
 * request in between. A queue that has given a completion is not looked at any more, until another
 * queue pair that completes there moves to RTS.
 *
 * Thread-safe. Not with the lock of a completion queue held.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/process/hearer.h"
#include "hca/queue/channel.h"
#include "hca/queue/qp.h"

#define LOOKS   20
#define LOOK_NS 200000000ull

/* The findings about one queue. */
struct look {
	struct hca_cq *cq;
	char why[256];       /* nothing comes, in words; "": something may */
	bool may_come;       /* a completion is under way */
	bool others_polled;  /* another queue was polled */
	uint32_t requests;   /* that its queue pairs have posted */
	uint32_t unsignaled; /* its sends that nothing will tell of */
	uint32_t unsignaled_qpn;
	struct hca_cq *sends; /* of a queue pair that receives here, it has these */
	uint32_t sends_qpn;
	uint32_t receives_id; /* the queue of a message for a queue pair that sends here */
	uint32_t receives_qpn;
};

static uint32_t qpn_of(const struct hca_qp *qp)
{
	return qp->ex.qp_base.qp_num;
}

static bool has_receives(const struct hca_qp *qp)
{
	struct hca_rq *rq = qp->rq;

	return rq->srq || hca_rq_pending(rq) ||
	       hca_rq_load(&rq->rwqe_head) != hca_rq_load(&rq->rwqe_tail);
}

/* Sends that are over, and have not left the send queue. */
static uint32_t sends_of(const struct hca_qp *qp)
{
	return qp->sq_posted - atomic_load_explicit(&qp->sq_done, memory_order_relaxed);
}

/* With the lock of the queue where @qp receives held. */
static void look_at_qp(struct look *l, const struct hca_qp *qp, const struct hca_cq *receives)
{
	const bool sends_here = qp->send_cq == l->cq;

	if (!sends_here && receives != l->cq)
		return;
	l->requests += qp->sq_posted + qp->sq_kept;
	if (receives == l->cq && has_receives(qp))
		l->may_come = true;
	if ((sends_here && qp->sq_kept) || qp->counted)
		l->may_come = true;
	if (sends_here && sends_of(qp)) {
		l->unsignaled = sends_of(qp);
		l->unsignaled_qpn = qpn_of(qp);
	}
	if (!sends_here && sends_of(qp)) {
		l->sends = qp->send_cq;
		l->sends_qpn = qpn_of(qp);
	}
	if (sends_here && receives != l->cq && hca_rq_pending(qp->rq)) {
		l->receives_id = receives->id;
		l->receives_qpn = qpn_of(qp);
	}
}

/* All queue pairs receive somewhere. No queue goes meanwhile. */
static void look_around(struct look *l)
{
	struct hca_process *p = l->cq->ctx->process;
	const struct hca_qp *qp;
	struct hca_cq *cq;

	base_lock(&p->cqs_lock);
	LIST_FOREACH(cq, &p->cqs, process_entry)
	{
		base_lock(&cq->lock);
		if (cq != l->cq && cq->vain.was_polled)
			l->others_polled = true;
		TAILQ_FOREACH(qp, &cq->users, cq_entry)
		look_at_qp(l, qp, cq);
		base_unlock(&cq->lock);
	}
	if (l->sends) {
		base_lock(&l->sends->lock);
		if (l->sends->head == l->sends->tail)
			l->sends_qpn = 0;
		base_unlock(&l->sends->lock);
	}
	base_unlock(&p->cqs_lock);
}

static __attribute__((format(printf, 2, 3))) void say(struct look *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(l->why, sizeof(l->why), format, args);
	va_end(args);
}

/* Says why nothing comes, if nothing can. */
static void judge(struct look *l, const char *how)
{
	if (l->may_come || l->others_polled)
		return;
	if (l->sends_qpn)
		say(l,
		    "completion queue %u %s in vain: no receive is posted that completes there; a "
		    "send of QP 0x%06x has completed in its send_cq, completion queue %u",
		    l->cq->id, how, l->sends_qpn, l->sends->id);
	else if (l->receives_qpn)
		say(l,
		    "completion queue %u %s in vain: a message for QP 0x%06x has completed in its "
		    "recv_cq, completion queue %u",
		    l->cq->id, how, l->receives_qpn, l->receives_id);
	else if (l->unsignaled)
		say(l,
		    "completion queue %u %s in vain: %u send%s of QP 0x%06x asked for no "
		    "completion: set IBV_SEND_SIGNALED, or sq_sig_all",
		    l->cq->id, how, l->unsignaled, l->unsignaled == 1 ? "" : "s",
		    l->unsignaled_qpn);
}

/* Without a lock. */
static void tell(const struct look *l, const struct hca_process *p)
{
	if (!*l->why)
		return;
	base_log_warning(verbs, "%s", l->why);
	if (p->hearer)
		p->hearer->in_vain(l->cq ? ibv_cq_ex_to_cq(&l->cq->cq) : NULL, l->why);
}

/* ---- polling ---- */

void hca_vain_begin(struct hca_cq *cq)
{
	if (!hca_is_heard(cq->ctx->process) || cq->ctx->process->must_not_block)
		return;
	base_lock(&cq->lock);
	cq->vain = (struct hca_vain){ .is_watched = true };
	cq->failed = true;
	base_unlock(&cq->lock);
}

/* Whether it is time to tell. With the lock held. */
static bool is_due(struct hca_cq *cq, uint32_t requests)
{
	struct hca_vain *v = &cq->vain;
	const uint64_t now = base_now_ns();

	if (!v->since_ns || v->requests != requests) {
		v->since_ns = now;
		v->requests = requests;
		v->polls = 0;
	}
	return ++v->polls >= LOOKS && now - v->since_ns >= LOOK_NS;
}

/* The queue pairs are looked at once in a while, not at each poll. */
static bool begins_look(struct hca_vain *v)
{
	const uint64_t now = base_now_ns();

	if (now - v->looked_ns < LOOK_NS / LOOKS)
		return false;
	v->looked_ns = now;
	return true;
}

void hca_vain_polled(struct hca_cq *cq, int n)
{
	struct look l = { .cq = cq };
	bool looks;

	base_lock(&cq->lock);
	if (n > 0)
		cq->vain.is_watched = false;
	cq->vain.was_polled = true;
	looks = cq->vain.is_watched && begins_look(&cq->vain);
	cq->failed |= cq->vain.is_watched; /* the next poll attends, too */
	base_unlock(&cq->lock);
	if (!looks)
		return;
	look_around(&l);
	base_lock(&cq->lock);
	if (is_due(cq, l.requests))
		judge(&l, "is polled");
	cq->vain.is_watched = !*l.why;
	cq->failed |= cq->vain.is_watched;
	base_unlock(&cq->lock);
	tell(&l, cq->ctx->process);
}

/* ---- events ---- */

/* With the lock of the channel held. */
static void look_at_channel(struct look *l, const struct hca_channel *ch)
{
	bool is_armed = false;
	struct hca_cq *cq;

	TAILQ_FOREACH(cq, &ch->cqs, channel_entry)
	if (atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) != SHM_CQ_IDLE)
		is_armed = true;
	if (TAILQ_EMPTY(&ch->cqs))
		say(l, "ibv_get_cq_event() waits on a channel of no completion queue: "
		       "ibv_create_cq() is told the channel");
	else if (!is_armed)
		say(l, "ibv_get_cq_event() waits, and no completion queue of the channel is armed: "
		       "ibv_req_notify_cq() first, before each event");
	if (*l->why)
		return;
	TAILQ_FOREACH(cq, &ch->cqs, channel_entry)
	{
		struct look of_one = { .cq = cq };

		if (atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) == SHM_CQ_IDLE)
			continue;
		look_around(&of_one);
		judge(&of_one, "is waited for");
		if (!*l->why || !*of_one.why)
			*l = of_one;
		if (!*l->why) /* something may come here, and ends the wait */
			return;
	}
}

void hca_vain_waits(struct hca_channel *ch)
{
	struct look l = { .cq = NULL };

	pthread_mutex_lock(&ch->lock);
	look_at_channel(&l, ch);
	pthread_mutex_unlock(&ch->lock);
	tell(&l, hca_context(ch->channel.context)->process);
}

/* ---- sends ---- */

bool hca_vain_is_unsignaled(const struct hca_qp *qp)
{
	struct hca_cq *cq = qp->send_cq;
	bool has = qp->sq_kept;

	base_lock(&cq->lock);
	for (uint32_t i = cq->head; i != cq->tail && !has; i++)
		has = hca_cq_at(cq, i)->qp == qp;
	base_unlock(&cq->lock);
	return !has;
}
