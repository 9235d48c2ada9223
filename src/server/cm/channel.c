/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels and their events. Most are sent whole by the channel's outbox. Of those that the
 * process has to ask for, and of those that the outbox has no room for, a byte is sent, and they
 * wait here: no event gets lost once there is memory for it. control/cm_message.h says which are to
 * be asked for, and which side removes withdrawn events from the descriptor. Connection requests
 * that were sent stay with their listener until the process has read them.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cm/state.h"

/* ---- events ---- */

/* Failures that an event alone tells find room though others have none: of each identifier there is
 * one at most, if its process asks for one step after the other. */
#define MAX_WITH_FAILURES (CM_MAX_EVENTS + CONTROL_CM_MAX_IDS)

/* Whether the reader of the channel leaves so many unread. */
static bool is_full(const struct cm *cm, const struct cm_channel *ch, unsigned most)
{
	return ch->n_events >= most || cm->ops.outbox_waiting(ch->box) >= most;
}

/* NULL: @most are unread, or there is no memory. */
static struct cm_event *event_new(struct cm_id *id, enum rdma_cm_event_type type, int status,
                                  unsigned most)
{
	struct cm_event *e;

	if (is_full(id->client->cm, id->channel, most))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e) {
		base_log_warning(cm, "out of memory: an rdma_cm event is lost");
		return NULL;
	}
	e->id = id;
	e->data.uid = id->uid;
	e->data.type = type;
	e->data.status = status;
	return e;
}

struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	return event_new(id, type, status, CM_MAX_EVENTS);
}

struct cm_event *cm_event_new_lost(struct cm_join *j)
{
	struct cm_event *e = event_new(j->id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET, UINT_MAX);

	if (!e)
		return NULL;
	e->join = j;
	e->data.uid = j->uid;
	return e;
}

static void append(struct cm_channel *ch, struct cm_event *e)
{
	TAILQ_INSERT_TAIL(&ch->events, e, entry);
	TAILQ_INSERT_TAIL(&e->id->events, e, of_id);
	if (e->join)
		LIST_INSERT_HEAD(&e->join->events, e, of_join);
	ch->n_events++;
}

static void remove_event(struct cm_channel *ch, struct cm_event *e)
{
	TAILQ_REMOVE(&ch->events, e, entry);
	TAILQ_REMOVE(&e->id->events, e, of_id);
	if (e->join)
		LIST_REMOVE(e, of_join);
	ch->n_events--;
}

static void ring(struct cm *cm, struct cm_channel *ch, enum control_cm_byte what)
{
	if (!ch->doomed)
		cm->ops.outbox_ring(ch->box, (uint8_t)what);
}

static void fill_got(const struct cm_event *e, struct cm_id *about, struct control_cm_got *got)
{
	got->event = e->data;
	cm_id_describe(about, &got->id);
	got->has_qp = about->qp_type != IBV_QPT_UD && !cm_id_describe_qp(about, &got->qp);
}

/* 0 or -errno: there is no room for it. */
static int send_whole(struct cm_event *e)
{
	struct control_cm_got got = { 0 };
	struct cm_id *id = e->id;
	int ret = 0;

	fill_got(e, id, &got);
	if (!id->channel->doomed)
		ret = id->client->cm->ops.outbox_send(id->channel->box, &got, sizeof(got));
	if (ret)
		return ret;
	id->events_sent++;
	free(e);
	return 0;
}

/* The identifier is the process's from now on, and the event tells of it. */
static void send_request(struct cm_event *e)
{
	struct control_cm_got got = { 0 };
	struct cm_id *listener = e->id, *id = e->announced;

	if (listener->channel->doomed || cm_id_add_announced(id))
		goto err;
	e->data.new_id = id->handle;
	fill_got(e, id, &got);
	if (listener->client->cm->ops.outbox_send(listener->channel->box, &got, sizeof(got)))
		goto err;
	listener->events_sent++;
	id->announced_by = e;
	TAILQ_INSERT_TAIL(&listener->requests, e, of_id);
	listener->n_requests++;
	return;
err:
	cm_event_free(e);
}

/* Whether the process wants it. */
static bool is_wanted(const struct cm_event *e)
{
	_Atomic uint32_t *word = cm_id_word(e->id);

	return !word || shm_events_send(word);
}

void cm_event_post(struct cm_event *e)
{
	if (!is_wanted(e)) {
		cm_event_free(e);
		return;
	}
	if (e->announced) {
		send_request(e);
		return;
	}
	if (!e->join && !send_whole(e))
		return;
	append(e->id->channel, e);
	ring(e->id->client->cm, e->id->channel, CONTROL_CM_ASK);
}

int cm_event_send(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *e = cm_event_new(id, type, status);

	if (!e)
		return -ENOMEM;
	cm_event_post(e);
	return 0;
}

