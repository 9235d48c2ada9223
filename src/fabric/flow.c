/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compiled forwarding: see flow.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "fabric/attach.h"
#include "fabric/ethernet.h"
#include "fabric/flow.h"
#include "fabric/traps.h"
#include "wire/ip.h"

#define LIST_UNIT 64

/* On either link layer; whether a LID goes with it that leads to a group is another question. */
static bool is_to_group(const struct fabric_flow_key *key)
{
	return wire_gid_is_ip_mcast(&key->dgid);
}

void fabric_flow_init(struct fabric *f)
{
	struct shm_control *c = f->region->control;

	base_idtable_init(&f->flows->ids, SHM_MAX_FLOWS);
	shm_extents_init(&f->flows->lists, -1, LIST_UNIT, c->lists_off, c->size - c->lists_off);
}

void fabric_flow_fini(struct fabric *f)
{
	for (uint32_t i = 0; i < f->flows->ids.size; i++)
		if (base_idtable_get(&f->flows->ids, i))
			fabric_flow_remove(f, base_idtable_get(&f->flows->ids, i));
	base_idtable_fini(&f->flows->ids);
	base_hash_fini(&f->flows->by_gid);
	base_hash_fini(&f->flows->by_lid);
	shm_extents_fini(&f->flows->lists);
	free(f->flows->list);
}

/* Adds @p to an array that grows. */
static int push_port(struct fabric_port ***array, uint32_t *n, uint32_t *room,
                     struct fabric_port *p)
{
	if (*n == *room) {
		uint32_t more = *room ? *room * 2 : 8;
		struct fabric_port **a = realloc(*array, more * sizeof(*a));

		if (!a)
			return -ENOMEM;
		*array = a;
		*room = more;
	}
	(*array)[(*n)++] = p;
	return 0;
}

static void visit(struct fabric_flow *flow, const struct fabric_node *sw)
{
	if (sw->type == FABRIC_SWITCH && sw->index / 64 < flow->visited_words)
		flow->visited[sw->index / 64] |= 1ull << (sw->index % 64);
}

static bool visits(const struct fabric_flow *flow, const struct fabric_node *sw)
{
	return sw->type == FABRIC_SWITCH && sw->index / 64 < flow->visited_words &&
	       (flow->visited[sw->index / 64] >> (sw->index % 64) & 1);
}

static void on_hop(void *arg, struct fabric_port *out)
{
	struct fabric_flow *flow = arg;

	visit(flow, out->peer->node);
	if (push_port(&flow->hop, &flow->n_hops, &flow->hop_room, out))
		base_log("out of memory: a flow's packets will be missing from port counters");
}

static void on_reached(void *arg, struct fabric_port *hca)
{
	struct fabric_flow *flow = arg;

	if (push_port(&flow->reached, &flow->n_reached, &flow->reached_room, hca))
		base_log("out of memory: a flow does not reach all its receivers");
}

static void on_lost(void *arg, struct fabric_port *at, enum fabric_loss why)
{
	struct fabric_flow *flow = arg;

	if (flow->n_losses == flow->loss_room) {
		uint32_t room = flow->loss_room ? flow->loss_room * 2 : 4;
		struct fabric_flow_loss *l = realloc(flow->loss, room * sizeof(*l));

		if (!l) {
			base_log("out of memory: a flow's losses will be missing from counters");
			return;
		}
		flow->loss = l;
		flow->loss_room = room;
	}
	flow->loss[flow->n_losses++] = (struct fabric_flow_loss){ .at = at, .why = why };
}

static void list_push(struct fabric_flows *s, uint32_t qpn)
{
	if (s->n_list == s->list_room) {
		uint32_t room = s->list_room ? s->list_room * 2 : 64;
		uint32_t *p = realloc(s->list, room * sizeof(*p));

		if (!p) {
			base_log("out of memory: a flow does not reach all its receivers");
			return;
		}
		s->list = p;
		s->list_room = room;
	}
	s->list[s->n_list++] = qpn;
}

/* Whether BLOCK_SELF_MCAST_LB of the sender @self keeps a copy from @qpn. */
static bool loopback_blocked(struct fabric *f, uint32_t self, uint32_t qpn, bool same_hca)
{
	if (!(f->region->qps[SHM_QP_INDEX(self)].flags & SHM_QP_BLOCK_LOOPBACK))
		return false;
	return qpn == self || (f->settings.block_loopback_host && same_hca);
}

