/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Service ID resolution: how UD identifiers connect (InfiniBand specification volume
 * 1, section 12.11). A SIDR_REQ is sent until a SIDR_REP is received. At the other end a listener
 * gets it as a new identifier; the SIDR_REP is sent when that is accepted, rejected or destroyed.
 * If the same request is received again, the same response is sent again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cm/mad.h"
#include "cm/state.h"

#define TRIES  16 /* the kernel's, and how far they are apart */
#define TRY_MS 4096

/* A request, at one of its ends. */
struct cm_sidr {
	struct base_hash_node node; /* in cm->asking or cm->asked */
	struct cm_id *id;
	struct fabric_port *port;
	uint32_t request_id;
	/* requesting end */
	struct cm_transaction *sent;
	struct cm_event *event; /* to be posted with the outcome */
	/* listening end */
	struct cm_peer peer;
	uint64_t tid, service_id;
	struct fabric_mad *response; /* that has been sent; NULL: none yet */
};

/* ---- the requesting end ---- */

static uint64_t asking_hash(uint32_t request_id)
{
	return base_hash_of(&request_id, sizeof(request_id), 0);
}

static struct cm_sidr *asking_find(const struct cm *cm, const struct fabric_port *port,
                                   uint32_t request_id)
{
	struct cm_sidr *s;

	BASE_HASH_FOREACH(s, &cm->asking, asking_hash(request_id), node)
		if (s->request_id == request_id && s->port == port)
			return s;
	return NULL;
}

static void asking_free(struct cm_sidr *s)
{
	struct cm *cm = s->id->client->cm;

	cm_mad_cancel(&s->sent);
	base_hash_remove(&cm->asking, &s->node);
	free(s->event);
	s->id->sidr = NULL;
	free(s);
}

static int asking_new(struct cm_id *id, struct cm_sidr **out)
{
	struct cm *cm = id->client->cm;
	struct cm_sidr *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->event = cm_event_new(id, RDMA_CM_EVENT_UNREACHABLE, 0);
	if (!s->event)
		goto err_free;
	s->id = id;
	s->port = id->port;
	s->request_id = ++cm->last_request_id;
	if (base_hash_add(&cm->asking, &s->node, asking_hash(s->request_id)))
		goto err_event;
	id->sidr = s;
	*out = s;
	return 0;
err_event:
	free(s->event);
err_free:
	free(s);
	return -ENOMEM;
}

/* Tells the program the outcome. */
static void asking_done(struct cm_sidr *s)
{
	struct cm_event *e = s->event;

	s->event = NULL;
	asking_free(s);
	cm_event_post(e);
}

static void on_no_response(void *arg, int status, const struct fabric_mad *response)
{
	struct cm_sidr *s = arg;

	(void)response;
	s->sent = NULL;
	s->event->data.status = status;
	asking_done(s);
}

/* A request to where the path leads: with IP addresses before the private data, if it has any. */
static void make_request(struct cm_sidr *s, const struct control_cm_connect *from,
                         struct fabric_mad *mad)
{
	const struct cm_id *id = s->id;
	struct cm_peer to = { .gid = id->path.dgid,
		              .own = id->path.sgid,
		              .lid = id->path.dlid,
		              .has_grh = id->path.hop_limit != 0,
		              .sl = id->path.sl };
	const struct wire_mad head = { .transaction_id = cm_mad_new_tid(id->client->cm),
		                       .attribute_id = CM_ATTR_SIDR_REQ };
	struct wire_sidr_req req = { .request_id = s->request_id,
		                     .pkey = id->path.pkey,
		                     .service_id = cm_resolve_service_id(id->ps, &id->dst) };

	cm_addr_put_private(id, from, req.private_data);
	cm_port_pkey_index(s->port, id->pkey, &to.pkey_index); /* else by the first */
	cm_mad_begin(id->client->cm, s->port, &to, &head, mad);
	wire_sidr_req_encode(&req, mad->data + CM_MESSAGE_AT);
}

static int ask(struct cm_id *id, const struct control_cm_connect *request)
{
	struct fabric_mad mad;
	struct cm_repetition repetition = { .port = id->port,
		                            .mad = &mad,
		                            .tries = TRIES,
		                            .try_ms = TRY_MS,
		                            .done = on_no_response };
	struct cm_sidr *s;
	int ret = asking_new(id, &s);

	if (ret)
		return ret;
	make_request(s, request, &mad);
	repetition.arg = s;
	ret = cm_mad_repeat(id->client->cm, &repetition, &s->sent);
	if (ret)
		asking_free(s);
	return ret;
}

