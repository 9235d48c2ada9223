/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Polling a completion queue: see cq.h.
 */
#include <string.h>

#include "base/util.h"
#include "hca/process/link.h"
#include "hca/queue/comp_counter.h"
#include "hca/queue/cq.h"
#include "hca/queue/explain.h"
#include "hca/queue/qp.h"
#include "hca/queue/srq.h"

/* Completions that one source may have polled before others have their turn (docs/semantics.md). */
#define TURN 16
/* After this many looks in a row that find nothing, a ready bit is not watched any more. */
#define IDLE_POLLS 1024
/* On an Ethernet port: one of so many polls that find something looks whether the network is seen
 * to. */
#define NETWORK_POLLS 16
/* QPs whose requests wait that one poll goes on with. */
#define WAITING_SERVED 16
/* A poll in the middle of a list waits for this many of its messages at most, */
#define MAX_AHEAD 32u
/* and not longer, as the sender may have been interrupted: 5 to 10 us in all. */
#define AHEAD_PAUSES_EACH 8u
#define AHEAD_PAUSES      200u

/* Polls completions of this process. Not inlined, as most polls find none. */
static __attribute__((noinline)) int poll_local(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	while (done < n && cq->head != cq->tail) {
		const struct hca_cqe *e = hca_cq_at(cq, cq->head++);

		memset(&wc[done], 0, sizeof(wc[done]));
		wc[done].wr_id = e->wr_id;
		wc[done].status = (enum ibv_wc_status)e->status;
		wc[done].opcode = (enum ibv_wc_opcode)e->opcode;
		wc[done].byte_len = e->byte_len;
		wc[done].qp_num = e->qp->ex.qp_base.qp_num;
		/* release: pairs with the acquire in hca_qp_sq_is_full(): the room is the poster's
		 */
		atomic_store_explicit(&e->qp->sq_done, e->sq_after, memory_order_release);
		done++;
	}
	return done;
}

/* How many messages of a list are to come behind the last one that was consumed, or will be waited
 * for. */
static uint32_t announced(const struct hca_rq *rq)
{
	uint32_t posted = hca_rq_load(&rq->posted) - hca_rq_load(&rq->consumed);

	return base_min(base_min((uint32_t)rq->announced, MAX_AHEAD), posted);
}

/* Whether the last message that was consumed came without a copy of its own. */
static bool was_small(const struct hca_rq *rq)
{
	uint32_t last = hca_rq_load(&rq->consumed) - 1;

	return shm_ring_slot(rq->ring, rq->ring_shift, last)->length <= SHM_INLINE;
}

/*
 * Whether we have caught up with a sender that is in the middle of a list of small messages. To
 * follow on its heels would cost both of us several times as much as to let it get ahead: before
 * the processor knows that a slot is not written yet it looks at the next ones, too, and takes
 * their lines from the sender. So others have their turn, and if they have nothing, the poll
 * waits; but only once for the same end, as the sender may have been stopped. Large messages are
 * copied, which is to begin while the next ones are being written.
 */
static __attribute__((noinline)) bool is_behind(struct hca_cq *cq, struct hca_rq *rq)
{
	uint32_t n = announced(rq), end = hca_rq_load(&rq->consumed) + n - 1;

	if (!n || cq->hurries || !was_small(rq) ||
	    shm_ring_peek(rq->ring, rq->ring_shift, end) != SHM_SLOT_CLOSED)
		return false;
	if (end == rq->list_end) {
		if (!hca_rq_pending(rq))
			rq->announced = 0; /* it has broken off, or goes on late */
		return false;
	}
	rq->list_end = end;
	cq->behind = rq;
	return true;
}

static BASE_HOT bool lets_ahead(struct hca_cq *cq, struct hca_rq *rq)
{
	return base_unlikely(rq->announced) && is_behind(cq, rq);
}

static BASE_HOT int receive(struct hca_cq *cq, struct hca_rq *rq, int n, struct ibv_wc *wc)
{
	return rq->receive(rq, n, wc, &cq->arrivals_polled);
}

static BASE_HOT int poll_rq(struct hca_cq *cq, struct hca_rq *rq, int n, struct ibv_wc *wc)
{
	return lets_ahead(cq, rq) ? 0 : receive(cq, rq, n, wc);
}

