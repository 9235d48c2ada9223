/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: the queue pairs that complete there, and how many completions there are. See
 * cq.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "base/util.h"
#include "hca/queue/comp_counter.h"
#include "hca/queue/cq.h"
#include "hca/queue/qp.h"
#include "hca/queue/srq.h"

/* With the CQ's lock held. */
static void take_arrivals(struct hca_cq *cq)
{
	if (cq->direct)
		hca_counted_take(cq->direct);
	for (unsigned i = 0; cq->ready && i < hca_ready_words(cq->ready); i++) {
		/* acquire: pairs with hca_cq_set_ready() */
		uint64_t bits = atomic_load_explicit(&cq->shm->ready[i], memory_order_acquire);

		for (; bits; bits &= bits - 1) {
			struct hca_rq *rq =
			        cq->ready->by_bit[64 * i + (unsigned)__builtin_ctzll(bits)];

			for (; rq; rq = rq->next_of_bit)
				hca_counted_take(rq);
		}
	}
}

void hca_cqs_take(struct hca_process *p)
{
	struct hca_cq *cq;

	base_lock(&p->cqs_lock);
	LIST_FOREACH(cq, &p->cqs, process_entry)
	{
		base_lock(&cq->lock);
		take_arrivals(cq);
		base_unlock(&cq->lock);
	}
	base_unlock(&p->cqs_lock);
}

/* ---- queue pairs that complete here ---- */

/* Completions count anew: the next arming fires for each that is held. */
static void forget_told(struct hca_cq *cq)
{
	cq->told = hca_cq_next_number(cq);
}

void hca_cq_found_less(struct hca_cq *cq)
{
	if (atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) == SHM_CQ_IDLE)
		forget_told(cq);
}

/*
 * Whether senders count what arrives there. With a shared queue a message of UD takes its receive
 * when it is polled: more may have arrived than there are receives for, and what finds none does
 * not complete.
 */
static bool is_counted(const struct hca_rq *rq)
{
	return !rq->srq || rq->connected;
}

/* Arrivals that are counted, and were not polled. */
static uint32_t counted_arrivals(struct hca_rq *rq)
{
	return is_counted(rq) ? hca_rq_arrived(rq) : hca_rq_load(&rq->aside);
}

/* Counts arrivals anew. It reads the rings before the counter: arrivals in between make the limit
 * too high, not too low. */
static void recount(struct hca_cq *cq)
{
	struct hca_qp *qp;
	uint32_t waiting = 0;

	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	waiting += counted_arrivals(qp->rq);
	cq->arrivals_polled =
	        atomic_load_explicit(&cq->shm->arrived, memory_order_relaxed) - waiting;
	forget_told(cq);
}

/* Arrivals may have been dropped without being polled. If the counter has none that were not
 * polled, none was: so it costs no look at all queue pairs to destroy one. */
static void forget_dropped(struct hca_cq *cq)
{
	if (cq->counts_arrivals &&
	    atomic_load_explicit(&cq->shm->arrived, memory_order_relaxed) != cq->arrivals_polled)
		recount(cq);
}

/* Has the daemon tell senders to count arrivals. It knows which QPs the CQ has: other threads may
 * be making or changing some. */
static int count_arrivals(struct hca_cq *cq)
{
	struct control_handle req = { .handle = cq->id };
	int ret = hca_request(cq->ctx->process, CONTROL_COUNT_ARRIVALS, &req, sizeof(req));

	if (ret)
		return ret;
	cq->counts_arrivals = true;
	recount(cq);
	return 0;
}

/* The same, if its queues may have more outstanding than it holds. */
static int count_if_needed(struct hca_cq *cq, uint32_t capacity)
{
	if (capacity <= cq->ring_size || cq->counts_arrivals || cq->ignores_overrun)
		return 0;
	return count_arrivals(cq);
}

/* ---- shared receive queues ---- */

static struct hca_cq_shared *find_shared(const struct hca_cq *cq, const struct hca_srq *srq)
{
	struct hca_cq_shared *s;

	LIST_FOREACH(s, &cq->shared, entry)
	if (s->srq == srq)
		return s;
	return NULL;
}

/* A queue pair more of @srq receives here. Its room counts from hca_cq_fit_shared() on. */
static int use_shared(struct hca_cq *cq, struct hca_srq *srq)
{
	struct hca_cq_shared *s = find_shared(cq, srq);

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->srq = srq;
		LIST_INSERT_HEAD(&cq->shared, s, entry);
	}
	s->n_qps++;
	return 0;
}

