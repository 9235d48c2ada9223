/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return: see links.h.
 */
#include <errno.h>

#include "base/util.h"
#include "daemon/subnet/links.h"
#include "fabric/agents/link.h"
#include "fabric/plan/port_name.h"

/* Flows and the subnet manager follow the change. The status of the request. */
static int follow(struct daemon_links *links)
{
	daemon_subnet_sweep(links->subnet);
	return daemon_subnet_result(links->subnet);
}

static int set_link(struct daemon_call *call)
{
	const struct control_link *req = call->body;
	struct daemon_links *links = call->module;
	struct fabric_port *p;
	int ret;

	if (daemon_subnet_is_sweeping(links->subnet))
		return DAEMON_SERVE_AGAIN;
	ret = fabric_port_named(links->f, req->at.node, req->at.port, &p);
	if (!ret)
		ret = fabric_link_note(links->f, p, req->up);
	return ret ? ret : follow(links);
}

static int set_switch(struct daemon_call *call)
{
	const struct control_switch *req = call->body;
	struct daemon_links *links = call->module;
	struct fabric_node *node;
	int ret;

	if (daemon_subnet_is_sweeping(links->subnet))
		return DAEMON_SERVE_AGAIN;
	ret = fabric_node_named(links->f, req->name, &node);
	if (!ret && node->type != FABRIC_SWITCH)
		ret = -ENOTTY;
	if (!ret)
		ret = fabric_switch_note(links->f, node, req->alive);
	return ret ? ret : follow(links);
}

static const struct daemon_request requests[] = {
	DAEMON_OWNERS_REQUEST(LINK, control_link, DAEMON_CLI, set_link),
	DAEMON_OWNERS_REQUEST(SWITCH, control_switch, DAEMON_CLI, set_switch),
};

void daemon_links_init(struct daemon_links *links, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), links);
}