int cm_sidr_connect(struct cm_id *id, const struct control_cm_connect *request)
{
	uint32_t room = CM_SIDR_REQ_PRIVATE;

	if (id->dst.sa.sa_family != AF_IB)
		room -= wire_cm_ip_bytes;
	return request->bytes > room ? -EINVAL : ask(id, request);
}

/* The queue pair is found, unless its Q_Key is not the one that the identifier has. */
static void fill_established(struct cm_id *id, const struct wire_sidr_rep *rep,
                             struct control_cm_event *data)
{
	if (id->qkey && id->qkey != rep->qkey) {
		data->type = RDMA_CM_EVENT_ADDR_ERROR;
		data->status = -EINVAL;
		return;
	}
	id->qkey = rep->qkey;
	data->type = RDMA_CM_EVENT_ESTABLISHED;
	data->qp_num = rep->qpn;
	data->qkey = rep->qkey;
	cm_connect_fill_ah(id, &data->ah);
}

bool cm_sidr_receive_response(struct cm *cm, struct fabric_port *port, const struct fabric_mad *mad)
{
	struct control_cm_event *data;
	struct wire_sidr_rep rep;
	struct cm_sidr *s;

	wire_sidr_rep_decode(mad->data + CM_MESSAGE_AT, &rep);
	s = asking_find(cm, port, rep.request_id);
	if (!s)
		return false;
	data = &s->event->data;
	/* a MAD carries all of its private data, used or not */
	data->bytes = CM_SIDR_REP_PRIVATE;
	memcpy(data->private_data, rep.private_data, CM_SIDR_REP_PRIVATE);
	if (rep.status == CM_SIDR_VALID)
		fill_established(s->id, &rep, data);
	else
		data->status = rep.status;
	asking_done(s);
	return true;
}

/* ---- the listening end ---- */

static uint64_t asked_hash(const struct fabric_port *port, const struct cm_peer *peer,
                           uint32_t request_id)
{
	uint64_t where = (uint64_t)port->index << 16 | peer->lid;

	return base_hash_of(&peer->gid, sizeof(peer->gid), where << 32 ^ request_id);
}

/* The request that this one repeats, or NULL. */
static struct cm_sidr *asked_find(const struct cm *cm, const struct cm_sidr *like)
{
	struct cm_sidr *s;
	uint64_t hash = asked_hash(like->port, &like->peer, like->request_id);

	BASE_HASH_FOREACH(s, &cm->asked, hash, node)
		if (s->port == like->port && s->request_id == like->request_id &&
		    s->tid == like->tid && s->service_id == like->service_id &&
		    s->peer.lid == like->peer.lid && ib_gid_equal(&s->peer.gid, &like->peer.gid))
			return s;
	return NULL;
}

static void asked_free(struct cm_sidr *s)
{
	base_hash_remove(&s->id->client->cm->asked, &s->node);
	s->id->sidr = NULL;
	free(s->response);
	free(s);
}

/* A copy of @like, kept for @id. 0 or -ENOMEM. */
static int asked_new(struct cm_id *id, const struct cm_sidr *like)
{
	struct cm_sidr *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = *like;
	s->id = id;
	if (base_hash_add(&id->client->cm->asked, &s->node,
	                  asked_hash(s->port, &s->peer, s->request_id))) {
		free(s);
		return -ENOMEM;
	}
	id->sidr = s;
	return 0;
}

/* The response to @s. @from: its private data and the queue pair, or NULL. */
static void make_response(const struct cm *cm, const struct cm_sidr *s, uint8_t status,
                          const struct control_cm_connect *from, struct fabric_mad *mad)
{
	const struct wire_mad head = { .transaction_id = s->tid, .attribute_id = CM_ATTR_SIDR_REP };
	struct wire_sidr_rep rep = { .request_id = s->request_id,
		                     .status = status,
		                     .service_id = s->service_id };

	if (from)
		memcpy(rep.private_data, from->private_data, from->bytes);
	if (status == CM_SIDR_VALID) {
		rep.qpn = from->qp_num;
		rep.qkey = s->id->qkey;
	}
	cm_mad_begin(cm, s->port, &s->peer, &head, mad);
	wire_sidr_rep_encode(&rep, mad->data + CM_MESSAGE_AT);
}

/* Refuses a request that has no identifier. */
static void refuse(struct cm *cm, const struct cm_sidr *s, uint8_t status)
{
	struct fabric_mad mad;

	make_response(cm, s, status, NULL, &mad);
	cm->ops.mad_send(cm->ops.arg, s->port, &mad);
}

