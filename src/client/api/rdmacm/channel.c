/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels and their events. A channel's descriptor is a socket on which one datagram arrives
 * for each event: the event, or a byte that says where it is (control/cm_message.h). So poll(),
 * epoll and O_NONBLOCK work as they do on the original's device file. As many datagrams as there
 * are events that nobody has got must be there whenever no call is under way.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/rdmacm/rdmacm.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/signals.h"

static struct rdmacm_channel *channel_of(struct rdma_event_channel *channel)
{
	return container_of(channel, struct rdmacm_channel, channel);
}

/* ---- datagrams ---- */

enum kind { EVENT, ASK, KEPT };

struct datagram {
	enum kind kind;
	struct control_cm_got got; /* EVENT */
};

/* 0; -EAGAIN: there is none now; -errno: there will be none. With the channel's lock held. */
static int receive(struct rdmacm_channel *ch, struct datagram *d)
{
	ssize_t n;

	do {
		n = recv(ch->channel.fd, &d->got, sizeof(d->got), MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -EIO;
	if (n == sizeof(d->got))
		d->kind = EVENT;
	else
		d->kind = *(const uint8_t *)&d->got == CONTROL_CM_KEPT ? KEPT : ASK;
	return 0;
}

/* The identifier that the event is about; NULL: the daemon is to be asked. */
static struct rdmacm_id *id_of(const struct datagram *d)
{
	return d->kind == EVENT ? (struct rdmacm_id *)(uintptr_t)d->got.event.uid : NULL;
}

static void fill_kept(struct rdmacm_kept *k, const struct datagram *d)
{
	k->id = id_of(d);
	if (k->id)
		k->got = d->got;
}

/* NULL: no memory. */
static struct rdmacm_kept *kept_new(const struct datagram *d)
{
	struct rdmacm_kept *k = malloc(sizeof(*k));

	if (k)
		fill_kept(k, d);
	return k;
}

static void keep(struct rdmacm_channel *ch, struct rdmacm_kept *k)
{
	TAILQ_INSERT_TAIL(&ch->kept, k, entry);
	if (k->id)
		TAILQ_INSERT_TAIL(&k->id->kept, k, of_owner);
	else
		TAILQ_INSERT_TAIL(&ch->kept_asks, k, of_owner);
}

static struct rdmacm_kept *unkeep(struct rdmacm_channel *ch, struct rdmacm_kept *k)
{
	TAILQ_REMOVE(&ch->kept, k, entry);
	if (k->id)
		TAILQ_REMOVE(&k->id->kept, k, of_owner);
	else
		TAILQ_REMOVE(&ch->kept_asks, k, of_owner);
	return k;
}

/* ---- channels ---- */

int rdmacm_channel_open(struct rdmacm_channel **out)
{
	struct rdmacm_channel *ch = calloc(1, sizeof(*ch));
	int ret;

	if (!ch)
		return -ENOMEM;
	ret = rdmacm_session_channel(ch);
	if (ret) {
		free(ch);
		return ret;
	}
	pthread_mutex_init(&ch->datagrams, NULL);
	TAILQ_INIT(&ch->kept);
	TAILQ_INIT(&ch->kept_asks);
	LIST_INIT(&ch->to_be_told_of);
	*out = ch;
	return 0;
}

/*
 * A thread that waits for events on it waits on, as with the original (mckey ends so): the daemon
 * keeps its end until the process ends. So does a thread that is just about to wait (rping ends
 * so).
 */
void rdmacm_channel_close(struct rdmacm_channel *ch)
{
	struct control_cm_channel request = { .channel = ch->handle };
	bool waited_on;

	rdmacm_session_lock();
	waited_on = ch->waiters;
	ch->closed = true;
	rdmacm_session_unlock();
	if (!waited_on)
		rdmacm_session_call(ch->session, CONTROL_CM_DESTROY_CHANNEL, &request,
		                    sizeof(request), NULL, 0);
	close(ch->channel.fd);
	if (waited_on)
		return;
	while (!TAILQ_EMPTY(&ch->kept))
		free(unkeep(ch, TAILQ_FIRST(&ch->kept)));
	rdmacm_session_bury(ch);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdmacm_channel *ch;
	int ret = rdmacm_channel_open(&ch);

	return ret ? rdmacm_null(ret) : &ch->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (channel)
		rdmacm_channel_close(channel_of(channel));
}

static bool is_closed(const struct rdmacm_channel *ch)
{
	bool closed;

	rdmacm_session_lock();
	closed = ch->closed;
	rdmacm_session_unlock();
	return closed;
}

/* ---- connection requests that are read: with the channel's lock held ---- */

static bool is_told(const struct rdmacm_id *listener)
{
	return listener->requests_told == listener->requests_got;
}

/* The daemon is told by what the caller asks. */
static void requests_told(struct rdmacm_id *listener)
{
	if (is_told(listener))
		return;
	LIST_REMOVE(listener, to_be_told_of);
	listener->requests_told = listener->requests_got;
}

static void tell_requests(struct rdmacm_id *listener)
{
	const struct control_cm_read request = { .id = listener->handle,
		                                 .requests = listener->requests_got };

	rdmacm_session_post(listener->session, CONTROL_CM_READ, &request, sizeof(request));
	requests_told(listener);
}

/* Nothing more has come. */
static void tell_all_requests(struct rdmacm_channel *ch)
{
	struct rdmacm_id *listener;

	while ((listener = LIST_FIRST(&ch->to_be_told_of)))
		tell_requests(listener);
}

/* One is read. */
static void count_request(struct rdmacm_channel *ch, struct rdmacm_id *listener)
{
	if (is_told(listener))
		LIST_INSERT_HEAD(&ch->to_be_told_of, listener, to_be_told_of);
	listener->requests_got++;
	if (listener->requests_got - listener->requests_told > listener->requests_slack)
		tell_requests(listener);
}

/* ---- events that are withdrawn ---- */

/* So many datagrams more. */
static int ring(const struct rdmacm_channel *ch, enum control_cm_byte byte, uint32_t n)
{
	int ret = 0;

	while (!ret && n) {
		struct control_cm_ring request = { .channel = ch->handle,
			                           .n = n < CONTROL_CM_MAX_RING
			                                        ? n
			                                        : CONTROL_CM_MAX_RING,
			                           .byte = byte };

		ret = rdmacm_session_call(ch->session, CONTROL_CM_RING, &request, sizeof(request),
		                          NULL, 0);
		n -= request.n;
	}
	return ret;
}

/* Waits for a datagram, whatever the flags of the descriptor. 0 or -errno. */
static int receive_surely(struct rdmacm_channel *ch, struct datagram *d)
{
	struct pollfd p = { .fd = ch->channel.fd, .events = POLLIN };
	int ret = receive(ch, d);

	while (ret == -EAGAIN) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
		ret = receive(ch, d);
	}
	return ret;
}

/* The events of an identifier that are withdrawn from a channel. */
struct withdrawal {
	struct rdmacm_channel *ch;
	struct rdmacm_id *id;
	uint32_t events, asks;     /* so many are not found yet */
	struct rdmacm_channel *to; /* where they go; NULL: nowhere */
	struct rdmacm_kept_list moved;
	uint32_t n_moved;
	/* Datagrams beyond the events that stay: one that was kept and is withdrawn leaves its own.
	 * Negative: so many lack, for events that are kept and whose datagrams were taken. */
	int64_t surplus;
};

static void put(struct withdrawal *w, struct rdmacm_kept *k)
{
	if (!w->to) {
		free(k);
		return;
	}
	TAILQ_INSERT_TAIL(&w->moved, k, entry);
	w->n_moved++;
}

static void withdraw_kept(struct withdrawal *w)
{
	struct rdmacm_kept *k;

	for (; w->events && (k = TAILQ_FIRST(&w->id->kept)); w->events--, w->surplus++)
		put(w, unkeep(w->ch, k));
	for (; w->asks && (k = TAILQ_FIRST(&w->ch->kept_asks)); w->asks--, w->surplus++)
		free(unkeep(w->ch, k));
}

/* There is no memory to keep it: it is sent again, on @ch. */
static void give_back(struct rdmacm_channel *ch, const struct datagram *d)
{
	struct control_cm_return request = { .channel = ch->handle };

	if (d->kind == ASK) {
		ring(ch, CONTROL_CM_ASK, 1);
		return;
	}
	request.id = id_of(d)->handle;
	request.got = d->got;
	if (!rdmacm_session_call(ch->session, CONTROL_CM_RETURN, &request, sizeof(request), NULL,
	                         0))
		return;
	base_log_warning(rdmacm, "out of memory: an rdma_cm event is lost");
	id_of(d)->events_got++; /* nobody waits for it */
	rdmacm_id_ack(id_of(d), NULL);
}

static void withdraw_own(struct withdrawal *w, const struct datagram *d)
{
	struct rdmacm_kept *k = w->to ? kept_new(d) : NULL;

	w->events--;
	if (k)
		put(w, k);
	else if (w->to)
		give_back(w->to, d);
}

/* False: there is no memory. */
static bool keep_other(struct withdrawal *w, const struct datagram *d)
{
	struct rdmacm_kept *k = kept_new(d);

	if (!k)
		return false;
	keep(w->ch, k);
	return true;
}

/* Takes a datagram: of what is withdrawn, or of what is kept, already or from now on. */
static void withdraw_one(struct withdrawal *w, const struct datagram *d)
{
	if (d->kind == ASK && w->asks) {
		w->asks--; /* all of them are alike */
	} else if (d->kind == EVENT && id_of(d) == w->id && w->events) {
		withdraw_own(w, d);
	} else if (d->kind == KEPT || keep_other(w, d)) {
		w->surplus--;
	} else {
		/* a datagram too many does no harm; to come across this one for ever would */
		if (w->surplus > 0)
			w->surplus = 0;
		give_back(w->ch, d);
	}
}

/* With the channel's lock held. 0 or -errno. */
static int withdraw(struct withdrawal *w)
{
	struct datagram d;
	int ret = 0;

	if (!w->events && !w->asks)
		return 0;
	withdraw_kept(w);
	while (!ret && (w->events || w->asks || w->surplus > 0)) {
		ret = receive_surely(w->ch, &d);
		if (!ret)
			withdraw_one(w, &d);
	}
	return w->surplus < 0 ? ring(w->ch, CONTROL_CM_KEPT, (uint32_t)-w->surplus) : 0;
}

/*
 * The daemon has gone, so that nobody says which events it has sent. They are in the socket, and no
 * more will come. With the channel's lock held.
 */
static void drop_events(struct rdmacm_id *id)
{
	struct withdrawal w = { .ch = channel_of(id->id.channel), .id = id };
	struct datagram d;

	while (!TAILQ_EMPTY(&id->kept))
		free(unkeep(w.ch, TAILQ_FIRST(&id->kept)));
	if (is_closed(w.ch) || rdmacm_session_is_parents(id->session))
		return; /* the descriptor is another's by now, or its events are the parent's */
	while (!receive(w.ch, &d))
		if (d.kind == EVENT && id_of(&d) != id && !keep_other(&w, &d))
			give_back(w.ch, &d);
}

/* Whether somebody may count on it that the daemon has done what destroying it means. */
static bool is_waited_for(struct rdmacm_id *id)
{
	bool joins;

	pthread_mutex_lock(&id->lock);
	joins = !LIST_EMPTY(&id->joins);
	pthread_mutex_unlock(&id->lock);
	return joins || id->holds_port || is_closed(channel_of(id->id.channel));
}

/* If no event of it is on its way: there will be none, and nobody waits. Else -EAGAIN. */
static int destroy_silent(struct rdmacm_id *id, uint32_t *got)
{
	const struct control_cm_read request = { .id = id->handle };
	_Atomic uint32_t *word = is_waited_for(id) ? NULL : rdmacm_session_word(id);

	if (!word || !shm_events_end(word, id->events_got))
		return -EAGAIN;
	*got = id->events_got;
	return rdmacm_session_post(id->session, CONTROL_CM_DESTROY_ID, &request, sizeof(request));
}

static int destroy_and_withdraw(struct rdmacm_id *id, uint32_t *got)
{
	const struct control_cm_read request = { .id = id->handle, .requests = id->requests_got };
	struct withdrawal w = { .ch = channel_of(id->id.channel), .id = id };
	struct control_cm_events_reply reply;
	int ret = rdmacm_session_call(id->session, CONTROL_CM_DESTROY_ID, &request, sizeof(request),
	                              &reply, sizeof(reply));

	if (ret)
		return ret;
	requests_told(id);
	w.events = reply.sent - id->events_got;
	w.asks = reply.withdrawn;
	*got = reply.reported + id->events_got;
	withdraw(&w);
	return 0;
}

int rdmacm_channel_destroy_id(struct rdmacm_id *id, uint32_t *got)
{
	struct rdmacm_channel *ch = channel_of(id->id.channel);
	int ret, cancel_state;

	*got = 0;
	if (!id->may_be_made)
		return 0;
	cancel_state = base_cancel_off();
	pthread_mutex_lock(&ch->datagrams);
	ret = destroy_silent(id, got);
	if (ret == -EAGAIN)
		ret = destroy_and_withdraw(id, got);
	if (ret == -EIO) {
		requests_told(id);
		drop_events(id);
		*got = id->asks_got + id->events_got;
		ret = 0;
	}
	if (!ret)
		id->removal_told = true;
	pthread_mutex_unlock(&ch->datagrams);
	base_cancel_restore(cancel_state);
	return id->is_made ? ret : 0; /* otherwise there may be none */
}

int rdmacm_channel_leave(struct rdmacm_join *join, uint32_t *got)
{
	struct control_cm_handle request = { .join = join->handle };
	struct withdrawal w = { .ch = channel_of(join->id->id.channel), .id = join->id };
	struct control_cm_events_reply reply;
	int ret, cancel_state = base_cancel_off();

	pthread_mutex_lock(&w.ch->datagrams);
	ret = rdmacm_session_call(w.ch->session, CONTROL_CM_LEAVE, &request, sizeof(request),
	                          &reply, sizeof(reply));
	if (!ret) {
		w.asks = reply.withdrawn;
		*got = reply.reported;
		withdraw(&w);
	}
	pthread_mutex_unlock(&w.ch->datagrams);
	base_cancel_restore(cancel_state);
	return ret;
}

/* The first one by its address first: two threads may migrate in opposite directions. */
static void lock_both(struct rdmacm_channel *a, struct rdmacm_channel *b)
{
	pthread_mutex_lock(a < b ? &a->datagrams : &b->datagrams);
	if (a != b)
		pthread_mutex_lock(a < b ? &b->datagrams : &a->datagrams);
}

static void unlock_both(struct rdmacm_channel *a, struct rdmacm_channel *b)
{
	pthread_mutex_unlock(&a->datagrams);
	if (a != b)
		pthread_mutex_unlock(&b->datagrams);
}

int rdmacm_channel_migrate_id(struct rdmacm_id *id, struct rdma_event_channel *channel,
                              uint32_t *got)
{
	struct rdmacm_channel *from = channel_of(id->id.channel), *to = channel_of(channel);
	struct control_cm_migrate_id request = { .id = id->handle, .channel = to->handle };
	struct withdrawal w = { .ch = from, .id = id, .to = to };
	struct control_cm_events_reply reply;
	struct rdmacm_kept *k;
	int ret, cancel_state;

	if (to->session != id->session)
		return base_because(-EINVAL, "the channel is of a fabric that has ended, or was "
		                             "made before fork()");
	cancel_state = base_cancel_off();
	TAILQ_INIT(&w.moved);
	lock_both(from, to);
	request.requests = id->requests_got;
	ret = rdmacm_id_call(id, CONTROL_CM_MIGRATE_ID, &request, sizeof(request), &reply,
	                     sizeof(reply));
	if (!ret) {
		requests_told(id);
		rdmacm_session_lock(); /* against a search for identifiers whose device has gone */
		id->id.channel = channel;
		rdmacm_session_unlock();
		*got = reply.reported + id->events_got;
	}
	if (!ret && from != to) {
		w.events = reply.sent - id->events_got;
		w.asks = reply.withdrawn;
		withdraw(&w);
		while ((k = TAILQ_FIRST(&w.moved))) {
			TAILQ_REMOVE(&w.moved, k, entry);
			keep(to, k);
		}
		ring(to, CONTROL_CM_KEPT, w.n_moved);
	}
	unlock_both(from, to);
	base_cancel_restore(cancel_state);
	return ret;
}

/* ---- events ---- */

static void fill_ud(struct rdmacm_event *e, const struct control_cm_event *from)
{
	struct rdma_ud_param *ud = &e->event.param.ud;

	ud->qp_num = from->qp_num;
	ud->qkey = from->qkey;
	rdmacm_ah_attr(&from->ah, &ud->ah_attr);
}

static void fill_conn(struct rdmacm_event *e, const struct control_cm_event *from)
{
	struct rdma_conn_param *conn = &e->event.param.conn;

	conn->responder_resources = from->param.responder_resources;
	conn->initiator_depth = from->param.initiator_depth;
	conn->flow_control = from->param.flow_control;
	conn->retry_count = from->param.retry_count;
	conn->rnr_retry_count = from->param.rnr_retry_count;
	conn->srq = from->param.srq;
	conn->qp_num = from->qp_num;
}

static void fill_param(struct rdmacm_event *e, const struct control_cm_event *from)
{
	/* private data comes first in both */
	struct rdma_conn_param *param = &e->event.param.conn;

	if (from->bytes) {
		memcpy(e->private_data, from->private_data, sizeof(e->private_data));
		param->private_data = e->private_data;
		param->private_data_len = (uint8_t)from->bytes;
	}
	if (e->id->id.qp_type == IBV_QPT_UD)
		fill_ud(e, from);
	else
		fill_conn(e, from);
}

/* Keeps the description of the identifier that has come along with the event: the daemon is not
 * asked for it again. */
static int update(struct rdmacm_id *id, const struct control_cm_got *got)
{
	id->has_qp = got->has_qp && !id->has_options;
	id->qp = got->qp;
	return rdmacm_id_update(id, &got->id);
}

static void on_resolved(struct rdmacm_event *e, const struct control_cm_got *got,
                        enum rdma_cm_event_type on_error, enum rdmacm_stage stage,
                        enum rdmacm_stage next)
{
	int ret = update(e->id, got);

	rdmacm_id_end_stage(e->id, stage, ret ? RDMACM_UNKNOWN : next);
	if (!ret)
		return;
	e->event.event = on_error;
	e->event.status = ret;
}

static void on_addr_resolved(struct rdmacm_event *e, const struct control_cm_got *got)
{
	struct rdmacm_id *id = e->id;

	on_resolved(e, got, RDMA_CM_EVENT_ADDR_ERROR, RDMACM_RESOLVING_ADDR, RDMACM_ADDR_RESOLVED);
	if (id->is_afresh && id->device && rdmacm_id_is_at(id, RDMACM_ADDR_RESOLVED))
		rdmacm_known_add(id, &id->asked);
}

static void on_multicast(struct rdmacm_event *e, const struct control_cm_event *from)
{
	int ret;

	e->join = (struct rdmacm_join *)(uintptr_t)from->uid;
	e->id = e->join->id;
	e->join->answered = true;
	e->event.id = &e->id->id;
	fill_ud(e, from);
	e->event.param.ud.private_data = e->join->context;
	if (from->type != RDMA_CM_EVENT_MULTICAST_JOIN)
		return;
	ret = rdmacm_multicast_joined(e->join, &e->event.param.ud);
	if (!ret)
		return;
	e->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	e->event.status = ret;
}

/* The daemon has made an identifier of the request; here is the process's side of it. */
static int on_request(struct rdmacm_event *e, const struct control_cm_got *got)
{
	const struct control_cm_event *from = &got->event;
	const struct rdma_cm_id *listener = &e->id->id;
	struct rdmacm_id *id;
	int ret = rdmacm_id_new(listener->channel, listener->context, listener->ps,
	                        listener->qp_type, &id);

	if (ret) {
		struct control_cm_read request = { .id = from->new_id };
		struct control_cm_events_reply reply;

		rdmacm_session_call(e->id->session, CONTROL_CM_DESTROY_ID, &request,
		                    sizeof(request), &reply, sizeof(reply));
		return ret;
	}
	id->handle = from->new_id;
	id->is_made = id->may_be_made = true;
	id->stage = RDMACM_REQUESTED;
	id->responder_resources = from->param.responder_resources;
	id->initiator_depth = from->param.initiator_depth;
	id->remote_ece.vendor_id = from->param.ece_vendor;
	id->remote_ece.options = from->param.ece_options;
	e->event.listen_id = &e->id->id;
	e->event.id = &id->id;
	if (e->id->sync)
		ret = rdma_migrate_id(&id->id, NULL) ? -errno : 0;
	if (!ret)
		ret = update(id, got);
	if (ret)
		rdma_destroy_id(&id->id);
	return ret;
}

static void on_response(struct rdmacm_event *e, const struct control_cm_got *got)
{
	struct rdmacm_id *id = e->id;

	id->has_qp = got->has_qp && !id->has_options;
	id->qp = got->qp;
	id->remote_ece.vendor_id = got->event.param.ece_vendor;
	id->remote_ece.options = got->event.param.ece_options;
	if (!id->id.qp)
		return; /* the program goes on by itself: rdma_establish() */
	e->event.status = rdmacm_connect_respond(id);
	e->event.event = e->event.status ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	id->connect_error = e->event.status;
}

/* 0; otherwise the event is not worth telling. */
static int on_end(struct rdmacm_event *e, const struct control_cm_event *from)
{
	if (e->id->connect_error)
		return -ECONNABORTED;
	if (from->type == RDMA_CM_EVENT_REJECTED)
		rdmacm_qp_to_error(e->id);
	return 0;
}

/* A call that nobody waited for has failed. The accepting side has connected its queue pair
 * before. */
static void on_failure(struct rdmacm_id *id)
{
	id->has_connection = false;
	if (id->handle & CONTROL_CM_ANNOUNCED)
		rdmacm_qp_to_error(id);
}

/* Does this side's part for the event. 0; otherwise it is not worth telling. */
static int act(struct rdmacm_event *e, const struct control_cm_got *got)
{
	switch (got->event.type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		on_addr_resolved(e, got);
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		on_resolved(e, got, RDMA_CM_EVENT_ROUTE_ERROR, RDMACM_RESOLVING_ROUTE,
		            RDMACM_ROUTE_RESOLVED);
		return 0;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return on_request(e, got);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		on_response(e, got);
		return 0;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		on_failure(e->id);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		return on_end(e, &got->event);
	default:
		return 0;
	}
}

/* 0; otherwise the event is not worth telling and is acknowledged. */
static int fill_event(struct rdmacm_event *e, const struct control_cm_got *got)
{
	const struct control_cm_event *from = &got->event;
	int ret;

	e->event.event = from->type;
	e->event.status = from->status;
	if (from->type == RDMA_CM_EVENT_MULTICAST_JOIN ||
	    from->type == RDMA_CM_EVENT_MULTICAST_ERROR) {
		on_multicast(e, from);
		return 0;
	}
	e->id = (struct rdmacm_id *)(uintptr_t)from->uid;
	e->event.id = &e->id->id;
	fill_param(e, from);
	ret = act(e, got);
	if (ret)
		rdmacm_id_ack(e->id, NULL);
	return ret;
}

/* The event whose turn it is, after @d was received: a kept event comes first, and @d is kept in
 * its place. 0; -EAGAIN: there is none. */
static int take_turn(struct rdmacm_channel *ch, struct datagram *d)
{
	struct rdmacm_kept *k = TAILQ_FIRST(&ch->kept);
	struct datagram first;

	if (!k)
		return d->kind == KEPT ? -EAGAIN : 0;
	unkeep(ch, k);
	first.kind = k->id ? EVENT : ASK;
	if (k->id)
		first.got = k->got;
	if (d->kind == KEPT) {
		free(k);
	} else {
		fill_kept(k, d);
		keep(ch, k);
	}
	*d = first;
	return 0;
}

/* An event that has come whole is taken; with the channel's lock held. */
static void count_event(struct rdmacm_channel *ch, const struct control_cm_event *event)
{
	struct rdmacm_id *id = (struct rdmacm_id *)(uintptr_t)event->uid;

	/* The thread whose call led to the event held this lock during the call. So its earlier
	 * writes are seen here: the daemon between us is no lock. */
	rdmacm_session_lock();
	rdmacm_session_unlock();
	id->events_got++;
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		count_request(ch, id);
}

/* An event that the daemon was asked for is taken; likewise. */
static void count_asked(const struct control_cm_event *event)
{
	void *about = (void *)(uintptr_t)event->uid;

	if (event->type == RDMA_CM_EVENT_MULTICAST_JOIN ||
	    event->type == RDMA_CM_EVENT_MULTICAST_ERROR)
		((struct rdmacm_join *)about)->id->asks_got++;
	else
		((struct rdmacm_id *)about)->asks_got++;
}

/* Gets an event. -EAGAIN: there is none, or another thread was quicker. */
static int claim_event(struct rdmacm_channel *ch, struct control_cm_got *got)
{
	struct control_cm_channel request = { .channel = ch->handle };
	struct datagram d;
	int ret;

	pthread_mutex_lock(&ch->datagrams);
	ret = receive(ch, &d) ? -EAGAIN : take_turn(ch, &d);
	if (!ret && d.kind == ASK) {
		ret = rdmacm_session_call(ch->session, CONTROL_CM_GET_EVENT, &request,
		                          sizeof(request), got, sizeof(*got));
		if (!ret)
			count_asked(&got->event);
		else if (ret == -EIO)
			ret = -EAGAIN; /* nobody is left to be asked: what else was sent comes first
			                */
	} else if (!ret) {
		*got = d.got;
		count_event(ch, &got->event);
	} else {
		tell_all_requests(ch);
	}
	pthread_mutex_unlock(&ch->datagrams);
	return ret;
}

/* Claims the next kept event that is known without the daemon. */
static bool claim_kept(struct rdmacm_channel *ch, struct control_cm_got *got)
{
	while (!TAILQ_EMPTY(&ch->kept)) {
		struct rdmacm_kept *k = unkeep(ch, TAILQ_FIRST(&ch->kept));
		const bool is_known = k->id;

		if (is_known)
			*got = k->got;
		free(k);
		if (is_known)
			return true;
	}
	return false;
}

/* The daemon has gone. The events that it has sent come first, then that each identifier has lost
 * its device. 0; -EIO: that is all. */
static int claim_last(struct rdmacm_channel *ch, struct control_cm_got *got)
{
	struct rdmacm_id *id = NULL;
	int ret = 0;

	pthread_mutex_lock(&ch->datagrams);
	if (claim_kept(ch, got)) {
		count_event(ch, &got->event);
	} else {
		id = rdmacm_device_removed(ch);
		ret = id ? 0 : -EIO;
	}
	if (id) {
		memset(got, 0, sizeof(*got));
		got->event.uid = (uintptr_t)id;
		got->event.type = RDMA_CM_EVENT_DEVICE_REMOVAL;
		id->removal_told = true;
		id->events_got++;
	}
	pthread_mutex_unlock(&ch->datagrams);
	return ret;
}

/* A thread that waits for an event, and what to clean up if it is cancelled meanwhile. */
struct wait {
	struct rdmacm_channel *ch;
	struct rdmacm_event *e;
	int cancel_state; /* the caller's */
};

static void end_wait(struct rdmacm_channel *ch)
{
	rdmacm_session_lock();
	ch->waiters--;
	rdmacm_session_unlock();
}

static void on_cancel(void *arg)
{
	struct wait *w = arg;

	end_wait(w->ch);
	free(w->e);
}

/* As the original, rdma_get_cm_event() is a cancellation point though an event is there. */
static void test_cancel(struct wait *w)
{
	pthread_cleanup_push(on_cancel, w);
	base_cancel_restore(w->cancel_state);
	pthread_testcancel();
	base_cancel_off();
	pthread_cleanup_pop(0);
}

/* Waits for a datagram, as the descriptor's flags say. 0; -EIO: the daemon has gone; -EINTR;
 * -EAGAIN. */
static int wait_datagram(struct wait *w)
{
	char byte;
	ssize_t n;
	int ret;

	pthread_cleanup_push(on_cancel, w);
	base_cancel_restore(w->cancel_state);
	n = recv(w->ch->channel.fd, &byte, 1, MSG_PEEK);
	ret = n > 0 ? 0 : n ? -errno : -EIO;
	base_cancel_off();
	pthread_cleanup_pop(0);
	return ret;
}

/* The channel is closed: as if the wait had begun before, it does not end. */
static void wait_for_ever(struct wait *w)
{
	pthread_cleanup_push(on_cancel, w);
	base_cancel_restore(w->cancel_state);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
}

static int wait_event(struct wait *w, struct control_cm_got *got)
{
	int ret;

	test_cancel(w);
	ret = is_closed(w->ch) ? -EAGAIN : claim_event(w->ch, got);
	while (ret == -EAGAIN) {
		ret = wait_datagram(w);
		if ((ret == -EBADF || ret == -EIO) && is_closed(w->ch))
			wait_for_ever(w);
		if (ret == -EIO)
			return claim_last(w->ch, got);
		if (ret)
			return ret;
		ret = claim_event(w->ch, got);
	}
	return ret;
}

static int get_event(struct rdmacm_channel *ch, struct rdmacm_event *e)
{
	struct wait w = { .ch = ch, .e = e, .cancel_state = base_cancel_off() };
	struct control_cm_got got;
	int ret;

	rdmacm_session_lock();
	ch->waiters++;
	rdmacm_session_unlock();
	do {
		memset(e, 0, sizeof(*e));
		ret = wait_event(&w, &got);
	} while (!ret && fill_event(e, &got));
	end_wait(ch);
	base_cancel_restore(w.cancel_state);
	return ret;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct rdmacm_event *e;
	int ret;

	if (!channel || !event)
		return rdmacm_return(-EINVAL);
	e = malloc(sizeof(*e));
	if (!e)
		return rdmacm_return(-ENOMEM);
	ret = get_event(channel_of(channel), e);
	if (ret) {
		free(e);
		return rdmacm_return(ret);
	}
	rdmacm_failure_log(&e->event);
	*event = &e->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct rdmacm_event *e;

	if (!event)
		return rdmacm_return(-EINVAL);
	e = container_of(event, struct rdmacm_event, event);
	rdmacm_id_ack(e->id, e->join);
	free(e);
	return 0;
}
