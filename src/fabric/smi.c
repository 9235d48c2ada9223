/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How MADs travel: see mads.h. Directed routes are those of the specification, volume
 * 1, section 14.2.2: the hop pointer tells where on its path a packet is, each switch
 * moves it on and notes by which port the packet came, and the answer goes back along
 * these notes.
 */
#include <endian.h>
#include <string.h>

#include "fabric/ethernet.h"
#include "fabric/flow.h"
#include "fabric/mads.h"
#include "fabric/traps.h"

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

/* Out of port @num of @node, whatever its state but down; the port at the far end. */
static struct fabric_port *cross(struct fabric *f, struct fabric_node *node, unsigned num)
{
	if (num < 1 || num > node->n_ports || !node->port[num].peer ||
	    node->port[num].state == IB_PORT_DOWN || node->port[num].peer->state == IB_PORT_DOWN)
		return no_route(f);
	return node->port[num].peer;
}

/* ---- directed routes ---- */

/* Out by the port that a path names. HCAs pass nothing on, and send by the port they send from. */
static struct fabric_port *leave(struct fabric *f, struct fabric_port *at, bool first, uint8_t num)
{
	if (at->node->type != FABRIC_SWITCH && (!first || num != at->num))
		return no_route(f);
	return cross(f, at->node, num);
}

/*
 * One step of a request. The port that the packet arrives at next; or NULL: it has arrived
 * where it is (*@arrived), or it goes nowhere. The pointer is at most the count and one.
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
		return bad_path(f); /* sent as if it had been on its way */
	++*pointer;
	if (*pointer > count) {
		*arrived = true;
		return NULL;
	}
	return leave(f, at, first, d[SMP_AT_INITIAL_PATH + *pointer]);
}

/* One step of an answer, likewise. */
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

/* Where the directed part of a route that begins at @at ends. */
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

/* Counts it at a port of a switch. */
static struct fabric_port *lose(struct fabric *f, struct fabric_port *at, enum fabric_loss why)
{
	if (at->node->type == FABRIC_SWITCH)
		at->stats.lost[why]++;
	return no_route(f);
}

/* A switch's port holds the partition back: counted and told. */
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

/* On to the next node off the management lane, by port @num of the node of @at. */
static struct fabric_port *cross_as_data(struct fabric *f, struct fabric_port *at, unsigned num,
                                         const struct fabric_mad *mad, uint16_t pkey)
{
	struct fabric_port *out;

	if (num < 1 || num > at->node->n_ports)
		return lose(f, at, FABRIC_LOST_RELAY);
	out = &at->node->port[num];
	if (!fabric_port_carries(out))
		return lose(f, out, FABRIC_LOST_DISCARD);
	if (!fabric_port_emits(out, pkey))
		return hold_back(f, out, FABRIC_LOST_XMIT_PKEY, mad, pkey);
	if (!fabric_port_admits(out->peer, pkey))
		return hold_back(f, out->peer, FABRIC_LOST_RCV_PKEY, mad, pkey);
	return out->peer;
}

/*
 * Where @at is, or on from there: where a LID leads. @pkey: of the packet; 0: it goes on the
 * management lane, in any state and for any partition.
 */
static struct fabric_port *follow_lid(struct fabric *f, struct fabric_port *at, uint16_t dlid,
                                      const struct fabric_mad *mad, uint16_t pkey)
{
	if (!pkey && dlid == IB_LID_PERMISSIVE)
		return at;
	for (int hops = 0; hops < FABRIC_MAX_HOPS; hops++) {
		bool is_switch = at->node->type == FABRIC_SWITCH;
		unsigned num;

		if (fabric_port_has_lid(fabric_own_port(at), dlid))
			return !pkey || is_switch || at->state == IB_PORT_ACTIVE ? at : no_route(f);
		if (!is_switch && hops)
			return no_route(f);
		num = is_switch ? fabric_lft_get(at->node, dlid) : at->num;
		at = pkey ? cross_as_data(f, at, num, mad, pkey) : cross(f, at->node, num);
		if (!at)
			return NULL;
	}
	return no_route(f);
}

/* From an Ethernet port there is no other way than by GID: to one of ours, or out. */
static struct fabric_port *route_ethernet(struct fabric *f, struct fabric_port *from,
                                          const struct fabric_mad *mad)
{
	const struct fabric_mad_sink *sink = &f->mads->sink;
	struct fabric_port *to;

	if (mad->dest_qpn == IB_QPN_SMI || !mad->has_grh || from->state != IB_PORT_ACTIVE)
		return no_route(f);
	to = fabric_ethernet_find(f, from, &mad->dgid);
	if (to || !sink->wire)
		return to ? to : no_route(f);
	f->mads->stats.wire++;
	sink->wire(sink->arg, from, mad);
	return NULL;
}

