/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk of a packet, by tables that the test has written: on one switch,
 * on a line of switches, in a ring, over parallel links.
 */
#include <harness.h>

#include "fabric/testing.h"

#define MLID 0xC005

/* Where a walk went. */
struct trace {
	unsigned hops, reached[8];
	uint8_t mtu;
};

static void on_hop(void *arg, struct fabric_port *out, uint8_t in, uint8_t vl)
{
	(void)in;
	(void)vl;
	struct trace *t = arg;

	assert_non_null(out->peer);
	t->hops++;
}

static void on_reached(void *arg, struct fabric_port *hca)
{
	struct trace *t = arg;

	assert_int_equal(hca->node->type, FABRIC_HCA);
	assert_true(hca->index < ARRAY_SIZE(t->reached));
	t->reached[hca->index]++;
}

static struct trace walk(struct fabric *f, unsigned from, uint16_t dlid)
{
	struct trace t = { 0 };
	struct fabric_walk w = { .hop = on_hop, .reached = on_reached, .arg = &t };

	if (ib_lid_is_mcast(dlid))
		fabric_walk_multicast(f, f->hca_port[from], dlid, &w);
	else
		fabric_walk_unicast(f, f->hca_port[from], dlid, &w);
	t.mtu = w.mtu;
	return t;
}

/* @want: one digit for each host: how many copies it gets. */
static void assert_reached(const struct trace *t, const char *want)
{
	for (unsigned i = 0; i < ARRAY_SIZE(t->reached); i++)
		assert_int_equal(t->reached[i], *want ? *want++ - '0' : 0);
}

/* ---- topologies ---- */

/* Host i + 1 at port i + 1 of a switch; no tables. */
static struct fabric *star(unsigned n_hosts, struct fabric_node **sw)
{
	struct fabric *f = testing_bare_fabric(n_hosts);

	*sw = testing_switch(f, n_hosts + 2);
	for (unsigned i = 0; i < n_hosts; i++)
		testing_plug(f->hca_port[i], &(*sw)->port[i + 1]);
	testing_give_lids(f);
	testing_activate_all(f);
	return f;
}

/* Switches in a row, host i + 1 at port 1 of switch i, port 2 to the left, port 3 to the right. */
static struct fabric *line(unsigned n, struct fabric_node **sw)
{
	struct fabric *f = testing_bare_fabric(n);

	for (unsigned i = 0; i < n; i++) {
		sw[i] = testing_switch(f, 4);
		testing_plug(f->hca_port[i], &sw[i]->port[1]);
		if (i)
			testing_plug(&sw[i]->port[2], &sw[i - 1]->port[3]);
	}
	testing_give_lids(f);
	testing_activate_all(f);
	return f;
}

/* A line whose ends are linked: a ring. */
static struct fabric *ring(unsigned n, struct fabric_node **sw)
{
	struct fabric *f = line(n, sw);

	testing_plug(&sw[0]->port[2], &sw[n - 1]->port[3]);
	testing_activate_all(f);
	return f;
}

/* ---- tables ---- */

CASE(lft_entries_are_kept_and_the_rest_lead_nowhere)
{
	struct fabric_node sw = { .type = FABRIC_SWITCH, .n_ports = 4 };

	assert_int_equal(fabric_lft_get(&sw, 1), FABRIC_LFT_NONE);
	assert_int_equal(fabric_lft_set(&sw, 100, 3), 0);
	assert_int_equal(fabric_lft_set(&sw, 0xBFFF, 4), 0);
	assert_int_equal(fabric_lft_get(&sw, 100), 3);
	assert_int_equal(fabric_lft_get(&sw, 0xBFFF), 4);
	assert_int_equal(fabric_lft_get(&sw, 99), FABRIC_LFT_NONE);
	assert_int_equal(fabric_lft_get(&sw, 101), FABRIC_LFT_NONE);
	assert_int_equal(fabric_lft_get(&sw, 0xFFFF), FABRIC_LFT_NONE);
	free(sw.lft);
}