int cm_event_failure(const struct cm_call *call, struct cm_id *id, enum rdma_cm_event_type type,
                     int status)
{
	struct cm_event *e = NULL;

	if (status && !call->waited)
		e = event_new(id, type, status, MAX_WITH_FAILURES);
	if (e)
		cm_event_post(e);
	return status;
}

void cm_event_free(struct cm_event *e)
{
	struct cm_id *id = e->announced;

	if (id) {
		e->id->backlog++;
		id->announced_by = NULL;
		cm_id_free(id);
	}
	free(e);
}

void cm_request_used(struct cm_id *id)
{
	struct cm_event *e = id->announced_by;

	if (!e)
		return;
	e->id->backlog++;
	e->announced = NULL;
	id->announced_by = NULL;
}

static void remove_request(struct cm_event *e)
{
	TAILQ_REMOVE(&e->id->requests, e, of_id);
	e->id->n_requests--;
}

void cm_requests_read(struct cm_id *listener, uint32_t n)
{
	struct cm_event *e;

	for (; listener->n_requests_read != n && (e = TAILQ_FIRST(&listener->requests));
	     listener->n_requests_read++) {
		if (e->announced)
			cm_request_used(e->announced);
		remove_request(e);
		free(e);
	}
}

void cm_requests_drop(struct cm_id *listener)
{
	struct cm_event *e;

	while ((e = TAILQ_FIRST(&listener->requests))) {
		remove_request(e);
		cm_event_free(e);
	}
}

/* Removes it from the queue and frees it. */
static void drop(struct cm_channel *ch, struct cm_event *e)
{
	remove_event(ch, e);
	cm_event_free(e);
}

uint32_t cm_event_withdraw(struct cm_id *id, const struct cm_join *join)
{
	struct cm_event *e;
	uint32_t n = 0;

	while ((e = join ? LIST_FIRST(&join->events) : TAILQ_FIRST(&id->events))) {
		drop(id->channel, e);
		n++;
	}
	return n;
}

uint32_t cm_event_move(struct cm_id *id, struct cm_channel *to)
{
	struct cm_channel *from = id->channel;
	struct cm_event *e;
	uint32_t n = 0;

	if (from == to)
		return 0;
	TAILQ_FOREACH(e, &id->events, of_id)
	{
		TAILQ_REMOVE(&from->events, e, entry);
		TAILQ_INSERT_TAIL(&to->events, e, entry);
		ring(id->client->cm, to, CONTROL_CM_ASK);
		n++;
	}
	from->n_events -= n;
	to->n_events += n;
	TAILQ_FOREACH(e, &id->requests, of_id)
	if (e->announced)
		cm_id_move(e->announced, to);
	return n;
}

/* ---- channels ---- */

int cm_channel_create(struct cm_call *call)
{
	struct control_cm_channel_reply *reply = call->reply;
	struct cm_channel *ch = calloc(1, sizeof(*ch));
	int ret;

	if (!ch)
		return -ENOMEM;
	ch->client = call->client;
	TAILQ_INIT(&ch->events);
	LIST_INIT(&ch->ids);
	ret = base_idtable_add(&call->client->channels, ch, &ch->handle);
	if (ret)
		goto err_free;
	ret = call->cm->ops.outbox_open(call->cm->ops.arg, &ch->box, &call->fd);
	if (ret)
		goto err_handle;
	call->client->n_channels++;
	reply->channel = ch->handle;
	reply->events = call->client->events ? call->client->events_off : 0;
	call->reply_bytes = sizeof(*reply);
	return 0;
err_handle:
	base_idtable_remove(&call->client->channels, ch->handle);
err_free:
	free(ch);
	return ret;
}

static void channel_free(struct cm_channel *ch)
{
	struct cm_client *client = ch->client;

	client->cm->ops.outbox_close(ch->box);
	TAILQ_REMOVE(&client->cm->doomed, ch, of_doomed);
	free(ch);
	client->n_channels--;
	cm_client_release(client);
}

/* Frees the next identifier of the channel, or the channel. */
static void free_next(struct cm_channel *ch)
{
	struct cm_id *id = LIST_FIRST(&ch->ids);

	if (id)
		cm_id_free(id);
	else
		channel_free(ch);
}

static bool is_swept(const struct cm *cm)
{
	return LIST_EMPTY(&cm->ending) && TAILQ_EMPTY(&cm->doomed) && !cm_programs_wait(cm);
}

/* A step of each kind. How many. */
static unsigned sweep_step(struct cm *cm)
{
	unsigned n = 0;

	if (!LIST_EMPTY(&cm->ending)) {
		cm_id_end_join(LIST_FIRST(&cm->ending));
		n++;
	}
	if (!TAILQ_EMPTY(&cm->doomed)) {
		free_next(TAILQ_FIRST(&cm->doomed));
		n++;
	}
	if (cm_programs_wait(cm)) {
		cm_programs_work(cm);
		n++;
	}
	return n;
}

