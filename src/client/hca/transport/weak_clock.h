/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The clock of a queue pair on a weak fabric. It goes on by one with each request that is posted
 * and each completion that is polled, so that what is late by the clock is late by what the program
 * does, and a seed repeats. If the program does nothing but wait, the clock goes on by itself, to
 * what is due next. With the send lock held.
 */
#ifndef HCA_WEAK_CLOCK_H
#define HCA_WEAK_CLOCK_H

#include "base/util.h"
#include "hca/process/weak.h"
#include "hca/queue/qp.h"

struct hca_weak_clock {
	struct hca_weak *all;
	struct hca_qp *qp;
	uint32_t posted;  /* requests: the number of the next one */
	uint32_t skipped; /* what the clock went on by itself */
	bool may_skip, at_once;
};

/* A step that is to come. */
struct hca_weak_due {
	uint32_t number; /* of its request */
	uint32_t at;     /* by the clock */
	uint8_t amount;  /* not 0 if it is late */
	uint8_t step;    /* enum base_weak_step */
};

static inline uint64_t hca_weak_moved_ns(const struct hca_weak_clock *c)
{
	return atomic_load_explicit(&c->qp->weak_wait.moved_ns, memory_order_relaxed);
}

static inline uint32_t hca_weak_now(const struct hca_weak_clock *c)
{
	return c->posted + c->skipped + hca_rq_load(&c->qp->rq->consumed) +
	       atomic_load_explicit(&c->qp->sq_done, memory_order_relaxed);
}

/* The step of @due's request that comes next is @step, of which the seed says how late it is. */
static inline void hca_weak_set(struct hca_weak_clock *c, struct hca_weak_due *due,
                                enum base_weak_step step)
{
	due->step = (uint8_t)step;
	due->amount = hca_weak_choose(c->all, c->qp->weak_object, due->number, step);
	due->at = hca_weak_now(c) + due->amount;
	hca_weak_due_moved(&c->qp->weak_wait, base_now_ns());
}

/* Likewise one that is never late. */
static inline void hca_weak_set_now(struct hca_weak_clock *c, struct hca_weak_due *due)
{
	due->amount = 0;
	hca_weak_due_moved(&c->qp->weak_wait, base_now_ns());
}

static inline bool hca_weak_is_due(const struct hca_weak_clock *c, const struct hca_weak_due *due)
{
	return c->at_once || !due->amount || (int32_t)(due->at - hca_weak_now(c)) <= 0;
}

/* The one of the two that is due first; NULL: none. */
static inline const struct hca_weak_due *hca_weak_first(const struct hca_weak_due *a,
                                                        const struct hca_weak_due *b)
{
	return a && (int32_t)(b->at - a->at) >= 0 ? a : b;
}

/* Nothing is due before @soon, which may be NULL. Whether the clock has gone on to that. */
static inline bool hca_weak_skip_to(struct hca_weak_clock *c, const struct hca_weak_due *soon)
{
	const bool by_thread = hca_weak_is_thread();
	uint64_t most;

	if (!soon || !c->may_skip)
		return false;
	most = hca_weak_patience_ns(c->all, c->qp->weak_object, soon->number,
	                            (enum base_weak_step)soon->step);
	if (base_now_ns() - hca_weak_moved_ns(c) < (by_thread ? HCA_WEAK_SILENT_NS : most))
		return false;
	if (most || by_thread)
		hca_weak_by_time(c->all, c->qp->weak_object, soon->number,
		                 (enum base_weak_step)soon->step);
	c->skipped += soon->at - hca_weak_now(c);
	c->at_once |= by_thread;
	c->may_skip = false; /* once for each poll */
	return true;
}

#endif
