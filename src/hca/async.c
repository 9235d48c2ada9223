/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events: see async.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/signals.h"
#include "hca/qp.h"
#include "hca/srq.h"
#include "shm/events.h"

#define PATIENCE_MS 1000

/* One that was received and that nobody has got. */
struct hca_async_event {
	TAILQ_ENTRY(hca_async_event) of_context, of_source;
	struct hca_async_source *source; /* NULL: it is about a port */
	struct control_event event;
};

void hca_async_init(struct hca_async *a)
{
	pthread_mutex_init(&a->lock, NULL);
	TAILQ_INIT(&a->kept);
}

void hca_async_source_init(struct hca_async_source *s)
{
	TAILQ_INIT(&s->kept);
	s->n_got = 0;
}

/* ---- what an event is about ---- */

struct object {
	enum { CQ, QP, SRQ, PORT, DEVICE } kind;
	union {
		struct hca_cq *cq;
		struct hca_qp *qp;
		struct hca_srq *srq;
	};
	struct hca_async_source *source;
	uint32_t *to_be_acked;
};

static struct object cq_of(const struct hca_context *ctx, uint32_t id)
{
	struct hca_cq *cq = id < SHM_MAX_CQS ? ctx->cq_by_id[id] : NULL;

	return (struct object){ .kind = CQ,
		                .cq = cq,
		                .source = cq ? &cq->async : NULL,
		                .to_be_acked = cq ? &cq->async_events_got : NULL };
}

static struct object qp_of(const struct hca_context *ctx, uint32_t qpn)
{
	struct hca_qp *qp = ctx->qp_by_index[SHM_QP_INDEX(qpn)];

	if (qp && qp->ex.qp_base.qp_num != qpn)
		qp = NULL;
	return (struct object){ .kind = QP,
		                .qp = qp,
		                .source = qp ? qp->async : NULL,
		                .to_be_acked = qp ? &qp->async_events_got : NULL };
}

static struct object srq_of(const struct hca_context *ctx, uint32_t index)
{
	struct hca_srq *srq;

	LIST_FOREACH(srq, &ctx->srqs, entry)
	if (srq->index == index)
		break;
	return (struct object){ .kind = SRQ,
		                .srq = srq,
		                .source = srq ? &srq->async : NULL,
		                .to_be_acked = srq ? &srq->async_events_got : NULL };
}

/* With the context's lock held. Its source is NULL if it is gone, or none. */
static struct object object_of(const struct hca_context *ctx, const struct control_event *e)
{
	switch (e->type) {
	case IBV_EVENT_CQ_ERR:
		return cq_of(ctx, e->element);
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return qp_of(ctx, e->element);
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return srq_of(ctx, e->element);
	case IBV_EVENT_DEVICE_FATAL:
		return (struct object){ .kind = DEVICE };
	default:
		return (struct object){ .kind = PORT };
	}
}

static struct object find(struct hca_context *ctx, const struct control_event *e)
{
	struct object o;

	pthread_mutex_lock(&ctx->lock);
	o = object_of(ctx, e);
	pthread_mutex_unlock(&ctx->lock);
	return o;
}

static bool is_gone(const struct object *o)
{
	return o->kind < PORT && !o->source;
}

/* ---- datagrams: with the lock held ---- */

enum datagram { EVENT, KEPT /* it stands for one that is kept */ };

