/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast paths, and the paths of single flows: see mcast_path.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/array.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/model/lanes.h"
#include "fabric/model/routers.h"
#include "wire/ip.h"

#define LIST_UNIT 64

/* ---- hops ---- */

/* Elements of an array that moves, each in a list of its port. */
static void link_hop(struct fabric_mcast_path_hop *h)
{
	TAILQ_INSERT_HEAD(&h->out->hops, h, of_port);
}

/* Which of the two lists it is in makes no difference, unless it is the last. */
static void unlink_hop(struct fabric_mcast_path_hop *h)
{
	struct fabric_port *out = h->out;

	if (TAILQ_LAST(&out->old_hops, fabric_port_hops) == h)
		TAILQ_REMOVE(&out->old_hops, h, of_port);
	else
		TAILQ_REMOVE(&out->hops, h, of_port);
}

void fabric_mcast_path_leave_port(struct fabric_flow *flow)
{
	struct fabric_port *from = flow->from;

	if (TAILQ_LAST(&from->old_flows, fabric_port_flows) == flow)
		TAILQ_REMOVE(&from->old_flows, flow, of_port);
	else
		TAILQ_REMOVE(&from->flows, flow, of_port);
}

static void unlink_all(struct fabric_mcast_path *s)
{
	for (uint32_t i = 0; i < s->n_hops; i++)
		unlink_hop(&s->hop[i]);
}

static void clear_hops(struct fabric_mcast_path *s)
{
	unlink_all(s);
	s->n_hops = 0;
	if (s->is_noted)
		LIST_REMOVE(s, of_lacking);
	s->lacks_hops = s->is_noted = false;
}

static int push_hop(struct fabric_mcast_path *s, const struct fabric_mcast_path_hop *h)
{
	int ret = 0;

	if (s->n_hops == s->hop_room) {
		unlink_all(s);
		ret = base_array_reserve(&s->hop, &s->hop_room, (size_t)s->n_hops + 1);
		for (uint32_t i = 0; i < s->n_hops; i++)
			link_hop(&s->hop[i]);
	}
	if (ret)
		return ret;
	s->hop[s->n_hops] = *h;
	link_hop(&s->hop[s->n_hops++]);
	return 0;
}

static void pull_hop(struct fabric_mcast_path *s, const struct fabric_port *out)
{
	for (uint32_t i = 0; i < s->n_hops; i++) {
		if (s->hop[i].out != out)
			continue;
		unlink_hop(&s->hop[i]);
		if (i == --s->n_hops)
			return;
		unlink_hop(&s->hop[s->n_hops]);
		s->hop[i] = s->hop[s->n_hops];
		link_hop(&s->hop[i]);
		return;
	}
}

/* ---- which path a flow has ---- */

/* Whether the GID is a group's, on either link layer. A multicast GID with a unicast LID reaches a
 * port, and no queue pair that is attached. */
static bool is_to_group(const struct fabric_flow_key *key)
{
	return wire_gid_is_ip_mcast(&key->dgid) && ib_lid_is_mcast(key->dlid);
}

struct fabric_mcast_group *fabric_mcast_group_find(const struct fabric *f,
                                                   const struct ib_gid *mgid)
{
	struct fabric_mcast_group *g;

	BASE_HASH_FOREACH(g, &f->flows->by_gid, base_hash_of(mgid, 16, 0), by_gid)
		if (ib_gid_equal(&g->mgid, mgid))
			return g;
	return NULL;
}

static int enter_group(struct fabric *f, struct fabric_mcast_path *s)
{
	struct fabric_mcast_group *g = fabric_mcast_group_find(f, &s->key.dgid);
	int ret;

	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g)
			return -ENOMEM;
		g->mgid = s->key.dgid;
		ret = base_hash_add(&f->flows->by_gid, &g->by_gid, base_hash_of(&g->mgid, 16, 0));
		if (ret) {
			free(g);
			return ret;
		}
	}
	s->group = g;
	LIST_INSERT_HEAD(&g->paths, s, of_group);
	return 0;
}

static void leave_group(struct fabric *f, struct fabric_mcast_path *s)
{
	struct fabric_mcast_group *g = s->group;

	if (!g)
		return;
	LIST_REMOVE(s, of_group);
	g->packets -= s->packets;
	g->bytes -= s->bytes;
	if (!LIST_EMPTY(&g->paths))
		return;
	base_hash_remove(&f->flows->by_gid, &g->by_gid);
	free(g);
}