/* Moves the first queue of the chain to its end: its turn is over. */
static void rotate_chain(struct hca_cq *cq, unsigned bit)
{
	struct hca_rq *first = cq->ready->by_bit[bit], *last = first;

	if (!first || !first->next_of_bit)
		return;
	while (last->next_of_bit)
		last = last->next_of_bit;
	last->next_of_bit = first;
	cq->ready->by_bit[bit] = first->next_of_bit;
	first->next_of_bit = NULL;
}

/* Whether there is anything to do with a queue: a new reason to call receive() is added here, too.
 * Arrivals from before a reset may wait for a sender that was stopped. */
static BASE_HOT bool has_work(struct hca_rq *rq)
{
	return hca_rq_pending(rq) || hca_rq_is_refused(rq) || (hca_rq_stops(rq) & HCA_RQ_DISCARDS);
}

/* Polls all queues of one ready bit. */
static int poll_chain(struct hca_cq *cq, unsigned bit, int n, struct ibv_wc *wc)
{
	struct hca_rq *rq = cq->ready->by_bit[bit];
	int done = 0;

	if (base_likely(rq && !rq->next_of_bit))
		return poll_rq(cq, rq, n, wc);
	for (; rq && done < n; rq = rq->next_of_bit)
		if (!lets_ahead(cq, rq) && has_work(rq))
			done += receive(cq, rq, n - done, wc + done);
	return done;
}

static bool chain_pending(struct hca_cq *cq, unsigned bit)
{
	struct hca_rq *rq = cq->ready->by_bit[bit];

	while (rq && !has_work(rq))
		rq = rq->next_of_bit;
	return rq;
}

/* Ends the watch of a bit. The bit stays set if its rings have arrivals. */
static void unwatch(struct hca_cq *cq, unsigned i)
{
	struct hca_ready *r = cq->ready;
	unsigned bit = r->watched[i].bit;
	_Atomic uint64_t *word = &cq->shm->ready[bit / 64];
	uint64_t mask = 1ull << (bit % 64);

	/* seq_cst: cleared before the rings are looked at; a sender publishes, then looks */
	atomic_fetch_and_explicit(word, ~mask, memory_order_seq_cst);
	base_fence_behind_seq_cst();
	if (chain_pending(cq, bit))
		atomic_fetch_or_explicit(word, mask, memory_order_relaxed);
	r->is_watched[bit / 64] &= ~mask;
	r->watched[i] = r->watched[--r->n_watched];
}

static void watch(struct hca_cq *cq, unsigned bit)
{
	struct hca_ready *r = cq->ready;

	if (r->n_watched == HCA_CQ_WATCHED)
		unwatch(cq, r->next_victim++ % HCA_CQ_WATCHED);
	r->watched[r->n_watched].bit = (uint16_t)bit;
	r->watched[r->n_watched++].idle = 0;
	r->is_watched[bit / 64] |= 1ull << (bit % 64);
}

static int poll_watched(struct hca_cq *cq, unsigned i, int n, struct ibv_wc *wc)
{
	struct hca_ready *r = cq->ready;
	unsigned bit = r->watched[i].bit;
	int got = poll_chain(cq, bit, n, wc);

	if (got) {
		r->watched[i].idle = 0;
	} else if (r->watched[i].idle >= IDLE_POLLS) {
		unwatch(cq, i);
		if (i <
		    r->n_watched) /* the last one has come here, and its turn might have passed */
			return poll_watched(cq, i, n, wc);
	}
	if (got == n)
		rotate_chain(cq, bit);
	return got;
}

static uint64_t unwatched_bits(const struct hca_cq *cq, unsigned word)
{
	return atomic_load_explicit(&cq->shm->ready[word], memory_order_acquire) &
	       ~cq->ready->is_watched[word];
}

/* Whether a bit is set that is not watched, as most polls find none. Relaxed: a caller that finds
 * one acquires it, by unwatched_bits(). */
static BASE_HOT bool has_unwatched(const struct hca_cq *cq)
{
	const _Atomic uint64_t *ready = cq->shm->ready;
	const uint64_t *is_watched = cq->ready->is_watched;
	uint64_t any = 0;

	for (unsigned i = 0, n = hca_ready_words(cq->ready); i < n; i++)
		any |= atomic_load_explicit(&ready[i], memory_order_relaxed) & ~is_watched[i];
	return any;
}

