/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plans: names, links, GUIDs, and the fabrics made from plans that no builder makes.
 */
#include <harness.h>

#include "fabric/testing.h"

#include "fabric/plan/guids.h"

static struct fabric_plan *fresh(struct fabric_plan *plan)
{
	fabric_plan_init(plan);
	return plan;
}

static struct fabric_plan_end end(unsigned node, unsigned port)
{
	return (struct fabric_plan_end){ node, port };
}

static void link_up(struct fabric_plan *plan, unsigned a, unsigned pa, unsigned b, unsigned pb)
{
	assert_int_equal(fabric_plan_link(plan, end(a, pa), end(b, pb), FABRIC_RATE_DEFAULT), 0);
}

static void finish(struct fabric_plan *plan)
{
	char why[128];
	int node;

	assert_int_equal(fabric_plan_finish(plan, &node, why, sizeof(why)), 0);
}

static struct fabric *built(struct fabric_plan *plan)
{
	struct shm_settings settings;

	finish(plan);
	fabric_settings_default(&settings);
	return testing_build(plan, &settings);
}

static void assert_address(const struct fabric *f, unsigned port, const char *ipv4,
                           const char *ipv6)
{
	const struct shm_port *p = shm_port_at(f->region, port);
	char text[INET6_ADDRSTRLEN];

	assert_string_equal(inet_ntop(AF_INET, &p->ipv4, text, sizeof(text)), ipv4);
	assert_string_equal(inet_ntop(AF_INET6, p->ipv6, text, sizeof(text)), ipv6);
}

/* ---- names ---- */

/* Reserves the names of the @n rows in turn: a row has the text and the name made from it. */
static void check_names(const char *const rows[][2], size_t n)
{
	struct fabric_names names = { 0 };
	char name[FABRIC_NAME];

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(fabric_names_reserve(&names, rows[i][0], name), 0);
		assert_string_equal(name, rows[i][1]);
	}
	fabric_names_fini(&names);
}

CASE(names_are_made_of_what_can_stand_in_a_command)
{
	static const char *const rows[][2] = {
		{ "node01", "node01" },
		{ "MF0;switch-a:SX6036/U1", "MF0-switch-a-SX6036-U1" },
		{ "--help", "help" },
		{ "../../etc", "etc" },
		{ "a  b\t\"c\"", "a-b-c" },
		{ "caf\xC3\xA9", "caf" },
		{ "012345678901234567890123456789012345", "0123456789012345678901234567890" },
	};

	check_names(rows, ARRAY_SIZE(rows));
}

CASE(a_text_without_a_letter_or_digit_is_no_name)
{
	static const char *const rows[] = { "", " ", "-", "...", "\xFF\xFE", "\"" };
	struct fabric_names names = { 0 };
	char name[FABRIC_NAME];

	for (size_t i = 0; EACH_ROW(i, rows); i++)
		assert_int_equal(fabric_names_reserve(&names, rows[i], name), -EINVAL);
	fabric_names_fini(&names);
}

CASE(a_name_in_use_gets_a_number)
{
	static const char *const rows[][2] = {
		{ "a", "a" },
		{ "a", "a-2" },
		{ "a-3", "a-3" },
		{ "a", "a-4" },
		{ "a-2", "a-2-2" },
		{ "b", "b" },
		{ "0123456789012345678901234567890", "0123456789012345678901234567890" },
		{ "0123456789012345678901234567890", "01234567890123456789012345678-2" },
	};

	check_names(rows, ARRAY_SIZE(rows));
}

CASE(hosts_switches_and_hcas_have_names_without_being_given_any)
{
	struct fabric_plan plan, *p = fresh(&plan);

	assert_int_equal(fabric_plan_add_host(p, NULL), 0);
	assert_int_equal(fabric_plan_add_host(p, "???"), 1);
	assert_int_equal(fabric_plan_add_hca(p, 0, 1), 0);
	assert_int_equal(fabric_plan_add_hca(p, 1, 1), 1);
	assert_int_equal(fabric_plan_add_hca(p, 1, 1), 2);
	assert_int_equal(fabric_plan_add_switch(p, NULL, 1), 3);
	assert_string_equal(p->host[0].name, "h1");
	assert_string_equal(p->host[1].name, "h2");
	assert_string_equal(p->node[0].name, "umbel_h1_0");
	assert_string_equal(p->node[2].name, "umbel_h2_1");
	assert_string_equal(p->node[2].desc, "h2 umbel_h2_1");
	assert_string_equal(p->node[3].name, "sw1");
	fabric_plan_fini(p);
}

CASE(hcas_of_hosts_with_long_names_differ)
{
	struct fabric_plan plan, *p = fresh(&plan);

	fabric_plan_add_host(p, "a-host-with-a-very-long-name-01");
	fabric_plan_add_host(p, "a-host-with-a-very-long-name-02");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fabric_plan_add_hca(p, i / 2, 1), i);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(p->node[i].name, p->node[k].name);
	fabric_plan_fini(p);
}

