/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabrics that `umbel up --hosts` makes: hosts, switches, addresses.
 */
#include <harness.h>

#include "fabric/testing.h"

static unsigned switches(const struct fabric *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n_nodes; i++)
		n += f->node[i]->type == FABRIC_SWITCH;
	assert_int_equal(n, f->n_switches);
	return n;
}

CASE(up_to_36_hosts_share_a_switch)
{
	static const unsigned sizes[] = { 1, 2, 36 };

	for (size_t i = 0; EACH_ROW(i, sizes); i++) {
		struct fabric *f = testing_fabric(sizes[i]);

		assert_int_equal(switches(f), 1);
		for (unsigned h = 0; h < sizes[i]; h++)
			assert_ptr_equal(f->hca_port[h]->peer->node, f->hca_port[0]->peer->node);
		fabric_free(f);
	}
}

/* The uplink of a switch is its last port. */
static const struct fabric_node *top_above(const struct fabric_port *hca, unsigned *layers)
{
	const struct fabric_node *sw = hca->peer->node;

	for (*layers = 1; sw->port[sw->n_ports].num == 37; ++*layers) {
		const struct fabric_port *up = &sw->port[sw->n_ports];

		assert_non_null(up->peer);
		assert_ptr_equal(up->peer->peer, up);
		sw = up->peer->node;
	}
	return sw;
}

CASE(more_hosts_get_a_tree_of_switches)
{
	static const struct {
		unsigned hosts, switches, layers;
	} row[] = { { 37, 2 + 1, 2 },    { 72, 2 + 1, 2 },        { 73, 3 + 1, 2 },
		    { 1296, 36 + 1, 2 }, { 1297, 37 + 2 + 1, 3 }, { 4096, 114 + 4 + 1, 3 } };

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct fabric *f = testing_fabric(row[i].hosts);
		unsigned layers;
		const struct fabric_node *top = top_above(f->hca_port[0], &layers);

		assert_int_equal(switches(f), row[i].switches);
		assert_int_equal(layers, row[i].layers);
		for (unsigned h = 0; h < row[i].hosts; h++)
			assert_ptr_equal(top_above(f->hca_port[h], &layers), top);
		fabric_free(f);
	}
}

CASE(too_few_and_too_many_hosts_are_refused)
{
	struct fabric_plan plan;

	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_tree(&plan, 0), -ERANGE);
	assert_int_equal(fabric_plan_tree(&plan, FABRIC_MAX_HOSTS + 1), -ERANGE);
	fabric_plan_fini(&plan);
}

CASE(hosts_are_found_by_name)
{
	struct fabric *f = testing_fabric(3);

	assert_int_equal(fabric_host_find(f, "h1"), 0);
	assert_int_equal(fabric_host_find(f, "h3"), 2);
	assert_int_equal(fabric_host_find(f, "h4"), -1);
	assert_int_equal(fabric_host_find(f, ""), -1);
	fabric_free(f);
}

CASE(host_addresses_are_unique_and_no_network_or_broadcast_address)
{
	struct fabric *f = testing_fabric(600);

	assert_int_equal(ntohl(shm_port_at(f->region, 0)->ipv4), 0x0A000001);
	assert_int_equal(ntohl(shm_port_at(f->region, 253)->ipv4), 0x0A0000FE);
	assert_int_equal(ntohl(shm_port_at(f->region, 254)->ipv4), 0x0A000101);
	for (unsigned i = 1; i < 600; i++)
		assert_true(ntohl(shm_port_at(f->region, i)->ipv4) >
		            ntohl(shm_port_at(f->region, i - 1)->ipv4));
	fabric_free(f);
}

CASE(every_port_is_found_by_its_gid)
{
	struct fabric *f = testing_fabric(100);

	for (unsigned i = 0; i < f->n_hca_ports; i++)
		assert_ptr_equal(fabric_port_by_gid(f, &shm_port_at(f->region, i)->gid[0]),
		                 f->hca_port[i]);
	fabric_free(f);
}

CASE(a_gid_of_no_port_is_not_found)
{
	struct fabric *f = testing_fabric(2);
	struct ib_gid gid = shm_port_at(f->region, 0)->gid[0], zero = { { 0 } };

	gid.raw[0] ^= 1; /* another subnet */
	assert_null(fabric_port_by_gid(f, &gid));
	gid = shm_port_at(f->region, 0)->gid[0];
	gid.raw[15] ^= 0x40;
	assert_null(fabric_port_by_gid(f, &gid));
	assert_null(fabric_port_by_gid(f, &zero));
	fabric_gid_make(f, f->node[f->n_nodes - 1]->guid, &gid); /* the switch */
	assert_null(fabric_port_by_gid(f, &gid));
	fabric_free(f);
}

CASE(a_published_port_is_what_processes_read)
{
	struct fabric *f = testing_fabric(2);
	struct fabric_port *p = f->hca_port[1];
	struct shm_port copy;

	p->lid = 7;
	p->state = IB_PORT_ACTIVE;
	fabric_port_publish(f, p);
	shm_port_read(f->region, 1, &copy);
	assert_int_equal(copy.lid, 7);
	assert_int_equal(copy.state, IB_PORT_ACTIVE);
	assert_int_equal(copy.pkey[0], IB_PKEY_DEFAULT);
	assert_int_equal(copy.guid, p->guid);
	assert_int_equal(ntohl(copy.ipv4), 0x0A000002);
	fabric_free(f);
}
