/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adds what senders have counted to the counters of the ports along the path, and of the ports
 * that drop packets: see mcast_path.h.
 */
#include "fabric/mcast_path.h"
#include "fabric/traps.h"

/* What the sender has sent since the last count. */
struct sent {
	uint64_t packets, mcast, bytes;
};

static void count_link(struct fabric_port *out, const struct sent *more)
{
	out->stats.xmit_packets += more->packets;
	out->stats.xmit_mcast += more->mcast;
	out->stats.xmit_bytes += more->bytes;
	if (out->peer) {
		out->peer->stats.recv_packets += more->packets;
		out->peer->stats.recv_mcast += more->mcast;
		out->peer->stats.recv_bytes += more->bytes;
	}
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

		/* a switch sends no packet back to where it came from */
		if (!s->ingress || l->at->peer != flow->from)
			count_loss(f, flow, at, l->why, more);
	}
}

/* Counts along the first link and the links of the shared path. */
static void count_path(struct fabric *f, const struct fabric_flow *flow, const struct sent *more)
{
	const struct fabric_mcast_path *s = flow->path;

	if (s->ingress)
		count_link(flow->from, more);
	if (flow->start == FABRIC_FLOW_BARRED) {
		count_loss(f, flow, flow->from->peer, FABRIC_LOST_RCV_PKEY, more);
		return;
	}
	for (uint32_t i = 0; i < s->n_hops; i++)
		if (!s->ingress || s->hop[i]->peer != flow->from)
			count_link(s->hop[i], more);
	count_losses(f, flow, more);
}

/* What has come back since the last count. */
static struct sent more_back(const struct fabric *f, const struct fabric_flow *flow)
{
	const struct shm_flow_count *c = &f->region->flow_counts[flow->id];

	return (struct sent){
		.packets = atomic_load_explicit((_Atomic uint64_t *)&c->back_packets,
		                                memory_order_relaxed) -
		           flow->back_packets,
		.bytes = atomic_load_explicit((_Atomic uint64_t *)&c->back_bytes,
		                              memory_order_relaxed) -
		         flow->back_bytes,
	};
}

/* Whether the way back is still from where the flow leads to where it comes from. */
static bool back_fits(const struct fabric_flow *flow)
{
	const struct fabric_mcast_path *b = flow->back, *s = flow->path;

	return b && s->n_reached && b->from == s->reached[0] && b->key.dlid == flow->from->lid &&
	       b->pkey == s->pkey;
}

void fabric_flow_find_back(struct fabric *f, struct fabric_flow *flow)
{
	const struct fabric_flow_key key = { .qpn = flow->key.qpn, .dlid = flow->from->lid };
	struct sent more = more_back(f, flow);

	/* nobody responds in groups, or on Ethernet yet, whoever has written that */
	if (!more.packets || back_fits(flow) || !flow->path->n_reached ||
	    ib_lid_is_mcast(flow->key.dlid) || flow->from->ethernet)
		return;
	if (flow->back)
		fabric_mcast_path_put(f, flow->back);
	if (fabric_mcast_path_get(f, flow->path->reached[0], &key, &flow->back))
		flow->back = NULL;
}

static void count_back(struct fabric *f, struct fabric_flow *flow)
{
	struct sent more = more_back(f, flow);

	if (!more.packets || !back_fits(flow))
		return;
	flow->back_packets += more.packets;
	flow->back_bytes += more.bytes;
	for (uint32_t i = 0; i < flow->back->n_hops; i++)
		count_link(flow->back->hop[i], &more);
}

void fabric_flow_count(struct fabric *f, struct fabric_flow *flow)
{
	struct shm_flow_count *c = &f->region->flow_counts[flow->id];
	uint64_t packets = atomic_load_explicit(&c->packets, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed);
	struct sent more = { .packets = packets - flow->packets, .bytes = bytes - flow->bytes };

	count_back(f, flow);
	if (!more.packets && !more.bytes)
		return;
	if (ib_lid_is_mcast(flow->key.dlid))
		more.mcast = more.packets;
	flow->packets = packets;
	flow->bytes = bytes;
	if (flow->path->roce) {
		flow->from->stats.xmit_packets += more.packets;
		flow->from->stats.xmit_bytes += more.bytes;
	}
	if (flow->start != FABRIC_FLOW_CUT)
		count_path(f, flow, &more);
}
