/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QPs of identifiers, with the completion queues that come along if the caller has
 * none, and the attributes that bring them to life. libibverbs refuses attributes that the device
 * lacks.
 */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "api/rdmacm/rdmacm.h"
#include "base/reason.h"

/* ---- attributes ---- */

static int query_qp(const struct rdmacm_id *id, struct control_cm_qp_reply *reply)
{
	struct control_cm_id request = { .id = id->handle };

	return rdmacm_session_call(id->session, CONTROL_CM_QUERY_QP, &request, sizeof(request),
	                           reply, sizeof(*reply));
}

void rdmacm_ah_attr(const struct control_cm_ah *ah, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){ .grh = { .flow_label = ah->flow_label,
		                               .sgid_index = ah->sgid_index,
		                               .hop_limit = ah->hop_limit,
		                               .traffic_class = ah->traffic_class },
		                      .dlid = ah->dlid,
		                      .sl = ah->sl,
		                      .static_rate = ah->rate,
		                      .is_global = ah->is_global,
		                      .port_num = ah->port_num };
	memcpy(attr->grh.dgid.raw, ah->dgid.raw, sizeof(ah->dgid.raw));
}

/* For any state of a queue pair that is not connected: the attributes of its port. */
static int port_attr(const struct control_cm_qp_reply *reply, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = reply->pkey_index;
	attr->port_num = reply->port_num;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (reply->is_ud) {
		attr->qkey = reply->qkey;
		*mask |= IBV_QP_QKEY;
	} else {
		attr->qp_access_flags = reply->access;
		*mask |= IBV_QP_ACCESS_FLAGS;
	}
	return 0;
}

static int rtr_attr(const struct rdmacm_id *id, const struct control_cm_qp_reply *reply,
                    struct ibv_qp_attr *attr, int *mask)
{
	if (!reply->has_peer)
		return -EINVAL;
	rdmacm_ah_attr(&reply->ah, &attr->ah_attr);
	attr->path_mtu = reply->path_mtu;
	attr->dest_qp_num = reply->dest_qp_num;
	attr->rq_psn = reply->rq_psn;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (id->id.qp_type == IBV_QPT_UC || id->id.qp_type == IBV_QPT_XRC_SEND)
		return 0;
	attr->max_dest_rd_atomic = reply->responder_resources;
	attr->min_rnr_timer = 0; /* the longest */
	*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return 0;
}

static int rts_attr(const struct rdmacm_id *id, const struct control_cm_qp_reply *reply,
                    struct ibv_qp_attr *attr, int *mask)
{
	if (!reply->has_peer)
		return -EINVAL;
	attr->sq_psn = reply->sq_psn;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (id->id.qp_type == IBV_QPT_UC)
		return 0;
	attr->timeout = reply->timeout;
	*mask |= IBV_QP_TIMEOUT;
	if (id->id.qp_type == IBV_QPT_XRC_RECV)
		return 0;
	attr->retry_cnt = reply->retry_count;
	attr->rnr_retry = reply->rnr_retry_count;
	attr->max_rd_atomic = reply->initiator_depth;
	*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return 0;
}

/* The attributes that go with @state, of which @reply tells. */
static int state_attr(const struct rdmacm_id *id, const struct control_cm_qp_reply *reply,
                      enum ibv_qp_state state, struct ibv_qp_attr *attr, int *mask)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	if (reply->is_ud || !reply->has_connection)
		return port_attr(reply, attr, mask);
	if (reply->is_over)
		return -EINVAL;
	switch (state) {
	case IBV_QPS_INIT:
		return port_attr(reply, attr, mask);
	case IBV_QPS_RTR:
		return rtr_attr(id, reply, attr, mask);
	case IBV_QPS_RTS:
		return rts_attr(id, reply, attr, mask);
	default:
		return -EINVAL;
	}
}

