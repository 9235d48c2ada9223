/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How MADs travel: see mads.h. Directed routes are those of section 14.2.2 of the specification,
 * volume 1: the hop pointer says where on its path a packet is. Each switch advances it and writes
 * the port by which the packet came to the return path, which the response follows back.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/agents/mads.h"
#include "fabric/agents/pma_samples.h"
#include "fabric/agents/traps.h"
#include "fabric/forwarding/collect.h"
#include "fabric/model/lanes.h"

#define DIRECTION_BIT 0x80 /* of the status' high byte */

static bool is_directed(const struct fabric_mad *mad)
{
	return mad->data[1] == MAD_CLASS_SUBN_DIRECTED;
}

static bool is_smp(const struct fabric_mad *mad)
{
	return is_directed(mad) || mad->data[1] == MAD_CLASS_SUBN_LID;
}

static uint16_t get16(const uint8_t *d)
{
	return (uint16_t)(d[0] << 8 | d[1]);
}

static struct fabric_port *no_route(struct fabric *f)
{
	f->mads->stats.no_route++;
	return NULL;
}

static struct fabric_port *bad_path(struct fabric *f)
{
	f->mads->stats.bad_path++;
	return NULL;
}

/* Crosses the link of port @num of @node, in any state but DOWN. The port at the far end. */
static struct fabric_port *cross(struct fabric *f, struct fabric_node *node, unsigned num)
{
	if (num < 1 || num > node->n_ports || !node->port[num].peer ||
	    node->port[num].state == IB_PORT_DOWN || node->port[num].peer->state == IB_PORT_DOWN)
		return no_route(f);
	return node->port[num].peer;
}

/* ---- directed routes ---- */

/* Leaves by port @num of a path. HCAs forward nothing; they send by the port @at. */
static struct fabric_port *leave(struct fabric *f, struct fabric_port *at, bool first, uint8_t num)
{
	if (at->node->type != FABRIC_SWITCH && (!first || num != at->num))
		return no_route(f);
	return cross(f, at->node, num);
}

/*
 * One step of a request. Returns the port that the packet reaches next; NULL: the packet is at its
 * destination (*@arrived), or is dropped. The hop pointer is at most the hop count plus one.
 */
static struct fabric_port *step_out(struct fabric *f, struct fabric_port *at, uint8_t *d,
                                    bool first, bool *arrived)
{
	uint8_t *pointer = &d[SMP_AT_HOP_POINTER];
	uint8_t count = d[SMP_AT_HOP_COUNT];

	if (*pointer > count) {
		*arrived = true;
		return NULL;
	}
	if (*pointer && !first)
		d[SMP_AT_RETURN_PATH + *pointer] = at->num;
	else if (*pointer && *pointer < count)
		return bad_path(f); /* a sender may not claim that it is under way */
	++*pointer;
	if (*pointer > count) {
		*arrived = true;
		return NULL;
	}
	return leave(f, at, first, d[SMP_AT_INITIAL_PATH + *pointer]);
}

/* One step of a response, likewise. */
static struct fabric_port *step_back(struct fabric *f, struct fabric_port *at, uint8_t *d,
                                     bool first, bool *arrived)
{
	uint8_t *pointer = &d[SMP_AT_HOP_POINTER];

	if (*pointer <= 1) {
		*pointer = 0;
		*arrived = true;
		return NULL;
	}
	if (first && *pointer <= d[SMP_AT_HOP_COUNT])
		return bad_path(f);
	--*pointer;
	return leave(f, at, first, d[SMP_AT_RETURN_PATH + *pointer]);
}

/* Follows the directed part of a route from @at to its end. */
static struct fabric_port *follow_path(struct fabric *f, struct fabric_port *at, uint8_t *d)
{
	bool back = d[SMP_AT_STATUS] & DIRECTION_BIT, arrived = false;

	if (d[SMP_AT_HOP_COUNT] > SMP_MAX_HOPS || d[SMP_AT_HOP_POINTER] > d[SMP_AT_HOP_COUNT] + 1)
		return bad_path(f);
	/* the pointer moves at each step, so this ends */
	for (bool first = true; at; first = false) {
		struct fabric_port *next = back ? step_back(f, at, d, first, &arrived)
		                                : step_out(f, at, d, first, &arrived);

		if (arrived)
			return at;
		at = next;
	}
	return NULL;
}

/* ---- by LID ---- */

