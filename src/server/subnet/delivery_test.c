/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The whole subnet on random topologies: hosts join and leave, queue pairs attach and detach, links
 * and switches fail and return. After each step a member's packet must reach exactly the right
 * receivers, once; also in a subnet that is split.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/testing.h"
#include "subnet/sa_groups.h"
#include "subnet/testing_passes.h"

#define TOPOLOGIES 60
#define STEPS      120
#define N_GROUPS   3
#define MAX_HOSTS  8
#define QPS        2 /* a host */
#define JOIN       (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE)
#define CREATE     (JOIN | SA_MCM_QKEY | SA_MCM_TCLASS | SA_MCM_PKEY | SA_MCM_FLOW_LABEL | SA_MCM_SL)

/* A fabric, and a model of its state. */
struct world {
	struct fabric *f;
	struct sm *sm;
	struct sa *sa;
	unsigned n_hosts, n_switches;
	unsigned seed;
	unsigned island[MAX_HOSTS]; /* by switch: equal if links connect them */
	unsigned at[MAX_HOSTS];     /* the switch that a host is on */
	uint16_t lid[MAX_HOSTS];
	uint64_t sent[MAX_HOSTS], got[MAX_HOSTS]; /* packets, by the host's port */
	uint8_t joined[N_GROUPS][MAX_HOSTS];
	bool attached[N_GROUPS][MAX_HOSTS][QPS];
	struct fabric_flow *flow[N_GROUPS][MAX_HOSTS];
	uint16_t flow_mlid[N_GROUPS];
};

static unsigned any(struct world *w, unsigned n)
{
	return (unsigned)rand_r(&w->seed) % n;
}

static uint32_t qpn_of(unsigned host, unsigned i)
{
	return 10 + host * QPS + i;
}

/* ---- topologies ---- */

static struct fabric_node *switch_at(struct world *w, unsigned n)
{
	return w->f->node[w->n_hosts + n];
}

/* A link between two switches, which may be one, or joined already. */
static void link_switches(struct world *w, unsigned a, unsigned b)
{
	struct fabric_port *p[2] = { NULL, NULL };
	const unsigned end[2] = { a, b };

	for (unsigned i = 0; i < 2; i++) {
		struct fabric_node *sw = switch_at(w, end[i]);

		for (unsigned k = 1; k <= sw->n_ports && !p[i]; k++)
			if (!sw->port[k].peer && &sw->port[k] != p[0])
				p[i] = &sw->port[k];
		if (!p[i])
			return;
	}
	testing_plug(p[0], p[1]);
}

static bool is_up(const struct world *w, unsigned host)
{
	return w->f->hca_port[host]->state != IB_PORT_DOWN;
}

/* Whether links that are up join two switches. */
static bool adjacent(struct world *w, unsigned a, unsigned b)
{
	const struct fabric_node *sw = switch_at(w, a);

	for (unsigned k = 1; k <= sw->n_ports; k++)
		if (sw->port[k].peer && sw->port[k].peer->node == switch_at(w, b) &&
		    sw->port[k].state != IB_PORT_DOWN)
			return true;
	return false;
}

static void merge(struct world *w, unsigned a, unsigned b)
{
	unsigned gone = w->island[b];

	for (unsigned s = 0; s < w->n_switches; s++)
		if (w->island[s] == gone)
			w->island[s] = w->island[a];
}

static void find_islands(struct world *w)
{
	for (unsigned s = 0; s < w->n_switches; s++)
		w->island[s] = s;
	for (unsigned a = 0; a < w->n_switches; a++)
		for (unsigned b = 0; b < w->n_switches; b++)
			if (adjacent(w, a, b))
				merge(w, a, b);
}

static bool joined_by_links(const struct world *w, unsigned from, unsigned to)
{
	return is_up(w, from) && is_up(w, to) && w->island[w->at[from]] == w->island[w->at[to]];
}

