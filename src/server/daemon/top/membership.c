/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memberships of ports in groups: see membership.h.
 */
#include <errno.h>
#include <stddef.h>

#include "base/util.h"
#include "cm/cm.h"
#include "daemon/clients/client.h"
#include "daemon/top/membership.h"
#include "fabric/plan/ethernet.h"
#include "subnet/sa_groups.h"

static void *own_hca(const struct daemon_call *call, uint32_t handle)
{
	const struct daemon_membership *m = call->module;

	return daemon_hca_of(&m->objects->hcas, call->client->holds, handle);
}

/* Whether a switch sends the group's packets to the port. */
static bool is_reached(const struct fabric_port *port, uint16_t mlid)
{
	const struct fabric_port *at = port->peer;

	return at && at->node->type == FABRIC_SWITCH && ib_lid_is_mcast(mlid) &&
	       fabric_row_has(fabric_mft_out(at->node, mlid), at->num);
}

/* A port for which another port has joined (ProxyJoin), as the embedded SA knows. With another SA
 * the switches' tables are a hint. */
static void look_beyond_cm(const struct daemon_membership *m, const struct fabric_port *port,
                           const struct control_query_membership *req,
                           struct control_query_membership_reply *rep)
{
	const struct sa *sa = m->subnet->mad.sa;
	const struct sa_group *g = sa ? sa_group_find(sa, &req->mgid) : NULL;
	const struct sa_member *member = g ? sa_member_find(g, port) : NULL;

	if (member && member->proxy_join)
		rep->join_state = member->join_state;
	if (!sa)
		rep->is_known = !is_reached(port, req->mlid);
}

static void add_record(struct control_query_membership_reply *rep, const struct wire_mcmember *rec)
{
	rep->has_record = true;
	rep->qkey = rec->qkey;
	rep->flow_label = rec->flow_label;
	rep->mlid = rec->mlid;
	rep->pkey = rec->pkey;
	rep->mtu = (uint8_t)rec->mtu;
	rep->rate = (uint8_t)rec->rate;
	rep->sl = (uint8_t)rec->sl;
	rep->tclass = rec->tclass;
}

static int query_membership(struct daemon_call *call)
{
	const struct daemon_membership *m = call->module;
	const struct control_query_membership *req = call->body;
	const struct daemon_hca *h = call->about;
	const struct shm_hca *hca = shm_hca_at(m->f->region, h->hca);
	struct control_query_membership_reply *rep;
	const struct fabric_port *port;
	struct wire_mcmember rec;
	const struct sa_group *g;

	if (!req->port_num || req->port_num > hca->n_ports)
		return -EINVAL;
	port = m->f->hca_port[hca->first_port + req->port_num - 1];
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->is_known = true;
	rep->join_state = cm_membership(m->cm, port, &req->mgid, &rec, &rep->reset_age_ns);
	if (rep->join_state)
		add_record(rep, &rec);
	else if (!fabric_hca_is_ethernet(m->f, h->hca))
		look_beyond_cm(m, port, req, rep);
	g = m->subnet->mad.sa ? sa_group_find(m->subnet->mad.sa, &req->mgid) : NULL;
	if (!rep->has_record && g && !fabric_hca_is_ethernet(m->f, h->hca))
		add_record(rep, &g->rec);
	return 0;
}

static const struct daemon_request requests[] = {
	{ .type = CONTROL_QUERY_MEMBERSHIP,
	  .bytes = sizeof(struct control_query_membership),
	  .who = DAEMON_VERBS,
	  .about_at = offsetof(struct control_query_membership, hca_handle),
	  .find = own_hca,
	  .serve = query_membership },
};

void daemon_membership_init(struct daemon_membership *m, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), m);
}
