/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion counters: see comp_counter.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "hca/queue/comp_counter.h"
#include "hca/queue/explain.h"
#include "shm/connection.h"

#define BIT(operation) (1u << (operation))
#define LOCAL          (BIT(HCA_COMP_KIND_SEND) | BIT(HCA_COMP_KIND_READ) | BIT(HCA_COMP_KIND_WRITE))
#define REMOTE         (BIT(HCA_COMP_KIND_REMOTE_READ) | BIT(HCA_COMP_KIND_REMOTE_WRITE))
#define DATAGRAM       (BIT(HCA_COMP_KIND_SEND) | BIT(HCA_COMP_KIND_RECEIVE))
#define READS          (BIT(HCA_COMP_KIND_READ) | BIT(HCA_COMP_KIND_REMOTE_READ))

/* Where room for completions that were set aside begins. */
#define ASIDE_FIRST 64

/* Operations of one kind of a queue pair. */
struct hca_counted_operation {
	struct hca_comp_counter *counter; /* NULL: they are not counted */
	struct hca_qp *qp;
	enum hca_comp_kind kind;
	LIST_ENTRY(hca_counted_operation) entry; /* of the counter */
	uint64_t requests, bytes, errors; /* remote: what the counter has of the shared ones */
};

/* A completion that was taken from the ring before it was polled. */
struct aside {
	struct ibv_wc wc;
	uint64_t arrived_ns;
};

struct hca_counted {
	struct hca_counted_operation operation[HCA_COMP_KINDS];
	bool over; /* its records in shared memory are not ours any more */
	int (*receive)(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);
	struct aside *aside; /* hca_rq.aside of them, from head on */
	uint32_t head, size;
};

/* ---- counting ---- */

static void add(struct hca_comp_counter *c, enum hca_comp_count which, uint64_t amount)
{
	/* release: a reader sees what the operation did; pairs with hca_comp_counter_read() */
	atomic_fetch_add_explicit(&c->count[which], amount, memory_order_release);
}

static void count(const struct hca_counted_operation *o, enum ibv_wc_status status, uint32_t bytes)
{
	struct hca_comp_counter *c = o->counter;

	if (!c)
		return;
	if (status == IBV_WC_SUCCESS)
		add(c, HCA_COMP_DONE, c->counts_bytes ? bytes : 1);
	else
		add(c, HCA_COMP_FAILED, 1);
}

/* The kind of a request; HCA_COMP_KINDS: one that is not counted. */
static enum hca_comp_kind kind_of(enum ibv_wr_opcode opcode)
{
	const unsigned op = hca_operation(opcode);

	if (op & HCA_OP_SEND)
		return HCA_COMP_KIND_SEND;
	if (op & HCA_OP_WRITE)
		return HCA_COMP_KIND_WRITE;
	return op & HCA_OP_READ ? HCA_COMP_KIND_READ : HCA_COMP_KINDS;
}

/* hca_qp.push of a queue pair that has its sends counted: it is told of each of them. */
static void counted_push(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
                         enum ibv_wc_status status)
{
	enum hca_comp_kind kind = kind_of(wr->opcode);

	if (kind != HCA_COMP_KINDS)
		count(&qp->counted->operation[kind], status, bytes);
	if ((wr->send_flags & IBV_SEND_SIGNALED) || qp->signal_all || status != IBV_WC_SUCCESS)
		hca_qp_push(qp, wr, bytes, status);
}

static void count_receives(const struct hca_counted *q, const struct ibv_wc *wc, int n)
{
	for (int i = 0; i < n; i++)
		count(&q->operation[HCA_COMP_KIND_RECEIVE], wc[i].status, wc[i].byte_len);
}

