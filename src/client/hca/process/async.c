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
#include "control/client.h"
#include "hca/process/async.h"
#include "shm/events.h"
#include "shm/layout.h"

#define PATIENCE_MS 1000

/* An event that was received and that nobody has got. */
struct hca_async_event {
	TAILQ_ENTRY(hca_async_event) of_context, of_source;
	struct hca_async_source *source; /* NULL: it is about a port */
	struct control_event event;
};

int hca_async_init(struct hca_async *a)
{
	static const uint32_t most[] = { [HCA_ASYNC_CQ] = SHM_MAX_CQS,
		                         [HCA_ASYNC_QP] = SHM_MAX_QPS,
		                         [HCA_ASYNC_SRQ] = SHM_MAX_SRQS,
		                         [HCA_ASYNC_XRC_SRQ] = SHM_MAX_QPS };

	for (unsigned kind = 0; kind < HCA_ASYNC_KINDS; kind++) {
		a->objects[kind] = calloc(most[kind], sizeof(*a->objects[kind]));
		if (!a->objects[kind])
			return -ENOMEM;
	}
	pthread_mutex_init(&a->lock, NULL);
	pthread_mutex_init(&a->objects_lock, NULL);
	TAILQ_INIT(&a->kept);
	return 0;
}

void hca_async_open(struct hca_async *a, struct control_client *control, uint32_t handle, int fd)
{
	a->control = control;
	a->handle = handle;
	a->fd = fd;
}

void hca_async_fini(struct hca_async *a)
{
	for (unsigned kind = 0; kind < HCA_ASYNC_KINDS; kind++)
		free(a->objects[kind]);
}

/* ---- what an event is about ---- */

/* A queue pair's number has a part that changes each time the index is used again; that of an XRC
 * shared receive queue, too, as it is a queue pair's. */
static struct hca_async_object **place_of(struct hca_async *a, enum hca_async_kind kind,
                                          uint32_t number)
{
	bool is_qpn = kind == HCA_ASYNC_QP || kind == HCA_ASYNC_XRC_SRQ;

	return &a->objects[kind][is_qpn ? SHM_QP_INDEX(number) : number];
}

void hca_async_object_init(struct hca_async_object *o, enum hca_async_kind kind, void *element)
{
	*o = (struct hca_async_object){ .kind = kind, .element = element, .source = &o->own };
	TAILQ_INIT(&o->own.kept);
}

void hca_async_enter(struct hca_async *a, struct hca_async_object *o, uint32_t number)
{
	o->number = number;
	pthread_mutex_lock(&a->objects_lock);
	*place_of(a, o->kind, number) = o;
	pthread_mutex_unlock(&a->objects_lock);
}

void hca_async_leave(struct hca_async *a, struct hca_async_object *o)
{
	struct hca_async_object **at = place_of(a, o->kind, o->number);

	pthread_mutex_lock(&a->objects_lock);
	if (*at == o) /* or another one's by now, or another handle of an XRC target */
		*at = NULL;
	pthread_mutex_unlock(&a->objects_lock);
}

/* The kind of object that an event is about; HCA_ASYNC_KINDS: a port, or the device. */
static enum hca_async_kind kind_of(const struct control_event *e)
{
	switch (e->type) {
	case IBV_EVENT_CQ_ERR:
		return HCA_ASYNC_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return HCA_ASYNC_QP;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return e->element & SHM_XRC_SRQ ? HCA_ASYNC_XRC_SRQ : HCA_ASYNC_SRQ;
	default:
		return HCA_ASYNC_KINDS;
	}
}

/* With the lock of the objects held. NULL: it is gone, or there is none (kind_of()). */
static struct hca_async_object *object_of(struct hca_async *a, const struct control_event *e)
{
	enum hca_async_kind kind = kind_of(e);
	struct hca_async_object *o;

	if (kind == HCA_ASYNC_KINDS || (kind == HCA_ASYNC_CQ && e->element >= SHM_MAX_CQS) ||
	    (kind == HCA_ASYNC_SRQ && e->element >= SHM_MAX_SRQS))
		return NULL;
	o = *place_of(a, kind, e->element);
	return o && o->number == e->element ? o : NULL;
}

/* Where events of its object are kept. *@is_gone: there is such an object no more. */
static struct hca_async_source *source_of(struct hca_async *a, const struct control_event *e,
                                          bool *is_gone)
{
	struct hca_async_source *source;
	struct hca_async_object *o;

	pthread_mutex_lock(&a->objects_lock);
	o = object_of(a, e);
	source = o ? o->source : NULL;
	pthread_mutex_unlock(&a->objects_lock);
	*is_gone = !o && kind_of(e) != HCA_ASYNC_KINDS;
	return source;
}

/* ---- datagrams: with the lock held ---- */

enum datagram { EVENT, KEPT /* it stands for one that is kept */ };

