/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PathRecord and MultiPathRecord (InfiniBand specification volume 1, sections 15.2.5.16 and
 * 15.2.5.20): the paths between two ports, found by walking the forwarding tables. Between two LIDs
 * there is one path; ports with several LIDs have several.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "fabric/model/lanes.h"
#include "fabric/model/routers.h"
#include "fabric/agents/mads.h"
#include "subnet/partitions.h"
#include "subnet/sa_groups.h"
#include "subnet/sa_query.h"
#include "subnet/sa_rates.h"
#include "wire/rate.h"

#define LIFE 18 /* packet life time of all paths: about a second */

/* One end of a path. */
struct end {
	struct fabric_port *port;
	uint16_t lid;                /* the first LID of the port that may be used */
	unsigned n;                  /* how many LIDs may be used */
	const struct ib_gid *beyond; /* @port is a router's, and the path goes on to this GID in
	                              * another subnet; NULL: it ends there */
};

/* The query's requirements for a path. */
struct wish {
	uint64_t mask;
	const struct wire_path_record *record;
	unsigned most; /* the most paths between two ports */
};

/* ---- what a path is like ---- */

/* A P_Key by which the two can communicate; 0: there is none. @want: only this one; 0: any. */
static uint16_t shared_pkey(const struct fabric_port *a, const struct fabric_port *b, uint16_t want)
{
	for (unsigned i = 0; i < SHM_PKEYS; i++) {
		uint16_t pkey = a->pkey[i];

		if (!(pkey & IB_PKEY_BASE_MASK) || (want && ((want ^ pkey) & IB_PKEY_BASE_MASK)))
			continue;
		for (unsigned k = 0; k < SHM_PKEYS; k++)
			if (ib_pkey_match(pkey, b->pkey[k]))
				return pkey;
	}
	return 0;
}

/* The service level of paths with @pkey, as in OpenSM: the one that the query asks for, else that
 * of the partition. Where routing gives paths lanes (sm_path_sl()), each path has its own. */
static uint8_t sl_of(const struct sa_query *q, const struct wish *wish, uint16_t pkey)
{
	const struct partitions *all = sm_partitions(q->sa->sm);

	if (wish->mask & SA_PR(sl))
		return wish->record->sl;
	for (unsigned i = 0; all && i < all->n; i++)
		if (all->partition[i].pkey == (pkey & IB_PKEY_BASE_MASK))
			return all->partition[i].sl;
	return 0;
}

/* The port of @at's node by which packets with @sl to @dlid leave; NULL: none. */
static struct fabric_port *exit_port(struct fabric_port *at, uint16_t dlid, uint8_t sl)
{
	unsigned out = at->num, in = 0;
	struct fabric_port *p;

	if (at->node->type == FABRIC_SWITCH) {
		in = at->num;
		out = fabric_lft_out(at->node, dlid);
		if (!out || out > at->node->n_ports)
			return NULL;
	}
	p = &at->node->port[out];
	return fabric_port_carries(p) && fabric_lane_of(p, in, sl) != FABRIC_LANE_NONE ? p : NULL;
}

/* Walks the tables and writes MTU and rate. False: there is no path. */
static bool measure(struct fabric_port *from, const struct end *to, struct wire_path_record *r)
{
	struct fabric_port *at = from, *out;
	unsigned mbps = UINT32_MAX;

	r->mtu = from->mtu;
	for (int hops = 0; hops < FABRIC_MAX_HOPS && fabric_own_port(at) != to->port; hops++) {
		out = hops && at->node->type == FABRIC_HCA ? NULL : exit_port(at, to->lid, r->sl);
		if (!out)
			return false;
		if (out->mtu < r->mtu)
			r->mtu = out->mtu;
		if (sa_port_mbps(out) < mbps)
			mbps = sa_port_mbps(out);
		at = out->peer;
	}
	if (mbps == UINT32_MAX) /* to itself */
		mbps = sa_port_mbps(at);
	r->rate = sa_rate_of(mbps);
	return fabric_own_port(at) == to->port &&
	       (at->node->type == FABRIC_SWITCH || at->state == IB_PORT_ACTIVE);
}

/* Whether MTU, rate, life time and SL of a path are as the query requires. */
static bool fits(const struct wish *wish, const struct wire_path_record *r)
{
	const struct wire_path_record *w = wish->record;
	uint64_t mask = wish->mask;

	return sa_selects(mask, SA_PR(mtu) | SA_PR(mtu_selector), w->mtu_selector, w->mtu,
	                  r->mtu) &&
	       sa_selects(mask, SA_PR(rate) | SA_PR(rate_selector), w->rate_selector,
	                  wire_rate_to_mbps(w->rate), wire_rate_to_mbps(r->rate)) &&
	       sa_selects(mask, SA_PR(life) | SA_PR(life_selector), w->life_selector, w->life,
	                  r->life) &&
	       (!(mask & SA_PR(sl)) || w->sl == r->sl);
}

