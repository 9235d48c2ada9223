/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connecting: listen, connect, accept, reject, disconnect, for UD and for connected QPs, whose
 * states follow.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rdmacm.h"
#include "api/verbs/connection.h"

#define DEFAULT_RETRIES 7
#define VENDOR_OPTION   35 /* a REJ's reason: VendorID not supported */

static int append_private(struct control_cm_connect *request, const void *data, size_t bytes)
{
	if (!data || !bytes)
		return 0;
	if (bytes > sizeof(request->private_data) - request->bytes)
		return -EINVAL;
	memcpy(request->private_data + request->bytes, data, bytes);
	request->bytes += (uint32_t)bytes;
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct control_cm_listen request = { .backlog = backlog };
	struct control_cm_id_reply info;
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	request.id = rdmacm_id(id)->handle;
	ret = rdmacm_id_call(rdmacm_id(id), CONTROL_CM_LISTEN, &request, sizeof(request), &info,
	                     sizeof(info));
	if (ret)
		return rdmacm_return(ret);
	memcpy(&id->route.addr.src_storage, &info.src, rdmacm_addr_bytes(&info.src.sa));
	rdmacm_id(id)->requests_slack =
	        (uint32_t)(backlog > 0 ? base_min(backlog, CONTROL_CM_MAX_BACKLOG)
	                               : CONTROL_CM_MAX_BACKLOG) /
	        16;
	return 0;
}

/* Checks the parameters of a connected QP against the limits of the device. The caller may also say
 * "as much as possible". */
static int check_param(const struct rdmacm_id *id, const struct rdma_conn_param *param)
{
	if (id->id.ps != RDMA_PS_TCP)
		return 0;
	if (!id->id.qp && !param)
		return -EINVAL;
	if (!param || !id->device)
		return 0;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > id->device->max_responder_resources)
		return -EINVAL;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > id->device->max_initiator_depth)
		return -EINVAL;
	return 0;
}

/* Everything but the private data. Without @param an accepted UD request has no QP to name. */
static void set_param(const struct rdmacm_id *id, const struct rdma_conn_param *param,
                      struct control_cm_connect *request)
{
	request->param = (struct control_cm_param){ .responder_resources = id->responder_resources,
		                                    .initiator_depth = id->initiator_depth,
		                                    .retry_count = DEFAULT_RETRIES,
		                                    .rnr_retry_count = DEFAULT_RETRIES,
		                                    .ece_vendor = id->local_ece.vendor_id,
		                                    .ece_options = id->local_ece.options };
	if (param) {
		request->qp_num = param->qp_num;
		request->param.flow_control = param->flow_control;
		request->param.retry_count = param->retry_count;
		request->param.rnr_retry_count = param->rnr_retry_count;
		request->param.srq = param->srq;
	}
	if (id->id.qp) {
		request->qp_num = id->id.qp->qp_num;
		request->param.srq = id->id.qp->srq != NULL;
	}
}

static void set_depths(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
	id->responder_resources = id->device->max_responder_resources;
	id->initiator_depth = id->device->max_initiator_depth;
	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
}

/* Whether the daemon has nothing to say against it at once. */
static bool may_connect(const struct rdmacm_id *id, const struct control_cm_connect *request)
{
	return rdmacm_id_is_at(id, RDMACM_ROUTE_RESOLVED) && id->id.qp_type == IBV_QPT_RC &&
	       request->bytes <= CONTROL_CM_REQ_PRIVATE && rdmacm_device_is_ready(id);
}

static int connect_id(struct rdmacm_id *p, const struct rdma_conn_param *param)
{
	struct control_cm_connect request = { .id = p->handle };
	int ret = check_param(p, param);

	if (ret)
		return ret;
	if (p->device)
		set_depths(p, param);
	set_param(p, param, &request);
	ret = append_private(&request, p->connect_data, p->connect_bytes);
	if (!ret && param)
		ret = append_private(&request, param->private_data, param->private_data_len);
	if (!ret)
		ret = rdmacm_id_begin(p, may_connect(p, &request), CONTROL_CM_CONNECT, &request,
		                      sizeof(request));
	if (ret)
		return ret;
	p->has_connection = p->id.qp_type != IBV_QPT_UD;
	free(p->connect_data);
	p->connect_data = NULL;
	p->connect_bytes = 0;
	return rdmacm_id_complete(p);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	if (!id)
		return rdmacm_return(-EINVAL);
	return rdmacm_return(connect_id(rdmacm_id(id), conn_param));
}