CASE(devices_are_numbered_on_each_host)
{
	struct fabric_plan plan, *p = fresh(&plan);

	p->device_names = "mlx5_%d";
	fabric_plan_add_host(p, NULL);
	fabric_plan_add_host(p, "a-host-with-a-very-long-name-01");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fabric_plan_add_hca(p, i % 2, 1), i);
	finish(p);
	assert_string_equal(p->node[0].device, "mlx5_0");
	assert_string_equal(p->node[0].name, "h1.mlx5_0");
	assert_string_equal(p->node[0].desc, "h1 mlx5_0");
	assert_string_equal(p->node[2].device, "mlx5_1");
	assert_string_equal(p->node[2].name, "h1.mlx5_1");
	assert_string_equal(p->node[1].device, "mlx5_0");
	assert_string_equal(p->node[3].name, "a-host-with-a-very.mlx5_1");
	/* with more HCAs it is finished again */
	assert_int_equal(fabric_plan_add_ethernet(p, 0, "eth0"), 4);
	finish(p);
	assert_string_equal(p->node[0].name, "h1.mlx5_0");
	assert_string_equal(p->node[4].name, "h1.mlx5_2");
	fabric_plan_fini(p);
}

CASE(the_devices_of_an_only_host_need_no_other_name)
{
	struct fabric_plan plan, *p = fresh(&plan);

	p->device_names = "x%d_y";
	fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 1);
	finish(p);
	assert_string_equal(p->node[0].device, "x0_y");
	assert_string_equal(p->node[0].name, "x0_y");
	fabric_plan_fini(p);
}

/* ---- limits ---- */

CASE(what_cannot_be_is_refused)
{
	struct fabric_plan plan, *p = fresh(&plan);
	const struct fabric_link_rate rate = FABRIC_RATE_DEFAULT;

	assert_int_equal(fabric_plan_add_hca(p, 0, 1), -EINVAL);
	fabric_plan_add_host(p, NULL);
	assert_int_equal(fabric_plan_add_hca(p, 0, 0), -EINVAL);
	assert_int_equal(fabric_plan_add_hca(p, 0, 255), -EINVAL);
	assert_int_equal(fabric_plan_add_switch(p, NULL, 0), -EINVAL);
	assert_int_equal(fabric_plan_add_switch(p, NULL, 255), -EINVAL);
	assert_int_equal(fabric_plan_add_hca(p, 0, 2), 0);
	assert_int_equal(fabric_plan_add_switch(p, NULL, 254), 1);
	assert_int_equal(fabric_plan_link(p, end(0, 0), end(1, 1), rate), -EINVAL);
	assert_int_equal(fabric_plan_link(p, end(0, 3), end(1, 1), rate), -EINVAL);
	assert_int_equal(fabric_plan_link(p, end(0, 1), end(1, 255), rate), -EINVAL);
	assert_int_equal(fabric_plan_link(p, end(0, 1), end(2, 1), rate), -EINVAL);
	assert_int_equal(fabric_plan_link(p, end(1, 1), end(1, 1), rate), -EINVAL);
	link_up(p, 0, 1, 1, 1);
	assert_int_equal(fabric_plan_link(p, end(0, 2), end(1, 1), rate), -EBUSY);
	assert_int_equal(fabric_plan_link(p, end(0, 1), end(1, 2), rate), -EBUSY);
	fabric_plan_fini(p);
}

CASE(there_is_an_end_to_hosts_and_their_ports)
{
	struct fabric_plan plan, *p = fresh(&plan);

	for (unsigned i = 0; i < FABRIC_MAX_HOSTS; i++)
		assert_int_equal(fabric_plan_add_host(p, NULL), i);
	assert_int_equal(fabric_plan_add_host(p, NULL), -ERANGE);
	assert_int_equal(fabric_plan_add_hca(p, 0, 254), 0);
	assert_int_equal(fabric_plan_add_hca(p, 0, 3), -ERANGE);
	assert_int_equal(fabric_plan_add_hca(p, 0, 2), 1);
	fabric_plan_fini(p);
}

CASE(there_are_no_more_ports_than_lids)
{
	struct fabric_plan plan, *p = fresh(&plan);
	unsigned lids = 0;

	for (unsigned i = 0; lids + 254 <= FABRIC_MAX_LIDS; i++, lids += 254) {
		assert_int_equal(fabric_plan_add_host(p, NULL), i);
		assert_int_equal(fabric_plan_add_hca(p, i, 254), i);
	}
	assert_int_equal(fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 254),
	                 -ERANGE);
	fabric_plan_fini(p);
}