static void unuse_shared(struct hca_cq *cq, const struct hca_srq *srq)
{
	struct hca_cq_shared *s = find_shared(cq, srq);

	if (--s->n_qps)
		return;
	cq->capacity_used -= s->capacity;
	LIST_REMOVE(s, entry);
	free(s);
}

static uint32_t room_of(struct hca_srq *srq)
{
	uint32_t room;

	base_lock(&srq->lock);
	room = srq->max_wr;
	base_unlock(&srq->lock);
	return room;
}

void hca_cq_fit_shared(struct hca_cq *cq, struct hca_srq *srq)
{
	struct hca_cq_shared *s;

	base_lock(&cq->lock);
	s = find_shared(cq, srq);
	if (s) {
		uint32_t room = room_of(srq);

		cq->capacity_used += room - s->capacity;
		s->capacity = room;
		/* without a daemon nothing arrives any more */
		if (!count_if_needed(cq, cq->capacity_used))
			hca_cq_set_limit(cq);
	}
	base_unlock(&cq->lock);
}

/* Adds @rq to what polling looks at: the first one always, others by a ready bit. */
static int add_rq(struct hca_cq *cq, struct hca_rq *rq)
{
	if (!cq->direct) {
		cq->direct = rq;
		rq->ready_bit = SHM_NO_READY_BIT;
		return 0;
	}
	if (!cq->ready)
		cq->ready = calloc(1, sizeof(*cq->ready));
	if (!cq->ready)
		return -ENOMEM;
	rq->ready_bit = (uint16_t)(cq->ready->next_bit++ % SHM_CQ_READY_BITS);
	rq->next_of_bit = cq->ready->by_bit[rq->ready_bit];
	cq->ready->by_bit[rq->ready_bit] = rq;
	cq->ready->n++;
	return 0;
}

static void remove_rq(struct hca_cq *cq, struct hca_rq *rq)
{
	struct hca_rq **at;

	if (cq->behind == rq)
		cq->behind = NULL;
	if (rq->ready_bit == SHM_NO_READY_BIT) {
		cq->direct = NULL;
		return;
	}
	for (at = &cq->ready->by_bit[rq->ready_bit]; *at != rq; at = &(*at)->next_of_bit)
		;
	*at = rq->next_of_bit;
	cq->ready->n--;
}

int hca_cq_add_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity)
{
	struct hca_srq *srq = receives && is_counted(qp->rq) ? qp->rq->srq : NULL;
	int ret;

	base_lock(&cq->lock);
	ret = count_if_needed(cq, cq->capacity_used + capacity);
	if (!ret && srq)
		ret = use_shared(cq, srq);
	if (!ret && receives) {
		ret = add_rq(cq, qp->rq);
		if (ret && srq)
			unuse_shared(cq, srq);
	}
	if (!ret) {
		cq->n_users++;
		cq->capacity_used += capacity;
		if (receives)
			TAILQ_INSERT_TAIL(&cq->users, qp, cq_entry);
	}
	hca_cq_set_limit(cq);
	base_unlock(&cq->lock);
	return ret;
}

/* Completions that are made up have only its number. */
static bool is_of(const struct hca_cqe *e, const struct hca_qp *qp)
{
	return e->qp == qp ||
	       ((e->opcode & HCA_CQE_MADE) && e->qp->ex.qp_base.qp_num == qp->ex.qp_base.qp_num);
}

/* Removes the completions of @qp from the local ring. */
static void purge(struct hca_cq *cq, const struct hca_qp *qp)
{
	uint32_t to = cq->head;

	for (uint32_t from = cq->head; from != cq->tail; from++)
		if (!is_of(hca_cq_at(cq, from), qp))
			*hca_cq_at(cq, to++) = *hca_cq_at(cq, from);
	cq->tail = to;
	forget_told(cq);
	hca_cq_set_limit(cq);
}

/* Its flushed receives do not complete any more. */
static void forget_flushes(struct hca_cq *cq, struct hca_rq *rq)
{
	cq->flushes_due -= rq->flushes_due;
	rq->flushes_due = 0;
}

