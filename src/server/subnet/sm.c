/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet manager: see sm.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fabric/forwarding/flow.h"
#include "fabric/agents/mads.h"
#include "fabric/model/event.h"
#include "subnet/sm.h"
#include "subnet/sm_state.h"
#include "wire/sm_attr.h"

/* ---- life ---- */

int sm_new(struct sm **out, struct fabric *f, const struct sm_ops *ops)
{
	struct sm *sm = calloc(1, sizeof(*sm));
	int ret;

	if (!sm)
		return -ENOMEM;
	sm->f = f;
	sm->ops = *ops;
	sm->next_lid = 1;
	ret = sm_net_init(&sm->net, f);
	if (!ret)
		ret = sm_routes_new(&sm->routes, &sm->net);
	if (!ret)
		ret = sm_trees_new(&sm->trees, sm);
	if (ret) {
		sm_free(sm);
		return ret;
	}
	while (sm->home + 1 < f->n_ib_ports && !f->hca_port[sm->home]->peer)
		sm->home++;
	*out = sm;
	return 0;
}

void sm_free(struct sm *sm)
{
	sm_pkeys_follow(sm); /* in mid-sweep */
	if (sm->trees)
		sm_trees_free(sm->trees);
	if (sm->routes)
		sm_routes_free(sm->routes);
	sm_net_fini(&sm->net);
	free(sm);
}

/* ---- ports ---- */

/* Makes both ends of the port's link ACTIVE, if it is not down, and has flows cross it. */
static void bring_up(struct fabric *f, struct fabric_port *p)
{
	struct fabric_port *peer = sm_far_end(p);

	if (!peer || (p->state == IB_PORT_ACTIVE && peer->state == IB_PORT_ACTIVE))
		return;
	p->state = peer->state = IB_PORT_ACTIVE;
	fabric_tell_port(f, p);
	fabric_tell_port(f, peer);
	fabric_flow_note_link(f, p);
}

/* Publishes a port to processes if the sweep changed it; most ports do not change. */
static void publish(struct fabric *f, struct fabric_port *p)
{
	const struct shm_port *s = shm_port_at(f->region, p->index);

	if (s->lid != p->lid || s->lmc != p->lmc || s->state != p->state ||
	    s->sm_lid != p->sm_lid || s->cap_flags != fabric_port_capabilities(p))
		fabric_port_publish(f, p);
}

/* Writes the LID of the SM's port to all end ports. */
static void tell_sm_lid(struct sm *sm)
{
	struct fabric *f = sm->f;
	uint16_t lid = f->hca_port[sm->home]->lid;

	f->hca_port[sm->told_home]->capabilities &= ~PORT_CAP_SM;
	f->hca_port[sm->home]->capabilities |= PORT_CAP_SM;
	sm->told_home = sm->home;
	for (unsigned i = 0; i < sm->net.n; i++)
		sm->net.sw[i]->port[0].sm_lid = lid;
	for (unsigned i = 0; i < f->n_ib_ports; i++) {
		f->hca_port[i]->sm_lid = lid;
		publish(f, f->hca_port[i]);
	}
}

/* MulticastFDBTop is the last row that there may be, and there are no default ports. */
static void tell_mcast(struct sm *sm, struct fabric_node *sw)
{
	const struct fabric_mcast_info to = {
		.top = (uint16_t)(IB_LID_MCAST_FIRST - 1 + sm->f->settings.mft_capacity),
		.primary = FABRIC_LFT_NONE,
		.not_primary = FABRIC_LFT_NONE,
	};

	fabric_flow_set_mcast(sm->f, sw, &to);
}

/* Writes LinearFDBTop. Before the routes are written it is only raised, as what is above it is
 * discarded; when they are, the tables have no entries beyond it. */
static void tell_top(struct sm *sm, bool written)
{
	uint16_t top = sm_lids_top(sm);

	for (unsigned i = 0; i < sm->net.n; i++) {
		struct fabric_node *sw = sm->net.sw[i];

		if (!sw->dead && (written || top > sw->lft_top))
			fabric_flow_set_lft_top(sm->f, sw, top);
		if (!sw->dead)
			tell_mcast(sm, sw);
	}
}

#define FLOW_COSTS 160 /* of a flow to one port, in table entries */

/* Compiling flows has cost this since fabric_flows.work was @before. */
static void spend(const struct sm *sm, uint64_t before, uint32_t entries, uint32_t *budget)
{
	uint64_t cost = entries + SM_FLOW_WORK * (sm->f->flows->work - before);

	*budget -= cost < *budget ? (uint32_t)cost : *budget;
}