static void build(struct world *w)
{
	w->n_hosts = 2 + any(w, MAX_HOSTS - 1);
	w->n_switches = 1 + any(w, w->n_hosts);
	w->f = testing_bare_fabric(w->n_hosts);
	for (unsigned s = 0; s < w->n_switches; s++)
		testing_switch(w->f, 16);
	for (unsigned h = 0; h < w->n_hosts; h++) {
		unsigned port = 1;

		w->at[h] = any(w, w->n_switches);
		while (switch_at(w, w->at[h])->port[port].peer)
			port++;
		testing_plug(w->f->hca_port[h], &switch_at(w, w->at[h])->port[port]);
	}
	for (unsigned n = any(w, 3 * w->n_switches + 1); n; n--)
		link_switches(w, any(w, w->n_switches), any(w, w->n_switches));
	find_islands(w);
}

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

/* On every other topology there are fewer MLIDs than groups. */
static void begin(struct world *w, unsigned seed)
{
	const struct sm_ops ops = { .wake = no_wake };

	*w = (struct world){ .seed = seed };
	build(w);
	if (seed % 2) {
		w->f->settings.mft_capacity = 2;
		w->f->settings.mlid_sharing = 1;
	}
	assert_int_equal(sm_new(&w->sm, w->f, &ops), 0);
	assert_int_equal(sm_sweep(w->sm), 0);
	assert_int_equal(sa_new(&w->sa, w->f, w->sm), 0);
	for (unsigned h = 0; h < w->n_hosts; h++) {
		w->lid[h] = w->f->hca_port[h]->lid;
		for (unsigned i = 0; i < QPS; i++)
			testing_qp(w->f, qpn_of(h, i), w->f->hca_port[h]);
	}
}

static void end(struct world *w)
{
	sa_free(w->sa);
	sm_free(w->sm);
	fabric_free(w->f);
}

/* ---- steps ---- */

static struct wire_mcmember request(struct world *w, unsigned group, unsigned host, uint8_t states)
{
	return (struct wire_mcmember){ .mgid = testing_mgid(group),
		                       .port_gid = shm_port_at(w->f->region, host)->gid[0],
		                       .pkey = IB_PKEY_DEFAULT,
		                       .join_state = states };
}

static void step_join(struct world *w, unsigned group, unsigned host)
{
	static const uint8_t kinds[] = { IB_JOIN_FULL, IB_JOIN_FULL, IB_JOIN_NON,
		                         IB_JOIN_SEND_ONLY_FULL, IB_JOIN_SEND_ONLY_NON };
	uint8_t states = kinds[any(w, ARRAY_SIZE(kinds))];
	struct wire_mcmember rec = request(w, group, host, states);

	if (sa_mcmember_set(w->sa, CREATE, &rec) == SA_OK)
		w->joined[group][host] |= states;
}

/* With its last full member a group goes. */
static void bury(struct world *w, unsigned group)
{
	for (unsigned h = 0; h < w->n_hosts; h++)
		if (w->joined[group][h] & (IB_JOIN_FULL | IB_JOIN_SEND_ONLY_FULL))
			return;
	memset(w->joined[group], 0, sizeof(w->joined[group]));
}

static void step_leave(struct world *w, unsigned group, unsigned host)
{
	uint8_t states = w->joined[group][host] & (uint8_t)(1 + any(w, 15));
	struct wire_mcmember rec = request(w, group, host, states);

	if (!states)
		return;
	assert_int_equal(sa_mcmember_delete(w->sa, JOIN, &rec), SA_OK);
	w->joined[group][host] &= (uint8_t)~states;
	bury(w, group);
}

/* Sweeps; ports that are down leave all groups. */
static void follow_fabric(struct world *w)
{
	assert_int_equal(sm_sweep(w->sm), 0);
	sa_swept(w->sa);
	find_islands(w);
	for (unsigned g = 0; g < N_GROUPS; g++) {
		for (unsigned h = 0; h < w->n_hosts; h++)
			if (!is_up(w, h))
				w->joined[g][h] = 0;
		bury(w, g);
	}
}

