/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of connections, and what programs ask of them: see conn.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "base/util.h"
#include "cm/conn.h"
#include "cm/mad.h"

#define PSN_MASK 0xFFFFFF

static_assert(CONTROL_CM_REQ_PRIVATE == CM_REQ_PRIVATE - wire_cm_ip_bytes, "always fits");
static_assert(CONTROL_CM_REP_PRIVATE == CM_REP_PRIVATE, "fits");

/* ---- finding ---- */

static uint64_t id_hash(uint32_t id)
{
	return base_hash_of(&id, sizeof(id), 0);
}

/* The hash of @number, an ID or queue pair number of the peer's, as seen from one host: another
 * host knows nothing of it. */
static uint64_t peer_hash(const struct cm *cm, const struct fabric_port *port, uint64_t guid,
                          uint32_t number)
{
	const uint32_t host = (uint32_t)cm_port_host(cm, port);

	return base_hash_of(&guid, sizeof(guid), (uint64_t)host << 32 | number);
}

static bool is_at(const struct cm_conn *c, const struct cm *cm, const struct fabric_port *port)
{
	return c->id->port == port || cm_port_host(cm, c->id->port) == cm_port_host(cm, port);
}

struct cm_conn *cm_conn_find(const struct cm *cm, const struct fabric_port *port, uint32_t local_id,
                             uint32_t remote_id)
{
	struct cm_conn *c;

	BASE_HASH_FOREACH(c, &cm->conns, id_hash(local_id), by_id)
		if (c->local_id == local_id && c->remote_id == remote_id && is_at(c, cm, port))
			return c;
	return NULL;
}

struct cm_conn *cm_conn_find_peer(const struct cm *cm, const struct fabric_port *port,
                                  uint64_t guid, uint32_t remote_id)
{
	struct cm_conn *c;

	BASE_HASH_FOREACH(c, &cm->conn_peers, peer_hash(cm, port, guid, remote_id), by_peer)
		if (c->remote_guid == guid && c->remote_id == remote_id && is_at(c, cm, port))
			return c;
	return NULL;
}

struct cm_conn *cm_conn_find_qpn(const struct cm *cm, const struct fabric_port *port, uint64_t guid,
                                 uint32_t qpn)
{
	struct cm_conn *c;

	BASE_HASH_FOREACH(c, &cm->conn_qpns, peer_hash(cm, port, guid, qpn), by_qpn)
		if (c->remote_guid == guid && c->remote_qpn == qpn && is_at(c, cm, port))
			return c;
	return NULL;
}

int cm_conn_add_peer(struct cm_conn *c)
{
	struct cm *cm = c->id->client->cm;
	const struct fabric_port *port = c->id->port;

	if (base_hash_add(&cm->conn_peers, &c->by_peer,
	                  peer_hash(cm, port, c->remote_guid, c->remote_id)))
		return -ENOMEM;
	if (base_hash_add(&cm->conn_qpns, &c->by_qpn,
	                  peer_hash(cm, port, c->remote_guid, c->remote_qpn))) {
		base_hash_remove(&cm->conn_peers, &c->by_peer);
		return -ENOMEM;
	}
	c->has_peer = true;
	return 0;
}

static void remove_peer(struct cm_conn *c)
{
	struct cm *cm = c->id->client->cm;

	if (!c->has_peer)
		return;
	base_hash_remove(&cm->conn_peers, &c->by_peer);
	base_hash_remove(&cm->conn_qpns, &c->by_qpn);
	c->has_peer = false;
}

/* ---- life ---- */

/* Where packets of a connection begin to count is nobody's guess. */
static uint32_t next_psn(struct cm *cm)
{
	cm->last_psn = (uint32_t)base_hash_of(&cm->last_psn, sizeof(cm->last_psn), 1);
	return cm->last_psn & PSN_MASK;
}

static uint32_t next_id(struct cm *cm)
{
	do
		cm->last_conn_id++;
	while (!cm->last_conn_id); /* 0 is none */
	return cm->last_conn_id;
}

struct cm_conn *cm_conn_new(struct cm_id *id)
{
	struct cm *cm = id->client->cm;
	struct cm_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->id = id;
	c->local_id = next_id(cm);
	c->local_psn = next_psn(cm);
	if (base_hash_add(&cm->conns, &c->by_id, id_hash(c->local_id))) {
		free(c);
		return NULL;
	}
	id->conn = c;
	return c;
}