/* Counts a lost packet at a port of a switch. */
static struct fabric_port *lose(struct fabric *f, struct fabric_port *at, enum fabric_loss why)
{
	if (at->node->type == FABRIC_SWITCH)
		at->stats.lost[why]++;
	return no_route(f);
}

/* A switch's port blocks the partition: counts it and sends a trap. */
static struct fabric_port *hold_back(struct fabric *f, struct fabric_port *at, enum fabric_loss why,
                                     const struct fabric_mad *mad, uint16_t pkey)
{
	const struct fabric_trap_packet packet = { .slid = mad->slid,
		                                   .dlid = mad->dlid,
		                                   .pkey = pkey,
		                                   .src_qpn = mad->src_qpn,
		                                   .mad = mad };

	at->stats.lost[why]++;
	f->mads->stats.bad_p_key++;
	fabric_trap_switch_p_key(f, at, &packet);
	return NULL;
}

/* Crosses the link of @out as data packets do, not on the management lane. @in: the port by which
 * it came to the node; 0: the node sends it. */
static struct fabric_port *cross_as_data(struct fabric *f, struct fabric_port *out, unsigned in,
                                         const struct fabric_mad *mad, uint16_t pkey)
{
	if (!fabric_port_carries(out))
		return lose(f, out, FABRIC_LOST_DISCARD);
	if (fabric_lane_of(out, in, mad->sl & 0xF) == FABRIC_LANE_NONE)
		return lose(f, out->node->type == FABRIC_SWITCH ? &out->node->port[in] : out,
		            FABRIC_LOST_VL);
	if (!fabric_port_emits(out, pkey))
		return hold_back(f, out, FABRIC_LOST_XMIT_PKEY, mad, pkey);
	if (!fabric_port_admits(out->peer, pkey))
		return hold_back(f, out->peer, FABRIC_LOST_RCV_PKEY, mad, pkey);
	return out->peer;
}

/* The port by which a packet to @dlid leaves the switch of @at, where it came in by number @in;
 * port 0: it is for the switch itself. NULL: it is dropped. */
static struct fabric_port *relay(struct fabric *f, struct fabric_port *at, unsigned in,
                                 uint16_t dlid)
{
	uint8_t num = fabric_lft_out(at->node, dlid);

	if (num > at->node->n_ports)
		return lose(f, at, FABRIC_LOST_RELAY);
	if (num && num == in)
		return lose(f, at, FABRIC_LOST_LOOP);
	return &at->node->port[num];
}

/* Whether a packet to @dlid ends at @at. A switch, too, asks its table whether what comes in is its
 * own. */
static bool ends_at(struct fabric_port *at, uint16_t dlid, bool comes_in)
{
	return fabric_port_has_lid(fabric_own_port(at), dlid) &&
	       (at->node->type != FABRIC_SWITCH || !comes_in || !fabric_lft_out(at->node, dlid));
}

/*
 * The port that has @dlid: @at itself, or where the tables lead from there; NULL: none. @pkey: the
 * packet's; 0: it uses the management lane, in any port state and for any partition.
 */
static struct fabric_port *follow_lid(struct fabric *f, struct fabric_port *at, uint16_t dlid,
                                      const struct fabric_mad *mad, uint16_t pkey)
{
	if (!pkey && dlid == IB_LID_PERMISSIVE)
		return at;
	for (int hops = 0; hops < FABRIC_MAX_HOPS; hops++) {
		bool is_switch = at->node->type == FABRIC_SWITCH;
		unsigned in = is_switch && hops ? at->num : 0; /* a switch itself sends by port 0 */
		struct fabric_port *out = at;

		if (ends_at(at, dlid, hops))
			return !pkey || is_switch || at->state == IB_PORT_ACTIVE ? at : no_route(f);
		if (!is_switch && hops)
			return no_route(f);
		if (is_switch)
			out = relay(f, at, in, dlid);
		if (!out)
			return NULL;
		if (is_switch && !out->num)
			return no_route(f); /* port 0 has another LID */
		at = pkey ? cross_as_data(f, out, in, mad, pkey) : cross(f, out->node, out->num);
		if (!at)
			return NULL;
	}
	return no_route(f);
}

/* ---- rules of faults ---- */

/* Whether the gate lets @mad go on. A MAD that the gate holds counts as sent when it lands. */
static bool pass_gate(struct fabric *f, struct fabric_port *from, struct fabric_port *at,
                      const struct fabric_mad *mad)
{
	const struct fabric_mad_gate *gate = &f->mads->gate;
	enum fabric_mad_fate fate =
	        gate->judge ? gate->judge(gate->arg, from, at, mad) : FABRIC_MAD_DELIVERED;

	f->mads->stats.faulty += fate == FABRIC_MAD_FAULTY;
	f->mads->stats.sent -= fate == FABRIC_MAD_HELD;
	return fate == FABRIC_MAD_DELIVERED;
}