/* The first bit at or behind @from, and before @end, that is set and not watched; or @end. */
static unsigned next_unwatched(const struct hca_cq *cq, unsigned from, unsigned end)
{
	while (from < end) {
		uint64_t bits = unwatched_bits(cq, from / 64) >> (from % 64);

		if (bits)
			return base_min((int)(from + (unsigned)__builtin_ctzll(bits)), (int)end);
		from = from / 64 * 64 + 64;
	}
	return end;
}

/*
 * Finds a bit that is set and not watched, watches it, and polls its queues. The search continues
 * where the last one ended, so that each bit has its turn.
 */
static int poll_map(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	struct hca_ready *r = cq->ready;
	unsigned end = hca_ready_words(r) * 64;
	int done = 0;

	r->since_map = 0;
	for (unsigned looked = 0; looked < 2 && !done;) {
		unsigned bit = next_unwatched(cq, r->map_next, end);

		r->map_next = bit + 1;
		if (bit == end) {
			r->map_next = 0;
			looked++;
			continue;
		}
		watch(cq, bit);
		done = poll_chain(cq, bit, n, wc);
	}
	return done;
}

/* ---- turns ---- */

/* Sources of completions, in the order of their turns. */
enum { SOURCE_LOCAL, SOURCE_DIRECT, SOURCE_WATCHED, SOURCE_MAP = SOURCE_WATCHED + HCA_CQ_WATCHED };

/* All of them, a bit for each. */
static unsigned all_sources(const struct hca_cq *cq)
{
	const unsigned watched = cq->ready ? cq->ready->n_watched : 0;

	return ((1u << (SOURCE_WATCHED + watched)) - 1) | 1u << SOURCE_MAP;
}

static unsigned watched_sources(const struct hca_cq *cq)
{
	return all_sources(cq) & ((1u << SOURCE_MAP) - (1u << SOURCE_WATCHED));
}

/* Whether there is nothing to do with the queue that every poll looks at. */
static bool is_quiet(struct hca_rq *rq)
{
	return !rq->announced && !has_work(rq) && !hca_rq_stops(rq) &&
	       (!rq->srq || !shm_ring_room(hca_rq_load(&rq->posted), hca_rq_load(&rq->consumed),
	                                   rq->ring_shift));
}

/* Whether a watched bit has something to do: completions, or to be watched no more. */
static bool is_watched_due(struct hca_ready *r, unsigned i)
{
	struct hca_rq *rq = r->by_bit[r->watched[i].bit];

	while (rq && !rq->announced && !has_work(rq))
		rq = rq->next_of_bit;
	return rq || ++r->watched[i].idle >= IDLE_POLLS;
}

/* While @others may have completions, the map is looked at when these have had TURN of them since,
 * and in its own turn. But a poll returns 0 only after it looked at everything: a program may then
 * go to sleep. */
static bool map_is_due(struct hca_cq *cq, bool others)
{
	struct hca_ready *r = cq->ready;

	if (!r || !r->n || (others && cq->turn != SOURCE_MAP && r->since_map < TURN))
		return false;
	if (has_unwatched(cq))
		return true;
	r->since_map = 0;
	return false;
}

/* The sources that have something to do, a bit for each. */
static BASE_HOT unsigned due_sources(struct hca_cq *cq)
{
	struct hca_ready *r = cq->ready;
	unsigned due = cq->head != cq->tail ? 1u << SOURCE_LOCAL : 0;

	if (cq->direct && !is_quiet(cq->direct))
		due |= 1u << SOURCE_DIRECT;
	for (unsigned i = 0; r && i < r->n_watched; i++)
		if (is_watched_due(r, i))
			due |= 1u << (SOURCE_WATCHED + i);
	if (map_is_due(cq, due))
		due |= 1u << SOURCE_MAP;
	return due;
}

static BASE_HOT int poll_source(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	switch (cq->turn) {
	case SOURCE_LOCAL:
		return poll_local(cq, n, wc);
	case SOURCE_DIRECT:
		return poll_rq(cq, cq->direct, n, wc);
	case SOURCE_MAP:
		return poll_map(cq, n, wc);
	default:
		return poll_watched(cq, cq->turn - SOURCE_WATCHED, n, wc);
	}
}

/*
 * Polls completions of connected queue pairs, which come before messages that wait. A program may
 * count on that order: when a reply has come, it takes the request for done. At most TURN of them
 * in a row, as others wait.
 */
