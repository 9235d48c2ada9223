/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues and channels. A CQ is two things: a ring of completions made in
 * this process (sends, flushes), and the receive rings that complete here, which
 * ibv_poll_cq() looks at itself: the first one always, the others when their bit in
 * the shared ready map says so.
 *
 * Overrun: completions that nobody polls wait in receive rings, which cannot
 * overflow. So that a CQ smaller than what may arrive fails as it does on hardware,
 * senders count arrivals against it, but only on CQs where it could happen.
 *
 * Arming is a word in shared memory; who completes something takes it back and
 * writes the channel's eventfd, one semaphore unit an event.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/hca.h"
#include "hca/wire.h"

/* So many polls in a row that find nothing end a ready bit's watch. */
#define IDLE_POLLS 1024
/* While watched rings have something, one poll in so many looks at the whole map. */
#define MAP_POLLS 16
/* So long a poll waits at most that finds nothing in the middle of a list: some 700 ns. */
#define MAX_PAUSES 32

/* ---- channels ---- */

int hca_channel_create(struct hca_context *ctx, struct hca_channel **out)
{
	struct hca_channel *ch = calloc(1, sizeof(*ch));
	struct control_channel_reply rep;
	int ret;

	if (!ch)
		return -ENOMEM;
	ret = control_call(ctx->process->control,
	                   &(struct control_call){ .type = CONTROL_CREATE_CHANNEL,
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep),
	                                           .fd = &ch->channel.fd });
	if (ret) {
		free(ch);
		return ret;
	}
	ch->channel.context = &ctx->vctx.context;
	ch->id = rep.channel;
	pthread_mutex_init(&ch->lock, NULL);
	TAILQ_INIT(&ch->cqs);
	*out = ch;
	return 0;
}

int hca_channel_destroy(struct hca_channel *ch)
{
	struct hca_context *ctx = hca_context(ch->channel.context);
	struct control_handle req = { .handle = ch->id };

	pthread_mutex_lock(&ch->lock);
	if (!TAILQ_EMPTY(&ch->cqs)) {
		pthread_mutex_unlock(&ch->lock);
		return -EBUSY;
	}
	pthread_mutex_unlock(&ch->lock);
	hca_request(ctx->process, CONTROL_DESTROY_CHANNEL, &req, sizeof(req));
	close(ch->channel.fd);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
	return 0;
}

/* The next CQ with an event, or NULL. */
static struct hca_cq *take_notified(struct hca_channel *ch)
{
	struct hca_cq *cq;

	pthread_mutex_lock(&ch->lock);
	TAILQ_FOREACH(cq, &ch->cqs, channel_entry)
	{
		/* acquire: pairs with the release of whoever notified */
		uint32_t n = atomic_load_explicit(&cq->shm->notified, memory_order_acquire);

		if (!n)
			continue;
		atomic_fetch_sub_explicit(&cq->shm->notified, 1, memory_order_relaxed);
		cq->comp_events_got++;
		/* the others first next time */
		TAILQ_REMOVE(&ch->cqs, cq, channel_entry);
		TAILQ_INSERT_TAIL(&ch->cqs, cq, channel_entry);
		break;
	}
	pthread_mutex_unlock(&ch->lock);
	return cq;
}

/* Waits until the channel has an event. -EIO: the manager has gone. */
static int wait_event(struct hca_channel *ch)
{
	struct hca_process *p = hca_context(ch->channel.context)->process;
	struct pollfd fds[] = { { .fd = ch->channel.fd, .events = POLLIN },
		                { .fd = control_fd(p->control), .events = POLLRDHUP } };

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	if (fds[0].revents & POLLIN)
		return 0;
	return fds[1].revents ? -EIO : 0;
}

int hca_channel_get_event(struct hca_channel *ch, struct hca_cq **cq)
{
	struct hca_process *p = hca_context(ch->channel.context)->process;
	bool blocking = !(fcntl(ch->channel.fd, F_GETFL) & O_NONBLOCK);
	uint64_t one;

	for (;;) {
		if (blocking) {
			int ret = wait_event(ch);

			if (ret)
				return ret;
		}
		if (read(ch->channel.fd, &one, sizeof(one)) < 0) {
			if (errno == EAGAIN && hca_process_gone(p))
				return -EIO;
			return -errno;
		}
		*cq = take_notified(ch);
		if (*cq)
			return 0;
		/* the event was of a CQ that is gone */
	}
}

/* ---- life ---- */

