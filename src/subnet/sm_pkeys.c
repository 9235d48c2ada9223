/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the P_Key tables of the ports by the partitions. The default partition's P_Key is at index
 * 0, unless a rule puts another one there. P_Keys that a port has already keep their index; new
 * ones get the first free entries, in the order of their numbers. A switch's port to an HCA gets
 * the HCA's table and enforces it; it blocks no packet that the HCA would accept.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/mads.h"
#include "subnet/partitions.h"
#include "subnet/sm_state.h"

/* The P_Keys that a port must have. */
struct keys {
	uint16_t key[2 * SHM_PKEYS];
	unsigned n; /* may be more than fit in the table; those beyond key[] are only counted */
	uint16_t index0; /* the base of the P_Key for index 0 */
};

static bool is_meant(const struct partition_rule *rule, const struct fabric_port *p, bool is_self)
{
	bool is_hca = p->node->type == FABRIC_HCA;

	switch (rule->ports) {
	case PARTITION_ALL:
		return true;
	case PARTITION_ALL_CAS:
		return is_hca;
	case PARTITION_ALL_SWITCHES:
		return !is_hca;
	case PARTITION_ALL_ROUTERS:
		return false; /* there are none */
	case PARTITION_SELF:
		return is_self;
	default:
		return rule->guid == p->guid;
	}
}

static void add_key(struct keys *k, uint16_t key)
{
	if (k->n < ARRAY_SIZE(k->key))
		k->key[k->n] = key;
	k->n++;
}

/* Finds the P_Keys of @p. @membership: scratch, one for each partition. */
static void find_keys(const struct partitions *all, const struct fabric_port *p, bool is_self,
                      uint8_t *membership, struct keys *k)
{
	uint16_t first = all->partition[0].pkey;

	*k = (struct keys){ .index0 = first };
	memset(membership, 0, all->n);
	for (unsigned i = 0; i < all->n_rules; i++) {
		const struct partition_rule *rule = &all->rule[i];
		uint16_t pkey = all->partition[rule->partition].pkey;

		if (!is_meant(rule, p, is_self))
			continue;
		membership[rule->partition] = (uint8_t)rule->membership;
		if (rule->index0)
			k->index0 = pkey;
		else if (k->index0 == pkey)
			k->index0 = first;
	}
	for (unsigned i = 0; i < all->n; i++) {
		if (membership[i] & PARTITION_FULL)
			add_key(k, all->partition[i].pkey | IB_PKEY_FULL_MEMBER);
		if (membership[i] & PARTITION_LIMITED)
			add_key(k, all->partition[i].pkey);
	}
}

static bool has_key(const uint16_t *table, unsigned n, uint16_t key)
{
	for (unsigned i = 0; i < n; i++)
		if (table[i] == key)
			return true;
	return false;
}

/* The lowest P_Key that the table lacks; 0: none. */
static uint16_t next_missing(const struct keys *k, unsigned n, const uint16_t *table)
{
	uint16_t best = 0;

	for (unsigned i = 0; i < n; i++) {
		uint16_t key = k->key[i];

		if (has_key(table, SHM_PKEYS, key))
			continue;
		if (!best || (key & IB_PKEY_BASE_MASK) < (best & IB_PKEY_BASE_MASK))
			best = key;
	}
	return best;
}

/* The P_Key for index 0; the full member's if the port has both. */
static uint16_t first_key(const struct keys *k, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if ((k->key[i] & IB_PKEY_BASE_MASK) == k->index0)
			return k->key[i];
	return 0;
}

static void fill_table(const struct keys *k, const uint16_t *old, uint16_t *table)
{
	unsigned n = k->n < SHM_PKEYS ? k->n : SHM_PKEYS;
	uint16_t key;

	memset(table, 0, SHM_PKEYS * sizeof(*table));
	table[0] = first_key(k, n);
	for (unsigned i = 1; i < SHM_PKEYS; i++)
		if (old[i] && has_key(k->key, n, old[i]) && !has_key(table, i, old[i]))
			table[i] = old[i];
	for (unsigned i = 1; i < SHM_PKEYS && (key = next_missing(k, n, table)); i++)
		if (!table[i])
			table[i] = key;
}

/* ---- ports ---- */

static void set_table(struct fabric *f, struct fabric_port *p, const uint16_t *table)
{
	const struct fabric_mad_sink *sink = &f->mads->sink;

	if (!memcmp(p->pkey, table, sizeof(p->pkey)))
		return;
	memcpy(p->pkey, table, sizeof(p->pkey));
	if (p->node->type == FABRIC_HCA)
		fabric_port_publish(f, p);
	if (sink->port_changed)
		sink->port_changed(sink->arg, p, FABRIC_PORT_PKEYS);
}

/* Gives @table to the switch's port at the other end, which then enforces it. */
static void set_peer(struct fabric *f, struct fabric_port *peer, const uint16_t *table)
{
	if (!peer || peer->node->type != FABRIC_SWITCH)
		return;
	if (!peer->link.partition_inbound || memcmp(peer->pkey, table, sizeof(peer->pkey)) != 0)
		fabric_mads_all_changed(f);
	peer->link.partition_inbound = peer->link.partition_outbound = true;
	set_table(f, peer, table);
}

static void set_port(struct sm *sm, struct fabric_port *p, const struct keys *k)
{
	uint16_t table[SHM_PKEYS];

	fill_table(k, p->pkey, table);
	set_table(sm->f, p, table);
	if (p->node->type == FABRIC_HCA)
		set_peer(sm->f, p->peer, table);
}

int sm_pkeys_write(struct sm *sm)
{
	const struct partitions *all = sm->partitions;
	uint8_t *membership = all ? calloc(all->n, 1) : NULL;
	struct keys k;

	if (!all)
		return 0;
	if (!membership)
		return -ENOMEM;
	for (unsigned i = 0; i < sm->f->n_ib_ports; i++) {
		find_keys(all, sm->f->hca_port[i], i == sm->home, membership, &k);
		set_port(sm, sm->f->hca_port[i], &k);
	}
	for (unsigned i = 0; i < sm->net.n; i++) {
		find_keys(all, &sm->net.sw[i]->port[0], false, membership, &k);
		set_port(sm, &sm->net.sw[i]->port[0], &k);
	}
	free(membership);
	return 0;
}

int sm_partitions_check(const struct fabric *f, const struct partitions *all, char *why, size_t len)
{
	uint8_t *membership = calloc(all->n, 1);
	int ret = 0;

	if (!membership)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n_nodes && !ret; i++) {
		const struct fabric_node *node = f->node[i];
		unsigned last = node->type == FABRIC_SWITCH ? 0 : node->n_ports;

		for (unsigned k = last ? 1 : 0; k <= last && !ret; k++) {
			struct keys keys;

			/* with the rules for "self", as the subnet manager may move there */
			find_keys(all, &node->port[k], last, membership, &keys);
			if (keys.n <= SHM_PKEYS)
				continue;
			snprintf(why, len,
			         "port %u of '%s' would have %u P_Keys; its table has room for %d",
			         k, node->name, keys.n, SHM_PKEYS);
			ret = -ENOSPC;
		}
	}
	free(membership);
	return ret;
}