/* Adds what peers have done since the last time. */
static void count_remote(struct hca_counted_operation *o)
{
	const struct hca_qp *qp = o->qp;
	struct shm_connection *shm =
	        shm_connection_at(&qp->ctx->process->region, SHM_QP_INDEX(qp->sender.qpn));
	struct shm_remote *r =
	        o->kind == HCA_COMP_KIND_REMOTE_READ ? &shm->remote_reads : &shm->remote_writes;
	/* acquire: pairs with the release in count_remote(), responder.c */
	uint64_t requests = atomic_load_explicit(&r->requests, memory_order_acquire);
	uint64_t bytes = atomic_load_explicit(&r->bytes, memory_order_relaxed);
	uint64_t errors = atomic_load_explicit(&r->errors, memory_order_acquire);

	if (o->counter) {
		add(o->counter, HCA_COMP_DONE,
		    o->counter->counts_bytes ? bytes - o->bytes : requests - o->requests);
		add(o->counter, HCA_COMP_FAILED, errors - o->errors);
	}
	o->requests = requests;
	o->bytes = bytes;
	o->errors = errors;
}

/* ---- receives: polled, or set aside ---- */

/* Its own receive queue's queue pair. */
static struct hca_qp *qp_of(struct hca_rq *rq)
{
	return (struct hca_qp *)((char *)rq - offsetof(struct hca_qp, own_rq));
}

static void set_n_aside(struct hca_rq *rq, uint32_t n)
{
	atomic_store_explicit(&rq->aside, n, memory_order_relaxed);
}

static void take_oldest(struct hca_rq *rq, struct ibv_wc *wc)
{
	struct hca_counted *q = qp_of(rq)->counted;
	const struct aside *a = &q->aside[q->head];

	*wc = a->wc;
	rq->cq->arrived_ns = a->arrived_ns;
	q->head = (q->head + 1) % q->size;
	set_n_aside(rq, hca_rq_load(&rq->aside) - 1);
}

/* hca_rq.receive of a queue pair that has its receives counted. */
static int counted_receive(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals)
{
	const struct hca_counted *q = qp_of(rq)->counted;
	int done = 0, got = 0;

	while (done < n && hca_rq_load(&rq->aside))
		take_oldest(rq, &wc[done++]);
	*arrivals += (uint32_t)done;
	if (done < n)
		got = q->receive(rq, n - done, wc + done, arrivals);
	count_receives(q, wc + done, got);
	return done + got;
}

/* Doubles the room for completions that were set aside. */
static bool grow(struct hca_counted *q, uint32_t n)
{
	uint32_t size = q->size ? 2 * q->size : ASIDE_FIRST;
	struct aside *larger = calloc(size, sizeof(*larger));

	if (!larger)
		return false;
	for (uint32_t i = 0; i < n; i++)
		larger[i] = q->aside[(q->head + i) % q->size];
	free(q->aside);
	q->aside = larger;
	q->size = size;
	q->head = 0;
	return true;
}

/* Makes room for one more. False: there is none, as the CQ is full, or no memory. */
static bool make_room(struct hca_rq *rq)
{
	struct hca_counted *q = qp_of(rq)->counted;
	struct hca_cq *cq = rq->cq;
	uint32_t n = hca_rq_load(&rq->aside);
	struct ibv_wc lost;

	if (n >= cq->ring_size) {
		if (!hca_rq_has_arrived(rq))
			return false;
		if (!cq->ignores_overrun) {
			hca_cq_overrun(cq->ctx->process, cq->id, cq->shm);
			return false;
		}
		take_oldest(rq, &lost);
		cq->arrivals_polled++;
		n--;
	}
	return n < q->size || grow(q, n);
}

/*
 * Sets the next completion aside. False: there is none. For the CQ it is not polled yet, so an
 * arrival counts as polled only if it gave no completion.
 */
static bool set_aside(struct hca_rq *rq)
{
	struct hca_counted *q = qp_of(rq)->counted;
	uint32_t arrivals = 0, n;
	struct ibv_wc wc;
	int got;

	if (!make_room(rq))
		return false;
	got = q->receive(rq, 1, &wc, &arrivals);
	rq->cq->arrivals_polled += arrivals - (uint32_t)got;
	rq->announced = 0;
	if (!got)
		return false;
	count_receives(q, &wc, 1);
	n = hca_rq_load(&rq->aside);
	q->aside[(q->head + n) % q->size] =
	        (struct aside){ .wc = wc, .arrived_ns = rq->cq->arrived_ns };
	rq->cq->arrived_ns = 0;
	set_n_aside(rq, n + 1);
	return true;
}