/* The wire of an Ethernet port, which polling looks at: once there is something to poll. */
static int open_wire(struct hca_context *ctx)
{
	struct shm_port port;
	int ret = 0;

	if (hca_port(ctx, 1, &port) || port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return 0;
	pthread_mutex_lock(&ctx->lock);
	if (!ctx->wire)
		ret = hca_wire_open(ctx->process, ctx->hca, ctx->handle, &ctx->wire);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

int hca_cq_create(struct hca_context *ctx, uint32_t cqe, struct hca_channel *ch, int vector,
                  void *cq_context, struct hca_cq **out)
{
	struct control_create_cq req = { .hca_handle = ctx->handle, .cqe = cqe };
	struct control_create_cq_reply rep;
	struct hca_cq *cq;
	int ret;

	if (!cqe || cqe > ctx->process->region.control->settings.max_cqe || vector < 0 ||
	    vector >= ctx->vctx.context.num_comp_vectors)
		return -EINVAL;
	ret = open_wire(ctx);
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
	ret = control_call(ctx->process->control,
	                   &(struct control_call){ .type = CONTROL_CREATE_CQ,
	                                           .request = &req,
	                                           .request_bytes = sizeof(req),
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep) });
	if (ret)
		goto err_ring;
	cq->ctx = ctx;
	cq->ch = ch;
	cq->id = rep.cq;
	cq->shm = &ctx->process->region.cqs[rep.cq];
	TAILQ_INIT(&cq->users);
	cq->cq.context = &ctx->vctx.context;
	cq->cq.channel = ch ? &ch->channel : NULL;
	cq->cq.cq_context = cq_context;
	cq->cq.handle = rep.cq;
	cq->cq.cqe = (int)cqe;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	if (ch) {
		cq->shm->channel = ch->id;
		pthread_mutex_lock(&ch->lock);
		ch->channel.refcnt++;
		TAILQ_INSERT_TAIL(&ch->cqs, cq, channel_entry);
		pthread_mutex_unlock(&ch->lock);
	}
	pthread_mutex_lock(&ctx->lock);
	ctx->cq_by_id[cq->id] = cq;
	ctx->n_objects++;
	pthread_mutex_unlock(&ctx->lock);
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
	       cq->cq.async_events_completed != cq->async_events_got)
		pthread_cond_wait(&cq->cq.cond, &cq->cq.mutex);
	pthread_mutex_unlock(&cq->cq.mutex);
}

static void leave_channel(struct hca_cq *cq)
{
	struct hca_channel *ch = cq->ch;

	pthread_mutex_lock(&ch->lock);
	TAILQ_REMOVE(&ch->cqs, cq, channel_entry);
	ch->channel.refcnt--;
	pthread_mutex_unlock(&ch->lock);
}

int hca_cq_destroy(struct hca_cq *cq)
{
	struct hca_context *ctx = cq->ctx;
	struct control_handle req = { .handle = cq->id };

	if (cq->n_users)
		return -EBUSY;
	pthread_mutex_lock(&ctx->lock);
	ctx->cq_by_id[cq->id] = NULL; /* no further asynchronous events */
	ctx->n_objects--;
	pthread_mutex_unlock(&ctx->lock);
	if (cq->ch)
		leave_channel(cq);
	hca_request(ctx->process, CONTROL_DESTROY_CQ, &req, sizeof(req));
	wait_acked(cq);
	pthread_mutex_destroy(&cq->cq.mutex);
	pthread_cond_destroy(&cq->cq.cond);
	free(cq->ready);
	free(cq->ring);
	free(cq);
	return 0;
}

/* ---- queue pairs that complete here ---- */

/*
 * Begins the account of arrivals anew, after some have gone without being polled. The rings first:
 * what arrives meanwhile makes the limit late, not early.
 */
static void recount(struct hca_cq *cq)
{
	struct hca_qp *qp;
	uint32_t waiting = 0;

	if (!cq->counts_arrivals)
		return;
	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	waiting += hca_recv_arrived(qp);
	cq->arrivals_polled =
	        atomic_load_explicit(&cq->shm->arrived, memory_order_relaxed) - waiting;
}

/* Tells the manager to have arrivals counted, for QPs that came before it was needed. */
static int count_arrivals(struct hca_cq *cq)
{
	struct hca_qp *qp;

	cq->counts_arrivals = true;
	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	{
		int ret = hca_qp_publish(qp);

		if (ret)
			return ret;
	}
	recount(cq);
	return 0;
}

