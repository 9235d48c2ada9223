/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sweeps in slices while programs set LIDs, LMCs, port states and forwarding tables by SMPs, links
 * fail and return, and hosts join and leave groups: on several topologies, with all ways of
 * routing. Switches die and return between sweeps. Subnet managers end, wherever they are, and
 * others take over, as the daemon does it (daemon/subnet/subnet.c). Whatever has happened, a sweep
 * ends without an error, and flows are what the tables say. Once all links are up again, the next
 * sweeps put all in order: a port that is a member of a group, and has had a link since, is in its
 * tree.
 *
 * The test runs for UMBEL_FUZZ_SECONDS, or for about a second. UMBEL_FUZZ_SEED sets the first seed.
 * Each fabric has a seed, which a failure prints: with it as the first, the failure comes at once.
 */
#include <harness.h>

#include "fabric/agents/mads.h"
#include "subnet/sa.h"
#include "subnet/sa_groups.h"
#include "subnet/testing_routes.h"
#include "wire/testing_mad_fuzz.h"

#define N_FABRICS  100
#define SWEEPS     24 /* of each */
#define N_FLOWS    16
#define N_GROUPS   3
#define MAX_HOSTS  64
#define FIRST_MLID 0xC001 /* the first one is the broadcast group's */
#define FIRST_QPN  10

/* The membership in a group, as the programs of a host, or rdma_cm for them, know it. */
struct membership {
	bool is_member;
	uint8_t states;
	uint16_t mlid;
};

struct lab {
	struct env *e;
	struct sa *sa; /* NULL: a subnet manager is taking over */
	struct fuzz fuzz;
	struct fabric_flow *flow[N_FLOWS];
	struct membership member[N_GROUPS][MAX_HOSTS];
	bool reached[MAX_HOSTS];
	uint64_t n_slices, n_sets, n_refused, n_renewed, n_early, n_checked;
};

static uint32_t below(struct lab *l, uint32_t n)
{
	return fuzz_below(&l->fuzz, n);
}

/* ---- the fabric ---- */

/* A ring of switches with links across, of which some are double, and one that leads back. */
static void plan_net(struct lab *l, struct fabric_plan *plan)
{
	unsigned n = 3 + below(l, 10);
	struct net net;

	net_init(&net, n, 1 + below(l, 3));
	for (unsigned i = 0; i < n; i++)
		net_link(&net, i, (i + 1) % n);
	for (unsigned i = below(l, n); i > 0; i--)
		net_link(&net, below(l, n), below(l, n));
	*plan = net.plan;
}

static void plan_tree(struct lab *l, struct fabric_plan *plan)
{
	const struct fabric_fat_tree two = { .levels = 2, .radix = 6 }, three = { 3, 4, 0 };
	char why[160];

	fabric_plan_init(plan);
	assert_int_equal(fabric_plan_fat_tree(plan, below(l, 2) ? &two : &three, why, sizeof(why)),
	                 0);
}

static void begin(struct lab *l)
{
	static const char *const routing[] = { "minhop", "updn", "ftree", "dfsssp" };
	static const char *const lmc[] = { "0", "0", "2", "7" };
	struct fabric_plan plan;
	struct fabric *f;

	if (below(l, 2))
		plan_net(l, &plan);
	else
		plan_tree(l, &plan);
	l->e = start_lmc(&plan, FUZZ_PICK(&l->fuzz, routing), FUZZ_PICK(&l->fuzz, lmc));
	f = l->e->f;
	assert_in_range(f->n_ib_ports, 1, MAX_HOSTS);
	assert_int_equal(sa_new(&l->sa, f, l->e->sm), 0);
	for (unsigned i = 0; i < f->n_ib_ports; i++) {
		testing_qp(f, FIRST_QPN + i, f->hca_port[i]);
		for (unsigned g = 0; g < N_GROUPS; g++) {
			const struct ib_gid mgid = testing_mgid(g);

			assert_int_equal(fabric_attach_add(f, f->hca_port[i]->node->hca,
			                                   FIRST_QPN + i, &mgid,
			                                   (uint16_t)(FIRST_MLID + g)),
			                 0);
		}
	}
	for (unsigned i = 0; i < N_FLOWS; i++) {
		unsigned from = below(l, f->n_ib_ports), to = below(l, f->n_ib_ports);

		const struct ib_gid mgid = testing_mgid(i % N_GROUPS);

		/* whichever group has the MLID, all are attached to all */
		l->flow[i] = i % 2 ? testing_flow(f, f->hca_port[from], FIRST_QPN + from,
		                                  f->hca_port[to]->lid, NULL)
		                   : testing_flow(f, f->hca_port[from], FIRST_QPN + from,
		                                  (uint16_t)(FIRST_MLID + i % N_GROUPS), &mgid);
	}
}