/* Responds to the request that @id was made for. Keeps the response: the request may be repeated.
 */
static void respond(struct cm_id *id, uint8_t status, const struct control_cm_connect *from)
{
	struct cm *cm = id->client->cm;
	struct cm_sidr *s = id->sidr;
	struct fabric_mad mad;

	id->passive = false;
	make_response(cm, s, status, from, &mad);
	cm->ops.mad_send(cm->ops.arg, s->port, &mad);
	s->response = malloc(sizeof(*s->response));
	if (s->response)
		*s->response = mad;
}

int cm_sidr_accept(struct cm_id *id, const struct control_cm_connect *request)
{
	int ret;

	if (!id->passive)
		return -EINVAL;
	ret = request->bytes > CM_SIDR_REP_PRIVATE ? -EINVAL : cm_id_default_qkey(id);
	if (ret) {
		respond(id, CM_SIDR_REJECT, NULL);
		return ret;
	}
	id->uid = request->uid;
	respond(id, CM_SIDR_VALID, request);
	return 0;
}

int cm_sidr_reject(struct cm_id *id, const struct control_cm_connect *request)
{
	if (!id->passive || request->bytes > CM_SIDR_REP_PRIVATE)
		return -EINVAL;
	respond(id, CM_SIDR_REJECT, request);
	return 0;
}

void cm_sidr_abandon(struct cm_id *id)
{
	struct cm *cm = id->client->cm;

	if (!id->sidr)
		return;
	if (id->sidr->event) {
		asking_free(id->sidr);
		return;
	}
	if (id->passive)
		refuse(cm, id->sidr, CM_SIDR_REJECT);
	asked_free(id->sidr);
}

/* ---- requests that come ---- */

/* 0, or -ENOBUFS: @listener does not take the request. */
static int announce(struct cm_id *listener, const struct cm_sidr *s, const struct cm_asked *asked)
{
	const uint32_t skip = listener->src.sa.sa_family == AF_IB ? 0 : wire_cm_ip_bytes;
	struct cm_event *e;

	if (listener->qp_type != IBV_QPT_UD)
		return -ENOBUFS;
	e = cm_connect_announce(listener, asked);
	if (!e)
		return -ENOBUFS;
	if (asked_new(e->announced, s)) {
		cm_event_free(e);
		return -ENOBUFS;
	}
	e->data.bytes = CM_SIDR_REQ_PRIVATE - skip;
	memcpy(e->data.private_data, asked->private_data + skip, e->data.bytes);
	cm_event_post(e);
	return 0;
}

/* The daemon's own response to a request for a service that it resolves by itself. */
static void serve(struct cm *cm, struct cm_id *listener, const struct cm_sidr *s)
{
	struct control_cm_connect found = { .qp_num = cm_serve_find(listener, s->port) };
	struct cm_sidr asked = *s;
	struct fabric_mad mad;

	asked.id = listener;
	make_response(cm, &asked, found.qp_num ? CM_SIDR_VALID : CM_SIDR_UNSUPPORTED,
	              found.qp_num ? &found : NULL, &mad);
	cm->ops.mad_send(cm->ops.arg, s->port, &mad);
}

static void receive_request(struct cm *cm, const struct cm_sidr *s, struct cm_asked *asked)
{
	const struct cm_sidr *before = asked_find(cm, s);
	struct cm_id *listener;

	if (before) {
		if (before->response)
			cm->ops.mad_send(cm->ops.arg, s->port, before->response);
		return;
	}
	cm_connect_read_addresses(cm, asked);
	listener = cm_binding_listener(cm, s->port, asked->service_id, &asked->dst);
	if (!listener)
		refuse(cm, s, CM_SIDR_UNSUPPORTED);
	else if (listener->serves)
		serve(cm, listener, s);
	else if (announce(listener, s, asked))
		refuse(cm, s, CM_SIDR_REJECT);
}

void cm_sidr_receive_request(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                             const struct fabric_mad *mad)
{
	struct cm_sidr s = { .port = port, .peer = cm_peer_of(mad), .tid = head->transaction_id };
	struct wire_sidr_req req;
	struct cm_asked asked = { .port = port, .peer = &s.peer, .private_data = req.private_data };

	wire_sidr_req_decode(mad->data + CM_MESSAGE_AT, &req);
	s.request_id = req.request_id;
	s.service_id = asked.service_id = req.service_id;
	asked.pkey = req.pkey;
	receive_request(cm, &s, &asked);
}