/* Sets aside what has come: as many as there were at first, as others may go on sending. */
static void set_all_aside(struct hca_rq *rq)
{
	for (uint32_t left = 1u << rq->ring_shift; left && set_aside(rq); left--)
		;
	if (hca_rq_load(&rq->aside))
		hca_cq_set_ready(rq->cq->shm, rq->ready_bit);
}

void hca_counted_update(struct hca_qp *qp)
{
	struct hca_counted *q = qp->counted;
	struct hca_rq *rq = qp->rq;

	if (!q || q->over)
		return;
	count_remote(&q->operation[HCA_COMP_KIND_REMOTE_READ]);
	count_remote(&q->operation[HCA_COMP_KIND_REMOTE_WRITE]);
	if (q->operation[HCA_COMP_KIND_RECEIVE].counter)
		set_all_aside(rq);
}

/* The queue pair's state for its first counter, or for completions that are set aside. */
static struct hca_counted *counted_new(struct hca_qp *qp)
{
	struct hca_counted *q = calloc(1, sizeof(*q));

	for (unsigned i = 0; q && i < HCA_COMP_KINDS; i++) {
		q->operation[i].qp = qp;
		q->operation[i].kind = (enum hca_comp_kind)i;
	}
	return q;
}

/* From now on completions of receives may be set aside. */
static void begin_aside(struct hca_qp *qp)
{
	if (qp->counted->receive)
		return;
	qp->counted->receive = qp->rq->receive;
	qp->rq->receive = counted_receive;
}

void hca_counted_take(struct hca_rq *rq)
{
	struct hca_qp *qp = qp_of(rq);

	if (!hca_rq_has_arrived(rq))
		return;
	if (!qp->counted)
		qp->counted = counted_new(qp);
	if (!qp->counted || qp->counted->over)
		return;
	begin_aside(qp);
	rq->known = (struct hca_mr_known){ .doubts = true };
	set_all_aside(rq);
	rq->known = (struct hca_mr_known){ 0 };
}

void hca_counted_close(struct hca_qp *qp)
{
	if (qp->counted)
		qp->counted->over = true;
}

void hca_counted_drop(struct hca_rq *rq)
{
	set_n_aside(rq, 0);
}

/* ---- counters ---- */

int hca_comp_counter_create(struct hca_context *ctx, bool bytes, struct hca_comp_counter **out)
{
	struct hca_comp_counter *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_lock(&ctx->lock);
	if (ctx->n_comp_counters == HCA_MAX_COMP_COUNTERS) {
		pthread_mutex_unlock(&ctx->lock);
		free(c);
		return -ENOMEM;
	}
	ctx->n_comp_counters++;
	ctx->n_objects++;
	c->handle = ctx->next_comp_counter++;
	pthread_mutex_unlock(&ctx->lock);
	c->context = &ctx->vctx.context;
	c->counts_bytes = bytes;
	pthread_mutex_init(&c->lock, NULL);
	LIST_INIT(&c->uses);
	*out = c;
	return 0;
}

int hca_comp_counter_destroy(struct hca_comp_counter *c)
{
	struct hca_context *ctx = hca_context(c->context);
	bool used;

	pthread_mutex_lock(&c->lock);
	used = !LIST_EMPTY(&c->uses);
	pthread_mutex_unlock(&c->lock);
	if (used)
		return -EBUSY;
	pthread_mutex_lock(&ctx->lock);
	ctx->n_comp_counters--;
	ctx->n_objects--;
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return 0;
}

/* Does what polling would do for what @c counts. */
static void collect(struct hca_comp_counter *c)
{
	const struct hca_counted_operation *o;

	pthread_mutex_lock(&c->lock);
	LIST_FOREACH(o, &c->uses, entry)
	{
		if (BIT(o->kind) & LOCAL)
			hca_cq_progress(o->qp->send_cq, NULL);
		else
			hca_cq_progress(o->qp->rq->cq, o->qp);
	}
	pthread_mutex_unlock(&c->lock);
}

uint64_t hca_comp_counter_read(struct hca_comp_counter *c, enum hca_comp_count which)
{
	collect(c);
	/* acquire: pairs with the release in add() */
	return atomic_load_explicit(&c->count[which], memory_order_acquire);
}