/* 0; -EAGAIN: there is none now; -EIO: there will be none. */
static int receive(struct hca_async *a, struct control_event *e, enum datagram *kind)
{
	ssize_t n;

	do {
		n = recv(a->fd, e, sizeof(*e), MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n && errno != ECONNRESET ? -errno : -EIO;
	*kind = n == sizeof(*e) ? EVENT : KEPT;
	return 0;
}

/* Waits for one, whatever the flags of the descriptor; not for ever, as a child of the process may
 * have received it. */
static int receive_surely(struct hca_async *a, struct control_event *e, enum datagram *kind)
{
	struct pollfd p = { .fd = a->fd, .events = POLLIN };
	int ret = receive(a, e, kind);

	while (ret == -EAGAIN) {
		int n = poll(&p, 1, PATIENCE_MS);

		if (!n)
			return -ETIMEDOUT;
		if (n < 0 && errno != EINTR)
			return -errno;
		ret = receive(a, e, kind);
	}
	return ret;
}

/* False: it is of an object that is gone, or there is no memory. */
static bool keep(struct hca_async *a, const struct control_event *e)
{
	bool is_gone;
	struct hca_async_source *source = source_of(a, e, &is_gone);
	struct hca_async_event *k = is_gone ? NULL : malloc(sizeof(*k));

	if (!k && source)
		source->n_got++; /* nobody waits for it */
	if (!k && !is_gone)
		base_log_warning(verbs, "out of memory: an asynchronous event is lost");
	if (!k)
		return false;
	k->source = source;
	k->event = *e;
	TAILQ_INSERT_TAIL(&a->kept, k, of_context);
	if (source)
		TAILQ_INSERT_TAIL(&source->kept, k, of_source);
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
static int next(struct hca_async *a, struct control_event *e)
{
	struct hca_async_event *first;
	enum datagram kind;
	int ret = receive(a, e, &kind);

	if (ret && ret != -EIO)
		return ret;
	if (!ret && kind == EVENT && (TAILQ_EMPTY(&a->kept) || !keep(a, e)))
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

/* With the lock held. False: its object is gone. *@told: the object, or NULL; it stays, as its
 * event is not acknowledged. */
static bool tell(struct hca_async *a, const struct control_event *e, struct ibv_async_event *event,
                 struct hca_async_object **told)
{
	struct hca_async_object *o;

	pthread_mutex_lock(&a->objects_lock);
	o = object_of(a, e);
	if (o) {
		o->source->n_got++;
		o->n_got++;
	}
	pthread_mutex_unlock(&a->objects_lock);
	event->event_type = (enum ibv_event_type)e->type;
	if (o)
		event->element.qp = o->element; /* a union of pointers to objects */
	else
		event->element.port_num = (int)e->element;
	*told = o;
	return o || kind_of(e) == HCA_ASYNC_KINDS;
}

int hca_async_get(struct hca_async *a, struct ibv_async_event *event)
{
	struct hca_async_object *told = NULL;
	int ret, cancel_state;

	do {
		struct control_event e;

		/* it may be restarted after a signal, and may end the thread: nothing is taken yet
		 */
		if (recv(a->fd, &e, 1, MSG_PEEK) < 0 && errno != ECONNRESET)
			return -errno;
		cancel_state = base_cancel_off();
		pthread_mutex_lock(&a->lock);
		ret = next(a, &e);
		if (!ret && !tell(a, &e, event, &told))
			ret = -EAGAIN;
		pthread_mutex_unlock(&a->lock);
		if (!ret && told && told->notice)
			told->notice(told->element);
		base_cancel_restore(cancel_state);
	} while (ret == -EAGAIN);
	return ret;
}

/* ---- withdrawing: with the lock held ---- */

/* So many datagrams more, for events that are kept. */
static int ring(struct hca_async *a, uint32_t n)
{
	int ret = 0;

	while (!ret && n) {
		struct control_ring_hca req = { .hca_handle = a->handle,
			                        .n = n < CONTROL_MAX_RING ? n : CONTROL_MAX_RING };

		ret = control_call(a->control,
		                   &(struct control_call){ .type = CONTROL_RING_HCA,
		                                           .request = &req,
		                                           .request_bytes = sizeof(req) });
		n -= req.n;
	}
	return ret;
}

/* Drops what is kept of it. Returns how many. */
static uint32_t drop_kept(struct hca_async *a, struct hca_async_source *s)
{
	uint32_t n = 0;

	for (; !TAILQ_EMPTY(&s->kept); n++)
		unkeep(a, TAILQ_FIRST(&s->kept));
	return n;
}

/* Receives @n of its events, and @surplus datagrams that stood for others which are dropped. */
static void withdraw(struct hca_async *a, const struct hca_async_source *s, uint32_t n,
                     uint32_t surplus)
{
	uint32_t lacking = 0;
	struct control_event e;
	enum datagram kind;
	bool is_gone;

	while ((n || surplus) && !receive_surely(a, &e, &kind)) {
		if (kind == EVENT && n && source_of(a, &e, &is_gone) == s)
			n--;
		else if (kind == EVENT && !keep(a, &e))
			continue;
		else if (surplus)
			surplus--;
		else
			lacking++;
	}
	ring(a, lacking);
}

static int destroy_and_withdraw(struct hca_async *a, struct hca_async_source *s,
                                enum control_type type, uint32_t handle)
{
	const struct control_handle req = { .handle = handle };
	struct control_destroy_reply rep = { 0 };
	int ret = control_ask(a->control, type, &req, &rep);
	uint32_t n_kept;

	if (ret == -EBUSY)
		return ret;
	n_kept = drop_kept(a, s);
	if (!ret && !a->closed)
		withdraw(a, s, rep.events - s->n_got - n_kept, n_kept);
	return ret;
}

int hca_async_end(struct hca_async *a, struct hca_async_source *s, enum control_type type,
                  uint32_t handle, _Atomic uint32_t *word)
{
	const struct control_handle req = { .handle = handle };
	int ret, cancel_state = base_cancel_off();

	pthread_mutex_lock(&a->lock);
	if (word && shm_events_end(word, s->n_got))
		ret = control_post(a->control, type, &req, sizeof(req));
	else
		ret = destroy_and_withdraw(a, s, type, handle);
	pthread_mutex_unlock(&a->lock);
	base_cancel_restore(cancel_state);
	return ret;
}
