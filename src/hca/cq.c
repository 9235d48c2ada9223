/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: see cq.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "base/util.h"
#include "hca/cq.h"
#include "hca/comp_counter.h"
#include "hca/connected.h"
#include "hca/explain.h"
#include "hca/link.h"
#include "hca/qp.h"

/* The smallest CQ. */
#define LEAST_CQE 16
/* Completions that one source may have polled before others have their turn (docs/semantics.md). */
#define TURN 16
/* After this many polls in a row that find nothing, a ready bit is not watched any more. */
#define IDLE_POLLS 1024
/* While watched rings have arrivals, one of this many polls or turns looks at the whole map. */
#define MAP_POLLS 16
/* QPs whose requests wait that one poll goes on with. */
#define WAITING_SERVED 16
/* A poll in the middle of a list waits for this many of its messages at most, */
#define MAX_AHEAD 32u
/* and not longer, as the sender may have been interrupted: 5 to 10 us in all. */
#define AHEAD_PAUSES_EACH 8u
#define AHEAD_PAUSES      200u

/* ---- life ---- */

/* Opens the network link of the port, if it has one: polling has it make progress. Before the first
 * CQ nothing polls. */
static int open_network(struct hca_context *ctx)
{
	struct shm_port port;
	int ret = 0;

	if (hca_port(ctx, 1, &port))
		return 0;
	pthread_mutex_lock(&ctx->lock);
	if (!ctx->network)
		ret = hca_network_open(ctx->process, port.link_layer, ctx->hca, ctx->handle,
		                       &ctx->network);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

/* The size of a CQ for which @asked completions are asked; 0: there is none such. Programs of
 * hardware get by with CQs that are a little small, as there the smallest ones are larger. */
static uint32_t size_of(const struct hca_process *p, uint32_t asked)
{
	const struct shm_settings *s = &p->region.control->settings;

	if (asked > s->max_cqe)
		return 0;
	if (asked && asked < LEAST_CQE && !s->exact_sizes)
		asked = LEAST_CQE;
	return hca_queue_size(p, asked, s->max_cqe);
}

int hca_cq_create(struct hca_context *ctx, uint32_t cqe, struct hca_channel *ch, int vector,
                  void *cq_context, struct hca_cq **out)
{
	struct control_create_cq req = { .hca_handle = ctx->handle,
		                         .cqe = size_of(ctx->process, cqe) };
	struct control_create_cq_reply rep;
	struct hca_cq *cq;
	int ret;

	if (!req.cqe)
		return base_because(-EINVAL, "cqe is %u: 1 to %u (max_cqe) are possible", cqe,
		                    ctx->process->region.control->settings.max_cqe);
	if (vector < 0 || vector >= ctx->vctx.context.num_comp_vectors)
		return base_because(-EINVAL, "comp_vector is %d: there are %d", vector,
		                    ctx->vctx.context.num_comp_vectors);
	cqe = req.cqe;
	ret = open_network(ctx);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->ring_size = cqe;
	cq->ring = calloc(cqe, sizeof(*cq->ring));
	if (!cq->ring) {
		ret = -ENOMEM;
		goto err_free;
	}
	ret = control_ask(ctx->process->control, CONTROL_CREATE_CQ, &req, &rep);
	if (ret)
		goto err_ring;
	cq->ctx = ctx;
	cq->ch = ch;
	cq->id = rep.cq;
	cq->shm = &ctx->process->region.cqs[rep.cq];
	atomic_store_explicit(&cq->shm->cqe, cqe, memory_order_relaxed);
	TAILQ_INIT(&cq->users);
	hca_async_object_init(&cq->events, HCA_ASYNC_CQ, &cq->cq);
	cq->cq.context = &ctx->vctx.context;
	cq->cq.cq_context = cq_context;
	cq->cq.handle = rep.cq;
	cq->cq.cqe = (int)cqe;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	if (ch)
		hca_cq_enter_channel(cq);
	base_lock(&ctx->process->cqs_lock);
	LIST_INSERT_HEAD(&ctx->process->cqs, cq, process_entry);
	base_unlock(&ctx->process->cqs_lock);
	hca_async_enter(&ctx->async, &cq->events, cq->id);
	hca_context_count(ctx, 1);
	*out = cq;
	return 0;
err_ring:
	free(cq->ring);
err_free:
	free(cq);
	return ret;
}

/* Waits until the program has acknowledged all events that it got. */
static void wait_acked(struct hca_cq *cq)
{
	pthread_mutex_lock(&cq->cq.mutex);
	while (cq->cq.comp_events_completed != cq->comp_events_got ||
	       cq->cq.async_events_completed != cq->events.n_got)
		pthread_cond_wait(&cq->cq.cond, &cq->cq.mutex);
	pthread_mutex_unlock(&cq->cq.mutex);
}

int hca_cq_destroy(struct hca_cq *cq)
{
	struct hca_context *ctx = cq->ctx;

	if (cq->n_users)
		return base_because(-EBUSY, "queue pairs still use it: destroy them first");
	if (cq->ch)
		hca_cq_leave_channel(cq);
	base_lock(&ctx->process->cqs_lock);
	LIST_REMOVE(cq, process_entry);
	base_unlock(&ctx->process->cqs_lock);
	/* when it is done the daemon fires no event any more, either */
	hca_async_end(&ctx->async, cq->events.source, CONTROL_DESTROY_CQ, cq->id, NULL);
	hca_async_leave(&ctx->async, &cq->events);
	hca_context_count(ctx, -1);
	wait_acked(cq);
	if (cq->ch)
		hca_cq_take_events_along(cq);
	if (cq->parent_domain)
		hca_pd_unuse(cq->parent_domain);
	pthread_mutex_destroy(&cq->cq.mutex);
	pthread_cond_destroy(&cq->cq.cond);
	free(cq->ready);
	free(cq->ring);
	free(cq);
	return 0;
}

void hca_cqs_wait(struct hca_process *p)
{
	struct hca_cq *cq;

	base_lock(&p->cqs_lock);
	LIST_FOREACH(cq, &p->cqs, process_entry)
	{
		/* a thread that polls later sees all that this thread wrote before it came here */
		base_lock(&cq->lock);
		base_unlock(&cq->lock);
	}
	base_unlock(&p->cqs_lock);
}

static unsigned map_words(const struct hca_ready *r)
{
	unsigned bits = r->next_bit < SHM_CQ_READY_BITS ? r->next_bit : SHM_CQ_READY_BITS;

	return (bits + 63) / 64;
}

/* With the CQ's lock held. */
static void take_arrivals(struct hca_cq *cq)
{
	if (cq->direct)
		hca_counted_take(cq->direct);
	for (unsigned i = 0; cq->ready && i < map_words(cq->ready); i++) {
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

/* The number of the next completion to be polled. */
static uint32_t next_number(const struct hca_cq *cq)
{
	return cq->head + cq->arrivals_polled + cq->flushes_polled;
}

/* Completions count anew: the next arming fires for each that is held. */
static void forget_told(struct hca_cq *cq)
{
	cq->told = next_number(cq);
}

/* Counts arrivals anew. It reads the rings before the counter: what arrives in between makes the
 * limit too high, not too low. */
static void recount(struct hca_cq *cq)
{
	struct hca_qp *qp;
	uint32_t waiting = 0;

	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	waiting += hca_rq_arrived(qp->rq);
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

/* Sets the number of arrivals at which the CQ overruns. Called when one of its terms has changed.
 */
static void set_limit(struct hca_cq *cq)
{
	uint32_t local = cq->tail - cq->head;

	if (cq->counts_arrivals)
		atomic_store_explicit(&cq->shm->limit, cq->arrivals_polled + cq->ring_size - local,
		                      memory_order_relaxed);
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
	int ret = 0;

	base_lock(&cq->lock);
	if (cq->capacity_used + capacity > cq->ring_size && !cq->counts_arrivals &&
	    !cq->ignores_overrun)
		ret = count_arrivals(cq);
	if (!ret && receives)
		ret = add_rq(cq, qp->rq);
	if (!ret) {
		cq->n_users++;
		cq->capacity_used += capacity;
		if (receives)
			TAILQ_INSERT_TAIL(&cq->users, qp, cq_entry);
	}
	set_limit(cq);
	base_unlock(&cq->lock);
	return ret;
}

/* Removes the completions of @qp from the local ring. */
static void purge(struct hca_cq *cq, const struct hca_qp *qp)
{
	uint32_t to = cq->head;

	for (uint32_t from = cq->head; from != cq->tail; from++)
		if (cq->ring[from % cq->ring_size].qp != qp)
			cq->ring[to++ % cq->ring_size] = cq->ring[from % cq->ring_size];
	cq->tail = to;
	forget_told(cq);
	set_limit(cq);
}

void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp)
{
	base_lock(&cq->lock);
	if (qp->rq->cq == cq)
		hca_counted_drop(qp->rq);
	forget_dropped(cq);
	purge(cq, qp);
	base_unlock(&cq->lock);
}

void hca_cq_add_waiting(struct hca_cq *cq, struct hca_connected_qp *c)
{
	struct hca_process *p = cq->ctx->process;

	base_lock(&p->waiting_lock);
	if (!c->is_waiting && !c->goes) {
		TAILQ_INSERT_TAIL(&p->waiting, c, waiting);
		atomic_fetch_add_explicit(&p->n_waiting, 1, memory_order_relaxed);
		c->is_waiting = true;
	}
	base_unlock(&p->waiting_lock);
	base_lock(&cq->lock);
	cq->failed = true;
	base_unlock(&cq->lock);
}

/* With waiting_lock held. */
static void take_waiting(struct hca_process *p, struct hca_connected_qp *c)
{
	TAILQ_REMOVE(&p->waiting, c, waiting);
	atomic_fetch_sub_explicit(&p->n_waiting, 1, memory_order_relaxed);
	c->is_waiting = false;
}

static void remove_waiting(struct hca_process *p, struct hca_qp *qp)
{
	if (!qp->transport->poll)
		return;
	base_lock(&p->waiting_lock);
	if (hca_connected(qp)->is_waiting)
		take_waiting(p, hca_connected(qp));
	hca_connected(qp)->goes = true; /* a thread that has it just now does not add it again */
	base_unlock(&p->waiting_lock);
}

void hca_cq_remove_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity)
{
	base_lock(&cq->lock);
	if (receives) {
		remove_rq(cq, qp->rq);
		TAILQ_REMOVE(&cq->users, qp, cq_entry);
		forget_dropped(cq);
	}
	if (!receives)
		remove_waiting(cq->ctx->process, qp);
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

	cqe = size_of(cq->ctx->process, asked);
	if (!cqe)
		return base_because(-EINVAL, "cqe is %u: 1 to %u (max_cqe) are possible", asked,
		                    cq->ctx->process->region.control->settings.max_cqe);
	ring = calloc(cqe, sizeof(*ring));
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
		ring[i] = cq->ring[(cq->head + i) % cq->ring_size];
	cq->ring = ring;
	cq->ring_size = cqe;
	cq->head = 0;
	cq->tail = n;
	forget_told(cq);
	cq->cq.cqe = (int)cqe;
	atomic_store_explicit(&cq->shm->cqe, cqe, memory_order_relaxed);
	if (cq->capacity_used > cqe && !cq->counts_arrivals && !cq->ignores_overrun)
		ret = count_arrivals(cq);
	set_limit(cq);
out:
	base_unlock(&cq->lock);
	free(old);
	return ret;
}

/* ---- completions ---- */

void hca_cq_overrun(struct hca_process *p, uint32_t id, struct shm_cq *shm)
{
	struct control_raise_event req = { .type = IBV_EVENT_CQ_ERR, .element = id };

	if (atomic_exchange_explicit(&shm->overrun, 1, memory_order_acq_rel))
		return;
	base_log_warning(verbs,
	                 "completion queue %u overruns: more requests complete there than it has "
	                 "room for (cqe)",
	                 id);
	hca_request(p, CONTROL_RAISE_EVENT, &req, sizeof(req));
}

/* Completions that wait. Without counting of arrivals, only those of this process. */
static uint32_t unpolled(const struct hca_cq *cq)
{
	uint32_t n = cq->tail - cq->head;

	if (cq->counts_arrivals)
		n += atomic_load_explicit(&cq->shm->arrived, memory_order_relaxed) -
		     cq->arrivals_polled;
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
	give_room(&cq->ring[cq->head++ % cq->ring_size]); /* the oldest is lost */
	return true;
}

void hca_cq_push(struct hca_cq *cq, const struct hca_cqe *cqe)
{
	bool fits;

	base_lock(&cq->lock);
	fits = make_room(cq);
	if (fits) {
		struct hca_cqe *e = &cq->ring[cq->tail++ % cq->ring_size];

		*e = *cqe;
		if (cq->stamps)
			e->ns = base_now_ns();
		set_limit(cq);
	}
	base_unlock(&cq->lock);
	if (!fits) {
		hca_cq_overrun(cq->ctx->process, cq->id, cq->shm);
		return;
	}
	if (!cq->ch)
		return;
	atomic_thread_fence(memory_order_seq_cst); /* the completion before the look at arm */
	hca_cq_notify(cq->ctx->process, cq->shm, cqe->status != IBV_WC_SUCCESS);
}

BASE_COLD void hca_cq_set_ready(struct shm_cq *shm, uint16_t ready_bit)
{
	if (ready_bit >= SHM_CQ_READY_BITS)
		return;
	/* seq_cst: before the look whether the CQ is armed; pairs with hca_cq_arm() */
	atomic_fetch_or_explicit(&shm->ready[ready_bit / 64], 1ull << (ready_bit % 64),
	                         memory_order_seq_cst);
	base_fence_behind_seq_cst();
}

BASE_COLD void hca_cq_note_arrival(struct hca_process *p, struct shm_cq *shm, uint32_t flags,
                                   struct shm_arrival *slot)
{
	if (flags & SHM_QP_STAMPS) {
		slot->flags |= SHM_ARRIVAL_STAMPED;
		*shm_arrival_time(slot) = base_now_ns();
	}
	if ((flags & SHM_QP_COUNT_ARRIVALS) &&
	    (int32_t)(atomic_fetch_add_explicit(&shm->arrived, 1, memory_order_relaxed) + 1 -
	              atomic_load_explicit(&shm->limit, memory_order_relaxed)) > 0)
		hca_cq_overrun(p, (uint32_t)(shm - p->region.cqs), shm);
}

void hca_cq_kick(struct hca_cq *cq, struct hca_rq *rq)
{
	hca_cq_set_ready(cq->shm, rq->ready_bit);
	if (!cq->ch)
		return;
	atomic_thread_fence(memory_order_seq_cst); /* what was flushed before the look at arm */
	if (hca_rq_pending(rq))
		hca_cq_alert(cq->ctx->process, cq->shm);
}

/* Polls completions of this process. Not inlined, as most polls find none. */
static __attribute__((noinline)) int poll_local(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	while (done < n && cq->head != cq->tail) {
		const struct hca_cqe *e = &cq->ring[cq->head++ % cq->ring_size];

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

/* Whether there is anything to do with a queue: who adds a reason to call receive() adds it here.
 * What came before a reset may wait for a sender that was stopped. */
static bool has_work(struct hca_rq *rq)
{
	return hca_rq_pending(rq) || hca_rq_is_refused(rq) || (hca_rq_stops(rq) & HCA_RQ_DISCARDS);
}

/* Polls all queues of one ready bit. */
static int poll_chain(struct hca_cq *cq, unsigned bit, int n, struct ibv_wc *wc)
{
	int done = 0;

	for (struct hca_rq *rq = cq->ready->by_bit[bit]; rq && done < n; rq = rq->next_of_bit)
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
	} else if (++r->watched[i].idle == IDLE_POLLS) {
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

/* Whether a bit is set that is not watched, as most polls find none. Relaxed: who finds one
 * acquires it, by unwatched_bits(). */
static BASE_HOT bool has_unwatched(const struct hca_cq *cq)
{
	const _Atomic uint64_t *ready = cq->shm->ready;
	const uint64_t *is_watched = cq->ready->is_watched;
	uint64_t any = 0;

	for (unsigned i = 0, n = map_words(cq->ready); i < n; i++)
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
	unsigned end = map_words(r) * 64;
	int done = 0;

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
		if (cq->ring[i % cq->ring_size].status != IBV_WC_SUCCESS)
			return 1;
	return 0;
}

/* Adds to @n, which is returned when it is @enough. The bits of watched queues are set, too. */
static unsigned add_arrivals(const struct hca_cq *cq, bool solicited, unsigned n, unsigned enough)
{
	for (unsigned word = 0; word < map_words(cq->ready); word++) {
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
	polled = next_number(cq);
	known = (int32_t)(cq->told - polled) > 0;
	held = count_held(cq, false, 2);
	cq->told = polled + base_min((int)held, (int)known) + 1;
	base_unlock(&cq->lock);
	return held > known;
}

/* ---- turns ---- */

/* Sources of completions, in the order of their turns. Behind them come the watched bits. */
enum { SOURCE_LOCAL, SOURCE_DIRECT, SOURCE_MAP, SOURCE_WATCHED };

static unsigned n_sources(const struct hca_cq *cq)
{
	return SOURCE_WATCHED + (cq->ready ? cq->ready->n_watched : 0);
}

/* While other sources have completions, polls look at the map now and then only. But a poll returns
 * 0 only after it looked at everything: a program may then go to sleep. */
static bool map_is_due(struct hca_cq *cq, int done)
{
	struct hca_ready *r = cq->ready;

	if (!r || !r->n || (done && ++r->polls < MAP_POLLS))
		return false;
	r->polls = 0;
	return has_unwatched(cq);
}

static int poll_source(struct hca_cq *cq, int done, int n, struct ibv_wc *wc)
{
	switch (cq->turn) {
	case SOURCE_LOCAL:
		return cq->head != cq->tail ? poll_local(cq, n, wc) : 0;
	case SOURCE_DIRECT:
		return cq->direct ? poll_rq(cq, cq->direct, n, wc) : 0;
	case SOURCE_MAP:
		return map_is_due(cq, done) ? poll_map(cq, n, wc) : 0;
	default:
		return poll_watched(cq, cq->turn - SOURCE_WATCHED, n, wc);
	}
}

/*
 * Polls completions of connected queue pairs, which come before messages that wait. A program may
 * count on that order: when a reply has come, it takes the request for done. At most TURN of them
 * in a row, as others wait.
 */
static int poll_first(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	while (done < n && cq->head != cq->tail && cq->first < TURN) {
		if (!cq->ring[cq->head % cq->ring_size].is_first)
			break;
		done += poll_local(cq, 1, wc + done);
		cq->first++;
	}
	return done;
}

/*
 * Several sources may have completions. Each has its turn of at most TURN completions, which may
 * last several polls. So each source waits for at most TURN completions of each other one.
 */
static __attribute__((noinline)) int poll_in_turn(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	/* the first one's turn may be over at once */
	unsigned left = n_sources(cq) + (cq->turn_used ? 1 : 0);
	int done = poll_first(cq, n, wc);

	if (done == n)
		return done;
	cq->first = 0;
	while (done < n && left--) {
		int want = base_min(n - done, (int)(TURN - cq->turn_used));
		int got;

		if (cq->turn >= n_sources(cq))
			cq->turn = SOURCE_LOCAL;
		got = poll_source(cq, done, want, wc + done);
		done += got;
		cq->turn_used += (unsigned)got;
		if (got == want && cq->turn_used < TURN)
			break; /* the poll is full, the turn is not over */
		if (got == want)
			left = n_sources(cq);
		cq->turn++;
		cq->turn_used = 0;
	}
	return done;
}

/* ---- polls that find nothing: most, where a program waits ---- */

/* Whether a poll has nothing to do with the queue that every poll looks at. */
static bool is_quiet(struct hca_rq *rq)
{
	return !rq->announced && !has_work(rq) && !hca_rq_stops(rq) &&
	       (!rq->srq || !shm_ring_room(hca_rq_load(&rq->posted), hca_rq_load(&rq->consumed),
	                                   rq->ring_shift));
}

static bool is_chain_quiet(const struct hca_ready *r, unsigned bit)
{
	struct hca_rq *rq = r->by_bit[bit];

	while (rq && !rq->announced && !has_work(rq))
		rq = rq->next_of_bit;
	return !rq;
}

/* The watched bits have had a poll. Whether that was all there is to do with them. */
static bool are_watched_quiet(struct hca_ready *r)
{
	for (unsigned i = 0; i < r->n_watched; i++)
		if (r->watched[i].idle + 1 >= IDLE_POLLS || !is_chain_quiet(r, r->watched[i].bit))
			return false;
	for (unsigned i = 0; i < r->n_watched; i++)
		r->watched[i].idle++;
	return true;
}

/* Whether there is nothing to poll: all sources are looked at, and none has a turn. */
static bool is_empty(struct hca_cq *cq)
{
	return cq->head == cq->tail && (!cq->direct || is_quiet(cq->direct)) &&
	       !has_unwatched(cq) && are_watched_quiet(cq->ready);
}

/* A bit is set that is not watched: its queues first, then all in turn. */
static int poll_others(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = poll_map(cq, base_min(n, TURN), wc);

	return done < n ? done + poll_in_turn(cq, n - done, wc + done) : done;
}

/* Polls the only watched bit, and looks for others after each turn that it has had. */
static int poll_the_watched(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	struct hca_ready *r = cq->ready;
	int done = 0, want, got;

	do {
		if (r->since_map >= TURN) {
			r->since_map = 0;
			if (has_unwatched(cq))
				return done + poll_others(cq, n - done, wc + done);
		}
		want = base_min(n - done, (int)(TURN - r->since_map));
		got = poll_watched(cq, 0, want, wc + done);
		done += got;
		r->since_map += (unsigned)got;
	} while (done < n && got == want);
	return done;
}

/* Polls where there are ready bits, but no completions of this process. Of many queue pairs mostly
 * one has some, or none has: then nobody has to take turns. */
static __attribute__((noinline)) int poll_ready(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	struct hca_rq *direct = cq->direct;
	int done = 0;

	if (cq->ready->n_watched > 1 || (direct && hca_rq_pending(direct)))
		return is_empty(cq) ? 0 : poll_in_turn(cq, n, wc);
	cq->first = 0;
	if (cq->ready->n_watched)
		done = poll_the_watched(cq, n, wc);
	/* its peer may have found an error, or its ring may have room */
	if (!done && direct && !is_quiet(direct))
		done = poll_rq(cq, direct, n, wc);
	return done || !has_unwatched(cq) ? done : poll_map(cq, n, wc);
}

static BASE_HOT int poll_sources(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	if (base_unlikely(cq->head != cq->tail))
		done = poll_in_turn(cq, n, wc);
	else if (base_unlikely(cq->ready))
		done = poll_ready(cq, n, wc);
	else if (cq->direct)
		done = poll_rq(cq, cq->direct, n, wc);
	set_limit(cq);
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

/* The next QP of the process whose requests wait, or NULL. Its in_use is raised. */
static struct hca_qp *next_waiting(struct hca_process *p)
{
	struct hca_connected_qp *c;

	base_lock(&p->waiting_lock);
	c = TAILQ_FIRST(&p->waiting);
	if (c) {
		take_waiting(p, c);
		atomic_fetch_add_explicit(&c->qp.in_use, 1, memory_order_relaxed);
	}
	base_unlock(&p->waiting_lock);
	return c ? &c->qp : NULL;
}

BASE_COLD void hca_cq_serve_waiting(struct hca_process *p, unsigned most)
{
	unsigned n = atomic_load_explicit(&p->n_waiting, memory_order_relaxed);
	struct hca_qp *qp;

	for (n = n < most ? n : most; n && (qp = next_waiting(p)); n--) {
		bool locked = base_trylock(&qp->send_lock), again = true;

		if (locked) {
			qp->transport->poll(qp);
			again = qp->sq_kept;
			base_unlock(&qp->send_lock);
		}
		if (again)
			hca_cq_add_waiting(qp->send_cq, hca_connected(qp));
		/* release: pairs with the acquire in hca_qp_destroy() */
		atomic_fetch_sub_explicit(&qp->in_use, 1, memory_order_release);
	}
}

/* Does what polling left to do: moves failed QPs to ERR, goes on with requests that wait. */
static BASE_COLD int attend(struct hca_cq *cq, int done, int n, struct ibv_wc *wc)
{
	struct hca_process *p = cq->ctx->process;

	fail_qps(cq, false);
	hca_cq_serve_waiting(p, WAITING_SERVED);
	base_lock(&cq->lock);
	if (atomic_load_explicit(&p->n_waiting, memory_order_relaxed))
		cq->failed = true; /* some of them may complete here */
	if (!done)
		done = poll_all(cq, n, wc);
	base_unlock(&cq->lock);
	return done;
}

/* What a poll that found nothing waits for: the arrival at a position of a ring. */
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
	return done || !ahead.pauses ? done : poll_ahead(cq, &ahead, n, wc);
}

/* A poll has found nothing so far. With the CQ's lock held, which is released. */
static __attribute__((noinline)) int poll_in_vain(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	cq->first = 0; /* nobody waits for a turn */
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

	if (cq->ctx->network)
		cq->ctx->network->ops->progress(cq->ctx->network, false);
	base_lock(&cq->lock);
	if (receives)
		hca_counted_update(receives);
	set_limit(cq);
	failed = cq->failed;
	base_unlock(&cq->lock);
	if (failed)
		fail_qps(cq, false);
	found_nothing(cq); /* goes on with requests that wait */
}

/* On an Ethernet port: receives from the network, and polls again. */
static BASE_COLD int poll_network(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	struct hca_link *network = cq->ctx->network;
	/* a program that has armed the CQ may sleep now, so it does not promise to look again */
	bool again = atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) == SHM_CQ_IDLE;

	return network->ops->progress(network, again) ? poll_once(cq, n, wc) : 0;
}

int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = poll_once(cq, n, wc);

	return base_likely(done || !cq->ctx->network) ? done : poll_network(cq, n, wc);
}
