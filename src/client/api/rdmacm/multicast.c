/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast joins of an identifier. The port joins in the daemon; the QP is attached
 * here, when the event that says so is got.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rdmacm.h"
#include "api/verbs/connection.h"
#include "base/ack_wait.h"
#include "base/log.h"
#include "wire/text.h"

/* Where it is bound, for messages. */
static const char *device_name(const struct rdmacm_id *id)
{
	return id->id.verbs ? id->id.verbs->device->name : "no device";
}

static void forget(struct rdmacm_join *j)
{
	pthread_mutex_lock(&j->id->lock);
	LIST_REMOVE(j, entry);
	pthread_mutex_unlock(&j->id->lock);
	free(j);
}

static int request_join(struct rdmacm_join *j)
{
	struct control_cm_join request = {
		.uid = (uintptr_t)j, .id = j->id->handle, .flags = j->flags, .addr = j->addr
	};
	struct control_cm_handle reply;
	int ret = rdmacm_id_call(j->id, CONTROL_CM_JOIN, &request, sizeof(request), &reply,
	                         sizeof(reply));

	if (!ret)
		j->handle = reply.join;
	return ret;
}

/* Any address makes a group, on cards, too. */
static void judge_address(const struct sockaddr_in *addr)
{
	const in_addr_t at = ntohl(addr->sin_addr.s_addr);

	if (addr->sin_family == AF_INET && at && !IN_MULTICAST(at))
		base_log_warning(
		        rdmacm,
		        "rdma_join_multicast() of %s, which is no multicast address: it makes "
		        "a group all the same",
		        wire_address_text((const struct sockaddr *)addr));
}

static int join(struct rdmacm_id *id, const struct sockaddr *addr, uint32_t flags, void *context)
{
	struct rdmacm_join *j = calloc(1, sizeof(*j));
	int ret;

	if (!j)
		return -ENOMEM;
	j->id = id;
	j->context = context;
	j->flags = flags;
	ret = rdmacm_addr_copy(addr, &j->addr);
	if (ret) {
		free(j);
		return ret;
	}
	judge_address((const struct sockaddr_in *)addr);
	base_log_trace(join, "%s: the program joins %s: request to the daemon", device_name(id),
	               wire_address_text(addr));
	/* before the request, as its event may be got before the reply is */
	pthread_mutex_lock(&id->lock);
	LIST_INSERT_HEAD(&id->joins, j, entry);
	pthread_mutex_unlock(&id->lock);
	ret = request_join(j);
	if (ret) {
		forget(j);
		return ret;
	}
	return rdmacm_id_complete(id);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	if (!id)
		return rdmacm_return(-EINVAL);
	return rdmacm_return(join(rdmacm_id(id), addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context));
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
                           void *context)
{
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if (!id || !mc_join_attr)
		return rdmacm_return(-EINVAL);
	if (mc_join_attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return rdmacm_return(-ENOTSUP);
	if ((mc_join_attr->comp_mask & needed) != needed ||
	    mc_join_attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return rdmacm_return(-EINVAL);
	return rdmacm_return(
	        join(rdmacm_id(id), mc_join_attr->addr, mc_join_attr->join_flags, context));
}

int rdmacm_multicast_joined(struct rdmacm_join *j, const struct rdma_ud_param *ud)
{
	struct ibv_qp *qp = j->id->id.qp;

	j->mgid = ud->ah_attr.grh.dgid;
	j->mlid = ud->ah_attr.dlid;
	j->joined = true;
	umbel_group_joined(j->id->id.verbs, j->id->id.port_num, &j->mgid,
	                   j->flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	base_log_trace(join, "%s: the program gets the event: member of %s, MLID 0x%04x",
	               device_name(j->id), wire_gid_text(&j->mgid), j->mlid);
	if (!qp || j->flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		return 0;
	base_log_trace(join, "%s: QP 0x%06x is to be attached: request to the daemon",
	               device_name(j->id), qp->qp_num);
	return -ibv_attach_mcast(qp, &j->mgid, j->mlid);
}

/* The newest join of exactly this address, no longer in the list; or NULL. */
static struct rdmacm_join *remove_newest(struct rdmacm_id *id, const union control_cm_addr *addr)
{
	struct rdmacm_join *j;

	pthread_mutex_lock(&id->lock);
	LIST_FOREACH(j, &id->joins, entry)
	if (!memcmp(&j->addr, addr, sizeof(*addr)))
		break;
	if (j)
		LIST_REMOVE(j, entry);
	pthread_mutex_unlock(&id->lock);
	return j;
}

static void wait_acked(struct rdmacm_join *j, uint32_t reported)
{
	struct base_ack_wait w = { .part = BASE_LOG_PART_rdmacm,
		                   .call = "rdma_leave_multicast",
		                   .acknowledge = "rdma_ack_cm_event" };

	pthread_mutex_lock(&j->id->lock);
	while ((w.missing = (int)(reported - j->acked)) > 0)
		base_ack_wait(&w, &j->id->acked_more, &j->id->lock);
	pthread_mutex_unlock(&j->id->lock);
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	union control_cm_addr wanted;
	struct rdmacm_join *j;
	uint32_t got;
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	ret = rdmacm_addr_copy(addr, &wanted);
	if (ret)
		return rdmacm_return(ret);
	j = remove_newest(rdmacm_id(id), &wanted);
	if (!j)
		return rdmacm_return(-EADDRNOTAVAIL);
	if (id->qp && j->joined && j->flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		ibv_detach_mcast(id->qp, &j->mgid, j->mlid);
	if (!j->answered)
		base_log_warning(rdmacm,
		                 "rdma_leave_multicast() of %s before the event of its join: that "
		                 "event will not come",
		                 wire_address_text(addr));
	ret = rdmacm_channel_leave(j, &got);
	if (!ret && j->joined)
		umbel_group_left(id->verbs, id->port_num, &j->mgid);
	if (!ret) {
		/* a synchronous identifier holds its event for itself */
		if (id->event && container_of(id->event, struct rdmacm_event, event)->join == j) {
			rdma_ack_cm_event(id->event);
			id->event = NULL;
		}
		wait_acked(j, got);
	}
	free(j);
	return rdmacm_return(ret);
}
