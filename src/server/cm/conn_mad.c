/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of connections that are sent: see conn.h.
 */
#include <string.h>

#include "cm/conn.h"
#include "cm/mad.h"

static const struct cm *cm_of(const struct cm_conn *c)
{
	return c->id->client->cm;
}

static uint64_t own_guid(const struct cm_conn *c)
{
	return c->id->port->node->guid;
}

static void begin(const struct cm_conn *c, uint16_t attribute, uint64_t tid, struct fabric_mad *mad)
{
	const struct wire_mad head = { .transaction_id = tid, .attribute_id = attribute };

	cm_mad_begin(cm_of(c), c->id->port, &c->peer, &head, mad);
}

static void send_mad(const struct cm_conn *c, const struct fabric_mad *mad)
{
	const struct cm *cm = cm_of(c);

	cm->ops.mad_send(cm->ops.arg, c->id->port, mad);
}

/* ---- messages that are repeated ---- */

static void put_path(const struct cm_conn *c, struct wire_cm_path *to)
{
	const struct control_cm_path *path = &c->id->path;

	*to = (struct wire_cm_path){ .local_lid = path->slid,
		                     .remote_lid = path->dlid,
		                     .local_gid = path->sgid,
		                     .remote_gid = path->dgid,
		                     .flow_label = path->flow_label,
		                     .rate = path->rate,
		                     .traffic_class = path->traffic_class,
		                     .hop_limit = path->hop_limit,
		                     .sl = path->sl,
		                     .is_local = path->hop_limit <= 1 };
	if (!to->is_local) /* LIDs mean nothing in another subnet */
		to->local_lid = to->remote_lid = IB_LID_PERMISSIVE;
	to->ack_timeout = cm_conn_ack_timeout(CM_CONN_ACK_DELAY, path->life);
}

/* A requester of XRC receives nothing, and its target repeats nothing: Linux leaves all that out.
 */
static void put_param(const struct cm_id *id, const struct control_cm_param *param,
                      struct wire_cm_req *req)
{
	req->initiator_depth = param->initiator_depth;
	req->flow_control = param->flow_control != 0;
	req->vendor_id = param->ece_vendor;
	if (id->qp_type == IBV_QPT_XRC_SEND)
		return;
	req->responder_resources = param->responder_resources;
	req->retry_count = param->retry_count > 7 ? 7 : param->retry_count;
	req->rnr_retry_count = param->rnr_retry_count > 7 ? 7 : param->rnr_retry_count;
	req->srq = param->srq != 0;
}

static void put_transport(const struct cm_id *id, struct wire_cm_req *req)
{
	switch (id->qp_type) {
	case IBV_QPT_UC:
		req->transport = CM_TRANSPORT_UC;
		break;
	case IBV_QPT_XRC_SEND:
		req->transport = CM_TRANSPORT_EXTENDED;
		req->extended = CM_EXTENDED_XRC;
		break;
	default:
		req->transport = CM_TRANSPORT_RC;
	}
}

void cm_conn_make_req(struct cm_conn *c, const struct control_cm_connect *from,
                      struct fabric_mad *mad)
{
	const struct cm_id *id = c->id;
	const struct wire_mad head = { .transaction_id = c->tid,
		                       .attribute_id = CM_ATTR_REQ,
		                       .attribute_modifier = from->param.ece_options };
	struct wire_cm_req req = { .local_id = c->local_id,
		                   .service_id = cm_resolve_service_id(id->ps, &id->dst),
		                   .guid = own_guid(c),
		                   .qpn = c->local_qpn,
		                   .remote_timeout = CM_CONN_RESPONSE_TIMEOUT,
		                   .local_timeout = CM_CONN_RESPONSE_TIMEOUT,
		                   .psn = c->local_psn,
		                   .pkey = id->path.pkey,
		                   .mtu = id->path.mtu,
		                   .cm_retries = CM_CONN_RETRIES };

	put_transport(id, &req);
	put_param(id, &from->param, &req);
	put_path(c, &req.primary);
	cm_addr_put_private(c->id, from, req.private_data);
	cm_mad_begin(cm_of(c), id->port, &c->peer, &head, mad);
	wire_cm_req_encode(&req, mad->data + CM_MESSAGE_AT);
}

void cm_conn_make_rep(struct cm_conn *c, const struct control_cm_connect *from,
                      struct fabric_mad *mad)
{
	const struct control_cm_param *param = &from->param;
	const struct wire_mad head = { .transaction_id = c->tid,
		                       .attribute_id = CM_ATTR_REP,
		                       .attribute_modifier = param->ece_options };
	struct wire_cm_rep rep = { .local_id = c->local_id,
		                   .remote_id = c->remote_id,
		                   .psn = c->local_psn,
		                   .vendor_id_high = (uint8_t)(param->ece_vendor >> 16),
		                   .vendor_id_middle = (uint8_t)(param->ece_vendor >> 8),
		                   .vendor_id_low = (uint8_t)param->ece_vendor,
		                   .responder_resources = param->responder_resources,
		                   .initiator_depth = param->initiator_depth,
		                   .ack_delay = CM_CONN_ACK_DELAY,
		                   .flow_control = param->flow_control != 0,
		                   .srq = param->srq != 0,
		                   .guid = own_guid(c) };