static int init_attr(const struct rdmacm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr,
                     int *mask)
{
	struct control_cm_qp_reply reply;
	int ret = query_qp(id, &reply);

	return ret ? ret : state_attr(id, &reply, state, attr, mask);
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	struct ibv_qp_attr attr;
	int ret;

	if (!id || !qp_attr || !qp_attr_mask || (unsigned)qp_attr->qp_state > IBV_QPS_ERR)
		return rdmacm_return(-EINVAL);
	ret = init_attr(rdmacm_id(id), qp_attr->qp_state, &attr, qp_attr_mask);
	if (!ret)
		*qp_attr = attr;
	return rdmacm_return(ret);
}

/* A UD QP can send and receive after this. */
static int start_ud(const struct rdmacm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	int mask, ret = init_attr(id, IBV_QPS_INIT, &attr, &mask);

	if (!ret)
		ret = ibv_modify_qp(qp, &attr, mask);
	if (ret)
		return ret;
	attr.qp_state = IBV_QPS_RTR;
	ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	if (ret)
		return ret;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* The attributes that the last event told, or that hold now. */
static int known_qp(const struct rdmacm_id *id, struct control_cm_qp_reply *reply)
{
	if (!id->has_qp)
		return query_qp(id, reply);
	*reply = id->qp;
	return 0;
}

/* A connected QP waits in INIT for its connection. */
static int start_connected(const struct rdmacm_id *id, struct ibv_qp *qp)
{
	struct control_cm_qp_reply reply;
	struct ibv_qp_attr attr;
	int mask, ret = known_qp(id, &reply);

	if (!ret)
		ret = state_attr(id, &reply, IBV_QPS_INIT, &attr, &mask);
	return ret ? ret : ibv_modify_qp(qp, &attr, mask);
}

/* INIT to INIT: peers may read and write now. */
static int move(const struct rdmacm_id *id, const struct control_cm_qp_reply *reply,
                enum ibv_qp_state state, uint8_t responder_resources, uint8_t initiator_depth)
{
	struct ibv_qp_attr attr;
	int mask, ret = state_attr(id, reply, state, &attr, &mask);

	if (ret)
		return ret;
	if (responder_resources != RDMA_MAX_RESP_RES)
		attr.max_dest_rd_atomic = responder_resources;
	if (initiator_depth != RDMA_MAX_INIT_DEPTH)
		attr.max_rd_atomic = initiator_depth;
	return ibv_modify_qp(id->id.qp, &attr, mask);
}

int rdmacm_qp_connect(struct rdmacm_id *id, uint8_t responder_resources, uint8_t initiator_depth)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct control_cm_qp_reply reply;
	int ret;

	if (!id->id.qp)
		return 0;
	ret = known_qp(id, &reply);
	id->has_qp = false;
	for (unsigned i = 0; !ret && i < ARRAY_SIZE(states); i++)
		ret = move(id, &reply, states[i], responder_resources, initiator_depth);
	return ret > 0 ? -ret : ret;
}

int rdmacm_qp_to_error(struct rdmacm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return id->id.qp ? ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE) : 0;
}

/* ---- completion queues ---- */

/* Those that nobody uses any more: an XRC target's serve its shared receive queue. */
static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->qp_type == IBV_QPT_XRC_RECV && id->srq)
		return;
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	id->recv_cq = id->send_cq = NULL;
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int create_cq(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **channel,
                     struct ibv_cq **cq)
{
	if (!entries)
		return 0;
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -errno;
	*cq = ibv_create_cq(id->verbs, (int)entries, id, *channel, 0);
	return *cq ? 0 : -errno;
}

/* Those that are not there. With an error none are. */
static int create_cqs(struct rdma_cm_id *id, uint32_t send_entries, uint32_t recv_entries)
{
	int ret = create_cq(id, recv_entries, &id->recv_cq_channel, &id->recv_cq);

	if (!ret)
		ret = create_cq(id, send_entries, &id->send_cq_channel, &id->send_cq);
	if (ret)
		destroy_cqs(id);
	return ret;
}

/* ---- QPs ---- */