void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp)
{
	base_lock(&cq->lock);
	if (qp->rq->cq == cq) {
		hca_counted_drop(qp->rq);
		forget_flushes(cq, qp->rq);
	}
	forget_dropped(cq);
	purge(cq, qp);
	base_unlock(&cq->lock);
}

void hca_cq_remove_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity)
{
	base_lock(&cq->lock);
	if (receives) {
		remove_rq(cq, qp->rq);
		forget_flushes(cq, qp->rq);
		if (qp->rq->srq && is_counted(qp->rq))
			unuse_shared(cq, qp->rq->srq);
		TAILQ_REMOVE(&cq->users, qp, cq_entry);
		forget_dropped(cq);
	}
	if (!receives)
		hca_cq_remove_waiting(cq->ctx->process, qp);
	purge(cq, qp);
	cq->n_users--;
	cq->capacity_used -= capacity;
	base_unlock(&cq->lock);
}

int hca_cq_resize(struct hca_cq *cq, uint32_t cqe)
{
	struct hca_cqe *ring, *old;
	struct hca_qp *qp;
	uint32_t n, waiting;
	const uint32_t asked = cqe;
	int ret = 0;

	cqe = hca_cq_size(cq->ctx->process, asked);
	if (!cqe)
		return base_because(-EINVAL, "cqe is %u: 1 to %u (max_cqe) are possible", asked,
		                    cq->ctx->process->region.control->settings.max_cqe);
	ring = hca_cq_alloc_ring(cqe);
	if (!ring)
		return -ENOMEM;
	base_lock(&cq->lock);
	n = waiting = cq->tail - cq->head;
	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	waiting += hca_rq_waiting(qp->rq);
	old = cq->ring;
	/* though the smallest queue may have room */
	if (waiting > hca_queue_size(cq->ctx->process, asked, cqe)) {
		ret = base_because(-EINVAL, "%u completions wait in it: no room for them in %u",
		                   waiting, asked);
		old = ring;
		goto out;
	}
	for (uint32_t i = 0; i < n; i++)
		ring[i] = *hca_cq_at(cq, cq->head + i);
	hca_cq_use_ring(cq, ring, cqe);
	cq->tail = n;
	forget_told(cq);
	cq->cq.cqe = (int)cqe;
	atomic_store_explicit(&cq->shm->cqe, cqe, memory_order_relaxed);
	ret = count_if_needed(cq, cq->capacity_used);
	hca_cq_set_limit(cq);
out:
	base_unlock(&cq->lock);
	free(old);
	return ret;
}

/* Completions that wait. Without counting of arrivals, only those of this process. */
static uint32_t unpolled(const struct hca_cq *cq)
{
	uint32_t n = cq->tail - cq->head;

	if (cq->counts_arrivals)
		n += atomic_load_explicit(&cq->shm->arrived, memory_order_relaxed) -
		     cq->arrivals_polled + cq->flushes_due;
	return n;
}

/* The requests that @e completes leave the send queue. */
static void give_room(const struct hca_cqe *e)
{
	/* release: pairs with the acquire in hca_qp_sq_is_full(): the room is the poster's */
	atomic_store_explicit(&e->qp->sq_done, e->sq_after, memory_order_release);
}

/* Makes room for one more completion. False: the CQ is overrun. */
static bool make_room(struct hca_cq *cq)
{
	if ((int32_t)unpolled(cq) < (int32_t)cq->ring_size)
		return true;
	if (!cq->ignores_overrun)
		return false;
	give_room(hca_cq_at(cq, cq->head++)); /* the oldest is lost */
	return true;
}

struct hca_cqe *hca_cq_push_begin(struct hca_cq *cq)
{
	base_lock(&cq->lock);
	if (base_likely(make_room(cq)))
		return hca_cq_at(cq, cq->tail);
	base_unlock(&cq->lock);
	hca_cq_overrun(cq->ctx->process, cq->id, cq->shm);
	return NULL;
}

void hca_cq_push_end(struct hca_cq *cq, struct hca_cqe *e)
{
	const bool failed = e->status != IBV_WC_SUCCESS;

	cq->tail++;
	if (cq->stamps)
		e->ns = base_now_ns();
	hca_cq_set_limit(cq);
	base_unlock(&cq->lock);
	if (!cq->ch)
		return;
	atomic_thread_fence(memory_order_seq_cst); /* the completion before the look at arm */
	hca_cq_notify(cq->ctx->process, cq->shm, failed);
}

