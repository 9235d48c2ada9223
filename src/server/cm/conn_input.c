/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of connections that are received: see conn.h. A message that does not fit the state
 * of its connection is ignored, or answered as before.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/conn.h"
#include "cm/mad.h"

struct received {
	struct cm *cm;
	struct fabric_port *port;
	const struct wire_mad *head;
	const struct fabric_mad *mad;
};

static const uint8_t *message_of(const struct received *r)
{
	return r->mad->data + CM_MESSAGE_AT;
}

/* The connection that the message names by both IDs, which come first in it. */
static struct cm_conn *named(const struct received *r)
{
	struct wire_cm_rtu ids;

	wire_cm_rtu_decode(message_of(r), &ids);
	return cm_conn_find(r->cm, r->port, ids.remote_id, ids.local_id);
}

/* ---- REQ ---- */

/* A new connection by a queue pair that is connected as far as we know: that one has ended. */
static void end_stale(const struct received *r, struct cm_conn *c, enum cm_message about)
{
	cm_conn_issue_rej(r->cm, r->port, r->mad, about, CM_REJ_STALE_CONNECTION);
	cm_conn_send_dreq(c);
}

/* The queue pair's type at our end; -1: none that we have. */
static int qp_type_of(const struct wire_cm_req *req)
{
	switch (req->transport) {
	case CM_TRANSPORT_RC:
		return IBV_QPT_RC;
	case CM_TRANSPORT_UC:
		return IBV_QPT_UC;
	case CM_TRANSPORT_EXTENDED:
		return req->extended == CM_EXTENDED_XRC ? IBV_QPT_XRC_RECV : -1;
	default:
		return -1;
	}
}

/* The path back. */
static void set_path(struct cm_id *id, const struct received *r, const struct wire_cm_req *req)
{
	const struct wire_cm_path *p = &req->primary;

	id->path = (struct control_cm_path){ .sgid = p->remote_gid,
		                             .dgid = p->local_gid,
		                             .slid = r->port->lid,
		                             .dlid = r->mad->slid,
		                             .pkey = req->pkey,
		                             .sl = p->sl,
		                             .mtu = req->mtu,
		                             .rate = p->rate,
		                             .life = p->ack_timeout - (p->ack_timeout > 0),
		                             .traffic_class = p->traffic_class,
		                             .flow_label = p->flow_label };
	if (r->mad->has_grh)
		id->path.hop_limit = p->hop_limit ? p->hop_limit : 1;
	id->has_path = true;
}

/* Takes over the connection's values from the REQ. */
static void set_conn(struct cm_conn *c, const struct received *r, const struct wire_cm_req *req)
{
	c->state = CM_CONN_MRA_REQ_SENT;
	c->peer = cm_peer_of(r->mad);
	c->tid = r->head->transaction_id;
	c->remote_id = req->local_id;
	c->remote_guid = req->guid;
	c->remote_qpn = req->qpn;
	c->remote_psn = req->psn;
	c->responder_resources = req->initiator_depth;
	c->initiator_depth = req->responder_resources;
	c->retry_count = req->retry_count;
	c->rnr_retry_count = req->rnr_retry_count;
	c->ack_timeout = req->primary.ack_timeout;
	c->try_ms = cm_conn_ms(req->local_timeout);
	c->tries = req->cm_retries + 1u;
}

static void fill_request(struct control_cm_event *e, const struct received *r,
                         const struct wire_cm_req *req, uint32_t skip)
{
	e->qp_num = req->qpn;
	e->param = (struct control_cm_param){ .responder_resources = req->initiator_depth,
		                              .initiator_depth = req->responder_resources,
		                              .flow_control = req->flow_control,
		                              .retry_count = req->retry_count,
		                              .rnr_retry_count = req->rnr_retry_count,
		                              .srq = req->srq,
		                              .ece_vendor = req->vendor_id,
		                              .ece_options = r->head->attribute_modifier };
	e->bytes = CM_REQ_PRIVATE - skip;
	memcpy(e->private_data, req->private_data + skip, e->bytes);
}

/*
 * Tells @listener. If its backlog is full, or there is no memory, nothing happens: the peer asks
 * again.
 */