static struct fabric_node *any_switch(struct lab *l)
{
	return sm_switch(l->e->sm, below(l, l->e->f->n_switches));
}

/* A port with a cable, of a switch. */
static struct fabric_port *any_port(struct lab *l)
{
	for (;;) {
		struct fabric_node *sw = any_switch(l);
		struct fabric_port *p = &sw->port[1 + below(l, sw->n_ports)];

		if (p->peer)
			return p;
	}
}

static struct fabric_port *any_end_port(struct lab *l)
{
	return fuzz_chance(&l->fuzz, 75) ? l->e->f->hca_port[below(l, l->e->f->n_ib_ports)]
	                                 : &any_switch(l)->port[0];
}

/* ---- what happens to it ---- */

static void set(struct lab *l, struct fabric_port *p, uint16_t attribute, uint32_t modifier,
                uint8_t *data)
{
	uint16_t status = fabric_sma_set(l->e->f, p, attribute, modifier, data);

	l->n_sets++;
	l->n_refused += status != MAD_STATUS_OK;
}

static void get_port_info(struct lab *l, struct fabric_port *p, struct wire_port_info *info)
{
	uint8_t data[SMP_DATA_BYTES] = { 0 };

	assert_int_equal(fabric_sma_get(l->e->f, p, SMP_ATTR_PORT_INFO, p->num, data),
	                 MAD_STATUS_OK);
	wire_port_info_decode(data, info);
	info->port_state = info->port_physical_state = 0;
}

static void set_port_info(struct lab *l, struct fabric_port *p, const struct wire_port_info *info)
{
	uint8_t data[SMP_DATA_BYTES] = { 0 };

	wire_port_info_encode(info, data);
	set(l, p, SMP_ATTR_PORT_INFO, p->num, data);
}

static uint16_t any_lid(struct lab *l)
{
	switch (below(l, 4)) {
	case 0:
		return any_end_port(l)->lid;
	case 1:
		return (uint16_t)below(l, 256);
	case 2:
		return (uint16_t)below(l, IB_LID_MCAST_FIRST);
	default:
		return (uint16_t)fuzz_number(&l->fuzz);
	}
}

static void set_lid(struct lab *l)
{
	struct fabric_port *p = any_end_port(l);
	struct wire_port_info info;

	get_port_info(l, p, &info);
	if (fuzz_chance(&l->fuzz, 30))
		info.lmc = (uint8_t)below(l, SM_MAX_LMC + 1);
	info.lid = any_lid(l);
	if (fuzz_chance(&l->fuzz, 80))
		info.lid &= (uint16_t) ~((1u << info.lmc) - 1);
	set_port_info(l, p, &info);
}

