/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups: see sa_groups.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/log.h"
#include "base/util.h"
#include "fabric/model/routers.h"
#include "subnet/partitions.h"
#include "subnet/sa_groups.h"
#include "subnet/sa_query.h"
#include "subnet/sa_rates.h"
#include "subnet/state.h"
#include "wire/mgid.h"
#include "wire/rate.h"

#define CREATE_MASK                                                                        \
	(SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE | SA_MCM_QKEY | SA_MCM_TCLASS | \
	 SA_MCM_PKEY | SA_MCM_FLOW_LABEL | SA_MCM_SL)
#define FULL_STATES  (IB_JOIN_FULL | IB_JOIN_SEND_ONLY_FULL)
#define RECEIVES     (IB_JOIN_FULL | IB_JOIN_NON)
#define DEFAULT_LIFE 18 /* about a second */

static bool asks_for(uint64_t mask, uint64_t both)
{
	return (mask & both) == both;
}

struct sa_group *sa_group_find(const struct sa *sa, const struct ib_gid *mgid)
{
	struct base_hash_node *n = base_hash_first(&sa->groups, base_hash_of(mgid, 16, 0));

	for (; n; n = base_hash_next(n)) {
		struct sa_group *g = container_of(n, struct sa_group, node);

		if (ib_gid_equal(&g->rec.mgid, mgid))
			return g;
	}
	return NULL;
}

struct sa_member *sa_member_find(const struct sa_group *g, const struct fabric_port *port)
{
	for (unsigned i = 0; i < g->n_members; i++)
		if (g->member[i].port == port)
			return &g->member[i];
	return NULL;
}

/* ---- MLIDs ---- */

/* Allocates an MLID: @want, if that is one and free. NULL: none is, or there is no memory. */
static struct sa_mlid *mlid_new(struct sa *sa, uint16_t want)
{
	struct sa_mlid *m = calloc(1, sizeof(*m));
	uint32_t id = want - IB_LID_MCAST_FIRST;

	if (!m)
		return NULL;
	if ((!ib_lid_is_mcast(want) || base_idtable_add_at(&sa->mlids, m, id)) &&
	    base_idtable_add(&sa->mlids, m, &id)) {
		free(m);
		return NULL;
	}
	m->mlid = (uint16_t)(IB_LID_MCAST_FIRST + id);
	TAILQ_INIT(&m->groups);
	return m;
}

/*
 * The MLID that a new group should have: @want, if there is one. While members of earlier groups
 * are about to register with the MLIDs that they had, others get one that no switch forwards. 0:
 * any.
 */
static uint16_t mlid_wanted(const struct sa *sa, uint16_t want)
{
	if (ib_lid_is_mcast(want) || !sm_is_learning(sa->sm))
		return want;
	for (unsigned i = 0; i < sa->f->settings.mft_capacity; i++) {
		uint16_t mlid = (uint16_t)(IB_LID_MCAST_FIRST + i);

		if (!base_idtable_get(&sa->mlids, i) && !sm_mlid_is_earlier(sa->sm, mlid))
			return mlid;
	}
	return 0;
}

/* The MLID that @g had, which groups have that shared it under the last subnet manager; or NULL. */
static struct sa_mlid *mlid_shared_again(const struct sa *sa, const struct sa_group *g)
{
	if (!sa->f->settings.mlid_sharing || !(sm_is_learning(sa->sm) || g->awaited) ||
	    !ib_lid_is_mcast(g->rec.mlid))
		return NULL;
	return base_idtable_get(&sa->mlids, g->rec.mlid - IB_LID_MCAST_FIRST);
}

/* An MLID that other groups have; all are shared in turn. */
static struct sa_mlid *mlid_shared(struct sa *sa)
{
	for (uint32_t n = 0; n < sa->mlids.size; n++) {
		struct sa_mlid *m =
		        base_idtable_get(&sa->mlids, sa->next_shared++ % sa->mlids.size);

		if (m)
			return m;
	}
	return NULL;
}

static void mlid_free_unused(struct sa *sa, struct sa_mlid *m)
{
	if (!TAILQ_EMPTY(&m->groups))
		return;
	sm_route_mcast(sa->sm, m->mlid, NULL, 0);
	base_idtable_remove(&sa->mlids, m->mlid - IB_LID_MCAST_FIRST);
	free(m);
}