/* As the request says, but not more than the device can do; or what the caller says. */
static void set_accepted_depths(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	else if (id->responder_resources > id->device->max_responder_resources)
		id->responder_resources = id->device->max_responder_resources;
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	else if (id->initiator_depth > id->device->max_initiator_depth)
		id->initiator_depth = id->device->max_initiator_depth;
}

/* A connected QP is ready before the peer can use it. */
static int prepare(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
	int ret = check_param(id, param);

	if (ret || id->id.qp_type == IBV_QPT_UD)
		return ret;
	if (!id->device)
		return -EINVAL;
	set_accepted_depths(id, param);
	return rdmacm_qp_connect(id, id->responder_resources, id->initiator_depth);
}

/* Synchronous identifiers wait until a connection is established. */
static int complete_accept(struct rdmacm_id *id)
{
	if (id->id.qp_type != IBV_QPT_UD)
		return rdmacm_id_complete(id);
	if (id->sync && id->id.event) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
	return 0;
}

/* Likewise. */
static bool may_accept(const struct rdmacm_id *id, const struct control_cm_connect *request)
{
	return rdmacm_id_is_at(id, RDMACM_REQUESTED) && id->id.qp_type == IBV_QPT_RC &&
	       request->bytes <= CONTROL_CM_REP_PRIVATE;
}

/* Connects the queue pair and accepts. In a batch: the daemon does one after the other. */
static int ask_accept(struct rdmacm_id *p, const struct rdma_conn_param *param)
{
	struct control_cm_connect request = { .uid = (uintptr_t)p, .id = p->handle };
	int ret = prepare(p, param);

	if (ret)
		return ret;
	set_param(p, param, &request);
	request.param.ece_vendor = p->remote_ece.vendor_id; /* the one that was asked for */
	if (param)
		ret = append_private(&request, param->private_data, param->private_data_len);
	if (!ret)
		ret = rdmacm_id_begin(p, may_accept(p, &request), CONTROL_CM_ACCEPT, &request,
		                      sizeof(request));
	if (ret)
		rdmacm_qp_to_error(p);
	return ret;
}

static int accept_id(struct rdmacm_id *p, const struct rdma_conn_param *param)
{
	struct rdmacm_batch batch;
	int ret, sent;

	if (!p->id.qp && !param)
		return -EINVAL;
	rdmacm_batch_begin(p->session, &batch);
	ret = ask_accept(p, param);
	sent = rdmacm_batch_end(&batch);
	if (ret || sent)
		return ret ? ret : sent;
	p->has_connection = p->id.qp_type != IBV_QPT_UD;
	return complete_accept(p);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	if (!id)
		return rdmacm_return(-EINVAL);
	return rdmacm_return(accept_id(rdmacm_id(id), conn_param));
}

static int reject(struct rdma_cm_id *id, const void *data, uint8_t bytes, uint32_t reason)
{
	struct control_cm_connect request = { .reason = reason };
	int ret;

	if (!id)
		return rdmacm_return_of("rdma_reject", -EINVAL);
	request.id = rdmacm_id(id)->handle;
	ret = append_private(&request, data, bytes);
	if (!ret)
		ret = rdmacm_id_call(rdmacm_id(id), CONTROL_CM_REJECT, &request, sizeof(request),
		                     NULL, 0);
	return rdmacm_return_of("rdma_reject", ret);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, 0);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, VENDOR_OPTION);
}

static int call_by_id(struct rdmacm_id *id, enum control_cm_type type)
{
	const struct control_cm_id request = { .id = id->handle };

	return rdmacm_id_call(id, type, &request, sizeof(request), NULL, 0);
}