/* ---- by GID ---- */

/* Packets from an Ethernet port go by GID: to a port of this fabric, or to the network. */
static struct fabric_port *route_ethernet(struct fabric *f, struct fabric_port *from,
                                          const struct fabric_mad *mad)
{
	const struct fabric_mad_sink *sink = &f->mads->sink;
	struct fabric_port *to;

	if (mad->dest_qpn == IB_QPN_SMI || !mad->has_grh || from->state != IB_PORT_ACTIVE)
		return no_route(f);
	to = fabric_ethernet_find(f, from, &mad->dgid);
	if (to || !sink->roce)
		return to ? to : no_route(f);
	if (!pass_gate(f, from, NULL, mad))
		return NULL;
	f->mads->stats.roce++;
	sink->roce(sink->arg, from, mad);
	return NULL;
}

/*
 * The port that @mad reaches, or NULL. A directed route may begin and end with a part by LID
 * (section 14.2.2.1).
 */
static struct fabric_port *route(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad,
                                 uint16_t pkey)
{
	uint8_t *d = mad->data;
	bool back = d[SMP_AT_STATUS] & DIRECTION_BIT;
	uint16_t begin = get16(d + (back ? SMP_AT_DR_DLID : SMP_AT_DR_SLID));
	uint16_t end = get16(d + (back ? SMP_AT_DR_SLID : SMP_AT_DR_DLID));

	if (at->ethernet)
		return route_ethernet(f, at, mad);
	if (mad->dest_qpn == IB_QPN_SMI && !is_smp(mad))
		return no_route(f); /* the management lane is for SMPs only */
	if (!is_directed(mad) || mad->dest_qpn != IB_QPN_SMI)
		return follow_lid(f, at, mad->dlid, mad, pkey);
	if (begin != IB_LID_PERMISSIVE)
		at = follow_lid(f, at, mad->dlid, mad, 0);
	if (at)
		at = follow_path(f, at, d);
	if (at && end != IB_LID_PERMISSIVE) {
		if (!back)
			mad->slid = fabric_own_port(at)
			                    ->lid; /* where the response's directed route begins */
		at = follow_lid(f, at, end, mad, 0);
	}
	return at;
}

/* ---- delivery ---- */

/* Whether the port accepts packets with this P_Key; *@index: its own entry that matches. */
static bool has_pkey(const struct fabric_port *p, uint16_t pkey, uint16_t *index)
{
	for (uint16_t i = 0; i < SHM_PKEYS; i++) {
		if ((p->pkey[i] & IB_PKEY_BASE_MASK) && ib_pkey_match(p->pkey[i], pkey)) {
			*index = i;
			return true;
		}
	}
	return false;
}

/* The packet's P_Key, from its sender's table; 0: the management lane has no P_Keys. */
static uint16_t pkey_of(const struct fabric_port *from, const struct fabric_mad *mad)
{
	if (mad->dest_qpn == IB_QPN_SMI || mad->pkey_index >= SHM_PKEYS)
		return 0;
	return from->pkey[mad->pkey_index];
}

/* Whether @at is in the packet's partition; then pkey_index becomes the index in its table. */
static bool check_pkey(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad,
                       uint16_t pkey)
{
	if (!pkey || has_pkey(at, pkey, &mad->pkey_index))
		return true;
	f->mads->stats.bad_p_key++;
	fabric_trap_bad_p_key(f, at, mad, pkey);
	return false;
}

/* Swaps the addresses of a request for its response. */
static void turn_round(struct fabric_port *at, struct fabric_mad *mad)
{
	uint32_t qpn = mad->dest_qpn;
	uint16_t dlid = mad->dlid;
	struct ib_gid gid = mad->dgid;

	mad->dest_qpn = mad->src_qpn;
	mad->src_qpn = qpn;
	mad->dlid = mad->slid;
	mad->slid = dlid == IB_LID_PERMISSIVE ? at->lid : dlid;
	mad->dgid = mad->sgid;
	mad->sgid = gid;
	if (is_directed(mad))
		mad->data[SMP_AT_STATUS] |= DIRECTION_BIT;
}

/* Whether the method asks for a response that says so, if the agents of subnet and performance
 * management do not know it. Traps, and what is sent without a response, get none. */
