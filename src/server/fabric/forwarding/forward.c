/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Forwarding tables of switches, and the walk of a packet through them: which HCA ports does a
 * packet to a LID reach? The daemon walks when tables change, never for each packet (flow.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fabric/model/lanes.h"

static void find_lft_end(struct fabric_node *sw)
{
	uint32_t end = sw->lft_top + 1u;

	sw->lft_end = end < sw->lft_size ? end : sw->lft_size;
}

void fabric_lft_set_top(struct fabric_node *sw, uint16_t top)
{
	sw->lft_top = top;
	find_lft_end(sw);
}

int fabric_lft_set_new(struct fabric_node *sw, uint16_t lid, uint8_t port)
{
	if (!lid || lid >= IB_LID_MCAST_FIRST)
		return -EINVAL;
	if (lid >= sw->lft_size) {
		uint32_t size = ((uint32_t)lid + 64) & ~63u;
		uint8_t *lft = realloc(sw->lft, size);

		if (!lft)
			return -ENOMEM;
		memset(lft + sw->lft_size, FABRIC_LFT_NONE, size - sw->lft_size);
		sw->lft = lft;
		sw->lft_size = size;
		find_lft_end(sw);
	}
	sw->lft[lid] = port;
	return 0;
}

static void find_mft_end(struct fabric_node *sw)
{
	uint32_t end = sw->mft_top ? sw->mft_top - (IB_LID_MCAST_FIRST - 1u) : sw->mft_size;

	sw->mft_end = end < sw->mft_size ? end : sw->mft_size;
}

void fabric_mft_set_top(struct fabric_node *sw, uint16_t top)
{
	sw->mft_top = top;
	find_mft_end(sw);
}

bool fabric_mft_is_beyond(const struct fabric *f, const struct fabric_node *sw, uint16_t mlid)
{
	return mlid - IB_LID_MCAST_FIRST >= (int)f->settings.mft_capacity ||
	       (sw->mft_top && mlid > sw->mft_top);
}

int fabric_mft_set(struct fabric *f, struct fabric_node *sw, uint16_t mlid,
                   const struct fabric_mft_row *row)
{
	uint32_t i = mlid - IB_LID_MCAST_FIRST;

	if (!ib_lid_is_mcast(mlid) || i >= f->settings.mft_capacity)
		return -ENOSPC;
	if (i >= sw->mft_size) {
		uint32_t size = (i + 64) & ~63u;
		struct fabric_mft_row *mft = realloc(sw->mft, size * sizeof(*mft));

		if (!mft)
			return -ENOMEM;
		memset(mft + sw->mft_size, 0, (size - sw->mft_size) * sizeof(*mft));
		sw->mft = mft;
		sw->mft_size = size;
		find_mft_end(sw);
	}
	if (base_log_on(join, BASE_LOG_TRACE) && memcmp(&sw->mft[i], row, sizeof(*row)))
		base_log_trace(join, "%s: the MFT leads MLID 0x%04x to the ports in mask 0x%llx",
		               sw->name, mlid, (unsigned long long)row->ports[0]);
	sw->mft[i] = *row;
	return 0;
}

const struct fabric_mft_row *fabric_mft_get(const struct fabric_node *sw, uint16_t mlid)
{
	uint32_t i = mlid - IB_LID_MCAST_FIRST;

	return i < sw->mft_size ? &sw->mft[i] : NULL;
}

const struct fabric_mft_row *fabric_mft_out(const struct fabric_node *sw, uint16_t mlid)
{
	uint32_t i = mlid - IB_LID_MCAST_FIRST;

	return i < sw->mft_end ? &sw->mft[i] : NULL;
}

/* ---- partitions ---- */

/* Full or limited membership matters between HCAs, not to the switches between them. */
static bool in_table(const struct fabric_port *p, uint16_t pkey)
{
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if (p->pkey[i] && !((p->pkey[i] ^ pkey) & IB_PKEY_BASE_MASK))
			return true;
	return false;
}

bool fabric_port_admits(const struct fabric_port *in, uint16_t pkey)
{
	return in->node->type != FABRIC_SWITCH || !in->link.partition_inbound || in_table(in, pkey);
}

bool fabric_port_emits(const struct fabric_port *out, uint16_t pkey)
{
	return out->node->type != FABRIC_SWITCH || !out->link.partition_outbound ||
	       in_table(out, pkey);
}

/* ---- the walk ---- */

static struct fabric_port *lose(struct fabric_walk *w, struct fabric_port *at, enum fabric_loss why)
{
	if (w->lost && at->node->type == FABRIC_SWITCH)
		w->lost(w->arg, at, why);
	return NULL;
}

/* Crosses the link out of @out, having come in by port number @in. The port at its far end, or
 * NULL. */
static struct fabric_port *cross(struct fabric_walk *w, struct fabric_port *out, unsigned in)
{
	bool is_switch = out->node->type == FABRIC_SWITCH;
	struct fabric_port *came_by = is_switch ? &out->node->port[in] : out;
	uint8_t vl = fabric_lane_of(out, in, w->sl);

	if (!fabric_port_carries(out)) {
		if (out->peer)
			w->hop(w->arg, out, (uint8_t)in, FABRIC_LANE_NONE);
		return lose(w, out, FABRIC_LOST_DISCARD);
	}
	if (vl == FABRIC_LANE_NONE) {
		w->hop(w->arg, out, (uint8_t)in, vl);
		return is_switch && out->num == in ? NULL /* a switch sends nothing back */
		                                   : lose(w, came_by, FABRIC_LOST_VL);
	}
	if (w->pkey && !fabric_port_emits(out, w->pkey))
		return lose(w, out, FABRIC_LOST_XMIT_PKEY);
	if (out->mtu < w->mtu)
		w->mtu = out->mtu;
	w->hop(w->arg, out, (uint8_t)in, vl);
	if (w->pkey && !fabric_port_admits(out->peer, w->pkey))
		return lose(w, out->peer, FABRIC_LOST_RCV_PKEY);
	return out->peer;
}

static bool port_has_lid(const struct fabric_port *p, uint16_t lid)
{
	return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

void fabric_walk_unicast(struct fabric *f, struct fabric_port *from, uint16_t dlid,
                         struct fabric_walk *w)
{
	struct fabric_port *at;

	(void)f;
	w->mtu = from->mtu;
	if (port_has_lid(from, dlid)) { /* an HCA loops back what is for itself */
		if (from->state == IB_PORT_ACTIVE)
			w->reached(w->arg, from);
		return;
	}
	at = cross(w, from, 0);
	for (int hops = 0; at && at->node->type == FABRIC_SWITCH && hops < FABRIC_MAX_HOPS;
	     hops++) {
		uint8_t out = fabric_lft_out(at->node, dlid);

		if (out == 0)
			return; /* for the switch itself */
		if (out > at->node->n_ports || out == at->num) {
			lose(w, at, out == at->num ? FABRIC_LOST_LOOP : FABRIC_LOST_RELAY);
			return;
		}
		at = cross(w, &at->node->port[out], at->num);
	}
	if (at && at->node->type == FABRIC_HCA && port_has_lid(at, dlid))
		w->reached(w->arg, at);
}

/* The ports by which a packet that came in by port @in leaves @sw. A packet to an MLID beyond the
 * table leaves by the primary default port; if it came in there, by the other one. NULL: it is
 * dropped. */
static const struct fabric_mft_row *row_out(const struct fabric *f, const struct fabric_node *sw,
                                            uint16_t mlid, unsigned in, struct fabric_mft_row *one)
{
	uint8_t out = in == sw->mcast_primary ? sw->mcast_not_primary : sw->mcast_primary;
	const struct fabric_mft_row *row = fabric_mft_out(sw, mlid);

	if (fabric_mft_is_beyond(f, sw, mlid)) {
		if (out > sw->n_ports || out == in)
			return NULL;
		*one = (struct fabric_mft_row){ { 0 } };
		fabric_row_add(one, out);
		return one;
	}
	return row && !fabric_row_is_empty(row) ? row : NULL;
}

/* A packet that came into a switch by @in leaves by every other port of the row. */
static void flood(struct fabric *f, struct fabric_port *in, uint16_t mlid, struct fabric_walk *w)
{
	struct fabric_node *sw = in->node;
	struct fabric_mft_row one;
	const struct fabric_mft_row *row = row_out(f, sw, mlid, in->num ? in->num : w->in, &one);

	if (!row) {
		lose(w, in, FABRIC_LOST_RELAY);
		return;
	}
	if (sw->mark == f->walk)
		return; /* a loop in the tables: a switch forwards one copy */
	sw->mark = f->walk;
	for (unsigned b = 0; b < FABRIC_MFT_BLOCKS; b++) {
		for (uint64_t mask = row->ports[b]; mask; mask &= mask - 1) {
			unsigned num = b * 64 + (unsigned)__builtin_ctzll(mask);
			struct fabric_port *to;

			if (num == in->num || num == 0 || num > sw->n_ports)
				continue;
			to = cross(w, &sw->port[num], in->num ? in->num : w->in);
			if (!to)
				continue;
			if (to->node->type == FABRIC_SWITCH)
				flood(f, to, mlid, w);
			else
				w->reached(w->arg, to);
		}
	}
}

void fabric_walk_multicast(struct fabric *f, struct fabric_port *from, uint16_t mlid,
                           struct fabric_walk *w)
{
	struct fabric_port *to;

	w->mtu = from->mtu;
	f->walk++;
	to = cross(w, from, 0);
	if (!to)
		return;
	if (to->node->type == FABRIC_HCA) { /* back to back */
		w->reached(w->arg, to);
		return;
	}
	/*
	 * A switch never sends a packet out by the port it came in by; the HCA hands the
	 * sender's own port its copy. It gets one if it is a member, which shows in the
	 * table that the subnet manager wrote.
	 */
	if (fabric_row_has(fabric_mft_out(to->node, mlid), to->num))
		w->reached(w->arg, from);
	flood(f, to, mlid, w);
}

void fabric_walk_from_switch(struct fabric *f, struct fabric_node *sw, uint16_t mlid,
                             struct fabric_walk *w)
{
	w->mtu = (uint8_t)f->settings.mtu;
	f->walk++;
	flood(f, &sw->port[0], mlid, w);
}