/* Whether there are more ports of all. */
static bool bring_some_of_all_up(struct sm *sm, uint32_t *budget)
{
	struct fabric *f = sm->f;

	while (sm->at < f->n_nodes && *budget) {
		struct fabric_node *node = f->node[sm->at];
		uint64_t before = f->flows->work;

		if (sm->at_port == node->n_ports) {
			sm->at++;
			sm->at_port = 0;
			continue;
		}
		bring_up(f, &node->port[++sm->at_port]);
		spend(sm, before, 2, budget);
	}
	sm->net.ready_all = sm->at < f->n_nodes;
	return sm->net.ready_all;
}

/* Whether there are more ports. */
static bool bring_some_up(struct sm *sm, uint32_t *budget)
{
	struct sm_net *net = &sm->net;

	if (net->ready_all) {
		net->n_to_ready = 0;
		return bring_some_of_all_up(sm, budget);
	}
	while (net->n_to_ready && *budget) {
		uint64_t before = sm->f->flows->work;

		bring_up(sm->f, net->to_ready[--net->n_to_ready]);
		spend(sm, before, 2, budget);
	}
	return net->n_to_ready;
}

/* Notes the flows to LIDs whose routes or ports have changed. The code that set a link down sees to
 * that link's flows. */
static void note_changes(struct sm *sm)
{
	for (unsigned w = 0; w < IB_LID_MCAST_FIRST / 64; w++) {
		for (uint64_t lids = sm->changed[w]; lids; lids &= lids - 1)
			fabric_flow_note_lid(sm->f,
			                     (uint16_t)(w * 64 + (unsigned)__builtin_ctzll(lids)));
		sm->changed[w] = 0;
	}
}

/* ---- sweeps ---- */

void sm_sweep_begin(struct sm *sm)
{
	sm->phase = SM_SWEEP_LIDS;
	sm->at = sm->at_port = 0;
	sm->more = false;
	sm->swept = 0;
}

/*
 * Writes some routes. The flows to their LIDs follow next, so it takes as much less of the budget
 * as flows will cost, by the average. 0 or -ENOMEM.
 */
static int write_routes(struct sm *sm, uint32_t *budget)
{
	double entries = (double)sm->net.n * sm_lids_top(sm) + 1;
	double flows = (double)sm->f->flows->ids.used * FLOW_COSTS;
	uint32_t some = (uint32_t)(*budget * (entries / (entries + flows))) + 1, left = some;
	int ret = sm_routes_step(sm->routes, &left);

	some -= left;
	*budget -= some < *budget ? some : *budget;
	sm->more = !ret && !sm_routes_are_written(sm->routes);
	return ret;
}

/* Does what is due in this phase, or some of it, if that takes several steps: then ->more. */
static int do_phase(struct sm *sm, uint32_t *budget)
{
	int ret;

	sm->more = false;
	switch (sm->phase) {
	case SM_SWEEP_LIDS:
		ret = sm_lids_give(sm);
		sm_net_look_at_lids(&sm->net);
		return ret;
	case SM_SWEEP_LOOK:
		sm_net_look(&sm->net);
		sm_trees_look(sm->trees);
		return 0;
	case SM_SWEEP_BEGIN_ROUTES:
		tell_top(sm, false);
		sm_routes_begin(sm->routes, sm_lids_top(sm), sm->changed);
		return 0;
	case SM_SWEEP_ROUTES:
		return write_routes(sm, budget);
	case SM_SWEEP_PKEYS:
		ret = sm_pkeys_step(sm, &sm->at, budget);
		sm->more = ret > 0;
		return ret > 0 ? 0 : ret;
	case SM_SWEEP_PORTS:
		sm->more = bring_some_up(sm, budget);
		return 0;
	case SM_SWEEP_TELL:
		sm->net.left = sm->swept != 0;
		if (!sm->swept)
			sm_trees_obey(sm->trees, sm_routes_order(sm->routes));
		tell_top(sm, true);
		tell_sm_lid(sm);
		return 0;
	default:
		return 0;
	}
}

/* After a failure, ports still come up, and are told the SM's LID. */
static enum sm_sweep_phase next_phase(const struct sm *sm)
{
	switch (sm->phase) {
	case SM_SWEEP_TELL:
		return SM_SWEEP_DONE;
	case SM_SWEEP_PORTS:
	case SM_SWEEP_BEGIN_ROUTES:
		return sm->swept ? SM_SWEEP_TELL : sm->phase + 1;
	default:
		return sm->phase + 1;
	}
}

/* The cost of a phase that is done in one step; others spend as they work. */
static uint32_t cost_of(const struct sm *sm)
{
	if (sm->phase == SM_SWEEP_ROUTES || sm->phase == SM_SWEEP_PKEYS ||
	    sm->phase == SM_SWEEP_PORTS)
		return 1;
	/* looking at all ports takes two lines each */
	return 4 * sm->f->n_ib_ports + 4 * sm->net.first[sm->net.n];
}