/* Whether what comes in at @p goes to @qpn, which is attached at @p's HCA. */
static bool takes(struct fabric *f, const struct fabric_flow *flow, const struct fabric_port *p,
                  uint32_t qpn)
{
	const struct shm_qp *qp = &f->region->qps[SHM_QP_INDEX(qpn)];

	if (qp->port != p->index || !qp->port_num)
		return false;
	return !loopback_blocked(f, flow->key.qpn, qpn, p->node == flow->from->node);
}

/* @g: what is attached at the HCA of @p to the flow's group, or NULL. */
static void list_attached(struct fabric *f, const struct fabric_flow *flow, struct fabric_port *p,
                          const struct fabric_attached *g)
{
	for (uint32_t i = 0; g && i < g->n; i++)
		if (!g->entry[i].again && takes(f, flow, p, g->entry[i].qpn))
			list_push(f->flows, g->entry[i].qpn);
}

/* Room for the list just put together; on failure the flow reaches nobody. */
static void list_room(struct fabric *f, struct fabric_flow *flow)
{
	struct fabric_flows *s = f->flows;

	if (s->n_list <= flow->list_room)
		return;
	if (flow->list_room)
		shm_extent_put(&s->lists, flow->list_off, flow->list_room * sizeof(uint32_t));
	flow->list_room = (uint32_t)base_align_up(s->n_list * 2, LIST_UNIT / sizeof(uint32_t));
	flow->list_off = shm_extent_get(&s->lists, flow->list_room * sizeof(uint32_t));
	if (!flow->list_off) {
		base_log("no room for a list of %u receivers", s->n_list);
		flow->list_room = 0;
		s->n_list = 0;
	}
}

static uint32_t *list_of(struct fabric *f, const struct fabric_flow *flow)
{
	return (uint32_t *)((char *)f->region->control + flow->list_off);
}

static void publish(struct fabric *f, struct fabric_flow *flow, uint8_t mtu)
{
	struct shm_flow *r = &f->region->flows[flow->id];
	struct fabric_flows *s = f->flows;

	/* the record is odd while the list that it points at may be freed and rewritten */
	shm_write_begin(&r->seq);
	if (ib_lid_is_mcast(flow->key.dlid)) {
		list_room(f, flow);
		r->count = s->n_list;
		r->list_off = flow->list_off;
		if (s->n_list)
			memcpy(list_of(f, flow), s->list, s->n_list * sizeof(*s->list));
	} else {
		r->count = flow->n_reached;
		r->dest_port = flow->n_reached ? flow->reached[0]->index : 0;
	}
	r->flags = flow->wire ? SHM_FLOW_WIRE : 0;
	r->mtu = IB_MTU_BYTES(mtu);
	shm_write_end(&r->seq);
}

/* @more packets of the flow have been dropped where it says; of wrong partitions, it is told. */
static void count_losses(struct fabric *f, const struct fabric_flow *flow, uint64_t more)
{
	const struct fabric_trap_packet packet = {
		.slid = flow->from->lid,
		.dlid = flow->key.dlid,
		.src_qpn = flow->key.qpn,
		.pkey = f->region->qps[SHM_QP_INDEX(flow->key.qpn)].pkey,
	};

	for (uint32_t i = 0; i < flow->n_losses; i++) {
		const struct fabric_flow_loss *l = &flow->loss[i];

		l->at->stats.lost[l->why] += more;
		if (l->why == FABRIC_LOST_XMIT_PKEY || l->why == FABRIC_LOST_RCV_PKEY)
			fabric_trap_switch_p_key(f, l->at, &packet);
	}
}

static void collect_one(struct fabric *f, struct fabric_flow *flow)
{
	struct shm_flow_count *c = &f->region->flow_counts[flow->id];
	uint64_t packets = atomic_load_explicit(&c->packets, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed);
	uint64_t more = packets - flow->packets, more_bytes = bytes - flow->bytes;
	uint64_t more_mcast = ib_lid_is_mcast(flow->key.dlid) ? more : 0;

	if (!more && !more_bytes)
		return;
	if (flow->wire) {
		flow->from->stats.xmit_packets += more;
		flow->from->stats.xmit_bytes += more_bytes;
	}
	for (uint32_t i = 0; i < flow->n_hops; i++) {
		struct fabric_port *out = flow->hop[i];

		out->stats.xmit_packets += more;
		out->stats.xmit_bytes += more_bytes;
		out->stats.xmit_mcast += more_mcast;
		if (out->peer) {
			out->peer->stats.recv_packets += more;
			out->peer->stats.recv_bytes += more_bytes;
			out->peer->stats.recv_mcast += more_mcast;
		}
	}
	flow->packets = packets;
	flow->bytes = bytes;
	if (flow->n_losses)
		count_losses(f, flow, more);
}

