/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compiled forwarding: see flow.h. This file adds and removes flows, and finds those that a change
 * of the fabric affects; mcast_path.c compiles them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/forwarding/change.h"
#include "fabric/forwarding/flow.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/model/attach_table.h"
#include "fabric/model/lanes.h"

#define LIST_UNIT 64

void fabric_flow_init(struct fabric *f)
{
	struct shm_control *c = f->region->control;

	base_idtable_init(&f->flows->ids, SHM_MAX_FLOWS);
	shm_extents_init(&f->flows->lists, LIST_UNIT, c->lists_off, c->size - c->lists_off);
	TAILQ_INIT(&f->flows->unpruned);
	TAILQ_INIT(&f->flows->stale);
	TAILQ_INIT(&f->flows->changed);
	fabric_changes_init(&f->flows->changes);
	TAILQ_INIT(&f->flows->collect.waiting);
	f->flows->collect.turn = 1;
}

void fabric_flow_fini(struct fabric *f)
{
	for (uint32_t i = 0; i < f->flows->ids.size; i++) {
		struct fabric_flow *flow = base_idtable_get(&f->flows->ids, i);

		if (!flow)
			continue;
		flow->n_under_way = 0;
		fabric_flow_remove(f, flow);
	}
	fabric_changes_fini(&f->flows->changes);
	base_idtable_fini(&f->flows->ids);
	base_hash_fini(&f->flows->by_gid);
	base_hash_fini(&f->flows->by_lid);
	base_hash_fini(&f->flows->by_key);
	shm_extents_fini(&f->flows->lists);
	free(f->flows->list);
	free(f->flows->counted);
}

/* Makes the counts of a new flow zero. 0 or -ENOMEM. */
static int reset_counts(struct fabric *f, uint32_t id)
{
	struct shm_flow_count *c = shm_flow_count_at(f->region, id);
	struct fabric_flows *t = f->flows;
	int ret = base_array_reserve(&t->counted, &t->counted_room, (size_t)id + 1);

	if (ret)
		return ret;
	t->counted[id] = (struct fabric_flow_counted){ 0 };
	atomic_store_explicit(&c->packets, 0, memory_order_relaxed);
	atomic_store_explicit(&c->bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&c->back_packets, 0, memory_order_relaxed);
	atomic_store_explicit(&c->back_bytes, 0, memory_order_relaxed);
	return 0;
}

int fabric_flow_add(struct fabric *f, struct fabric_port *from, const struct fabric_flow_key *key,
                    struct fabric_flow **out)
{
	struct fabric_flow *flow = calloc(1, sizeof(*flow));
	struct fabric_mcast_path *path;
	int ret;

	if (!flow)
		return -ENOMEM;
	flow->from = from;
	flow->key = *key;
	ret = base_idtable_add(&f->flows->ids, flow, &flow->id);
	if (ret)
		goto err_free;
	ret = reset_counts(f, flow->id);
	if (!ret)
		ret = fabric_mcast_path_get(f, from, key, &path);
	if (ret)
		goto err_id;
	fabric_mcast_path_join(f, path, flow);
	TAILQ_INSERT_HEAD(&from->flows, flow, of_port);
	*out = flow;
	return 0;
err_id:
	base_idtable_remove(&f->flows->ids, flow->id);
err_free:
	free(flow);
	return ret;
}

static void end_flow(struct fabric *f, struct fabric_flow *flow)
{
	struct shm_flow *r = shm_flow_at(f->region, flow->id);
	struct fabric_mcast_path *path = flow->path;

	shm_write_begin(&r->seq);
	r->count = 0;
	shm_write_end(&r->seq);
	fabric_mcast_path_leave_port(flow);
	fabric_mcast_path_leave(f, flow);
	fabric_mcast_path_put(f, path);
	if (flow->back)
		fabric_mcast_path_put(f, flow->back);
	base_idtable_remove(&f->flows->ids, flow->id);
	free(flow);
}

void fabric_flow_remove(struct fabric *f, struct fabric_flow *flow)
{
	fabric_flow_find_back(f, flow);
	fabric_flow_count(f, flow);
	flow->is_given_up = true;
	if (!flow->n_under_way)
		end_flow(f, flow);
}

void fabric_flow_depart(struct fabric_flow *flow)
{
	flow->n_under_way++;
}

void fabric_flow_arrive(struct fabric *f, struct fabric_flow *flow)
{
	if (!--flow->n_under_way && flow->is_given_up)
		end_flow(f, flow);
}

