/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Service ID resolution: how UD identifiers connect (InfiniBand specification volume
 * 1, section 12.11). A request finds the listener at the destination, becomes an
 * identifier of its own there, and is answered by accept or reject. Reliable
 * connections would be made here too; there are none yet.
 *
 * The two ends of a request that is not answered know each other by peer; either may
 * go away first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cm/state.h"

#define SIDR_REQ_PRIVATE 216
#define SIDR_REP_PRIVATE 136
#define CM_HEADER        36    /* of rdma_cm, in the private data of a request; not with AF_IB */
#define TIMEOUT_MS       65536 /* 4.096 s, sent 16 times */
#define MAX_BACKLOG      1024

/* Status of a SIDR_REP. */
enum { SIDR_UNSUPPORTED = 1, SIDR_REJECT = 2 };

/* ---- listening ---- */

int cm_sidr_listen(struct cm_call *call)
{
	const struct control_cm_listen *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	union control_cm_addr any = { .in = { .sin_family = AF_INET } };
	int ret;

	if (!id)
		return -EINVAL;
	if (id->qp_type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	if (id->state == CM_IDLE) {
		ret = cm_resolve_bind_id(id, &any);
		if (ret)
			return ret;
	}
	if (id->state != CM_ADDR_BOUND)
		return -EINVAL;
	ret = cm_binding_may_listen(id);
	if (ret)
		return ret;
	id->backlog = request->backlog > 0 && request->backlog < MAX_BACKLOG ? request->backlog
	                                                                     : MAX_BACKLOG;
	id->state = CM_LISTEN;
	cm_id_describe(id, call->reply);
	call->reply_bytes = sizeof(struct control_cm_id_reply);
	return 0;
}

/* ---- waiting for an answer ---- */

static void part(struct cm_id *id)
{
	if (!id->peer)
		return;
	id->peer->peer = NULL;
	id->peer = NULL;
}

static void on_no_answer(struct cm_timer *t)
{
	struct cm_id *id = container_of(t, struct cm_id, no_answer);

	part(id);
	cm_event_send(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

/* ---- answers ---- */

static void put_private(struct cm_event *e, const struct control_cm_connect *from, uint32_t bytes)
{
	/* a MAD carries all of its private data, used or not */
	e->data.bytes = bytes;
	if (from)
		memcpy(e->data.private_data, from->private_data, from->bytes);
}

/* The asker hears no. @from: with these private data, or none. */
static void answer_no(struct cm_id *asker, int status, const struct control_cm_connect *from)
{
	struct cm_event *e = cm_event_new(asker, RDMA_CM_EVENT_UNREACHABLE, status);

	cm_timer_stop(&asker->no_answer);
	part(asker);
	if (!e)
		return;
	put_private(e, from, SIDR_REP_PRIVATE);
	cm_event_post(e);
}

static void fill_ah(const struct cm_id *id, struct control_cm_ah *ah)
{
	const struct control_cm_path *path = &id->path;

	*ah = (struct control_cm_ah){
		.dlid = path->dlid, .sl = path->sl, .rate = path->rate, .port_num = id->port->num
	};
	if (!path->hop_limit) /* within the subnet */
		return;
	ah->is_global = 1;
	ah->dgid = path->dgid;
	ah->flow_label = path->flow_label;
	ah->traffic_class = path->traffic_class;
	ah->hop_limit = path->hop_limit;
}

static void answer_yes(struct cm_id *asker, uint32_t qkey, const struct control_cm_connect *from)
{
	struct cm_event *e = cm_event_new(asker, RDMA_CM_EVENT_ESTABLISHED, 0);

	cm_timer_stop(&asker->no_answer);
	part(asker);
	if (!e)
		return;
	put_private(e, from, SIDR_REP_PRIVATE);
	if (asker->qkey && asker->qkey != qkey) {
		e->data.type = RDMA_CM_EVENT_ADDR_ERROR;
		e->data.status = -EINVAL;
	} else {
		asker->qkey = qkey;
		e->data.qp_num = from->qp_num;
		e->data.qkey = qkey;
		fill_ah(asker, &e->data.ah);
	}
	cm_event_post(e);
}

void cm_sidr_abandon(struct cm_id *id)
{
	struct cm_id *peer = id->peer;

	cm_timer_stop(&id->no_answer);
	part(id);
	if (peer && id->passive)
		answer_no(peer, SIDR_REJECT, NULL);
}

/* ---- requests ---- */

/* The identifier that a listener gets for the request of @asker, and its announcement. */
static int announce(struct cm_id *listener, struct cm_id *asker, struct fabric_port *at,
                    const struct control_cm_connect *request)
{
	struct cm_event *e = cm_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct cm_id *id;

	if (!e)
		return -ENOMEM;
	id = cm_id_new(listener->client, listener->channel, listener->ps, IBV_QPT_UD);
	if (!id) {
		free(e);
		return -ENOMEM;
	}
	id->state = CM_CONNECT;
	id->passive = true;
	id->src = asker->dst;
	if (cm_addr_is_any(&id->src))
		cm_addr_from_port(listener->client->cm, at, false, &id->src);
	id->dst = asker->src;
	id->pkey = asker->pkey;
	cm_id_use_port(id, at);
	id->dgid = asker->sgid;
	id->peer = asker;
	asker->peer = id;
	listener->backlog--;
	e->announced = id;
	put_private(e, request,
	            listener->src.sa.sa_family == AF_IB ? SIDR_REQ_PRIVATE
	                                                : SIDR_REQ_PRIVATE - CM_HEADER);
	cm_event_post(e);
	return 0;
}

/* What the destination is for those who listen there: no loopback address. */
static union control_cm_addr destination(const struct cm_id *id, const struct fabric_port *at)
{
	union control_cm_addr dst = id->dst;

	if (cm_addr_is_any(&dst))
		cm_addr_from_port(id->client->cm, at, false, &dst);
	return dst;
}

/* The request travels. Nobody there, or no way: it is not answered. */
static void deliver_request(struct cm_id *id, const struct control_cm_connect *request)
{
	struct cm *cm = id->client->cm;
	struct fabric_port *at = fabric_port_by_gid(cm->f, &id->path.dgid);
	union control_cm_addr dst;
	struct cm_id *listener;
	uint8_t mtu;

	cm_timer_set(cm, &id->no_answer, TIMEOUT_MS, on_no_answer);
	if (!at || !cm_resolve_reaches(cm, id->port, at, &mtu))
		return;
	dst = destination(id, at);
	listener = cm_binding_listener(cm, at, id->ps, &dst);
	if (!listener)
		answer_no(id, SIDR_UNSUPPORTED, NULL);
	else if (listener->backlog <= 0 || announce(listener, id, at, request))
		answer_no(id, SIDR_REJECT, NULL);
}

int cm_sidr_connect(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	uint32_t room;

	if (!id || id->state != CM_ROUTE_RESOLVED)
		return -EINVAL;
	if (id->qp_type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	room = id->src.sa.sa_family == AF_IB ? SIDR_REQ_PRIVATE : SIDR_REQ_PRIVATE - CM_HEADER;
	if (request->bytes > room)
		return -EINVAL;
	id->state = CM_CONNECT;
	deliver_request(id, request);
	return 0;
}

int cm_sidr_accept(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	int ret;

	if (!id || !id->passive || id->state != CM_CONNECT)
		return -EINVAL;
	id->passive = false; /* an answer is given once */
	ret = request->bytes > SIDR_REP_PRIVATE ? -EINVAL : cm_id_default_qkey(id);
	if (ret) {
		if (id->peer)
			answer_no(id->peer, SIDR_REJECT, NULL);
		return ret;
	}
	id->uid = request->uid;
	if (id->peer)
		answer_yes(id->peer, id->qkey, request);
	return 0;
}

int cm_sidr_reject(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id || !id->passive || id->state != CM_CONNECT || request->bytes > SIDR_REP_PRIVATE)
		return -EINVAL;
	id->passive = false;
	if (id->peer)
		answer_no(id->peer, SIDR_REJECT, request);
	return 0;
}

int cm_sidr_disconnect(struct cm_call *call)
{
	const struct control_cm_id *request = call->request;
	const struct cm_id *id = cm_id_find(call, request->id);

	/* a resolved service is no connection: nobody has to be told */
	return id && id->state == CM_CONNECT ? 0 : -EINVAL;
}