static BASE_HOT int poll_first(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	while (done < n && cq->head != cq->tail && cq->first < TURN) {
		if (!hca_cq_at(cq, cq->head)->is_first)
			break;
		done += poll_local(cq, 1, wc + done);
		cq->first++;
	}
	return done;
}

/* So many completions were polled of the source whose turn it is. */
static BASE_HOT void count_polled(struct hca_cq *cq, int n)
{
	cq->turn_used += (unsigned)n;
	if (cq->ready)
		cq->ready->since_map += (unsigned)n;
}

static void begin_turn(struct hca_cq *cq, unsigned source)
{
	cq->turn = source;
	cq->turn_used = 0;
}

/* The turn is that of the first source which is due, from the present one on. */
static BASE_HOT void find_turn(struct hca_cq *cq, unsigned due)
{
	unsigned behind = due >> cq->turn << cq->turn;
	unsigned next = (unsigned)__builtin_ctz(behind ? behind : due);

	if (next != cq->turn)
		begin_turn(cq, next);
}

/*
 * Several sources may have completions. Each that is due has its turn of at most TURN completions,
 * which may last several polls. So each source waits for at most TURN completions of each other
 * one. The poll ends when it is full, or when all that were due, one after the other, have no more.
 */
static BASE_HOT int poll_in_turn(struct hca_cq *cq, unsigned due, int n, struct ibv_wc *wc)
{
	int done = poll_first(cq, n, wc), want, got;

	if (done == n)
		return done;
	cq->first = 0;
	while (done < n && due) {
		find_turn(cq, due);
		want = base_min(n - done, (int)(TURN - cq->turn_used));
		got = poll_source(cq, want, wc + done);
		count_polled(cq, got);
		done += got;
		if (got == want && cq->turn_used < TURN)
			break; /* the poll is full, the turn is not over */
		if (got < want)
			due &= ~(1u << cq->turn);
		else /* others may be due by now */
			due |= due_sources(cq);
		if (cq->turn == SOURCE_MAP) /* it may have given watched bits other places */
			due |= watched_sources(cq);
		due &= all_sources(cq);
		begin_turn(cq, cq->turn + 1);
	}
	return done;
}

static BASE_COLD int poll_map_alone(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	return poll_in_turn(cq, 1u << SOURCE_MAP, n, wc);
}

/* No part of hca_cq_poll(), which would save more registers for it. */
static __attribute__((noinline)) int poll_due(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	unsigned due = due_sources(cq);
	int done = due ? poll_in_turn(cq, due, n, wc) : 0;

	/* none that was due had anything in the end, and the map may not have been looked at */
	if (base_unlikely(due && !done) && map_is_due(cq, false))
		done = poll_map_alone(cq, n, wc);
	return done;
}

static BASE_HOT int poll_sources(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	if (base_unlikely(cq->head != cq->tail || cq->ready))
		done = poll_due(cq, n, wc);
	else if (cq->direct)
		done = poll_rq(cq, cq->direct, n, wc);
	hca_cq_set_limit(cq);
	return done;
}

/* The same, but looks at every source and skips no queue: a program that gets 0 completions may go
 * to sleep. */
static int poll_all(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done;

	cq->hurries = true;
	done = poll_sources(cq, n, wc);
	cq->hurries = false;
	return done;
}

static bool must_fail(const struct hca_qp *qp, bool all)
{
	enum ibv_qp_state state = hca_qp_state(qp);

	return (hca_rq_stops(qp->rq) & HCA_RQ_FAILED) ||
	       (all && state != IBV_QPS_RESET && state != IBV_QPS_ERR);
}

/* The next QP that must go to ERR, or NULL. Its in_use is raised; the caller lowers it. */
static struct hca_qp *next_failed(struct hca_cq *cq, bool all)
{
	struct hca_qp *qp;

	base_lock(&cq->lock);
	cq->failed = false;
	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	{
		if (must_fail(qp, all)) {
			atomic_fetch_add_explicit(&qp->in_use, 1, memory_order_relaxed);
			break;
		}
	}
	base_unlock(&cq->lock);
	return qp;
}

/* Moves QPs to ERR: those with a failed receive, or @all when the daemon is gone. One whose send
 * lock is held is tried again by the next poll. */