struct fabric_flow *fabric_flow_find(const struct fabric *f, uint32_t id)
{
	struct fabric_flow *flow = base_idtable_get(&f->flows->ids, id);

	return flow && !flow->is_given_up ? flow : NULL;
}

/* ---- changes ---- */

static void each_to_group(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn,
                          void (*what)(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn))
{
	struct fabric_mcast_group *g = fabric_mcast_group_find(f, mgid);
	struct fabric_mcast_path *s;

	if (!g)
		return;
	LIST_FOREACH(s, &g->paths, of_group)
	what(f, s, qpn);
}

struct fabric_flow_sent fabric_flow_group_sent(const struct fabric *f, const struct ib_gid *mgid)
{
	const struct fabric_mcast_group *g = fabric_mcast_group_find(f, mgid);

	return g ? (struct fabric_flow_sent){ g->packets, g->bytes }
	         : (struct fabric_flow_sent){ 0 };
}

void fabric_flow_attached(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn)
{
	const struct fabric_change c = { .kind = FABRIC_CHANGE_RECEIVER,
		                         .mgid = *mgid,
		                         .qpn = qpn };

	if (!fabric_change_is_long(f, mgid) || fabric_change_add(f, &c))
		each_to_group(f, mgid, qpn, fabric_mcast_path_receiver_add);
}

void fabric_flow_detached(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn)
{
	each_to_group(f, mgid, qpn, fabric_mcast_path_receiver_remove);
}

static void count_flows(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn)
{
	struct fabric_flow *flow;
	uint32_t n = 0;

	(void)qpn;
	LIST_FOREACH(flow, &s->flows, of_mcast_path)
	{
		n++;
		if (!fabric_flow_has_more(f, flow->id))
			continue;
		fabric_flow_count(f, flow);
	}
	f->flows->work += 1 + n / FABRIC_FLOW_LOOKS;
}

static void count_flows_once(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn)
{
	f->flows->work++;
	if (s->counted_turn == f->flows->collect.turn)
		return;
	s->counted_turn = f->flows->collect.turn;
	count_flows(f, s, qpn);
}

void fabric_flow_count_group(struct fabric *f, const struct ib_gid *mgid, bool at_once)
{
	each_to_group(f, mgid, 0, at_once ? count_flows_once : count_flows);
}

static void note_unpruned(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn)
{
	(void)qpn;
	f->flows->work++;
	if (s->unpruned)
		return;
	s->unpruned = true;
	TAILQ_INSERT_TAIL(&f->flows->unpruned, s, of_unpruned);
}

void fabric_flow_dropped(struct fabric *f, const struct ib_gid *mgid)
{
	if (!fabric_change_is_long(f, mgid) || fabric_change_gone(f, mgid))
		each_to_group(f, mgid, 0, note_unpruned);
}

bool fabric_flow_prune(struct fabric *f, uint32_t *budget)
{
	struct fabric_mcast_path *s;

	while ((s = TAILQ_FIRST(&f->flows->unpruned)) && *budget) {
		uint64_t before = f->flows->work, cost;

		fabric_mcast_path_prune(f, s);
		cost = f->flows->work - before;
		*budget -= cost < *budget ? (uint32_t)cost : *budget;
	}
	return !s;
}

void fabric_flow_lid_changed(struct fabric *f, uint16_t lid)
{
	struct fabric_mcast_path *s;

	if (ib_lid_is_mcast(lid))
		base_log_trace(join, "flows to MLID 0x%04x are compiled again", lid);
	BASE_HASH_FOREACH(s, &f->flows->by_lid, lid, by_lid)
		fabric_mcast_path_compile(f, s);
}

void fabric_flow_note_lid(struct fabric *f, uint16_t lid)
{
	struct fabric_mcast_path *s;
	uint64_t looks = 0;

	BASE_HASH_FOREACH(s, &f->flows->by_lid, lid, by_lid) {
		fabric_mcast_path_note_stale(f, s);
		looks++;
	}
	f->flows->work += looks / FABRIC_FLOW_LOOKS;
}

/* Gives the flow the path that it should have now. False: it has it already. */
static bool change_path(struct fabric *f, struct fabric_flow *flow)
{
	struct fabric_mcast_path *old = flow->path, *new;

	fabric_flow_count(f, flow);
	if (fabric_mcast_path_get(f, flow->from, &flow->key, &new)) {
		base_log_warning(fabric, "out of memory: a flow keeps its old path");
		return true;
	}
	if (new == old)
		return false;
	fabric_mcast_path_leave(f, flow);
	fabric_mcast_path_join(f, new, flow);
	fabric_mcast_path_put(f, old);
	return true;
}

