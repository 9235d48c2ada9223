/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Serves what programs read in sysfs about a port: see describe.h.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "daemon/clients/client.h"
#include "daemon/show/describe.h"
#include "fabric/agents/mads.h"
#include "fabric/forwarding/collect.h"
#include "wire/perf.h"

static void fill(struct control_describe_port_reply *rep, const struct wire_port_counters *basic,
                 const struct wire_port_counters_extended *extended)
{
	*rep = (struct control_describe_port_reply){
		.xmit_data = extended->xmit_data,
		.rcv_data = extended->rcv_data,
		.xmit_packets = extended->xmit_packets,
		.rcv_packets = extended->rcv_packets,
		.unicast_xmit_packets = extended->unicast_xmit_packets,
		.unicast_rcv_packets = extended->unicast_rcv_packets,
		.multicast_xmit_packets = extended->multicast_xmit_packets,
		.multicast_rcv_packets = extended->multicast_rcv_packets,
		.symbol_errors = basic->symbol_errors,
		.rcv_errors = basic->rcv_errors,
		.link_downed = basic->link_downed,
		.link_error_recovery = basic->link_error_recovery,
		.rcv_switch_relay_errors = basic->rcv_switch_relay_errors,
		.xmit_discards = basic->xmit_discards,
		.xmit_constraint_errors = basic->xmit_constraint_errors,
		.rcv_constraint_errors = basic->rcv_constraint_errors,
	};
}

static int describe_port(struct daemon_call *call)
{
	const struct control_describe_port *req = call->body;
	struct wire_port_counters_extended extended = { 0 };
	struct control_describe_port_reply *rep;
	struct wire_port_counters basic = { 0 };
	struct fabric *f = call->module;
	struct fabric_port *p;

	if (req->port >= f->n_hca_ports)
		return -ENODEV;
	p = f->hca_port[req->port];
	if (!daemon_client_sees(call->client, shm_hca_at(f->region, p->node->hca)->host_index))
		return -ENODEV;
	if (!call->collected && !fabric_collect_at_once(f))
		return DAEMON_SERVE_COLLECTED;
	fabric_pma_read(f, p, &basic, &extended);
	rep = daemon_call_reply(call, sizeof(*rep));
	fill(rep, &basic, &extended);
	memcpy(rep->node_desc, p->node->desc, strnlen(p->node->desc, sizeof(rep->node_desc)));
	return 0;
}

static const struct daemon_request requests[] = {
	DAEMON_REQUEST(DESCRIBE_PORT, control_describe_port, DAEMON_SYSFS, describe_port),
};

void daemon_describe_init(struct fabric *f, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), f);
}