/* By the switches' tables. The MTU of the way. */
static uint8_t walk(struct fabric *f, struct fabric_flow *flow)
{
	struct fabric_walk w = { .hop = on_hop,
		                 .reached = on_reached,
		                 .lost = on_lost,
		                 .arg = flow,
		                 .pkey = f->region->qps[SHM_QP_INDEX(flow->key.qpn)].pkey };

	if (ib_lid_is_mcast(flow->key.dlid)) {
		fabric_walk_multicast(f, flow->from, flow->key.dlid, &w);
		return w.mtu;
	}
	fabric_walk_unicast(f, flow->from, flow->key.dlid, &w);
	if (flow->n_reached && flow->key.is_global &&
	    !fabric_port_has_gid(f, flow->reached[0], &flow->key.dgid))
		flow->n_reached = 0; /* a port takes only what its GID is on */
	return w.mtu;
}

/*
 * From an Ethernet port: a group's packets go to who is attached on this HCA, and out; those for
 * a GID of the fabric's own go there in memory; all others out. What the wire brings in is for
 * this HCA only.
 */
static uint8_t walk_ethernet(struct fabric *f, struct fabric_flow *flow)
{
	const struct shm_qp *qp = &f->region->qps[SHM_QP_INDEX(flow->key.qpn)];
	bool from_wire = qp->flags & SHM_QP_WIRE;
	struct fabric_port *to = flow->from;

	if (flow->from->state != IB_PORT_ACTIVE)
		return flow->from->mtu;
	flow->wire = !from_wire;
	if (!ib_lid_is_mcast(flow->key.dlid)) {
		to = fabric_ethernet_find(f, flow->from, &flow->key.dgid);
		if (!to)
			return flow->from->mtu;
		flow->wire = false;
	}
	on_reached(flow, to);
	return to->mtu < flow->from->mtu ? to->mtu : flow->from->mtu;
}

static void compile(struct fabric *f, struct fabric_flow *flow)
{
	uint8_t mtu;

	collect_one(f, flow);
	flow->n_hops = flow->n_reached = flow->n_losses = 0;
	flow->wire = false;
	memset(flow->visited, 0, flow->visited_words * sizeof(*flow->visited));
	f->flows->n_list = 0;
	mtu = flow->from->ethernet ? walk_ethernet(f, flow) : walk(f, flow);
	for (uint32_t i = 0; i < flow->n_reached && ib_lid_is_mcast(flow->key.dlid); i++)
		list_attached(f, flow, flow->reached[i],
		              fabric_attach_find(f, flow->reached[i]->node->hca, &flow->key.dgid));
	publish(f, flow, mtu);
}

int fabric_flow_add(struct fabric *f, struct fabric_port *from, const struct fabric_flow_key *key,
                    struct fabric_flow **out)
{
	struct fabric_flows *s = f->flows;
	struct fabric_flow *flow = calloc(1, sizeof(*flow));
	struct shm_flow_count *c;
	int ret;

	if (!flow)
		return -ENOMEM;
	flow->key = *key;
	flow->from = from;
	flow->visited_words = ib_lid_is_mcast(key->dlid) ? f->n_switches / 64 + 1 : 0;
	flow->visited = calloc(flow->visited_words + 1, sizeof(*flow->visited));
	if (!flow->visited) {
		ret = -ENOMEM;
		goto err_free;
	}
	ret = base_idtable_add(&s->ids, flow, &flow->id);
	if (ret)
		goto err_free;
	/* only groups change; and all that is not global would be in one bucket */
	if (is_to_group(key))
		ret = base_hash_add(&s->by_gid, &flow->by_gid, base_hash_of(&key->dgid, 16, 0));
	if (ret)
		goto err_id;
	ret = base_hash_add(&s->by_lid, &flow->by_lid, key->dlid);
	if (ret)
		goto err_by_gid;
	c = &f->region->flow_counts[flow->id];
	atomic_store_explicit(&c->packets, 0, memory_order_relaxed);
	atomic_store_explicit(&c->bytes, 0, memory_order_relaxed);
	compile(f, flow);
	*out = flow;
	return 0;
err_by_gid:
	if (is_to_group(key))
		base_hash_remove(&s->by_gid, &flow->by_gid);
err_id:
	base_idtable_remove(&s->ids, flow->id);
err_free:
	free(flow->visited);
	free(flow);
	return ret;
}

