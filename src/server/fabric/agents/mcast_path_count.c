/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adds what senders have counted to the counters of the ports along the path, and of the ports
 * that drop packets: see mcast_path.h.
 */
#include <infiniband/verbs.h>

#include "fabric/agents/traps.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/model/attach_table.h"
#include "fabric/model/lanes.h"

/* Bytes that every packet has beside its payload: LRH and ICRC, BTH; and those that some have. */
#define HEADER_BYTES (8 + 4 + 12)
#define DETH_BYTES   8
#define XRCETH_BYTES 4

#define LOOK_FOR_GROUP_WORK 2 /* of fabric_flows.work: whether anybody is attached */

/* The packets that the sender has sent since the last count. */
struct sent {
	uint64_t packets, mcast, bytes;
	uint64_t headers; /* bytes beside the payload */
	bool is_ud;
	uint8_t sl;
	uint32_t n_switches;
	const struct fabric_mishap *mishap; /* NULL: they arrive */
};

/* The mark of a switch or of an HCA's port: that they do not come there. */
static uint8_t *mark_of(const struct sent *more, const struct fabric_port *at)
{
	return at->node->type == FABRIC_SWITCH
	               ? &more->mishap->behind[at->node->index]
	               : &more->mishap->behind[more->n_switches + at->index];
}

static bool come_to(const struct sent *more, const struct fabric_port *at)
{
	return !more->mishap || !*mark_of(more, at);
}

/* Whether they are received at the other end of the link. */
static bool are_received(const struct sent *more, const struct fabric_port *out)
{
	enum fabric_fate fate = FABRIC_FATE_ARRIVES;

	if (more->mishap)
		fate = more->mishap->fate(more->mishap->arg, out);
	if (fate != FABRIC_FATE_ARRIVES && out->peer)
		*mark_of(more, out->peer) = 1;
	return fate != FABRIC_FATE_LOST;
}

static uint64_t header_bytes(const struct fabric_flow_key *key, uint8_t type)
{
	return HEADER_BYTES + (type == IBV_QPT_UD ? DETH_BYTES : 0) +
	       (type == IBV_QPT_XRC_SEND ? XRCETH_BYTES : 0) + (key->is_global ? IB_GRH_BYTES : 0);
}

/* Counts by SL and lane; the packets of SL 0 and lane 0 are the rest of the port's count. */
static void count_lanes(struct fabric_port *out, const struct fabric_port *to, uint8_t vl,
                        const struct sent *more)
{
	struct fabric_lanes *xmit, *recv;

	if (!vl && !more->sl)
		return;
	xmit = fabric_lanes_get(out);
	recv = to ? fabric_lanes_get(out->peer) : NULL;
	if (xmit)
		xmit->counts.xmit_bytes[more->sl] += more->bytes + more->headers;
	if (!recv)
		return;
	recv->counts.recv_bytes[more->sl] += more->bytes + more->headers;
	if (more->is_ud) {
		recv->counts.recv_ud_packets[vl] += more->packets;
		recv->counts.recv_ud_bytes[vl] += more->bytes + more->headers;
	}
}

static void count_link(struct fabric_port *out, uint8_t vl, const struct sent *more)
{
	struct fabric_port *to;

	if (vl == FABRIC_LANE_NONE || (out->node->type == FABRIC_SWITCH && !come_to(more, out)))
		return;
	to = are_received(more, out) ? out->peer : NULL;
	out->stats.xmit_packets += more->packets;
	out->stats.xmit_mcast += more->mcast;
	out->stats.xmit_bytes += more->bytes;
	out->stats.xmit_headers += more->headers;
	if (to) {
		to->stats.recv_packets += more->packets;
		to->stats.recv_mcast += more->mcast;
		to->stats.recv_bytes += more->bytes;
		to->stats.recv_headers += more->headers;
		to->stats.recv_ud_packets += more->is_ud ? more->packets : 0;
		to->stats.recv_ud_bytes += more->is_ud ? more->bytes + more->headers : 0;
	}
	count_lanes(out, to, vl, more);
}

/* Counts packets that @at drops; if their partition is the reason, sends a trap too. */
static void count_loss(struct fabric *f, const struct fabric_flow *flow, struct fabric_port *at,
                       enum fabric_loss why, const struct sent *more)
{
	const struct fabric_trap_packet packet = { .slid = flow->from->lid,
		                                   .dlid = flow->key.dlid,
		                                   .src_qpn = flow->key.qpn,
		                                   .pkey = flow->path->pkey };

