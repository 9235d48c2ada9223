/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels and the events that wait in them. For each event one byte goes out
 * by the channel's outbox: the process sees by its descriptor that there is
 * something, and asks for it. See control/cm_message.h for who takes bytes back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cm/state.h"

/* ---- events ---- */

struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *e;

	if (id->channel->n_events >= CM_MAX_EVENTS)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e) {
		base_log("out of memory: an rdma_cm event is lost");
		return NULL;
	}
	e->id = id;
	e->data.uid = id->uid;
	e->data.type = type;
	e->data.status = status;
	return e;
}

static void append(struct cm_channel *ch, struct cm_event *e)
{
	TAILQ_INSERT_TAIL(&ch->events, e, entry);
	ch->n_events++;
}

static void take_out(struct cm_channel *ch, struct cm_event *e)
{
	TAILQ_REMOVE(&ch->events, e, entry);
	ch->n_events--;
}

static void ring(struct cm *cm, struct cm_channel *ch)
{
	cm->ops.outbox_send(ch->box, "", 1);
}

void cm_event_post(struct cm_event *e)
{
	append(e->id->channel, e);
	ring(e->id->client->cm, e->id->channel);
}

int cm_event_send(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *e = cm_event_new(id, type, status);

	if (!e)
		return -ENOMEM;
	cm_event_post(e);
	return 0;
}

/* Takes it out of the queue; a request that nobody has seen is refused with it. */
static void drop(struct cm_channel *ch, struct cm_event *e)
{
	take_out(ch, e);
	if (e->announced) {
		e->id->backlog++;
		cm_id_free(e->announced);
	}
	free(e);
}

uint32_t cm_event_take_back(struct cm_id *id, const struct cm_join *join)
{
	struct cm_channel *ch = id->channel;
	struct cm_event *e = TAILQ_FIRST(&ch->events);
	uint32_t n = 0;

	while (e) {
		struct cm_event *next = TAILQ_NEXT(e, entry);

		if (e->id == id && (!join || e->join == join)) {
			drop(ch, e);
			n++;
		}
		e = next;
	}
	return n;
}

uint32_t cm_event_move(struct cm_id *id, struct cm_channel *to)
{
	struct cm_channel *from = id->channel;
	struct cm_event *e = TAILQ_FIRST(&from->events);
	uint32_t n = 0;

	if (from == to)
		return 0;
	while (e) {
		struct cm_event *next = TAILQ_NEXT(e, entry);

		if (e->id == id) {
			take_out(from, e);
			append(to, e);
			ring(id->client->cm, to);
			if (e->announced)
				e->announced->channel = to;
			n++;
		}
		e = next;
	}
	return n;
}

/* ---- channels ---- */

int cm_channel_create(struct cm_call *call)
{
	struct control_cm_channel *reply = call->reply;
	struct cm_channel *ch = calloc(1, sizeof(*ch));
	int ret;

	if (!ch)
		return -ENOMEM;
	TAILQ_INIT(&ch->events);
	ret = base_idtable_add(&call->client->channels, ch, &ch->handle);
	if (ret)
		goto err_free;
	ret = call->cm->ops.outbox_open(call->cm->ops.arg, &ch->box, &call->fd);
	if (ret)
		goto err_handle;
	reply->channel = ch->handle;
	call->reply_bytes = sizeof(*reply);
	return 0;
err_handle:
	base_idtable_remove(&call->client->channels, ch->handle);
err_free:
	free(ch);
	return ret;
}

/* The identifiers on it go first. */
void cm_channel_free(struct cm_client *client, struct cm_channel *ch)
{
	for (uint32_t i = 0; i < client->ids.size; i++) {
		struct cm_id *id = base_idtable_get(&client->ids, i);

		if (id && id->channel == ch)
			cm_id_free(id);
	}
	client->cm->ops.outbox_close(ch->box);
	base_idtable_remove(&client->channels, ch->handle);
	free(ch);
}

int cm_channel_destroy(struct cm_call *call)
{
	const struct control_cm_channel *request = call->request;
	struct cm_channel *ch = base_idtable_get(&call->client->channels, request->channel);

	if (!ch)
		return -EBADF;
	cm_channel_free(call->client, ch);
	return 0;
}

/* The identifier that a connection request announces is the process's from here on. */
static int hand_over(struct cm_event *e)
{
	int ret = cm_id_add_handle(e->announced);

	if (ret)
		return ret;
	e->data.new_id = e->announced->handle;
	e->announced = NULL;
	e->id->backlog++;
	return 0;
}

int cm_channel_get_event(struct cm_call *call)
{
	const struct control_cm_channel *request = call->request;
	struct cm_channel *ch = base_idtable_get(&call->client->channels, request->channel);
	struct cm_event *e;
	int ret;

	if (!ch)
		return -EBADF;
	e = TAILQ_FIRST(&ch->events);
	if (!e)
		return -EAGAIN;
	ret = e->announced ? hand_over(e) : 0;
	if (!ret) {
		memcpy(call->reply, &e->data, sizeof(e->data));
		call->reply_bytes = sizeof(e->data);
		e->id->events_reported++;
		if (e->join)
			e->join->events_reported++;
	}
	drop(ch, e);
	return ret;
}