/* Lowers the path's MTU and rate to those that the query asks for: a path can be used below what
 * it is made for. Where that does not suffice, the path does not fit. */
static void lower(const struct wish *wish, struct wire_path_record *r)
{
	const struct wire_path_record *w = wish->record;
	const uint64_t mtu = SA_PR(mtu) | SA_PR(mtu_selector);
	const uint64_t rate = SA_PR(rate) | SA_PR(rate_selector);
	unsigned mbps = wire_rate_to_mbps(w->rate);
	uint8_t below = 0;

	if ((wish->mask & mtu) == mtu && w->mtu <= r->mtu) {
		if (w->mtu_selector == SA_EXACTLY && w->mtu >= IBV_MTU_256)
			r->mtu = w->mtu;
		if (w->mtu_selector == SA_LESS && w->mtu > IBV_MTU_256)
			r->mtu = w->mtu - 1;
	}
	if ((wish->mask & rate) != rate || mbps > (unsigned)wire_rate_to_mbps(r->rate))
		return;
	if (w->rate_selector == SA_EXACTLY && wire_rate_find(w->rate))
		r->rate = w->rate;
	if (w->rate_selector == SA_LESS)
		below = sa_rate_below(mbps);
	if (below)
		r->rate = below;
}

/* All LIDs of a port. */
static struct end end_of(struct fabric_port *port)
{
	return (struct end){ port, port->lid, port->lid ? 1u << port->lmc : 0, NULL };
}

/* Adds the path from @from to @to's first LID. False: there is none that meets the query. */
static bool offer_path(struct sa_query *q, const struct wish *wish, const struct end *from,
                       const struct end *to, struct wire_path_record *r)
{
	const struct sa_kind *kind = q->kind;

	int sl = sm_path_sl(q->sa->sm, from->port, to->lid);

	sa_query_spend(q, 3);
	if (sl >= 0)
		r->sl = (uint8_t)sl;
	if (!measure(from->port, to, r))
		return false;
	lower(wish, r);
	if (!fits(wish, r))
		return false;
	q->kind = &sa_path_kind; /* the response to a MultiPathRecord has PathRecords */
	sa_query_add(q, r);
	q->kind = kind;
	q->out->attribute = SA_ATTR_PATH;
	return true;
}

/*
 * Adds the paths between two ports; sa_query_stops() has been asked. Paths that share no LID come
 * first, as they are likely to share the fewest links; then the rest. Order and preference values
 * are OpenSM's.
 */
static void offer_paths(struct sa_query *q, const struct wish *wish, const struct end *from,
                        const struct end *to)
{
	/* the way back has a lane of its own if routing gives paths lanes, as with OpenSM */
	struct wire_path_record r = { .reversible = 1,
		                      .mtu_selector = SA_EXACTLY,
		                      .rate_selector = SA_EXACTLY,
		                      .life_selector = SA_EXACTLY,
		                      .life = LIFE };
	const unsigned pairs = from->n * to->n;
	bool is_first = true;

	r.pkey = shared_pkey(from->port, to->port,
	                     wish->mask & SA_PR(pkey) ? wish->record->pkey : 0);
	if (!r.pkey)
		return;
	r.sl = sl_of(q, wish, r.pkey);
	fabric_gid_make(q->sa->f, to->port->guid, &r.dgid);
	if (to->beyond) {
		r.dgid = *to->beyond;
		r.hop_limit = UINT8_MAX;
	}
	fabric_gid_make(q->sa->f, from->port->guid, &r.sgid);
	for (; q->at.pair < 2 * pairs && q->at.paths < wish->most; q->at.pair++) {
		unsigned i = q->at.pair, a = i % pairs / to->n, b = i % pairs % to->n;
		struct end one = { to->port, (uint16_t)(to->lid + b), 1, NULL };

		if (!is_first && sa_query_stops(q))
			return;
		is_first = false;
		r.preference = i < pairs ? 0 : 2;
		if ((a == b) != (i < pairs))
			continue;
		r.slid = (uint16_t)(from->lid + a);
		r.dlid = one.lid;
		q->at.paths += offer_path(q, wish, from, &one, &r);
	}
	q->at.pair = q->at.paths = 0; /* for the next two ports */
}

/* ---- PathRecord ---- */

/* How a query names one end. */
struct end_name {
	bool by_gid, by_lid;
	const struct ib_gid *gid;
	uint16_t lid;
};

/* The port of the router by which the subnet of a GID is reached, as the end; NULL: none is known.
 */