CASE(an_lft_accepts_unicast_lids_only)
{
	struct fabric_node sw = { .type = FABRIC_SWITCH, .n_ports = 4 };

	assert_int_equal(fabric_lft_set(&sw, 0, 1), -EINVAL);
	assert_int_equal(fabric_lft_set(&sw, 0xC000, 1), -EINVAL);
	assert_int_equal(fabric_lft_set(&sw, 0xFFFF, 1), -EINVAL);
	assert_null(sw.lft);
}

CASE(mft_rows_are_kept_up_to_the_capacity)
{
	struct fabric_mft_row row = { { 1 << 5, 0, 0, 1ull << 62 } };
	struct fabric_node *sw;
	struct fabric *f = star(1, &sw);

	f->settings.mft_capacity = 10;
	assert_null(fabric_mft_get(sw, 0xC000));
	assert_int_equal(fabric_mft_set(f, sw, 0xC009, &row), 0);
	assert_int_equal(fabric_mft_set(f, sw, 0xC00A, &row), -ENOSPC);
	assert_memory_equal(fabric_mft_get(sw, 0xC009), &row, sizeof(row));
	assert_true(fabric_row_has(fabric_mft_get(sw, 0xC009), 5));
	assert_true(fabric_row_has(fabric_mft_get(sw, 0xC009), 254));
	assert_false(fabric_row_has(fabric_mft_get(sw, 0xC008), 5));
	fabric_free(f);
}

CASE(an_mft_accepts_multicast_lids_only)
{
	struct fabric_mft_row row = { { 2 } };
	struct fabric_node *sw;
	struct fabric *f = star(1, &sw);

	assert_int_equal(fabric_mft_set(f, sw, 0xBFFF, &row), -ENOSPC);
	assert_int_equal(fabric_mft_set(f, sw, 0xFFFF, &row), -ENOSPC);
	assert_int_equal(fabric_mft_set(f, sw, 0, &row), -ENOSPC);
	assert_null(fabric_mft_get(sw, 1));
	fabric_free(f);
}

/* ---- unicast ---- */

CASE(unicast_goes_where_the_lft_says)
{
	struct fabric_node *sw;
	struct fabric *f = star(3, &sw);
	struct trace t;

	fabric_lft_set(sw, 3, 3);
	t = walk(f, 0, 3);
	assert_reached(&t, "001");
	assert_int_equal(t.hops, 2);
	fabric_free(f);
}

CASE(unicast_without_an_entry_goes_nowhere)
{
	struct fabric_node *sw;
	struct fabric *f = star(3, &sw);
	struct trace t = walk(f, 0, 3);

	assert_reached(&t, "000");
	assert_int_equal(t.hops, 1);
	fabric_free(f);
}

CASE(unicast_along_a_line_crosses_each_link_once)
{
	struct fabric_node *sw[4];
	struct fabric *f = line(4, sw);
	struct trace t;

	for (unsigned i = 0; i < 3; i++)
		fabric_lft_set(sw[i], 4, 3);
	fabric_lft_set(sw[3], 4, 1);
	t = walk(f, 0, 4);
	assert_reached(&t, "0001");
	assert_int_equal(t.hops, 5);
	fabric_free(f);
}

CASE(a_bad_lft_entry_leads_nowhere)
{
	static const uint8_t bad[] = { 0, 5, 4, 200, 254, 255 }; /* 4: nothing plugged in */
	struct fabric_node *sw;
	struct fabric *f = star(2, &sw);

	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		struct trace t;

		fabric_lft_set(sw, 2, bad[i]);
		t = walk(f, 0, 2);
		assert_reached(&t, "00");
	}
	fabric_free(f);
}

CASE(a_port_refuses_what_has_another_lid)
{
	struct fabric_node *sw;
	struct fabric *f = star(2, &sw);
	struct trace t;

	fabric_lft_set(sw, 9, 2);
	t = walk(f, 0, 9);
	assert_reached(&t, "00");
	assert_int_equal(t.hops, 2);
	fabric_free(f);
}

