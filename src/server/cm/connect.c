/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part that UD and connections have in common: listening, and the identifiers that listeners
 * get for requests. Calls and MADs go from here to sidr.c (UD) or conn.c (connections).
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "cm/mad.h"
#include "cm/state.h"

/* Of a listener whose process uses the identifiers of requests, but does not say that it has read
 * the requests. */
#define MAX_REQUESTS (2 * CONTROL_CM_MAX_BACKLOG)

/* ---- listening ---- */

/* Whether identifiers of this type can connect: queue pairs of theirs exist. Of XRC one type asks
 * and one is asked: @xrc. 0 or -EOPNOTSUPP. */
static int check_type(const struct cm_id *id, enum ibv_qp_type xrc)
{
	if (id->qp_type == IBV_QPT_UD || id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_UC ||
	    id->qp_type == xrc)
		return 0;
	return base_because(-EOPNOTSUPP, "there are no connections of queue pair type %u",
	                    id->qp_type);
}

int cm_connect_start_listening(struct cm_id *id, int backlog)
{
	union control_cm_addr any = { .in = { .sin_family = AF_INET } };
	int ret = check_type(id, IBV_QPT_XRC_RECV);

	if (ret)
		return ret;
	if (id->state == CM_IDLE) {
		ret = cm_resolve_bind_id(id, &any);
		if (ret)
			return ret;
	}
	if (id->state != CM_ADDR_BOUND)
		return base_because(-EINVAL, "the identifier listens, or is connected, already");
	ret = cm_binding_may_listen(id);
	if (ret)
		return ret;
	id->backlog =
	        backlog > 0 && backlog < CONTROL_CM_MAX_BACKLOG ? backlog : CONTROL_CM_MAX_BACKLOG;
	id->backlog_for_each = id->backlog / 8;
	id->state = CM_LISTEN;
	id->client->cm->n_listeners++;
	return 0;
}

int cm_connect_listen(struct cm_call *call)
{
	const struct control_cm_listen *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	int ret = id ? cm_connect_start_listening(id, request->backlog) : -EINVAL;

	if (ret)
		return ret;
	cm_id_describe(id, call->reply);
	call->reply_bytes = sizeof(struct control_cm_id_reply);
	return 0;
}

/* ---- calls ---- */

static int start_connecting(struct cm_id *id, const struct control_cm_connect *request)
{
	int ret;

	if (id->state != CM_ROUTE_RESOLVED)
		return base_because(
		        -EINVAL,
		        "the route is not resolved: rdma_resolve_route() first, and its event");
	if (request->bytes > CONTROL_CM_PRIVATE)
		return -EINVAL;
	ret = check_type(id, IBV_QPT_XRC_SEND);
	if (ret)
		return ret;
	if (id->qp_type == IBV_QPT_XRC_SEND &&
	    !cm_roce_connects(id->client->cm, id->port, &id->dgid))
		return base_because(-EOPNOTSUPP, "XRC on RoCE is between hosts of one fabric, and "
		                                 "the destination is in none of this one");
	ret = id->qp_type == IBV_QPT_UD ? cm_sidr_connect(id, request)
	                                : cm_conn_connect(id, request);
	if (!ret)
		id->state = CM_CONNECT;
	return ret;
}

int cm_connect_connect(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id)
		return -EINVAL;
	return cm_event_failure(call, id, RDMA_CM_EVENT_CONNECT_ERROR,
	                        start_connecting(id, request));
}

/* Whether it can be accepted or rejected, with so many bytes of private data. */
static bool is_asked(const struct cm_id *id, uint32_t bytes)
{
	return id->state == CM_CONNECT && bytes <= CONTROL_CM_PRIVATE;
}

static int start_accepting(struct cm_id *id, const struct control_cm_connect *request)
{
	if (!is_asked(id, request->bytes))
		return base_because(-EINVAL, "the identifier is not one of a connect request");
	return id->qp_type == IBV_QPT_UD ? cm_sidr_accept(id, request)
	                                 : cm_conn_accept(id, request);
}

int cm_connect_accept(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	int ret = id ? start_accepting(id, request) : -EINVAL;

	if (!id || !ret || call->waited)
		return ret;
	if (!id->uid)
		id->uid = request->uid; /* for the event */
	return cm_event_failure(call, id, RDMA_CM_EVENT_CONNECT_ERROR, ret);
}

int cm_connect_reject(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id || !is_asked(id, request->bytes))
		return base_because(-EINVAL, "the identifier is not one of a connect request");
	return id->qp_type == IBV_QPT_UD ? cm_sidr_reject(id, request)
	                                 : cm_conn_reject(id, request);
}

int cm_connect_disconnect(struct cm_call *call)
{
	const struct control_cm_id *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id)
		return -EINVAL;
	if (id->qp_type != IBV_QPT_UD)
		return cm_conn_disconnect(id);
	/* a resolved service is no connection: the other end is not told */
	if (id->state == CM_CONNECT)
		return 0;
	return base_because(-EINVAL, "the identifier is not connected");
}

int cm_connect_establish(struct cm_call *call)
{
	const struct control_cm_id *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	return id ? cm_conn_establish(id) : -EINVAL;
}

int cm_connect_notify(struct cm_call *call)
{
	const struct control_cm_notify *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	return id ? cm_conn_notify(id, request->event) : -EINVAL;
}

/* ---- requests that come ---- */

