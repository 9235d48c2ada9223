/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues: see srq.h.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "base/util.h"
#include "hca/connected.h"
#include "hca/srq.h"

/* ---- life ---- */

static int allocate(struct hca_srq *srq)
{
	size_t positions = (size_t)1 << srq->ring_shift;

	srq->room = srq->max_wr;
	srq->receive = calloc(srq->max_wr, sizeof(*srq->receive));
	srq->sge = calloc((size_t)srq->max_wr * srq->max_sge, sizeof(*srq->sge));
	srq->at_position = calloc(positions, sizeof(*srq->at_position));
	if (!srq->receive || !srq->sge || !srq->at_position)
		return -ENOMEM;
	for (uint32_t i = 0; i < srq->max_wr; i++)
		srq->receive[i].next_free = i + 1 < srq->max_wr ? i + 2 : 0;
	srq->first_free = 1;
	return 0;
}

static void free_srq(struct hca_srq *srq)
{
	free(srq->receive);
	free(srq->sge);
	free(srq->at_position);
	free(srq);
}

static void init_public(struct hca_srq *srq, struct ibv_pd *pd, void *srq_context)
{
	srq->srq.context = pd->context;
	srq->srq.srq_context = srq_context;
	srq->srq.pd = pd;
	srq->srq.handle = srq->index;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
}

/* Now the program knows it. */
static void enter(struct hca_srq *srq, struct ibv_pd *pd, void *srq_context)
{
	init_public(srq, pd, srq_context);
	hca_async_source_init(&srq->async);
	if (srq->xrc)
		srq->xrc->async = &srq->async;
	pthread_mutex_lock(&srq->ctx->lock);
	LIST_INSERT_HEAD(&srq->ctx->srqs, srq, entry);
	srq->ctx->n_objects++;
	pthread_mutex_unlock(&srq->ctx->lock);
	hca_pd_use(pd);
}

/* For @asked receives; one that asks for too many is refused by the daemon. */
static uint32_t size_of(const struct hca_context *ctx, uint32_t asked)
{
	const uint32_t most = ctx->process->region.control->settings.max_qp_wr;

	return asked > most ? asked : hca_queue_size(ctx->process, asked, most);
}

/* Has the queue post to the ring that the daemon has made, which is empty. */
static void use_ring(struct hca_srq *srq, const struct control_create_srq_reply *made)
{
	srq->ring = shm_data_at(&srq->ctx->process->region, made->ring_off);
	srq->entries = shm_data_at(&srq->ctx->process->region, made->entries_off);
	srq->ring_shift = made->ring_shift;
	srq->ring_gen = made->ring_gen;
	srq->posted = srq->consumed = 0;
}

int hca_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct hca_srq **out)
{
	struct hca_context *ctx = hca_context(pd->context);
	struct control_create_srq req = { .hca_handle = ctx->handle,
		                          .max_wr = size_of(ctx, attr->attr.max_wr),
		                          .max_sge = attr->attr.max_sge ? attr->attr.max_sge : 1 };
	struct control_create_srq_reply rep;
	struct hca_srq *srq;
	int ret;

	if (attr->attr.srq_limit > attr->attr.max_wr)
		return base_because(-EINVAL, "srq_limit %u is more than max_wr %u",
		                    attr->attr.srq_limit, attr->attr.max_wr);
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	ret = hca_ask_memory(ctx->process, &CONTROL_CALL(CONTROL_CREATE_SRQ, &req, &rep));
	if (ret)
		goto err_free;
	srq->ctx = ctx;
	srq->domain = hca_pd(pd)->domain;
	srq->index = rep.srq;
	srq->max_wr = req.max_wr;
	srq->max_sge = req.max_sge;
	use_ring(srq, &rep);
	TAILQ_INIT(&srq->qps);
	ret = allocate(srq);
	if (ret)
		goto err_destroy;
	enter(srq, pd, attr->srq_context);
	attr->attr.max_sge = srq->max_sge;
	attr->attr.max_wr = srq->max_wr;
	*out = srq;
	return 0;
err_destroy:
	hca_post(ctx->process, CONTROL_DESTROY_SRQ, &(struct control_handle){ .handle = rep.srq },
	         sizeof(struct control_handle));
err_free:
	free_srq(srq);
	return ret;
}