void cm_sweep_all(struct cm *cm)
{
	while (sweep_step(cm))
		;
}

static void on_sweep(struct base_timer *t);

/* Does what there is time for now: in turn of each kind, so that none waits until another one has
 * nothing to do. */
static void sweep_some(struct cm *cm)
{
	while (cm->spare && (cm_groups_wait(cm) || !is_swept(cm))) {
		unsigned before = cm->worked, cost = cm_groups_wait(cm);

		if (cm_groups_wait(cm))
			cm_groups_work(cm);
		cost += sweep_step(cm);
		cost += cm->worked - before;
		cm->spare -= cost < cm->spare ? cost : cm->spare;
	}
	if (cm->spare < CM_SLICE / 2 || cm_groups_wait(cm) || !is_swept(cm))
		base_timer_set_in(cm->ops.timers, &cm->sweep, 0, on_sweep);
}

static void on_sweep(struct base_timer *t)
{
	struct cm *cm = container_of(t, struct cm, sweep);

	cm->spare = CM_SLICE;
	sweep_some(cm);
}

void cm_sweep_begin(struct cm *cm)
{
	if (!base_timer_is_set(&cm->sweep))
		sweep_some(cm);
}

void cm_sweep_later(struct cm *cm)
{
	if (!base_timer_is_set(&cm->sweep))
		base_timer_set_in(cm->ops.timers, &cm->sweep, 0, on_sweep);
}

void cm_channel_doom(struct cm_channel *ch)
{
	struct cm *cm = ch->client->cm;

	base_idtable_remove(&ch->client->channels, ch->handle);
	ch->doomed = true;
	TAILQ_INSERT_TAIL(&cm->doomed, ch, of_doomed);
	cm_sweep_begin(cm);
}

int cm_channel_destroy(struct cm_call *call)
{
	const struct control_cm_channel *request = call->request;
	struct cm_channel *ch = base_idtable_get(&call->client->channels, request->channel);

	if (!ch)
		return -EBADF;
	cm_channel_doom(ch);
	return 0;
}

int cm_channel_get_event(struct cm_call *call)
{
	const struct control_cm_channel *request = call->request;
	struct cm_channel *ch = base_idtable_get(&call->client->channels, request->channel);
	struct cm_event *e;

	if (!ch)
		return -EBADF;
	e = TAILQ_FIRST(&ch->events);
	if (!e)
		return -EAGAIN;
	fill_got(e, e->id, call->reply);
	call->reply_bytes = sizeof(struct control_cm_got);
	e->id->events_reported++;
	if (e->join)
		e->join->events_reported++;
	drop(ch, e);
	return 0;
}

int cm_channel_read(struct cm_call *call)
{
	const struct control_cm_read *request = call->request;
	struct cm_id *listener = cm_id_find(call, request->id);

	if (listener)
		cm_requests_read(listener, request->requests);
	return 0;
}

int cm_channel_ring(struct cm_call *call)
{
	const struct control_cm_ring *request = call->request;
	struct cm_channel *ch = base_idtable_get(&call->client->channels, request->channel);

	if (!ch)
		return -EBADF;
	if (request->n > CONTROL_CM_MAX_RING || request->byte >= CONTROL_CM_BYTES)
		return -EINVAL;
	for (uint32_t i = 0; i < request->n; i++)
		ring(call->cm, ch, request->byte);
	return 0;
}

/* The request that brings @new_id, of those that the process has not read; NULL: there is none. */
static struct cm_event *find_request(const struct cm_id *listener, uint32_t new_id)
{
	struct cm_event *e;

	TAILQ_FOREACH(e, &listener->requests, of_id)
	if (e->data.new_id == new_id)
		return e;
	return NULL;
}

/* A request's datagram is the last one now, or there is none. */
static void request_returned(struct cm_id *listener, uint32_t new_id, bool sent)
{
	struct cm_event *e = find_request(listener, new_id);

	if (e && sent) {
		TAILQ_REMOVE(&listener->requests, e, of_id);
		TAILQ_INSERT_TAIL(&listener->requests, e, of_id);
	} else if (e) {
		remove_request(e);
		cm_event_free(e);
	}
}

int cm_channel_return(struct cm_call *call)
{
	const struct control_cm_return *request = call->request;
	struct cm_channel *ch = base_idtable_get(&call->client->channels, request->channel);
	struct cm_id *id = cm_id_at(call->client, request->id);
	int ret;

	if (!ch || !id)
		return -EBADF;
	ret = call->cm->ops.outbox_send(ch->box, &request->got, sizeof(request->got));
	if (request->got.event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
		request_returned(id, request->got.event.new_id, !ret);
	return ret;
}
