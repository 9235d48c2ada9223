/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups of the subnet administrator: see sa.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/array.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/model/event.h"
#include "fabric/model/flow_state.h"
#include "subnet/sa.h"
#include "subnet/sa_groups.h"
#include "subnet/sa_query.h"
#include "wire/mgid.h"
#include "wire/rate.h"
#include "wire/text.h"

#define JOIN_MASK   (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE)
#define JOIN_STATES 0xF
#define FULL_STATES (IB_JOIN_FULL | IB_JOIN_SEND_ONLY_FULL)

/* ---- groups ---- */

/* Ends a group: reports it and frees it. */
static void group_end(struct sa *sa, struct sa_group *g)
{
	sa_report_group(sa, g, false);
	sa_group_free(sa, g);
}

/* One event for each state: a listener that does the same again needs them all. */
static void tell_member(const struct sa *sa, const char *kind, const struct sa_group *g,
                        const struct fabric_port *port, uint8_t join_state, const char *why)
{
	for (unsigned state = 1; state <= JOIN_STATES; state <<= 1)
		if (join_state & state)
			fabric_tell(sa->f, &(struct fabric_event){ .kind = kind,
			                                           .what = why,
			                                           .port = port,
			                                           .mgid = &g->rec.mgid,
			                                           .join_state = (uint8_t)state,
			                                           .group = &g->rec });
}

static unsigned full_members(const struct sa_group *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n_members; i++)
		n += (g->member[i].join_state & FULL_STATES) != 0;
	return n;
}

/* Whether no full member keeps it, and nothing else does. */
static bool is_over(const struct sa_group *g)
{
	return !g->well_known && !g->awaited && !full_members(g);
}

int sa_new_restored(struct sa **out, struct fabric *f, struct sm *sm,
                    const struct subnet_state *state, struct subnet_state_misfits *misfits)
{
	struct sa *sa = calloc(1, sizeof(*sa));
	int ret;

	if (!sa)
		return -ENOMEM;
	sa->f = f;
	sa->sm = sm;
	base_idtable_init(&sa->mlids, f->settings.mft_capacity);
	sa->end_of_lid = calloc(IB_LID_MCAST_FIRST, sizeof(*sa->end_of_lid));
	ret = sa->end_of_lid ? sa_services_init(sa) : -ENOMEM;
	if (!ret)
		ret = sa_informs_init(sa);
	if (!ret && state)
		sa_groups_restore(sa, state, misfits);
	if (!ret)
		ret = sa_groups_add_well_known(sa);
	if (!ret)
		ret = sa_reports_init(sa);
	if (ret) {
		sa_free(sa);
		return ret;
	}
	*out = sa;
	return 0;
}

int sa_new(struct sa **sa, struct fabric *f, struct sm *sm)
{
	return sa_new_restored(sa, f, sm, NULL, NULL);
}

void sa_free(struct sa *sa)
{
	struct base_hash_node *node;

	while ((node = base_hash_walk(&sa->groups, NULL)))
		sa_group_forget(sa, container_of(node, struct sa_group, node));
	base_hash_fini(&sa->groups);
	base_idtable_fini(&sa->mlids);
	sa_services_fini(sa);
	sa_informs_fini(sa);
	sa_reports_fini(sa);
	free(sa->end_of_lid);
	free(sa);
}

/* ---- requests ---- */

static bool asks_for(uint64_t mask, uint64_t both)
{
	return (mask & both) == both;
}

bool sa_is_too_early(const struct sa *sa, uint16_t attribute, uint64_t mask)
{
	return sa->registering && !(attribute == SA_ATTR_MCMEMBER && (mask & SA_MCM_MLID));
}