static struct fabric_port *router_to(const struct sa *sa, const struct ib_gid *gid)
{
	const struct fabric_route *route;

	if (!fabric_gid_is_beyond(sa->f, gid))
		return NULL;
	route = fabric_route_find(sa->f, fabric_prefix_of(gid));
	return route ? sa->f->routers->port[route->router - 1] : NULL;
}

/* Finds the named end; its port is NULL if the query names none. Returns enum sa_status. */
static uint16_t find_end(const struct sa *sa, const struct end_name *name, struct end *end)
{
	*end = (struct end){ .port = NULL };
	if (name->by_gid) {
		end->port = sa_end_by_gid(sa, name->gid);
		if (!end->port)
			return SA_REQ_INVALID_GID;
		*end = end_of(end->port);
	}
	if (!name->by_lid)
		return SA_OK;
	if (!end->port)
		end->port = sa_end_by_lid(sa, name->lid);
	end->lid = name->lid;
	end->n = 1;
	return end->port && fabric_port_has_lid(end->port, name->lid) ? SA_OK : SA_NO_RECORDS;
}

/* Likewise; it may be in another subnet. */
static uint16_t find_target(const struct sa *sa, const struct end_name *name, struct end *end)
{
	struct fabric_port *router = name->by_gid ? router_to(sa, name->gid) : NULL;

	if (!router)
		return find_end(sa, name, end);
	*end = end_of(router);
	end->beyond = name->gid;
	if (!name->by_lid)
		return SA_OK;
	end->lid = name->lid;
	end->n = 1;
	return fabric_port_has_lid(router, name->lid) ? SA_OK : SA_NO_RECORDS;
}

/* A path to a group is to its MLID (C15-0.1.21). */
static void list_group(struct sa_query *q, const struct wish *wish, const struct end *from)
{
	const struct wire_path_record *w = wish->record;
	const struct sa_group *g = sa_group_find(q->sa, &w->dgid);
	struct wire_path_record r = { .dgid = w->dgid, .reversible = 1 };

	if (!g || !from->port || !sa_has_pkey(from->port, g->rec.pkey))
		return;
	r.dlid = g->rec.mlid;
	r.slid = from->lid;
	fabric_gid_make(q->sa->f, from->port->guid, &r.sgid);
	r.flow_label = g->rec.flow_label;
	r.hop_limit = g->rec.hop_limit;
	r.tclass = g->rec.tclass;
	r.pkey = g->rec.pkey;
	r.sl = g->rec.sl;
	r.mtu = g->rec.mtu;
	r.rate = g->rec.rate;
	r.life = g->rec.life;
	r.mtu_selector = r.rate_selector = r.life_selector = SA_EXACTLY;
	if (fits(wish, &r))
		sa_query_add(q, &r);
}

static void list_from(struct sa_query *q, const struct wish *wish, const struct end *from,
                      const struct end *to)
{
	struct fabric_port *p;

	if (to->port) {
		if (!sa_query_stops(q))
			offer_paths(q, wish, from, to);
		return;
	}
	for (; (p = sa_end(q->sa, q->at.inner)); q->at.inner++) {
		struct end end = end_of(p);

		if (sa_query_stops(q))
			return;
		offer_paths(q, wish, from, &end);
		if (q->stopped)
			return;
	}
	q->at.inner = 0;
}

static void list_paths(struct sa_query *q, const struct wish *wish, const struct end *from,
                       const struct end *to)
{
	struct fabric_port *p;

	if (from->port) {
		list_from(q, wish, from, to);
		return;
	}
	for (; (p = sa_end(q->sa, q->at.outer)); q->at.outer++) {
		struct end end = end_of(p);

		list_from(q, wish, &end, to);
		if (q->stopped)
			return;
	}
}

/* How many paths between two ports the query wants. */
static unsigned most_paths(const struct sa_query *q, const struct wire_path_record *w)
{
	if (q->in->mad->mad.method == MAD_GET)
		return 1;
	return q->mask & SA_PR(numb_path) ? w->numb_path : UINT32_MAX;
}

static uint16_t get_paths(struct sa_query *q)
{
	const struct wire_path_record *w = q->wanted;
	struct wish wish = { q->mask, w, most_paths(q, w) };
	struct end_name source = { q->mask & SA_PR(sgid), q->mask & SA_PR(slid), &w->sgid,
		                   w->slid };
	struct end_name target = { q->mask & SA_PR(dgid), q->mask & SA_PR(dlid), &w->dgid,
		                   w->dlid };
	struct end from, to;
	uint16_t status = find_end(q->sa, &source, &from);

	if (status)
		return status;
	if ((q->mask & SA_PR(dgid)) && ib_gid_is_mcast(&w->dgid)) {
		list_group(q, &wish, &from);
		return SA_OK;
	}
	status = find_target(q->sa, &target, &to);
	if (!status)
		list_paths(q, &wish, &from, &to);
	return status;
}