/* A link of the host's switch fails or returns. */
static void step_link(struct world *w, unsigned group, unsigned host)
{
	struct fabric_port *p = &switch_at(w, w->at[host])->port[1 + any(w, 16)];
	int ret = fabric_link_set(w->f, p, p->cut);

	(void)group;
	if (!p->peer)
		assert_int_equal(ret, -ENOTCONN);
	else if (ret)
		assert_int_equal(ret, -EHOSTDOWN);
	follow_fabric(w);
}

/* Likewise the host's switch; it is revived sooner than killed. */
static void step_switch(struct world *w, unsigned group, unsigned host)
{
	struct fabric_node *sw = switch_at(w, w->at[host]);

	(void)group;
	if (!sw->dead && any(w, 3))
		return;
	assert_int_equal(fabric_switch_set(w->f, sw, sw->dead), 0);
	follow_fabric(w);
}

static void step_attach(struct world *w, unsigned group, unsigned host)
{
	unsigned i = any(w, QPS);
	struct ib_gid mgid = testing_mgid(group);
	bool *attached = &w->attached[group][host][i];

	if (*attached)
		assert_int_equal(fabric_attach_remove(w->f, host, qpn_of(host, i), &mgid, 0xC001),
		                 0);
	else
		assert_int_equal(fabric_attach_add(w->f, host, qpn_of(host, i), &mgid, 0xC001), 0);
	*attached = !*attached;
}

/* Flows of all hosts to the group, by the MLID that it has now. */
static void follow_group(struct world *w, unsigned group)
{
	struct ib_gid mgid = testing_mgid(group);
	const struct sa_group *g = sa_group_find(w->sa, &mgid);
	uint16_t mlid = g ? g->rec.mlid : 0;

	if (mlid == w->flow_mlid[group])
		return;
	for (unsigned h = 0; h < w->n_hosts; h++) {
		if (w->flow[group][h])
			fabric_flow_remove(w->f, w->flow[group][h]);
		w->flow[group][h] =
		        mlid ? testing_flow(w->f, w->f->hca_port[h], qpn_of(h, 0), mlid, &mgid)
		             : NULL;
	}
	w->flow_mlid[group] = mlid;
}

/* ---- what must hold ---- */

static bool receives(const struct world *w, unsigned group, unsigned from, unsigned to)
{
	return (w->joined[group][to] & (IB_JOIN_FULL | IB_JOIN_NON)) &&
	       joined_by_links(w, from, to);
}

/* Whether the tree of the MLID reaches the host, be it for this group or for another group with the
 * same MLID. */
static bool is_led_to(const struct world *w, unsigned group, unsigned from, unsigned to)
{
	for (unsigned g = 0; g < N_GROUPS; g++)
		if (w->flow_mlid[g] == w->flow_mlid[group] && receives(w, g, from, to))
			return true;
	return false;
}

/* A member sends a packet. Its port's own copy does not leave the HCA. */
static void send_one(struct world *w, unsigned group, unsigned from)
{
	atomic_fetch_add(&shm_flow_count_at(w->f->region, w->flow[group][from]->id)->packets, 1);
	w->sent[from]++;
	for (unsigned to = 0; to < w->n_hosts; to++)
		if (to != from)
			w->got[to] += is_led_to(w, group, from, to);
}

static void check_sender(struct world *w, unsigned group, unsigned from)
{
	const struct fabric_flow *flow = w->flow[group][from];

	for (unsigned to = 0; to < w->n_hosts; to++)
		for (unsigned i = 0; i < QPS; i++) {
			unsigned copies = testing_copies(w->f, flow, qpn_of(to, i));
			unsigned want = is_led_to(w, group, from, to) && w->attached[group][to][i];

			/* the packet of a sender that is no member may arrive or not */
			if (w->joined[group][from])
				assert_int_equal(copies, want);
			else
				assert_true(copies <= want);
		}
	if (w->joined[group][from])
		send_one(w, group, from);
}

/* The packets that were counted along the paths, old and new, add up to the packets that were
 * sent. */