/* 0; -EAGAIN: there is none now; -EIO: there will be none. */
static int receive(struct hca_context *ctx, struct control_event *e, enum datagram *kind)
{
	ssize_t n;

	do {
		n = recv(ctx->vctx.context.async_fd, e, sizeof(*e), MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n && errno != ECONNRESET ? -errno : -EIO;
	*kind = n == sizeof(*e) ? EVENT : KEPT;
	return 0;
}

/* Waits for one, whatever the flags of the descriptor; not for ever, as a child of the process may
 * have received it. */
static int receive_surely(struct hca_context *ctx, struct control_event *e, enum datagram *kind)
{
	struct pollfd p = { .fd = ctx->vctx.context.async_fd, .events = POLLIN };
	int ret = receive(ctx, e, kind);

	while (ret == -EAGAIN) {
		int n = poll(&p, 1, PATIENCE_MS);

		if (!n)
			return -ETIMEDOUT;
		if (n < 0 && errno != EINTR)
			return -errno;
		ret = receive(ctx, e, kind);
	}
	return ret;
}

/* False: it is of an object that is gone, or there is no memory. */
static bool keep(struct hca_context *ctx, const struct control_event *e)
{
	const struct object o = find(ctx, e);
	struct hca_async_event *k = is_gone(&o) ? NULL : malloc(sizeof(*k));

	if (!k && o.source)
		o.source->n_got++; /* nobody waits for it */
	if (!k && !is_gone(&o))
		base_log_warning(verbs, "out of memory: an asynchronous event is lost");
	if (!k)
		return false;
	k->source = o.source;
	k->event = *e;
	TAILQ_INSERT_TAIL(&ctx->async.kept, k, of_context);
	if (k->source)
		TAILQ_INSERT_TAIL(&k->source->kept, k, of_source);
	return true;
}

static void unkeep(struct hca_async *a, struct hca_async_event *k)
{
	TAILQ_REMOVE(&a->kept, k, of_context);
	if (k->source)
		TAILQ_REMOVE(&k->source->kept, k, of_source);
	free(k);
}

void hca_async_close(struct hca_async *a)
{
	pthread_mutex_lock(&a->lock);
	a->closed = true;
	while (!TAILQ_EMPTY(&a->kept))
		unkeep(a, TAILQ_FIRST(&a->kept));
	pthread_mutex_unlock(&a->lock);
}

/* ---- getting ---- */

/* The next one to be told: those that are kept come first. With the lock held. -EAGAIN: the
 * datagram stood for none. */
static int next(struct hca_context *ctx, struct control_event *e)
{
	struct hca_async *a = &ctx->async;
	struct hca_async_event *first;
	enum datagram kind;
	int ret = receive(ctx, e, &kind);

	if (ret && ret != -EIO)
		return ret;
	if (!ret && kind == EVENT && (TAILQ_EMPTY(&a->kept) || !keep(ctx, e)))
		return 0;
	first = TAILQ_FIRST(&a->kept);
	if (first) {
		*e = first->event;
		unkeep(a, first);
		return 0;
	}
	if (ret && !a->fatal_told) {
		a->fatal_told = true;
		*e = (struct control_event){ .type = IBV_EVENT_DEVICE_FATAL };
		return 0;
	}
	return ret ? ret : -EAGAIN;
}

/* With the lock held. False: its object is gone. *@failed: a queue pair that may have been moved to
 * ERR by its peer; it stays, as its event is not acknowledged. */
static bool tell(struct hca_context *ctx, const struct control_event *e,
                 struct ibv_async_event *event, struct hca_qp **failed)
{
	struct object o;

	pthread_mutex_lock(&ctx->lock);
	o = object_of(ctx, e);
	if (o.source) {
		o.source->n_got++;
		++*o.to_be_acked;
	}
	pthread_mutex_unlock(&ctx->lock);
	event->event_type = (enum ibv_event_type)e->type;
	if (o.kind == CQ)
		event->element.cq = (struct ibv_cq *)o.cq;
	else if (o.kind == QP)
		event->element.qp = (struct ibv_qp *)o.qp;
	else if (o.kind == SRQ)
		event->element.srq = (struct ibv_srq *)o.srq;
	else
		event->element.port_num = (int)e->element;
	*failed = o.kind == QP ? o.qp : NULL;
	return !is_gone(&o);
}

int hca_async_get(struct hca_context *ctx, struct ibv_async_event *event)
{
	struct hca_qp *failed = NULL;
	int ret, cancel_state;

	do {
		struct control_event e;

		/* it may be restarted after a signal, and may end the thread: nothing is taken yet
		 */
		if (recv(ctx->vctx.context.async_fd, &e, 1, MSG_PEEK) < 0 && errno != ECONNRESET)
			return -errno;
		cancel_state = base_cancel_off();
		pthread_mutex_lock(&ctx->async.lock);
		ret = next(ctx, &e);
		if (!ret && !tell(ctx, &e, event, &failed))
			ret = -EAGAIN;
		pthread_mutex_unlock(&ctx->async.lock);
		if (!ret && failed)
			hca_qp_notice_error(failed);
		base_cancel_restore(cancel_state);
	} while (ret == -EAGAIN);
	return ret;
}

/* ---- withdrawing: with the lock held ---- */

/* So many datagrams more, for events that are kept. */
static int ring(struct hca_context *ctx, uint32_t n)
{
	int ret = 0;

	while (!ret && n) {
		struct control_ring_hca req = { .hca_handle = ctx->handle,
			                        .n = n < CONTROL_MAX_RING ? n : CONTROL_MAX_RING };

		ret = control_call(ctx->process->control,
		                   &(struct control_call){ .type = CONTROL_RING_HCA,
		                                           .request = &req,
		                                           .request_bytes = sizeof(req) });
		n -= req.n;
	}
	return ret;
}

/* Drops what is kept of it. Returns how many. */
static uint32_t drop_kept(struct hca_context *ctx, struct hca_async_source *s)
{
	uint32_t n = 0;

	for (; !TAILQ_EMPTY(&s->kept); n++)
		unkeep(&ctx->async, TAILQ_FIRST(&s->kept));
	return n;
}

/* Receives @n of its events, and @surplus datagrams that stood for others which are dropped. */
static void withdraw(struct hca_context *ctx, const struct hca_async_source *s, uint32_t n,
                     uint32_t surplus)
{
	uint32_t lacking = 0;
	struct control_event e;
	enum datagram kind;

	while ((n || surplus) && !receive_surely(ctx, &e, &kind)) {
		if (kind == EVENT && n && find(ctx, &e).source == s)
			n--;
		else if (kind == EVENT && !keep(ctx, &e))
			continue;
		else if (surplus)
			surplus--;
		else
			lacking++;
	}
	ring(ctx, lacking);
}

static int destroy_and_withdraw(struct hca_context *ctx, struct hca_async_source *s,
                                enum control_type type, uint32_t handle)
{
	const struct control_handle req = { .handle = handle };
	struct control_destroy_reply rep = { 0 };
	int ret = control_ask(ctx->process->control, type, &req, &rep);
	uint32_t n_kept;

	if (ret == -EBUSY)
		return ret;
	n_kept = drop_kept(ctx, s);
	if (!ret && !ctx->async.closed)
		withdraw(ctx, s, rep.events - s->n_got - n_kept, n_kept);
	return ret;
}

int hca_async_end(struct hca_context *ctx, struct hca_async_source *s, enum control_type type,
                  uint32_t handle, _Atomic uint32_t *word)
{
	const struct control_handle req = { .handle = handle };
	int ret, cancel_state = base_cancel_off();

	pthread_mutex_lock(&ctx->async.lock);
	if (word && shm_events_end(word, s->n_got))
		ret = hca_post(ctx->process, type, &req, sizeof(req));
	else
		ret = destroy_and_withdraw(ctx, s, type, handle);
	pthread_mutex_unlock(&ctx->async.lock);
	base_cancel_restore(cancel_state);
	return ret;
}