static void conn_free(struct cm_conn *c)
{
	cm_mad_cancel(&c->sent);
	base_timer_stop(&c->timewait);
	remove_peer(c);
	base_hash_remove(&c->id->client->cm->conns, &c->by_id);
	c->id->conn = NULL;
	free(c);
}

void cm_conn_reset(struct cm_conn *c)
{
	cm_mad_cancel(&c->sent);
	remove_peer(c);
	c->state = CM_CONN_IDLE;
}

void cm_conn_tell(struct cm_conn *c, enum rdma_cm_event_type type, int status,
                  const struct control_cm_event *from)
{
	struct cm_id *id = c->id;
	struct cm_event *e;

	if (!id->uid ||
	    id->state != (type == RDMA_CM_EVENT_TIMEWAIT_EXIT ? CM_DISCONNECT : CM_CONNECT))
		return;
	if (type == RDMA_CM_EVENT_DISCONNECTED)
		id->state = CM_DISCONNECT;
	e = cm_event_new(id, type, status);
	if (!e)
		return; /* the program does not read its events */
	if (from) {
		e->data.qp_num = from->qp_num;
		e->data.param = from->param;
		e->data.bytes = from->bytes;
		memcpy(e->data.private_data, from->private_data, from->bytes);
	}
	cm_event_post(e);
}

