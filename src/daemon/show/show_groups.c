/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "groups": multicast groups with their members, the queue pairs attached to them and
 * their trees. The view knows less of groups that another SA or, with RoCE, the network manages
 * than of those of our SA.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/show/show_tables.h"
#include "daemon/show/views.h"
#include "fabric/forwarding/attach.h"
#include "fabric/forwarding/flow.h"
#include "wire/rate.h"

#define PATH_COST 2 /* units of work (chores.h) */

static void add_tree(const struct daemon_show *s, struct show_json *o, uint16_t mlid)
{
	show_open(o, "tree", '[');
	for (unsigned i = 0; i < s->f->n_switches; i++) {
		const struct fabric_node *sw = s->switches[i];
		const struct fabric_mft_row *row = fabric_mft_get(sw, mlid);

		if (!row || fabric_row_is_empty(row))
			continue;
		show_open(o, NULL, '{');
		show_add_string(o, "switch", sw->name);
		show_add_mft_row(o, sw, row);
		show_close(o, '}');
	}
	show_close(o, ']');
}

static void add_attached(const struct daemon_show *s, struct show_json *o,
                         const struct ib_gid *mgid)
{
	show_open(o, "attached", '[');
	for (uint32_t hca = 0; hca < s->f->region->control->n_hcas; hca++) {
		struct fabric_attached *g = fabric_attach_find(s->f, hca, mgid);

		for (uint32_t i = 0; g && i < g->n; i++) {
			if (g->entry[i].again)
				continue;
			show_open(o, NULL, '{');
			show_add_text(o, "host", "%s", s->f->region->hcas[hca].host);
			show_add_text(o, "qpn", "0x%06x", g->entry[i].qpn);
			show_close(o, '}');
		}
	}
	show_close(o, ']');
}

static void add_sent(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                     const struct ib_gid *mgid)
{
	struct fabric_flow_sent sent = fabric_flow_group_sent(s->f, mgid);

	at->work += PATH_COST * sent.paths;
	show_add_u64(o, "sent_packets", sent.packets);
	show_add_u64(o, "sent_bytes", sent.bytes);
}

static int compare_members(const void *a, const void *b)
{
	const struct sa_member *const *m = a, *const *n = b;

	return (*m)->port->index < (*n)->port->index ? -1 : (*m)->port->index > (*n)->port->index;
}

/* The members of a group as an array, in the order of their ports. */
static void add_members(const struct daemon_show *s, struct show_json *o, const struct sa_group *g)
{
	const struct sa_member **sorted = calloc(g->n_members + 1, sizeof(struct sa_member *));

	show_open(o, "members", '[');
	for (unsigned i = 0; sorted && i < g->n_members; i++)
		sorted[i] = &g->member[i];
	if (sorted)
		qsort(sorted, g->n_members, sizeof(struct sa_member *), compare_members);
	else
		o->failed = true;
	for (unsigned i = 0; sorted && i < g->n_members; i++) {
		const struct fabric_port *p = sorted[i]->port;

		show_open(o, NULL, '{');
		show_add_text(o, "host", "%s", s->f->region->hcas[p->node->hca].host);
		show_add_gid(o, "port_gid", &s->f->region->ports[p->index].gid[0]);
		show_add_string(o, "join_state", show_join_name(sorted[i]->join_state));
		show_close(o, '}');
	}
	show_close(o, ']');
	free(sorted);
}

static void add_group(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                      const struct sa_group *g)
{
	show_open(o, NULL, '{');
	show_add_gid(o, "mgid", &g->rec.mgid);
	show_add_text(o, "mlid", "0x%04x", g->rec.mlid);
	show_add_text(o, "qkey", "0x%08x", g->rec.qkey);
	show_add_text(o, "pkey", "0x%04x", g->rec.pkey);
	show_add_u64(o, "mtu", IB_MTU_BYTES(g->rec.mtu));
	show_add_u64(o, "rate", g->rec.rate);
	show_add_u64(o, "rate_mbps", wire_rate_to_mbps(g->rec.rate));
	show_add_u64(o, "sl", g->rec.sl);
	add_sent(s, at, o, &g->rec.mgid);
	add_members(s, o, g);
	add_attached(s, o, &g->rec.mgid);
	add_tree(s, o, g->rec.mlid);
	show_close(o, '}');
}

/* The groups of one MLID of our SA: by MLID is the order in which they came, more or less. */
static bool show_mlid(const struct sa *sa, const struct daemon_show *s, struct show_at *at,
                      struct show_json *o)
{
	const struct sa_mlid *m;
	const struct sa_group *g;