/* Where senders' counting meets its limit; after every change of what it is made of. */
static void set_limit(struct hca_cq *cq)
{
	uint32_t local = cq->tail - cq->head;

	if (cq->counts_arrivals)
		atomic_store_explicit(&cq->shm->limit, cq->arrivals_polled + cq->ring_size - local,
		                      memory_order_relaxed);
}

static int find_place(struct hca_cq *cq, struct hca_qp *qp)
{
	if (!cq->direct) {
		cq->direct = qp;
		qp->ready_bit = SHM_NO_READY_BIT;
		return 0;
	}
	if (!cq->ready)
		cq->ready = calloc(1, sizeof(*cq->ready));
	if (!cq->ready)
		return -ENOMEM;
	qp->ready_bit = (uint16_t)(cq->ready->next_bit++ % SHM_CQ_READY_BITS);
	qp->bit_next = cq->ready->by_bit[qp->ready_bit];
	cq->ready->by_bit[qp->ready_bit] = qp;
	cq->ready->n++;
	return 0;
}

static void leave_place(struct hca_cq *cq, struct hca_qp *qp)
{
	struct hca_qp **at;

	if (qp->ready_bit == SHM_NO_READY_BIT) {
		cq->direct = NULL;
		return;
	}
	for (at = &cq->ready->by_bit[qp->ready_bit]; *at != qp; at = &(*at)->bit_next)
		;
	*at = qp->bit_next;
	cq->ready->n--;
}

int hca_cq_add_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity)
{
	int ret = 0;

	base_lock(&cq->lock);
	if (receives) {
		ret = find_place(cq, qp);
		if (ret)
			goto out;
	}
	cq->n_users++;
	cq->capacity_used += capacity;
	if (cq->capacity_used > cq->ring_size && !cq->counts_arrivals)
		ret = count_arrivals(cq);
	set_limit(cq);
	if (receives)
		TAILQ_INSERT_TAIL(&cq->users, qp, cq_entry);
out:
	base_unlock(&cq->lock);
	return ret;
}

/* Takes completions of @qp out of the local ring. */
static void purge(struct hca_cq *cq, const struct hca_qp *qp)
{
	uint32_t to = cq->head;

	for (uint32_t from = cq->head; from != cq->tail; from++)
		if (cq->ring[from % cq->ring_size].qp != qp)
			cq->ring[to++ % cq->ring_size] = cq->ring[from % cq->ring_size];
	cq->tail = to;
	set_limit(cq);
}

void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp)
{
	base_lock(&cq->lock);
	recount(cq);
	purge(cq, qp);
	base_unlock(&cq->lock);
}

void hca_cq_remove_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity)
{
	base_lock(&cq->lock);
	if (receives) {
		leave_place(cq, qp);
		TAILQ_REMOVE(&cq->users, qp, cq_entry);
		recount(cq);
	}
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
	int ret = 0;

	if (!cqe || cqe > cq->ctx->process->region.control->settings.max_cqe)
		return -EINVAL;
	ring = calloc(cqe, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	base_lock(&cq->lock);
	n = waiting = cq->tail - cq->head;
	TAILQ_FOREACH(qp, &cq->users, cq_entry)
	waiting += hca_recv_waiting(qp);
	old = cq->ring;
	if (waiting > cqe) {
		ret = -EINVAL;
		old = ring;
		goto out;
	}
	for (uint32_t i = 0; i < n; i++)
		ring[i] = cq->ring[(cq->head + i) % cq->ring_size];
	cq->ring = ring;
	cq->ring_size = cqe;
	cq->head = 0;
	cq->tail = n;
	cq->cq.cqe = (int)cqe;
	if (cq->capacity_used > cqe && !cq->counts_arrivals)
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

	if (!atomic_exchange_explicit(&shm->overrun, 1, memory_order_acq_rel))
		hca_request(p, CONTROL_RAISE_EVENT, &req, sizeof(req));
}

BASE_COLD void hca_cq_wake(struct hca_process *p, struct shm_cq *shm, uint32_t arm, bool solicited)
{
	if (arm == SHM_CQ_ARMED_SOLICITED && !solicited)
		return;
	/* whoever takes this upon him wakes without delay: nobody else does */
	hca_process_find_channel(p, shm->channel);
	if (!atomic_compare_exchange_strong_explicit(&shm->arm, &arm, SHM_CQ_IDLE,
	                                             memory_order_relaxed, memory_order_relaxed))
		return; /* somebody else wakes */
	/* release: pairs with the acquire in take_notified() */
	atomic_fetch_add_explicit(&shm->notified, 1, memory_order_release);
	hca_process_wake(p, shm->channel);
}

void hca_cq_arm(struct hca_cq *cq, bool solicited_only)
{
	if (!cq->ch)
		return;
	if (solicited_only &&
	    atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) == SHM_CQ_ARMED)
		return;
	/* seq_cst: before the program polls once more; pairs with hca_cq_notify() */
	atomic_store_explicit(&cq->shm->arm, solicited_only ? SHM_CQ_ARMED_SOLICITED : SHM_CQ_ARMED,
	                      memory_order_seq_cst);
	if (cq->ctx->wire)
		hca_wire_rest(cq->ctx->wire);
}

