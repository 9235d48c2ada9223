/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The identifiers, joins and connections of a client, for views: see cm.h.
 */
#include <string.h>

#include "base/util.h"
#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/state.h"

void cm_client_count(const struct cm_client *client, struct cm_client_counts *counts)
{
	counts->ids = client->ids.used + client->announced.used;
	counts->joins = client->joins.used;
}

static const char *conn_state_name(enum cm_conn_state state)
{
	static const char *const names[] = {
		[CM_CONN_IDLE] = "IDLE",
		[CM_CONN_REQ_SENT] = "REQ_SENT",
		[CM_CONN_MRA_REQ_RCVD] = "MRA_REQ_RCVD",
		[CM_CONN_MRA_REQ_SENT] = "MRA_REQ_SENT",
		[CM_CONN_REP_SENT] = "REP_SENT",
		[CM_CONN_MRA_REP_RCVD] = "MRA_REP_RCVD",
		[CM_CONN_MRA_REP_SENT] = "MRA_REP_SENT",
		[CM_CONN_ESTABLISHED] = "ESTABLISHED",
		[CM_CONN_DREQ_SENT] = "DREQ_SENT",
		[CM_CONN_DREQ_RCVD] = "DREQ_RCVD",
		[CM_CONN_TIMEWAIT] = "TIMEWAIT",
	};

	return (size_t)state < ARRAY_SIZE(names) ? names[state] : "?";
}

static const char *space_name(uint16_t ps)
{
	switch (ps) {
	case RDMA_PS_IPOIB:
		return "IPOIB";
	case RDMA_PS_TCP:
		return "TCP";
	case RDMA_PS_UDP:
		return "UDP";
	case RDMA_PS_IB:
		return "IB";
	default:
		return "?";
	}
}

static void show_conn(const struct cm_conn *c, struct cm_shown *shown)
{
	shown->connects = true;
	shown->state = conn_state_name(c->state);
	shown->qpn = c->local_qpn;
	shown->peer_qpn = c->remote_qpn;
}

static uint8_t step_of(enum cm_id_state state)
{
	static const uint8_t steps[] = {
		[CM_IDLE] = CM_STEP_IDLE,
		[CM_ADDR_BOUND] = CM_STEP_ADDR_BOUND,
		[CM_ADDR_QUERY] = CM_STEP_ADDR_QUERY,
		[CM_ADDR_RESOLVED] = CM_STEP_ADDR_RESOLVED,
		[CM_ROUTE_QUERY] = CM_STEP_ROUTE_QUERY,
		[CM_ROUTE_RESOLVED] = CM_STEP_ROUTE_RESOLVED,
		[CM_CONNECT] = CM_STEP_CONNECT,
		[CM_DISCONNECT] = CM_STEP_DISCONNECT,
		[CM_LISTEN] = CM_STEP_LISTEN,
	};

	return steps[state];
}

uint32_t cm_client_end(const struct cm_client *client)
{
	return client->ids.size + client->announced.size;
}

bool cm_client_show(const struct cm_client *client, uint32_t at, struct cm_shown *shown)
{
	const uint32_t n = client->ids.size;
	const struct cm_id *id = at < n ? base_idtable_get(&client->ids, at)
	                                : base_idtable_get(&client->announced, at - n);

	if (!id)
		return false;
	static_assert(CONTROL_CM_MAX_IDS == 1 << 16, "numbers of both tables");
	*shown = (struct cm_shown){ .number = at < n ? at : (at - n) | CONTROL_CM_MAX_IDS,
		                    .state = id->state == CM_LISTEN ? "LISTEN" : "IDLE",
		                    .step = step_of(id->state),
		                    .ps = id->ps,
		                    .qp_type = id->qp_type,
		                    .space = space_name(id->ps),
		                    .port = id->port,
		                    .src = id->src,
		                    .dst = id->dst,
		                    .listens = id->state == CM_LISTEN,
		                    .backlog = id->backlog > 0 ? (uint32_t)id->backlog : 0 };
	if (id->conn)
		show_conn(id->conn, shown);
	return true;
}