CASE(a_port_accepts_all_lids_of_its_lmc)
{
	struct fabric_node *sw;
	struct fabric *f = star(2, &sw);

	f->hca_port[1]->lid = 8;
	f->hca_port[1]->lmc = 2;
	for (uint16_t lid = 7; lid <= 12; lid++) {
		struct trace t;

		fabric_lft_set(sw, lid, 2);
		t = walk(f, 0, lid);
		assert_reached(&t, lid >= 8 && lid <= 11 ? "01" : "00");
	}
	fabric_free(f);
}

CASE(unicast_to_itself_does_not_leave_the_hca)
{
	struct fabric_node *sw;
	struct fabric *f = star(2, &sw);
	struct trace t = walk(f, 0, 1);

	assert_reached(&t, "10");
	assert_int_equal(t.hops, 0);
	fabric_free(f);
}

CASE(unicast_in_a_loop_of_tables_ends)
{
	struct fabric_node *sw[3];
	struct fabric *f = ring(3, sw);
	struct trace t;

	for (unsigned i = 0; i < 3; i++)
		fabric_lft_set(sw[i], 40, 3);
	t = walk(f, 0, 40);
	assert_reached(&t, "000");
	assert_in_range(t.hops, 3, FABRIC_MAX_HOPS + 1);
	fabric_free(f);
}

CASE(only_active_ports_carry)
{
	static const uint8_t states[] = { IB_PORT_DOWN, IB_PORT_INIT, IB_PORT_ARMED };

	for (size_t i = 0; EACH_ROW(i, states); i++) {
		for (unsigned which = 0; which < 4; which++) {
			struct fabric_node *sw;
			struct fabric *f = star(2, &sw);
			struct fabric_port *port[] = { f->hca_port[0], &sw->port[1], &sw->port[2],
				                       f->hca_port[1] };
			struct trace t;

			fabric_lft_set(sw, 2, 2);
			testing_row(f, sw, MLID, 1, 2, 0);
			port[which]->state = states[i];
			t = walk(f, 0, 2);
			assert_reached(&t, "00");
			t = walk(f, 0, MLID);
			assert_reached(&t, which < 2 ? "00" : "10");
			fabric_free(f);
		}
	}
}

CASE(a_port_that_is_not_active_does_not_reach_itself)
{
	struct fabric_node *sw;
	struct fabric *f = star(1, &sw);
	struct trace t;

	f->hca_port[0]->state = IB_PORT_INIT;
	t = walk(f, 0, 1);
	assert_reached(&t, "0");
	fabric_free(f);
}

CASE(the_mtu_is_the_smallest_of_the_links_crossed)
{
	struct fabric_node *sw[3];
	struct fabric *f = line(3, sw);
	struct trace t;

	fabric_lft_set(sw[0], 3, 3);
	fabric_lft_set(sw[1], 3, 3);
	fabric_lft_set(sw[2], 3, 1);
	fabric_lft_set(sw[0], 2, 3);
	fabric_lft_set(sw[1], 2, 1);
	sw[1]->port[3].mtu = IBV_MTU_1024;
	t = walk(f, 0, 3);
	assert_int_equal(t.mtu, IBV_MTU_1024);
	t = walk(f, 0, 2); /* does not cross it */
	assert_int_equal(t.mtu, IBV_MTU_4096);
	f->hca_port[0]->mtu = IBV_MTU_256;
	t = walk(f, 0, 3);
	assert_int_equal(t.mtu, IBV_MTU_256);
	fabric_free(f);
}

/* ---- multicast ---- */

CASE(multicast_goes_to_the_ports_of_the_row)
{
	struct fabric_node *sw;
	struct fabric *f = star(4, &sw);
	struct trace t;

	testing_row(f, sw, MLID, 2, 4, 0);
	t = walk(f, 0, MLID);
	assert_reached(&t, "0101");
	assert_int_equal(t.hops, 3);
	fabric_free(f);
}