static void announce(const struct received *r, struct cm_id *listener, const struct cm_asked *asked,
                     const struct wire_cm_req *req)
{
	const uint32_t skip = listener->src.sa.sa_family == AF_IB ? 0 : wire_cm_ip_bytes;
	struct cm_event *e = cm_connect_announce(listener, asked);
	struct cm_conn *c;

	if (!e)
		return;
	set_path(e->announced, r, req);
	c = cm_conn_new(e->announced);
	if (!c)
		goto err;
	set_conn(c, r, req);
	if (cm_conn_add_peer(c))
		goto err_conn;
	fill_request(&e->data, r, req, skip);
	cm_event_post(e);
	return;
err_conn:
	c->state = CM_CONN_IDLE; /* so that the peer is not told */
err:
	cm_event_free(e);
}

static bool has_gid(const struct cm *cm, const struct fabric_port *port, const struct ib_gid *gid)
{
	const struct shm_port *p = shm_port_at(cm->f->region, port->index);

	for (unsigned i = 0; i < p->n_gids; i++)
		if (ib_gid_equal(&p->gid[i], gid))
			return true;
	return false;
}

/* 0: @listener may have it; else the reason why not. */
static uint16_t check_request(const struct received *r, const struct cm_id *listener,
                              const struct cm_asked *asked, const struct wire_cm_req *req)
{
	if (!listener)
		return CM_REJ_INVALID_SERVICE_ID;
	if (listener->qp_type != qp_type_of(req))
		return CM_REJ_CONSUMER_DEFINED;
	if (listener->qp_type == IBV_QPT_XRC_RECV &&
	    !cm_roce_connects(r->cm, r->port, &req->primary.local_gid))
		return CM_REJ_INVALID_SERVICE_ID;
	if (listener->src.sa.sa_family != AF_IB && asked->dst.sa.sa_family == AF_IB)
		return CM_REJ_CONSUMER_DEFINED; /* there are no IP addresses in it */
	if (!has_gid(r->cm, r->port, &req->primary.remote_gid))
		return CM_REJ_INVALID_GID;
	return 0;
}

static void receive_req(const struct received *r)
{
	const struct cm_peer peer = cm_peer_of(r->mad);
	struct cm_asked asked = { .port = r->port, .peer = &peer };
	struct wire_cm_req req;
	struct cm_id *listener;
	struct cm_conn *before;
	uint16_t reason;

	wire_cm_req_decode(message_of(r), &req);
	before = cm_conn_find_peer(r->cm, r->port, req.guid, req.local_id);
	if (before) { /* a REP is repeated anyway */
		if (before->state == CM_CONN_MRA_REQ_SENT)
			cm_conn_send_mra(before, CM_MESSAGE_REQ);
		return;
	}
	before = cm_conn_find_qpn(r->cm, r->port, req.guid, req.qpn);
	if (before) {
		end_stale(r, before, CM_MESSAGE_REQ);
		return;
	}
	asked.service_id = req.service_id;
	asked.pkey = req.pkey;
	asked.gid = &req.primary.local_gid;
	asked.private_data = req.private_data;
	cm_connect_read_addresses(r->cm, &asked);
	listener = cm_binding_listener(r->cm, r->port, req.service_id, &asked.dst);
	reason = check_request(r, listener, &asked, &req);
	if (reason)
		cm_conn_issue_rej(r->cm, r->port, r->mad, CM_MESSAGE_REQ, reason);
	else
		announce(r, listener, &asked, &req);
}

/* ---- REP, RTU, MRA ---- */

/* The queue pair that accepts: an XRC target stands where EE contexts do. */
static uint32_t peer_qpn(const struct cm_conn *c, const struct wire_cm_rep *rep)
{
	return c->id->qp_type == IBV_QPT_XRC_SEND ? rep->eecn : rep->qpn;
}