static void set_state(struct lab *l)
{
	static const uint8_t states[] = { 0, IB_PORT_DOWN, IB_PORT_INIT, IB_PORT_ARMED,
		                          IB_PORT_ACTIVE };
	static const uint8_t physical[] = { 0, 0, PORT_PHYS_SLEEP, PORT_PHYS_POLLING,
		                            PORT_PHYS_DISABLED };
	struct fabric_port *p = any_port(l);
	struct wire_port_info info;

	p = below(l, 2) ? p : p->peer;
	get_port_info(l, p, &info);
	info.port_state = FUZZ_PICK(&l->fuzz, states);
	info.port_physical_state = FUZZ_PICK(&l->fuzz, physical);
	set_port_info(l, p, &info);
}

static void set_table(struct lab *l)
{
	struct fabric_node *sw = any_switch(l);
	uint8_t data[SMP_DATA_BYTES];
	uint32_t block = any_lid(l) / LFT_BLOCK;

	fabric_sma_get(l->e->f, &sw->port[0], SMP_ATTR_LINEAR_FT, block, data);
	for (unsigned i = 0; i < LFT_BLOCK; i++)
		if (below(l, 2))
			data[i] =
			        (uint8_t)(below(l, 8) ? below(l, sw->n_ports + 1) : below(l, 256));
	set(l, &sw->port[0], SMP_ATTR_LINEAR_FT, block, data);
}

static void set_cable(struct lab *l)
{
	struct fabric_port *p = any_port(l);

	fabric_link_set(l->e->f, p, p->cut);
}

/* ---- groups ---- */

#define JOIN_MASK (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE)
#define CREATE_MASK \
	(JOIN_MASK | SA_MCM_QKEY | SA_MCM_TCLASS | SA_MCM_PKEY | SA_MCM_FLOW_LABEL | SA_MCM_SL)

/* A request of the host's; *@rec becomes the response. True: it is granted. */
static bool ask_to_join(struct lab *l, unsigned g, unsigned host, uint64_t mask,
                        struct wire_mcmember *rec)
{
	struct membership *m = &l->member[g][host];

	if (!l->sa || sa_is_too_early(l->sa, SA_ATTR_MCMEMBER, mask)) {
		l->n_early++;
		return false;
	}
	*rec = (struct wire_mcmember){ .mgid = testing_mgid(g),
		                       .port_gid = shm_port_at(l->e->f->region, host)->gid[0],
		                       .pkey = IB_PKEY_DEFAULT,
		                       .mlid = m->mlid,
		                       .join_state = m->states };
	return sa_mcmember_set(l->sa, mask, rec) == SA_OK;
}

static void leave(struct lab *l, unsigned g, unsigned host)
{
	struct membership *m = &l->member[g][host];
	struct wire_mcmember rec = { .mgid = testing_mgid(g),
		                     .port_gid = shm_port_at(l->e->f->region, host)->gid[0],
		                     .join_state = m->states };

	m->is_member = false;
	if (l->sa && !sa_is_too_early(l->sa, SA_ATTR_MCMEMBER, JOIN_MASK))
		sa_mcmember_delete(l->sa, JOIN_MASK, &rec);
}

static void join_or_leave(struct lab *l)
{
	unsigned g = below(l, N_GROUPS), host = below(l, l->e->f->n_ib_ports);
	struct membership *m = &l->member[g][host];
	struct wire_mcmember rec;

	if (m->is_member) {
		leave(l, g, host);
		return;
	}
	m->states = below(l, 4) ? IB_JOIN_FULL : IB_JOIN_SEND_ONLY_FULL;
	m->is_member = ask_to_join(l, g, host, CREATE_MASK, &rec);
	if (m->is_member)
		m->mlid = rec.mlid;
}

/* A host whose port goes down is no member any more, and hears of it. */
static void lose_members(struct lab *l, uint8_t least)
{
	for (unsigned i = 0; i < l->e->f->n_ib_ports; i++)
		for (unsigned g = 0; g < N_GROUPS; g++)
			l->member[g][i].is_member &= l->e->f->hca_port[i]->state >= least;
}