/* ---- groups ---- */

static bool has_come(const struct sa_group *g)
{
	return !g->awaited || g->n_members;
}

/* Frees an MLID whose groups all wait in vain for their members. False: there is none. */
static bool free_awaited(struct sa *sa)
{
	for (uint32_t i = 0; i < sa->mlids.size; i++) {
		struct sa_mlid *m = base_idtable_get(&sa->mlids, i);
		struct sa_group *g = m ? TAILQ_FIRST(&m->groups) : NULL, *next;

		while (g && !has_come(g))
			g = TAILQ_NEXT(g, of_mlid);
		if (!m || g)
			continue;
		for (g = TAILQ_FIRST(&m->groups); g; g = next) {
			next = TAILQ_NEXT(g, of_mlid);
			sa_group_free(sa, g);
		}
		return true;
	}
	return false;
}

enum sa_status sa_group_add(struct sa *sa, struct sa_group *g)
{
	struct sa_mlid *m = mlid_shared_again(sa, g);

	if (!m)
		m = mlid_new(sa, mlid_wanted(sa, g->rec.mlid));
	if (!m && free_awaited(sa))
		m = mlid_new(sa, 0);
	if (!m && sa->f->settings.mlid_sharing)
		m = mlid_shared(sa);
	if (!m)
		return SA_NO_RESOURCES;
	if (base_hash_add(&sa->groups, &g->node, base_hash_of(&g->rec.mgid, 16, 0))) {
		mlid_free_unused(sa, m);
		return SA_NO_RESOURCES;
	}
	TAILQ_INSERT_TAIL(&m->groups, g, of_mlid);
	g->mlid = m;
	g->rec.mlid = m->mlid;
	sa->changes++;
	return SA_OK;
}

static unsigned list_members(const struct sa_group *g, struct sm_member *m)
{
	for (unsigned i = 0; i < g->n_members; i++)
		m[i] = (struct sm_member){ .port = g->member[i].port,
			                   .receives = g->member[i].join_state & RECEIVES };
	return g->n_members;
}