	at->stats.lost[why] += more->packets;
	if (why == FABRIC_LOST_XMIT_PKEY || why == FABRIC_LOST_RCV_PKEY)
		fabric_trap_switch_p_key(f, at, &packet);
}

static void count_losses(struct fabric *f, const struct fabric_flow *flow, const struct sent *more)
{
	const struct fabric_mcast_path *s = flow->path;

	for (uint32_t i = 0; i < s->n_losses; i++) {
		const struct fabric_mcast_path_loss *l = &s->loss[i];
		struct fabric_port *at = l->at->num ? l->at : flow->from->peer;

		if (at->node->type == FABRIC_SWITCH && !come_to(more, at))
			continue;
		/* a switch sends no packet back to where it came from, but has no lane for some
		 * that came in there */
		if (!s->ingress || l->why == FABRIC_LOST_VL || l->at->peer != flow->from)
			count_loss(f, flow, at, l->why, more);
	}
}

/* Whether a queue pair of the port's HCA is attached to the group of the flow. */
static bool is_attached(const struct fabric *f, const struct fabric_flow *flow,
                        const struct fabric_port *at)
{
	return fabric_attach_find(f, at->node->hca, &flow->key.dgid);
}

/* Counts packets to a group that come to no other port, or to one where nobody is attached. */
static void count_in_vain(const struct fabric *f, const struct fabric_flow *flow,
                          const struct sent *more)
{
	const struct fabric_mcast_path *s = flow->path;
	bool is_heard = false;

	for (uint32_t i = 0; i < s->n_reached; i++) {
		if (s->reached[i] == flow->from)
			continue;
		is_heard = true;
		if (come_to(more, s->reached[i]) && !is_attached(f, flow, s->reached[i]))
			s->reached[i]->stats.mcast_unattached += more->packets;
	}
	if (!is_heard)
		flow->from->stats.mcast_unheard += more->packets;
}

/* Counts along the first link and the links of the shared path. */
static void count_path(struct fabric *f, const struct fabric_flow *flow, const struct sent *more)
{
	const struct fabric_mcast_path *s = flow->path;

	if (s->ingress)
		count_link(flow->from, flow->vl, more);
	if (flow->start == FABRIC_FLOW_BARRED) {
		if (!flow->from->peer || !come_to(more, flow->from->peer))
			return;
		count_loss(f, flow, flow->from->peer, FABRIC_LOST_RCV_PKEY, more);
		return;
	}
	for (uint32_t i = 0; i < s->n_hops; i++)
		if (!s->ingress || s->hop[i].out->peer != flow->from)
			count_link(s->hop[i].out, s->hop[i].vl, more);
	count_losses(f, flow, more);
	if (more->mcast && !flow->from->ethernet)
		count_in_vain(f, flow, more);
}

bool fabric_flow_has_more(const struct fabric *f, uint32_t id)
{
	const struct fabric_flow_counted *old = &f->flows->counted[id];
	struct shm_flow_count *c = shm_flow_count_at(f->region, id);

	return atomic_load_explicit(&c->packets, memory_order_relaxed) != old->packets ||
	       atomic_load_explicit(&c->bytes, memory_order_relaxed) != old->bytes ||
	       atomic_load_explicit(&c->back_packets, memory_order_relaxed) != old->back_packets;
}

/* The packets that have come back since the last count. */
static struct sent more_back(const struct fabric *f, const struct fabric_flow *flow)
{
	const struct fabric_flow_counted *old = &f->flows->counted[flow->id];
	const struct shm_flow_count *c = shm_flow_count_at(f->region, flow->id);

	return (struct sent){
		.packets = atomic_load_explicit((_Atomic uint64_t *)&c->back_packets,
		                                memory_order_relaxed) -
		           old->back_packets,
		.bytes = atomic_load_explicit((_Atomic uint64_t *)&c->back_bytes,
		                              memory_order_relaxed) -
		         old->back_bytes,
	};
}

uint8_t fabric_flow_type(const struct fabric *f, const struct fabric_flow *flow)
{
	return flow->key.pkey ? IBV_QPT_UD
	                      : shm_qp_at(f->region, SHM_QP_INDEX(flow->key.qpn))->type;
}

/* Whether the way back is still from where the flow leads to where it comes from. */
static bool back_fits(const struct fabric_flow *flow)
{
	const struct fabric_mcast_path *b = flow->back, *s = flow->path;

	return b && s->n_reached && b->from == s->reached[0] && b->key.dlid == flow->from->lid &&
	       b->pkey == s->pkey;
}

