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
#include "fabric/forwarding/flow.h"
#include "fabric/agents/mads.h"
#include "subnet/partitions.h"
#include "subnet/sm.h"
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
		return is_hca && !p->node->is_router;
	case PARTITION_ALL_SWITCHES:
		return !is_hca;
	case PARTITION_ALL_ROUTERS:
		return p->node->is_router;
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

/* The P_Keys that are being found for a port. */
struct search {
	const struct partitions *all;
	uint8_t *membership; /* by partition; zero between searches */
	unsigned *found;     /* partitions that are not zero there */
	unsigned n_found;
	uint32_t work; /* rules and partitions */
};

/* 0 or -ENOMEM. */
static int search_init(struct search *s, const struct partitions *all)
{
	*s = (struct search){ .all = all,
		              .membership = calloc(all->n, 1),
		              .found = calloc(all->n, sizeof(*s->found)) };
	return s->membership && s->found ? 0 : -ENOMEM;
}

static void search_fini(struct search *s)
{
	free(s->membership);
	free(s->found);
}

static void apply_rule(struct search *s, const struct partition_rule *rule, struct keys *k)
{
	uint16_t first = s->all->partition[0].pkey, pkey = s->all->partition[rule->partition].pkey;

	s->work++;
	if (!s->membership[rule->partition])
		s->found[s->n_found++] = rule->partition;
	s->membership[rule->partition] = (uint8_t)rule->membership;
	if (rule->index0)
		k->index0 = pkey;
	else if (k->index0 == pkey)
		k->index0 = first;
}

/* Applies the rules that are meant for @p in the order of the file: the rules for its GUID and the
 * rules for many ports. Each kind has a list. */
static void apply_rules(struct search *s, const struct fabric_port *p, bool is_self, struct keys *k)
{
	const struct partitions *all = s->all;
	unsigned own = partitions_rules_of(all, p->guid), general = 0;

	for (;;) {
		bool has_own = own < all->n_by_guid && all->rule[all->by_guid[own]].guid == p->guid;
		const struct partition_rule *rule;

		if (has_own &&
		    (general == all->n_general || all->by_guid[own] < all->general[general]))
			rule = &all->rule[all->by_guid[own++]];
		else if (general < all->n_general)
			rule = &all->rule[all->general[general++]];
		else
			return;
		if (is_meant(rule, p, is_self))
			apply_rule(s, rule, k);
	}
}

/* Finds the P_Keys of @p. */
static void find_keys(struct search *s, const struct fabric_port *p, bool is_self, struct keys *k)
{
	const struct partitions *all = s->all;

	*k = (struct keys){ .index0 = all->partition[0].pkey };
	s->n_found = s->work = 0;
	apply_rules(s, p, is_self, k);
	for (unsigned i = 0; i < s->n_found; i++) {
		uint16_t pkey = all->partition[s->found[i]].pkey;
		uint8_t membership = s->membership[s->found[i]];

		if (membership & PARTITION_FULL)
			add_key(k, pkey | IB_PKEY_FULL_MEMBER);
		if (membership & PARTITION_LIMITED)
			add_key(k, pkey);
		s->membership[s->found[i]] = 0;
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
static void set_peer(struct sm *sm, struct fabric_port *peer, const uint16_t *table)
{
	if (!peer || peer->node->type != FABRIC_SWITCH)
		return;
	if (!peer->link.partition_inbound || memcmp(peer->pkey, table, sizeof(peer->pkey)) != 0)
		sm->pkeys_changed = true;
	peer->link.partition_inbound = peer->link.partition_outbound = true;
	set_table(sm->f, peer, table);
}

static void set_port(struct sm *sm, struct fabric_port *p, const struct keys *k)
{
	uint16_t table[SHM_PKEYS];

	fill_table(k, p->pkey, table);
	set_table(sm->f, p, table);
	if (p->node->type == FABRIC_HCA)
		set_peer(sm, p->peer, table);
}

/* Of a port, in table entries, and of one whose table changes: queue pairs are looked through, and
 * the processes that have it open are told. The work for a rule is 4. */
#define PORT_WORK   32
#define CHANGE_WORK 1000

/* Returns the cost: flows of queue pairs whose P_Key changes follow at once. */
static uint64_t write_port(struct sm *sm, struct search *s, unsigned i)
{
	unsigned n_hcas = sm->f->n_ib_ports;
	struct fabric_port *p = i < n_hcas ? sm->f->hca_port[i] : &sm->net.sw[i - n_hcas]->port[0];
	uint64_t flows = sm->f->flows->work;
	uint16_t old[SHM_PKEYS];
	struct keys k;

	memcpy(old, p->pkey, sizeof(old));
	find_keys(s, p, i == sm->home, &k);
	set_port(sm, p, &k);
	return PORT_WORK + 4 * (uint64_t)s->work + SM_FLOW_WORK * (sm->f->flows->work - flows) +
	       (memcmp(old, p->pkey, sizeof(old)) != 0 ? CHANGE_WORK : 0);
}

int sm_pkeys_step(struct sm *sm, unsigned *at, uint32_t *budget)
{
	unsigned n = sm->f->n_ib_ports + sm->net.n;
	struct search s;
	int ret;

	if (!sm->partitions)
		return 0;
	ret = search_init(&s, sm->partitions);
	for (; !ret && *at < n && *budget; ++*at) {
		uint64_t cost = write_port(sm, &s, *at);

		*budget -= cost < *budget ? (uint32_t)cost : *budget;
	}
	search_fini(&s);
	return ret ? ret : *at < n;
}

void sm_pkeys_follow(struct sm *sm)
{
	if (sm->pkeys_changed)
		fabric_flow_mark_all(sm->f);
	sm->pkeys_changed = false;
}

int sm_pkeys_write(struct sm *sm)
{
	uint32_t budget;
	unsigned at = 0;
	int ret;

	do {
		budget = UINT32_MAX;
		ret = sm_pkeys_step(sm, &at, &budget);
	} while (ret > 0);
	sm_pkeys_follow(sm);
	return ret;
}

/* Checks that the P_Keys of @p fit. 0 or -ENOSPC. */
static int check_port(struct search *s, const struct fabric_port *p, char *why, size_t len)
{
	struct keys keys;

	/* with the rules for "self", as the subnet manager may move there */
	find_keys(s, p, p->node->type == FABRIC_HCA, &keys);
	if (keys.n <= SHM_PKEYS)
		return 0;
	snprintf(why, len, "port %u of '%s' would have %u P_Keys; its table has room for %d",
	         p->num, p->node->name, keys.n, SHM_PKEYS);
	return -ENOSPC;
}

int sm_partitions_check(const struct fabric *f, const struct partitions *all, char *why, size_t len)
{
	struct search s;
	int ret = search_init(&s, all);

	for (unsigned i = 0; i < f->n_nodes && !ret; i++) {
		const struct fabric_node *node = f->node[i];
		unsigned last = node->type == FABRIC_SWITCH ? 0 : node->n_ports;

		for (unsigned k = last ? 1 : 0; k <= last && !ret; k++)
			ret = check_port(&s, &node->port[k], why, len);
	}
	search_fini(&s);
	return ret;
}