void fabric_flow_remove(struct fabric *f, struct fabric_flow *flow)
{
	struct fabric_flows *s = f->flows;
	struct shm_flow *r = &f->region->flows[flow->id];

	collect_one(f, flow);
	shm_write_begin(&r->seq);
	r->count = 0;
	shm_write_end(&r->seq);
	if (is_to_group(&flow->key))
		base_hash_remove(&s->by_gid, &flow->by_gid);
	base_hash_remove(&s->by_lid, &flow->by_lid);
	base_idtable_remove(&s->ids, flow->id);
	if (flow->list_room)
		shm_extent_put(&s->lists, flow->list_off, flow->list_room * sizeof(uint32_t));
	free(flow->visited);
	free(flow->hop);
	free(flow->loss);
	free(flow->reached);
	free(flow);
}

/* Whether a multicast flow reaches @p: by the last switch, or back to back. */
static bool reaches(const struct fabric_flow *flow, const struct fabric_port *p)
{
	if (p->peer && p->peer->node->type == FABRIC_SWITCH)
		return visits(flow, p->peer->node) && fabric_port_carries(p->peer) &&
		       fabric_row_has(fabric_mft_get(p->peer->node, flow->key.dlid), p->peer->num);
	for (uint32_t i = 0; i < flow->n_reached; i++)
		if (flow->reached[i] == p)
			return true;
	return false;
}

static void receiver_add(struct fabric *f, struct fabric_flow *flow, uint32_t qpn)
{
	const struct shm_qp *qp = &f->region->qps[SHM_QP_INDEX(qpn)];
	struct shm_flow *r = &f->region->flows[flow->id];
	const struct fabric_port *p;

	if (!qp->port_num)
		return;
	p = f->hca_port[qp->port];
	if (!reaches(flow, p) || !takes(f, flow, p, qpn))
		return;
	if (r->count == flow->list_room) {
		compile(f, flow);
		return;
	}
	shm_write_begin(&r->seq);
	list_of(f, flow)[r->count++] = qpn;
	shm_write_end(&r->seq);
}

static void receiver_remove(struct fabric *f, struct fabric_flow *flow, uint32_t qpn)
{
	struct shm_flow *r = &f->region->flows[flow->id];
	uint32_t *list = list_of(f, flow);

	for (uint32_t i = 0; i < r->count; i++) {
		if (list[i] != qpn)
			continue;
		shm_write_begin(&r->seq);
		list[i] = list[--r->count];
		shm_write_end(&r->seq);
		return;
	}
}

static void each_to_group(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn,
                          void (*what)(struct fabric *f, struct fabric_flow *flow, uint32_t qpn))
{
	struct base_hash_node *n = base_hash_first(&f->flows->by_gid, base_hash_of(mgid, 16, 0));

	for (; n; n = base_hash_next(n)) {
		struct fabric_flow *flow = container_of(n, struct fabric_flow, by_gid);

		/* a multicast GID with a unicast LID reaches a port, and no attached QP */
		if (!memcmp(&flow->key.dgid, mgid, sizeof(*mgid)) &&
		    ib_lid_is_mcast(flow->key.dlid))
			what(f, flow, qpn);
	}
}

void fabric_flow_attached(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn)
{
	each_to_group(f, mgid, qpn, receiver_add);
}

void fabric_flow_detached(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn)
{
	each_to_group(f, mgid, qpn, receiver_remove);
}

static void recompile(struct fabric *f, struct fabric_flow *flow, uint32_t qpn)
{
	(void)qpn;
	compile(f, flow);
}

void fabric_flow_group_changed(struct fabric *f, const struct ib_gid *mgid)
{
	each_to_group(f, mgid, 0, recompile);
}

void fabric_flow_lid_changed(struct fabric *f, uint16_t lid)
{
	struct base_hash_node *n;

	for (n = base_hash_first(&f->flows->by_lid, lid); n; n = base_hash_next(n))
		compile(f, container_of(n, struct fabric_flow, by_lid));
}

void fabric_flow_all_changed(struct fabric *f)
{
	for (uint32_t i = 0; i < f->flows->ids.size; i++)
		if (base_idtable_get(&f->flows->ids, i))
			compile(f, base_idtable_get(&f->flows->ids, i));
}

void fabric_flow_pkey_changed(struct fabric *f, struct fabric_flow *flow)
{
	compile(f, flow);
}

/* Takes @p out of an array, wherever it is. */
static void pull_port(struct fabric_port **array, uint32_t *n, const struct fabric_port *p)
{
	for (uint32_t i = 0; i < *n; i++) {
		if (array[i] == p) {
			array[i] = array[--*n];
			return;
		}
	}
}

