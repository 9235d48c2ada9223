/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast joins. To the SA a port is a member or is not; here its membership is
 * shared out among the joins of all identifiers of all processes, counted by join
 * state, and given back with the last of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cm/state.h"
#include "wire/mgid.h"

#define COMMON_MASK                                                                      \
	(SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_PKEY | SA_MCM_JOIN_STATE | SA_MCM_QKEY | \
	 SA_MCM_SL | SA_MCM_FLOW_LABEL | SA_MCM_TCLASS)
#define IPOIB_MASK \
	(SA_MCM_RATE | SA_MCM_RATE_SELECTOR | SA_MCM_MTU | SA_MCM_MTU_SELECTOR | SA_MCM_HOP_LIMIT)

const struct wire_mcmember *cm_multicast_broadcast(const struct cm *cm,
                                                   const struct fabric_port *port, uint16_t pkey)
{
	const struct sa_group *g;
	struct ib_gid mgid;

	if (!cm->sa || !port || port->state != IB_PORT_ACTIVE)
		return NULL;
	wire_mgid_broadcast(&mgid, pkey | IB_PKEY_FULL_MEMBER);
	g = sa_group_find(cm->sa, &mgid);
	return g ? &g->rec : NULL;
}

/* ---- groups of a port ---- */

static uint64_t group_hash(const struct fabric_port *port, const struct ib_gid *mgid)
{
	return base_hash_of(mgid, sizeof(*mgid), port->index);
}

static struct cm_group *group_find(const struct cm *cm, const struct fabric_port *port,
                                   const struct ib_gid *mgid)
{
	struct base_hash_node *n = base_hash_first(&cm->groups, group_hash(port, mgid));

	for (; n; n = base_hash_next(n)) {
		struct cm_group *g = container_of(n, struct cm_group, node);

		if (g->port == port && !memcmp(&g->rec.mgid, mgid, sizeof(*mgid)))
			return g;
	}
	return NULL;
}

static void sa_leave(struct cm *cm, struct cm_group *g, uint8_t states)
{
	struct wire_mcmember rec = { .mgid = g->rec.mgid,
		                     .port_gid = g->rec.port_gid,
		                     .join_state = states };

	g->rec.join_state &= (uint8_t)~states;
	if (cm->sa)
		sa_mcmember_delete(cm->sa, SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE, &rec);
}

static void group_free(struct cm *cm, struct cm_group *g)
{
	base_hash_remove(&cm->groups, &g->node);
	free(g);
}

/* A group that the SA has just let the port into. */
static struct cm_group *group_new(struct cm *cm, struct fabric_port *port,
                                  const struct wire_mcmember *rec)
{
	struct cm_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->port = port;
	g->rec = *rec;
	LIST_INIT(&g->members);
	if (base_hash_add(&cm->groups, &g->node, group_hash(port, &rec->mgid))) {
		free(g);
		return NULL;
	}
	return g;
}

/* ---- joining ---- */

/* Whether what a join asks for is what the port is in already. */
static bool fits(const struct wire_mcmember *g, const struct wire_mcmember *r, uint64_t mask)
{
	if (g->qkey != r->qkey || g->tclass != r->tclass || g->sl != r->sl ||
	    g->flow_label != r->flow_label || !ib_pkey_match(g->pkey, r->pkey))
		return false;
	if (!(mask & SA_MCM_MTU))
		return true;
	return g->mtu == r->mtu && g->rate == r->rate && g->hop_limit == r->hop_limit;
}

static unsigned state_bit(uint8_t join_state)
{
	return (unsigned)__builtin_ctz(join_state);
}

/*
 * Makes the port a member in one more join's name. 0; -EINVAL: the SA refused, or the
 * group is not what was asked for; -ENOMEM.
 */
static int group_join(struct cm *cm, struct fabric_port *port, uint64_t mask,
                      struct wire_mcmember *rec, struct cm_group **out)
{
	static const struct ib_gid zero;
	uint8_t state = rec->join_state;
	struct cm_group *g = NULL;

	if (memcmp(&rec->mgid, &zero, sizeof(zero)))
		g = group_find(cm, port, &rec->mgid);
	if (g && !fits(&g->rec, rec, mask))
		return -EINVAL;
	if (!g || !(g->rec.join_state & state)) {
		if (!cm->sa || sa_mcmember_set(cm->sa, mask, rec) != SA_OK)
			return -EINVAL;
		if (g)
			g->rec.join_state = rec->join_state;
		else
			g = group_new(cm, port, rec);
		if (!g) {
			struct cm_group lost = { .rec = *rec };

			sa_leave(cm, &lost, state);
			return -ENOMEM;
		}
	}
	g->joins[state_bit(state)]++;
	*out = g;
	return 0;
}

/* One join less. */
static void group_leave(struct cm *cm, struct cm_group *g, uint8_t state)
{
	if (--g->joins[state_bit(state)])
		return;
	sa_leave(cm, g, state);
	if (!g->rec.join_state)
		group_free(cm, g);
}

/* What to ask the SA for. The group is like the port's broadcast group, which must exist. */
static int make_record(struct cm_id *id, const struct control_cm_join *request, uint8_t state,
                       struct wire_mcmember *rec)
{
	const struct wire_mcmember *broadcast =
	        cm_multicast_broadcast(id->client->cm, id->port, id->pkey);
	int ret;

