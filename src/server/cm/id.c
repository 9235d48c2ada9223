/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Identifiers: created, moved to another channel, queried, and destroyed with all that belongs to
 * them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/cm.h"
#include "cm/state.h"

struct cm_id *cm_id_new(struct cm_client *client, struct cm_channel *channel, uint16_t ps,
                        uint16_t qp_type)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->client = client;
	id->channel = channel;
	id->handle = CM_NO_HANDLE;
	id->ps = ps;
	id->qp_type = qp_type;
	id->pkey = IB_PKEY_DEFAULT;
	id->scope = client->host;
	TAILQ_INIT(&id->events);
	TAILQ_INIT(&id->requests);
	LIST_INIT(&id->joins);
	LIST_INIT(&id->served);
	return id;
}

int cm_id_add_announced(struct cm_id *id)
{
	uint32_t number;
	int ret = base_idtable_add(&id->client->announced, id, &number);

	if (ret)
		return ret;
	id->handle = CONTROL_CM_ANNOUNCED | number;
	LIST_INSERT_HEAD(&id->channel->ids, id, of_channel);
	return 0;
}

/* The table that has the number @handle. */
static struct base_idtable *table_of(struct cm_client *client, uint32_t handle)
{
	return handle & CONTROL_CM_ANNOUNCED ? &client->announced : &client->ids;
}

_Atomic uint32_t *cm_id_word(const struct cm_id *id)
{
	return control_cm_word(id->client->events, id->handle);
}

struct cm_id *cm_id_at(const struct cm_client *client, uint32_t handle)
{
	const struct base_idtable *table = table_of((struct cm_client *)client, handle);

	return base_idtable_get(table, handle & ~CONTROL_CM_ANNOUNCED);
}

void cm_id_end_join(struct cm_id *id)
{
	struct cm_client *client = id->client;

	cm_multicast_leave_one(id);
	if (!LIST_EMPTY(&id->joins))
		return;
	LIST_REMOVE(id, of_channel);
	client->n_ending--;
	free(id);
	cm_client_release(client);
}

/* ---- the source ---- */

/* The count for the GID of @id, or NULL. */
static uint32_t *count_of(const struct cm_id *id)
{
	const struct cm *cm = id->client->cm;
	const struct shm_port *p;
	uint32_t *users;

	if (!id->port || ib_gid_is_zero(&id->sgid) || !cm_port_of(cm, id->port)->gid_users)
		return NULL;
	p = shm_port_at(cm->f->region, id->port->index);
	users = cm_port_of(cm, id->port)->gid_users;
	for (unsigned i = 0; i < p->n_gids; i++)
		if (ib_gid_equal(&p->gid[i], &id->sgid))
			return &users[i];
	return NULL;
}

/* @id is counted there, and nowhere else. */
static void count_gid(struct cm_id *id, uint32_t *count)
{
	if (id->counted)
		--*id->counted;
	id->counted = count;
	if (count)
		++*count;
}

void cm_id_set_source(struct cm_id *id, struct fabric_port *port, const struct ib_gid *sgid)
{
	if (port == id->port && ib_gid_equal(sgid, &id->sgid))
		return; /* it keeps its place, also if the address has gone */
	id->port = port;
	id->sgid = *sgid;
	count_gid(id, count_of(id));
}

void cm_id_use_port(struct cm_id *id, struct fabric_port *port)
{
	struct ib_gid gid;

	cm_port_gid(id->client->cm, port, &gid);
	cm_id_set_source(id, port, &gid);
	id->scope = cm_port_host(id->client->cm, port);
}

uint8_t cm_id_sgid_index(const struct cm_id *id)
{
	const struct cm *cm = id->client->cm;
	const struct shm_port *p = shm_port_at(cm->f->region, id->port->index);

	if (id->counted)
		return (uint8_t)(id->counted - cm_port_of(cm, id->port)->gid_users);
	for (uint8_t i = 0; i < p->n_gids; i++)
		if (ib_gid_equal(&p->gid[i], &id->sgid))
			return i;
	return 0;
}

uint32_t cm_used_gids(const struct cm *cm, const struct fabric_port *port)
{
	const uint32_t *users = cm_port_of(cm, port)->gid_users;
	uint32_t used = 0;

	for (unsigned i = 0; users && i < SHM_GIDS; i++)
		if (users[i])
			used |= UINT32_C(1) << i;
	return used;
}

/* ---- the end ---- */

/* Joins, which have the SA at work, are left to cm_sweep_begin(). */
static void leave_joins(struct cm_id *id)
{
	id->ends = true;
	id->client->n_ending++;
	LIST_INSERT_HEAD(&id->client->cm->ending, id, of_channel);
}

