/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues: see srq.h.
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "daemon/clients/srq.h"
#include "shm/connection.h"
#include "shm/ring.h"

#define FREE_COST 8 /* units of work (chores.h) */

static struct shm_ring *ring_at(const struct daemon_srqs *all, const struct daemon_srq_ring *r)
{
	return daemon_memory_ring_at(all->memory, r->off);
}

static void publish(struct daemon_srqs *all, const struct daemon_srq *srq, bool moving)
{
	struct shm_srq *s = shm_srq_at(all->region, srq->index);
	struct shm_ring *ring = ring_at(all, &srq->ring);
	const uint16_t gen = daemon_memory_generation(all->memory);

	shm_ring_init(ring, gen, 0, false);
	atomic_store_explicit(&ring->moving, moving, memory_order_relaxed);
	shm_write_begin(&s->seq);
	s->live = 1;
	s->ring_off = srq->ring.off;
	s->entries_off = srq->ring.entries_off;
	s->ring_gen = gen;
	s->ring_shift = srq->ring.shift;
	s->max_sge = srq->max_sge;
	shm_write_end(&s->seq);
}

/* Memory of a ring for @max_wr receives. It has twice as many positions as receives: a sender that
 * is at work holds one back. */
static int allocate(struct daemon_srqs *all, struct daemon_srq *srq, uint32_t max_wr,
                    struct daemon_srq_ring *r)
{
	uint64_t entries = (uint64_t)max_wr * srq->max_sge * sizeof(struct shm_entry);
	int ret;

	r->shift = (uint8_t)(base_log2_up(max_wr) + 1);
	r->off = daemon_memory_ring(all->memory, r->shift);
	if (!r->off)
		return daemon_memory_none(all->memory, true, &srq->holder->want);
	r->entries_off = daemon_memory_payload(all->memory, entries);
	if (r->entries_off)
		return 0;
	/* before a chore has to close the ring: it would be waited for, again and again */
	ret = daemon_memory_none(all->memory, false, &srq->holder->want);
	daemon_memory_retire_ring(all->memory, r->off, r->shift, 0);
	return ret;
}

static void free_ring(struct daemon_srqs *all, const struct daemon_srq_ring *r)
{
	daemon_memory_retire_ring(all->memory, r->off, r->shift, 0);
	daemon_memory_free_payload(all->memory, r->entries_off);
}

int daemon_srq_new(struct daemon_srqs *all, struct daemon_hca *h,
                   const struct control_create_srq *want, struct daemon_srq **out)
{
	struct daemon_srq *srq = calloc(1, sizeof(*srq));
	int ret;

	if (!srq)
		return -ENOMEM;
	srq->hca = h;
	srq->holder = h->holder;
	srq->max_wr = want->max_wr;
	srq->max_sge = want->max_sge;
	srq->domain = want->domain;
	ret = base_idtable_add(&all->ids, srq, &srq->index);
	if (ret)
		goto err_free;
	ret = allocate(all, srq, want->max_wr, &srq->ring);
	if (ret)
		goto err_index;
	publish(all, srq, false);
	LIST_INSERT_HEAD(&srq->holder->srqs, srq, entry);
	h->n_users++;
	*out = srq;
	return 0;
err_index:
	base_idtable_remove(&all->ids, srq->index);
err_free:
	free(srq);
	return ret == -ENOSPC ? -ENOMEM : ret;
}

int daemon_srq_resize(struct daemon_srqs *all, struct daemon_srq *srq, uint32_t max_wr)
{
	struct daemon_srq_ring next;
	int ret;

	if (max_wr <= srq->max_wr || srq->n_old == DAEMON_SRQ_OLD_RINGS)
		return -EINVAL;
	ret = allocate(all, srq, max_wr, &next);
	if (ret)
		return ret;
	srq->old[srq->n_old++] = srq->ring;
	srq->ring = next;
	srq->max_wr = max_wr;
	publish(all, srq, true);
	return 0;
}

void daemon_srq_free(struct daemon_srqs *all, struct daemon_srq *srq)
{
	struct shm_srq *s = shm_srq_at(all->region, srq->index);

	shm_write_begin(&s->seq);
	s->live = 0;
	shm_write_end(&s->seq);
	free_ring(all, &srq->ring);
	for (unsigned i = 0; i < srq->n_old; i++)
		free_ring(all, &srq->old[i]);
	base_idtable_remove(&all->ids, srq->index);
	LIST_REMOVE(srq, entry);
	srq->hca->n_users--;
	free(srq);
}

struct daemon_srq *daemon_srq_find(const struct daemon_srqs *all, uint32_t index)
{
	return base_idtable_get(&all->ids, index);
}

static bool take_mark(const struct daemon_srqs *all, const struct daemon_srq_ring *r)
{
	return atomic_exchange_explicit(&ring_at(all, r)->limit_reached, 0, memory_order_acq_rel);
}

/* The mark in shared memory is what anybody can check; without it the request is wrong. It may be
 * in a ring that is not used any more. */
static bool limit_was_reached(const struct daemon_srqs *all, const struct daemon_srq *srq)
{
	for (unsigned i = srq->n_old; i > 0; i--)
		if (take_mark(all, &srq->old[i - 1]))
			return true;
	return take_mark(all, &srq->ring);
}

int daemon_srq_limit(struct daemon_srqs *all, uint32_t index)
{
	struct daemon_srq *srq = daemon_srq_find(all, index);

	if (!srq || srq->holder->dead || !limit_was_reached(all, srq))
		return -EINVAL;
	srq->events += daemon_hca_event(srq->hca, IBV_EVENT_SRQ_LIMIT_REACHED, index);
	return 0;
}

/* ---- all ---- */

static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	struct daemon_srq *srq;

	while ((srq = LIST_FIRST(&holder->srqs)) && daemon_chore_spend(budget, FREE_COST))
		daemon_srq_free(arg, srq);
	return !srq;
}

void daemon_srqs_init(struct daemon_srqs *all, struct shm_region *region,
                      struct daemon_memory *memory, struct daemon_endings *endings)
{
	all->region = region;
	all->memory = memory;
	base_idtable_init(&all->ids, SHM_MAX_SRQS);
	daemon_ending_register(endings, &all->ending, free_of_holder, all);
}