static int check_qp_attr(const struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (id->qp || !id->verbs)
		return -EINVAL;
	if ((id->ps == RDMA_PS_UDP || id->ps == RDMA_PS_IPOIB) && attr->qp_type != IBV_QPT_UD)
		return base_because(-EINVAL,
		                    "the identifier is of %s, which is for UD queue pairs; "
		                    "RDMA_PS_TCP is for connected ones",
		                    id->ps == RDMA_PS_UDP ? "RDMA_PS_UDP" : "RDMA_PS_IPOIB");
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	} else if (attr->pd->context != id->verbs) {
		return -EINVAL;
	}
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
		return -EINVAL;
	return 0;
}

/* An XRC target needs a domain. */
static int describe_target(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (id->qp_type != IBV_QPT_XRC_RECV ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) && attr->xrcd))
		return 0;
	attr->xrcd = rdmacm_device_xrcd(rdmacm_id(id));
	if (!attr->xrcd)
		return -errno;
	attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return 0;
}

static int create_cqs_of_qp(struct rdma_cm_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	return create_cqs(id, attr->send_cq || id->send_cq ? 0 : attr->cap.max_send_wr,
	                  attr->recv_cq || id->recv_cq ? 0 : attr->cap.max_recv_wr);
}

static int create_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int ret;

	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (id->srq && !attr->srq)
		attr->srq = id->srq;
	qp = ibv_create_qp_ex(id->verbs, attr);
	if (!qp)
		return -errno;
	ret = id->qp_type == IBV_QPT_UD ? start_ud(rdmacm_id(id), qp)
	                                : start_connected(rdmacm_id(id), qp);
	if (ret) {
		ibv_destroy_qp(qp);
		return ret;
	}
	id->pd = attr->pd;
	id->qp = qp;
	return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int ret;

	if (!id || !attr)
		return rdmacm_return(-EINVAL);
	ret = check_qp_attr(id, attr);
	if (!ret)
		ret = describe_target(id, attr);
	if (!ret)
		ret = create_cqs_of_qp(id, attr);
	if (ret)
		return rdmacm_return(ret);
	ret = create_qp(id, attr);
	if (ret)
		destroy_cqs(id);
	return rdmacm_return(ret);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = { 0 };
	int ret;

	if (!id || !qp_init_attr)
		return rdmacm_return(-EINVAL);
	memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr)); /* one begins like the other */
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd ? pd : id->pd;
	ret = rdma_create_qp_ex(id, &attr);
	memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
	return ret;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (!id || !id->qp)
		return;
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
}

/* ---- shared receive queues ---- */

/* One of XRC has a domain and a completion queue. */
static int describe_xrc_srq(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int ret;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		attr->xrcd = rdmacm_device_xrcd(rdmacm_id(id));
		if (!attr->xrcd)
			return -errno;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		ret = create_cqs(id, 0, id->recv_cq ? 0 : attr->attr.max_wr);
		if (ret)
			return ret;
		attr->cq = id->recv_cq;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;
	int ret = 0;

	if (!id || !attr || !id->verbs || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return rdmacm_return(-EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->srq_type == IBV_SRQT_XRC)
		ret = describe_xrc_srq(id, attr);
	if (ret)
		return rdmacm_return(ret);
	srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq) {
		ret = -errno;
		if (!id->qp)
			destroy_cqs(id);
		return rdmacm_return(ret);
	}
	id->srq = srq;
	return 0;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = { 0 };
	int ret;

	if (!id || !attr)
		return rdmacm_return(-EINVAL);
	memcpy(&attr_ex, attr, sizeof(*attr)); /* one begins like the other */
	attr_ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	attr_ex.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	attr_ex.pd = pd;
	ret = rdma_create_srq_ex(id, &attr_ex);
	memcpy(attr, &attr_ex, sizeof(*attr));
	return ret;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (!id || !id->srq)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
	destroy_cqs(id);
}

/* ---- enhanced connection establishment: of reliable connections ---- */

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return rdmacm_return(-EINVAL);
	rdmacm_id(id)->local_ece.vendor_id = ece->vendor_id;
	rdmacm_id(id)->local_ece.options = ece->options;
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return rdmacm_return(-EINVAL);
	*ece = (struct ibv_ece){ .vendor_id = rdmacm_id(id)->remote_ece.vendor_id,
		                 .options = rdmacm_id(id)->remote_ece.options };
	return 0;
}
