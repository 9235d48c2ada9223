/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels and their events. A channel's descriptor is a socket on which one
 * byte arrives for each event; the event itself is then asked of the manager. So
 * poll(), epoll and O_NONBLOCK work as they do on the original's device file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/rdmacm/rdmacm.h"

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
 * A thread that waits for events on it waits on, as with the original (mckey ends so):
 * the manager keeps its end until the process ends.
 */
void rdmacm_channel_close(struct rdmacm_channel *ch)
{
	struct control_cm_channel request = { .channel = ch->handle };
	bool waited_on;

	rdmacm_session_lock();
	waited_on = ch->waiters;
	rdmacm_session_unlock();
	if (!waited_on)
		rdmacm_session_call(CONTROL_CM_DESTROY_CHANNEL, &request, sizeof(request), NULL, 0);
	close(ch->channel.fd);
	if (waited_on)
		return;
	pthread_mutex_destroy(&ch->bytes);
	free(ch);
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

int rdmacm_channel_take_back(struct rdma_event_channel *channel, enum control_cm_type type,
                             const void *request, uint32_t bytes,
                             struct control_cm_events_reply *reply)
{
	struct rdmacm_channel *ch = channel_of(channel);
	char byte;
	int ret;

	pthread_mutex_lock(&ch->bytes);
	ret = rdmacm_session_call(type, request, bytes, reply, sizeof(*reply));
	for (uint32_t n = ret ? 0 : reply->taken_back; n; n--)
		if (recv(channel->fd, &byte, 1, MSG_DONTWAIT) != 1)
			break;
	pthread_mutex_unlock(&ch->bytes);
	return ret;
}

/* ---- events ---- */

static void fill_ud(struct rdmacm_event *e, const struct control_cm_event *from)
{
	struct rdma_ud_param *ud = &e->event.param.ud;
	const struct control_cm_ah *ah = &from->ah;

	if (from->bytes) {
		memcpy(e->private_data, from->private_data, sizeof(e->private_data));
		ud->private_data = e->private_data;
		ud->private_data_len = (uint8_t)from->bytes;
	}
	ud->qp_num = from->qp_num;
	ud->qkey = from->qkey;
	ud->ah_attr = (struct ibv_ah_attr){ .grh = { .flow_label = ah->flow_label,
		                                     .sgid_index = ah->sgid_index,
		                                     .hop_limit = ah->hop_limit,
		                                     .traffic_class = ah->traffic_class },
		                            .dlid = ah->dlid,
		                            .sl = ah->sl,
		                            .static_rate = ah->rate,
		                            .is_global = ah->is_global,
		                            .port_num = ah->port_num };
	memcpy(ud->ah_attr.grh.dgid.raw, ah->dgid.raw, sizeof(ah->dgid.raw));
}

static void take_resolved(struct rdmacm_event *e, enum rdma_cm_event_type on_error)
{
	int ret = rdmacm_id_query(e->id);

	if (!ret)
		return;
	e->event.event = on_error;
	e->event.status = ret;
}

static void take_multicast(struct rdmacm_event *e, const struct control_cm_event *from)
{
	int ret;

	e->join = (struct rdmacm_join *)(uintptr_t)from->uid;
	e->id = e->join->id;
	e->event.id = &e->id->id;
	e->event.param.ud.private_data = e->join->context;
	if (from->type != RDMA_CM_EVENT_MULTICAST_JOIN)
		return;
	ret = rdmacm_multicast_joined(e->join, &e->event.param.ud);
	if (!ret)
		return;
	e->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	e->event.status = ret;
}

/* The manager has made an identifier of the request; here is the process's side of it. */
static int take_request(struct rdmacm_event *e, const struct control_cm_event *from)
{
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
	e->event.listen_id = &e->id->id;
	e->event.id = &id->id;
	if (e->id->sync)
		ret = rdma_migrate_id(&id->id, NULL) ? -errno : 0;
	if (!ret)
		ret = rdmacm_id_query(id);
	if (ret)
		rdma_destroy_id(&id->id);
	return ret;
}

/* 0; otherwise the event is not worth telling and is acknowledged. */
static int take(struct rdmacm_event *e, const struct control_cm_event *from)
{
	int ret = 0;

	e->event.event = from->type;
	e->event.status = from->status;
	fill_ud(e, from);
	if (from->type == RDMA_CM_EVENT_MULTICAST_JOIN ||
	    from->type == RDMA_CM_EVENT_MULTICAST_ERROR) {
		take_multicast(e, from);
		return 0;
	}
	e->id = (struct rdmacm_id *)(uintptr_t)from->uid;
	e->event.id = &e->id->id;
	if (from->type == RDMA_CM_EVENT_ADDR_RESOLVED)
		take_resolved(e, RDMA_CM_EVENT_ADDR_ERROR);
	else if (from->type == RDMA_CM_EVENT_ROUTE_RESOLVED)
		take_resolved(e, RDMA_CM_EVENT_ROUTE_ERROR);
	else if (from->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		ret = take_request(e, from);
	if (ret)
		rdmacm_id_ack(e->id, NULL);
	return ret;
}

/* Takes a byte and the event that it stands for. -EAGAIN: somebody else was quicker. */
static int take_event(struct rdmacm_channel *ch, struct control_cm_event *event)
{
	struct control_cm_channel request = { .channel = ch->handle };
	char byte;
	int ret = -EAGAIN;

	pthread_mutex_lock(&ch->bytes);
	if (recv(ch->channel.fd, &byte, 1, MSG_DONTWAIT) == 1)
		ret = rdmacm_session_call(CONTROL_CM_GET_EVENT, &request, sizeof(request), event,
		                          sizeof(*event));
	pthread_mutex_unlock(&ch->bytes);
	return ret;
}

/* Waits, as the descriptor's flags say. -EIO: the manager has gone. */
static int wait_event(struct rdmacm_channel *ch, struct control_cm_event *event)
{
	int ret;

	do {
		char byte;
		ssize_t n = recv(ch->channel.fd, &byte, 1, MSG_PEEK);

		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		ret = take_event(ch, event);
	} while (ret == -EAGAIN);
	return ret;
}

static int get_event(struct rdmacm_channel *ch, struct rdmacm_event *e)
{
	struct control_cm_event from;
	int ret;

	rdmacm_session_lock();
	ch->waiters++;
	rdmacm_session_unlock();
	do {
		memset(e, 0, sizeof(*e));
		ret = wait_event(ch, &from);
	} while (!ret && take(e, &from));
	rdmacm_session_lock();
	ch->waiters--;
	rdmacm_session_unlock();
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