/* The port registers its memberships with a subnet administrator that has begun. */
static void register_again(struct lab *l, unsigned host)
{
	for (unsigned g = 0; g < N_GROUPS; g++) {
		struct membership *m = &l->member[g][host];
		struct wire_mcmember rec;

		if (!m->is_member)
			continue;
		if (l->e->f->hca_port[host]->state != IB_PORT_ACTIVE) {
			m->is_member = false;
			continue;
		}
		assert_true(ask_to_join(l, g, host, CREATE_MASK | SA_MCM_MLID, &rec));
		assert_int_equal(rec.mlid, m->mlid); /* else it would have to join anew */
		l->n_renewed++;
	}
}

static void (*const changes[])(struct lab *l) = {
	set_lid,   set_lid,   set_state,     set_table,     set_table,
	set_cable, set_cable, join_or_leave, join_or_leave, join_or_leave,
};

static void change(struct lab *l, unsigned n)
{
	while (n--)
		FUZZ_PICK(&l->fuzz, changes)(l);
	fabric_flow_follow_all(l->e->f);
	lose_members(l, IB_PORT_INIT);
}

static void set_switch(struct lab *l)
{
	struct fabric_node *sw = any_switch(l);

	fabric_switch_set(l->e->f, sw, sw->dead);
	lose_members(l, IB_PORT_INIT);
}

/* ---- sweeps ---- */

static void assert_flows_follow(struct lab *l)
{
	struct fabric *f = l->e->f;
	uint32_t n[N_FLOWS], none = 0;

	if (!fabric_flow_follow(f, &none, 1))
		return; /* some have yet to */
	for (unsigned i = 0; i < N_FLOWS; i++)
		n[i] = testing_receivers(f, l->flow[i]);
	fabric_flow_all_changed(f);
	for (unsigned i = 0; i < N_FLOWS; i++)
		assert_int_equal(testing_receivers(f, l->flow[i]), n[i]);
}

/* The budget of a slice. */
static uint32_t any_budget(struct lab *l)
{
	return 1 + below(l, 1u << below(l, 12));
}

/* Between two slices up to @n things happen. */
static void between(struct lab *l, unsigned n)
{
	l->n_slices++;
	change(l, below(l, n + 1));
	assert_flows_follow(l);
}

/* The subnet manager's part, which sometimes is given up and begun anew. False: it ends before it
 * is done. */
static bool sweep_ports(struct lab *l, unsigned n, bool may_end)
{
	unsigned anew = below(l, 64); /* after so many slices; 32 or more: not at all */
	unsigned end = may_end ? below(l, 64) : 64;
	struct sm *sm = l->e->sm;
	uint32_t budget;

	sm_sweep_begin(sm);
	for (unsigned i = 0;; i++) {
		budget = any_budget(l);
		if (sm_sweep_step(sm, &budget))
			break;
		between(l, n);
		if (i == anew && i < 32)
			sm_sweep_begin(sm);
		if (i == end && i < 32)
			return false;
	}
	assert_int_equal(sm_sweep_result(sm), 0);
	assert_flows_follow(l);
	return true;
}

/* In slices, between which up to @n things happen. */
static void sweep(struct lab *l, unsigned n)
{
	uint32_t mlid = 0, budget;

	sweep_ports(l, n, false);
	for (budget = any_budget(l); !sa_swept_step(l->sa, &mlid, &budget); budget = any_budget(l))
		between(l, n);
	assert_flows_follow(l);
}

/* All ports register with the new subnet administrator; what has tables before stays until then. */
static void learn_members(struct lab *l, unsigned n)
{
	uint32_t mlid = 0, budget;

	l->sa->registering = true;
	for (unsigned i = 0; i < l->e->f->n_ib_ports; i++) {
		register_again(l, i);
		if (below(l, 4) == 0)
			between(l, n);
	}
	l->sa->registering = false;
	for (unsigned i = below(l, 3); i > 0; i--) {
		change(l, below(l, 4));
		sweep(l, n);
	}
	for (budget = any_budget(l); !sa_learned_step(l->sa, &mlid, &budget);
	     budget = any_budget(l))
		between(l, n);
}