/* The queue pair that an XRC one is. */
static int make_xrc(struct hca_context *ctx, struct ibv_pd *pd,
                    const struct ibv_srq_init_attr_ex *init, struct hca_qp **out)
{
	const struct ibv_qp_init_attr_ex attr = {
		.send_cq = init->cq,
		.recv_cq = init->cq,
		.cap = { .max_recv_wr = init->attr.max_wr,
		         .max_recv_sge = init->attr.max_sge ? init->attr.max_sge : 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD,
		.pd = pd,
		.xrcd = init->xrcd,
	};
	int ret = hca_qp_create_as(ctx, &hca_xrc_srq, &attr, 0, out);

	if (ret)
		return ret;
	ret = hca_qp_start(*out);
	if (ret)
		hca_qp_destroy(*out);
	return ret;
}

int hca_srq_create_xrc(struct ibv_pd *pd, struct ibv_srq_init_attr_ex *init, struct hca_srq **out)
{
	struct hca_context *ctx = hca_context(pd->context);
	struct hca_srq *srq;
	int ret;

	if (!init->attr.max_wr || init->attr.srq_limit > init->attr.max_wr)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	ret = make_xrc(ctx, pd, init, &srq->xrc);
	if (ret) {
		free_srq(srq);
		return ret;
	}
	srq->ctx = ctx;
	srq->domain = hca_pd(pd)->domain;
	srq->index = SHM_XRC_SRQ | srq->xrc->sender.qpn;
	srq->max_wr = srq->xrc->cap.max_recv_wr;
	srq->max_sge = srq->xrc->cap.max_recv_sge;
	srq->ring = srq->xrc->rq->ring;
	TAILQ_INIT(&srq->qps);
	enter(srq, pd, init->srq_context);
	init->attr.max_sge = srq->max_sge;
	init->attr.max_wr = srq->max_wr;
	*out = srq;
	return 0;
}

static void wait_acked(struct hca_srq *srq)
{
	pthread_mutex_lock(&srq->srq.mutex);
	while (srq->srq.events_completed != srq->async_events_got)
		pthread_cond_wait(&srq->srq.cond, &srq->srq.mutex);
	pthread_mutex_unlock(&srq->srq.mutex);
}

int hca_srq_destroy(struct hca_srq *srq)
{
	struct hca_context *ctx = srq->ctx;
	bool used;

	base_lock(&srq->lock);
	used = !TAILQ_EMPTY(&srq->qps);
	base_unlock(&srq->lock);
	if (used)
		return base_because(-EBUSY, "queue pairs still use it: destroy them first");
	if (srq->xrc)
		hca_qp_destroy(srq->xrc);
	else
		hca_async_end(ctx, &srq->async, CONTROL_DESTROY_SRQ, srq->index, NULL);
	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(srq, entry);
	ctx->n_objects--;
	pthread_mutex_unlock(&ctx->lock);
	wait_acked(srq);
	hca_pd_unuse(srq->srq.pd);
	pthread_mutex_destroy(&srq->srq.mutex);
	pthread_cond_destroy(&srq->srq.cond);
	free_srq(srq);
	return 0;
}

void hca_srq_check_limit(struct hca_process *p, struct shm_ring *ring, uint32_t index,
                         uint32_t next)
{
	struct control_raise_event req = { .type = IBV_EVENT_SRQ_LIMIT_REACHED, .element = index };
	/* acquire: with the limit come the credits that were posted before it was set */
	uint32_t limit = atomic_load_explicit(&ring->limit, memory_order_acquire);
	int32_t left = (int32_t)(atomic_load_explicit(&ring->posted, memory_order_relaxed) - next);

	if (!limit || left >= (int32_t)limit ||
	    !atomic_compare_exchange_strong_explicit(&ring->limit, &limit, 0, memory_order_acq_rel,
	                                             memory_order_relaxed))
		return;
	/* release: pairs with the acquire in daemon_srq_limit() */
	atomic_store_explicit(&ring->limit_reached, 1, memory_order_release);
	hca_request(p, CONTROL_RAISE_EVENT, &req, sizeof(req));
}

static void check_limit(struct hca_srq *srq)
{
	hca_srq_check_limit(srq->ctx->process, srq->ring, srq->index,
	                    atomic_load_explicit(&srq->ring->tail, memory_order_relaxed));
}

void hca_srq_query(struct hca_srq *srq, struct ibv_srq_attr *attr)
{
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = atomic_load_explicit(&srq->ring->limit, memory_order_relaxed);
}

/* ---- posting ---- */

/* Makes the next position a credit for receive @n. */
static void add_credit(struct hca_srq *srq, uint32_t n)
{
	struct shm_arrival *slot = shm_ring_slot(srq->ring, srq->ring_shift, srq->posted);
	const struct ibv_sge *sge = &srq->sge[(size_t)n * srq->max_sge];
	const uint32_t n_sge = srq->receive[n].n_sge;

	srq->at_position[srq->posted & ((1u << srq->ring_shift) - 1)] = n;
	srq->receive[n].position = srq->posted;
	srq->receive[n].used = false;
	slot->imm = n;
	slot->operation = n_sge == 1;
	slot->receive.length = n_sge;
	if (n_sge == 1) {
		slot->receive.addr = sge->addr;
		slot->receive.length = sge->length;
		slot->receive.lkey = sge->lkey;
	} else {
		memcpy((void *)(srq->entries + (size_t)n * srq->max_sge), sge,
		       n_sge * sizeof(*sge));
	}
	shm_ring_post(srq->ring, srq->ring_shift, srq->ring_gen, srq->posted, 1);
	srq->posted++;
}

/* Goes past positions that were claimed and given up. What a dead process had claimed and not used
 * is posted again. */
static void reclaim(struct hca_srq *srq)
{
	uint32_t end = srq->posted;

	while (srq->consumed != end) {
		enum shm_slot_kind kind = shm_ring_peek(srq->ring, srq->ring_shift, srq->consumed);
		uint32_t n = srq->at_position[srq->consumed & ((1u << srq->ring_shift) - 1)];

		if (kind == SHM_SLOT_CLOSED)
			break;
		shm_ring_consume(srq->ring, ++srq->consumed);
		if (kind == SHM_SLOT_VOID)
			add_credit(srq, n);
	}
}

/* Whether the ring has room for a credit. */
static bool has_room(struct hca_srq *srq)
{
	if (srq->posted - srq->consumed == 1u << srq->ring_shift)
		reclaim(srq);
	return srq->posted - srq->consumed < 1u << srq->ring_shift;
}

static int post_one(struct hca_srq *srq, const struct ibv_recv_wr *wr)
{
	struct hca_srq_receive *r;
	uint32_t n;

	if ((uint32_t)wr->num_sge > srq->max_sge) /* negative ones too */
		return base_because(-EINVAL, "num_sge is %d: the queue has max_sge %u", wr->num_sge,
		                    srq->max_sge);
	if (srq->n_used >= srq->max_wr || !has_room(srq))
		return base_because(-ENOMEM,
		                    "the shared receive queue is full: it has room for %u requests "
		                    "(max_wr) that are not completed",
		                    srq->max_wr);
	n = srq->first_free - 1;
	r = &srq->receive[n];
	srq->first_free = r->next_free;
	r->wr_id = wr->wr_id;
	r->n_sge = (uint32_t)wr->num_sge;
	r->in_use = true;
	srq->n_used++;
	if (wr->num_sge)
		memcpy(&srq->sge[(size_t)n * srq->max_sge], wr->sg_list,
		       r->n_sge * sizeof(*wr->sg_list));
	add_credit(srq, n);
	return 0;
}

/* Requests wait for receives: each of the queue pairs has its turn. */
static BASE_COLD void help_all(struct hca_srq *srq)
{
	struct hca_qp *qp;
	unsigned n = 0;

	base_lock(&srq->lock);
	TAILQ_FOREACH(qp, &srq->qps, srq_entry)
	n++;
	for (; n && (qp = TAILQ_FIRST(&srq->qps)); n--) {
		TAILQ_REMOVE(&srq->qps, qp, srq_entry);
		TAILQ_INSERT_TAIL(&srq->qps, qp, srq_entry);
		atomic_fetch_add_explicit(&qp->in_use, 1, memory_order_relaxed);
		base_unlock(&srq->lock);
		if (qp->rq->connected) /* UD's senders do not wait */
			hca_connected_help(qp);
		/* release: pairs with the acquire in hca_qp_destroy() */
		atomic_fetch_sub_explicit(&qp->in_use, 1, memory_order_release);
		base_lock(&srq->lock);
	}
	base_unlock(&srq->lock);
}

int hca_srq_post(struct hca_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int ret = hca_process_gone(srq->ctx->process) ? -EIO : 0;
	struct shm_ring *ring;

	if (srq->xrc)
		return hca_rq_post(srq->xrc->rq, wr, bad);
	base_lock(&srq->lock);
	for (; !ret && wr; wr = wr->next) {
		ret = post_one(srq, wr);
		if (ret)
			break;
	}
	ring = srq->ring; /* another one after the lock is left, once it has grown */
	base_unlock(&srq->lock);
	if (ret)
		*bad = wr;
	atomic_thread_fence(memory_order_seq_cst); /* the credits before the look */
	if (base_unlikely(atomic_load_explicit(&ring->waited_for, memory_order_relaxed)) &&
	    atomic_exchange_explicit(&ring->waited_for, 0, memory_order_seq_cst))
		help_all(srq);
	return ret;
}

/*
 * ---- size ----
 *
 * A queue that grows has another ring, to which its credits move. What others see, in this order:
 *
 *               old ring        new ring       who finds no credit
 *  it stays     credits                        there is none: RNR
 *  it leaves    credits, moving                tries again
 *  between      fewer, moving   none, moving   tries again; the record names the new ring by now
 *  it is there  none, moving    credits        in the new one there is none: RNR
 *
 * A credit is in one ring only: what is posted in the new one was withdrawn from the old one
 * before. Whoever posts, polls or resizes waits for the lock meanwhile.
 */

/* It leaves: seq_cst, before the daemon's record names another ring. */
static void begin_move(struct shm_ring *old)
{
	atomic_store_explicit(&old->moving, 1, memory_order_seq_cst);
}

/* It stays where it is, or is there: all credits are posted in @ring. */
static void end_move(struct shm_ring *ring)
{
	/* release: pairs with the acquire in is_moving() in exchange.c */
	atomic_store_explicit(&ring->moving, 0, memory_order_release);
}

/* Enlarges the memory to @room receives, and keeps the present ones. -ENOMEM. */
static int make_room(struct hca_srq *srq, uint32_t room)
{
	struct hca_srq_receive *receive = realloc(srq->receive, room * sizeof(*srq->receive));
	struct ibv_sge *sge;
	uint32_t *at;

	if (receive)
		srq->receive = receive;
	sge = realloc(srq->sge, (size_t)room * srq->max_sge * sizeof(*srq->sge));
	if (sge)
		srq->sge = sge;
	at = realloc(srq->at_position, 4 * (size_t)room * sizeof(*srq->at_position));
	if (at)
		srq->at_position = at;
	return receive && sge && at ? 0 : -ENOMEM;
}

/* Adds free receives behind the present ones, up to @room. */
static void add_room(struct hca_srq *srq, uint32_t room)
{
	for (uint32_t i = srq->room; i < room; i++)
		srq->receive[i] =
		        (struct hca_srq_receive){ .next_free =
			                                  i + 1 < room ? i + 2 : srq->first_free };
	srq->first_free = srq->room + 1;
	srq->room = room;
}

/* No credit is left in the ring: waits for those that senders are about to use. One that is stopped
 * meanwhile uses it later: the ring and the entries stay. */
static void wait_for_senders(struct hca_srq *srq)
{
	uint64_t began = base_now_ns();

	for (uint32_t pos = srq->consumed; pos != srq->posted; pos++)
		while (shm_ring_peek(srq->ring, srq->ring_shift, pos) == SHM_SLOT_CLOSED) {
			if (base_now_ns() - began > HCA_CONNECTED_WAIT_NS ||
			    hca_process_gone(srq->ctx->process))
				return;
			sched_yield();
		}
}

/* Takes all credits out of the ring. Returns how many: *@moved has the numbers of their receives.
 */
static uint32_t withdraw(struct hca_srq *srq, uint32_t *moved)
{
	uint32_t n = 0;

	shm_ring_withdraw(srq->ring, srq->ring_shift, srq->ring_gen, srq->consumed, srq->posted);
	wait_for_senders(srq);
	for (uint32_t i = 0; i < srq->room; i++)
		srq->receive[i].used = srq->receive[i].in_use;
	for (uint32_t pos = srq->consumed; pos != srq->posted; pos++)
		if (shm_ring_peek(srq->ring, srq->ring_shift, pos) == SHM_SLOT_VOID)
			moved[n++] = srq->at_position[pos & ((1u << srq->ring_shift) - 1)];
	return n;
}

/* The event is due for the credits of the new ring from now on. */
static void move_limit(struct shm_ring *old, struct shm_ring *next)
{
	atomic_store_explicit(&next->limit,
	                      atomic_exchange_explicit(&old->limit, 0, memory_order_acq_rel),
	                      memory_order_seq_cst);
}

/* From between to there. @moved has room for all positions of the old ring. */
static void move(struct hca_srq *srq, const struct control_create_srq_reply *next, uint32_t room,
                 uint32_t *moved)
{
	struct shm_ring *old = srq->ring;
	const uint32_t n = withdraw(srq, moved);

	use_ring(srq, next);
	add_room(srq, room);
	for (uint32_t i = 0; i < n; i++)
		add_credit(srq, moved[i]);
	move_limit(old, srq->ring);
	end_move(srq->ring);
	/* who has found no credit there, and holds its queue's lock, is to look again */
	atomic_store_explicit(&old->waited_for, 0, memory_order_seq_cst);
	check_limit(srq);
}

/* With the lock held. */
static int grow(struct hca_srq *srq, uint32_t max_wr)
{
	const uint32_t most = srq->ctx->process->region.control->settings.max_qp_wr;
	uint32_t room = max_wr > 2 * srq->room ? max_wr : 2 * srq->room;
	struct control_resize_srq req = { .srq = srq->index, .max_wr = room < most ? room : most };
	uint32_t *moved = malloc(sizeof(*moved) << srq->ring_shift);
	struct control_create_srq_reply rep;
	int ret = moved ? make_room(srq, req.max_wr) : -ENOMEM;

	if (ret)
		goto out;
	reclaim(srq);
	begin_move(srq->ring);
	ret = hca_ask_memory(srq->ctx->process, &CONTROL_CALL(CONTROL_RESIZE_SRQ, &req, &rep));
	if (ret)
		end_move(srq->ring);
	else
		move(srq, &rep, req.max_wr, moved);
out:
	free(moved);
	return ret;
}

/* With the lock held. */
static int resize(struct hca_srq *srq, uint32_t max_wr)
{
	int ret = 0;

	if (max_wr < srq->n_used)
		return base_because(-EINVAL, "max_wr is %u: %u receives are posted", max_wr,
		                    srq->n_used);
	if (max_wr > srq->room)
		ret = grow(srq, max_wr);
	if (!ret)
		srq->max_wr = max_wr;
	return ret;
}

static int check_modify(const struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	const struct shm_settings *s = &srq->ctx->process->region.control->settings;
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->max_wr;
	uint32_t limit = mask & IBV_SRQ_LIMIT
	                         ? attr->srq_limit
	                         : atomic_load_explicit(&srq->ring->limit, memory_order_relaxed);

	if (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR) || (mask & IBV_SRQ_MAX_WR && srq->xrc))
		return base_because(-EINVAL, "limit and size can be modified, and an XRC queue's "
		                             "limit alone");
	if (!max_wr || max_wr > s->max_qp_wr || limit > max_wr)
		return base_because(-EINVAL,
		                    "max_wr is %u, srq_limit %u: the limit is at most max_wr, and "
		                    "that at most %u",
		                    max_wr, limit, s->max_qp_wr);
	return 0;
}