CASE(a_plan_without_a_host_is_refused)
{
	struct fabric_plan plan, *p = fresh(&plan);
	char why[64];
	int node;

	fabric_plan_add_switch(p, NULL, 4);
	assert_int_equal(fabric_plan_finish(p, &node, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "there is no host");
	assert_int_equal(node, -1);
	fabric_plan_fini(p);
}

/* ---- GUIDs ---- */

CASE(guids_that_are_missing_are_given)
{
	struct fabric_plan plan, *p = fresh(&plan);

	fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 2);
	fabric_plan_add_switch(p, NULL, 4);
	finish(p);
	assert_true(p->node[0].guid == 0x02756D0000000100);
	assert_true(p->node[0].system_guid == 0x02756D0000000100);
	assert_true(p->node[0].port[1].guid == 0x02756D0000000101);
	assert_true(p->node[0].port[2].guid == 0x02756D0000000102);
	assert_true(p->node[1].guid == 0x02756D0000000200);
	assert_true(p->node[1].port[0].guid == 0x02756D0000000200);
	fabric_plan_fini(p);
}

/* As ConnectX-4 and later have it: the GUID of the port is that of the node. */
CASE(a_port_may_have_the_guid_of_its_node)
{
	struct fabric_plan plan, *p = fresh(&plan);

	fabric_plan_add_host(p, NULL);
	fabric_plan_add_hca(p, 0, 1);
	fabric_plan_add_hca(p, 0, 1);
	for (unsigned i = 0; i < 2; i++)
		p->node[i].guid = p->node[i].port[1].guid = 0x98039B0300000000 + i;
	finish(p);
	assert_true(p->node[1].port[1].guid == 0x98039B0300000001);
	fabric_plan_fini(p);
}

CASE(guids_that_are_given_avoid_those_that_are_there)
{
	struct fabric_plan plan, *p = fresh(&plan);
	struct fabric_guids all;

	fabric_plan_add_host(p, NULL);
	for (unsigned i = 0; i < 8; i++)
		fabric_plan_add_hca(p, 0, 2);
	p->node[7].guid = 0x02756D0000000100;         /* what the first would get */
	p->node[6].port[1].guid = 0x02756D0000000202; /* what the second's port would */
	p->node[5].guid = 0x1000;
	p->node[4].port[1].guid = 0x1002; /* what node 5's second port would */
	p->node[3].guid = UINT64_MAX;     /* there is nothing behind it */
	finish(p);
	assert_int_equal(fabric_guids_init(&all, 16), 0);
	for (unsigned i = 0; i < 8; i++) {
		for (unsigned k = 1; k <= 2; k++) {
			assert_true(p->node[i].port[k].guid != 0);
			assert_int_equal(fabric_guids_add(&all, p->node[i].port[k].guid, i, NULL),
			                 0);
		}
		for (unsigned k = 0; k < i; k++)
			assert_true(p->node[i].guid != p->node[k].guid);
	}
	fabric_guids_fini(&all);
	fabric_plan_fini(p);
}

CASE(two_nodes_with_one_guid_are_refused)
{
	struct fabric_plan plan, *p = fresh(&plan);
	char why[128];
	int node;

	fabric_plan_add_host(p, NULL);
	fabric_plan_add_hca(p, 0, 1);
	fabric_plan_add_hca(p, 0, 1);
	p->node[0].guid = p->node[1].guid = 0x1234;
	assert_int_equal(fabric_plan_finish(p, &node, why, sizeof(why)), -EINVAL);
	assert_int_equal(node, 1);
	assert_string_equal(why, "GUID 0x0000000000001234 of 'umbel_h1_1' is also that of "
	                         "'umbel_h1_0'");
	fabric_plan_fini(p);
}

CASE(two_ports_with_one_guid_are_refused)
{
	struct fabric_plan plan, *p = fresh(&plan);
	char why[128];
	int node;

	fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 1);
	fabric_plan_add_switch(p, NULL, 4);
	p->node[0].port[1].guid = p->node[1].port[0].guid = 0x1234;
	assert_int_equal(fabric_plan_finish(p, &node, why, sizeof(why)), -EINVAL);
	assert_int_equal(node, 1);
	fabric_plan_fini(p);
}

/* ---- fabrics ---- */