void fabric_flow_pkey_changed(struct fabric *f, struct fabric_flow *flow)
{
	if (!change_path(f, flow))
		fabric_mcast_path_compile(f, flow->path);
}

/* ---- changes that flows follow in slices ---- */

void fabric_flow_mark_lid(struct fabric *f, uint16_t lid)
{
	f->flows->marks.lid[lid / 64] |= 1ull << (lid % 64);
	f->flows->marks.any_lid = true;
}

void fabric_flow_set_lft_top(struct fabric *f, struct fabric_node *sw, uint16_t top)
{
	uint32_t lid = sw->lft_end, end;

	fabric_lft_set_top(sw, top);
	end = sw->lft_end;
	if (end < lid) {
		end = lid;
		lid = sw->lft_end;
	}
	for (; lid < end; lid++)
		fabric_flow_mark_lid(f, (uint16_t)lid);
}

/* Flows whose turn is near have it first, however often all change. */
void fabric_flow_mark_all(struct fabric *f)
{
	struct fabric_flow_marks *m = &f->flows->marks;

	if (m->any_lid)
		memset(m->lid, 0, sizeof(m->lid));
	m->any_lid = false;
	m->flows = m->size = f->flows->ids.size;
	m->round++;
}

/* Notes the flows to the next LID that is marked. */
static void follow_lids(struct fabric *f)
{
	struct fabric_flow_marks *m = &f->flows->marks;

	for (unsigned n = 0; n < ARRAY_SIZE(m->lid); n++, m->word++) {
		uint64_t *lids = &m->lid[m->word %= ARRAY_SIZE(m->lid)];

		if (!*lids)
			continue;
		fabric_flow_note_lid(f, (uint16_t)(m->word * 64 + __builtin_ctzll(*lids)));
		*lids &= *lids - 1;
		return;
	}
	m->any_lid = false;
}

static void follow_round(struct fabric *f, struct fabric_mcast_path *s)
{
	if (s && s->round != f->flows->marks.round)
		fabric_mcast_path_note_stale(f, s);
}

/* Looks at some of all flows. */
static void follow_flows(struct fabric *f)
{
	struct fabric_flow_marks *m = &f->flows->marks;

	/* the table has grown since: its beginning comes later */
	m->flows += f->flows->ids.size - m->size;
	m->size = f->flows->ids.size;
	for (unsigned n = 0; n < FABRIC_FLOW_LOOKS && m->flows; n++, m->flows--) {
		const struct fabric_flow *flow;

		if (m->at >= f->flows->ids.size)
			m->at = 0;
		flow = base_idtable_get(&f->flows->ids, m->at++);
		follow_round(f, flow ? flow->path : NULL);
		follow_round(f, flow ? flow->back : NULL);
	}
	f->flows->work++;
}

static bool is_behind(struct fabric *f)
{
	return fabric_mcast_path_is_behind(f) || fabric_changes_wait(f) ||
	       f->flows->marks.any_lid || f->flows->marks.flows;
}

static void follow_one(struct fabric *f)
{
	bool others = fabric_mcast_path_is_behind(f);

	f->flows->changes.turn ^= true; /* neither has to wait for the end of the other */
	if (fabric_changes_wait(f) && (f->flows->changes.turn || !others))
		fabric_changes_step(f);
	else if (others)
		fabric_mcast_path_follow(f);
	else if (f->flows->marks.any_lid)
		follow_lids(f);
	else
		follow_flows(f);
}

bool fabric_flow_follow(struct fabric *f, uint32_t *budget, uint32_t cost_of_work)
{
	while (is_behind(f)) {
		uint64_t cost = f->flows->work;

		if (!*budget)
			return false;
		follow_one(f);
		cost = cost_of_work * (f->flows->work - cost);
		*budget -= cost < *budget ? (uint32_t)cost : *budget;
	}
	return true;
}

void fabric_flow_follow_all(struct fabric *f)
{
	while (is_behind(f))
		follow_one(f);
}

/* The way of packets begins to depend on the port in: flows that enter at @sw by different ones
 * part. */