	if (c->id->qp_type == IBV_QPT_XRC_RECV) { /* which the field of an EE context names */
		rep.eecn = c->local_qpn;
		rep.srq = 1;
	} else {
		rep.qpn = c->local_qpn;
	}
	rep.rnr_retry_count = param->rnr_retry_count > 7 ? 7 : param->rnr_retry_count;
	memcpy(rep.private_data, from->private_data, from->bytes);
	cm_mad_begin(cm_of(c), c->id->port, &c->peer, &head, mad);
	wire_cm_rep_encode(&rep, mad->data + CM_MESSAGE_AT);
}

void cm_conn_make_dreq(struct cm_conn *c, struct fabric_mad *mad)
{
	const struct wire_cm_dreq dreq = { .local_id = c->local_id,
		                           .remote_id = c->remote_id,
		                           .remote_qpn = c->remote_qpn };

	begin(c, CM_ATTR_DREQ, cm_mad_new_tid(c->id->client->cm), mad);
	wire_cm_dreq_encode(&dreq, mad->data + CM_MESSAGE_AT);
}

/* ---- answers ---- */

static void send_ids(const struct cm_conn *c, uint16_t attribute)
{
	const struct wire_cm_rtu rtu = { .local_id = c->local_id, .remote_id = c->remote_id };
	struct fabric_mad mad;

	begin(c, attribute, c->tid, &mad);
	wire_cm_rtu_encode(&rtu, mad.data + CM_MESSAGE_AT);
	send_mad(c, &mad);
}

void cm_conn_send_rtu(const struct cm_conn *c)
{
	send_ids(c, CM_ATTR_RTU);
}

void cm_conn_send_drep(const struct cm_conn *c)
{
	send_ids(c, CM_ATTR_DREP);
}

void cm_conn_send_mra(const struct cm_conn *c, enum cm_message about)
{
	const struct wire_cm_mra mra = { .local_id = c->local_id,
		                         .remote_id = c->remote_id,
		                         .message = about,
		                         .timeout = CM_CONN_MRA_TIMEOUT };
	struct fabric_mad mad;

	begin(c, CM_ATTR_MRA, c->tid, &mad);
	wire_cm_mra_encode(&mra, mad.data + CM_MESSAGE_AT);
	send_mad(c, &mad);
}

void cm_conn_send_rej(const struct cm_conn *c, enum cm_message about,
                      const struct cm_conn_refusal *refusal)
{
	struct wire_cm_rej rej = { .local_id = c->local_id,
		                   .remote_id = c->remote_id,
		                   .message_rejected = about,
		                   .reason = refusal->reason,
		                   .info_length = refusal->info_bytes };
	struct fabric_mad mad;

	if (refusal->info_bytes)
		memcpy(rej.info, refusal->info, refusal->info_bytes);
	if (refusal->bytes)
		memcpy(rej.private_data, refusal->data, refusal->bytes);
	begin(c, CM_ATTR_REJ, c->tid, &mad);
	wire_cm_rej_encode(&rej, mad.data + CM_MESSAGE_AT);
	send_mad(c, &mad);
}

/* ---- to strangers ---- */

/* The IDs come first in all messages. */
static void read_ids(const struct fabric_mad *mad, struct wire_cm_rtu *ids)
{
	wire_cm_rtu_decode(mad->data + CM_MESSAGE_AT, ids);
}

/* Begins an answer to @mad. */
static void begin_answer(const struct cm *cm, struct fabric_port *port, uint16_t attribute,
                         const struct fabric_mad *mad, struct fabric_mad *answer)
{
	const struct cm_peer peer = cm_peer_of(mad);
	struct wire_mad head, h = { .attribute_id = attribute };

	wire_mad_decode(mad->data, &head);
	h.transaction_id = head.transaction_id;
	cm_mad_begin(cm, port, &peer, &h, answer);
}

void cm_conn_issue_rej(const struct cm *cm, struct fabric_port *port, const struct fabric_mad *mad,
                       enum cm_message about, uint16_t reason)
{
	struct wire_cm_rej rej = { .message_rejected = about, .reason = reason };
	struct wire_cm_rtu ids;
	struct fabric_mad answer;

	read_ids(mad, &ids);
	rej.remote_id = ids.local_id;
	if (about != CM_MESSAGE_REQ) /* whose second word is no ID */
		rej.local_id = ids.remote_id;
	begin_answer(cm, port, CM_ATTR_REJ, mad, &answer);
	wire_cm_rej_encode(&rej, answer.data + CM_MESSAGE_AT);
	cm->ops.mad_send(cm->ops.arg, port, &answer);
}

void cm_conn_issue_drep(const struct cm *cm, struct fabric_port *port, const struct fabric_mad *mad)
{
	struct wire_cm_rtu ids, drep = { 0 };
	struct fabric_mad answer;

	read_ids(mad, &ids);
	drep.local_id = ids.remote_id;
	drep.remote_id = ids.local_id;
	begin_answer(cm, port, CM_ATTR_DREP, mad, &answer);
	wire_cm_rtu_encode(&drep, answer.data + CM_MESSAGE_AT);
	cm->ops.mad_send(cm->ops.arg, port, &answer);
}
