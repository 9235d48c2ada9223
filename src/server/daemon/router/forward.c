/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that leave by a router's port for another subnet, and packets that come in by it. A
 * packet for a group is taken only from the router by which its sender's subnet is reached: so one
 * copy comes into each subnet, and none goes round, however many routers there are. The hop limit
 * ends what goes round because routes change meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "daemon/router/router.h"
#include "fabric/forwarding/flow.h"
#include "fabric/forwarding/mcast_path.h"

#define MOST_FLOWS  1024
#define MOST_QUEUED (4 << 20)   /* bytes that wait for the other end; further packets are lost */
#define MOST_HELD   (1 << 20)   /* so many, and senders wait, */
#define LEAST_HELD  (256 << 10) /* until so few are left; */
#define STALL_NS    (100 * DAEMON_NS_PER_MS) /* or for so long */

/* The way of packets that come in. */
struct router_flow {
	struct base_hash_node node;
	TAILQ_ENTRY(router_flow) entry;
	struct fabric_flow *flow;
};

static void drop(struct daemon_router *r, enum router_drop why)
{
	r->dropped[why]++;
}

/* Whether the port takes part in the packets' partition (section 10.9.3). */
static bool admits(const struct fabric_port *p, uint16_t pkey)
{
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if (ib_pkey_match(p->pkey[i], pkey))
			return true;
	return false;
}

/* ---- out ---- */

/* Senders wait for an end that takes packets, though slowly; others' packets get lost. */
static void set_full(struct daemon_router *r, bool is)
{
	if (r->is_full == is)
		return;
	r->is_full = is;
	r->all->n_full += is ? 1 : -1u;
	if (r->all->n_full == is)
		daemon_detour_hold_back(r->all->detour, is);
}

static void on_stall(struct base_timer *t)
{
	struct daemon_router *r = container_of(t, struct daemon_router, stall);

	r->is_stalled = true;
	set_full(r, false);
}

static void look_at_queue(struct daemon_router *r)
{
	if (r->is_full || r->is_stalled || r->link.waiting_bytes < MOST_HELD)
		return;
	set_full(r, true);
	base_timer_set_in(&r->all->loop->timers, &r->stall, STALL_NS, on_stall);
}

/* The other end has taken some: of type router_link.drained. */
static void on_drained(struct router_link *l)
{
	struct daemon_router *r = container_of(l, struct daemon_router, link);

	if (r->owes_routes && r->is_up)
		router_routes_tell(r);
	if (l->waiting_bytes > LEAST_HELD)
		return;
	base_timer_stop(&r->stall);
	r->is_stalled = false;
	set_full(r, false);
}

static void send_on(struct daemon_router *r, const struct daemon_leaving *in)
{
	const struct control_detour *d = in->packet;
	const struct router_packet p = {
		.sgid = *in->sgid,
		.dgid = in->flow->key.dgid,
		.class_flow = d->class_flow,
		.dest_qpn = d->h.bth.dest_qpn,
		.src_qpn = d->src_qpn,
		.qkey = d->h.deth.qkey,
		.imm = d->h.imm_data,
		.pkey = d->h.bth.pkey,
		.hop_limit = d->hop_limit - 1,
		.sl = d->sl,
		.has_imm = d->h.bth.opcode == WIRE_OPCODE_UD_SEND_ONLY_IMM,
		.solicited = d->h.bth.solicited,
		.payload_bytes = d->payload_bytes,
	};

	if (d->hop_limit <= 1) {
		drop(r, ROUTER_DROP_HOPS);
	} else if (!admits(r->port, d->h.bth.pkey)) {
		drop(r, ROUTER_DROP_PKEY);
	} else if (r->link.waiting_bytes > MOST_QUEUED ||
	           !router_link_send_packet(&r->link, &p, in->payload)) {
		drop(r, ROUTER_DROP_FULL);
	} else {
		r->sent++;
		look_at_queue(r);
	}
}

/* Whether the other end is to have the packet: it wants the group's, or reaches the subnet. */
static bool is_wanted(struct daemon_router *r, const struct ib_gid *dgid)
{
	if (ib_gid_is_mcast(dgid))
		return r->is_up && router_group_is_wanted(r, dgid);
	for (uint32_t i = 0; r->is_up && i < r->told.n; i++)
		if (r->told.route[i].prefix == fabric_prefix_of(dgid))
			return true;
	drop(r, ROUTER_DROP_ROUTE);
	return false;
}