CASE(several_hcas_and_ports_of_a_host_have_addresses_of_their_own)
{
	struct fabric_plan plan, *p = fresh(&plan);
	struct fabric *f;

	fabric_plan_add_host(p, NULL);
	fabric_plan_add_host(p, NULL);
	fabric_plan_add_hca(p, 0, 2); /* nodes 0 to 3; those of h1 are not side by side */
	fabric_plan_add_hca(p, 1, 1);
	fabric_plan_add_hca(p, 0, 1);
	fabric_plan_add_switch(p, NULL, 8);
	for (unsigned i = 0; i < 3; i++)
		link_up(p, i, 1, 3, i + 1);
	link_up(p, 0, 2, 3, 4);
	f = built(p);
	assert_int_equal(f->n_hca_ports, 4);
	assert_address(f, 0, "10.0.0.1", "fd75:6d62:656c::1");
	assert_address(f, 1, "10.1.0.1", "fd75:6d62:656c:1::1");
	assert_address(f, 2, "10.0.0.2", "fd75:6d62:656c::2");
	assert_address(f, 3, "10.2.0.1", "fd75:6d62:656c:2::1");
	assert_int_equal(shm_hca_at(f->region, 0)->n_ports, 2);
	assert_int_equal(shm_hca_at(f->region, 1)->host_index, 1);
	assert_int_equal(shm_hca_at(f->region, 2)->host_index, 0);
	assert_int_equal(shm_hca_at(f->region, 2)->first_port, 3);
	assert_string_equal(shm_hca_at(f->region, 2)->host, "h1");
	assert_string_equal(shm_hca_at(f->region, 2)->name, "umbel_h1_1");
	fabric_free(f);
}

CASE(the_first_port_with_a_link_has_the_first_address)
{
	struct fabric_plan plan, *p = fresh(&plan);
	struct fabric *f;

	fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 3);
	fabric_plan_add_switch(p, NULL, 8);
	link_up(p, 0, 2, 1, 5);
	f = built(p);
	assert_address(f, 0, "10.1.0.1", "fd75:6d62:656c:1::1");
	assert_address(f, 1, "10.0.0.1", "fd75:6d62:656c::1");
	assert_address(f, 2, "10.2.0.1", "fd75:6d62:656c:2::1");
	fabric_free(f);
}

CASE(a_port_with_nothing_plugged_in_is_down)
{
	struct fabric_plan plan, *p = fresh(&plan);
	struct fabric *f;

	fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 2);
	f = built(p);
	assert_address(f, 0, "10.0.0.1", "fd75:6d62:656c::1");
	for (unsigned i = 0; i < 2; i++) {
		assert_null(f->hca_port[i]->peer);
		assert_int_equal(shm_port_at(f->region, i)->state, IB_PORT_DOWN);
		assert_int_equal(shm_port_at(f->region, i)->phys_state, 2); /* polling */
	}
	fabric_free(f);
}

CASE(links_may_be_parallel_and_lead_back_to_their_switch)
{
	struct fabric_plan plan, *p = fresh(&plan);
	struct fabric *f;

	fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 1);
	fabric_plan_add_switch(p, NULL, 8);
	fabric_plan_add_switch(p, NULL, 8);
	link_up(p, 0, 1, 1, 1);
	link_up(p, 1, 2, 2, 2);
	link_up(p, 1, 3, 2, 1);
	link_up(p, 1, 5, 1, 4);
	f = built(p);
	assert_ptr_equal(f->node[1]->port[2].peer, &f->node[2]->port[2]);
	assert_ptr_equal(f->node[1]->port[3].peer, &f->node[2]->port[1]);
	assert_ptr_equal(f->node[1]->port[4].peer, &f->node[1]->port[5]);
	assert_ptr_equal(f->node[1]->port[5].peer, &f->node[1]->port[4]);
	assert_int_equal(f->node[1]->port[4].state, IB_PORT_INIT);
	assert_int_equal(f->n_switches, 2);
	fabric_free(f);
}

CASE(processes_see_the_rate_of_the_link)
{
	struct fabric_plan plan, *p = fresh(&plan);
	struct fabric *f;

	fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 1);
	fabric_plan_add_switch(p, NULL, 8);
	fabric_plan_link(p, end(1, 1), end(0, 1),
	                 (struct fabric_link_rate){ FABRIC_WIDTH_12X, FABRIC_SPEED_QDR });
	f = built(p);
	assert_int_equal(shm_port_at(f->region, 0)->active_width, FABRIC_WIDTH_12X);
	assert_int_equal(shm_port_at(f->region, 0)->active_speed, FABRIC_SPEED_QDR);
	assert_int_equal(f->node[1]->port[1].speed, FABRIC_SPEED_QDR);
	fabric_free(f);
}

CASE(every_port_of_any_hca_is_found_by_its_gid)
{
	struct fabric_plan plan, *p = fresh(&plan);
	struct fabric *f;

	for (unsigned i = 0; i < 10; i++)
		fabric_plan_add_hca(p, (unsigned)fabric_plan_add_host(p, NULL), 1 + i % 3);
	f = built(p);
	for (unsigned i = 0; i < f->n_hca_ports; i++)
		assert_ptr_equal(fabric_port_by_gid(f, &shm_port_at(f->region, i)->gid[0]),
		                 f->hca_port[i]);
	fabric_free(f);
}