/* The subnet manager ends as if it were killed, and another one takes over; sometimes that ends
 * before it is done, and the next one comes. */
static void take_over(struct lab *l, unsigned n)
{
	const struct sm_ops ops = { .wake = no_wake };
	uint32_t budget;
	unsigned at = 0;

	sa_free(l->sa);
	l->sa = NULL;
	do {
		sm_free(l->e->sm);
		assert_int_equal(sm_new(&l->e->sm, l->e->f, &ops), 0);
		change(l, below(l, 4));
	} while (!sweep_ports(l, n, true));
	for (budget = any_budget(l); !sm_learn_step(l->e->sm, &at, &budget); budget = any_budget(l))
		;
	assert_int_equal(sa_new(&l->sa, l->e->f, l->e->sm), 0);
	learn_members(l, n);
}

/* All switches live, and all links can come up. */
static void mend(struct lab *l)
{
	struct fabric *f = l->e->f;

	for (unsigned i = 0; i < f->n_switches; i++)
		if (sm_switch(l->e->sm, i)->dead)
			assert_int_equal(fabric_switch_set(f, sm_switch(l->e->sm, i), true), 0);
	for (unsigned i = 0; i < f->n_nodes; i++)
		for (unsigned k = 1; k <= f->node[i]->n_ports; k++) {
			struct fabric_port *p = &f->node[i]->port[k];

			if (p->disabled)
				fabric_port_disable(f, p, false);
			if (p->asleep)
				fabric_port_sleep(f, p, false);
			if (p->cut)
				assert_int_equal(fabric_link_set(f, p, true), 0);
		}
	fabric_flow_follow_all(f);
}

/* ---- order ---- */

/* Whether packets from the host get to the port by its LID. */
static bool delivers(const struct env *e, const struct fabric_port *from, uint16_t lid,
                     const struct fabric_port *to)
{
	const struct fabric_port *at = from->peer;

	for (unsigned hops = 0; hops <= e->f->n_switches; hops++) {
		uint8_t out = fabric_lft_get(at->node, lid);

		if (out > at->node->n_ports)
			return false;
		if (!out || !fabric_port_carries(&at->node->port[out]))
			return !out && to == &at->node->port[0];
		at = at->node->port[out].peer;
		if (at->node->type == FABRIC_HCA)
			return at == to;
	}
	return false;
}

static void assert_lids_apart(const struct env *e)
{
	static bool taken[IB_LID_MCAST_FIRST];

	memset(taken, 0, sizeof(taken));
	for (unsigned i = 0; i < e->f->n_ib_ports + e->f->n_switches; i++) {
		const struct fabric_port *p =
		        i < e->f->n_ib_ports ? e->f->hca_port[i]
		                             : &sm_switch(e->sm, i - e->f->n_ib_ports)->port[0];

		assert_int_not_equal(p->lid, 0);
		assert_int_equal(p->lmc, i < e->f->n_ib_ports ? e->f->settings.lmc : 0);
		for (unsigned k = 0; k < 1u << p->lmc; k++) {
			assert_false(taken[p->lid + k]);
			taken[p->lid + k] = true;
		}
	}
}

static void assert_all_delivered(const struct env *e)
{
	for (unsigned a = 0; a < e->f->n_ib_ports; a++) {
		const struct fabric_port *from = e->f->hca_port[a];

		for (unsigned b = 0; b < e->f->n_ib_ports; b++) {
			const struct fabric_port *to = e->f->hca_port[b];

			for (unsigned i = 0; a != b && i < 1u << to->lmc; i++)
				assert_true(delivers(e, from, (uint16_t)(to->lid + i), to));
		}
		for (unsigned b = 0; b < e->f->n_switches; b++) {
			const struct fabric_port *to = &sm_switch(e->sm, b)->port[0];

			assert_true(delivers(e, from, to->lid, to));
		}
	}
}