static bool is_unknown(const struct wire_mad *h)
{
	return (h->mgmt_class == MAD_CLASS_SUBN_LID || h->mgmt_class == MAD_CLASS_SUBN_DIRECTED ||
	        h->mgmt_class == MAD_CLASS_PERF) &&
	       !(h->method & MAD_METHOD_RESPONSE) && h->method != MAD_SEND &&
	       h->method != MAD_TRAP && h->method != MAD_TRAP_REPRESS;
}

/* Makes @mad the response to a request that nobody wants, so that its sender need not wait. */
static bool refuse(struct fabric_mad *mad)
{
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	if (h.base_version != MAD_BASE_VERSION)
		return false;
	if (h.method == MAD_GET || h.method == MAD_SET)
		h.status = MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	else if (is_unknown(&h))
		h.status = MAD_STATUS_BAD_METHOD;
	else
		return false;
	h.method = h.method == MAD_SET ? MAD_GET_RESP : h.method | MAD_METHOD_RESPONSE;
	wire_mad_encode(&h, mad->data); /* class_specific: an SMP keeps its hops there */
	return true;
}

/* A request to the PMA that waits until the counters are collected. */
struct fabric_late_mad {
	LIST_ENTRY(fabric_late_mad) entry;
	struct fabric_reader reader;
	struct fabric_port *at;
	struct fabric_mad mad;
};

#define MOST_LATE 4096 /* a sender of more at once has to repeat them */

static void drop_late(struct fabric *f, struct fabric_late_mad *late)
{
	LIST_REMOVE(late, entry);
	f->mads->n_late--;
	free(late);
}

static void respond_late(struct fabric *f, struct fabric_reader *r)
{
	struct fabric_late_mad *late = container_of(r, struct fabric_late_mad, reader);
	struct fabric_port *at = late->at;
	struct fabric_mad mad = late->mad;

	drop_late(f, late);
	fabric_pma_respond(f, at, &mad);
	turn_round(fabric_own_port(at), &mad);
	fabric_mad_send(f, at, &mad);
}

/* The request @mad, which arrived at @at, gets its response later. False: it is dropped. */
static bool wait_for_counters(struct fabric *f, struct fabric_port *at,
                              const struct fabric_mad *mad)
{
	struct fabric_late_mad *late =
	        f->mads->n_late < MOST_LATE ? calloc(1, sizeof(*late)) : NULL;

	if (!late)
		return false;
	late->at = at;
	late->mad = *mad;
	LIST_INSERT_HEAD(&f->mads->late, late, entry);
	f->mads->n_late++;
	fabric_collect_wait(f, &late->reader, respond_late);
	return true;
}

/* @mad, which arrived at @at, is for its PMA: as arrive(). */
static bool ask_pma(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	struct fabric_mad_stats *stats = &f->mads->stats;

	if (!fabric_collect_at_once(f)) {
		if (wait_for_counters(f, at, mad))
			stats->answered++;
		else
			stats->unwanted++;
		return false;
	}
	stats->answered++;
	return fabric_pma_respond(f, at, mad);
}

/* Delivers @mad at @at. True: @mad is now the response to be sent back. */
static bool arrive(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	const struct fabric_mad_sink *sink = &f->mads->sink;
	struct fabric_mad_stats *stats = &f->mads->stats;

	stats->delivered++;
	if (fabric_pma_wants(mad))
		return ask_pma(f, at, mad);
	if (fabric_sma_wants(mad)) {
		bool responded = fabric_sma_respond(f, at, mad);

		stats->answered += responded;
		return responded;
	}
	if (fabric_cca_wants(mad)) {
		bool responded = fabric_cca_respond(f, at, mad);

		stats->answered += responded;
		stats->bad_cc_key += !responded;
		return responded;
	}
	if (fabric_sma_wants_repress(f, at, mad)) {
		fabric_sma_repress(f, at, mad);
		return false;
	}
	if (sink->deliver && sink->deliver(sink->arg, fabric_own_port(at), mad)) {
		stats->accepted++;
		return false;
	}
	stats->unwanted++;
	return refuse(mad);
}

/* Carries @mad from @from to the port that it reaches; NULL: it is dropped, or left the fabric. */
static struct fabric_port *carry(struct fabric *f, struct fabric_port *from, struct fabric_mad *mad)
{
	uint16_t pkey = pkey_of(fabric_own_port(from), mad);
	struct fabric_port *at;