bool fabric_flow_find_back(struct fabric *f, struct fabric_flow *flow)
{
	const uint8_t type = fabric_flow_type(f, flow);
	const struct fabric_flow_key key = { .qpn = flow->key.qpn,
		                             .dlid = flow->from->lid,
		                             .sl = flow->key.sl };
	struct sent more = more_back(f, flow);

	/* nobody responds to UD and UC, or in groups, even if a program has written so; on Ethernet
	 * there are no links to be found */
	if (!more.packets || (type != IBV_QPT_RC && type != IBV_QPT_XRC_SEND) || back_fits(flow) ||
	    !flow->path->n_reached || ib_lid_is_mcast(flow->key.dlid) || flow->from->ethernet)
		return false;
	if (flow->back)
		fabric_mcast_path_put(f, flow->back);
	if (fabric_mcast_path_get(f, flow->path->reached[0], &key, &flow->back))
		flow->back = NULL;
	return true;
}

/* Between Ethernet ports that meet in memory there are no links. */
static void count_in_memory(struct fabric_port *from, struct fabric_port *to,
                            const struct sent *more)
{
	if (from == to)
		return;
	from->stats.xmit_packets += more->packets;
	from->stats.xmit_bytes += more->bytes;
	if (!are_received(more, from))
		return;
	to->stats.recv_packets += more->packets;
	to->stats.recv_bytes += more->bytes;
}

/* Whether its messages go from one Ethernet port to another in memory. */
static bool is_in_memory(const struct fabric_flow *flow)
{
	return flow->from->ethernet && !flow->path->roce && flow->path->n_reached;
}

static void count_back(struct fabric *f, struct fabric_flow *flow, uint8_t type)
{
	struct fabric_flow_counted *counted = &f->flows->counted[flow->id];
	struct sent more = more_back(f, flow);
	bool in_memory = is_in_memory(flow);

	if (!more.packets || (!in_memory && !back_fits(flow)))
		return;
	counted->back_packets += more.packets;
	counted->back_bytes += more.bytes;
	if (in_memory) {
		count_in_memory(flow->path->reached[0], flow->from, &more);
		return;
	}
	more.sl = flow->key.sl;
	more.headers = more.packets * header_bytes(&flow->key, type);
	for (uint32_t i = 0; i < flow->back->n_hops; i++)
		count_link(flow->back->hop[i].out, flow->back->hop[i].vl, &more);
}

/* Adds the packets that were sent to the counters of all ports that they cross. */
static void add_sent(struct fabric *f, struct fabric_flow *flow, uint8_t type, struct sent more)
{
	if (ib_lid_is_mcast(flow->key.dlid))
		more.mcast = more.packets;
	more.sl = flow->key.sl;
	more.is_ud = type == IBV_QPT_UD;
	more.headers = more.packets * header_bytes(&flow->key, type);
	more.n_switches = f->n_switches;
	flow->path->packets += more.packets;
	flow->path->bytes += more.bytes;
	if (flow->path->group) {
		flow->path->group->packets += more.packets;
		flow->path->group->bytes += more.bytes;
	}
	if (flow->path->roce) {
		flow->from->stats.xmit_packets += more.packets;
		flow->from->stats.xmit_bytes += more.bytes;
	} else if (is_in_memory(flow)) {
		count_in_memory(flow->from, flow->path->reached[0], &more);
	}
	if (flow->start != FABRIC_FLOW_CUT)
		count_path(f, flow, &more);
	f->flows->work += flow->path->n_hops;
	if (more.mcast)
		f->flows->work += LOOK_FOR_GROUP_WORK * flow->path->n_reached;
}

void fabric_flow_count(struct fabric *f, struct fabric_flow *flow)
{
	struct fabric_flow_counted *counted = &f->flows->counted[flow->id];
	struct shm_flow_count *c = shm_flow_count_at(f->region, flow->id);
	uint64_t packets = atomic_load_explicit(&c->packets, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed);
	struct sent more = { .packets = packets - counted->packets,
		             .bytes = bytes - counted->bytes };
	uint8_t type = fabric_flow_type(f, flow);

	count_back(f, flow, type);
	if (!more.packets && !more.bytes)
		return;
	counted->packets = packets;
	counted->bytes = bytes;
	add_sent(f, flow, type, more);
}

void fabric_flow_count_packet(struct fabric *f, struct fabric_flow *flow, uint32_t bytes,
                              const struct fabric_mishap *m)
{
	flow->passed_packets++;
	flow->passed_bytes += bytes;
	add_sent(f, flow, fabric_flow_type(f, flow),
	         (struct sent){ .packets = 1, .bytes = bytes, .mishap = m });
}