/* Whether the group agrees with what the request says about it. */
static bool group_fits(const struct wire_mcmember *g, uint64_t mask, const struct wire_mcmember *r)
{
	if ((mask & SA_MCM_QKEY) && r->qkey != g->qkey)
		return false;
	if ((mask & SA_MCM_PKEY) && !ib_pkey_match(r->pkey, g->pkey))
		return false;
	if ((mask & SA_MCM_TCLASS) && r->tclass != g->tclass)
		return false;
	if ((mask & SA_MCM_SL) && r->sl != g->sl)
		return false;
	if ((mask & SA_MCM_FLOW_LABEL) && r->flow_label != g->flow_label)
		return false;
	if ((mask & SA_MCM_HOP_LIMIT) && r->hop_limit != g->hop_limit)
		return false;
	if (!sa_selects(mask, SA_MCM_MTU | SA_MCM_MTU_SELECTOR, r->mtu_selector, r->mtu, g->mtu))
		return false;
	if (!sa_selects(mask, SA_MCM_RATE | SA_MCM_RATE_SELECTOR, r->rate_selector,
	                wire_rate_to_mbps(r->rate), wire_rate_to_mbps(g->rate)))
		return false;
	return true;
}

/* An MTU or rate in the mask must be a valid one, with any selector. */
static bool valid_values(uint64_t mask, const struct wire_mcmember *r)
{
	if (asks_for(mask, SA_MCM_MTU | SA_MCM_MTU_SELECTOR) &&
	    (r->mtu < IBV_MTU_256 || r->mtu > IBV_MTU_4096))
		return false;
	return !asks_for(mask, SA_MCM_RATE | SA_MCM_RATE_SELECTOR) || wire_rate_find(r->rate);
}

static struct sa_member *member_add(struct sa_group *g, struct fabric_port *port)
{
	struct sa_member *m = sa_member_find(g, port);

	if (m)
		return m;
	if (base_array_reserve(&g->member, &g->room, (size_t)g->n_members + 1))
		return NULL;
	m = &g->member[g->n_members++];
	*m = (struct sa_member){ .port = port };
	return m;
}

static void member_remove(struct sa_group *g, struct sa_member *m)
{
	*m = g->member[--g->n_members];
}

/* Makes @rec the response: the group's record with this port's GID and join state. */
static void describe(const struct sa_group *g, uint8_t join_state, struct wire_mcmember *rec)
{
	struct ib_gid port_gid = rec->port_gid;

	*rec = g->rec;
	rec->port_gid = port_gid;
	rec->join_state = join_state;
	rec->mtu_selector = rec->rate_selector = rec->life_selector = SA_EXACTLY;
}

/* Adds the states that the request @rec asks for to the membership of @port, and makes @rec the
 * response; on failure nothing changes. *@added: those that it had not. */
static enum sa_status join(struct sa *sa, struct sa_group *g, struct fabric_port *port,
                           struct wire_mcmember *rec, uint8_t *added)
{
	struct sa_member *m = member_add(g, port);
	uint8_t before;

	if (!m)
		return SA_NO_RESOURCES;
	before = m->join_state;
	m->join_state |= rec->join_state;
	if (before == m->join_state || !sa_group_route(sa, g)) {
		*added = m->join_state & (uint8_t)~before;
		g->awaited &= !(m->join_state & FULL_STATES);
		describe(g, m->join_state, rec);
		return SA_OK;
	}
	m->join_state = before;
	if (!before)
		member_remove(g, m);
	sa_group_route(sa, g);
	return SA_NO_RESOURCES;
}

/* Finds the port with this GID. A port that is DOWN is not in the subnet. */
static enum sa_status port_find(struct sa *sa, const struct ib_gid *gid, struct fabric_port **port)
{
	struct ib_gid prefix;

	*port = fabric_port_by_gid(sa->f, gid);
	fabric_gid_make(sa->f, 0, &prefix);
	if (*port && (*port)->state != IB_PORT_DOWN)
		return SA_OK;
	return memcmp(gid, &prefix, 8) ? SA_REQ_INVALID_GID : SA_REQ_INVALID;
}

