/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How MADs travel: see mads.h. Directed routes are those of the specification, volume
 * 1, section 14.2.2: the hop pointer tells where on its path a packet is, each switch
 * moves it on and notes by which port the packet came, and the answer goes back along
 * these notes.
 */
#include <endian.h>
#include <string.h>

#include "fabric/mads.h"

#define DIRECTION_BIT 0x80 /* of the status' high byte */

static bool is_directed(const uint8_t *d)
{
	return d[1] == MAD_CLASS_SUBN_DIRECTED;
}

static bool is_smp(const uint8_t *d)
{
	return is_directed(d) || d[1] == MAD_CLASS_SUBN_LID;
}

static struct fabric_port *no_route(struct fabric *f)
{
	f->mads->stats.no_route++;
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

/*
 * One step along a directed route. The port that the packet arrives at next; or NULL:
 * it has arrived where it is (*@arrived), or it goes nowhere.
 */
static struct fabric_port *directed_step(struct fabric *f, struct fabric_port *at, uint8_t *d,
                                         bool *arrived)
{
	uint8_t *pointer = &d[SMP_AT_HOP_POINTER];
	uint8_t count = d[SMP_AT_HOP_COUNT];

	*arrived = false;
	if (d[SMP_AT_STATUS] & DIRECTION_BIT) {
		if (*pointer <= 1) {
			*pointer = 0;
			*arrived = true;
			return NULL;
		}
		--*pointer;
		return cross(f, at->node, d[SMP_AT_RETURN_PATH + *pointer]);
	}
	if (*pointer) /* not where it was sent */
		d[SMP_AT_RETURN_PATH + *pointer] = at->num;
	++*pointer;
	if (*pointer > count) {
		*arrived = true;
		return NULL;
	}
	if (*pointer > 1 && at->node->type != FABRIC_SWITCH)
		return no_route(f); /* HCAs pass nothing on */
	return cross(f, at->node, d[SMP_AT_INITIAL_PATH + *pointer]);
}

/* Where a directed route ends. Its ends by LID, which the format allows, nobody here needs. */
static struct fabric_port *route_directed(struct fabric *f, struct fabric_port *at, uint8_t *d)
{
	bool arrived = false;

	if (d[SMP_AT_HOP_COUNT] > SMP_MAX_HOPS || d[SMP_AT_HOP_POINTER] > d[SMP_AT_HOP_COUNT] + 1) {
		f->mads->stats.bad_path++;
		return NULL;
	}
	for (int hops = 0; hops <= SMP_MAX_HOPS + 1; hops++) {
		struct fabric_port *next = directed_step(f, at, d, &arrived);

		if (arrived)
			return at;
		if (!next)
			return NULL;
		at = next;
	}
	return no_route(f);
}

static bool has_lid(const struct fabric_port *p, uint16_t lid)
{
	return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

/* The port that answers for a node: its own port 0, if it is a switch. */
static struct fabric_port *own_port(struct fabric_port *p)
{
	return p->node->type == FABRIC_SWITCH ? &p->node->port[0] : p;
}

/* Where a LID leads. @any_state: on the management lane. */
static struct fabric_port *route_lid(struct fabric *f, struct fabric_port *from, uint16_t dlid,
                                     bool any_state)
{
	struct fabric_port *at = from;

	if (dlid == IB_LID_PERMISSIVE || has_lid(own_port(from), dlid))
		return own_port(from);
	for (int hops = 0; hops < FABRIC_MAX_HOPS; hops++) {
		unsigned out =
		        at->node->type == FABRIC_SWITCH ? fabric_lft_get(at->node, dlid) : at->num;

		if (at->node->type == FABRIC_HCA && hops)
			return has_lid(at, dlid) ? at : no_route(f);
		if (out == 0)
			return &at->node->port[0];
		at = cross(f, at->node, out);
		if (!at)
			return NULL;
		if (!any_state &&
		    (at->state != IB_PORT_ACTIVE || at->peer->state != IB_PORT_ACTIVE))
			return no_route(f);
	}
	return no_route(f);
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
	if (is_directed(mad->data))
		mad->data[SMP_AT_STATUS] |= DIRECTION_BIT;
}

static bool answer(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	if (fabric_sma_wants(mad))
		return fabric_sma_answer(f, at, mad);
	return fabric_pma_answer(f, at, mad);
}

void fabric_mad_send(struct fabric *f, struct fabric_port *from, const struct fabric_mad *sent)
{
	struct fabric_mad mad = *sent;

	/* a request, then its answer, if an agent gives one; an answer is never answered */
	for (int leg = 0; from && leg < 2; leg++) {
		struct fabric_port *at = is_directed(mad.data)
		                                 ? route_directed(f, from, mad.data)
		                                 : route_lid(f, from, mad.dlid, is_smp(mad.data));

		if (!at)
			return;
		f->mads->stats.delivered++;
		if (!fabric_sma_wants(&mad) && !fabric_pma_wants(&mad)) {
			if (!f->mads->sink.deliver ||
			    !f->mads->sink.deliver(f->mads->sink.arg, own_port(at), &mad))
				f->mads->stats.unwanted++;
			return;
		}
		if (!answer(f, at, &mad))
			return;
		turn_round(own_port(at), &mad);
		/* back by the port that it came in by: a switch's own answers start at the switch
		 */
		from = at;
	}
}
