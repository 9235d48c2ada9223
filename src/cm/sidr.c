/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Service ID resolution: how UD identifiers connect (InfiniBand specification volume
 * 1, section 12.11). A SIDR_REQ goes out until a SIDR_REP comes. At the other end it finds a
 * listener, becomes an identifier of its own, and is answered when that is accepted or
 * rejected, or goes away. A request that comes again is the same one, to be answered as
 * before. Reliable connections would be made here too; there are none yet.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cm/mad.h"
#include "cm/state.h"

#define TRIES       16 /* the kernel's, and how far they are apart */
#define TRY_MS      4096
#define MAX_BACKLOG 1024

/* A request, at one of its ends. */
struct cm_sidr {
	struct base_hash_node node; /* in cm->asking or cm->asked */
	struct cm_id *id;
	struct fabric_port *port;
	uint32_t request_id;
	/* of who asks */
	struct cm_transaction *sent;
	struct cm_event *event; /* to be posted with the outcome */
	/* of who is asked */
	struct cm_peer peer;
	uint64_t tid, service_id;
	struct fabric_mad *answer; /* that has been given; NULL: none yet */
};

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

/* ---- who asks ---- */

static uint64_t asking_hash(uint32_t request_id)
{
	return base_hash_of(&request_id, sizeof(request_id), 0);
}