	if (at->part >= sa->mlids.size)
		return false;
	m = base_idtable_get(&sa->mlids, at->part);
	for (g = m ? TAILQ_FIRST(&m->groups) : NULL; g; g = TAILQ_NEXT(g, of_mlid)) {
		add_group(s, at, o, g);
		at->work += s->f->region->control->n_hcas;
	}
	return true;
}

/*
 * What can be seen of the groups of a subnet administrator that is not ours: attachments, and
 * what its subnet manager has written into the switches. On Ethernet a group is what somebody is
 * attached to, and the network knows its members.
 */
struct seen {
	struct ib_gid mgid;
	uint32_t hca;
	uint16_t mlid;
};

static int compare_seen(const void *a, const void *b)
{
	const struct seen *m = a, *n = b;
	int by_mgid = memcmp(&m->mgid, &n->mgid, sizeof(m->mgid));

	if (by_mgid)
		return by_mgid;
	return m->hca < n->hca ? -1 : m->hca > n->hca;
}

/* Drops what differs from another one only in the HCA. How many are left. */
static uint32_t merge_hcas(struct seen *seen, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!kept || memcmp(&seen[kept - 1].mgid, &seen[i].mgid, sizeof(seen->mgid)))
			seen[kept++] = seen[i];
	return kept;
}

/* Lists what is attached just now, in at->state. */
static bool list_seen(const struct daemon_show *s, struct show_at *at)
{
	const struct base_hash *groups = &s->f->attach->groups;
	struct seen *seen = calloc(groups->n + 1, sizeof(*seen));
	struct base_hash_node *n;

	if (!seen)
		return false;
	for (n = base_hash_walk(groups, NULL); n; n = base_hash_walk(groups, n)) {
		const struct fabric_attached *g = container_of(n, struct fabric_attached, node);

		if (g->n)
			seen[at->n++] = (struct seen){ .mgid = g->mgid,
				                       .hca = g->hca,
				                       .mlid = g->entry[0].mlid };
	}
	qsort(seen, at->n, sizeof(*seen), compare_seen);
	if (s->f->n_ib_ports)
		at->n = merge_hcas(seen, at->n);
	at->state = seen;
	return true;
}

static void add_seen(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                     const struct seen *g)
{
	show_open(o, NULL, '{');
	show_add_gid(o, "mgid", &g->mgid);
	if (!s->f->n_ib_ports)
		show_add_text(o, "hca", "%s", s->f->region->hcas[g->hca].name);
	else
		show_add_text(o, "mlid", "0x%04x", g->mlid);
	add_sent(s, at, o, &g->mgid);
	add_attached(s, o, &g->mgid);
	if (s->f->n_ib_ports)
		add_tree(s, o, g->mlid);
	show_close(o, '}');
}

static bool has_tree(const struct daemon_show *s, uint16_t mlid)
{
	for (unsigned i = 0; i < s->f->n_switches; i++) {
		const struct fabric_mft_row *row = fabric_mft_get(s->switches[i], mlid);

		if (row && !fabric_row_is_empty(row))
			return true;
	}
	return false;
}

static bool is_seen(const struct show_at *at, uint16_t mlid)
{
	const struct seen *seen = at->state;

	for (uint32_t i = 0; i < at->n; i++)
		if (seen[i].mlid == mlid)
			return true;
	return false;
}

/* A tree to which nobody is attached. */
static bool show_bare_tree(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	uint32_t mlid = IB_LID_MCAST_FIRST + at->part - at->n;

	if (!s->f->n_ib_ports || mlid >= IB_LID_PERMISSIVE)
		return false;
	at->work += s->f->n_switches + 1;
	if (!has_tree(s, (uint16_t)mlid) || is_seen(at, (uint16_t)mlid))
		return true;
	show_open(o, NULL, '{');
	show_add_text(o, "mlid", "0x%04x", mlid);
	add_tree(s, o, (uint16_t)mlid);
	show_close(o, '}');
	return true;
}

bool daemon_show_group(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	if (!at->collected) {
		at->collected = daemon_show_collect(s, at);
		at->part--; /* no part yet */
		return true;
	}
	if (s->f->n_ib_ports && s->subnet->mad.sa)
		return show_mlid(s->subnet->mad.sa, s, at, o);
	if (!at->state && !list_seen(s, at)) {
		o->failed = true;
		return false;
	}
	if (at->part >= at->n)
		return show_bare_tree(s, at, o);
	add_seen(s, at, o, &((const struct seen *)at->state)[at->part]);
	at->work += s->f->region->control->n_hcas;
	return true;
}