/* The port that a request has join or leave. */
static enum sa_status member_port(struct sa *sa, uint64_t mask, const struct wire_mcmember *rec,
                                  struct fabric_port **port)
{
	return asks_for(mask, JOIN_MASK) ? port_find(sa, &rec->port_gid, port)
	                                 : SA_INSUFFICIENT_COMPONENTS;
}

/* Whether a request to join is a good one, whatever group it is about. */
static bool is_valid_join(const struct sa *sa, uint64_t mask, const struct wire_mcmember *rec)
{
	const uint8_t states = rec->join_state;

	if (!states || (states & ~JOIN_STATES))
		return false;
	if ((states & IB_JOIN_SEND_ONLY_FULL) && !sa->f->settings.sa_send_only)
		return false;
	return valid_values(mask, rec);
}

static bool may_join(const struct sa_group *g, const struct fabric_port *port, uint64_t mask,
                     const struct wire_mcmember *rec)
{
	return group_fits(&g->rec, mask, rec) && sa_group_suits(g, port) &&
	       sa_has_pkey(port, g->rec.pkey);
}

/* Whether a new group of the request's may take the place of @g, to which nobody has come back. */
static bool may_replace(const struct sa *sa, const struct sa_group *g,
                        const struct fabric_port *port, uint64_t mask,
                        const struct wire_mcmember *rec)
{
	return g->awaited && !g->n_members && sa_group_may_create(sa, port, mask, rec);
}

enum sa_status sa_mcmember_set(struct sa *sa, uint64_t mask, struct wire_mcmember *rec)
{
	struct fabric_port *port;
	struct sa_group *g;
	enum sa_status status = member_port(sa, mask, rec, &port);
	uint8_t added;
	bool is_new;

	if (status != SA_OK)
		return status;
	if (!is_valid_join(sa, mask, rec))
		return SA_REQ_INVALID;
	rec->sl = sa_group_sl(sa, rec->sl);
	g = sa_group_find(sa, &rec->mgid);
	if (g && !may_join(g, port, mask, rec)) {
		if (!may_replace(sa, g, port, mask, rec))
			return SA_REQ_INVALID;
		sa_group_free(sa, g);
		g = NULL;
	}
	is_new = !g;
	if (is_new)
		status = sa_group_create(sa, port, mask, rec, &g);
	if (status != SA_OK)
		return status;
	base_log_trace(join, "SA: %s:%u joins %s, MLID 0x%04x%s", port->node->name, port->num,
	               wire_gid_text(&g->rec.mgid), g->rec.mlid, is_new ? ", a new group" : "");
	status = join(sa, g, port, rec, &added);
	if (is_new && status == SA_OK)
		sa_report_group(sa, g, true);
	else if (is_new)
		sa_group_free(sa, g);
	if (status == SA_OK && added)
		tell_member(sa, "join", g, port, added, NULL);
	return status;
}

enum sa_status sa_mcmember_delete(struct sa *sa, uint64_t mask, struct wire_mcmember *rec)
{
	struct fabric_port *port;
	enum sa_status status;
	struct sa_group *g;
	struct sa_member *m;
	uint8_t left;

	status = member_port(sa, mask, rec, &port);
	if (status != SA_OK)
		return status;
	g = sa_group_find(sa, &rec->mgid);
	m = g ? sa_member_find(g, port) : NULL;
	if (!m || !rec->join_state || (rec->join_state & ~m->join_state))
		return SA_REQ_INVALID;
	base_log_trace(join, "SA: %s:%u leaves %s", port->node->name, port->num,
	               wire_gid_text(&g->rec.mgid));
	tell_member(sa, "leave", g, port, rec->join_state, NULL);
	m->join_state &= (uint8_t)~rec->join_state;
	left = m->join_state;
	describe(g, left, rec);
	if (!left)
		member_remove(g, m);
	if (is_over(g))
		group_end(sa, g);
	else
		sa_group_route(sa, g);
	return SA_OK;
}