void hca_cq_push(struct hca_cq *cq, const struct hca_cqe *cqe)
{
	uint32_t unpolled;

	base_lock(&cq->lock);
	unpolled = cq->tail - cq->head;
	if (cq->counts_arrivals)
		unpolled += atomic_load_explicit(&cq->shm->arrived, memory_order_relaxed) -
		            cq->arrivals_polled;
	if ((int32_t)unpolled >= (int32_t)cq->ring_size) {
		base_unlock(&cq->lock);
		hca_cq_overrun(cq->ctx->process, cq->id, cq->shm);
		return;
	}
	cq->ring[cq->tail++ % cq->ring_size] = *cqe;
	set_limit(cq);
	base_unlock(&cq->lock);
	if (!cq->ch)
		return;
	atomic_thread_fence(memory_order_seq_cst); /* the completion before the look at arm */
	hca_cq_notify(cq->ctx->process, cq->shm, cqe->status != IBV_WC_SUCCESS);
}

void hca_cq_kick(struct hca_cq *cq, struct hca_qp *qp)
{
	if (qp->ready_bit < SHM_CQ_READY_BITS)
		atomic_fetch_or_explicit(&cq->shm->ready[qp->ready_bit / 64],
		                         1ull << (qp->ready_bit % 64), memory_order_release);
	if (cq->ch && hca_recv_pending(qp))
		hca_cq_notify(cq->ctx->process, cq->shm, true);
}

/* Completions of this process. Apart: mostly there are none. */
static __attribute__((noinline)) int poll_local(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = 0;

	while (done < n && cq->head != cq->tail) {
		const struct hca_cqe *e = &cq->ring[cq->head++ % cq->ring_size];

		memset(&wc[done], 0, sizeof(wc[done]));
		wc[done].wr_id = e->wr_id;
		wc[done].status = (enum ibv_wc_status)e->status;
		wc[done].opcode = IBV_WC_SEND;
		wc[done].qp_num = e->qp->ex.qp_base.qp_num;
		/* release: pairs with the acquire in post_one(): the slot is the poster's */
		atomic_store_explicit(&e->qp->sq_done, e->sq_after, memory_order_release);
		done++;
	}
	return done;
}

/* All rings of one ready bit. */
static int poll_chain(struct hca_cq *cq, unsigned bit, int n, struct ibv_wc *wc)
{
	int done = 0;

	for (struct hca_qp *qp = cq->ready->by_bit[bit]; qp && done < n; qp = qp->bit_next)
		if (hca_recv_pending(qp))
			done += hca_recv_poll(qp, n - done, wc + done, &cq->arrivals_polled);
	return done;
}

static bool chain_pending(struct hca_cq *cq, unsigned bit)
{
	struct hca_qp *qp = cq->ready->by_bit[bit];

	while (qp && !hca_recv_pending(qp))
		qp = qp->bit_next;
	return qp;
}