/* Whether the packet may leave: with a GRH, from this subnet or through it, as one that was sent
 * properly. */
static bool is_to_leave(const struct fabric *f, const struct daemon_leaving *in)
{
	const struct fabric_flow_key *key = &in->flow->key;
	const bool is_mcast = ib_lid_is_mcast(key->dlid);

	return in->packet->flags & SHM_ARRIVAL_GRH && key->is_global &&
	       (in->is_foreign || fabric_prefix_of(in->sgid) == f->subnet_prefix) &&
	       is_mcast == ib_gid_is_mcast(&key->dgid) &&
	       (!is_mcast || in->packet->h.bth.dest_qpn == IB_QPN_MCAST);
}

/* Whether the other end is in the subnet from which the packet has come in. */
static bool leads_back(const struct daemon_router *r, const struct daemon_leaving *in)
{
	return in->is_foreign &&
	       r->prefix == daemon_router_of(r->all, in->flow->from->router)->prefix;
}

/* A packet has come to routers' ports: of type daemon_detour.leave. */
static void on_leaving(void *arg, const struct daemon_leaving *in)
{
	struct daemon_routers *all = arg;

	if (!is_to_leave(all->f, in))
		return;
	for (unsigned i = 0; i < all->f->routers->n; i++) {
		struct daemon_router *r = &all->of[i];

		if (!(in->flow->path->routers & fabric_router_bit(r->port)) || leads_back(r, in) ||
		    (in->cut && in->cut[r->port->index]))
			continue;
		if (is_wanted(r, &in->flow->key.dgid))
			send_on(r, in);
	}
}

/* ---- in ---- */

static void flow_free(struct daemon_router *r, struct router_flow *w)
{
	base_hash_remove(&r->flows, &w->node);
	TAILQ_REMOVE(&r->by_use, w, entry);
	fabric_flow_remove(r->all->f, w->flow);
	free(w);
}

static uint64_t hash_of(const struct fabric_flow_key *key)
{
	return base_hash_of(&key->dgid, sizeof(key->dgid),
	                    (uint64_t)key->dlid << 24 | (uint64_t)key->pkey << 8 | key->sl);
}

static bool is_same(const struct fabric_flow_key *a, const struct fabric_flow_key *b)
{
	return a->dlid == b->dlid && a->pkey == b->pkey && a->sl == b->sl &&
	       ib_gid_equal(&a->dgid, &b->dgid);
}

static struct router_flow *flow_find(const struct daemon_router *r,
                                     const struct fabric_flow_key *key)
{
	struct router_flow *w;

	BASE_HASH_FOREACH(w, &r->flows, hash_of(key), node)
		if (is_same(&w->flow->key, key))
			return w;
	return NULL;
}

/* NULL: no memory, or no flow is free. */
static struct router_flow *flow_new(struct daemon_router *r, const struct fabric_flow_key *key)
{
	struct router_flow *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	if (r->flows.n >= MOST_FLOWS)
		flow_free(r, TAILQ_FIRST(&r->by_use));
	if (fabric_flow_add(r->all->f, r->port, key, &w->flow)) {
		free(w);
		return NULL;
	}
	if (base_hash_add(&r->flows, &w->node, hash_of(key))) {
		fabric_flow_remove(r->all->f, w->flow);
		free(w);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&r->by_use, w, entry);
	return w;
}

static struct fabric_flow *flow_of(struct daemon_router *r, const struct fabric_flow_key *key)
{
	struct router_flow *w = flow_find(r, key);

	if (!w)
		return (w = flow_new(r, key)) ? w->flow : NULL;
	TAILQ_REMOVE(&r->by_use, w, entry);
	TAILQ_INSERT_TAIL(&r->by_use, w, entry);
	return w->flow;
}

/* The LID to which a packet for a group goes on, and its service level; 0: it is not taken. */
static uint16_t mlid_of(struct daemon_router *r, const struct router_packet *p, uint8_t *sl)
{
	const struct fabric_route *back = fabric_route_find(r->all->f, fabric_prefix_of(&p->sgid));

	if (!back || back->router != r->port->router || !fabric_mgid_is_wide(&p->dgid))
		return 0;
	return router_group_mlid(r, &p->dgid, sl);
}

