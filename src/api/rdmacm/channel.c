/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels and their events. A channel's descriptor is a socket on which one
 * byte arrives for each event; the event itself is then asked of the daemon. So
 * poll(), epoll and O_NONBLOCK work as they do on the original's device file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/rdmacm/rdmacm.h"
#include "base/signals.h"

static struct rdmacm_channel *channel_of(struct rdma_event_channel *channel)
{
	return container_of(channel, struct rdmacm_channel, channel);
}

/* ---- channels ---- */

int rdmacm_channel_open(struct rdmacm_channel **out)
{
	struct rdmacm_channel *ch = calloc(1, sizeof(*ch));
	int ret;

	if (!ch)
		return -ENOMEM;
	ret = rdmacm_session_channel(&ch->handle, &ch->channel.fd);
	if (ret) {
		free(ch);
		return ret;
	}
	pthread_mutex_init(&ch->bytes, NULL);
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
		rdmacm_session_call(CONTROL_CM_DESTROY_CHANNEL, &request, sizeof(request), NULL, 0);
	close(ch->channel.fd);
	if (!waited_on)
		rdmacm_session_bury(ch);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdmacm_channel *ch;
	int ret = rdmacm_channel_open(&ch);

	if (ret) {
		rdmacm_return(ret);
		return NULL;
	}
	return &ch->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (channel)
		rdmacm_channel_close(channel_of(channel));
}

int rdmacm_channel_withdraw(struct rdma_event_channel *channel, enum control_cm_type type,
                            const void *request, uint32_t bytes,
                            struct control_cm_events_reply *reply)
{
	struct rdmacm_channel *ch = channel_of(channel);
	char byte;
	int ret, cancel_state = base_cancel_off();

	pthread_mutex_lock(&ch->bytes);
	ret = rdmacm_session_call(type, request, bytes, reply, sizeof(*reply));
	for (uint32_t n = ret ? 0 : reply->withdrawn; n; n--)
		if (recv(channel->fd, &byte, 1, MSG_DONTWAIT) != 1)
			break;
	pthread_mutex_unlock(&ch->bytes);
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

/* What has come along with the event is asked for no more. */
static int update(struct rdmacm_id *id, const struct control_cm_got *got)
{
	id->has_qp = got->has_qp;
	id->qp = got->qp;
	return rdmacm_id_update(id, &got->id);
}

static void on_resolved(struct rdmacm_event *e, const struct control_cm_got *got,
                        enum rdma_cm_event_type on_error)
{
	int ret = update(e->id, got);

	if (!ret)
		return;
	e->event.event = on_error;
	e->event.status = ret;
}

static void on_multicast(struct rdmacm_event *e, const struct control_cm_event *from)
{
	int ret;

	e->join = (struct rdmacm_join *)(uintptr_t)from->uid;
	e->id = e->join->id;
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
		struct control_cm_id request = { .id = from->new_id };
		struct control_cm_events_reply reply;

		rdmacm_session_call(CONTROL_CM_DESTROY_ID, &request, sizeof(request), &reply,
		                    sizeof(reply));
		return ret;
	}
	id->handle = from->new_id;
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

	id->has_qp = got->has_qp;
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

/* What this side has to do with the event. 0; otherwise it is not worth telling. */
static int act(struct rdmacm_event *e, const struct control_cm_got *got)
{
	switch (got->event.type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		on_resolved(e, got, RDMA_CM_EVENT_ADDR_ERROR);
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		on_resolved(e, got, RDMA_CM_EVENT_ROUTE_ERROR);
		return 0;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return on_request(e, got);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		on_response(e, got);
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

/* Receives a byte and gets the event that it stands for. -EAGAIN: another thread was quicker. */
static int claim_event(struct rdmacm_channel *ch, struct control_cm_got *got)
{
	struct control_cm_channel request = { .channel = ch->handle };
	char byte;
	int ret = -EAGAIN;

	pthread_mutex_lock(&ch->bytes);
	if (recv(ch->channel.fd, &byte, 1, MSG_DONTWAIT) == 1)
		ret = rdmacm_session_call(CONTROL_CM_GET_EVENT, &request, sizeof(request), got,
		                          sizeof(*got));
	pthread_mutex_unlock(&ch->bytes);
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

/*
 * Waits for a byte, as the descriptor's flags say. The one cancellation point of
 * rdma_get_cm_event(). 0; -EIO: the daemon has gone; -EINTR; -EAGAIN.
 */
static int wait_byte(struct wait *w)
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

static bool is_closed(const struct rdmacm_channel *ch)
{
	bool closed;

	rdmacm_session_lock();
	closed = ch->closed;
	rdmacm_session_unlock();
	return closed;
}

static int wait_event(struct wait *w, struct control_cm_got *got)
{
	int ret;

	do {
		ret = wait_byte(w);
		if ((ret == -EBADF || ret == -EIO) && is_closed(w->ch))
			wait_for_ever(w);
		if (ret)
			return ret;
		ret = claim_event(w->ch, got);
	} while (ret == -EAGAIN);
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