CASE(multicast_without_a_row_goes_nowhere)
{
	struct fabric_node *sw;
	struct fabric *f = star(2, &sw);
	struct trace t = walk(f, 0, MLID);

	assert_reached(&t, "00");
	testing_row(f, sw, MLID, 2, 0);
	t = walk(f, 0, MLID + 1);
	assert_reached(&t, "00");
	fabric_free(f);
}

CASE(a_sender_in_the_row_gets_its_own_copy_without_a_hop)
{
	struct fabric_node *sw;
	struct fabric *f = star(2, &sw);
	struct trace t;

	testing_row(f, sw, MLID, 1, 0);
	t = walk(f, 0, MLID);
	assert_reached(&t, "10");
	assert_int_equal(t.hops, 1);
	fabric_free(f);
}

CASE(a_row_with_ports_that_do_not_exist_does_no_harm)
{
	struct fabric_mft_row all = { { ~0ull, ~0ull, ~0ull, ~0ull } };
	struct fabric_node *sw;
	struct fabric *f = star(2, &sw);
	struct trace t;

	assert_int_equal(fabric_mft_set(f, sw, MLID, &all), 0);
	t = walk(f, 0, MLID);
	assert_reached(&t, "11");
	fabric_free(f);
}

CASE(multicast_along_a_line_drops_a_copy_at_each_member)
{
	struct fabric_node *sw[4];
	struct fabric *f = line(4, sw);
	struct trace t;

	testing_row(f, sw[0], MLID, 1, 3, 0);
	testing_row(f, sw[1], MLID, 2, 3, 0); /* no member here */
	testing_row(f, sw[2], MLID, 1, 2, 3, 0);
	testing_row(f, sw[3], MLID, 1, 2, 0);
	t = walk(f, 2, MLID);
	assert_reached(&t, "1011");
	assert_int_equal(t.hops, 1 + 3 + 2); /* in, links between switches, out */
	fabric_free(f);
}

CASE(a_loop_in_multicast_tables_makes_no_second_copy)
{
	struct fabric_node *sw[4];
	struct fabric *f = ring(4, sw);

	for (unsigned i = 0; i < 4; i++)
		testing_row(f, sw[i], MLID, 1, 2, 3, 0);
	for (unsigned i = 0; i < 4; i++) {
		struct trace t = walk(f, i, MLID);

		assert_reached(&t, "1111");
	}
	fabric_free(f);
}

CASE(parallel_links_make_no_second_copy)
{
	struct fabric_node *sw[2];
	struct fabric *f = line(2, sw);
	struct trace t;

	testing_plug(&sw[0]->port[4], &sw[1]->port[4]);
	testing_activate_all(f);
	testing_row(f, sw[0], MLID, 1, 3, 4, 0);
	testing_row(f, sw[1], MLID, 1, 2, 4, 0);
	t = walk(f, 0, MLID);
	assert_reached(&t, "11");
	fabric_free(f);
}

CASE(a_link_of_a_switch_to_itself_makes_no_second_copy)
{
	struct fabric_node *sw;
	struct fabric *f = star(2, &sw);
	struct trace t;

	testing_plug(&sw->port[3], &sw->port[4]);
	testing_activate_all(f);
	testing_row(f, sw, MLID, 1, 2, 3, 4, 0);
	t = walk(f, 0, MLID);
	assert_reached(&t, "11");
	fabric_free(f);
}

CASE(hosts_back_to_back_reach_each_other)
{
	struct fabric *f = testing_bare_fabric(2);
	struct trace t;

	testing_plug(f->hca_port[0], f->hca_port[1]);
	testing_give_lids(f);
	testing_activate_all(f);
	t = walk(f, 0, 2);
	assert_reached(&t, "01");
	t = walk(f, 0, MLID);
	assert_reached(&t, "01");
	fabric_free(f);
}

CASE(a_host_that_is_not_plugged_in_reaches_nobody)
{
	struct fabric *f = testing_bare_fabric(1);
	struct trace t;

	testing_give_lids(f);
	t = walk(f, 0, 2);
	assert_reached(&t, "0");
	t = walk(f, 0, MLID);
	assert_reached(&t, "0");
	fabric_free(f);
}
