/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A request is checked for its size and goes to the function that serves it; so do MADs, and
 * changes of ports. Clients end here. See cm.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cm/cm.h"
#include "cm/state.h"

int cm_new(struct cm **out, struct fabric *f, const struct cm_ops *ops)
{
	struct cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return -ENOMEM;
	cm->f = f;
	cm->ops = *ops;
	TAILQ_INIT(&cm->doomed);
	LIST_INIT(&cm->ending);
	TAILQ_INIT(&cm->changed);
	TAILQ_INIT(&cm->busy);
	TAILQ_INIT(&cm->gone);
	cm->spare = CM_SLICE;
	cm->last_request_id = cm->last_conn_id = cm->last_psn = ops->random;
	if (cm_ports_init(cm)) {
		cm_ports_fini(cm);
		free(cm);
		return -ENOMEM;
	}
	*out = cm;
	return 0;
}

void cm_free(struct cm *cm)
{
	cm_sweep_all(cm);
	base_timer_stop(&cm->sweep);
	cm_groups_fini(cm);
	cm_ports_fini(cm);
	base_hash_fini(&cm->bindings);
	base_hash_fini(&cm->groups);
	base_hash_fini(&cm->memberships);
	base_hash_fini(&cm->requests);
	base_hash_fini(&cm->transactions);
	base_hash_fini(&cm->asking);
	base_hash_fini(&cm->asked);
	base_hash_fini(&cm->conns);
	base_hash_fini(&cm->conn_peers);
	base_hash_fini(&cm->conn_qpns);
	free(cm);
}

void cm_port_active(struct cm *cm, struct fabric_port *port)
{
	struct cm_port *p = cm_port_of(cm, port);

	cm_group_pkeys_changed(p);
	cm_port_follow_sa(p);
}

void cm_port_changed(struct cm *cm, struct fabric_port *port)
{
	cm_port_active(cm, port);
	if (port->ethernet)
		return; /* the host stays a member, whatever becomes of the link */
	cm_group_port_changed(cm_port_of(cm, port));
}

void cm_port_renew(struct cm *cm, struct fabric_port *port)
{
	cm_port_active(cm, port);
	if (!port->ethernet)
		cm_group_renew(cm_port_of(cm, port));
}

bool cm_ports_have_news(const struct cm *cm)
{
	return !TAILQ_EMPTY(&cm->changed);
}

void cm_count(const struct cm *cm, struct cm_counts *counts)
{
	counts->listeners = cm->n_listeners;
	counts->connections = cm->conns.n;
}

void cm_client_free(struct cm *cm, struct cm_client *client)
{
	(void)cm;
	/* every identifier is on some channel, every join on some identifier */
	for (uint32_t i = 0; i < client->channels.size; i++) {
		struct cm_channel *ch = base_idtable_get(&client->channels, i);

		if (ch)
			cm_channel_doom(ch);
	}
	client->gone = true;
	cm_client_release(client);
}

/* ---- MADs ---- */

bool cm_mad_input(struct cm *cm, struct fabric_port *port, const struct fabric_mad *mad)
{
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	if (head.base_version != MAD_BASE_VERSION || mad->dest_qpn != IB_QPN_GSI)
		return false;
	if (head.mgmt_class == MAD_CLASS_COM_MGT)
		return cm_connect_input(cm, port, &head, mad);
	return cm_mad_response(cm, port, &head, mad);
}

/* ---- requests ---- */

struct handler {
	int (*serve)(struct cm_call *call);
	uint32_t bytes; /* of the request, exactly */
};

#define SLOT(name) [CONTROL_CM_##name - CONTROL_CM_FIRST]

static const struct handler handlers[] = {
	SLOT(CREATE_CHANNEL) = { cm_channel_create, 0 },
	SLOT(DESTROY_CHANNEL) = { cm_channel_destroy, sizeof(struct control_cm_channel) },
	SLOT(GET_EVENT) = { cm_channel_get_event, sizeof(struct control_cm_channel) },
	SLOT(READ) = { cm_channel_read, sizeof(struct control_cm_read) },
	SLOT(RING) = { cm_channel_ring, sizeof(struct control_cm_ring) },
	SLOT(RETURN) = { cm_channel_return, sizeof(struct control_cm_return) },
	SLOT(CREATE_ID) = { cm_id_create, sizeof(struct control_cm_create_id) },
	SLOT(DESTROY_ID) = { cm_id_destroy, sizeof(struct control_cm_read) },
	SLOT(MIGRATE_ID) = { cm_id_migrate, sizeof(struct control_cm_migrate_id) },
	SLOT(QUERY_ID) = { cm_id_query, sizeof(struct control_cm_id) },
	SLOT(QUERY_QP) = { cm_id_query_qp, sizeof(struct control_cm_id) },
	SLOT(SET_OPTION) = { cm_id_set_option, sizeof(struct control_cm_set_option) },
	SLOT(BIND_ADDR) = { cm_resolve_bind, sizeof(struct control_cm_bind_addr) },
	SLOT(RESOLVE_ADDR) = { cm_resolve_addr, sizeof(struct control_cm_resolve_addr) },
	SLOT(RESOLVE_ROUTE) = { cm_resolve_route, sizeof(struct control_cm_resolve_route) },
	SLOT(LISTEN) = { cm_connect_listen, sizeof(struct control_cm_listen) },
	SLOT(SERVE) = { cm_serve, sizeof(struct control_cm_serve) },
	SLOT(CONNECT) = { cm_connect_connect, sizeof(struct control_cm_connect) },
	SLOT(ACCEPT) = { cm_connect_accept, sizeof(struct control_cm_connect) },
	SLOT(REJECT) = { cm_connect_reject, sizeof(struct control_cm_connect) },
	SLOT(DISCONNECT) = { cm_connect_disconnect, sizeof(struct control_cm_id) },
	SLOT(ESTABLISH) = { cm_connect_establish, sizeof(struct control_cm_id) },
	SLOT(NOTIFY) = { cm_connect_notify, sizeof(struct control_cm_notify) },
	SLOT(JOIN) = { cm_multicast_join, sizeof(struct control_cm_join) },
	SLOT(LEAVE) = { cm_multicast_leave, sizeof(struct control_cm_handle) },
};

int cm_request(struct cm *cm, struct cm_client *client, const struct control_packet *request,
               struct control_packet *reply)
{
	uint64_t body[CONTROL_MAX_BYTES / 8], reply_body[CONTROL_MAX_BYTES / 8] = { 0 };
	struct cm_call call = {
		.cm = cm, .client = client, .request = body, .reply = reply_body, .fd = -1
	};
	uint32_t i = request->header.type - CONTROL_CM_FIRST;
	int ret;

	if (request->header.type < CONTROL_CM_FIRST || i >= ARRAY_SIZE(handlers) ||
	    request->header.bytes != handlers[i].bytes)
		return -EPROTO;
	call.waited = request->header.serial;
	memcpy(body, request->body, request->header.bytes);
	ret = handlers[i].serve(&call);
	if (ret)
		return ret;
	memcpy(reply->body, reply_body, call.reply_bytes);
	reply->header.bytes = call.reply_bytes;
	if (call.fd >= 0) {
		reply->fd[0] = call.fd;
		reply->n_fds = 1;
	}
	return 0;
}
