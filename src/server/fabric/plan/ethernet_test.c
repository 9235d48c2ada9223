/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ethernet ports: their state follows their device, and their flows lead to this HCA and to the
 * fabric's own GIDs in memory, and to the network.
 */
#include <arpa/inet.h>

#include "fabric/agents/mads.h"
#include "fabric/plan/ethernet.h"
#include "fabric/testing.h"

#define SENDER    2 /* queue pairs, by index; on the first port */
#define NEAR      3
#define FAR       4 /* on the second */
#define FROM_WIRE 5

static struct ib_gid gid(const char *text)
{
	struct ib_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

static struct fabric_ethernet device(uint32_t ifindex, const char *address)
{
	struct fabric_ethernet e = { .ifindex = ifindex, .up = true };

	e.gid[0] = gid("fe80::1");
	e.gid[1] = gid(address);
	return e;
}

static unsigned set(struct fabric *f, unsigned port, const struct fabric_ethernet *e)
{
	return fabric_ethernet_set(f, f->hca_port[port], e, IBV_MTU_1024);
}

static int setup(void **state)
{
	struct fabric_ethernet a = device(7, "::ffff:10.0.0.1"), b = device(8, "::ffff:10.0.1.1");
	struct shm_settings settings;
	struct fabric_plan plan;
	struct fabric *f;
	char why[64];
	int node;

	fabric_settings_default(&settings);
	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_add_host(&plan, NULL), 0);
	assert_int_equal(fabric_plan_add_ethernet(&plan, 0, "eth0"), 0);
	assert_int_equal(fabric_plan_add_ethernet(&plan, 0, "eth1.5"), 1);
	assert_int_equal(fabric_plan_finish(&plan, &node, why, sizeof(why)), 0);
	f = testing_build(&plan, &settings);
	set(f, 0, &a);
	set(f, 1, &b);
	testing_qp(f, SENDER, f->hca_port[0]);
	testing_qp(f, NEAR, f->hca_port[0]);
	testing_qp(f, FAR, f->hca_port[1]);
	testing_qp(f, FROM_WIRE, f->hca_port[0]);
	shm_qp_at(f->region, FROM_WIRE)->flags |= SHM_QP_ROCE;
	*state = f;
	return 0;
}

/* Whether what SENDER sends to @gid stays in this fabric, that is, in memory. */
static bool stays(struct fabric *f, const struct ib_gid *gid)
{
	return fabric_ethernet_find(f, f->hca_port[0], gid) != NULL;
}

static void devices_of_another_network_are_reached_by_packets(void **state)
{
	struct fabric_ethernet b = device(8, "::ffff:10.0.1.1");
	struct fabric *f = *state;

	assert_true(stays(f, &b.gid[1]));
	b.network = 1;
	set(f, 1, &b);
	assert_false(stays(f, &b.gid[1]));
	assert_ptr_equal(fabric_ethernet_find(f, f->hca_port[1], &b.gid[1]), f->hca_port[1]);
}

static int teardown(void **state)
{
	fabric_free(*state);
	return 0;
}

static struct fabric_flow *flow_to(struct fabric *f, uint32_t qpn, const char *to, uint16_t lid)
{
	struct ib_gid dgid = gid(to);

	return testing_flow(f, f->hca_port[0], qpn, lid, &dgid);
}

static void attach(struct fabric *f, uint32_t hca, uint32_t qpn, const char *group)
{
	struct ib_gid mgid = gid(group);

	assert_int_equal(fabric_attach_add(f, hca, qpn, &mgid, IB_LID_MCAST_FIRST), 0);
}

static bool leaves(struct fabric *f, const struct fabric_flow *flow)
{
	return testing_record(f, flow)->flags & SHM_FLOW_ROCE;
}

static void an_hca_is_named_after_its_device(void **state)
{
	struct fabric *f = *state;

	assert_string_equal(shm_hca_at(f->region, 0)->name, "umbel_eth0");
	assert_string_equal(shm_hca_at(f->region, 1)->name, "umbel_eth1.5");
	assert_string_equal(shm_hca_at(f->region, 1)->host, "h1");
}