bool sm_sweep_step(struct sm *sm, uint32_t *budget)
{
	while (fabric_flow_follow(sm->f, budget, SM_FLOW_WORK) && *budget &&
	       sm->phase != SM_SWEEP_DONE) {
		uint32_t cost = cost_of(sm);
		int ret = do_phase(sm, budget);
		uint64_t before = sm->f->flows->work;

		note_changes(sm);
		spend(sm, before, cost, budget);
		if (!sm->swept)
			sm->swept = ret;
		if (sm->more)
			continue;
		sm_pkeys_follow(sm);
		sm->phase = next_phase(sm);
		sm->at = sm->at_port = 0;
	}
	return sm->phase == SM_SWEEP_DONE && fabric_flow_follow(sm->f, budget, SM_FLOW_WORK);
}

int sm_sweep_result(const struct sm *sm)
{
	return sm->swept;
}

int sm_sweep(struct sm *sm)
{
	uint32_t budget;

	sm_sweep_begin(sm);
	do
		budget = UINT32_MAX;
	while (!sm_sweep_step(sm, &budget));
	base_log_debug(sm, "swept %u switches and %u HCA ports: %s", sm->net.n, sm->f->n_ib_ports,
	               strerror(-sm->swept));
	return sm->swept;
}

static void forget_lid(struct sm *sm, uint16_t lid)
{
	for (unsigned i = 0; i < sm->net.n; i++)
		if (fabric_lft_get(sm->net.sw[i], lid) != FABRIC_LFT_NONE)
			fabric_lft_set(sm->net.sw[i], lid, FABRIC_LFT_NONE);
}

int sm_give_other_lid(struct sm *sm, struct fabric_port *port)
{
	uint16_t old = port->lid;
	int ret = sm_lids_change(sm, port);

	if (ret)
		return ret;
	for (unsigned i = 0; i < 1u << port->lmc; i++) {
		forget_lid(sm, (uint16_t)(old + i));
		fabric_flow_lid_changed(sm->f, (uint16_t)(old + i));
		fabric_flow_lid_changed(sm->f, (uint16_t)(port->lid + i));
	}
	return 0;
}

void sm_set_partitions(struct sm *sm, const struct partitions *p)
{
	sm->partitions = p;
}

const struct partitions *sm_partitions(const struct sm *sm)
{
	return sm->partitions;
}

void sm_set_home(struct sm *sm, struct fabric_port *home)
{
	sm->home = sm->told_home = home->index;
}

void sm_move_to(struct sm *sm, struct fabric_port *home)
{
	sm->home = home->index;
	tell_sm_lid(sm);
	sm_pkeys_write(sm);
}

void sm_move(struct sm *sm)
{
	struct fabric *f = sm->f;

	for (unsigned n = 1; n < f->n_ib_ports; n++) {
		unsigned next = (sm->home + n) % f->n_ib_ports;

		if (f->hca_port[next]->state != IB_PORT_ACTIVE)
			continue;
		sm_move_to(sm, f->hca_port[next]);
		break;
	}
}

struct fabric_node *sm_switch(const struct sm *sm, unsigned i)
{
	return i < sm->net.n ? sm->net.sw[i] : NULL;
}

struct fabric_port *sm_port(const struct sm *sm)
{
	return sm->f->hca_port[sm->home];
}

bool sm_reach(const struct sm *sm, const struct fabric_node *first, bool *reached, unsigned *queue)
{
	const struct sm_net *net = &sm->net;
	unsigned n = 0;

	if (!net->looked)
		return false;
	memset(reached, 0, net->n * sizeof(*reached));
	if (first) {
		reached[first->index] = true;
		queue[n++] = first->index;
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = net->first[queue[i]]; k < net->first[queue[i] + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || reached[l->to])
				continue;
			reached[l->to] = true;
			queue[n++] = l->to;
		}
	return true;
}

bool sm_has_link(const struct sm *sm, unsigned i)
{
	return sm->net.known[i].up;
}

enum sm_routing sm_routing(const struct sm *sm)
{
	return sm_routes_engine(sm->routes);
}

int sm_group_sl(const struct sm *sm)
{
	return sm->f->settings.routing == SM_ROUTING_DFSSSP ? SM_UPDN_LANE : -1;
}

int sm_path_sl(const struct sm *sm, const struct fabric_port *from, uint16_t dlid)
{
	if (from->node->type == FABRIC_HCA)
		from = from->peer;
	if (!from || from->node->type != FABRIC_SWITCH)
		return -1;
	return sm_routes_lane(sm->routes, from->node->index, dlid);
}