static void clear_word(const struct cm_client *client, uint32_t handle)
{
	_Atomic uint32_t *word = control_cm_word(client->events, handle);

	if (word)
		shm_events_clear(word);
}

/* The number may be given to another one. */
static void end_number(struct cm_id *id)
{
	LIST_REMOVE(id, of_channel);
	base_idtable_remove(table_of(id->client, id->handle), id->handle & ~CONTROL_CM_ANNOUNCED);
	clear_word(id->client, id->handle);
}

void cm_id_free(struct cm_id *id)
{
	struct cm *cm = id->client->cm;

	cm_sidr_abandon(id);
	cm_conn_abandon(id);
	cm_serve_end(id);
	cm_resolve_abandon(id);
	cm_event_withdraw(id, NULL);
	cm_requests_drop(id);
	cm_request_used(id);
	cm_binding_release(cm, id);
	count_gid(id, NULL);
	if (id->state == CM_LISTEN)
		cm->n_listeners--;
	if (id->handle != CM_NO_HANDLE)
		end_number(id);
	if (LIST_EMPTY(&id->joins))
		free(id);
	else
		leave_joins(id);
}

void cm_id_move(struct cm_id *id, struct cm_channel *to)
{
	LIST_REMOVE(id, of_channel);
	LIST_INSERT_HEAD(&to->ids, id, of_channel);
	id->channel = to;
}

struct cm_id *cm_id_find(const struct cm_call *call, uint32_t handle)
{
	struct cm_id *id = cm_id_at(call->client, handle);

	if (!id || id->channel->doomed)
		return NULL;
	cm_request_used(id);
	return id;
}

/* ---- requests ---- */

static int qp_type_of(const struct control_cm_create_id *request, uint16_t *qp_type)
{
	switch (request->ps) {
	case RDMA_PS_TCP:
		*qp_type = IBV_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*qp_type = IBV_QPT_UD;
		return 0;
	case RDMA_PS_IB:
		*qp_type = request->qp_type;
		return 0;
	default:
		return -EINVAL;
	}
}

static int add_id(struct cm_call *call, struct cm_channel *ch, uint16_t qp_type)
{
	const struct control_cm_create_id *request = call->request;
	struct cm_id *id = cm_id_new(call->client, ch, request->ps, qp_type);
	int ret;

	if (!id)
		return -ENOMEM;
	id->uid = request->uid;
	ret = base_idtable_add_at(&call->client->ids, id, request->id);
	if (ret) {
		cm_id_free(id);
		return ret;
	}
	id->handle = request->id;
	LIST_INSERT_HEAD(&ch->ids, id, of_channel);
	return 0;
}

int cm_id_create(struct cm_call *call)
{
	const struct control_cm_create_id *request = call->request;
	struct cm_channel *ch = base_idtable_get(&call->client->channels, request->channel);
	const struct cm_id *before = base_idtable_get(&call->client->ids, request->id);
	uint16_t qp_type;
	int ret;

	if (!ch)
		return -EBADF;
	if (before)
		return before->uid == request->uid && before->channel == ch ? 0 : -EEXIST;
	ret = qp_type_of(request, &qp_type);
	return ret ? ret : add_id(call, ch, qp_type);
}

int cm_id_destroy(struct cm_call *call)
{
	const struct control_cm_read *request = call->request;
	struct control_cm_events_reply *reply = call->reply;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id) {
		/* making it has failed, and the process, which was not told, has said that it is
		 * gone */
		if (!cm_id_at(call->client, request->id))
			clear_word(call->client, request->id);
		return -EINVAL;
	}
	cm_requests_read(id, request->requests);
	/* withdraws events first, to count them */
	cm_sidr_abandon(id);
	cm_conn_abandon(id);
	reply->withdrawn = cm_event_withdraw(id, NULL);
	reply->reported = id->events_reported;
	reply->sent = id->events_sent;
	call->reply_bytes = sizeof(*reply);
	cm_id_free(id);
	cm_sweep_begin(call->cm);
	return 0;
}

int cm_id_migrate(struct cm_call *call)
{
	const struct control_cm_migrate_id *request = call->request;
	struct control_cm_events_reply *reply = call->reply;
	struct cm_id *id = cm_id_find(call, request->id);
	struct cm_channel *to = base_idtable_get(&call->client->channels, request->channel);

	if (!id)
		return -EINVAL;
	if (!to)
		return -EBADF;
	cm_requests_read(id, request->requests);
	reply->withdrawn = cm_event_move(id, to);
	reply->reported = id->events_reported;
	reply->sent = id->events_sent;
	call->reply_bytes = sizeof(*reply);
	cm_id_move(id, to);
	return 0;
}