	if (!broadcast)
		return -EADDRNOTAVAIL;
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

static void fill_joined(const struct cm_id *id, const struct cm_group *g,
                        struct control_cm_event *data)
{
	const struct wire_mcmember *rec = &g->rec;

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
		                           .port_num = id->port->num };
}

/* Joins, and has the outcome told. */
static void run_join(struct cm_join *j, struct wire_mcmember *rec, struct cm_event *e)
{
	struct cm_id *id = j->id;
	uint64_t mask = COMMON_MASK | (id->ps == RDMA_PS_IPOIB ? IPOIB_MASK : 0);
	int ret = group_join(id->client->cm, id->port, mask, rec, &j->group);

	e->join = j;
	e->data.uid = j->uid;
	if (ret) {
		e->data.type = RDMA_CM_EVENT_MULTICAST_ERROR;
		e->data.status = ret;
	} else {
		LIST_INSERT_HEAD(&j->group->members, j, of_group);
		fill_joined(id, j->group, &e->data);
	}
	cm_event_post(e);
}

/* 0, and the bit of the join state; -EINVAL, -EOPNOTSUPP. */
static int check_join(const struct cm_id *id, const struct control_cm_join *request, uint8_t *state)
{
	if (!id || !cm_addr_known(&request->addr))
		return -EINVAL;
	if (request->flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
	    request->flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		return -EINVAL;
	if (!id->port || (id->state != CM_ADDR_BOUND && id->state != CM_ADDR_RESOLVED))
		return -EINVAL;
	if (id->qp_type != IBV_QPT_UD)
		return -EINVAL;
	*state = IB_JOIN_FULL;
	if (request->flags == RDMA_MC_JOIN_FLAG_FULLMEMBER)
		return 0;
	*state = IB_JOIN_SEND_ONLY_FULL;
	return id->client->cm->f->settings.sa_send_only ? 0 : -EOPNOTSUPP;
}

int cm_multicast_join(struct cm_call *call)
{
	const struct control_cm_join *request = call->request;
	struct control_cm_handle *reply = call->reply;
	struct cm_id *id = cm_id_find(call, request->id);
	struct wire_mcmember rec;
	struct cm_event *e;
	struct cm_join *j;
	uint8_t state;
	int ret = check_join(id, request, &state);

	if (!ret)
		ret = make_record(id, request, state, &rec);
	if (ret)
		return ret;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct cm_join){ .id = id, .uid = request->uid, .join_state = state };
	ret = base_idtable_add(&call->client->joins, j, &j->handle);
	if (ret)
		goto err_free;
	e = cm_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	if (!e) {
		ret = -ENOMEM;
		goto err_handle;
	}
	LIST_INSERT_HEAD(&id->joins, j, of_id);
	run_join(j, &rec, e);
	reply->join = j->handle;
	call->reply_bytes = sizeof(*reply);
	return 0;
err_handle:
	base_idtable_remove(&call->client->joins, j->handle);
err_free:
	free(j);
	return ret;
}

/* ---- leaving ---- */

static void give_up(struct cm *cm, struct cm_join *j)
{
	struct cm_group *g = j->group;

	if (!g)
		return;
	LIST_REMOVE(j, of_group);
	j->group = NULL;
	group_leave(cm, g, j->join_state);
}

/* How many of its events were still waiting. */
static uint32_t join_free(struct cm_join *j)
{
	struct cm_client *client = j->id->client;
	uint32_t waiting = cm_event_take_back(j->id, j);

	give_up(client->cm, j);
	LIST_REMOVE(j, of_id);
	base_idtable_remove(&client->joins, j->handle);
	free(j);
	return waiting;
}

int cm_multicast_leave(struct cm_call *call)
{
	const struct control_cm_handle *request = call->request;
	struct control_cm_events_reply *reply = call->reply;
	struct cm_join *j = base_idtable_get(&call->client->joins, request->join);

	if (!j)
		return -EADDRNOTAVAIL;
	reply->reported = j->events_reported;
	reply->taken_back = join_free(j);
	call->reply_bytes = sizeof(*reply);
	return 0;
}

uint32_t cm_multicast_leave_all(struct cm_id *id)
{
	struct cm_join *j;
	uint32_t waiting = 0;

	while ((j = LIST_FIRST(&id->joins)))
		waiting += join_free(j);
	return waiting;
}

/* ---- changes of the port ---- */

static void group_reset(struct cm *cm, struct cm_group *g)
{
	struct cm_join *j;

	while ((j = LIST_FIRST(&g->members))) {
		struct cm_event *e = cm_event_new(j->id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);

		LIST_REMOVE(j, of_group);
		j->group = NULL;
		if (!e)
			continue;
		e->join = j;
		e->data.uid = j->uid;
		cm_event_post(e);
	}
	sa_leave(cm, g, g->rec.join_state);
	group_free(cm, g);
}

void cm_port_changed(struct cm *cm, struct fabric_port *port)
{
	struct base_hash_node *n = base_hash_walk(&cm->groups, NULL);

	while (n) {
		struct base_hash_node *next = base_hash_walk(&cm->groups, n);
		struct cm_group *g = container_of(n, struct cm_group, node);

		if (g->port == port)
			group_reset(cm, g);
		n = next;
	}
}