int sa_partitions_changed(struct sa *sa)
{
	struct base_hash_node *n = base_hash_walk(&sa->groups, NULL), *next;
	int ret;

	for (; n; n = base_hash_walk(&sa->groups, n))
		container_of(n, struct sa_group, node)->well_known = false;
	ret = sa_groups_add_well_known(sa);
	for (n = base_hash_walk(&sa->groups, NULL); n; n = next) {
		struct sa_group *g = container_of(n, struct sa_group, node);

		next = base_hash_walk(&sa->groups, n);
		if (is_over(g))
			group_end(sa, g);
	}
	return ret;
}

static void group_swept(struct sa *sa, struct sa_group *g)
{
	unsigned before = g->n_members;

	for (unsigned i = g->n_members; i--;) {
		const struct sa_member *m = &g->member[i];

		if (m->port->state != IB_PORT_DOWN)
			continue;
		tell_member(sa, "leave", g, m->port, m->join_state, "its port is down");
		member_remove(g, &g->member[i]);
	}
	if (is_over(g))
		group_end(sa, g);
	else if (g->n_members == before && !sm_mcast_is_stale(sa->sm, g->rec.mlid))
		return;
	else if (sa_group_route(sa, g))
		base_log_warning(sa, "MLID 0x%04x: the tables are as they were before the sweep",
		                 g->rec.mlid);
}

/* Spends the cost of new trees, and of the flows that follow them, since fabric_flows.work was
 * @before. */
static void spend_tree(const struct sa *sa, uint64_t before, uint32_t *budget)
{
	const uint64_t cost = 1000 + SM_FLOW_WORK * (sa->f->flows->work - before);

	*budget -= cost < *budget ? (uint32_t)cost : *budget;
}

/* The tree of the MLID is that of the members that have registered. */
static void mlid_learned(struct sa *sa, uint32_t i)
{
	const uint16_t mlid = (uint16_t)(IB_LID_MCAST_FIRST + i);
	const struct sa_mlid *m = i < sa->mlids.size ? base_idtable_get(&sa->mlids, i) : NULL;

	sm_mlid_learned(sa->sm, mlid);
	if (!m)
		sm_route_mcast(sa->sm, mlid, NULL, 0);
	else if (sa_group_route(sa, TAILQ_FIRST(&m->groups)))
		base_log_warning(sa, "a group keeps the tables of the last subnet manager");
}

bool sa_learned_step(struct sa *sa, uint32_t *mlid, uint32_t *budget)
{
	for (; *mlid <= IB_LID_MCAST_LAST - IB_LID_MCAST_FIRST && *budget; ++*mlid) {
		uint64_t before = sa->f->flows->work;

		if (!sm_mlid_is_earlier(sa->sm, (uint16_t)(IB_LID_MCAST_FIRST + *mlid)))
			continue;
		mlid_learned(sa, *mlid);
		spend_tree(sa, before, budget);
	}
	if (*mlid <= IB_LID_MCAST_LAST - IB_LID_MCAST_FIRST)
		return false;
	sm_learned(sa->sm);
	return true;
}

/* All groups of one MLID; a group that ends is no longer in the list. */
static void mlid_swept(struct sa *sa, const struct sa_mlid *m)
{
	struct sa_group *g = TAILQ_FIRST(&m->groups), *next;

	for (; g; g = next) {
		next = TAILQ_NEXT(g, of_mlid);
		group_swept(sa, g);
	}
}

bool sa_swept_step(struct sa *sa, uint32_t *mlid, uint32_t *budget)
{
	for (; *mlid < sa->mlids.size && *budget; ++*mlid) {
		const struct sa_mlid *m = base_idtable_get(&sa->mlids, *mlid);
		uint64_t before = sa->f->flows->work;

		if (!m)
			continue;
		mlid_swept(sa, m);
		spend_tree(sa, before, budget);
	}
	if (!*budget)
		return false;
	sa_reports_swept(sa);
	*budget = 0;
	return true;
}