const struct sa_kind sa_path_kind = {
	.attribute = SA_ATTR_PATH,
	.layout = &wire_path_record_layout,
	.get = get_paths,
	.any = true,
};

/* ---- MultiPathRecord ---- */

/* Writes the requirements of @m to a PathRecord. Returns the mask for that. */
static uint64_t as_path(const struct wire_multipath_record *m, uint64_t mask,
                        struct wire_path_record *w)
{
	static const struct {
		uint64_t multipath, path;
	} same[] = {
		{ SA_MPR(pkey), SA_PR(pkey) },
		{ SA_MPR(sl), SA_PR(sl) },
		{ SA_MPR(mtu_selector), SA_PR(mtu_selector) },
		{ SA_MPR(mtu), SA_PR(mtu) },
		{ SA_MPR(rate_selector), SA_PR(rate_selector) },
		{ SA_MPR(rate), SA_PR(rate) },
		{ SA_MPR(life_selector), SA_PR(life_selector) },
		{ SA_MPR(life), SA_PR(life) },
	};
	uint64_t path_mask = 0;

	*w = (struct wire_path_record){ .pkey = m->pkey,
		                        .sl = m->sl,
		                        .mtu_selector = m->mtu_selector,
		                        .mtu = m->mtu,
		                        .rate_selector = m->rate_selector,
		                        .rate = m->rate,
		                        .life_selector = m->life_selector,
		                        .life = m->life };
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (mask & same[i].multipath)
			path_mask |= same[i].path;
	return path_mask;
}

/* The end with this GID; switches are looked through. */
static struct fabric_port *find_gid(struct sa_query *q, const struct ib_gid *gid)
{
	struct fabric_port *p = sa_end_by_gid(q->sa, gid);

	sa_query_spend(q, !p || p->node->type == FABRIC_SWITCH ? 1 + q->sa->f->n_switches / 16 : 1);
	return p;
}

/* Whether the query's GIDs are known; of those that an earlier slice has looked at it is known. */
static uint16_t check_gids(struct sa_query *q, const struct ib_gid *gid, unsigned n)
{
	for (; q->at.checked < n; q->at.checked++) {
		if (sa_query_stops(q))
			return SA_OK;
		if (!find_gid(q, &gid[q->at.checked]))
			return SA_REQ_INVALID_GID;
	}
	return SA_OK;
}

/* The paths from the source whose turn it is to the target whose turn it is, up to @most of all. */
static void offer_multipaths(struct sa_query *q, struct wish *wish, const struct ib_gid *gid,
                             unsigned most)
{
	const struct wire_multipath_record *m = q->wanted;
	struct fabric_port *from = find_gid(q, &gid[q->at.outer]);
	struct fabric_port *to = find_gid(q, &gid[m->sgid_count + q->at.inner]);
	struct end a, b;

	if (!from || !to) { /* it has gone since it was looked at */
		q->at.pair = q->at.paths = 0;
		return;
	}
	a = end_of(from);
	b = end_of(to);
	wish->most = most - (q->out->n - q->at.paths);
	offer_paths(q, wish, &a, &b);
}

static uint16_t get_multipaths(struct sa_query *q)
{
	const struct wire_multipath_record *m = q->wanted;
	const struct ib_gid *gid = wire_multipath_gids(q->in->data, q->in->bytes);
	unsigned most = q->mask & SA_MPR(numb_path) ? m->numb_path : 127;
	struct wire_path_record w;
	struct wish wish = { as_path(m, q->mask, &w), &w, 0 };
	uint16_t status;

	if (!(q->mask & SA_MPR(sgid_count)) || !(q->mask & SA_MPR(dgid_count)) || !m->sgid_count ||
	    !m->dgid_count)
		return SA_INSUFFICIENT_COMPONENTS;
	if (!gid)
		return SA_REQ_INVALID;
	status = check_gids(q, gid, (unsigned)m->sgid_count + m->dgid_count);
	if (status || q->stopped)
		return status;
	for (; q->at.outer < m->sgid_count; q->at.outer++) {
		for (; q->at.inner < m->dgid_count && q->out->n < most; q->at.inner++) {
			if (sa_query_stops(q))
				return SA_OK;
			offer_multipaths(q, &wish, gid, most);
			if (q->stopped)
				return SA_OK;
		}
		q->at.inner = 0;
	}
	return SA_OK;
}

const struct sa_kind sa_multipath_kind = {
	.attribute = SA_ATTR_MULTIPATH,
	.layout = &wire_multipath_record_layout,
	.get_multi = get_multipaths,
};