static BASE_COLD void fail_qps(struct hca_cq *cq, bool all)
{
	struct hca_qp *qp;
	bool done = true;

	while (done && (qp = next_failed(cq, all))) {
		done = hca_qp_enter_error(qp, !all);
		/* release: pairs with the acquire in hca_qp_destroy() */
		atomic_fetch_sub_explicit(&qp->in_use, 1, memory_order_release);
	}
	if (done)
		return;
	base_lock(&cq->lock);
	cq->failed = !all;
	cq->gone_seen = cq->gone_seen && !all;
	base_unlock(&cq->lock);
}

/* A QP on the CQ whose shared receive queue has receives back that requests wait for, or NULL. Its
 * in_use is raised. */
static struct hca_qp *next_to_help(struct hca_cq *cq)
{
	struct hca_qp *qp;

	base_lock(&cq->lock);
	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	{
		if (qp->rq->srq &&
		    atomic_load_explicit(&qp->rq->srq->must_help, memory_order_relaxed)) {
			atomic_fetch_add_explicit(&qp->in_use, 1, memory_order_relaxed);
			break;
		}
	}
	base_unlock(&cq->lock);
	return qp;
}

void hca_cq_attend(struct hca_cq *cq)
{
	base_lock(&cq->lock);
	cq->failed = true;
	base_unlock(&cq->lock);
}

/* Shared receive queues with receives that wait for room try to post them; if that is in vain, the
 * next poll does so again. */
static void retry_srqs(struct hca_cq *cq)
{
	const struct hca_srq *last = NULL;
	struct hca_qp *qp;

	base_lock(&cq->lock);
	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	{
		if (!qp->rq->srq || qp->rq->srq == last)
			continue;
		last = qp->rq->srq;
		cq->failed |= hca_srq_retry(qp->rq->srq);
	}
	base_unlock(&cq->lock);
}

static BASE_COLD void help_srqs(struct hca_cq *cq)
{
	struct hca_qp *qp;

	retry_srqs(cq);

	while ((qp = next_to_help(cq))) {
		hca_srq_help_if_due(qp->rq->srq);
		/* release: pairs with the acquire in hca_qp_destroy() */
		atomic_fetch_sub_explicit(&qp->in_use, 1, memory_order_release);
	}
}

/* Does what polling left to do: moves failed QPs to ERR, goes on with requests that wait. */
static BASE_COLD int attend(struct hca_cq *cq, int done, int n, struct ibv_wc *wc)
{
	struct hca_process *p = cq->ctx->process;
	bool is_watched;

	fail_qps(cq, false);
	help_srqs(cq);
	hca_cq_serve_waiting(p, WAITING_SERVED);
	base_lock(&cq->lock);
	if (atomic_load_explicit(&p->n_waiting, memory_order_relaxed))
		cq->failed = true; /* some of them may complete here */
	if (!done)
		done = poll_all(cq, n, wc);
	is_watched = cq->vain.is_watched;
	base_unlock(&cq->lock);
	if (is_watched)
		hca_vain_polled(cq, done);
	return done;
}

/* A poll that found nothing waits for this: the arrival at a position of a ring. */
struct ahead {
	struct shm_ring *ring; /* or NULL: just so many pauses */
	unsigned shift, pauses;
	uint32_t pos;
};

/* Behind large messages: a pause for each one to come, once. */
static struct ahead pause_for_large(struct hca_cq *cq)
{
	struct hca_rq *rq = cq->direct;
	struct ahead a = { 0 };

	if (rq && rq->announced && !was_small(rq)) {
		a.pauses = announced(rq);
		rq->announced = 0;
	}
	return a;
}

/* The last message of the list in whose middle a sender is, or one far ahead. With the CQ's lock
 * held. */
static struct ahead look_ahead(struct hca_cq *cq)
{
	struct hca_rq *rq = cq->behind;

	if (!rq)
		return pause_for_large(cq);
	cq->behind = NULL;
	return (struct ahead){ .ring = rq->ring,
		               .shift = rq->ring_shift,
		               .pauses = base_min(announced(rq) * AHEAD_PAUSES_EACH, AHEAD_PAUSES),
		               .pos = rq->list_end };
}

/* The ring stays mapped whatever becomes of its queue pair; what is read there only says how long
 * we wait. */
static void await_ahead(const struct ahead *a)
{
	for (unsigned i = 0; i < a->pauses; i++) {
		if (a->ring && shm_ring_peek(a->ring, a->shift, a->pos) != SHM_SLOT_CLOSED)
			return;
		base_relax();
	}
}

