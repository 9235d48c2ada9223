/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast joins as processes ask for them: the checks that refuse at once, the request to the SA,
 * and the event that tells the outcome. How joins share a port's membership: group.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/reason.h"
#include "cm/state.h"
#include "wire/text.h"

#define COMMON_MASK                                                                      \
	(SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_PKEY | SA_MCM_JOIN_STATE | SA_MCM_QKEY | \
	 SA_MCM_SL | SA_MCM_FLOW_LABEL | SA_MCM_TCLASS)
#define IPOIB_MASK \
	(SA_MCM_RATE | SA_MCM_RATE_SELECTOR | SA_MCM_MTU | SA_MCM_MTU_SELECTOR | SA_MCM_HOP_LIMIT)

/* ---- outcomes ---- */

static void fill_joined(const struct cm_id *id, const struct wire_mcmember *rec,
                        struct control_cm_event *data)
{
	data->qp_num = IB_QPN_MCAST;
	data->qkey = rec->qkey;
	data->ah = (struct control_cm_ah){ .dgid = rec->mgid,
		                           .flow_label = rec->flow_label,
		                           .dlid = rec->mlid,
		                           .sl = rec->sl,
		                           .rate = rec->rate,
		                           .is_global = 1,
		                           .traffic_class = rec->tclass,
		                           .hop_limit = rec->hop_limit,
		                           .sgid_index = cm_id_sgid_index(id),
		                           .port_num = id->port->num };
}

void cm_multicast_done(struct cm_join *j, int status, const struct wire_mcmember *rec)
{
	struct cm_event *e = j->event;

	if (j->id->ends)
		return;
	j->event = NULL;
	base_log_trace(join, "%s:%u: the process gets an event: %s", j->id->port->node->name,
	               j->id->port->num, status ? strerror(-status) : "joined");
	if (status) {
		e->data.type = RDMA_CM_EVENT_MULTICAST_ERROR;
		e->data.status = status;
	} else {
		fill_joined(j->id, rec, &e->data);
	}
	cm_event_post(e);
}

void cm_multicast_lost(struct cm_join *j)
{
	struct cm_event *e;

	if (j->id->ends)
		return;
	e = cm_event_new_lost(j);
	if (e)
		cm_event_post(e);
}

/* ---- joining ---- */

/* Makes the record to ask the SA for. The group is like the port's broadcast group, which must
 * exist. */
static int make_record(struct cm_id *id, const struct control_cm_join *request,
                       struct wire_mcmember *rec)
{
	const struct wire_mcmember *broadcast =
	        cm_port_broadcast(id->client->cm, id->port, id->pkey);
	const uint8_t state = request->flags == RDMA_MC_JOIN_FLAG_FULLMEMBER
	                              ? IB_JOIN_FULL
	                              : IB_JOIN_SEND_ONLY_FULL;
	int ret;

	if (id->port->ethernet) {
		ret = cm_roce_record(id, request, rec);
		rec->join_state = state;
		return ret;
	}
	if (!broadcast)
		return base_because(-EADDRNOTAVAIL,
		                    "port %u of %s does not know the IPoIB broadcast group of "
		                    "P_Key 0x%04x, by which groups are made: is a subnet manager "
		                    "there, and the port active?",
		                    id->port->num, id->port->node->name, id->pkey);
	if (state == IB_JOIN_SEND_ONLY_FULL && !cm_port_allows_send_only(id->client->cm, id->port))
		return base_because(-EOPNOTSUPP, "the SA does not support send-only full members");
	ret = cm_id_default_qkey(id);
	if (ret)
		return ret;
	*rec = *broadcast;
	cm_addr_to_mgid(&request->addr, id->pkey | IB_PKEY_FULL_MEMBER, id->ps == RDMA_PS_UDP,
	                &rec->mgid);
	rec->port_gid = id->sgid;
	rec->qkey = id->qkey;
	rec->pkey = id->pkey;
	rec->mtu_selector = rec->rate_selector = SA_EXACTLY;
	rec->join_state = state;
	return 0;
}