/* Has the SM route the MLID: its tree leads to the members of all its groups. */
static int mlid_route(struct sa *sa, const struct sa_mlid *mlid)
{
	const struct sa_group *g;
	struct sm_member *m;
	unsigned n = 0;
	int ret;

	for (g = TAILQ_FIRST(&mlid->groups); g; g = TAILQ_NEXT(g, of_mlid))
		n += g->n_members;
	m = calloc(n + 1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	n = 0;
	for (g = TAILQ_FIRST(&mlid->groups); g; g = TAILQ_NEXT(g, of_mlid))
		n += list_members(g, m + n);
	ret = sm_route_mcast(sa->sm, mlid->mlid, m, n);
	free(m);
	return ret;
}

int sa_group_route(struct sa *sa, const struct sa_group *g)
{
	return mlid_route(sa, g->mlid);
}

void sa_group_free(struct sa *sa, struct sa_group *g)
{
	struct sa_mlid *m = g->mlid;

	sa->changes++;
	TAILQ_REMOVE(&m->groups, g, of_mlid);
	base_hash_remove(&sa->groups, &g->node);
	if (!TAILQ_EMPTY(&m->groups) && mlid_route(sa, m))
		base_log_warning(
		        sa, "MLID 0x%04x: the tables lead to members of a group that is no more",
		        m->mlid);
	mlid_free_unused(sa, m);
	free(g->member);
	free(g);
}

void sa_group_forget(struct sa *sa, struct sa_group *g)
{
	struct sa_mlid *m = g->mlid;

	TAILQ_REMOVE(&m->groups, g, of_mlid);
	base_hash_remove(&sa->groups, &g->node);
	if (TAILQ_EMPTY(&m->groups)) {
		base_idtable_remove(&sa->mlids, m->mlid - IB_LID_MCAST_FIRST);
		free(m);
	}
	free(g->member);
	free(g);
}

uint8_t sa_group_sl(const struct sa *sa, uint8_t sl)
{
	int must = sm_group_sl(sa->sm);

	return must < 0 ? sl : (uint8_t)must;
}

/* ---- groups that are there from the start ---- */

/* The MTU and rate that all HCA ports have, so that each can join. */
static void common_values(const struct fabric *f, uint8_t *mtu, uint8_t *rate)
{
	unsigned mbps = UINT32_MAX;

	*mtu = (uint8_t)f->settings.mtu;
	for (unsigned i = 0; i < f->n_ib_ports; i++) {
		const struct fabric_port *p = f->hca_port[i];

		if (!p->peer)
			continue;
		if (p->mtu < *mtu)
			*mtu = p->mtu;
		if (sa_port_mbps(p) < mbps)
			mbps = sa_port_mbps(p);
	}
	*rate = mbps == UINT32_MAX ? (uint8_t)IBV_RATE_10_GBPS : sa_rate_of(mbps);
}

/* The record of a group that the partitions have. */
static struct wire_mcmember record_of(const struct sa *sa, const struct partition_group *p,
                                      uint16_t mlid)
{
	uint8_t scope = p->mgid.raw[1] & 0xF;

	return (struct wire_mcmember){
		.mgid = p->mgid,
		.mlid = mlid,
		.scope = scope,
		.pkey = p->pkey,
		.qkey = p->qkey,
		.mtu = p->mtu,
		.rate = p->rate,
		.sl = sa_group_sl(sa, p->sl),
		.tclass = p->tclass,
		.flow_label = p->flow_label,
		.hop_limit = scope == WIRE_SCOPE_LINK ? 0 : UINT8_MAX,
		.life = DEFAULT_LIFE,
	};
}

/* Creates a permanent group, or makes the existing one permanent; if nobody has joined that one
 * yet, with the values that the partitions have now. */
static int add_well_known(struct sa *sa, const struct partition_group *p)
{
	struct sa_group *g = sa_group_find(sa, &p->mgid);

	if (g) {
		if (g->awaited && !g->n_members)
			g->rec = record_of(sa, p, g->rec.mlid);
		g->awaited = false;
		g->well_known = true;
		return 0;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->well_known = true;
	g->rec = record_of(sa, p, 0);
	if (sa_group_add(sa, g)) {
		free(g);
		return -ENOSPC;
	}
	return 0;
}

/* Without partitions: creates the IPoIB broadcast group of the default partition. */
static int add_broadcast(struct sa *sa)
{
	struct partition_group g = { .pkey = IB_PKEY_DEFAULT, .qkey = IPOIB_QKEY };

	wire_mgid_broadcast(&g.mgid, IB_PKEY_DEFAULT);
	common_values(sa->f, &g.mtu, &g.rate);
	return add_well_known(sa, &g);
}

int sa_groups_add_well_known(struct sa *sa)
{
	const struct partitions *p = sm_partitions(sa->sm);
	int ret = p ? 0 : add_broadcast(sa);

	for (unsigned i = 0; p && i < p->n_groups && !ret; i++)
		ret = add_well_known(sa, &p->group[i]);
	return ret;
}

/* ---- groups that were there before ---- */

/* Whether the MLID can be had, and some partition has the P_Key. */
static bool can_restore(const struct sa *sa, const struct wire_mcmember *rec)
{
	const struct partitions *p = sm_partitions(sa->sm);
	uint32_t id = rec->mlid - IB_LID_MCAST_FIRST;
	bool has_pkey = !p;

	for (unsigned i = 0; !has_pkey && i < p->n; i++)
		has_pkey = p->partition[i].pkey == (rec->pkey & IB_PKEY_BASE_MASK);
	if (!has_pkey || sa_group_find(sa, &rec->mgid))
		return false;
	return id < sa->f->settings.mft_capacity &&
	       (sa->f->settings.mlid_sharing || !base_idtable_get(&sa->mlids, id));
}

void sa_groups_restore(struct sa *sa, const struct subnet_state *state,
                       struct subnet_state_misfits *misfits)
{
	for (uint32_t i = 0; i < state->n_groups; i++) {
		const struct state_group *from = &state->group[i];
		struct sa_group *g = NULL;

		if (can_restore(sa, &from->rec))
			g = calloc(1, sizeof(*g));
		if (g) {
			g->rec = from->rec;
			g->rec.sl = sa_group_sl(sa, from->rec.sl);
			g->awaited = true;
		}
		if (!g || sa_group_add(sa, g)) {
			subnet_state_note_misfit(misfits, from->line);
			free(g);
		}
	}
}

/* ---- groups that requests create ---- */

/* Whether a new group may have this MGID (section 15.2.5.17; any scope, as in OpenSM). */
static bool valid_mgid(const struct ib_gid *mgid)
{
	unsigned flags = mgid->raw[1] >> 4, scope = mgid->raw[1] & 0xF;
	unsigned signature = mgid->raw[2] << 8 | mgid->raw[3];

	if (!ib_gid_is_mcast(mgid))
		return false;
	if (signature == WIRE_SIGNATURE_IPV4 || signature == WIRE_SIGNATURE_IPV6)
		return true;
	if (flags > 1)
		return false;
	/* the signature of MGIDs that the SA chooses: only the SA creates those of this subnet */
	return signature != WIRE_SIGNATURE_CM || (flags == 1 && scope != WIRE_SCOPE_LINK);
}

/* It has the subnet's prefix (section 4.1.1, 14): other subnets' SAs choose others, also where a
 * router has the groups of two subnets in common. */
static void make_up_mgid(struct sa *sa, uint64_t mask, struct wire_mcmember *rec)
{
	uint8_t scope = mask & SA_MCM_SCOPE ? rec->scope & 0xF : WIRE_SCOPE_LINK;
	const uint64_t prefix = htobe64(sa->f->subnet_prefix);

	do {
		uint32_t n = htobe32(++sa->made_up);

		rec->mgid = (struct ib_gid){ { 0xFF, 0x10 | scope, WIRE_SIGNATURE_CM >> 8,
			                       WIRE_SIGNATURE_CM & 0xFF } };
		memcpy(rec->mgid.raw + 4, &prefix, sizeof(prefix));
		memcpy(rec->mgid.raw + 12, &n, sizeof(n));
	} while (sa_group_find(sa, &rec->mgid));
}

/* The MTU of a new group: the best that the request selects and the port has. Values are valid. */
static enum sa_status choose_mtu(uint64_t mask, const struct wire_mcmember *r, uint8_t best,
                                 uint8_t *mtu)
{
	*mtu = best;
	if (!asks_for(mask, SA_MCM_MTU | SA_MCM_MTU_SELECTOR))
		return SA_OK;
	switch (r->mtu_selector) {
	case SA_GREATER:
		return r->mtu >= best ? SA_REQ_INVALID : SA_OK;
	case SA_LESS:
		*mtu = r->mtu - 1 < best ? r->mtu - 1 : best;
		return *mtu < IBV_MTU_256 ? SA_REQ_INVALID : SA_OK;
	case SA_EXACTLY:
		*mtu = r->mtu;
		return r->mtu > best ? SA_REQ_INVALID : SA_OK;
	default:
		return SA_OK;
	}
}

static enum sa_status choose_rate(uint64_t mask, const struct wire_mcmember *r, uint8_t best,
                                  uint8_t *rate)
{
	unsigned want = wire_rate_to_mbps(r->rate), best_mbps = wire_rate_to_mbps(best);

	*rate = best;
	if (!asks_for(mask, SA_MCM_RATE | SA_MCM_RATE_SELECTOR))
		return SA_OK;
	switch (r->rate_selector) {
	case SA_GREATER:
		return want >= best_mbps ? SA_REQ_INVALID : SA_OK;
	case SA_LESS:
		if (want <= best_mbps)
			*rate = sa_rate_below(want);
		return *rate ? SA_OK : SA_REQ_INVALID;
	case SA_EXACTLY:
		*rate = r->rate;
		return want > best_mbps ? SA_REQ_INVALID : SA_OK;
	default:
		return SA_OK;
	}
}

bool sa_group_suits(const struct sa_group *g, const struct fabric_port *port)
{
	return port->mtu >= g->rec.mtu &&
	       wire_rate_to_mbps(sa_rate_of(sa_port_mbps(port))) >= wire_rate_to_mbps(g->rec.rate);
}

/* Whether the group's packets may leave the subnet. */
static bool is_wide(uint64_t mask, const struct wire_mcmember *rec)
{
	if (!ib_gid_is_zero(&rec->mgid))
		return fabric_mgid_is_wide(&rec->mgid);
	return mask & SA_MCM_SCOPE && rec->scope > WIRE_SCOPE_LINK;
}

/* The components by which a group of IPoIB is like its broadcast group (RFC 4391, section 4). */
#define LIKE_BROADCAST \
	(SA_MCM_QKEY | SA_MCM_TCLASS | SA_MCM_SL | SA_MCM_FLOW_LABEL | SA_MCM_HOP_LIMIT)

/* As OpenSM has it (ipoib_mcgroup_creation_validation): a group with a signature of IPoIB needs the
 * broadcast group of its scope and partition, and may not ask for other values. */
static bool fits_broadcast(const struct sa *sa, uint64_t mask, const struct wire_mcmember *rec)
{
	const unsigned signature = rec->mgid.raw[2] << 8 | rec->mgid.raw[3];
	const struct sa_group *g;
	struct ib_gid mgid;

	if (signature != WIRE_SIGNATURE_IPV4 && signature != WIRE_SIGNATURE_IPV6)
		return true;
	wire_mgid_broadcast(&mgid, (uint16_t)(rec->mgid.raw[4] << 8 | rec->mgid.raw[5]));
	mgid.raw[1] = 0x10 | (rec->mgid.raw[1] & 0xF);
	if (ib_gid_equal(&mgid, &rec->mgid))
		return true;
	g = sa_group_find(sa, &mgid);
	return g && ib_pkey_match(rec->pkey, g->rec.pkey) &&
	       wire_match(&wire_mcmember_layout, mask & LIKE_BROADCAST, rec, &g->rec);
}

/* Makes the record of the group that the request of @port asks for; its MGID may be 0. */
static enum sa_status plan_group(const struct sa *sa, const struct fabric_port *port, uint64_t mask,
                                 const struct wire_mcmember *rec, struct wire_mcmember *g)
{
	enum sa_status status;

	if (!(rec->join_state & FULL_STATES))
		return SA_REQ_INVALID;
	if (!asks_for(mask, CREATE_MASK))
		return SA_INSUFFICIENT_COMPONENTS;
	if (!ib_gid_is_zero(&rec->mgid) && !valid_mgid(&rec->mgid))
		return SA_REQ_INVALID;
	if (!sa_has_pkey(port, rec->pkey) || !fits_broadcast(sa, mask, rec))
		return SA_REQ_INVALID;
	*g = *rec;
	g->port_gid = (struct ib_gid){ 0 };
	g->join_state = g->proxy_join = 0;
	if (!(mask & SA_MCM_MLID))
		g->mlid = 0;
	if (!(mask & SA_MCM_HOP_LIMIT)) /* the SA chooses an MGID of the scope that is asked for */
		g->hop_limit = is_wide(mask, rec) ? UINT8_MAX : 0;
	if (!(mask & SA_MCM_LIFE))
		g->life = DEFAULT_LIFE;
	g->life &= 0x3F;
	status = choose_mtu(mask, rec, port->mtu, &g->mtu);
	if (status == SA_OK)
		status = choose_rate(mask, rec, sa_rate_of(sa_port_mbps(port)), &g->rate);
	return status;
}

bool sa_group_may_create(const struct sa *sa, const struct fabric_port *port, uint64_t mask,
                         const struct wire_mcmember *rec)
{
	struct wire_mcmember g;

	return plan_group(sa, port, mask, rec, &g) == SA_OK;
}

enum sa_status sa_group_create(struct sa *sa, struct fabric_port *port, uint64_t mask,
                               struct wire_mcmember *rec, struct sa_group **out)
{
	struct wire_mcmember planned;
	struct sa_group *g;
	enum sa_status status = plan_group(sa, port, mask, rec, &planned);

	if (status != SA_OK)
		return status;
	if (ib_gid_is_zero(&rec->mgid)) /* the SA is to choose it */
		make_up_mgid(sa, mask, rec);
	g = calloc(1, sizeof(*g));
	if (!g)
		return SA_NO_RESOURCES;
	g->rec = planned;
	g->rec.mgid = rec->mgid;
	g->rec.scope = rec->mgid.raw[1] & 0xF;
	status = sa_group_add(sa, g);
	if (status != SA_OK) {
		free(g);
		return status;
	}
	*out = g;
	return SA_OK;
}
