/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues: see srq.h.
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "daemon/srq.h"
#include "shm/connection.h"
#include "shm/ring.h"

void daemon_srqs_init(struct daemon_srqs *all, struct shm_region *region,
                      struct daemon_memory *memory)
{
	all->region = region;
	all->memory = memory;
	all->next_gen = 1;
	base_idtable_init(&all->ids, SHM_MAX_SRQS);
}

void daemon_srqs_fini(struct daemon_srqs *all)
{
	base_idtable_fini(&all->ids);
}

static struct shm_ring *ring_of(const struct daemon_srqs *all, const struct daemon_srq *srq)
{
	return daemon_memory_ring_at(all->memory, srq->ring_off);
}

static void publish(struct daemon_srqs *all, const struct daemon_srq *srq, uint32_t max_sge)
{
	struct shm_srq *s = &all->region->srqs[srq->index];

	if (!all->next_gen)
		all->next_gen = 1; /* 0 is what memory has that was never a ring */
	shm_ring_init(ring_of(all, srq), all->next_gen, 0);
	shm_write_begin(&s->seq);
	s->live = 1;
	s->ring_off = srq->ring_off;
	s->entries_off = srq->entries_off;
	s->ring_gen = all->next_gen++;
	s->ring_shift = srq->ring_shift;
	s->max_sge = max_sge;
	shm_write_end(&s->seq);
}

/* Memory of the ring, and of the scatter entries. It has twice as many positions as receives: a
 * sender that is at work holds one back. */
static int allocate(struct daemon_srqs *all, struct daemon_srq *srq,
                    const struct control_create_srq *want)
{
	uint64_t entries = (uint64_t)want->max_wr * want->max_sge * sizeof(struct shm_entry);

	srq->ring_shift = (uint8_t)(base_log2_up(want->max_wr) + 1);
	srq->ring_off = daemon_memory_ring(all->memory, srq->ring_shift);
	if (!srq->ring_off)
		return daemon_memory_none(all->memory, true, &srq->holder->want);
	srq->entries_off = daemon_memory_payload(all->memory, entries);
	if (srq->entries_off)
		return 0;
	daemon_memory_retire_ring(all->memory, srq->ring_off, srq->ring_shift, 0);
	return daemon_memory_none(all->memory, false, &srq->holder->want);
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
	ret = base_idtable_add(&all->ids, srq, &srq->index);
	if (ret)
		goto err_free;
	ret = allocate(all, srq, want);
	if (ret)
		goto err_index;
	publish(all, srq, want->max_sge);
	LIST_INSERT_HEAD(&srq->holder->srqs, srq, entry);
	*out = srq;
	return 0;
err_index:
	base_idtable_remove(&all->ids, srq->index);
err_free:
	free(srq);
	return ret == -ENOSPC ? -ENOMEM : ret;
}

void daemon_srq_free(struct daemon_srqs *all, struct daemon_srq *srq)
{
	struct shm_srq *s = &all->region->srqs[srq->index];

	shm_write_begin(&s->seq);
	s->live = 0;
	shm_write_end(&s->seq);
	daemon_memory_retire_ring(all->memory, srq->ring_off, srq->ring_shift, 0);
	daemon_memory_free_payload(all->memory, srq->entries_off);
	base_idtable_remove(&all->ids, srq->index);
	LIST_REMOVE(srq, entry);
	free(srq);
}

struct daemon_srq *daemon_srq_find(const struct daemon_srqs *all, uint32_t index)
{
	return base_idtable_get(&all->ids, index);
}

int daemon_srq_limit(struct daemon_srqs *all, uint32_t index)
{
	struct daemon_srq *srq = daemon_srq_find(all, index);

	/* the mark in shared memory is what anybody can check; without it the request is wrong */
	if (!srq || srq->holder->dead ||
	    !atomic_exchange_explicit(&ring_of(all, srq)->limit_reached, 0, memory_order_acq_rel))
		return -EINVAL;
	daemon_hca_event(srq->hca, IBV_EVENT_SRQ_LIMIT_REACHED, index);
	return 0;
}