/* The switch whose senders to the group share one path, or NULL: the flow shares with none. */
static struct fabric_node *ingress_of(const struct fabric_port *from,
                                      const struct fabric_flow_key *key)
{
	if (from->ethernet || !ib_lid_is_mcast(key->dlid) || !from->peer ||
	    from->peer->node->type != FABRIC_SWITCH)
		return NULL;
	return from->peer->node;
}

static bool blocks_loopback(const struct fabric *f, const struct fabric_flow_key *key)
{
	return !key->pkey &&
	       shm_qp_at(f->region, SHM_QP_INDEX(key->qpn))->flags & SHM_QP_BLOCK_LOOPBACK;
}

static uint16_t pkey_of(const struct fabric *f, const struct fabric_flow_key *key)
{
	return key->pkey ? key->pkey : shm_qp_at(f->region, SHM_QP_INDEX(key->qpn))->pkey;
}

static uint64_t key_hash(const struct fabric_node *ingress, uint8_t in,
                         const struct fabric_flow_key *key)
{
	return base_hash_of(&key->dgid, sizeof(key->dgid),
	                    (uint64_t)ingress->index << 28 | in << 20 | key->sl << 16 | key->dlid);
}

/* By which port of the ingress packets come, if their way depends on it; else 0. */
static uint8_t port_in(const struct fabric_port *from, const struct fabric_node *ingress)
{
	return ingress && ingress->parts_ports ? from->peer->num : 0;
}

static struct fabric_mcast_path *find(const struct fabric *f, const struct fabric_port *from,
                                      const struct fabric_node *ingress,
                                      const struct fabric_flow_key *key)
{
	uint8_t in = port_in(from, ingress);
	uint16_t pkey = pkey_of(f, key);
	struct fabric_mcast_path *s;

	BASE_HASH_FOREACH(s, &f->flows->by_key, key_hash(ingress, in, key), by_key)
		if (s->ingress == ingress && s->in == in && s->key.sl == key->sl &&
		    s->key.dlid == key->dlid && s->pkey == pkey &&
		    s->key.is_global == key->is_global && ib_gid_equal(&s->key.dgid, &key->dgid))
			return s;
	return NULL;
}

static bool is_shared(const struct fabric_mcast_path *s)
{
	return !s->key.qpn;
}

/* Adds @s to the tables in which flow.c finds it. */
static int enlist(struct fabric *f, struct fabric_mcast_path *s)
{
	struct fabric_flows *t = f->flows;
	int ret = base_hash_add(&t->by_lid, &s->by_lid, s->key.dlid);

	if (ret)
		return ret;
	if (is_to_group(&s->key))
		ret = enter_group(f, s);
	if (ret)
		goto err_by_lid;
	if (is_shared(s))
		ret = base_hash_add(&t->by_key, &s->by_key, key_hash(s->ingress, s->in, &s->key));
	if (ret)
		goto err_group;
	if (s->ingress)
		LIST_INSERT_HEAD(&s->ingress->entering, s, of_ingress);
	return 0;
err_group:
	leave_group(f, s);
err_by_lid:
	base_hash_remove(&t->by_lid, &s->by_lid);
	return ret;
}