static void found_nothing(struct hca_cq *cq)
{
	/* a program may poll for the answer to a request, and not for its completion */
	if (base_unlikely(atomic_load_explicit(&cq->ctx->process->n_waiting, memory_order_relaxed)))
		hca_cq_serve_waiting(cq->ctx->process, WAITING_SERVED);
	if (hca_process_gone(cq->ctx->process) && !cq->gone_seen) {
		cq->gone_seen = true;
		fail_qps(cq, true);
	}
}

/* Waits until the sender is ahead, and polls what it has written. Not with the CQ's lock held. */
static int poll_ahead(struct hca_cq *cq, const struct ahead *ahead, int n, struct ibv_wc *wc)
{
	bool failed;
	int done;

	await_ahead(ahead);
	if (!ahead->ring)
		return 0;
	base_lock(&cq->lock);
	done = poll_all(cq, n, wc);
	failed = cq->failed;
	base_unlock(&cq->lock);
	return base_unlikely(failed) ? attend(cq, done, n, wc) : done;
}

/* The same in the middle of a list. With the CQ's lock held, which is released. */
static __attribute__((noinline)) int poll_within_list(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	const struct ahead ahead = look_ahead(cq);
	bool failed = cq->failed;
	int done = 0;

	base_unlock(&cq->lock);
	if (base_unlikely(failed))
		done = attend(cq, 0, n, wc);
	/* a queue that was skipped is looked at again, if it is not waited for any more, too */
	return done || !(ahead.ring || ahead.pauses) ? done : poll_ahead(cq, &ahead, n, wc);
}

/* A poll has found nothing so far. With the CQ's lock held, which is released. */
static __attribute__((noinline)) int poll_in_vain(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	cq->first = 0; /* nobody waits for a turn */
	if (cq->ch)
		hca_cq_found_less(cq);
	if (cq->behind || (cq->direct && cq->direct->announced)) {
		done = poll_within_list(cq, n, wc);
	} else {
		bool failed = cq->failed;

		base_unlock(&cq->lock);
		if (base_unlikely(failed))
			done = attend(cq, 0, n, wc);
	}
	if (!done)
		found_nothing(cq);
	return done;
}

static BASE_HOT int poll_once(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	bool failed;
	int done;

	if (base_unlikely(atomic_load_explicit(&cq->shm->overrun, memory_order_relaxed)))
		return hca_explain_overrun(cq);
	base_lock(&cq->lock);
	done = poll_sources(cq, n, wc);
	if (!done)
		return poll_in_vain(cq, n, wc);
	failed = cq->failed;
	base_unlock(&cq->lock);
	return base_unlikely(failed) ? attend(cq, done, n, wc) : done;
}

void hca_cq_progress(struct hca_cq *cq, struct hca_qp *receives)
{
	bool failed;

	if (cq->network)
		cq->network->ops->progress(cq->network, false);
	base_lock(&cq->lock);
	if (receives)
		hca_counted_update(receives);
	hca_cq_set_limit(cq);
	failed = cq->failed;
	base_unlock(&cq->lock);
	if (failed) {
		fail_qps(cq, false);
		help_srqs(cq);
	}
	found_nothing(cq); /* goes on with requests that wait */
}

/* Whether a poll that has found something looks at the network: if nobody has for a while. Else the
 * daemon would take what comes, as if nobody polled, and compete with the program for the
 * processors; then polls find what the daemon has done, and it stays so. */
static bool must_look(struct hca_cq *cq)
{
	uint32_t found = atomic_load_explicit(&cq->found, memory_order_relaxed) + 1;

	atomic_store_explicit(&cq->found, found, memory_order_relaxed);
	return found % NETWORK_POLLS == 0 &&
	       cq->network->ops->attention(cq->network, base_now_ns()) != HCA_ATTENDED;
}

/* On an Ethernet port: receives from the network, and polls again if it has found nothing. */
static BASE_COLD int poll_network(struct hca_cq *cq, int done, int n, struct ibv_wc *wc)
{
	/* a program that has armed the CQ may sleep now, so it does not promise to look again */
	bool again = atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) == SHM_CQ_IDLE;

	/* packets that come want receives, and a program that has not polled all may have to post
	 * them yet */
	if (done && (done == n || !must_look(cq)))
		return done;
	return cq->network->ops->progress(cq->network, again) && !done ? poll_once(cq, n, wc)
	                                                               : done;
}

int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = poll_once(cq, n, wc);

	return base_likely(!cq->network) ? done : poll_network(cq, done, n, wc);
}
