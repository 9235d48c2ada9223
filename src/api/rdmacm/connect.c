/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connecting, for UD: listen, connect, accept, reject, disconnect. The calls that only
 * reliable connections have a use for are here too, and say so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rdmacm.h"

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
	ret = rdmacm_session_call(CONTROL_CM_LISTEN, &request, sizeof(request), &info,
	                          sizeof(info));
	if (!ret)
		memcpy(&id->route.addr.src_storage, &info.src, rdmacm_addr_bytes(&info.src.sa));
	return rdmacm_return(ret);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct control_cm_connect request = { 0 };
	struct rdmacm_id *p;
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	p = rdmacm_id(id);
	request.id = p->handle;
	ret = append_private(&request, p->connect_data, p->connect_bytes);
	if (!ret && conn_param)
		ret = append_private(&request, conn_param->private_data,
		                     conn_param->private_data_len);
	if (!ret)
		ret = rdmacm_session_call(CONTROL_CM_CONNECT, &request, sizeof(request), NULL, 0);
	if (ret)
		return rdmacm_return(ret);
	free(p->connect_data);
	p->connect_data = NULL;
	p->connect_bytes = 0;
	return rdmacm_return(rdmacm_id_complete(p));
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct control_cm_connect request = { 0 };
	int ret = 0;

	if (!id)
		return rdmacm_return(-EINVAL);
	request.id = rdmacm_id(id)->handle;
	request.uid = (uintptr_t)rdmacm_id(id);
	if (id->qp)
		request.qp_num = id->qp->qp_num;
	else if (conn_param)
		request.qp_num = conn_param->qp_num;
	else
		return rdmacm_return(-EINVAL);
	if (conn_param)
		ret = append_private(&request, conn_param->private_data,
		                     conn_param->private_data_len);
	if (!ret)
		ret = rdmacm_session_call(CONTROL_CM_ACCEPT, &request, sizeof(request), NULL, 0);
	if (ret)
		rdmacm_qp_to_error(rdmacm_id(id));
	return rdmacm_return(ret);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	struct control_cm_connect request = { 0 };
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	request.id = rdmacm_id(id)->handle;
	ret = append_private(&request, private_data, private_data_len);
	if (!ret)
		ret = rdmacm_session_call(CONTROL_CM_REJECT, &request, sizeof(request), NULL, 0);
	return rdmacm_return(ret);
}

/* Service ID resolution has one way to say no. */
int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return rdma_reject(id, private_data, private_data_len);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct control_cm_id request;
	int ret;

	if (!id || !id->verbs)
		return rdmacm_return(-EINVAL);
	ret = rdmacm_qp_to_error(rdmacm_id(id));
	if (ret)
		return rdmacm_return(ret);
	request.id = rdmacm_id(id)->handle;
	return rdmacm_return(
	        rdmacm_session_call(CONTROL_CM_DISCONNECT, &request, sizeof(request), NULL, 0));
}

/* Only a reliable connection can be established, or migrated, by hand. */
int rdma_establish(struct rdma_cm_id *id)
{
	(void)id;
	return rdmacm_return(-EINVAL);
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)id;
	(void)event;
	return rdmacm_return(-EINVAL);
}

/* ---- synchronous listeners ---- */

static int check_request(struct rdmacm_id *listener, struct rdma_cm_event *event)
{
	struct ibv_qp_init_attr attr;

	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
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