int fabric_mcast_path_get(struct fabric *f, struct fabric_port *from,
                          const struct fabric_flow_key *key, struct fabric_mcast_path **out)
{
	struct fabric_node *ingress = ingress_of(from, key);
	bool shared = ingress && !blocks_loopback(f, key);
	struct fabric_mcast_path *s = shared ? find(f, from, ingress, key) : NULL;
	int ret = -ENOMEM;

	if (s) {
		/* the new flow may have a number that has had its turn, and the others end before
		 * theirs */
		if (s->round != f->flows->marks.round)
			fabric_mcast_path_note_stale(f, s);
		*out = s;
		return 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->key = *key;
	s->pkey = pkey_of(f, key);
	if (shared)
		s->key.qpn = 0;
	s->ingress = ingress;
	s->in = port_in(from, ingress);
	s->from = from;
	LIST_INIT(&s->flows);
	s->visited_words = ib_lid_is_mcast(key->dlid) ? f->n_switches / 64 + 1 : 0;
	s->visited = calloc(s->visited_words + 1, sizeof(*s->visited));
	if (s->visited)
		ret = enlist(f, s);
	if (ret) {
		free(s->visited);
		free(s);
		return ret;
	}
	fabric_mcast_path_compile(f, s);
	*out = s;
	return 0;
}

/* The path is about to end: the change that is under way (change.h) goes on behind it. */
static void skip_path(struct fabric *f, const struct fabric_mcast_path *s)
{
	struct fabric_changes *at = &f->flows->changes;

	if (at->path != s)
		return;
	at->path = LIST_NEXT(s, of_group);
	at->flow = NULL;
	at->skipped = true;
}

void fabric_mcast_path_put(struct fabric *f, struct fabric_mcast_path *s)
{
	struct fabric_flows *t = f->flows;

	if (!LIST_EMPTY(&s->flows))
		return;
	skip_path(f, s);
	base_hash_remove(&t->by_lid, &s->by_lid);
	leave_group(f, s);
	if (is_shared(s))
		base_hash_remove(&t->by_key, &s->by_key);
	if (s->ingress)
		LIST_REMOVE(s, of_ingress);
	if (s->unpruned)
		TAILQ_REMOVE(&t->unpruned, s, of_unpruned);
	if (s->stale)
		TAILQ_REMOVE(&t->stale, s, of_stale);
	clear_hops(s);
	if (s->list_room)
		shm_extent_put(&t->lists, s->list_off);
	free(s->visited);
	free(s->hop);
	free(s->loss);
	free(s->reached);
	free(s);
}

/* ---- records ---- */

static struct shm_flow *record_of(const struct fabric *f, const struct fabric_flow *flow)
{
	return shm_flow_at(f->region, flow->id);
}

/* Whether the flow's packets get over their first link, into the switch. */
static enum fabric_flow_start start_of(const struct fabric_mcast_path *s,
                                       const struct fabric_flow *flow)
{
	if (!s->ingress)
		return FABRIC_FLOW_IN;
	if (!fabric_port_carries(flow->from) ||
	    fabric_lane_of(flow->from, 0, s->key.sl) == FABRIC_LANE_NONE)
		return FABRIC_FLOW_CUT;
	if (s->pkey && !fabric_port_admits(flow->from->peer, s->pkey))
		return FABRIC_FLOW_BARRED;
	return FABRIC_FLOW_IN;
}

/* From a router's port on, the daemon takes the packets. */
static bool detours(const struct fabric *f, const struct fabric_mcast_path *s,
                    const struct fabric_flow *flow)
{
	const struct fabric_flow_detour *d = &f->flows->detour;

	return ((s->routers & f->routers->active) && fabric_flow_type(f, flow) == IBV_QPT_UD) ||
	       (d->takes && d->takes(d->arg, flow));
}

/* Fills the flow's record, whose seq is odd meanwhile. */
static void fill_record(const struct fabric *f, const struct fabric_mcast_path *s,
                        struct fabric_flow *flow)
{
	struct shm_flow *r = record_of(f, flow);
	uint8_t mtu = s->mtu < flow->from->mtu ? s->mtu : flow->from->mtu;

	flow->vl = fabric_lane_of(flow->from, 0, s->key.sl);
	flow->start = start_of(s, flow);
	r->count = flow->start == FABRIC_FLOW_IN ? s->count : 0;
	r->list_off = s->list_off;
	r->dest_port = s->n_reached ? s->reached[0]->index : 0;
	r->flags = (s->roce ? SHM_FLOW_ROCE : 0) | (detours(f, s, flow) ? SHM_FLOW_DETOUR : 0);
	r->mtu = IB_MTU_BYTES(mtu);
}

/* Makes seq of all records odd that point at the list, which may be freed or rewritten now. */
static void begin(const struct fabric *f, const struct fabric_mcast_path *s)
{
	struct fabric_flow *flow;

	for (flow = LIST_FIRST(&s->flows); flow; flow = LIST_NEXT(flow, of_mcast_path))
		shm_write_begin(&record_of(f, flow)->seq);
}

static void end(const struct fabric *f, const struct fabric_mcast_path *s)
{
	struct fabric_flow *flow;

	for (flow = LIST_FIRST(&s->flows); flow; flow = LIST_NEXT(flow, of_mcast_path)) {
		fill_record(f, s, flow);
		shm_write_end(&record_of(f, flow)->seq);
		f->flows->work++;
	}
}

void fabric_mcast_path_write(const struct fabric *f, const struct fabric_mcast_path *s,
                             struct fabric_flow *flow)
{
	shm_write_begin(&record_of(f, flow)->seq);
	fill_record(f, s, flow);
	shm_write_end(&record_of(f, flow)->seq);
}

/* Senders copy a record whose sequence number has changed: only where that is needed. */
void fabric_mcast_path_detour(const struct fabric *f, const struct fabric_mcast_path *s)
{
	struct fabric_flow *flow;

	LIST_FOREACH(flow, &s->flows, of_mcast_path)
	{
		const bool is = record_of(f, flow)->flags & SHM_FLOW_DETOUR;

		if (is != detours(f, s, flow))
			fabric_mcast_path_write(f, s, flow);
	}
}

void fabric_mcast_path_join(struct fabric *f, struct fabric_mcast_path *s, struct fabric_flow *flow)
{
	LIST_INSERT_HEAD(&s->flows, flow, of_mcast_path);
	flow->path = s;
	if (s->group)
		s->group->n_flows++;
	fabric_mcast_path_write(f, s, flow);
}

void fabric_mcast_path_leave(struct fabric *f, struct fabric_flow *flow)
{
	if (f->flows->changes.flow == flow) /* the change goes on behind it */
		f->flows->changes.flow = LIST_NEXT(flow, of_mcast_path);
	if (flow->path->group)
		flow->path->group->n_flows--;
	LIST_REMOVE(flow, of_mcast_path);
	flow->path = NULL;
}

/* To be called before the path changes: the packets counted so far went by the old one. */
static void count_all(struct fabric *f, const struct fabric_mcast_path *s)
{
	struct fabric_flow *flow;

	for (flow = LIST_FIRST(&s->flows); flow; flow = LIST_NEXT(flow, of_mcast_path))
		fabric_flow_count(f, flow);
}

/* ---- walking the tables ---- */

/* Adds @p to an array that grows. */
static int push_port(struct fabric_port ***array, uint32_t *n, uint32_t *room,
                     struct fabric_port *p)
{
	int ret = base_array_reserve(array, room, (size_t)*n + 1);

	if (!ret)
		(*array)[(*n)++] = p;
	return ret;
}

/* Removes @p from an array, wherever it is. */
static void pull_port(struct fabric_port **array, uint32_t *n, const struct fabric_port *p)
{
	for (uint32_t i = 0; i < *n; i++) {
		if (array[i] == p) {
			array[i] = array[--*n];
			return;
		}
	}
}

static void visit(struct fabric_mcast_path *s, const struct fabric_node *sw)
{
	if (sw->type == FABRIC_SWITCH && sw->index / 64 < s->visited_words)
		s->visited[sw->index / 64] |= 1ull << (sw->index % 64);
}

bool fabric_mcast_path_visits(const struct fabric_mcast_path *s, const struct fabric_node *sw)
{
	return sw->type == FABRIC_SWITCH && sw->index / 64 < s->visited_words &&
	       (s->visited[sw->index / 64] >> (sw->index % 64) & 1);
}

static void on_hop(void *arg, struct fabric_port *out, uint8_t in, uint8_t vl)
{
	struct fabric_mcast_path *s = arg;
	const struct fabric_mcast_path_hop hop = { .out = out, .path = s, .vl = vl, .in = in };

	if (vl != FABRIC_LANE_NONE)
		visit(s, out->peer->node);
	if (!push_hop(s, &hop))
		return;
	s->lacks_hops = true;
	base_log_warning(fabric,
	                 "out of memory: a flow's packets will be missing from port counters");
}

/* Whatever happens to a link may concern it, if it is not in the lists of all that it crosses. */
static void note_lacking(struct fabric *f, struct fabric_mcast_path *s)
{
	if (!s->lacks_hops || s->is_noted)
		return;
	s->is_noted = true;
	LIST_INSERT_HEAD(&f->flows->lacking, s, of_lacking);
}

/* Whether packets may go on to other subnets, by their destination. */
static bool may_leave(const struct fabric_mcast_path *s)
{
	return s->key.is_global &&
	       (!ib_lid_is_mcast(s->key.dlid) || fabric_mgid_is_wide(&s->key.dgid));
}

static void on_reached(void *arg, struct fabric_port *hca)
{
	struct fabric_mcast_path *s = arg;

	if (hca->router && may_leave(s))
		s->routers |= fabric_router_bit(hca);
	if (push_port(&s->reached, &s->n_reached, &s->reached_room, hca))
		base_log_warning(fabric, "out of memory: a flow does not reach all its receivers");
}

static void on_lost(void *arg, struct fabric_port *at, enum fabric_loss why)
{
	struct fabric_mcast_path *s = arg;

	if (base_array_reserve(&s->loss, &s->loss_room, (size_t)s->n_losses + 1)) {
		base_log_warning(fabric,
		                 "out of memory: a flow's losses will be missing from counters");
		return;
	}
	s->loss[s->n_losses++] = (struct fabric_mcast_path_loss){ .at = at, .why = why };
}

/* A port accepts only packets with one of its GIDs; a router's, while it is one, datagrams for
 * other subnets, too. */
static bool is_for(const struct fabric *f, const struct fabric_mcast_path *s,
                   const struct fabric_port *p)
{
	if (fabric_port_has_gid(f, p, &s->key.dgid))
		return true;
	return p->router && f->routers->active & fabric_router_bit(p) &&
	       fabric_gid_is_beyond(f, &s->key.dgid) &&
	       (s->key.pkey || shm_qp_at(f->region, SHM_QP_INDEX(s->key.qpn))->type == IBV_QPT_UD);
}

/* Walks the switches' tables. */
static void walk(struct fabric *f, struct fabric_mcast_path *s)
{
	struct fabric_walk w = { .hop = on_hop,
		                 .reached = on_reached,
		                 .lost = on_lost,
		                 .arg = s,
		                 .pkey = s->pkey,
		                 .sl = s->key.sl,
		                 .in = s->in };

	if (s->ingress) {
		visit(s, s->ingress);
		fabric_walk_from_switch(f, s->ingress, s->key.dlid, &w);
	} else if (ib_lid_is_mcast(s->key.dlid)) {
		fabric_walk_multicast(f, s->from, s->key.dlid, &w);
	} else {
		fabric_walk_unicast(f, s->from, s->key.dlid, &w);
		if (s->n_reached && s->key.is_global && !is_for(f, s, s->reached[0]))
			s->n_reached = 0;
		if (!s->n_reached || !fabric_gid_is_beyond(f, &s->key.dgid))
			s->routers = 0;
	}
	s->mtu = w.mtu;
}

/* Whether the queue pair sends datagrams, and no messages of a connection. */
static bool sends_datagrams(const struct shm_qp *qp)
{
	return qp->type == IBV_QPT_UD || qp->flags & SHM_QP_ROCE;
}

/*
 * From an Ethernet port: packets to a group go to the queue pairs attached on this HCA and to the
 * network; packets to a GID of this fabric go to its port in memory, all others to the network.
 * Packets received from the network are for this HCA only.
 */
static void walk_ethernet(struct fabric *f, struct fabric_mcast_path *s)
{
	const struct shm_qp *qp = shm_qp_at(f->region, SHM_QP_INDEX(s->key.qpn));
	bool is_datagram = sends_datagrams(qp), from_wire = qp->flags & SHM_QP_ROCE;
	struct fabric_port *to = s->from;

	s->mtu = s->from->mtu;
	if (s->from->state != IB_PORT_ACTIVE)
		return;
	s->roce = !from_wire;
	if (!ib_lid_is_mcast(s->key.dlid)) {
		to = is_datagram ? fabric_ethernet_find(f, s->from, &s->key.dgid)
		                 : fabric_ethernet_find_anywhere(f, s->from, &s->key.dgid);
		if (!to)
			return;
		s->roce = false;
	}
	on_reached(s, to);
	if (to->mtu < s->mtu)
		s->mtu = to->mtu;
}

/* ---- the list of receivers ---- */

static void list_push(struct fabric_flows *t, uint32_t qpn)
{
	if (base_array_reserve(&t->list, &t->list_room, (size_t)t->n_list + 1)) {
		base_log_warning(fabric, "out of memory: a flow does not reach all its receivers");
		return;
	}
	t->list[t->n_list++] = qpn;
}

/* Whether BLOCK_SELF_MCAST_LB of the path's only sender blocks the copy for @qpn on @hca. */
static bool loopback_blocked(const struct fabric *f, const struct fabric_mcast_path *s,
                             uint32_t qpn, const struct fabric_node *hca)
{
	if (is_shared(s) || !blocks_loopback(f, &s->key))
		return false;
	return qpn == s->key.qpn || (f->settings.block_loopback_host && hca == s->from->node);
}

/* Whether @qpn, which is attached on @p's HCA, gets the packets that reach @p. */
static bool accepts(const struct fabric *f, const struct fabric_mcast_path *s,
                    const struct fabric_port *p, uint32_t qpn)
{
	const struct shm_qp *qp = shm_qp_at(f->region, SHM_QP_INDEX(qpn));

	return qp->port == p->index && qp->port_num && !loopback_blocked(f, s, qpn, p->node);
}

/* Lists the receivers at @p. @g: the attachments to the group on @p's HCA, or NULL. */
static void list_attached(struct fabric *f, const struct fabric_mcast_path *s,
                          struct fabric_port *p, const struct fabric_attached *g)
{
	for (uint32_t i = 0; g && i < g->n; i++)
		if (!g->entry[i].again && !g->entry[i].leaves && accepts(f, s, p, g->entry[i].qpn))
			list_push(f->flows, g->entry[i].qpn);
}

/* Makes room in shared memory for the scratch list; without memory the list becomes empty. */
static void list_room(struct fabric *f, struct fabric_mcast_path *s)
{
	struct fabric_flows *t = f->flows;

	if (t->n_list <= s->list_room)
		return;
	if (s->list_room)
		shm_extent_put(&t->lists, s->list_off);
	s->list_room = (uint32_t)base_align_up(t->n_list * 2, LIST_UNIT / sizeof(uint32_t));
	s->list_off = shm_extent_get(&t->lists, s->list_room * sizeof(uint32_t));
	if (!s->list_off) {
		base_log_warning(fabric, "no room for a list of %u receivers", t->n_list);
		s->list_room = 0;
		t->n_list = 0;
	}
}

uint32_t *fabric_mcast_path_list(const struct fabric *f, const struct fabric_mcast_path *s)
{
	return (uint32_t *)((char *)f->region->control + s->list_off);
}

void fabric_mcast_path_compile(struct fabric *f, struct fabric_mcast_path *s)
{
	struct fabric_flows *t = f->flows;
	bool is_mcast = ib_lid_is_mcast(s->key.dlid);

	count_all(f, s);
	clear_hops(s);
	s->round = t->marks.round;
	s->compiled = ++t->compiled;
	s->n_reached = s->n_losses = 0;
	s->roce = false;
	s->routers = 0;
	memset(s->visited, 0, s->visited_words * sizeof(*s->visited));
	t->n_list = 0;
	if (s->from->ethernet)
		walk_ethernet(f, s);
	else
		walk(f, s);
	note_lacking(f, s);
	for (uint32_t i = 0; i < s->n_reached && is_mcast; i++)
		list_attached(f, s, s->reached[i],
		              fabric_attach_find(f, s->reached[i]->node->hca, &s->key.dgid));
	begin(f, s);
	s->count = s->n_reached;
	if (is_mcast) {
		list_room(f, s);
		s->count = t->n_list;
	}
	if (is_mcast && s->count)
		memcpy(fabric_mcast_path_list(f, s), t->list, s->count * sizeof(*t->list));
	end(f, s);
	t->work += 1 + s->n_hops + s->count;
}

/* ---- changes without a new walk ---- */

/* Whether packets reach @p: from its switch, or over a link between two HCAs. */
static bool reaches(const struct fabric *f, const struct fabric_mcast_path *s,
                    const struct fabric_port *p)
{
	if (p->peer && p->peer->node->type == FABRIC_SWITCH &&
	    !fabric_mft_is_beyond(f, p->peer->node, s->key.dlid))
		return fabric_mcast_path_visits(s, p->peer->node) && fabric_port_carries(p->peer) &&
		       fabric_row_has(fabric_mft_out(p->peer->node, s->key.dlid), p->peer->num);
	for (uint32_t i = 0; i < s->n_reached; i++)
		if (s->reached[i] == p)
			return true;
	return false;
}

/* Appends the scratch list to the list. */
static void list_append(struct fabric *f, struct fabric_mcast_path *s)
{
	const struct fabric_flows *t = f->flows;

	if (s->count + t->n_list > s->list_room) {
		fabric_mcast_path_compile(f, s);
		return;
	}
	begin(f, s);
	if (t->n_list)
		memcpy(fabric_mcast_path_list(f, s) + s->count, t->list,
		       t->n_list * sizeof(*t->list));
	s->count += t->n_list;
	end(f, s);
}

/* Whether @qpn gets the path's packets, if it is attached. */
static bool may_receive(const struct fabric *f, const struct fabric_mcast_path *s, uint32_t qpn)
{
	const struct shm_qp *qp = shm_qp_at(f->region, SHM_QP_INDEX(qpn));

	return qp->port_num && reaches(f, s, f->hca_port[qp->port]) &&
	       accepts(f, s, f->hca_port[qp->port], qpn);
}

bool fabric_mcast_path_is_for(const struct fabric *f, const struct fabric_mcast_path *s,
                              uint32_t qpn)
{
	const struct shm_qp *qp = shm_qp_at(f->region, SHM_QP_INDEX(qpn));

	return qp->qpn == qpn && may_receive(f, s, qpn) &&
	       fabric_attach_has(f, f->hca_port[qp->port]->node->hca, qpn, &s->key.dgid);
}

void fabric_mcast_path_receiver_add(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn)
{
	if (!may_receive(f, s, qpn))
		return;
	f->flows->n_list = 0;
	list_push(f->flows, qpn);
	list_append(f, s);
}

void fabric_mcast_path_receiver_remove(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn)
{
	uint32_t *list = fabric_mcast_path_list(f, s);

	for (uint32_t i = 0; i < s->count; i++) {
		if (list[i] != qpn)
			continue;
		begin(f, s);
		list[i] = list[--s->count];
		end(f, s);
		f->flows->work += i / FABRIC_FLOW_LOOKS;
		return;
	}
}

/* Removes the receivers of which @stays is false: one look at the list, however many they are. */
static void keep(struct fabric *f, struct fabric_mcast_path *s,
                 bool (*stays)(const struct fabric *f, uint32_t qpn, const struct fabric_port *p),
                 const struct fabric_port *p)
{
	uint32_t *list = fabric_mcast_path_list(f, s), from = 0, to;

	f->flows->work += 1 + s->count / 8;
	while (from < s->count && stays(f, list[from], p))
		from++;
	if (from == s->count)
		return;
	begin(f, s);
	for (to = from; from < s->count; from++)
		if (stays(f, list[from], p))
			list[to++] = list[from];
	s->count = to;
	end(f, s);
}

static bool is_there(const struct fabric *f, uint32_t qpn, const struct fabric_port *p)
{
	(void)p;
	return shm_qp_at(f->region, SHM_QP_INDEX(qpn))->qpn == qpn;
}

/* Whether the queue pair, which may be gone, is not at @p. */
static bool is_elsewhere(const struct fabric *f, uint32_t qpn, const struct fabric_port *p)
{
	return shm_qp_at(f->region, SHM_QP_INDEX(qpn))->port != p->index;
}

void fabric_mcast_path_prune(struct fabric *f, struct fabric_mcast_path *s)
{
	if (s->unpruned)
		TAILQ_REMOVE(&f->flows->unpruned, s, of_unpruned);
	s->unpruned = false;
	keep(f, s, is_there, NULL);
}

static void edge_gained(struct fabric *f, struct fabric_mcast_path *s, struct fabric_port *out)
{
	on_hop(s, out, FABRIC_HOP_IN_UNKNOWN, fabric_lane_of(out, 0, s->key.sl));
	on_reached(s, out->peer);
	if (out->mtu < s->mtu)
		s->mtu = out->mtu;
	list_append(f, s);
}

static void edge_lost(struct fabric *f, struct fabric_mcast_path *s, struct fabric_port *out)
{
	if (out->mtu <= s->mtu && s->mtu < f->settings.mtu) {
		fabric_mcast_path_compile(f, s); /* its MTU may have been the smallest */
		return;
	}
	pull_hop(s, out);
	pull_port(s->reached, &s->n_reached, out->peer);
	if (out->peer->router) {
		s->routers &= (uint16_t)~fabric_router_bit(out->peer);
		fabric_mcast_path_detour(f, s);
	}
	if (f->flows->n_list == 1)
		fabric_mcast_path_receiver_remove(f, s, f->flows->list[0]);
	else if (f->flows->n_list)
		keep(f, s, is_elsewhere, out->peer);
}

static void pull_loss(struct fabric_mcast_path *s, const struct fabric_port *at)
{
	for (uint32_t i = 0; i < s->n_losses; i++)
		if (s->loss[i].at == at && s->loss[i].why == FABRIC_LOST_DISCARD)
			s->loss[i--] = s->loss[--s->n_losses];
}

/* The link out of @out carries no packets: the switch discards them, if it is to send any there. */
static void edge_blocked(struct fabric_mcast_path *s, struct fabric_port *out, bool in_row)
{
	pull_hop(s, out);
	pull_loss(s, out);
	if (!in_row)
		return;
	on_hop(s, out, FABRIC_HOP_IN_UNKNOWN, FABRIC_LANE_NONE);
	on_lost(s, out, FABRIC_LOST_DISCARD);
}

void fabric_mcast_path_edge(struct fabric *f, struct fabric_mcast_path *s, struct fabric_port *out,
                            const struct fabric_attached *g)
{
	const struct fabric_mft_row *row = fabric_mft_out(out->node, s->key.dlid);
	bool carries = fabric_port_carries(out);

	/* a switch may begin or cease to drop packets; or its lanes depend on the port in; or old
	 * hops would seem to be new ones */
	if (!row || !TAILQ_EMPTY(&f->flows->changed) || fabric_row_is_empty(row) ||
	    (carries && (s->n_losses || out->link.partition_outbound || out->node->parts_ports))) {
		fabric_mcast_path_compile(f, s);
		return;
	}
	count_all(f, s);
	if (!carries) {
		edge_blocked(s, out, fabric_row_has(row, out->num));
		note_lacking(f, s);
		return;
	}
	f->flows->n_list = 0;
	list_attached(f, s, out->peer, g);
	if (fabric_row_has(row, out->num))
		edge_gained(f, s, out);
	else
		edge_lost(f, s, out);
	note_lacking(f, s);
}

/* ---- lanes ---- */

/* The first link of a flow that shares its path from the second on. */
static void follow_first_link(struct fabric *f, struct fabric_flow *flow)
{
	struct fabric_mcast_path *s = flow->path;

	if (!s->ingress || (flow->vl == fabric_lane_of(flow->from, 0, s->key.sl) &&
	                    flow->start == start_of(s, flow)))
		return;
	fabric_flow_count(f, flow);
	fabric_mcast_path_write(f, s, flow);
	f->flows->work++;
}

/* Some of the flows that begin at @from and have not followed. */
static void follow_first_links(struct fabric *f, struct fabric_port *from)
{
	struct fabric_flow *flow;

	for (unsigned n = 0; n < FABRIC_FLOW_LOOKS && (flow = TAILQ_FIRST(&from->old_flows)); n++) {
		TAILQ_REMOVE(&from->old_flows, flow, of_port);
		TAILQ_INSERT_HEAD(&from->flows, flow, of_port);
		follow_first_link(f, flow);
	}
	f->flows->work++;
}

/* Has the hop's packets use the lane that they have now. False: only a new walk can say. */
static bool follow_hop(struct fabric *f, struct fabric_mcast_path_hop *h)
{
	uint8_t vl;

	if (h->in == FABRIC_HOP_IN_UNKNOWN)
		return false;
	vl = fabric_lane_of(h->out, h->in, h->path->key.sl);
	if (vl == h->vl)
		return true;
	if (vl == FABRIC_LANE_NONE || h->vl == FABRIC_LANE_NONE)
		return false;
	count_all(f, h->path);
	h->vl = vl;
	return true;
}

void fabric_mcast_path_note_stale(struct fabric *f, struct fabric_mcast_path *s)
{
	if (s->stale)
		return;
	s->stale = true;
	TAILQ_INSERT_TAIL(&f->flows->stale, s, of_stale);
}

static void note_all_lacking(struct fabric *f)
{
	struct fabric_mcast_path *s;

	LIST_FOREACH(s, &f->flows->lacking, of_lacking)
	fabric_mcast_path_note_stale(f, s);
}

/* Sets aside the flows that begin at @out and, if @hops, the paths that leave there. If it has
 * changed before, and not all have followed yet, those are set aside that have: behind the others,
 * and it takes no longer if they are many. */
static void note_port(struct fabric *f, struct fabric_port *out, bool hops)
{
	TAILQ_CONCAT(&out->old_flows, &out->flows, of_port);
	if (hops)
		TAILQ_CONCAT(&out->old_hops, &out->hops, of_port);
	if (out->is_changed || (TAILQ_EMPTY(&out->old_flows) && TAILQ_EMPTY(&out->old_hops)))
		return;
	TAILQ_INSERT_TAIL(&f->flows->changed, out, of_changed);
	out->is_changed = true;
}

void fabric_mcast_path_lanes_changed(struct fabric *f, struct fabric_port *out)
{
	struct fabric_mcast_path_hop *h;

	note_port(f, out, false);
	TAILQ_FOREACH(h, &out->hops, of_port)
	if (!follow_hop(f, h))
		fabric_mcast_path_note_stale(f, h->path);
	note_all_lacking(f);
}

/* ---- links that fail and return ---- */

void fabric_mcast_path_link_changed(struct fabric *f, struct fabric_port *out)
{
	note_all_lacking(f);
	note_port(f, out, true);
}

bool fabric_mcast_path_is_behind(struct fabric *f)
{
	struct fabric_port *out;

	while ((out = TAILQ_FIRST(&f->flows->changed)) && TAILQ_EMPTY(&out->old_hops) &&
	       TAILQ_EMPTY(&out->old_flows)) {
		TAILQ_REMOVE(&f->flows->changed, out, of_changed);
		out->is_changed = false;
	}
	return out || !TAILQ_EMPTY(&f->flows->stale);
}

void fabric_mcast_path_follow(struct fabric *f)
{
	struct fabric_mcast_path *s = TAILQ_FIRST(&f->flows->stale);
	struct fabric_port *out = TAILQ_FIRST(&f->flows->changed);

	if (s) {
		TAILQ_REMOVE(&f->flows->stale, s, of_stale);
		s->stale = false;
		fabric_mcast_path_compile(f, s);
	} else if (!TAILQ_EMPTY(&out->old_flows)) {
		follow_first_links(f, out);
	} else { /* its hops are new ones then */
		fabric_mcast_path_compile(f, TAILQ_FIRST(&out->old_hops)->path);
	}
}