static void on_timewait(struct base_timer *t)
{
	struct cm_conn *c = container_of(t, struct cm_conn, timewait);

	c->state = CM_CONN_IDLE;
	cm_conn_tell(c, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
}

void cm_conn_enter_timewait(struct cm_conn *c)
{
	cm_conn_reset(c);
	c->state = CM_CONN_TIMEWAIT;
	base_timer_set_in(c->id->client->cm->ops.timers, &c->timewait,
	                  cm_conn_ms(c->ack_timeout) * CM_NS_PER_MS, on_timewait);
}

/*
 * Twice the life time of packets and the delay, as powers of two: the larger one, and one more if
 * they are close.
 */
uint8_t cm_conn_ack_timeout(uint8_t delay, uint8_t life)
{
	unsigned both_ways = life + 1u;
	unsigned code = both_ways > delay ? both_ways : delay;

	if (both_ways >= delay ? delay + 1u >= both_ways : both_ways + 1u >= delay)
		code++;
	return code > 31 ? 31 : (uint8_t)code;
}

/* ---- messages that are repeated ---- */

/* Nobody answers. */
static void on_no_answer(void *arg, int status, const struct fabric_mad *response)
{
	struct cm_conn *c = arg;

	(void)response;
	c->sent = NULL;
	if (c->state == CM_CONN_DREQ_SENT) {
		cm_conn_enter_timewait(c);
		cm_conn_tell(c, RDMA_CM_EVENT_DISCONNECTED, status, NULL);
	} else {
		cm_conn_reset(c);
		cm_conn_tell(c, RDMA_CM_EVENT_UNREACHABLE, status, NULL);
	}
}

static int repeat(struct cm_conn *c, const struct fabric_mad *mad, enum cm_conn_state state)
{
	const struct cm_repetition repetition = { .port = c->id->port,
		                                  .mad = mad,
		                                  .tries = c->tries,
		                                  .try_ms = c->try_ms,
		                                  .done = on_no_answer,
		                                  .arg = c };
	int ret;

	cm_mad_cancel(&c->sent);
	ret = cm_mad_repeat(c->id->client->cm, &repetition, &c->sent);
	if (!ret)
		c->state = state;
	return ret;
}

int cm_conn_send_dreq(struct cm_conn *c)
{
	struct fabric_mad mad;

	if (c->state != CM_CONN_ESTABLISHED)
		return -EINVAL;
	cm_conn_make_dreq(c, &mad);
	return repeat(c, &mad, CM_CONN_DREQ_SENT);
}

/* ---- what programs ask for ---- */

static void set_param(struct cm_conn *c, const struct control_cm_connect *request)
{
	c->local_qpn = request->qp_num & IB_QPN_MCAST;
	c->responder_resources = request->param.responder_resources;
	c->initiator_depth = request->param.initiator_depth;
}

int cm_conn_connect(struct cm_id *id, const struct control_cm_connect *request)
{
	const uint32_t room =
	        CM_REQ_PRIVATE - (id->dst.sa.sa_family == AF_IB ? 0 : wire_cm_ip_bytes);
	const struct control_cm_path *path = &id->path;
	struct fabric_mad mad;
	struct cm_conn *c;
	int ret;

	if (request->bytes > room)
		return base_because(-EINVAL, "%u bytes of private data: a request has room for %u",
		                    request->bytes, room);
	if (id->conn)
		return base_because(-EINVAL, "the identifier is connected already");
	c = cm_conn_new(id);
	if (!c)
		return -ENOMEM;
	set_param(c, request);
	c->retry_count = request->param.retry_count > 7 ? 7 : request->param.retry_count;
	c->ack_timeout = base_min(path->life + 1, 31);
	c->tid = cm_mad_new_tid(id->client->cm);
	c->try_ms = 2 * cm_conn_ms(path->life) + cm_conn_ms(CM_CONN_RESPONSE_TIMEOUT);
	c->tries = CM_CONN_RETRIES + 1;
	c->peer = (struct cm_peer){ .gid = path->dgid,
		                    .own = path->sgid,
		                    .lid = path->dlid,
		                    .has_grh = path->hop_limit != 0,
		                    .sl = path->sl };
	cm_port_pkey_index(id->port, id->pkey, &c->peer.pkey_index); /* else by the first */
	cm_conn_make_req(c, request, &mad);
	ret = repeat(c, &mad, CM_CONN_REQ_SENT);
	if (ret)
		conn_free(c);
	return ret;
}

static int send_rep(struct cm_conn *c, const struct control_cm_connect *request)
{
	struct fabric_mad mad;

	if (request->bytes > CM_REP_PRIVATE)
		return base_because(-EINVAL, "%u bytes of private data: a reply has room for %u",
		                    request->bytes, CM_REP_PRIVATE);
	if (c->state != CM_CONN_MRA_REQ_SENT)
		return base_because(-EINVAL, "the request is answered already, or was given up");
	set_param(c, request);
	cm_conn_make_rep(c, request, &mad);
	return repeat(c, &mad, CM_CONN_REP_SENT);
}

int cm_conn_accept(struct cm_id *id, const struct control_cm_connect *request)
{
	static const struct cm_conn_refusal refusal = { .reason = CM_REJ_CONSUMER_DEFINED };
	struct cm_conn *c = id->conn;
	int ret;

	if (!c || !id->passive)
		return base_because(-EINVAL, "the identifier is not one of a connect request");
	ret = send_rep(c, request);
	if (ret)
		cm_conn_refuse(c, &refusal);
	else
		id->uid = request->uid;
	return ret;
}

/* The message that a REJ in this state is about. */
static enum cm_message about(enum cm_conn_state state)
{
	switch (state) {
	case CM_CONN_MRA_REQ_SENT:
		return CM_MESSAGE_REQ;
	case CM_CONN_MRA_REP_SENT:
		return CM_MESSAGE_REP;
	default:
		return CM_MESSAGE_OTHER;
	}
}

int cm_conn_refuse(struct cm_conn *c, const struct cm_conn_refusal *refusal)
{
	enum cm_conn_state state = c->state;

	switch (state) {
	case CM_CONN_REQ_SENT:
	case CM_CONN_MRA_REQ_RCVD:
	case CM_CONN_MRA_REQ_SENT:
	case CM_CONN_MRA_REP_SENT:
		cm_conn_reset(c);
		break;
	case CM_CONN_REP_SENT:
	case CM_CONN_MRA_REP_RCVD:
		cm_conn_enter_timewait(c);
		break;
	default:
		return -EINVAL;
	}
	cm_conn_send_rej(c, about(state), refusal);
	return 0;
}

int cm_conn_reject(struct cm_id *id, const struct control_cm_connect *request)
{
	struct cm_conn_refusal refusal = { .reason = (uint16_t)request->reason,
		                           .data = request->private_data,
		                           .bytes = request->bytes };

	if (!refusal.reason)
		refusal.reason = CM_REJ_CONSUMER_DEFINED;
	if (!id->conn || request->bytes > CM_REJ_PRIVATE ||
	    (refusal.reason != CM_REJ_CONSUMER_DEFINED && refusal.reason != CM_REJ_VENDOR_OPTION))
		return -EINVAL;
	return cm_conn_refuse(id->conn, &refusal);
}

int cm_conn_establish(struct cm_id *id)
{
	static const struct cm_conn_refusal refusal = { .reason = CM_REJ_CONSUMER_DEFINED };
	struct cm_conn *c = id->conn;

	if (!c || id->state != CM_CONNECT)
		return -EINVAL;
	if (c->state != CM_CONN_MRA_REP_SENT) {
		cm_conn_refuse(c, &refusal);
		return -EINVAL;
	}
	c->state = CM_CONN_ESTABLISHED;
	cm_conn_send_rtu(c);
	return 0;
}

/* Begins to disconnect, or answers the peer that has begun. As in Linux, in other states nothing
 * happens. */
int cm_conn_disconnect(struct cm_id *id)
{
	struct cm_conn *c = id->conn;

	if (!c)
		return base_because(-EINVAL, "the identifier is not connected");
	if (c->state == CM_CONN_ESTABLISHED) {
		if (cm_conn_send_dreq(c))
			cm_conn_enter_timewait(c);
	} else if (c->state == CM_CONN_DREQ_RCVD) {
		cm_conn_enter_timewait(c);
		cm_conn_send_drep(c);
	}
	return 0;
}

/* A message has come to the queue pair, so the RTU is not waited for. */
static int communication_established(struct cm_conn *c)
{
	if (c->state == CM_CONN_ESTABLISHED)
		return -EISCONN; /* as in the kernel, for a program that was told by both */
	if (c->state != CM_CONN_REP_SENT && c->state != CM_CONN_MRA_REP_RCVD)
		return -EINVAL;
	cm_mad_cancel(&c->sent);
	c->state = CM_CONN_ESTABLISHED;
	cm_conn_tell(c, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	return 0;
}

int cm_conn_notify(struct cm_id *id, uint32_t event)
{
	struct cm_conn *c = id->conn;

	if (!c)
		return -EINVAL;
	if (event == IBV_EVENT_COMM_EST)
		return communication_established(c);
	if (event == IBV_EVENT_PATH_MIG)
		return c->state == CM_CONN_ESTABLISHED ? 0 : -EINVAL;
	return -EINVAL;
}

/* ---- destruction ---- */

/* The side that sent the REQ gives up. */
static void withdraw(struct cm_conn *c)
{
	const uint64_t guid = htobe64(c->id->port->node->guid);
	const struct cm_conn_refusal refusal = { .reason = CM_REJ_TIMEOUT,
		                                 .info = &guid,
		                                 .info_bytes = sizeof(guid) };

	cm_conn_refuse(c, &refusal);
}

void cm_conn_abandon(struct cm_id *id)
{
	static const struct cm_conn_refusal refusal = { .reason = CM_REJ_CONSUMER_DEFINED };
	struct cm_conn *c = id->conn;

	if (!c)
		return;
	switch (c->state) {
	case CM_CONN_REQ_SENT:
	case CM_CONN_MRA_REQ_RCVD:
		withdraw(c);
		break;
	case CM_CONN_ESTABLISHED:
		cm_conn_send_dreq(c); /* once: the identifier that would get the answer is gone */
		break;
	case CM_CONN_DREQ_RCVD:
		cm_conn_send_drep(c);
		break;
	default:
		cm_conn_refuse(c, &refusal);
		break;
	}
	conn_free(c);
}

/* ---- attributes ---- */

static void query_peer(const struct cm_conn *c, struct control_cm_qp_reply *reply)
{
	reply->has_peer = 1;
	reply->path_mtu = c->id->path.mtu;
	reply->dest_qp_num = c->remote_qpn;
	reply->rq_psn = c->local_psn;
	reply->sq_psn = c->remote_psn;
	reply->responder_resources = c->responder_resources;
	reply->initiator_depth = c->initiator_depth;
	reply->timeout = c->id->ack_timeout_set ? c->id->ack_timeout : c->ack_timeout;
	reply->retry_count = c->retry_count;
	reply->rnr_retry_count = c->rnr_retry_count;
	cm_connect_fill_ah(c->id, &reply->ah);
}

void cm_conn_query_qp(const struct cm_id *id, struct control_cm_qp_reply *reply)
{
	const struct cm_conn *c = id->conn;

	if (!c)
		return;
	reply->has_connection = 1;
	switch (c->state) {
	case CM_CONN_MRA_REQ_SENT:
	case CM_CONN_REP_SENT:
	case CM_CONN_MRA_REP_RCVD:
	case CM_CONN_MRA_REP_SENT:
	case CM_CONN_ESTABLISHED:
		query_peer(c, reply);
		break;
	case CM_CONN_REQ_SENT:
	case CM_CONN_MRA_REQ_RCVD:
		break;
	default:
		reply->is_over = 1;
		return;
	}
	reply->access = IBV_ACCESS_REMOTE_WRITE;
	if (c->responder_resources)
		reply->access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}