static int check_join(const struct cm_id *id, const struct control_cm_join *request)
{
	if (!id || !cm_addr_known(&request->addr))
		return base_because(-EINVAL,
		                    "the group's address is of no family that rdma_cm knows");
	if (request->flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
	    request->flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		return base_because(-EINVAL, "join_flags %u are not supported", request->flags);
	if (!id->port || (id->state != CM_ADDR_BOUND && id->state != CM_ADDR_RESOLVED))
		return base_because(-EINVAL, "the identifier is not bound to a device: "
		                             "rdma_bind_addr() or rdma_resolve_addr() first");
	if (id->qp_type != IBV_QPT_UD)
		return base_because(-EINVAL, "the identifier is for connections: RDMA_PS_UDP or "
		                             "RDMA_PS_IPOIB can join");
	return 0;
}

/* A join of @id, with a handle and the event that will tell its outcome. 0 or -ENOMEM. */
static int join_new(struct cm_id *id, uint64_t uid, struct cm_join **out)
{
	struct cm_join *j = calloc(1, sizeof(*j));
	int ret = -ENOMEM;

	if (!j)
		return ret;
	j->id = id;
	j->uid = uid;
	j->mask = COMMON_MASK | (id->ps == RDMA_PS_IPOIB ? IPOIB_MASK : 0);
	j->event = cm_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	if (!j->event)
		goto err_free;
	j->event->join = j;
	j->event->data.uid = uid;
	ret = base_idtable_add(&id->client->joins, j, &j->handle);
	if (ret)
		goto err_event;
	LIST_INSERT_HEAD(&id->joins, j, of_id);
	*out = j;
	return 0;
err_event:
	free(j->event);
err_free:
	free(j);
	return ret;
}

/* How many of its events were still waiting. */
static uint32_t join_free(struct cm_join *j)
{
	struct cm_client *client = j->id->client;
	uint32_t waiting = cm_event_withdraw(j->id, j);

	cm_group_leave(j);
	free(j->event);
	LIST_REMOVE(j, of_id);
	base_idtable_remove(&client->joins, j->handle);
	free(j);
	return waiting;
}

int cm_multicast_join(struct cm_call *call)
{
	const struct control_cm_join *request = call->request;
	struct control_cm_handle *reply = call->reply;
	struct cm_id *id = cm_id_find(call, request->id);
	struct wire_mcmember rec;
	struct cm_join *j;
	int ret = check_join(id, request);

	if (!ret)
		ret = make_record(id, request, &rec);
	if (!ret)
		ret = join_new(id, request->uid, &j);
	if (ret)
		return ret;
	base_log_trace(join, "%s:%u: %s is the group %s, P_Key 0x%04x, Q_Key 0x%08x",
	               id->port->node->name, id->port->num, wire_address_text(&request->addr.sa),
	               wire_gid_text(&rec.mgid), rec.pkey, rec.qkey);
	j->want = rec;
	ret = cm_group_join(j);
	if (ret) {
		join_free(j);
		return ret;
	}
	reply->join = j->handle;
	call->reply_bytes = sizeof(*reply);
	return 0;
}

/* ---- leaving ---- */

int cm_multicast_leave(struct cm_call *call)
{
	const struct control_cm_handle *request = call->request;
	struct control_cm_events_reply *reply = call->reply;
	struct cm_join *j = base_idtable_get(&call->client->joins, request->join);

	if (!j || j->id->ends)
		return base_because(-EADDRNOTAVAIL, "the identifier is not in that group");
	reply->reported = j->events_reported;
	reply->withdrawn = join_free(j);
	call->reply_bytes = sizeof(*reply);
	return 0;
}

void cm_multicast_leave_one(struct cm_id *id)
{
	if (!LIST_EMPTY(&id->joins))
		join_free(LIST_FIRST(&id->joins));
}