int hca_srq_modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	int ret;

	base_lock(&srq->lock);
	ret = check_modify(srq, attr, mask);
	if (!ret && (mask & IBV_SRQ_MAX_WR))
		ret = resize(srq, size_of(srq->ctx, attr->max_wr));
	if (!ret && (mask & IBV_SRQ_LIMIT)) {
		/* seq_cst: before the look at the credits; pairs with take_shared() in exchange.c
		 */
		atomic_store_explicit(&srq->ring->limit, attr->srq_limit, memory_order_seq_cst);
		check_limit(srq);
	}
	base_unlock(&srq->lock);
	if (!ret && (mask & IBV_SRQ_MAX_WR))
		help_all(srq);
	return ret;
}

/* ---- queue pairs ---- */

void hca_srq_add_qp(struct hca_srq *srq, struct hca_qp *qp)
{
	base_lock(&srq->lock);
	TAILQ_INSERT_TAIL(&srq->qps, qp, srq_entry);
	base_unlock(&srq->lock);
}

void hca_srq_remove_qp(struct hca_srq *srq, struct hca_qp *qp)
{
	base_lock(&srq->lock);
	TAILQ_REMOVE(&srq->qps, qp, srq_entry);
	base_unlock(&srq->lock);
}

/* With the lock held. */
static bool take(struct hca_srq *srq, uint32_t n, uint64_t *wr_id, struct ibv_sge *sge,
                 uint32_t *n_sge)
{
	struct hca_srq_receive *r = &srq->receive[n];

	if (n >= srq->room || !r->in_use)
		return false;
	*wr_id = r->wr_id;
	*n_sge = r->n_sge;
	memcpy(sge, &srq->sge[(size_t)n * srq->max_sge], r->n_sge * sizeof(*sge));
	r->in_use = false;
	srq->n_used--;
	r->next_free = srq->first_free;
	srq->first_free = n + 1;
	return true;
}

