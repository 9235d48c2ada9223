/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The choice of a capture: see capture_filter.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/subnet/capture_filter.h"
#include "fabric/agents/link.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/model/attach_table.h"

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

	if (w->no_mads || !(w->classes[class / 64] >> (class % 64) & 1))
		return false;
	if (!w->node || is_wanted_port(w, seen->from))
		return true;
	return seen->at ? is_wanted_port(w, seen->at) : was_for_wanted_port(w, seen);
}

/* ---- packets of queue pairs ---- */

static bool is_mcast(const struct fabric_flow *flow)
{
	return ib_lid_is_mcast(flow->key.dlid);
}

/* Whether it gets to a wanted port by the network. */
static bool leaves_for_node(const struct daemon_capture_filter *w, const struct fabric_flow *flow)
{
	const struct fabric_port *to;

	if (is_mcast(flow)) {
		for (unsigned i = 0; i < w->n_nodes; i++)
			if (w->node[i]->type == FABRIC_HCA &&
			    fabric_attach_find(w->f, w->node[i]->hca, &flow->key.dgid))
				return true;
		return false;
	}
	to = fabric_ethernet_find_anywhere(w->f, flow->from, &flow->key.dgid);
	return to && is_wanted_port(w, to);
}

static bool is_of_node(const struct daemon_capture_filter *w, const struct fabric_flow *flow)
{
	if (!w->node || is_wanted_port(w, flow->from))
		return true;
	if (flow->path->roce && leaves_for_node(w, flow))
		return true;
	for (uint32_t i = 0; i < flow->path->n_reached; i++)
		if (is_wanted_port(w, flow->path->reached[i]))
			return true;
	return false;
}

static bool is_to_group(const struct daemon_capture_filter *w, const struct fabric_flow *flow)
{
	for (unsigned i = 0; is_mcast(flow) && i < w->n_groups; i++)
		if (ib_gid_equal(&w->group[i], &flow->key.dgid))
			return true;
	return !w->n_groups;
}

/* Those of the queue pair's HCA that are attached to the group; NULL: none. */
static const struct fabric_attached *attached_beside(const struct fabric *f, uint32_t qpn,
                                                     const struct ib_gid *mgid)
{
	const struct shm_qp *qp = shm_qp_at(f->region, SHM_QP_INDEX(qpn));

	if (qp->qpn != qpn || !qp->port_num)
		return NULL;
	return fabric_attach_find(f, f->hca_port[qp->port]->node->hca, mgid);
}

/* Whether the queue pair gets a copy of what is sent to the group. */
static bool is_attached(const struct fabric *f, uint32_t qpn, const struct ib_gid *mgid)
{
	const struct fabric_attached *g = attached_beside(f, qpn, mgid);

	for (uint32_t i = 0; g && i < g->n; i++)
		if (g->entry[i].qpn == qpn)
			return true;
	return false;
}

static bool is_of_qp(const struct daemon_capture_filter *w, const struct fabric_flow *flow,
                     uint32_t dest_qpn)
{
	for (unsigned i = 0; i < w->n_qps; i++) {
		const uint32_t qpn = w->qp[i].qpn;

		if (flow->key.qpn == qpn ||
		    (is_mcast(flow) ? is_attached(w->f, qpn, &flow->key.dgid) : dest_qpn == qpn))
			return true;
	}
	return !w->n_qps;
}

bool daemon_capture_filter_packet(const struct daemon_capture_filter *w,
                                  const struct fabric_flow *flow, uint32_t dest_qpn)
{
	return w->data && is_of_node(w, flow) && is_to_group(w, flow) &&
	       is_of_qp(w, flow, dest_qpn);
}

/* ---- flows ---- */

/* Whether it leads to the host; where it leads nowhere now, it may. */
static bool may_reach_host(const struct fabric *f, const struct fabric_flow *flow, unsigned host)
{
	const struct fabric_mcast_path *s = flow->path;

	for (uint32_t i = 0; i < s->n_reached; i++)
		if (shm_hca_at(f->region, s->reached[i]->node->hca)->host_index == host)
			return true;
	return s->roce || !s->n_reached;
}

/* In a group there may be thousands of flows and of queue pairs: each flow is looked at alone. */
static bool may_be_of_qp(const struct daemon_capture_filter *w, const struct fabric_flow *flow)
{
	for (unsigned i = 0; i < w->n_qps; i++) {
		const struct daemon_capture_qp *qp = &w->qp[i];

		if (flow->key.qpn == qp->qpn ||
		    (is_mcast(flow) ? attached_beside(w->f, qp->qpn, &flow->key.dgid) != NULL
		                    : may_reach_host(w->f, flow, qp->host)))
			return true;
	}
	return !w->n_qps;
}

/* Of a large group the ports are not looked at: it may have as many senders as receivers. */
#define FEW_PORTS 16

bool daemon_capture_filter_flow(const struct daemon_capture_filter *w,
                                const struct fabric_flow *flow)
{
	return w->data && is_to_group(w, flow) && may_be_of_qp(w, flow) &&
	       (flow->path->roce || !flow->path->n_reached || flow->path->n_reached > FEW_PORTS ||
	        is_of_node(w, flow));
}

/* ---- made of a request ---- */

/* The nodes that a name means: a node, or all HCAs of a host. */
static unsigned find_nodes(const struct fabric *f, const char *name,
                           const struct fabric_node **found)
{
	unsigned n = 0;

	found[0] = fabric_node_find(f, name);
	if (found[0])
		return 1;
	for (unsigned i = 0; i < f->n_nodes; i++)
		if (f->node[i]->type == FABRIC_HCA &&
		    !strcmp(shm_hca_at(f->region, f->node[i]->hca)->host, name))
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

static int find_qps(struct daemon_capture_filter *w, const struct control_capture *req)
{
	for (; w->n_qps < req->n_qps; w->n_qps++) {
		const struct control_capture_qp *qp = &req->qp[w->n_qps];
		int host = memchr(qp->host, '\0', sizeof(qp->host))
		                   ? fabric_host_find(w->f, qp->host)
		                   : -1;

		if (host < 0)
			return -ESRCH;
		w->qp[w->n_qps] = (struct daemon_capture_qp){ .host = (unsigned)host,
			                                      .qpn = qp->qpn & IB_QPN_MASK };
	}
	return 0;
}

int daemon_capture_filter_init(struct daemon_capture_filter *w, const struct fabric *f,
                               const struct control_capture *req)
{
	static const uint64_t none[4];
	int ret;

	*w = (struct daemon_capture_filter){
		.f = f, .data = req->data, .no_mads = req->no_mads, .n_groups = req->n_groups
	};
	if (req->n_groups > CONTROL_CAPTURE_GROUPS || req->n_qps > CONTROL_CAPTURE_MANY)
		return -EINVAL;
	memcpy(w->group, req->group, sizeof(w->group));
	memcpy(w->classes, req->classes, sizeof(w->classes));
	if (!memcmp(w->classes, none, sizeof(none)))
		memset(w->classes, 0xFF, sizeof(w->classes));
	ret = find_wanted(w, &req->at);
	if (!ret)
		ret = find_qps(w, req);
	if (ret)
		daemon_capture_filter_fini(w);
	return ret;
}

void daemon_capture_filter_fini(struct daemon_capture_filter *w)
{
	free(w->node);
	w->node = NULL;
}