static void check_counters(struct world *w)
{
	fabric_flow_collect(w->f);
	for (unsigned h = 0; h < w->n_hosts; h++) {
		assert_int_equal(w->f->hca_port[h]->stats.xmit_packets, w->sent[h]);
		assert_int_equal(w->f->hca_port[h]->stats.recv_packets, w->got[h]);
	}
	for (unsigned s = 0; s < w->n_switches; s++)
		for (unsigned k = 1; k <= switch_at(w, s)->n_ports; k++) {
			const struct fabric_port *p = &switch_at(w, s)->port[k];

			if (p->peer)
				assert_int_equal(p->stats.xmit_packets,
				                 p->peer->stats.recv_packets);
		}
}

/* Ports that are up are active, with the LIDs that they have always had. */
static void check_ports(const struct world *w)
{
	for (unsigned h = 0; h < w->n_hosts; h++) {
		assert_int_equal(w->f->hca_port[h]->lid, w->lid[h]);
		assert_int_equal(shm_port_at(w->f->region, h)->state,
		                 is_up(w, h) ? IB_PORT_ACTIVE : IB_PORT_DOWN);
	}
}

static void check_group(struct world *w, unsigned group)
{
	bool any_member = false;

	for (unsigned h = 0; h < w->n_hosts; h++)
		any_member |= w->joined[group][h];
	assert_int_equal(w->flow_mlid[group] != 0, any_member);
	for (unsigned h = 0; any_member && h < w->n_hosts; h++)
		check_sender(w, group, h);
}

typedef void step(struct world *w, unsigned group, unsigned host);

static void check_all(struct world *w)
{
	for (unsigned g = 0; g < N_GROUPS; g++)
		follow_group(w, g);
	for (unsigned g = 0; g < N_GROUPS; g++)
		check_group(w, g);
	check_ports(w);
	/* not at each step: packets must be counted along the path at the time of sending */
	if (!any(w, 4))
		check_counters(w);
}

static void wander(step *const *steps, unsigned n_steps)
{
	for (unsigned seed = 0; seed < TOPOLOGIES; seed++) {
		struct world w;

		begin(&w, seed);
		for (int i = 0; i < STEPS; i++) {
			unsigned what = any(&w, n_steps);
			unsigned group = any(&w, N_GROUPS), host = any(&w, w.n_hosts);

			steps[what](&w, group, host);
			check_all(&w);
		}
		end(&w);
	}
}

CASE(members_get_one_copy_each_and_nobody_else_any)
{
	static step *const steps[] = { step_join, step_leave, step_attach, step_attach };

	wander(steps, ARRAY_SIZE(steps));
}

CASE(members_get_one_copy_while_links_and_switches_fail_and_return)
{
	static step *const steps[] = { step_join,   step_join, step_join, step_leave,
		                       step_attach, step_link, step_link, step_switch };

	wander(steps, ARRAY_SIZE(steps));
}

static void check_unicast(struct world *w)
{
	for (unsigned from = 0; from < w->n_hosts; from++)
		for (unsigned to = 0; to < w->n_hosts; to++) {
			struct fabric_flow *flow = testing_flow(w->f, w->f->hca_port[from],
			                                        qpn_of(from, 0), w->lid[to], NULL);
			const struct shm_flow *r = testing_record(w->f, flow);

			assert_int_equal(r->count, joined_by_links(w, from, to));
			if (r->count)
				assert_int_equal(r->dest_port, to);
			fabric_flow_remove(w->f, flow);
		}
}

/* Unicast on the same topologies: exactly the hosts of one's own island can be reached. */
CASE(unicast_reaches_all_of_an_island_and_no_other)
{
	for (unsigned seed = 0; seed < TOPOLOGIES; seed++) {
		struct world w;

		begin(&w, seed);
		check_unicast(&w);
		for (int i = 0; i < 10; i++) {
			step_link(&w, 0, any(&w, w.n_hosts));
			step_switch(&w, 0, any(&w, w.n_hosts));
			check_unicast(&w);
		}
		end(&w);
	}
}
