/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MCMemberRecord by MADs (InfiniBand specification volume 1, section 15.2.5.17): which requests are
 * allowed. sa.c implements joining and leaving.
 */
#include <string.h>

#include "base/util.h"
#include "subnet/sa.h"
#include "subnet/sa_groups.h"
#include "subnet/sa_query.h"
#include "wire/rate.h"

/* The components of the group that a query compares as numbers. */
#define GROUP_VALUES                                                                               \
	(SA_MCM_MGID | SA_MCM_QKEY | SA_MCM_MLID | SA_MCM_TCLASS | SA_MCM_SL | SA_MCM_FLOW_LABEL | \
	 SA_MCM_HOP_LIMIT | SA_MCM_SCOPE)

static bool group_fits(const struct sa_query *q, const struct wire_mcmember *g)
{
	const struct wire_mcmember *w = q->wanted;

	return wire_match(&wire_mcmember_layout, q->mask & GROUP_VALUES, w, g) &&
	       (!(q->mask & SA_MCM_PKEY) || !((w->pkey ^ g->pkey) & IB_PKEY_BASE_MASK)) &&
	       sa_selects(q->mask, SA_MCM_MTU | SA_MCM_MTU_SELECTOR, w->mtu_selector, w->mtu,
	                  g->mtu) &&
	       sa_selects(q->mask, SA_MCM_RATE | SA_MCM_RATE_SELECTOR, w->rate_selector,
	                  wire_rate_to_mbps(w->rate), wire_rate_to_mbps(g->rate)) &&
	       sa_selects(q->mask, SA_MCM_LIFE | SA_MCM_LIFE_SELECTOR, w->life_selector, w->life,
	                  g->life);
}

/* Adds a member's record. Only trusted requests see the port. */
static void add_member(struct sa_query *q, const struct sa_group *g, const struct sa_member *m)
{
	const struct wire_mcmember *w = q->wanted;
	uint8_t join_state = m ? m->join_state : IB_JOIN_FULL;
	bool proxy_join = m && m->proxy_join;
	struct wire_mcmember r = g->rec;

	if (((q->mask & SA_MCM_JOIN_STATE) && w->join_state != join_state) ||
	    ((q->mask & SA_MCM_PROXY_JOIN) && w->proxy_join != proxy_join))
		return;
	r.mtu_selector = r.rate_selector = r.life_selector = SA_EXACTLY;
	if (q->trusted && m) {
		fabric_gid_make(q->sa->f, m->port->guid, &r.port_gid);
		r.join_state = join_state;
		r.proxy_join = proxy_join;
	}
	sa_query_add(q, &r);
}

static void list_group(struct sa_query *q, const struct sa_group *g)
{
	const struct wire_mcmember *w = q->wanted;

	/* only members of its partition see a group */
	if (!group_fits(q, &g->rec) || !q->asker || !sa_has_pkey(q->asker, g->rec.pkey))
		return;
	if (q->mask & SA_MCM_PORT_GID) {
		const struct fabric_port *port = fabric_port_by_gid(q->sa->f, &w->port_gid);
		const struct sa_member *m = port ? sa_member_find(g, port) : NULL;

		if (m)
			add_member(q, g, m);
	} else if (q->trusted) {
		for (unsigned i = 0; i < g->n_members; i++)
			add_member(q, g, &g->member[i]);
	} else {
		add_member(q, g, NULL);
	}
}

/* By MLID. */
static void list_members(struct sa_query *q)
{
	const struct base_idtable *mlids = &q->sa->mlids;

	for (; q->at.outer < mlids->size; q->at.outer++) {
		const struct sa_mlid *m = base_idtable_get(mlids, q->at.outer);
		const struct sa_group *g;

		if (sa_query_stops(q))
			return;
		for (g = m ? TAILQ_FIRST(&m->groups) : NULL; g; g = TAILQ_NEXT(g, of_mlid))
			list_group(q, g);
	}
}

/*
 * Whether the asker may join the port to the group or remove it. A port may do so for itself. Any
 * port in the group's partition may change a membership that was joined by proxy (o15-0.2.1). The
 * component ProxyJoin is ignored (o15-0.2.4): a request for another port is a proxy's.
 */
static bool may_change(const struct sa_query *q)
{
	const struct wire_mcmember *w = q->wanted;
	const struct fabric_port *port = fabric_port_by_gid(q->sa->f, &w->port_gid);
	const struct sa_group *g = sa_group_find(q->sa, &w->mgid);
	const struct sa_member *m = g && port ? sa_member_find(g, port) : NULL;

	if (!q->asker)
		return false;
	if (!port || port == q->asker)
		return true; /* sa.c returns the right error */
	if (m)
		return m->proxy_join && sa_has_pkey(q->asker, g->rec.pkey);
	return sa_share_pkey(q->asker, port);
}

static uint16_t join(struct sa_query *q)
{
	struct wire_mcmember rec = *(const struct wire_mcmember *)q->wanted;
	const struct fabric_port *port = fabric_port_by_gid(q->sa->f, &rec.port_gid);
	enum sa_status status;
	struct sa_member *m;

	if (!may_change(q))
		return SA_REQ_INVALID;
	status = sa_mcmember_set(q->sa, q->mask, &rec);
	if (status != SA_OK)
		return status;
	m = sa_member_find(sa_group_find(q->sa, &rec.mgid), port);
	rec.proxy_join = m->proxy_join = port != q->asker;
	sa_query_add(q, &rec);
	return SA_OK;
}

static uint16_t leave(struct sa_query *q)
{
	struct wire_mcmember rec = *(const struct wire_mcmember *)q->wanted;
	enum sa_status status;

	if (!may_change(q))
		return SA_REQ_INVALID;
	status = sa_mcmember_delete(q->sa, q->mask, &rec);
	if (status == SA_OK)
		sa_query_add(q, &rec);
	return status;
}

const struct sa_kind sa_member_kind = {
	.attribute = SA_ATTR_MCMEMBER,
	.layout = &wire_mcmember_layout,
	.list = list_members,
	.set = join,
	.del = leave,
};