static struct cm_sidr *asking_find(const struct cm *cm, const struct fabric_port *port,
                                   uint32_t request_id)
{
	struct base_hash_node *n = base_hash_first(&cm->asking, asking_hash(request_id));

	for (; n; n = base_hash_next(n)) {
		struct cm_sidr *s = container_of(n, struct cm_sidr, node);

		if (s->request_id == request_id && s->port == port)
			return s;
	}
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

/* The program hears what has become of it. */
static void asking_done(struct cm_sidr *s)
{
	struct cm_event *e = s->event;

	s->event = NULL;
	asking_free(s);
	cm_event_post(e);
}

static void on_no_answer(void *arg, int status, const uint8_t *record)
{
	struct cm_sidr *s = arg;

	(void)record;
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
	uint8_t *data = req.private_data;
	struct wire_cm_ip ip;

	if (id->dst.sa.sa_family != AF_IB) {
		cm_addr_to_wire(&id->src, &id->dst, &ip);
		wire_cm_ip_encode(&ip, data);
		data += wire_cm_ip_bytes;
	}
	memcpy(data, from->private_data, from->bytes);
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
		                            .done = on_no_answer };
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

int cm_sidr_connect(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	uint32_t room = CM_SIDR_REQ_PRIVATE;
	int ret;

	if (!id || id->state != CM_ROUTE_RESOLVED)
		return -EINVAL;
	if (id->qp_type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	if (id->dst.sa.sa_family != AF_IB)
		room -= wire_cm_ip_bytes;
	if (request->bytes > room)
		return -EINVAL;
	ret = ask(id, request);
	if (!ret)
		id->state = CM_CONNECT;
	return ret;
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
	ah->sgid_index = cm_id_sgid_index(id);
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
	fill_ah(id, &data->ah);
}

static bool take_answer(struct cm *cm, struct fabric_port *port, const struct fabric_mad *mad)
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

/* ---- who is asked ---- */

static uint64_t asked_hash(const struct fabric_port *port, const struct cm_peer *peer,
                           uint32_t request_id)
{
	uint64_t where = (uint64_t)port->index << 16 | peer->lid;

	return base_hash_of(&peer->gid, sizeof(peer->gid), where << 32 ^ request_id);
}

/* The request that this one repeats, or NULL. */
static struct cm_sidr *asked_find(const struct cm *cm, const struct cm_sidr *like)
{
	uint64_t hash = asked_hash(like->port, &like->peer, like->request_id);

	for (struct base_hash_node *n = base_hash_first(&cm->asked, hash); n;
	     n = base_hash_next(n)) {
		struct cm_sidr *s = container_of(n, struct cm_sidr, node);

		if (s->port == like->port && s->request_id == like->request_id &&
		    s->tid == like->tid && s->service_id == like->service_id &&
		    s->peer.lid == like->peer.lid &&
		    !memcmp(&s->peer.gid, &like->peer.gid, sizeof(s->peer.gid)))
			return s;
	}
	return NULL;
}

static void asked_free(struct cm_sidr *s)
{
	base_hash_remove(&s->id->client->cm->asked, &s->node);
	s->id->sidr = NULL;
	free(s->answer);
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

/* The answer to @s. @from: its private data and the queue pair, or NULL. */
static void make_answer(const struct cm *cm, const struct cm_sidr *s, uint8_t status,
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

/* Answers a request that is nobody's. */
static void refuse(struct cm *cm, const struct cm_sidr *s, uint8_t status)
{
	struct fabric_mad mad;

	make_answer(cm, s, status, NULL, &mad);
	cm->ops.mad_send(cm->ops.arg, s->port, &mad);
}

/* Answers the request that @id was made for, and keeps the answer for when it is asked again. */
static void answer(struct cm_id *id, uint8_t status, const struct control_cm_connect *from)
{
	struct cm *cm = id->client->cm;
	struct cm_sidr *s = id->sidr;
	struct fabric_mad mad;

	id->passive = false;
	make_answer(cm, s, status, from, &mad);
	cm->ops.mad_send(cm->ops.arg, s->port, &mad);
	s->answer = malloc(sizeof(*s->answer));
	if (s->answer)
		*s->answer = mad;
}

int cm_sidr_accept(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	int ret;

	if (!id || !id->passive || id->state != CM_CONNECT)
		return -EINVAL;
	ret = request->bytes > CM_SIDR_REP_PRIVATE ? -EINVAL : cm_id_default_qkey(id);
	if (ret) {
		answer(id, CM_SIDR_REJECT, NULL);
		return ret;
	}
	id->uid = request->uid;
	answer(id, CM_SIDR_VALID, request);
	return 0;
}

int cm_sidr_reject(struct cm_call *call)
{
	const struct control_cm_connect *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id || !id->passive || id->state != CM_CONNECT || request->bytes > CM_SIDR_REP_PRIVATE)
		return -EINVAL;
	answer(id, CM_SIDR_REJECT, request);
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

int cm_sidr_disconnect(struct cm_call *call)
{
	const struct control_cm_id *request = call->request;
	const struct cm_id *id = cm_id_find(call, request->id);

	/* a resolved service is no connection: nobody has to be told */
	return id && id->state == CM_CONNECT ? 0 : -EINVAL;
}

/* ---- requests that come ---- */

/* What a request says of addresses: AF_IB if none of IP. */
struct addresses {
	union control_cm_addr src, dst;
};

static void take_addresses(const struct cm *cm, const struct cm_sidr *s,
                           const struct wire_sidr_req *req, struct addresses *a)
{
	struct wire_cm_ip ip;

	wire_cm_ip_decode(req->private_data, &ip);
	if (!cm_addr_from_wire(&ip, (uint16_t)req->service_id, &a->src, &a->dst)) {
		memset(a, 0, sizeof(*a));
		a->src.sa.sa_family = a->dst.sa.sa_family = AF_IB;
	} else if (cm_addr_is_any(&a->dst)) {
		/* for those who listen there it is no loopback address */
		cm_addr_from_port(cm, s->port, false, &a->dst);
	}
}

/* As who listens by GID sees who asks, and himself. */
static void describe_by_gid(struct cm_id *id, const struct cm_sidr *s)
{
	cm_addr_from_port(id->client->cm, s->port, false, &id->src);
	id->src.ib.sib_sid = htobe64(s->service_id);
	id->src.ib.sib_sid_mask = UINT64_MAX;
	id->src.ib.sib_pkey = htobe16(id->pkey);
	memcpy(id->dst.ib.sib_addr.sib_raw, id->dgid.raw, sizeof(id->dgid.raw));
	id->dst.ib.sib_pkey = htobe16(id->pkey);
}

/* The GID of who asks: of its packet, or of the port that has its address; or unknown. */
static void find_dgid(struct cm_id *id, const struct cm_sidr *s)
{
	const struct fabric_port *port = NULL;
	struct cm *cm = id->client->cm;

	if (s->peer.has_grh)
		id->dgid = s->peer.gid;
	else if (id->dst.sa.sa_family != AF_IB)
		port = cm_addr_find(cm, CM_ALL_HOSTS, &id->dst);
	if (port)
		cm_port_gid(cm, port, &id->dgid);
}

/* The identifier that @listener gets for a request. NULL: no memory. */
static struct cm_id *passive_id(struct cm_id *listener, const struct cm_sidr *s,
                                const struct wire_sidr_req *req, const struct addresses *a)
{
	struct cm_id *id = cm_id_new(listener->client, listener->channel, listener->ps, IBV_QPT_UD);

	if (!id)
		return NULL;
	if (asked_new(id, s)) {
		free(id);
		return NULL;
	}
	id->state = CM_CONNECT;
	id->passive = true;
	id->pkey = req->pkey;
	id->src = a->dst;
	id->dst = a->src;
	cm_id_use_port(id, s->port);
	cm_roce_use_source(id);
	find_dgid(id, s);
	if (a->dst.sa.sa_family == AF_IB)
		describe_by_gid(id, s);
	return id;
}

/* 0; -EINVAL: it is not for such a listener; -ENOBUFS: he has enough to do; -ENOMEM. */
static int announce(struct cm_id *listener, const struct cm_sidr *s,
                    const struct wire_sidr_req *req, const struct addresses *a)
{
	const bool by_gid = listener->src.sa.sa_family == AF_IB;
	const uint32_t skip = by_gid ? 0 : wire_cm_ip_bytes;
	struct cm_event *e;

	if (!by_gid && a->dst.sa.sa_family == AF_IB)
		return -EINVAL;
	if (listener->backlog <= 0)
		return -ENOBUFS;
	e = cm_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (!e)
		return -ENOMEM;
	e->announced = passive_id(listener, s, req, a);
	if (!e->announced) {
		free(e);
		return -ENOMEM;
	}
	listener->backlog--;
	e->data.bytes = CM_SIDR_REQ_PRIVATE - skip;
	memcpy(e->data.private_data, req->private_data + skip, e->data.bytes);
	cm_event_post(e);
	return 0;
}

static void take_request(struct cm *cm, const struct cm_sidr *s, const struct wire_sidr_req *req)
{
	const struct cm_sidr *before = asked_find(cm, s);
	struct cm_id *listener;
	struct addresses a;

	if (before) {
		if (before->answer)
			cm->ops.mad_send(cm->ops.arg, s->port, before->answer);
		return;
	}
	take_addresses(cm, s, req, &a);
	listener = cm_binding_listener(cm, s->port, req->service_id, &a.dst);
	if (!listener)
		refuse(cm, s, CM_SIDR_UNSUPPORTED);
	else if (announce(listener, s, req, &a))
		refuse(cm, s, CM_SIDR_REJECT);
}

/* Who wants a connection hears at once that there is nobody to have one with. */
static void refuse_connection(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                              const struct fabric_mad *mad)
{
	const struct cm_peer peer = cm_peer_of(mad);
	const struct wire_mad h = { .transaction_id = head->transaction_id,
		                    .attribute_id = CM_ATTR_REJ };
	struct wire_cm_rej req,
	        rej = { .message_rejected = CM_REJECTED_REQ, .reason = CM_REJ_INVALID_SERVICE_ID };
	struct fabric_mad out;

	/* the ID of who sends a message comes first in all of them */
	wire_cm_rej_decode(mad->data + CM_MESSAGE_AT, &req);
	rej.remote_id = req.local_id;
	cm_mad_begin(cm, port, &peer, &h, &out);
	wire_cm_rej_encode(&rej, out.data + CM_MESSAGE_AT);
	cm->ops.mad_send(cm->ops.arg, port, &out);
}

bool cm_sidr_input(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                   const struct fabric_mad *mad)
{
	struct cm_sidr s = { .port = port, .peer = cm_peer_of(mad), .tid = head->transaction_id };
	struct wire_sidr_req req;

	if (head->class_version != MAD_VERSION_COM_MGT || head->method != MAD_SEND)
		return false;
	switch (head->attribute_id) {
	case CM_ATTR_SIDR_REQ:
		wire_sidr_req_decode(mad->data + CM_MESSAGE_AT, &req);
		s.request_id = req.request_id;
		s.service_id = req.service_id;
		take_request(cm, &s, &req);
		return true;
	case CM_ATTR_SIDR_REP:
		return take_answer(cm, port, mad);
	case CM_ATTR_REQ:
		refuse_connection(cm, port, head, mad);
		return true;
	default:
		return false;
	}
}
