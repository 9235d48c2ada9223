/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a capture wants: see capture_filter.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/subnet/capture_filter.h"
#include "fabric/agents/link.h"
#include "fabric/forwarding/mcast_path.h"

static bool is_wanted_port(const struct daemon_capture_filter *w, const struct fabric_port *p)
{
	for (unsigned i = 0; i < w->n_nodes; i++)
		if (p->node == w->node[i] && (!w->port || w->port == p->num))
			return true;
	return false;
}

/* Whether the lost MAD @seen was on its way to a port that is wanted. */
static bool was_for_wanted_port(const struct daemon_capture_filter *w,
                                const struct fabric_mad_seen *seen)
{
	for (unsigned i = 0; i < w->n_nodes; i++) {
		const struct fabric_node *node = w->node[i];

		/* a switch has its LID at port 0 */
		for (unsigned n = node->type == FABRIC_SWITCH ? 0 : 1; n <= node->n_ports; n++)
			if ((!w->port || w->port == n) &&
			    fabric_port_has_lid(&node->port[n], seen->mad->dlid))
				return true;
	}
	return false;
}

bool daemon_capture_filter_mad(const struct daemon_capture_filter *w,
                               const struct fabric_mad_seen *seen)
{
	uint8_t class = seen->mad->data[1];

	if (!(w->classes[class / 64] >> (class % 64) & 1))
		return false;
	if (!w->node || is_wanted_port(w, seen->from))
		return true;
	return seen->at ? is_wanted_port(w, seen->at) : was_for_wanted_port(w, seen);
}

bool daemon_capture_filter_packet(const struct daemon_capture_filter *w,
                                  const struct fabric_flow *flow)
{
	if (!w->data)
		return false;
	if (!w->node || is_wanted_port(w, flow->from))
		return true;
	for (uint32_t i = 0; i < flow->path->n_reached; i++)
		if (is_wanted_port(w, flow->path->reached[i]))
			return true;
	return false;
}

/* ---- made of a request ---- */

/* What a name means: a node, or all HCAs of a host. */
static unsigned find_nodes(const struct fabric *f, const char *name,
                           const struct fabric_node **found)
{
	unsigned n = 0;

	found[0] = fabric_node_find(f, name);
	if (found[0])
		return 1;
	for (unsigned i = 0; i < f->n_nodes; i++)
		if (f->node[i]->type == FABRIC_HCA &&
		    !strcmp(f->region->hcas[f->node[i]->hca].host, name))
			found[n++] = f->node[i];
	return n;
}

static int find_wanted(struct daemon_capture_filter *w, const struct control_port *at)
{
	if (!memchr(at->node, '\0', sizeof(at->node)))
		return -ENOENT;
	if (!*at->node)
		return 0;
	w->node = calloc(w->f->n_nodes, sizeof(struct fabric_node *));
	if (!w->node)
		return -ENOMEM;
	w->n_nodes = find_nodes(w->f, at->node, w->node);
	w->port = at->port;
	if (!w->n_nodes)
		return -ENOENT;
	for (unsigned i = 0; i < w->n_nodes; i++)
		if (w->port <= w->node[i]->n_ports)
			return 0;
	return -ERANGE;
}

int daemon_capture_filter_init(struct daemon_capture_filter *w, const struct fabric *f,
                               const struct control_capture *req)
{
	static const uint64_t none[4];
	int ret;

	*w = (struct daemon_capture_filter){ .f = f, .data = req->data };
	memcpy(w->classes, req->classes, sizeof(w->classes));
	if (!memcmp(w->classes, none, sizeof(none)))
		memset(w->classes, 0xFF, sizeof(w->classes));
	ret = find_wanted(w, &req->at);
	if (ret)
		daemon_capture_filter_fini(w);
	return ret;
}

void daemon_capture_filter_fini(struct daemon_capture_filter *w)
{
	free(w->node);
	w->node = NULL;
}