void cm_id_describe(const struct cm_id *id, struct control_cm_id_reply *reply)
{
	const struct shm_region *r = id->client->cm->f->region;

	memset(reply, 0, sizeof(*reply));
	reply->src = id->src;
	reply->dst = id->dst;
	if (!id->port)
		return;
	memcpy(reply->hca, shm_hca_called(shm_hca_at(r, id->port->node->hca), id->client->host),
	       sizeof(reply->hca));
	reply->sgid = id->sgid;
	reply->dgid = id->dgid;
	reply->pkey = id->pkey;
	reply->port_num = id->port->num;
	reply->num_paths = id->has_path;
	reply->path = id->path;
}

int cm_id_query(struct cm_call *call)
{
	const struct control_cm_id *request = call->request;
	const struct cm_id *id = cm_id_find(call, request->id);

	if (!id)
		return -EINVAL;
	cm_id_describe(id, call->reply);
	call->reply_bytes = sizeof(struct control_cm_id_reply);
	return 0;
}

int cm_id_default_qkey(struct cm_id *id)
{
	const struct wire_mcmember *broadcast;

	if (id->qkey)
		return 0;
	if (id->ps == RDMA_PS_IPOIB) {
		broadcast = cm_port_broadcast(id->client->cm, id->port, id->pkey);
		if (!broadcast)
			return -EADDRNOTAVAIL;
		id->qkey = broadcast->qkey;
	} else if (id->ps == RDMA_PS_UDP || id->ps == RDMA_PS_IB) {
		id->qkey = IB_QKEY_RDMACM_UDP;
	}
	return 0;
}

int cm_id_describe_qp(struct cm_id *id, struct control_cm_qp_reply *reply)
{
	int ret;

	memset(reply, 0, sizeof(*reply));
	if (!id->port)
		return -EINVAL;
	ret = cm_port_pkey_index(id->port, id->pkey, &reply->pkey_index);
	if (!ret && id->qp_type == IBV_QPT_UD)
		ret = cm_id_default_qkey(id);
	if (ret)
		return ret;
	reply->qkey = id->qkey;
	reply->port_num = id->port->num;
	reply->is_ud = id->qp_type == IBV_QPT_UD;
	cm_conn_query_qp(id, reply);
	return 0;
}

int cm_id_query_qp(struct cm_call *call)
{
	const struct control_cm_id *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	call->reply_bytes = sizeof(struct control_cm_qp_reply);
	return id ? cm_id_describe_qp(id, call->reply) : -EINVAL;
}

/* ---- options ---- */

static int set_reuse_addr(struct cm_id *id, int on)
{
	/* as Linux has it: a listener shares its address with nobody */
	if (on ? id->state == CM_LISTEN : id->state != CM_IDLE)
		return -EINVAL;
	id->reuse_addr = on;
	return 0;
}

static int set_af_only(struct cm_id *id, int on)
{
	if (id->state != CM_IDLE && id->state != CM_ADDR_BOUND)
		return -EINVAL;
	id->af_only = on;
	id->af_only_set = true;
	return 0;
}

static int set_ack_timeout(struct cm_id *id, const struct control_cm_set_option *o)
{
	/* as Linux has it: for those that send requests which are acknowledged */
	if (o->bytes != sizeof(uint8_t) ||
	    (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND))
		return -EINVAL;
	id->ack_timeout = o->value[0];
	id->ack_timeout_set = true;
	return 0;
}

static int set_id_option(struct cm_id *id, const struct control_cm_set_option *o)
{
	int on;

	if (o->name == RDMA_OPTION_ID_TOS) {
		if (o->bytes != sizeof(uint8_t))
			return -EINVAL;
		id->tos = o->value[0];
		return 0;
	}
	if (o->name == RDMA_OPTION_ID_ACK_TIMEOUT)
		return set_ack_timeout(id, o);
	if (o->name != RDMA_OPTION_ID_REUSEADDR && o->name != RDMA_OPTION_ID_AFONLY)
		return -ENOSYS;
	if (o->bytes != sizeof(on))
		return -EINVAL;
	memcpy(&on, o->value, sizeof(on));
	return o->name == RDMA_OPTION_ID_REUSEADDR ? set_reuse_addr(id, !!on)
	                                           : set_af_only(id, !!on);
}

int cm_id_set_option(struct cm_call *call)
{
	const struct control_cm_set_option *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id || request->bytes > sizeof(request->value))
		return -EINVAL;
	if (request->level == RDMA_OPTION_ID)
		return set_id_option(id, request);
	if (request->level == RDMA_OPTION_IB && request->name == RDMA_OPTION_IB_PATH)
		return cm_resolve_set_path(id, request->value, request->bytes);
	return -ENOSYS;
}
