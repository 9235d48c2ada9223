/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: see cq.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/eventfd.h"
#include "base/log.h"
#include "base/util.h"
#include "daemon/clients/cq.h"

#define FREE_COST 2 /* units of work (chores.h) */

int daemon_cq_new(struct daemon_cqs *all, struct daemon_holder *holder, struct daemon_hca *h,
                  struct daemon_cq **out)
{
	struct daemon_cq *cq = calloc(1, sizeof(*cq));
	uint32_t waking;
	struct shm_cq *s;
	int ret;

	if (!cq)
		return -ENOMEM;
	ret = base_idtable_add(&all->ids, cq, &cq->id);
	if (ret) {
		free(cq);
		return ret;
	}
	cq->all = all;
	cq->holder = holder;
	cq->hca = h;
	s = shm_cq_at(all->region, cq->id);
	shm_cq_forget_wakers(s); /* a predecessor's */
	waking = atomic_load_explicit(&s->waking, memory_order_relaxed);
	memset((void *)s, 0, sizeof(*s));
	atomic_store_explicit(&s->waking, waking, memory_order_relaxed);
	atomic_store_explicit(&s->channel, SHM_NO_CHANNEL, memory_order_relaxed);
	/* out of reach until its owner counts: a sender that slept may count an arrival of a
	 * predecessor under this number */
	atomic_store_explicit(&s->limit, INT32_MAX, memory_order_relaxed);
	LIST_INSERT_HEAD(&holder->cqs, cq, entry);
	h->n_users++;
	*out = cq;
	return 0;
}

void daemon_cq_free(struct daemon_cqs *all, struct daemon_cq *cq)
{
	base_timer_stop(&cq->moderation);
	/* processes that keep a descriptor of the channel for it give that up */
	atomic_store_explicit(&shm_cq_at(all->region, cq->id)->channel, SHM_NO_CHANNEL,
	                      memory_order_relaxed);
	base_idtable_remove(&all->ids, cq->id);
	LIST_REMOVE(cq, entry);
	cq->hca->n_users--;
	free(cq);
}

struct daemon_cq *daemon_cq_of(const struct daemon_cqs *all, const struct daemon_holder *holder,
                               uint32_t id)
{
	struct daemon_cq *cq = base_idtable_get(&all->ids, id);

	return cq && cq->holder == holder ? cq : NULL;
}

/* Which may have none. */
static struct daemon_channel *channel_of(const struct daemon_cqs *all, const struct shm_cq *s)
{
	return daemon_channel_find(all->channels,
	                           atomic_load_explicit(&s->channel, memory_order_relaxed));
}

/* One more event of the CQ on its channel. False: the eventfd is full, so nobody sleeps on it. */
static bool add_event(const struct daemon_cqs *all, uint32_t id, const struct daemon_channel *ch)
{
	shm_cq_add_event(all->region, id, base_now_ns());
	if (base_eventfd_add(ch->eventfd))
		return true;
	atomic_fetch_sub_explicit(&shm_cq_at(all->region, id)->notified, 1, memory_order_relaxed);
	return false;
}

bool daemon_cq_wake(struct daemon_cqs *all, uint32_t id)
{
	struct shm_cq *s = shm_cq_at(all->region, id);
	struct daemon_channel *ch = channel_of(all, s);

	if (!ch)
		return false;
	atomic_store_explicit(&s->arm, SHM_CQ_IDLE, memory_order_relaxed);
	return add_event(all, id, ch);
}

void daemon_cq_wake_bereaved(struct daemon_cqs *all, uint32_t id)
{
	struct daemon_channel *ch = channel_of(all, shm_cq_at(all->region, id));

	if (!daemon_cq_wake(all, id))
		return;
	/* The dead process may have counted an event and not written it. If the eventfd counts one
	 * too many, the program reads on; if it counts one too few, another CQ's event is never
	 * read. */
	base_eventfd_add(ch->eventfd);
}

static void on_moderation(struct base_timer *t)
{
	const struct daemon_cq *cq = container_of(t, struct daemon_cq, moderation);
	const struct daemon_cqs *all = cq->all;
	struct shm_cq *s = shm_cq_at(all->region, cq->id);
	struct daemon_channel *ch = channel_of(all, s);

	/* seq_cst: the exchange decides, as among senders, which side counts the event */
	if (!ch || !atomic_load_explicit(&s->held_back, memory_order_relaxed) ||
	    atomic_exchange_explicit(&s->arm, SHM_CQ_IDLE, memory_order_seq_cst) == SHM_CQ_IDLE)
		return;
	add_event(all, cq->id, ch);
}

int daemon_cq_moderate(struct daemon_cqs *all, uint32_t id)
{
	struct daemon_cq *cq = base_idtable_get(&all->ids, id);
	uint32_t us;

	if (!cq)
		return -EINVAL;
	us = atomic_load_explicit(&shm_cq_at(all->region, id)->moderation, memory_order_relaxed) >>
	     16;
	base_timer_set_in(all->timers, &cq->moderation, us * UINT64_C(1000), on_moderation);
	return 0;
}

int daemon_cq_overrun(struct daemon_cqs *all, uint32_t id)
{
	struct daemon_cq *cq = base_idtable_get(&all->ids, id);

	if (!cq)
		return -EINVAL;
	/* the mark in shared memory is what anybody can check; without it the request is wrong */
	if (!atomic_load_explicit(&shm_cq_at(all->region, id)->overrun, memory_order_acquire))
		return -EINVAL;
	if (cq->overrun_told)
		return 0;
	base_log_warning(
	        daemon, "CQ %u of process %d on %s is overrun: it holds %u completions", id,
	        (int)cq->holder->pid, shm_hca_at(all->region, cq->hca->hca)->host,
	        atomic_load_explicit(&shm_cq_at(all->region, id)->cqe, memory_order_relaxed));
	cq->events += daemon_hca_event(cq->hca, IBV_EVENT_CQ_ERR, id);
	cq->overrun_told = true;
	return 0;
}

/* ---- all ---- */

static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	struct daemon_cq *cq;

	while ((cq = LIST_FIRST(&holder->cqs)) && daemon_chore_spend(budget, FREE_COST))
		daemon_cq_free(arg, cq);
	return !cq;
}

void daemon_cqs_init(struct daemon_cqs *all, struct shm_region *region,
                     const struct daemon_channels *channels, struct base_timers *timers,
                     struct daemon_endings *endings)
{
	all->region = region;
	all->channels = channels;
	all->timers = timers;
	base_idtable_init(&all->ids, SHM_MAX_CQS);
	daemon_ending_register(endings, &all->ending, free_of_holder, all);
}