/* Likewise for one port: here, or in a subnet that another router reaches. */
static uint16_t lid_of(struct daemon_router *r, const struct ib_gid *dgid)
{
	struct fabric *f = r->all->f;
	const struct fabric_port *port = fabric_port_by_gid(f, dgid);
	const struct fabric_route *on = NULL;

	if (fabric_gid_is_beyond(f, dgid))
		on = fabric_route_find(f, fabric_prefix_of(dgid));
	if (on && on->router != r->port->router)
		port = f->routers->port[on->router - 1];
	return port ? port->lid : 0;
}

static void describe(const struct router_packet *p, const struct fabric_flow *flow,
                     struct control_detour *d)
{
	*d = (struct control_detour){
		.src_qpn = p->src_qpn,
		.flow = flow->id,
		.payload_bytes = p->payload_bytes,
		.class_flow = p->class_flow,
		.h.bth = { .opcode = p->has_imm ? WIRE_OPCODE_UD_SEND_ONLY_IMM
		                                : WIRE_OPCODE_UD_SEND_ONLY,
		           .solicited = p->solicited,
		           .migrated = true,
		           .pkey = p->pkey,
		           .dest_qpn = p->dest_qpn },
		.h.deth = { .qkey = p->qkey, .src_qpn = p->src_qpn },
		.h.imm_data = p->imm,
		.hop_limit = p->hop_limit,
		.dgid = p->dgid,
		.slid = flow->from->lid,
		.sl = flow->key.sl,
		.flags = SHM_ARRIVAL_GRH,
	};
	if (p->has_imm)
		d->flags |= SHM_ARRIVAL_IMM;
	if (p->solicited)
		d->flags |= SHM_ARRIVAL_SOLICITED;
}

static bool is_sound(const struct router_packet *p)
{
	return p->payload_bytes <= WIRE_ROCE_MAX_PAYLOAD && p->has_imm <= 1 && p->solicited <= 1 &&
	       p->sl < IB_SLS && p->pkey & IB_PKEY_BASE_MASK && p->src_qpn <= IB_QPN_MCAST &&
	       p->dest_qpn <= IB_QPN_MCAST && p->hop_limit;
}

void router_forward_in(struct daemon_router *r, const struct router_packet *p, const void *payload)
{
	struct fabric_flow_key key = {
		.qpn = IB_QPN_GSI, .is_global = true, .dgid = p->dgid, .pkey = p->pkey, .sl = p->sl
	};
	struct control_detour d;
	struct fabric_flow *flow;

	if (!fabric_gid_is_beyond(r->all->f, &p->sgid)) {
		drop(r, ROUTER_DROP_ROUTE);
		return;
	}
	if (!is_sound(p) || !admits(r->port, p->pkey)) {
		drop(r, ROUTER_DROP_PKEY);
		return;
	}
	key.dlid = ib_gid_is_mcast(&p->dgid) ? mlid_of(r, p, &key.sl) : lid_of(r, &p->dgid);
	flow = key.dlid ? flow_of(r, &key) : NULL;
	if (!flow) {
		drop(r, ROUTER_DROP_ROUTE);
		return;
	}
	describe(p, flow, &d);
	r->received++;
	daemon_detour_bring(r->all->detour, flow, &d, payload, &p->sgid);
}

/* ---- life ---- */

static bool is_busy(struct router_link *l)
{
	struct daemon_router *r = container_of(l, struct daemon_router, link);

	return daemon_detour_is_full(r->all->detour);
}

void router_forward_init(struct daemon_routers *all)
{
	all->detour->leave = on_leaving;
	all->detour->leave_arg = all;
	for (unsigned i = 0; i < FABRIC_ROUTERS; i++) {
		TAILQ_INIT(&all->of[i].by_use);
		all->of[i].link.is_busy = is_busy;
		all->of[i].link.drained = on_drained;
	}
}

void router_forward_end(struct daemon_router *r)
{
	struct router_flow *w;

	base_timer_stop(&r->stall);
	set_full(r, false);
	r->is_stalled = false;
	while ((w = TAILQ_FIRST(&r->by_use)))
		flow_free(r, w);
	base_hash_fini(&r->flows);
}