bool hca_srq_take(struct hca_srq *srq, uint32_t n, uint64_t *wr_id, struct ibv_sge *sge,
                  uint32_t *n_sge)
{
	bool found;

	base_lock(&srq->lock);
	found = take(srq, n, wr_id, sge, n_sge);
	base_unlock(&srq->lock);
	return found;
}

void hca_srq_return(struct hca_srq *srq, uint32_t n)
{
	base_lock(&srq->lock);
	/* if its credit is not used up, or is void, reclaim() sees to it */
	if (n < srq->room && srq->receive[n].in_use &&
	    (srq->receive[n].used || shm_ring_peek(srq->ring, srq->ring_shift,
	                                           srq->receive[n].position) == SHM_SLOT_DONE) &&
	    has_room(srq))
		add_credit(srq, n);
	base_unlock(&srq->lock);
}

/* With the lock held. */
static bool take_next(struct hca_srq *srq, uint16_t writer, uint64_t *wr_id, struct ibv_sge *sge,
                      uint32_t *n_sge)
{
	const struct shm_ring_view v =
	        shm_ring_view(srq->ring, srq->ring_shift, srq->ring_gen, writer);
	uint32_t pos;
	struct shm_arrival *slot = shm_ring_claim(&v, &pos);
	bool found;

	if (!slot)
		return false;
	found = take(srq, slot->imm, wr_id, sge, n_sge);
	shm_ring_publish(&v, slot, pos);
	check_limit(srq);
	return found;
}

bool hca_srq_take_next(struct hca_srq *srq, uint16_t writer, uint64_t *wr_id, struct ibv_sge *sge,
                       uint32_t *n_sge)
{
	bool found;

	/* before the ring is looked at: it may be about to become a larger one */
	base_lock(&srq->lock);
	found = take_next(srq, writer, wr_id, sge, n_sge);
	base_unlock(&srq->lock);
	return found;
}