/* Watches a bit no more; it stays set if its rings have something after all. */
static void unwatch(struct hca_cq *cq, unsigned i)
{
	struct hca_ready *r = cq->ready;
	unsigned bit = r->watched[i].bit;
	_Atomic uint64_t *word = &cq->shm->ready[bit / 64];
	uint64_t mask = 1ull << (bit % 64);

	/* seq_cst: cleared before the rings are looked at; a sender publishes, then looks */
	atomic_fetch_and_explicit(word, ~mask, memory_order_seq_cst);
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

static int poll_watched(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	struct hca_ready *r = cq->ready;
	int done = 0;

	for (unsigned i = r->n_watched; i-- && done < n;) {
		int got = poll_chain(cq, r->watched[i].bit, n - done, wc + done);

		done += got;
		if (got)
			r->watched[i].idle = 0;
		else if (++r->watched[i].idle == IDLE_POLLS)
			unwatch(cq, i);
	}
	return done;
}

static unsigned map_words(const struct hca_ready *r)
{
	unsigned bits = r->next_bit < SHM_CQ_READY_BITS ? r->next_bit : SHM_CQ_READY_BITS;

	return (bits + 63) / 64;
}

static uint64_t unwatched_bits(const struct hca_cq *cq, unsigned word)
{
	return atomic_load_explicit(&cq->shm->ready[word], memory_order_acquire) &
	       ~cq->ready->is_watched[word];
}

/* Bits that are set and not watched yet. Mostly there are none: that is found out quickly. */
static int poll_map(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	unsigned words = map_words(cq->ready);
	uint64_t any = 0;
	int done = 0;

	for (unsigned word = 0; word < words; word++)
		any |= unwatched_bits(cq, word);
	if (!any)
		return 0;
	for (unsigned word = 0; word < words && done < n; word++) {
		uint64_t bits = unwatched_bits(cq, word);

		for (; bits && done < n; bits &= bits - 1) {
			unsigned bit = word * 64 + (unsigned)__builtin_ctzll(bits);

			watch(cq, bit);
			done += poll_chain(cq, bit, n - done, wc + done);
		}
	}
	return done;
}

static int poll_ready(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = poll_watched(cq, n, wc);

	/* "nothing" is said only after a look at everything: a program may go to sleep on it */
	if (!done || ++cq->ready->polls % MAP_POLLS == 0)
		done += poll_map(cq, n - done, wc + done);
	return done;
}

/* QPs whose receive failed, or all of them when the manager has gone, go to ERR. */
static BASE_COLD void fail_qps(struct hca_cq *cq, bool all)
{
	struct hca_qp *failed, *qp;

	for (;;) {
		failed = NULL;
		base_lock(&cq->lock);
		TAILQ_FOREACH(qp, &cq->users, cq_entry)
		{
			if (qp->failed || (all && hca_qp_state(qp) != IBV_QPS_RESET &&
			                   hca_qp_state(qp) != IBV_QPS_ERR)) {
				failed = qp;
				break;
			}
		}
		base_unlock(&cq->lock);
		if (!failed)
			return;
		hca_qp_enter_error(failed, !all);
	}
}

/*
 * Nothing is there; so many messages were announced. While a sender is in the middle of a list we
 * have caught up with it: to look at each slot while it is being written would cost both of us more
 * than to let it get ahead.
 */
static void found_nothing(struct hca_cq *cq, unsigned announced)
{
	for (unsigned i = 0; i < announced && i < MAX_PAUSES; i++)
		base_relax();
	if (hca_process_gone(cq->ctx->process) && !cq->gone_seen) {
		cq->gone_seen = true;
		fail_qps(cq, true);
	}
}

static BASE_HOT int poll_once(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	unsigned announced;
	bool failed;
	int done = 0;

	if (base_unlikely(atomic_load_explicit(&cq->shm->overrun, memory_order_relaxed)))
		return -EIO;
	base_lock(&cq->lock);
	if (cq->head != cq->tail)
		done = poll_local(cq, n, wc);
	if (cq->direct && done < n)
		done += hca_recv_poll(cq->direct, n - done, wc + done, &cq->arrivals_polled);
	if (cq->ready && cq->ready->n && done < n)
		done += poll_ready(cq, n - done, wc + done);
	set_limit(cq);
	failed = cq->failed;
	cq->failed = false;
	announced = cq->announced;
	if (!done)
		cq->announced = 0;
	base_unlock(&cq->lock);
	if (base_unlikely(failed))
		fail_qps(cq, false);
	if (!done)
		found_nothing(cq, announced);
	return done;
}

/* An Ethernet port: something may wait on the wire. */
static BASE_COLD int poll_wire(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	/* who has armed it goes to sleep if there is nothing now: no promise to look again */
	bool looks_again = atomic_load_explicit(&cq->shm->arm, memory_order_relaxed) == SHM_CQ_IDLE;

	return hca_wire_receive(cq->ctx->wire, looks_again) ? poll_once(cq, n, wc) : 0;
}

int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int done = poll_once(cq, n, wc);

	return base_likely(done || !cq->ctx->wire) ? done : poll_wire(cq, n, wc);
}