	f->mads->stats.sent++;
	if (mad->dest_qpn != IB_QPN_SMI && !(pkey & IB_PKEY_BASE_MASK)) {
		f->mads->stats.bad_p_key++; /* the sender has no such P_Key */
		return NULL;
	}
	at = route(f, from, mad, pkey);
	return at && check_pkey(f, fabric_own_port(at), mad, pkey) && pass_gate(f, from, at, mad)
	               ? at
	               : NULL;
}

/*
 * Sends @mad by @from. Returns the port by which its response leaves, which has taken @mad's place
 * then; NULL: there is none.
 */
static struct fabric_port *send_unseen(struct fabric *f, struct fabric_port *from,
                                       struct fabric_mad *mad)
{
	struct fabric_port *at = carry(f, from, mad);

	if (!at || !arrive(f, at, mad))
		return NULL;
	turn_round(fabric_own_port(at), mad);
	return at; /* the port that the request came in by */
}

/* The fate of a MAD between two states of the counters. A trap that it has caused may be counted as
 * well, but as nothing that comes before the MAD's own counter here. */
static enum fabric_mad_fate fate_of(const struct fabric_mad_stats *before,
                                    const struct fabric_mad_stats *after)
{
	if (after->answered != before->answered)
		return FABRIC_MAD_DELIVERED;
	if (after->bad_p_key != before->bad_p_key)
		return FABRIC_MAD_BAD_P_KEY;
	if (after->bad_m_key != before->bad_m_key)
		return FABRIC_MAD_BAD_M_KEY;
	if (after->bad_cc_key != before->bad_cc_key)
		return FABRIC_MAD_BAD_CC_KEY;
	if (after->bad_path != before->bad_path)
		return FABRIC_MAD_BAD_PATH;
	if (after->no_route != before->no_route)
		return FABRIC_MAD_NO_ROUTE;
	if (after->faulty != before->faulty)
		return FABRIC_MAD_FAULTY;
	if (after->sent == before->sent)
		return FABRIC_MAD_HELD;
	return after->unwanted != before->unwanted ? FABRIC_MAD_UNWANTED : FABRIC_MAD_DELIVERED;
}

/* The same, and somebody looks. */
static struct fabric_port *send_seen(struct fabric *f, struct fabric_port *from,
                                     struct fabric_mad *mad)
{
	const struct fabric_mad_stats before = f->mads->stats;
	struct fabric_mad_seen seen = { .from = from, .pkey = pkey_of(fabric_own_port(from), mad) };
	struct fabric_mad arrived;
	bool answered;

	seen.at = carry(f, from, mad);
	arrived = *mad;
	seen.mad = &arrived;
	answered = seen.at && arrive(f, seen.at, mad);
	seen.fate = fate_of(&before, &f->mads->stats);
	f->mads->tap.see(f->mads->tap.arg, &seen);
	if (!answered)
		return NULL;
	turn_round(fabric_own_port(seen.at), mad);
	return seen.at;
}

void fabric_mad_send(struct fabric *f, struct fabric_port *from, const struct fabric_mad *sent)
{
	struct fabric_mad mad = *sent;

	/* a request, then its response, if there is one; a response gets none */
	for (int leg = 0; leg < 2 && from; leg++)
		from = f->mads->tap.see ? send_seen(f, from, &mad) : send_unseen(f, from, &mad);
}

/* A copy of @came has come to @at, which sends the response if there is one. */
static void come_to(struct fabric *f, struct fabric_port *at, const struct fabric_mad *came)
{
	struct fabric_mad mad = *came;

	if (!arrive(f, at, &mad))
		return;
	turn_round(fabric_own_port(at), &mad);
	fabric_mad_send(f, at, &mad);
}

void fabric_mad_input(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad)
{
	f->mads->stats.sent++;
	come_to(f, at, mad);
}

void fabric_mad_land(struct fabric *f, struct fabric_port *from, struct fabric_port *at,
                     const struct fabric_mad *mad)
{
	const struct fabric_mad_sink *sink = &f->mads->sink;

	f->mads->stats.sent++;
	if (!at) {
		f->mads->stats.roce++;
		sink->roce(sink->arg, from, mad);
	} else if (at->num && at->state == IB_PORT_DOWN) {
		no_route(f);
	} else {
		come_to(f, at, mad);
	}
}

void fabric_mads_fini(struct fabric *f)
{
	struct fabric_late_mad *late;

	while ((late = LIST_FIRST(&f->mads->late))) {
		fabric_collect_cancel(f, &late->reader);
		drop_late(f, late);
	}
	fabric_pma_samples_fini(f);
}