/* The list gains the QPs that the scratch list has. */
static void list_append(struct fabric *f, struct fabric_flow *flow, uint8_t mtu)
{
	struct shm_flow *r = &f->region->flows[flow->id];
	const struct fabric_flows *s = f->flows;

	if (r->count + s->n_list > flow->list_room) {
		compile(f, flow);
		return;
	}
	shm_write_begin(&r->seq);
	if (s->n_list)
		memcpy(list_of(f, flow) + r->count, s->list, s->n_list * sizeof(*s->list));
	r->count += s->n_list;
	if (IB_MTU_BYTES(mtu) < r->mtu)
		r->mtu = IB_MTU_BYTES(mtu);
	shm_write_end(&r->seq);
}

static void edge_gained(struct fabric *f, struct fabric_flow *flow, struct fabric_port *out)
{
	if (out->peer != flow->from) /* the HCA itself hands its own port its copy */
		on_hop(flow, out);
	on_reached(flow, out->peer);
	list_append(f, flow, out->mtu);
}

static void edge_lost(struct fabric *f, struct fabric_flow *flow, struct fabric_port *out)
{
	const struct fabric_flows *s = f->flows;

	if (IB_MTU_BYTES(out->mtu) < IB_MTU_BYTES(flow->from->mtu)) {
		compile(f, flow); /* it may have been the smallest of the path */
		return;
	}
	pull_port(flow->hop, &flow->n_hops, out);
	pull_port(flow->reached, &flow->n_reached, out->peer);
	for (uint32_t i = 0; i < s->n_list; i++)
		receiver_remove(f, flow, s->list[i]);
}

void fabric_flow_edge_changed(struct fabric *f, struct fabric_port *out, uint16_t mlid)
{
	const struct fabric_mft_row *row = fabric_mft_get(out->node, mlid);
	bool gained = fabric_row_has(row, out->num), is_empty = !row || fabric_row_is_empty(row);
	const struct fabric_attached *g = NULL;
	const struct ib_gid *mgid = NULL;
	struct base_hash_node *n;

	if (!fabric_port_carries(out))
		return;
	for (n = base_hash_first(&f->flows->by_lid, mlid); n; n = base_hash_next(n)) {
		struct fabric_flow *flow = container_of(n, struct fabric_flow, by_lid);

		if (!visits(flow, out->node))
			continue;
		if (!mgid || memcmp(mgid, &flow->key.dgid, sizeof(*mgid))) {
			mgid = &flow->key.dgid;
			g = fabric_attach_find(f, out->peer->node->hca, mgid);
		}
		if (flow->n_losses || out->link.partition_outbound || is_empty) {
			compile(f, flow); /* it is lost where it was not, or no more */
			continue;
		}
		collect_one(f, flow);
		f->flows->n_list = 0;
		list_attached(f, flow, out->peer, g);
		if (gained)
			edge_gained(f, flow, out);
		else
			edge_lost(f, flow, out);
	}
}

static bool is_broken(const struct fabric_flow *flow)
{
	for (uint32_t i = 0; i < flow->n_hops; i++)
		if (!fabric_port_carries(flow->hop[i]))
			return true;
	/* an HCA loops back to itself without a hop */
	return !flow->n_hops && flow->n_reached && flow->from->state != IB_PORT_ACTIVE;
}

void fabric_flow_links_down(struct fabric *f)
{
	for (uint32_t i = 0; i < f->flows->ids.size; i++) {
		struct fabric_flow *flow = base_idtable_get(&f->flows->ids, i);

		if (flow && is_broken(flow))
			compile(f, flow);
	}
}

/* What came by the wire, whoever received it has counted. */
static void collect_wire(struct fabric *f, struct fabric_port *p)
{
	struct shm_wire *w = &f->region->wires[p->index];

	p->stats.recv_packets = atomic_load_explicit(&w->packets, memory_order_relaxed);
	p->stats.recv_bytes = atomic_load_explicit(&w->bytes, memory_order_relaxed);
}

void fabric_flow_collect(struct fabric *f)
{
	for (unsigned i = 0; i < f->n_hca_ports; i++)
		if (f->hca_port[i]->ethernet)
			collect_wire(f, f->hca_port[i]);
	for (uint32_t i = 0; i < f->flows->ids.size; i++)
		if (base_idtable_get(&f->flows->ids, i))
			collect_one(f, base_idtable_get(&f->flows->ids, i));
}
