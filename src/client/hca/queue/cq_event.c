/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion events: when a completion queue is armed, and how its event is fired. See cq.h.
 */
#include <limits.h>

#include "base/pause.h"
#include "base/util.h"
#include "hca/process/link.h"
#include "hca/queue/channel.h"
#include "hca/queue/cq.h"
#include "hca/queue/qp.h"

/* So long threads are waited for that are about to fire an event. */
#define WAKING_NS 1000000000u

/* Whether the event of the CQ, which is armed, waits for more completions than this one. */
static bool is_held_back(struct hca_process *p, struct shm_cq *shm)
{
	struct control_moderate_cq req = { .cq = shm_cq_number(&p->region, shm) };
	uint32_t moderation = atomic_load_explicit(&shm->moderation, memory_order_relaxed);
	uint32_t count = moderation & UINT16_MAX, us = moderation >> 16, n;

	if (base_likely(!moderation))
		return false;
	n = atomic_fetch_add_explicit(&shm->held_back, 1, memory_order_relaxed) + 1;
	if (count && n >= count)
		return false;
	/* without a daemon nobody would end the period */
	return n > 1 || !us || !hca_request(p, CONTROL_MODERATE_CQ, &req, sizeof(req));
}

BASE_COLD void hca_cq_fire(struct hca_process *p, struct shm_cq *shm, uint32_t arm)
{
	const uint32_t channel = atomic_load_explicit(&shm->channel, memory_order_relaxed);
	/* a thread that finds it fired may fire another queue's event next, which came later */
	const uint64_t now = base_now_ns();
	uint32_t counted;

	if (channel == SHM_NO_CHANNEL)
		return;
	/* before the exchange below: the process that wins it must wake without delay */
	hca_wake_prepare(&p->wakes, shm, channel);
	/* seq_cst: the exchange comes behind it; pairs with hca_cq_leave_channel() */
	counted = atomic_fetch_add_explicit(&shm->waking, 1, memory_order_seq_cst);
	base_fence_behind_seq_cst();
	if (atomic_compare_exchange_strong_explicit(&shm->arm, &arm, SHM_CQ_IDLE,
	                                            memory_order_relaxed, memory_order_relaxed)) {
		shm_cq_add_event(&p->region, shm_cq_number(&p->region, shm), now);
		hca_wake(&p->wakes, channel);
	} /* else another thread wakes */
	shm_cq_waker_ends(shm, counted);
}

BASE_COLD void hca_cq_wake(struct hca_process *p, struct shm_cq *shm, uint32_t arm, bool solicited)
{
	if ((shm_cq_arm(arm) == SHM_CQ_ARMED || solicited) && !is_held_back(p, shm))
		hca_cq_fire(p, shm, arm);
}

BASE_COLD void hca_cq_alert(struct hca_process *p, struct shm_cq *shm)
{
	/* seq_cst: as in hca_cq_notify() */
	uint32_t arm = atomic_load_explicit(&shm->arm, memory_order_seq_cst);

	if (arm != SHM_CQ_IDLE)
		hca_cq_fire(p, shm, arm);
}

BASE_COLD void hca_cq_wake_arrival(struct hca_process *p, struct shm_cq *shm, uint32_t arm,
                                   const struct shm_arrival *a)
{
	uint32_t limit = atomic_load_explicit(&shm->fails_above, memory_order_relaxed);

	hca_cq_wake(p, shm, arm,
	            (a->flags & SHM_ARRIVAL_SOLICITED) || a->length + IB_GRH_BYTES > limit);
}

/* For a CQ armed for solicited messages: publishes from which length on other messages fail a
 * receive, and has receives that are posted later checked too. */
static void watch_capacity(struct hca_cq *cq)
{
	struct hca_qp *qp;

	base_lock(&cq->lock);
	/* while it is armed the limit only falls, or a message that another thread waits for is
	 * missed */
	if (atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) == SHM_CQ_IDLE)
		atomic_store_explicit(&cq->shm->fails_above, UINT32_MAX, memory_order_relaxed);
	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	hca_rq_watch_capacity(qp->rq);
	base_unlock(&cq->lock);
}

/* As hardware does, for what has completed before and was not polled. Not twice for the same
 * completion, as the event that it brought may be why the program arms before it polls. Moderation
 * counts what comes from now on. */
static void fire_for_old(struct hca_cq *cq, bool solicited_only)
{
	struct hca_process *p = cq->ctx->process;

	if (p->region.control->settings.arm_fires &&
	    !atomic_load_explicit(&cq->shm->moderation, memory_order_relaxed) &&
	    (solicited_only ? hca_cq_holds_solicited(cq) : hca_cq_has_news(cq)))
		hca_cq_alert(p, cq->shm);
}