static void a_port_is_what_its_device_is(void **state)
{
	struct fabric *f = *state;
	const struct shm_port *p = shm_port_at(f->region, 0);
	struct ib_gid address = gid("::ffff:10.0.0.1");

	assert_int_equal(p->link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(p->state, IB_PORT_ACTIVE);
	assert_int_equal(p->active_mtu, IBV_MTU_1024);
	assert_int_equal(p->ifindex, 7);
	assert_int_equal(p->lid, 0);
	assert_int_equal(p->sm_lid, 0);
	assert_int_equal(p->n_gids, SHM_GIDS);
	assert_int_equal(p->n_pkeys, 1);
	assert_int_equal(p->pkey[0], 0xFFFF);
	assert_int_equal(p->gid_type[1], IBV_GID_TYPE_ROCE_V2);
	assert_memory_equal(&p->gid[1], &address, sizeof(address));
}

static void a_change_is_told_as_what_it_is(void **state)
{
	struct fabric *f = *state;
	struct fabric_ethernet e = device(7, "::ffff:10.0.0.1");

	assert_int_equal(set(f, 0, &e), 0);
	e.gid[5] = gid("fd00::1");
	assert_int_equal(set(f, 0, &e), FABRIC_ETHERNET_GIDS);
	e.up = false;
	assert_int_equal(set(f, 0, &e), FABRIC_ETHERNET_STATE);
	assert_int_equal(shm_port_at(f->region, 0)->state, IB_PORT_DOWN);
	e = (struct fabric_ethernet){ 0 };
	assert_int_equal(set(f, 0, &e), FABRIC_ETHERNET_GIDS);
}

static void a_groups_messages_go_to_this_hca_and_out(void **state)
{
	struct fabric *f = *state;
	struct fabric_flow *flow = flow_to(f, SENDER, "::ffff:239.1.1.1", IB_LID_MCAST_FIRST);

	assert_true(leaves(f, flow));
	assert_int_equal(testing_receivers(f, flow), 0);
	attach(f, 0, NEAR, "::ffff:239.1.1.1");
	attach(f, 0, SENDER, "::ffff:239.1.1.1");
	attach(f, 1, FAR, "::ffff:239.1.1.1");
	assert_int_equal(testing_receivers(f, flow), 2);
	assert_int_equal(testing_copies(f, flow, NEAR), 1);
	assert_int_equal(testing_copies(f, flow, FAR), 0); /* it may get it from the network */
	assert_true(leaves(f, flow));
}

static void an_ipv6_group_is_a_group_too(void **state)
{
	struct fabric *f = *state;
	struct fabric_flow *flow = flow_to(f, SENDER, "ff0e::77", IB_LID_MCAST_FIRST);

	attach(f, 0, NEAR, "ff0e::77");
	attach(f, 0, SENDER, "ff0e::78");
	assert_int_equal(testing_receivers(f, flow), 1);
	assert_int_equal(testing_copies(f, flow, NEAR), 1);
	assert_true(leaves(f, flow));
}

static void received_roce_messages_do_not_go_out_again(void **state)
{
	struct fabric *f = *state;
	struct fabric_flow *flow = flow_to(f, FROM_WIRE, "::ffff:239.1.1.1", IB_LID_MCAST_FIRST);

	attach(f, 0, NEAR, "::ffff:239.1.1.1");
	assert_int_equal(testing_copies(f, flow, NEAR), 1);
	assert_false(leaves(f, flow));
}

static void a_gid_of_ours_is_reached_in_memory(void **state)
{
	struct fabric *f = *state;
	const struct shm_flow *own = testing_record(f, flow_to(f, SENDER, "::ffff:10.0.0.1", 0));
	const struct shm_flow *next = testing_record(f, flow_to(f, SENDER, "::ffff:10.0.1.1", 0));
	const struct shm_flow *both = testing_record(f, flow_to(f, SENDER, "fe80::1", 0));

	assert_int_equal(own->count, 1);
	assert_int_equal(own->dest_port, 0);
	assert_int_equal(own->flags, 0);
	assert_int_equal(next->count, 1);
	assert_int_equal(next->dest_port, 1);
	assert_int_equal(next->flags, 0);
	assert_int_equal(both->dest_port, 0); /* rather the sender's own */
}

static void any_other_gid_is_on_the_network(void **state)
{
	struct fabric *f = *state;
	const struct shm_flow *r = testing_record(f, flow_to(f, SENDER, "::ffff:10.0.0.2", 0));

	assert_int_equal(r->count, 0);
	assert_int_equal(r->flags, SHM_FLOW_ROCE);
	assert_int_equal(r->mtu, 1024);
}

static void an_address_that_comes_or_goes_redirects_flows(void **state)
{
	struct fabric *f = *state;
	const struct shm_flow *r = testing_record(f, flow_to(f, SENDER, "::ffff:10.0.0.9", 0));
	struct fabric_ethernet e = device(8, "::ffff:10.0.0.9");

	assert_int_equal(r->flags, SHM_FLOW_ROCE);
	set(f, 1, &e);
	assert_int_equal(r->flags, 0);
	assert_int_equal(r->dest_port, 1);
	e.gid[1] = gid("::ffff:10.0.0.8");
	set(f, 1, &e);
	assert_int_equal(r->flags, SHM_FLOW_ROCE);
	assert_int_equal(r->count, 0);
}

static void a_port_that_is_down_sends_to_nobody(void **state)
{
	struct fabric *f = *state;
	struct fabric_ethernet e = device(7, "::ffff:10.0.0.1");
	struct fabric_flow *group = flow_to(f, SENDER, "::ffff:239.1.1.1", IB_LID_MCAST_FIRST);
	struct fabric_flow *other = flow_to(f, SENDER, "::ffff:10.0.0.2", 0);

	attach(f, 0, NEAR, "::ffff:239.1.1.1");
	e.up = false;
	set(f, 0, &e);
	assert_int_equal(testing_receivers(f, group), 0);
	assert_false(leaves(f, group));
	assert_false(leaves(f, other));
	e.up = true;
	set(f, 0, &e);
	assert_int_equal(testing_copies(f, group, NEAR), 1);
	assert_true(leaves(f, group));
	assert_true(leaves(f, other));
}

/* ---- MADs ---- */

struct mads {
	unsigned delivered, sent;
	struct fabric_port *at;
	struct fabric_mad last;
};

static bool on_delivered(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct mads *m = arg;

	m->delivered++;
	m->at = at;
	m->last = *mad;
	return true;
}

static void on_wire(void *arg, struct fabric_port *from, const struct fabric_mad *mad)
{
	struct mads *m = arg;

	m->sent++;
	m->at = from;
	m->last = *mad;
}

static void listen_to_mads(struct fabric *f, struct mads *m)
{
	*m = (struct mads){ 0 };
	f->mads->sink.deliver = on_delivered;
	f->mads->sink.roce = on_wire;
	f->mads->sink.arg = m;
}

/* A MAD of communication management to QP @qpn of the port with this GID. */
static struct fabric_mad mad_to(const char *to, uint32_t qpn)
{
	struct fabric_mad mad = {
		.data = { 1, 0x07, 2, 3 }, .src_qpn = 1, .dest_qpn = qpn, .has_grh = true
	};

	mad.sgid = gid("::ffff:10.0.0.1");
	mad.dgid = gid(to);
	return mad;
}

static void a_mad_goes_by_its_gid(void **state)
{
	struct fabric *f = *state;
	struct fabric_mad near = mad_to("::ffff:10.0.1.1", 1), far = mad_to("::ffff:10.0.0.2", 1);
	struct mads m;

	listen_to_mads(f, &m);
	fabric_mad_send(f, f->hca_port[0], &near);
	assert_int_equal(m.delivered, 1);
	assert_int_equal(m.sent, 0);
	assert_ptr_equal(m.at, f->hca_port[1]);
	fabric_mad_send(f, f->hca_port[0], &far);
	assert_int_equal(m.delivered, 1);
	assert_int_equal(m.sent, 1);
	assert_ptr_equal(m.at, f->hca_port[0]);
	assert_memory_equal(&m.last.dgid, &far.dgid, sizeof(far.dgid));
}

static void there_is_no_subnet_management_on_ethernet(void **state)
{
	struct fabric *f = *state;
	struct fabric_mad smp = mad_to("::ffff:10.0.0.2", 0), local = mad_to("fe80::1", 1);
	struct mads m;

	local.has_grh = false;
	listen_to_mads(f, &m);
	fabric_mad_send(f, f->hca_port[0], &smp);
	fabric_mad_send(f, f->hca_port[0], &local);
	assert_int_equal(m.delivered + m.sent, 0);
	assert_int_equal(f->mads->stats.no_route, 2);
}

static void a_roce_mad_for_nobody_is_refused_over_roce(void **state)
{
	struct fabric *f = *state;
	struct fabric_mad mad = mad_to("::ffff:10.0.0.1", 1);
	struct mads m;

	listen_to_mads(f, &m);
	f->mads->sink.deliver = NULL;
	mad.data[3] = 1; /* a Get */
	mad.sgid = gid("::ffff:10.0.0.2");
	fabric_mad_input(f, f->hca_port[0], &mad);
	assert_int_equal(m.sent, 1);
	assert_memory_equal(&m.last.dgid, &mad.sgid, sizeof(mad.sgid));
	assert_memory_equal(&m.last.sgid, &mad.dgid, sizeof(mad.dgid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(an_hca_is_named_after_its_device),
		TEST(a_port_is_what_its_device_is),
		TEST(a_change_is_told_as_what_it_is),
		TEST(a_groups_messages_go_to_this_hca_and_out),
		TEST(an_ipv6_group_is_a_group_too),
		TEST(received_roce_messages_do_not_go_out_again),
		TEST(a_gid_of_ours_is_reached_in_memory),
		TEST(any_other_gid_is_on_the_network),
		TEST(an_address_that_comes_or_goes_redirects_flows),
		TEST(a_port_that_is_down_sends_to_nobody),
		TEST(a_mad_goes_by_its_gid),
		TEST(there_is_no_subnet_management_on_ethernet),
		TEST(a_roce_mad_for_nobody_is_refused_over_roce),
		TEST(devices_of_another_network_are_reached_by_packets),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