static void part_flows(struct fabric *f, struct fabric_node *sw)
{
	struct fabric_mcast_path *s = LIST_FIRST(&sw->entering), *next;

	if (sw->parts_ports)
		return;
	sw->parts_ports = true;
	for (; s; s = next) {
		struct fabric_flow *flow = LIST_FIRST(&s->flows), *other;

		next = LIST_NEXT(s, of_ingress); /* new paths come before it */
		for (; flow; flow = other) {
			other = LIST_NEXT(flow, of_mcast_path);
			change_path(f, flow);
		}
	}
}

void fabric_flow_lanes_changed(struct fabric *f, struct fabric_port *out)
{
	struct fabric_node *node = out->node;

	if (node->type == FABRIC_SWITCH && out->lanes && out->lanes->map)
		part_flows(f, node);
	fabric_mcast_path_lanes_changed(f, out);
}

static bool has_default_ports(const struct fabric_node *sw)
{
	return sw->mcast_primary <= sw->n_ports || sw->mcast_not_primary <= sw->n_ports;
}

static void mark_mlids(struct fabric *f, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		fabric_flow_mark_lid(f, (uint16_t)(IB_LID_MCAST_FIRST + i));
}

void fabric_flow_set_mcast(struct fabric *f, struct fabric_node *sw,
                           const struct fabric_mcast_info *to)
{
	bool had = has_default_ports(sw);
	uint32_t end = sw->mft_end;

	if (to->top == sw->mft_top && to->primary == sw->mcast_primary &&
	    to->not_primary == sw->mcast_not_primary)
		return;
	fabric_mft_set_top(sw, to->top);
	sw->mcast_primary = to->primary;
	sw->mcast_not_primary = to->not_primary;
	if (has_default_ports(sw))
		part_flows(f, sw);
	if (had || has_default_ports(sw))
		mark_mlids(f, 0, UINT16_MAX + 1 - IB_LID_MCAST_FIRST);
	else if (end < sw->mft_end)
		mark_mlids(f, end, sw->mft_end);
	else
		mark_mlids(f, sw->mft_end, end);
}

void fabric_flow_detour_changed(struct fabric *f)
{
	struct base_hash_node *n = NULL;

	while ((n = base_hash_walk(&f->flows->by_lid, n)))
		fabric_mcast_path_detour(f, container_of(n, struct fabric_mcast_path, by_lid));
}

void fabric_flow_all_changed(struct fabric *f)
{
	struct base_hash_node *n = NULL;

	while ((n = base_hash_walk(&f->flows->by_lid, n)))
		fabric_mcast_path_compile(f, container_of(n, struct fabric_mcast_path, by_lid));
}

void fabric_flow_edge_changed(struct fabric *f, struct fabric_port *out, uint16_t mlid,
                              uint64_t since)
{
	const struct fabric_attached *g = NULL;
	const struct ib_gid *mgid = NULL;
	struct fabric_mcast_path *s;

	base_log_trace(join, "flows to MLID 0x%04x that cross %s: they reach %s%s", mlid,
	               out->node->name, out->peer->node->name,
	               fabric_row_has(fabric_mft_get(out->node, mlid), out->num) ? "" : " no more");
	BASE_HASH_FOREACH(s, &f->flows->by_lid, mlid, by_lid) {
		if (s->compiled > since || !fabric_mcast_path_visits(s, out->node))
			continue;
		if (!mgid || !ib_gid_equal(mgid, &s->key.dgid)) {
			mgid = &s->key.dgid;
			g = fabric_attach_find(f, out->peer->node->hca, mgid);
		}
		fabric_mcast_path_edge(f, s, out, g);
	}
}

/* Packets that an HCA sends to itself cross no link. */
static void loops_changed(struct fabric *f, const struct fabric_port *p)
{
	uint64_t looks = 0;

	for (unsigned i = 0; p->lid && i < 1u << p->lmc; i++) {
		struct fabric_mcast_path *s;

		BASE_HASH_FOREACH(s, &f->flows->by_lid, p->lid + i, by_lid) {
			looks++;
			if (s->from == p && !s->ingress)
				fabric_mcast_path_note_stale(f, s);
		}
	}
	f->flows->work += looks / FABRIC_FLOW_LOOKS;
}

static void end_changed(struct fabric *f, struct fabric_port *p)
{
	fabric_mcast_path_link_changed(f, p);
	if (p->node->type == FABRIC_HCA)
		loops_changed(f, p);
}

void fabric_flow_note_link(struct fabric *f, struct fabric_port *p)
{
	end_changed(f, p);
	if (p->peer)
		end_changed(f, p->peer);
}