void hca_comp_counter_set(struct hca_comp_counter *c, enum hca_comp_count which, uint64_t value)
{
	collect(c); /* what is done counts as before */
	atomic_store_explicit(&c->count[which], value, memory_order_release);
}

void hca_comp_counter_add(struct hca_comp_counter *c, enum hca_comp_count which, uint64_t amount)
{
	add(c, which, amount);
}

/* ---- queue pairs ---- */

static uint32_t operations_of(const struct hca_qp *qp)
{
	switch (qp->transport->type) {
	case IBV_QPT_RC:
		return HCA_COMP_COUNTER_OPERATIONS;
	case IBV_QPT_UC:
		return HCA_COMP_COUNTER_OPERATIONS & ~READS;
	default:
		return DATAGRAM;
	}
}

/* Has @c count operation @kind. With the locks of send queue and receives' CQ held. */
static void use(struct hca_comp_counter *c, struct hca_qp *qp, enum hca_comp_kind kind)
{
	struct hca_counted_operation *o = &qp->counted->operation[kind];

	if (BIT(kind) & LOCAL) {
		qp->push = counted_push;
		qp->push_all = true;
	}
	if (BIT(kind) & REMOTE) {
		count_remote(o); /* those of the number's owner before */
		qp->counts_remote = true;
	}
	if (kind == HCA_COMP_KIND_RECEIVE)
		begin_aside(qp);
	o->counter = c;
	LIST_INSERT_HEAD(&c->uses, o, entry);
}

/* -ENOMEM, or -EBUSY: a counter has one of the operations. With these locks held. */
static int may_use(struct hca_qp *qp, uint32_t operations)
{
	if (!qp->counted)
		qp->counted = counted_new(qp);
	if (!qp->counted)
		return -ENOMEM;
	for (unsigned i = 0; i < HCA_COMP_KINDS; i++)
		if ((operations & BIT(i)) && qp->counted->operation[i].counter)
			return base_because(-EBUSY,
			                    "another counter counts one of these operations");
	return 0;
}

/* With the send lock held. */
static int attach(struct hca_comp_counter *c, struct hca_qp *qp, uint32_t operations)
{
	struct hca_cq *recv_cq = qp->rq->cq;
	enum ibv_qp_state state = hca_qp_state(qp);
	int ret;

	if (state != IBV_QPS_RESET && state != IBV_QPS_INIT)
		return base_because(-EINVAL,
		                    "QP 0x%06x is in %s: counters are attached in RESET or INIT",
		                    qp->sender.qpn, hca_state_name(state));
	base_lock(&recv_cq->lock);
	ret = may_use(qp, operations);
	for (unsigned i = 0; !ret && i < HCA_COMP_KINDS; i++)
		if (operations & BIT(i))
			use(c, qp, (enum hca_comp_kind)i);
	base_unlock(&recv_cq->lock);
	return ret;
}

int hca_comp_counter_attach(struct hca_comp_counter *c, struct hca_qp *qp, uint32_t operations)
{
	bool locked;
	int ret;

	if (!operations || c->context != qp->ex.qp_base.context)
		return -EINVAL;
	if (operations & ~operations_of(qp))
		return base_because(-EOPNOTSUPP, "%s queue pairs have no operations 0x%x to count",
		                    qp->transport->name, operations & ~operations_of(qp));
	pthread_mutex_lock(&c->lock);
	locked = hca_wr_lock(qp);
	ret = attach(c, qp, operations);
	if (locked)
		base_unlock(&qp->send_lock);
	pthread_mutex_unlock(&c->lock);
	return ret;
}

void hca_counted_free(struct hca_qp *qp)
{
	struct hca_counted *q = qp->counted;

	for (unsigned i = 0; q && i < HCA_COMP_KINDS; i++) {
		struct hca_counted_operation *o = &q->operation[i];

		if (!o->counter)
			continue;
		pthread_mutex_lock(&o->counter->lock);
		LIST_REMOVE(o, entry);
		pthread_mutex_unlock(&o->counter->lock);
	}
	if (q)
		free(q->aside);
	free(q);
}