/* A thread that looked at the word before and fires late must not take the event of this arming. A
 * word that is armed already keeps the number of its arming, or a thread that fires just now would
 * fail. */
static void set_arm(struct hca_cq *cq, enum shm_cq_arm how)
{
	uint32_t next = atomic_fetch_add_explicit(&cq->armings, 1u << SHM_CQ_ARM_BITS,
	                                          memory_order_relaxed),
	         was = atomic_load_explicit(&cq->shm->arm, memory_order_relaxed), arm;

	do
		arm = (was == SHM_CQ_IDLE ? next : was - shm_cq_arm(was)) + how;
	/* seq_cst: before the program polls once more; pairs with hca_cq_notify() */
	while (!atomic_compare_exchange_strong_explicit(
	        &cq->shm->arm, &was, arm, memory_order_seq_cst, memory_order_relaxed));
	base_fence_behind_seq_cst();
}

void hca_cq_arm(struct hca_cq *cq, bool solicited_only)
{
	uint32_t was;

	if (!cq->ch)
		return;
	was = atomic_load_explicit(&cq->shm->arm, memory_order_relaxed);
	if (solicited_only && shm_cq_arm(was) == SHM_CQ_ARMED) {
		atomic_thread_fence(memory_order_seq_cst); /* as if it were us who armed it */
		return;
	}
	/* requests that others have carried out complete first: their event was fired */
	hca_cq_serve_waiting(cq->ctx->process, UINT_MAX);
	if (solicited_only)
		watch_capacity(cq);
	if (atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) == SHM_CQ_IDLE)
		atomic_store_explicit(&cq->shm->held_back, 0, memory_order_relaxed);
	set_arm(cq, solicited_only ? SHM_CQ_ARMED_SOLICITED : SHM_CQ_ARMED);
	if (cq->network)
		cq->network->ops->rest(cq->network);
	/* requests that wait have it woken, if nobody sleeps on the queue of their completions */
	atomic_store_explicit(&cq->ctx->process->armed_cq, cq->id, memory_order_relaxed);
	hca_cq_serve_armed(cq);
	fire_for_old(cq, solicited_only);
}

void hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t us)
{
	atomic_store_explicit(&cq->shm->moderation, count == 1 ? 0 : (uint32_t)us << 16 | count,
	                      memory_order_relaxed);
}

int hca_cq_enter_channel(struct hca_cq *cq)
{
	struct hca_channel *ch = cq->ch;
	int ret;

	cq->cq.channel = &ch->channel;
	pthread_mutex_lock(&ch->lock);
	ret = hca_due_enter(&ch->due, cq);
	if (!ret) {
		ch->channel.refcnt++;
		TAILQ_INSERT_TAIL(&ch->cqs, cq, channel_entry);
	}
	pthread_mutex_unlock(&ch->lock);
	if (!ret)
		atomic_store_explicit(&cq->shm->channel, ch->id, memory_order_relaxed);
	return ret;
}

void hca_cq_leave_channel(struct hca_cq *cq)
{
	pthread_mutex_lock(&cq->ch->lock);
	TAILQ_REMOVE(&cq->ch->cqs, cq, channel_entry);
	hca_due_leave(&cq->ch->due, cq);
	pthread_mutex_unlock(&cq->ch->lock);
	atomic_store_explicit(&cq->shm->channel, SHM_NO_CHANNEL, memory_order_relaxed);
	/* seq_cst: before the look at waking; pairs with hca_cq_fire() */
	atomic_exchange_explicit(&cq->shm->arm, SHM_CQ_IDLE, memory_order_seq_cst);
	base_fence_behind_seq_cst();
}

void hca_cq_await_wakers(const struct hca_cq *cq, uint64_t began)
{
	struct base_pause pause = { 0 };

	/* acquire: pairs with the release in shm_cq_waker_ends() */
	while (shm_cq_wakers(atomic_load_explicit(&cq->shm->waking, memory_order_acquire)) &&
	       base_now_ns() - began < WAKING_NS)
		base_pause(&pause);
}

void hca_cq_take_events_along(struct hca_cq *cq)
{
	hca_cq_await_wakers(cq, base_now_ns());
	pthread_mutex_lock(&cq->ch->lock);
	if (atomic_load_explicit(&cq->shm->notified, memory_order_relaxed))
		cq->ch->has_surplus = true;
	hca_channel_settle(cq->ch);
	cq->ch->channel.refcnt--;
	pthread_mutex_unlock(&cq->ch->lock);
}