static void fill_response(struct control_cm_event *e, const struct received *r,
                          const struct wire_cm_rep *rep, uint32_t qpn)
{
	*e = (struct control_cm_event){ .qp_num = qpn, .bytes = CM_REP_PRIVATE };
	e->param = (struct control_cm_param){ .responder_resources = rep->initiator_depth,
		                              .initiator_depth = rep->responder_resources,
		                              .flow_control = rep->flow_control,
		                              .rnr_retry_count = rep->rnr_retry_count,
		                              .srq = rep->srq,
		                              .ece_options = r->head->attribute_modifier };
	e->param.ece_vendor = (uint32_t)rep->vendor_id_high << 16 |
	                      (uint32_t)rep->vendor_id_middle << 8 | rep->vendor_id_low;
	memcpy(e->private_data, rep->private_data, e->bytes);
}

/* A REP that has come before. */
static void confirm_again(const struct cm_conn *c)
{
	if (c->state == CM_CONN_ESTABLISHED)
		cm_conn_send_rtu(c);
	else if (c->state == CM_CONN_MRA_REP_SENT)
		cm_conn_send_mra(c, CM_MESSAGE_REP);
}

/* The peer accepts. Its queue pair must not be connected to ours already. */
static void accepted(const struct received *r, struct cm_conn *c, const struct wire_cm_rep *rep)
{
	const uint32_t qpn = peer_qpn(c, rep);
	struct cm_conn *stale = cm_conn_find_qpn(r->cm, r->port, rep->guid, qpn);
	struct control_cm_event e;

	if (stale) {
		end_stale(r, stale, CM_MESSAGE_REP);
		return;
	}
	c->remote_id = rep->local_id;
	c->remote_guid = rep->guid;
	c->remote_qpn = qpn;
	if (cm_conn_add_peer(c)) {
		c->remote_id = 0;
		return; /* it comes again */
	}
	c->remote_psn = rep->psn;
	c->initiator_depth = rep->responder_resources;
	c->responder_resources = rep->initiator_depth;
	c->rnr_retry_count = rep->rnr_retry_count;
	c->ack_timeout = cm_conn_ack_timeout(rep->ack_delay, c->ack_timeout - (c->ack_timeout > 0));
	cm_mad_cancel(&c->sent);
	c->state = CM_CONN_MRA_REP_SENT;
	fill_response(&e, r, rep, qpn);
	cm_conn_tell(c, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &e);
}

static void receive_rep(const struct received *r)
{
	struct wire_cm_rep rep;
	struct cm_conn *c;

	wire_cm_rep_decode(message_of(r), &rep);
	c = cm_conn_find(r->cm, r->port, rep.remote_id, 0);
	if (c && (c->state == CM_CONN_REQ_SENT || c->state == CM_CONN_MRA_REQ_RCVD)) {
		accepted(r, c, &rep);
		return;
	}
	c = named(r);
	if (c)
		confirm_again(c);
}

