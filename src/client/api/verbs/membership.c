/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions that the watcher of a checked program may ask: of groups, to the daemon, and of
 * messages that were lost; and what librdmacm tells of joins. Safe from any thread.
 */
#include <string.h>

#include "api/verbs/connection.h"
#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "wire/rate.h"

static void fill(struct checked_membership *m, const struct control_query_membership_reply *rep,
                 const struct shm_port *port, uint16_t pkey_index)
{
	*m = (struct checked_membership){
		.is_known = rep->is_known,
		.join_state = rep->join_state,
		.reset_age_ns = rep->reset_age_ns,
		.is_ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET,
		.has_record = rep->has_record,
		.qkey = rep->qkey,
		.mbps = wire_rate_to_mbps(rep->rate),
		.mtu = IB_MTU_BYTES(rep->mtu),
		.mlid = rep->mlid,
		.pkey = rep->pkey,
		.sl = rep->sl,
		.port_mbps = 100 * wire_link_speed(port->active_width, port->active_speed),
		.port_pkey = pkey_index < port->n_pkeys ? port->pkey[pkey_index] : 0,
	};
}

bool verbs_ask_membership(const struct checked_group_key *of, uint16_t mlid, uint16_t pkey_index,
                          struct checked_membership *m)
{
	struct hca_context *ctx = hca_context(of->context);
	struct control_query_membership req = { .hca_handle = ctx->handle,
		                                .mlid = mlid,
		                                .port_num = of->port };
	struct control_query_membership_reply rep = { 0 };
	struct shm_port port;

	memcpy(&req.mgid, of->mgid.raw, sizeof(req.mgid));
	if (hca_port(ctx, of->port, &port) ||
	    control_ask(ctx->process->control, CONTROL_QUERY_MEMBERSHIP, &req, &rep))
		return false;
	fill(m, &rep, &port, pkey_index);
	return true;
}

uint64_t verbs_lost_messages(struct ibv_context *context, uint8_t port)
{
	const struct hca_context *ctx = hca_context(context);
	const struct shm_region *region = &ctx->process->region;
	const struct shm_hca *hca = shm_hca_at(region, ctx->hca);

	if (!port || port > hca->n_ports)
		return 0;
	return atomic_load_explicit(
	        &shm_port_count_at(region, hca->first_port + port - 1)->no_receive,
	        memory_order_relaxed); /* a count, which orders nothing */
}

void umbel_group_joined(struct ibv_context *context, uint8_t port, const void *mgid,
                        bool sends_only)
{
	struct checked_group_key of = { .context = context, .port = port };

	memcpy(&of.mgid, mgid, sizeof(of.mgid));
	if (verbs_watcher(context))
		verbs_watcher(context)->joined(&of, sends_only);
}

void umbel_group_left(struct ibv_context *context, uint8_t port, const void *mgid)
{
	struct checked_group_key of = { .context = context, .port = port };

	memcpy(&of.mgid, mgid, sizeof(of.mgid));
	if (verbs_watcher(context))
		verbs_watcher(context)->left(&of);
}