static void on_reached(void *arg, struct fabric_port *hca)
{
	((struct lab *)arg)->reached[hca->index] = true;
}

/* The packets of each member of the group reach all receivers. */
static void assert_group_served(struct lab *l, unsigned g)
{
	const struct ib_gid mgid = testing_mgid(g);
	const struct sa_group *group = sa_group_find(l->sa, &mgid);
	const struct fabric *f = l->e->f;

	for (unsigned a = 0; a < f->n_ib_ports; a++) {
		struct fabric_walk w = { .hop = testing_no_hop, .reached = on_reached, .arg = l };

		if (!l->member[g][a].is_member)
			continue;
		assert_non_null(group);
		assert_int_equal(group->rec.mlid, l->member[g][a].mlid);
		assert_non_null(sa_member_find(group, f->hca_port[a]));
		memset(l->reached, 0, sizeof(l->reached));
		fabric_walk_multicast(l->e->f, f->hca_port[a], group->rec.mlid, &w);
		for (unsigned b = 0; b < f->n_ib_ports; b++)
			assert_true(l->reached[b] || !l->member[g][b].is_member ||
			            l->member[g][b].states != IB_JOIN_FULL);
		l->n_checked++;
	}
}

/* A link that comes up has all paths chosen anew, whatever programs have written. */
static void assert_order(struct lab *l)
{
	struct env *e = l->e;
	struct fabric_port *p = nth_link(e, below(l, 8));

	assert_int_equal(fabric_link_set(e->f, p, false), 0);
	sweep(l, 0);
	assert_int_equal(fabric_link_set(e->f, p, true), 0);
	sweep(l, 0);
	for (unsigned i = 0; i < e->f->n_nodes; i++)
		for (unsigned k = 1; k <= e->f->node[i]->n_ports; k++)
			if (e->f->node[i]->port[k].peer)
				assert_int_equal(e->f->node[i]->port[k].state, IB_PORT_ACTIVE);
	assert_lids_apart(e);
	assert_all_delivered(e);
	for (unsigned g = 0; g < N_GROUPS; g++)
		assert_group_served(l, g);
}

CASE(whatever_happens_in_mid_sweep_is_put_in_order)
{
	uint64_t end = fuzz_end(), seed = fuzz_seed(), n_slices = 0, n_sets = 0, n_refused = 0;
	uint64_t n_renewed = 0, n_early = 0, n_checked = 0;

	for (unsigned n = 0; n < N_FABRICS || base_now_ns() < end; n++, seed++) {
		struct lab l = { .fuzz = { .seed = seed } };

		fprintf(stderr, "UMBEL_FUZZ_SEED=%llu\n", (unsigned long long)seed);
		begin(&l);
		for (unsigned i = 1; i <= SWEEPS; i++) {
			change(&l, below(&l, 4));
			if (below(&l, 4) == 0)
				set_switch(&l);
			if (below(&l, 6) == 0)
				take_over(&l, 3);
			else
				sweep(&l, 3);
			if (i % 8)
				continue;
			mend(&l);
			assert_order(&l);
		}
		n_slices += l.n_slices;
		n_sets += l.n_sets;
		n_refused += l.n_refused;
		n_renewed += l.n_renewed;
		n_early += l.n_early;
		n_checked += l.n_checked;
		sa_free(l.sa);
		stop(l.e);
	}
	/* it was useful */
	assert_true(n_slices > (uint64_t)8 * N_FABRICS * SWEEPS);
	assert_true(n_refused > n_sets / 50 && n_refused < n_sets / 2);
	assert_true(n_renewed > 10 * N_FABRICS && n_checked > 10 * N_FABRICS);
	assert_true(n_early > 0);
}