static void receive_rtu(const struct received *r)
{
	struct cm_conn *c = named(r);

	if (!c || (c->state != CM_CONN_REP_SENT && c->state != CM_CONN_MRA_REP_RCVD))
		return;
	cm_mad_cancel(&c->sent);
	c->state = CM_CONN_ESTABLISHED;
	cm_conn_tell(c, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

static void receive_mra(const struct received *r)
{
	struct wire_cm_mra mra;
	struct cm_conn *c;

	wire_cm_mra_decode(message_of(r), &mra);
	/* a side that has not got a REP yet does not know the peer's ID */
	c = cm_conn_find(r->cm, r->port, mra.remote_id,
	                 mra.message == CM_MESSAGE_REQ ? 0 : mra.local_id);
	if (!c)
		return;
	if (c->state == CM_CONN_REQ_SENT && mra.message == CM_MESSAGE_REQ)
		c->state = CM_CONN_MRA_REQ_RCVD;
	else if (c->state == CM_CONN_REP_SENT && mra.message == CM_MESSAGE_REP)
		c->state = CM_CONN_MRA_REP_RCVD;
	else
		return;
	cm_mad_postpone(c->sent, cm_conn_ms(mra.timeout) + cm_conn_ms(c->ack_timeout));
}

/* ---- REJ ---- */

static struct cm_conn *rejected(const struct received *r, const struct wire_cm_rej *rej)
{
	uint64_t guid;

	if (rej->reason == CM_REJ_TIMEOUT) { /* the sender of the REQ may not know our ID */
		memcpy(&guid, rej->info, sizeof(guid));
		return cm_conn_find_peer(r->cm, r->port, be64toh(guid), rej->local_id);
	}
	return cm_conn_find(r->cm, r->port, rej->remote_id,
	                    rej->message_rejected == CM_MESSAGE_REQ ? 0 : rej->local_id);
}

/* Ends the connection, after a REJ. False: a REJ means nothing in its state. */
static bool end_rejected(struct cm_conn *c, uint16_t reason)
{
	switch (c->state) {
	case CM_CONN_REQ_SENT:
	case CM_CONN_MRA_REQ_RCVD:
	case CM_CONN_REP_SENT:
	case CM_CONN_MRA_REP_RCVD:
	case CM_CONN_MRA_REQ_SENT:
		if (reason == CM_REJ_STALE_CONNECTION)
			cm_conn_enter_timewait(c);
		else
			cm_conn_reset(c);
		return true;
	case CM_CONN_DREQ_SENT:
	case CM_CONN_MRA_REP_SENT:
	case CM_CONN_ESTABLISHED:
		cm_conn_enter_timewait(c);
		return true;
	default:
		return false;
	}
}

static void receive_rej(const struct received *r)
{
	struct control_cm_event e = { .bytes = CM_REJ_PRIVATE };
	struct wire_cm_rej rej;
	struct cm_conn *c;

	wire_cm_rej_decode(message_of(r), &rej);
	c = rejected(r, &rej);
	if (!c || !end_rejected(c, rej.reason))
		return;
	memcpy(e.private_data, rej.private_data, e.bytes);
	cm_conn_tell(c, RDMA_CM_EVENT_REJECTED, rej.reason, &e);
}

/* ---- DREQ, DREP ---- */

static void receive_dreq(const struct received *r)
{
	struct cm_conn *c = named(r);
	struct wire_cm_dreq dreq;

	if (!c) {
		cm_conn_issue_drep(r->cm, r->port, r->mad);
		return;
	}
	wire_cm_dreq_decode(message_of(r), &dreq);
	if (dreq.remote_qpn != c->local_qpn)
		return;
	switch (c->state) {
	case CM_CONN_REP_SENT:
	case CM_CONN_MRA_REP_RCVD:
	case CM_CONN_ESTABLISHED:
	case CM_CONN_DREQ_SENT:
		cm_mad_cancel(&c->sent);
		c->state = CM_CONN_DREQ_RCVD;
		c->tid = r->head->transaction_id;
		cm_conn_tell(c, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
		break;
	case CM_CONN_TIMEWAIT:
	case CM_CONN_IDLE: /* the answer may have got lost */
		c->tid = r->head->transaction_id;
		cm_conn_send_drep(c);
		break;
	default:
		break;
	}
}

static void receive_drep(const struct received *r)
{
	struct cm_conn *c = named(r);

	if (!c || (c->state != CM_CONN_DREQ_SENT && c->state != CM_CONN_DREQ_RCVD))
		return;
	cm_conn_enter_timewait(c);
	cm_conn_tell(c, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
}

bool cm_conn_input(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                   const struct fabric_mad *mad)
{
	static void (*const receive[])(const struct received *r) = {
		[CM_ATTR_REQ - CM_ATTR_REQ] = receive_req,
		[CM_ATTR_MRA - CM_ATTR_REQ] = receive_mra,
		[CM_ATTR_REJ - CM_ATTR_REQ] = receive_rej,
		[CM_ATTR_REP - CM_ATTR_REQ] = receive_rep,
		[CM_ATTR_RTU - CM_ATTR_REQ] = receive_rtu,
		[CM_ATTR_DREQ - CM_ATTR_REQ] = receive_dreq,
		[CM_ATTR_DREP - CM_ATTR_REQ] = receive_drep,
	};
	const struct received r = { .cm = cm, .port = port, .head = head, .mad = mad };

	if (head->attribute_id < CM_ATTR_REQ || head->attribute_id > CM_ATTR_DREP)
		return false;
	receive[head->attribute_id - CM_ATTR_REQ](&r);
	return true;
}