void cm_connect_read_addresses(const struct cm *cm, struct cm_asked *asked)
{
	struct wire_cm_ip ip;

	wire_cm_ip_decode(asked->private_data, &ip);
	/* only services of the port spaces have them (annex A11) */
	if (asked->service_id >> 32 ||
	    !cm_addr_from_wire(&ip, (uint16_t)asked->service_id, &asked->src, &asked->dst)) {
		memset(&asked->src, 0, sizeof(asked->src));
		memset(&asked->dst, 0, sizeof(asked->dst));
		asked->src.sa.sa_family = asked->dst.sa.sa_family = AF_IB;
	} else if (cm_addr_is_zero(&asked->dst)) {
		/* the listener is not told of no address, but of the port's own */
		cm_addr_from_port(cm, asked->port, false, &asked->dst);
	}
}

/* The addresses of both ends for a listener of family AF_IB, whatever is in the request. */
static void describe_by_gid(struct cm_id *id, const struct cm_asked *asked)
{
	memset(&id->src, 0, sizeof(id->src));
	memset(&id->dst, 0, sizeof(id->dst));
	id->src.sa.sa_family = id->dst.sa.sa_family = AF_IB;
	memcpy(id->src.ib.sib_addr.sib_raw, id->sgid.raw, sizeof(id->sgid.raw));
	id->src.ib.sib_sid = htobe64(asked->service_id);
	id->src.ib.sib_sid_mask = UINT64_MAX;
	id->src.ib.sib_pkey = htobe16(id->pkey);
	memcpy(id->dst.ib.sib_addr.sib_raw, id->dgid.raw, sizeof(id->dgid.raw));
	id->dst.ib.sib_pkey = htobe16(id->pkey);
}

/* Finds the requester's GID: in its request, from its packet, or from the port that has its
 * address. A loopback address is of the port that the request came to. */
static void find_dgid(struct cm_id *id, const struct cm_asked *asked)
{
	const struct fabric_port *port = NULL;
	struct cm *cm = id->client->cm;

	if (asked->gid)
		id->dgid = *asked->gid;
	else if (asked->peer->has_grh)
		id->dgid = asked->peer->gid;
	else if (id->dst.sa.sa_family != AF_IB && cm_addr_is_loopback(&id->dst))
		id->dgid = id->sgid;
	else if (id->dst.sa.sa_family != AF_IB)
		port = cm_addr_find(cm, CM_ALL_HOSTS, &id->dst);
	if (port)
		cm_port_gid(cm, port, &id->dgid);
}

/* The identifier that @listener gets. NULL: no memory. */
static struct cm_id *passive_id(struct cm_id *listener, const struct cm_asked *asked)
{
	struct cm_id *id =
	        cm_id_new(listener->client, listener->channel, listener->ps, listener->qp_type);

	if (!id)
		return NULL;
	id->state = CM_CONNECT;
	id->passive = true;
	id->pkey = asked->pkey;
	id->src = asked->dst;
	id->dst = asked->src;
	cm_id_use_port(id, asked->port);
	cm_roce_use_source(id);
	find_dgid(id, asked);
	if (listener->src.sa.sa_family == AF_IB)
		describe_by_gid(id, asked);
	return id;
}

static bool is_same(const struct cm_peer *a, const struct cm_peer *b)
{
	return a->lid == b->lid && ib_gid_equal(&a->gid, &b->gid);
}

/*
 * Whether the backlog has room for a request of @peer. One port alone, that sends more than the
 * program takes, does not fill it: the last eighth is for ports that have no request in it.
 */
static bool has_room(const struct cm_id *listener, const struct cm_peer *peer)
{
	const struct cm_event *e;

	if (listener->n_requests >= MAX_REQUESTS)
		return false;
	if (listener->backlog <= 0 || listener->backlog > listener->backlog_for_each)
		return listener->backlog > 0;
	TAILQ_FOREACH(e, &listener->requests, of_id)
	if (e->announced && is_same(&e->peer, peer))
		return false;
	return true;
}

struct cm_event *cm_connect_announce(struct cm_id *listener, const struct cm_asked *asked)
{
	const bool by_gid = listener->src.sa.sa_family == AF_IB;
	struct cm_event *e;

	if (!by_gid && asked->dst.sa.sa_family == AF_IB)
		return NULL;
	if (!has_room(listener, asked->peer)) {
		listener->client->cm->f->mads->stats.backlog++;
		return NULL;
	}
	e = cm_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (!e)
		return NULL;
	e->announced = passive_id(listener, asked);
	if (!e->announced) {
		free(e);
		return NULL;
	}
	e->peer = *asked->peer;
	listener->backlog--;
	return e;
}

/* ---- both ---- */

void cm_connect_fill_ah(const struct cm_id *id, struct control_cm_ah *ah)
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
	ah->sgid_index = cm_id_sgid_index(id);
}

bool cm_connect_input(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                      const struct fabric_mad *mad)
{
	if (head->class_version != MAD_VERSION_COM_MGT || head->method != MAD_SEND)
		return false;
	switch (head->attribute_id) {
	case CM_ATTR_SIDR_REQ:
		cm_sidr_receive_request(cm, port, head, mad);
		return true;
	case CM_ATTR_SIDR_REP:
		return cm_sidr_receive_response(cm, port, mad);
	default:
		return cm_conn_input(cm, port, head, mad);
	}
}