/*
 * Where @mad ends up: the port by which it comes in there. A directed route may begin and end
 * with a part by LID (section 14.2.2.1).
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
		return no_route(f); /* that lane carries nothing else */
	if (!is_directed(mad) || mad->dest_qpn != IB_QPN_SMI)
		return follow_lid(f, at, mad->dlid, mad, pkey);
	if (begin != IB_LID_PERMISSIVE)
		at = follow_lid(f, at, mad->dlid, mad, 0);
	if (at)
		at = follow_path(f, at, d);
	if (at && end != IB_LID_PERMISSIVE) {
		if (!back)
			mad->slid = fabric_own_port(at)->lid; /* the answer's path begins there */
		at = follow_lid(f, at, end, mad, 0);
	}
	return at;
}

/* ---- delivery ---- */

/* Whether the port takes a packet with this P_Key; *@index: where it has it. */
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

/* A packet has a P_Key of its sender's. 0: on the management lane, where there are none. */
static uint16_t pkey_of(const struct fabric_port *from, const struct fabric_mad *mad)
{
	if (mad->dest_qpn == IB_QPN_SMI || mad->pkey_index >= SHM_PKEYS)
		return 0;
	return from->pkey[mad->pkey_index];
}

/* It is taken by who is in that partition, whose index there it has from then on. */
static bool check_pkey(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad,
                       uint16_t pkey)
{
	if (!pkey || has_pkey(at, pkey, &mad->pkey_index))
		return true;
	f->mads->stats.bad_p_key++;
	fabric_trap_bad_p_key(f, at, mad, pkey);
	return false;
}

/* An answer goes back where the request came from. */
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

/* What a request gets that nobody wants: it tells who asked that there is no point in waiting. */
static bool refuse(struct fabric_mad *mad)
{
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	if (h.base_version != MAD_BASE_VERSION || (h.method != MAD_GET && h.method != MAD_SET))
		return false;
	h.method = MAD_GET_RESP;
	h.status = MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	wire_mad_encode(&h, mad->data); /* class_specific: the hops stay */
	return true;
}

/* @mad has arrived at @at. Whether it is an answer now, to be sent back. */
static bool arrive(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	const struct fabric_mad_sink *sink = &f->mads->sink;
	struct fabric_mad_stats *stats = &f->mads->stats;

	stats->delivered++;
	if (fabric_sma_wants(mad) || fabric_pma_wants(mad)) {
		bool answer = fabric_sma_wants(mad) ? fabric_sma_answer(f, at, mad)
		                                    : fabric_pma_answer(f, at, mad);

		stats->answered += answer;
		return answer;
	}
	if (fabric_sma_wants_repress(f, at, mad)) {
		fabric_sma_repress(f, at, mad);
		return false;
	}
	if (sink->deliver && sink->deliver(sink->arg, fabric_own_port(at), mad)) {
		stats->taken++;
		return false;
	}
	stats->unwanted++;
	return refuse(mad);
}

/* Sends @mad from @from. Where it arrives, NULL: it does not. */
static struct fabric_port *carry(struct fabric *f, struct fabric_port *from, struct fabric_mad *mad)
{
	uint16_t pkey = pkey_of(fabric_own_port(from), mad);
	struct fabric_port *at;

	f->mads->stats.sent++;
	if (mad->dest_qpn != IB_QPN_SMI && !(pkey & IB_PKEY_BASE_MASK)) {
		f->mads->stats.bad_p_key++; /* there is no such packet */
		return NULL;
	}
	at = route(f, from, mad, pkey);
	return at && check_pkey(f, fabric_own_port(at), mad, pkey) ? at : NULL;
}

void fabric_mad_send(struct fabric *f, struct fabric_port *from, const struct fabric_mad *sent)
{
	struct fabric_mad mad = *sent;

	/* a request, then its answer, if an agent gives one; an answer is never answered */
	for (int leg = 0; leg < 2; leg++) {
		struct fabric_port *at = carry(f, from, &mad);

		if (!at || !arrive(f, at, &mad))
			return;
		turn_round(fabric_own_port(at), &mad);
		from = at; /* back by the port that it came in by */
	}
}

void fabric_mad_input(struct fabric *f, struct fabric_port *at, const struct fabric_mad *came)
{
	struct fabric_mad mad = *came;

	f->mads->stats.sent++;
	if (!arrive(f, at, &mad))
		return;
	turn_round(at, &mad);
	fabric_mad_send(f, at, &mad);
}

/* ---- what settles later ---- */

void fabric_mads_lid_changed(struct fabric *f, uint16_t lid)
{
	f->mads->stale_lid[lid / 64] |= 1ull << (lid % 64);
	f->mads->stale = true;
}

void fabric_mads_all_changed(struct fabric *f)
{
	f->mads->stale = f->mads->all_stale = true;
}

void fabric_mads_settle(struct fabric *f)
{
	struct fabric_mads *m = f->mads;

	if (!m->stale)
		return;
	for (unsigned w = 0; w < 1 << 16; w += 64)
		for (uint64_t lids = m->all_stale ? 0 : m->stale_lid[w / 64]; lids;
		     lids &= lids - 1)
			fabric_flow_lid_changed(f, (uint16_t)(w + (unsigned)__builtin_ctzll(lids)));
	if (m->all_stale)
		fabric_flow_all_changed(f);
	m->stale = m->all_stale = false;
	memset(m->stale_lid, 0, sizeof(m->stale_lid));
}
