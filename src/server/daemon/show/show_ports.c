/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "ports": the facts about nodes that `umbel check` needs beside their links and tables.
 * These are GUIDs and LMCs, P_Keys and the ports that enforce them, M_Keys, lanes, and the
 * service levels of paths. Values that are as they are without a subnet manager are left out.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "daemon/show/views.h"
#include "fabric/model/lanes.h"

#define ANY_SL 255

static void add_pkeys(struct show_json *o, const struct fabric_port *p)
{
	show_open(o, "pkeys", '[');
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if (p->pkey[i])
			show_add_u64(o, NULL, p->pkey[i]);
	show_close(o, ']');
}

/* For each port in, the lanes of the 16 service levels. */
static void add_map(struct show_json *o, const struct fabric_port *p)
{
	if (p->node->type != FABRIC_SWITCH || !p->lanes || !p->lanes->map)
		return;
	show_add_hex(o, "lanes", p->lanes->map[0],
	             (p->node->n_ports + (size_t)1) * sizeof(p->lanes->map[0]));
}

/* The last packet that the port refused as its Q_Key was wrong: programs write that. */
static void add_bad_qkey(const struct daemon_show *s, struct show_json *o,
                         const struct fabric_port *p)
{
	const struct shm_bad_key *last = &shm_port_count_at(s->f->region, p->index)->last_bad_qkey;
	uint64_t ends = atomic_load_explicit(&last->ends, memory_order_relaxed);
	uint64_t key = atomic_load_explicit(&last->key, memory_order_relaxed);

	if (!ends)
		return;
	show_open(o, "bad_qkey", '{');
	show_add_text(o, "from", "0x%06x", (unsigned)(ends >> 24) & IB_QPN_MASK);
	show_add_text(o, "to", "0x%06x", (unsigned)ends & IB_QPN_MASK);
	show_add_text(o, "key", "0x%08x", (unsigned)key);
	show_close(o, '}');
}

/* Of an HCA's port, or of a switch's port 0: its protection, its lease in seconds, and a hash that
 * tells it from others; the key itself is secret. */
static void add_m_key(const struct daemon_show *s, struct show_json *o,
                      const struct fabric_port *own)
{
	if (!own->m_key)
		return;
	show_add_text(
	        o, "m_key", "0x%016llx",
	        (unsigned long long)base_hash_of(&own->m_key, sizeof(own->m_key), (uintptr_t)s->f) |
	                1);
	show_add_u64(o, "m_key_protect", own->m_key_protect);
	show_add_u64(o, "m_key_lease", own->m_key_lease);
}

static void add_port(const struct daemon_show *s, struct show_json *o, const struct fabric_port *p)
{
	show_open(o, NULL, '{');
	show_add_u64(o, "port", p->num);
	if (p->node->type == FABRIC_HCA)
		show_add_text(o, "guid", "0x%016llx", (unsigned long long)p->guid);
	if (p->node->type == FABRIC_HCA) {
		add_bad_qkey(s, o, p);
		add_m_key(s, o, p);
	}
	if (p->lmc)
		show_add_u64(o, "lmc", p->lmc);
	if (fabric_lanes_used(p) != FABRIC_LANES)
		show_add_u64(o, "vls", fabric_lanes_used(p));
	if (p->link.partition_inbound)
		show_add_true(o, "inbound");
	if (p->link.partition_outbound)
		show_add_true(o, "outbound");
	if (p->node->type == FABRIC_HCA || p->link.partition_inbound || p->link.partition_outbound)
		add_pkeys(o, p);
	add_map(o, p);
	show_close(o, '}');
}

/* By LID: the service level that packets from hosts at the switch must have; 255: any. */
static void add_levels(const struct daemon_show *s, struct show_json *o,
                       const struct fabric_node *sw)
{
	const struct sm *sm = s->subnet->sm;
	uint8_t *levels = sm ? malloc(sw->lft_size + (size_t)1) : NULL;
	bool any = false;

	if (sm && !levels)
		o->failed = true;
	for (uint32_t lid = 0; levels && lid < sw->lft_size; lid++) {
		int sl = sm_path_sl(sm, &sw->port[1], (uint16_t)lid);

		levels[lid] = sl < 0 ? ANY_SL : (uint8_t)sl;
		any |= sl >= 0;
	}
	if (any)
		show_add_hex(o, "levels", levels, sw->lft_size);
	free(levels);
}

bool daemon_show_ports(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct fabric_node *node;

	if (at->part >= s->f->n_nodes)
		return false;
	node = s->f->node[at->part];
	show_open(o, NULL, '{');
	show_add_string(o, "node", node->name);
	if (node->type == FABRIC_SWITCH && node->n_ports) {
		add_m_key(s, o, &node->port[0]);
		add_levels(s, o, node);
		at->work += node->lft_size / 64;
	}
	show_open(o, "ports", '[');
	for (unsigned k = 1; k <= node->n_ports; k++)
		if (node->port[k].peer || node->port[k].ethernet)
			add_port(s, o, &node->port[k]);
	show_close(o, ']');
	show_close(o, '}');
	return true;
}
