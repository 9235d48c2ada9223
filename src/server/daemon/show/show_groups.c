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
#include "fabric/forwarding/flow.h"
#include "fabric/plan/ethernet.h"
#include "wire/rate.h"

static void add_tree(const struct daemon_show *s, struct show_json *o, uint16_t mlid)
{
	show_open(o, "tree", '[');
	for (unsigned i = 0; i < s->f->n_switches; i++) {
		const struct fabric_node *sw = s->switches[i];
		const struct fabric_mft_row *row = fabric_mft_out(sw, mlid);

		if (!row || fabric_row_is_empty(row))
			continue;
		show_open(o, NULL, '{');
		show_add_string(o, "switch", sw->name);
		show_add_mft_row(o, sw, row);
		show_close(o, '}');
	}
	show_close(o, ']');
}

/* How an HCA on Ethernet is a member on its network: "join", by rdma_cm; "attach", as a queue pair
 * is attached and the settings take that for a join; or "none". */
static const char *member_by(const struct daemon_show *s, const struct fabric_attached *g)
{
	const struct fabric_port *port =
	        s->f->hca_port[shm_hca_at(s->f->region, g->hca)->first_port];

	if (cm_joined(s->clients->cm, port, &g->mgid, NULL) & IB_JOIN_FULL)
		return "join";
	return g->joined ? "attach" : "none";
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
			show_add_text(o, "host", "%s", shm_hca_at(s->f->region, hca)->host);
			show_add_text(o, "qpn", "0x%06x", g->entry[i].qpn);
			if (fabric_hca_is_ethernet(s->f, hca))
				show_add_string(o, "member_by", member_by(s, g));
			show_close(o, '}');
		}
	}
	show_close(o, ']');
}

static void add_sent(const struct daemon_show *s, struct show_json *o, const struct ib_gid *mgid)
{
	struct fabric_flow_sent sent = fabric_flow_group_sent(s->f, mgid);

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
		show_add_text(o, "host", "%s", shm_hca_at(s->f->region, p->node->hca)->host);
		show_add_gid(o, "port_gid", &shm_port_at(s->f->region, p->index)->gid[0]);
		show_add_string(o, "join_state", show_join_name(sorted[i]->join_state));
		show_close(o, '}');
	}
	show_close(o, ']');
	free(sorted);
}

static void add_group(const struct daemon_show *s, struct show_json *o, const struct sa_group *g)
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
	add_sent(s, o, &g->rec.mgid);
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
		add_group(s, o, g);
		at->work += s->f->region->control->n_hcas;
	}
	return true;
}

/*
 * The visible part of groups of a subnet administrator that is not ours: attachments, and the
 * entries that its subnet manager has written into the switches. On Ethernet a group is a GID that
 * a queue pair is attached to, and the network knows its members.
 */
struct seen {
	struct ib_gid mgid;
	uint32_t hca;
	uint16_t mlid;
};

/* All of them as a heap, of which a part takes the first one: to sort them would take long. */
struct all_seen {
	uint64_t mlids[(IB_LID_MCAST_LAST - IB_LID_MCAST_FIRST) / 64 + 1]; /* bits */
	struct ib_gid last; /* that was shown; all zero: none */
	uint32_t n;
	struct seen heap[];
};

static bool comes_before(const struct seen *a, const struct seen *b)
{
	int by_mgid = memcmp(&a->mgid, &b->mgid, sizeof(a->mgid));

	return by_mgid ? by_mgid < 0 : a->hca < b->hca;
}

/* Moves what is at @i down to where it belongs. */
static void sift(struct all_seen *all, uint32_t i)
{
	const struct seen moved = all->heap[i];
	uint32_t below;

	for (; (below = 2 * i + 1) < all->n; i = below) {
		if (below + 1 < all->n && comes_before(&all->heap[below + 1], &all->heap[below]))
			below++;
		if (!comes_before(&all->heap[below], &moved))
			break;
		all->heap[i] = all->heap[below];
	}
	all->heap[i] = moved;
}

/* Lists what is attached just now, in at->state. */
static bool list_seen(const struct daemon_show *s, struct show_at *at)
{
	const struct base_hash *groups = &s->f->attach->groups;
	struct all_seen *all = calloc(1, sizeof(*all) + groups->n * sizeof(struct seen));
	struct base_hash_node *n;

	if (!all)
		return false;
	for (n = base_hash_walk(groups, NULL); n; n = base_hash_walk(groups, n)) {
		const struct fabric_attached *g = container_of(n, struct fabric_attached, node);
		uint16_t bit;

		if (!g->n)
			continue;
		all->heap[all->n++] = (struct seen){ g->mgid, g->hca, g->entry[0].mlid };
		bit = (uint16_t)(g->entry[0].mlid - IB_LID_MCAST_FIRST);
		if (bit / 64 < ARRAY_SIZE(all->mlids))
			all->mlids[bit / 64] |= 1ull << (bit % 64);
	}
	for (uint32_t i = all->n / 2; i-- > 0;)
		sift(all, i);
	at->n = all->n;
	at->state = all;
	return true;
}

/* The next one, in order of MGIDs. */
static struct seen take_seen(struct all_seen *all)
{
	struct seen first = all->heap[0];

	all->heap[0] = all->heap[--all->n];
	if (all->n)
		sift(all, 0);
	return first;
}

static void add_seen(const struct daemon_show *s, struct show_json *o, const struct seen *g)
{
	show_open(o, NULL, '{');
	show_add_gid(o, "mgid", &g->mgid);
	if (!s->f->n_ib_ports)
		show_add_text(o, "hca", "%s", shm_hca_at(s->f->region, g->hca)->name);
	else
		show_add_text(o, "mlid", "0x%04x", g->mlid);
	add_sent(s, o, &g->mgid);
	add_attached(s, o, &g->mgid);
	if (s->f->n_ib_ports)
		add_tree(s, o, g->mlid);
	show_close(o, '}');
}

static bool has_tree(const struct daemon_show *s, uint16_t mlid)
{
	for (unsigned i = 0; i < s->f->n_switches; i++) {
		const struct fabric_mft_row *row = fabric_mft_out(s->switches[i], mlid);

		if (row && !fabric_row_is_empty(row))
			return true;
	}
	return false;
}

static bool is_seen(const struct show_at *at, uint16_t mlid)
{
	const struct all_seen *all = at->state;
	unsigned bit = mlid - IB_LID_MCAST_FIRST;

	return all->mlids[bit / 64] >> (bit % 64) & 1;
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

/* A group, once; on Ethernet, once for each HCA. */
static void show_seen(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	struct all_seen *all = at->state;
	struct seen g = take_seen(all);

	at->work += 2;
	if (s->f->n_ib_ports && ib_gid_equal(&g.mgid, &all->last))
		return;
	all->last = g.mgid;
	add_seen(s, o, &g);
	at->work += s->f->region->control->n_hcas;
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
	show_seen(s, at, o);
	return true;
}