void hca_cq_push(struct hca_cq *cq, const struct hca_cqe *cqe)
{
	struct hca_cqe *e = hca_cq_push_begin(cq);

	if (!e)
		return;
	*e = *cqe;
	hca_cq_push_end(cq, e);
}

void hca_cq_push_surplus(struct hca_cq *cq, const struct hca_cqe *cqe)
{
	base_lock(&cq->lock);
	if (!cq->counts_arrivals && !cq->ignores_overrun && !count_arrivals(cq))
		hca_cq_set_limit(cq);
	base_unlock(&cq->lock);
	hca_cq_push(cq, cqe);
}

/* Counts the flushed receives of @rq. They are completions from now on, but made when they are
 * polled. False: there are more than the CQ holds. */
static bool count_flushes(struct hca_cq *cq, struct hca_rq *rq)
{
	uint32_t n;
	bool fits;

	base_lock(&cq->lock);
	n = cq->counts_arrivals ? hca_rq_flushes(rq) : 0;
	cq->flushes_due += n - rq->flushes_due;
	rq->flushes_due = n;
	fits = !n || (int32_t)unpolled(cq) <= (int32_t)cq->ring_size;
	hca_cq_set_limit(cq);
	base_unlock(&cq->lock);
	return fits;
}

void hca_cq_kick(struct hca_cq *cq, struct hca_rq *rq)
{
	if (!count_flushes(cq, rq))
		hca_cq_overrun(cq->ctx->process, cq->id, cq->shm);
	hca_cq_set_ready(cq->shm, rq->ready_bit);
	if (!cq->ch)
		return;
	atomic_thread_fence(memory_order_seq_cst); /* what was flushed before the look at arm */
	if (hca_rq_pending(rq))
		hca_cq_alert(cq->ctx->process, cq->shm);
}

/* ---- whether there are any ---- */

/* How many, if there are less than two; else two, or more. */
static unsigned count_due(const struct hca_cq *cq, struct hca_rq *rq, bool solicited)
{
	uint32_t limit = atomic_load_explicit(&cq->shm->fails_above, memory_order_relaxed);

	return solicited ? hca_rq_has_solicited(rq, limit) : hca_rq_count_pending(rq);
}

static unsigned count_local(const struct hca_cq *cq, bool solicited)
{
	if (!solicited)
		return cq->tail - cq->head;
	for (uint32_t i = cq->head; i != cq->tail; i++)
		if (hca_cq_at(cq, i)->status != IBV_WC_SUCCESS)
			return 1;
	return 0;
}

/* Adds to @n, which is returned when it is @enough. The bits of watched queues are set, too. */
static unsigned add_arrivals(const struct hca_cq *cq, bool solicited, unsigned n, unsigned enough)
{
	for (unsigned word = 0; word < hca_ready_words(cq->ready); word++) {
		/* acquire: the arrival was published before the bit was set */
		uint64_t bits = atomic_load_explicit(&cq->shm->ready[word], memory_order_acquire);

		for (; bits; bits &= bits - 1) {
			unsigned bit = word * 64 + (unsigned)__builtin_ctzll(bits);

			for (struct hca_rq *rq = cq->ready->by_bit[bit]; rq && n < enough;
			     rq = rq->next_of_bit)
				n += count_due(cq, rq, solicited);
			if (n >= enough)
				return n;
		}
	}
	return n;
}

/* How many completions there are to be polled, up to @enough at least. With the lock held. */
static unsigned count_held(const struct hca_cq *cq, bool solicited, unsigned enough)
{
	unsigned n = count_local(cq, solicited);

	if (n < enough && cq->direct)
		n += count_due(cq, cq->direct, solicited);
	return n < enough && cq->ready ? add_arrivals(cq, solicited, n, enough) : n;
}

bool hca_cq_holds_solicited(struct hca_cq *cq)
{
	bool holds;

	base_lock(&cq->lock);
	holds = count_held(cq, true, 1);
	base_unlock(&cq->lock);
	return holds;
}

bool hca_cq_has_news(struct hca_cq *cq)
{
	unsigned known, held;
	uint32_t polled;

	base_lock(&cq->lock);
	polled = hca_cq_next_number(cq);
	known = (int32_t)(cq->told - polled) > 0;
	held = count_held(cq, false, 2);
	cq->told = polled + base_min((int)held, (int)known) + 1;
	base_unlock(&cq->lock);
	return held > known;
}