/* Whether peers see the end of its queue pair before the daemon does (struct hca_transport's
 * end()). */
static bool ends_at_once(const struct rdmacm_id *id)
{
	return !id->id.qp || id->id.qp->qp_type == IBV_QPT_RC || id->id.qp->qp_type == IBV_QPT_UC;
}

/* Of a connection, whatever its state, this succeeds: nobody has to wait for it. */
static int disconnect(struct rdmacm_id *id)
{
	const struct control_cm_id request = { .id = id->handle };
	struct rdmacm_batch batch;
	int ret, sent;

	rdmacm_batch_begin(id->session, &batch);
	ret = rdmacm_qp_to_error(id);
	if (!ret && id->has_connection && ends_at_once(id) &&
	    !rdmacm_session_is_parents(id->session))
		ret = rdmacm_session_post(id->session, CONTROL_CM_DISCONNECT, &request,
		                          sizeof(request));
	else if (!ret)
		ret = call_by_id(id, CONTROL_CM_DISCONNECT);
	sent = rdmacm_batch_end(&batch);
	return ret ? ret : sent;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	int ret;

	if (!id || !id->verbs)
		return rdmacm_return(-EINVAL);
	ret = disconnect(rdmacm_id(id));
	if (!ret && id->qp_type != IBV_QPT_UD) /* for UD nothing follows */
		ret = rdmacm_id_complete(rdmacm_id(id));
	return rdmacm_return(ret);
}

/* If the peer rejects it now, an event says so in any case. Messages of the queue pair wait for the
 * daemon if need be; but messages of UC would get lost. */
static int establish(struct rdmacm_id *id)
{
	const struct control_cm_id request = { .id = id->handle };

	return rdmacm_id_begin(id, id->id.qp && id->id.qp->qp_type == IBV_QPT_RC,
	                       CONTROL_CM_ESTABLISH, &request, sizeof(request));
}

int rdmacm_connect_respond(struct rdmacm_id *id)
{
	struct rdmacm_batch batch;
	int ret, sent;

	rdmacm_batch_begin(id->session, &batch);
	ret = rdmacm_qp_connect(id, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH);
	if (!ret)
		ret = establish(id);
	sent = rdmacm_batch_end(&batch);
	ret = ret ? ret : sent;
	if (ret)
		rdmacm_qp_to_error(id);
	else if (id->id.qp)
		umbel_qp_has_moved(id->id.qp);
	return ret;
}

/* The program has connected its QP by itself. */
int rdma_establish(struct rdma_cm_id *id)
{
	if (!id || id->qp)
		return rdmacm_return(-EINVAL);
	return rdmacm_return(rdmacm_connect_respond(rdmacm_id(id)));
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct control_cm_notify request = { .event = event };

	if (!id)
		return rdmacm_return(-EINVAL);
	request.id = rdmacm_id(id)->handle;
	return rdmacm_return(rdmacm_id_call(rdmacm_id(id), CONTROL_CM_NOTIFY, &request,
	                                    sizeof(request), NULL, 0));
}

/* ---- synchronous listeners ---- */

static int check_request(struct rdmacm_id *listener, struct rdma_cm_event *event)
{
	struct ibv_qp_init_attr attr;

	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return -EIO;
	if (event->status)
		return event->status;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return -EINVAL;
	if (!listener->qp_init_attr)
		return 0;
	attr = *listener->qp_init_attr;
	return rdma_create_qp(event->id, listener->id.pd, &attr) ? -errno : 0;
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	int ret;

	if (!listen || !id || !rdmacm_id(listen)->sync)
		return rdmacm_return(-EINVAL);
	if (listen->event)
		rdma_ack_cm_event(listen->event);
	listen->event = NULL;
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	ret = check_request(rdmacm_id(listen), event);
	if (ret) {
		listen->event = event;
		return rdmacm_return(ret);
	}
	*id = event->id;
	(*id)->event = event;
	return 0;
}
