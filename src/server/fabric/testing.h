/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the unit tests of this folder and of src/server/subnet: fabrics wired by hand, queue
 * pairs without a process, and what their flows say. Each test program includes it
 * once. Calls that must work stop the test if they do not.
 */
#ifndef FABRIC_TESTING_H
#define FABRIC_TESTING_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "fabric/forwarding/attach.h"
#include "fabric/forwarding/collect.h"
#include "fabric/forwarding/flow.h"
#include "fabric/plan/build.h"

#define UNUSED __attribute__((unused))

/* ---- topologies ---- */

/* The fabric that a plan describes, and the end of the plan. */
static UNUSED struct fabric *testing_build(struct fabric_plan *plan,
                                           const struct shm_settings *settings)
{
	struct fabric *f;

	assert_int_equal(fabric_new(&f, plan, settings), 0);
	fabric_plan_fini(plan);
	return f;
}

static UNUSED struct fabric *testing_fabric_with(unsigned n_hosts,
                                                 const struct shm_settings *settings)
{
	struct fabric_plan plan;

	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_tree(&plan, n_hosts), 0);
	return testing_build(&plan, settings);
}

/* As `umbel up --hosts` builds it. */
static UNUSED struct fabric *testing_fabric(unsigned n_hosts)
{
	struct shm_settings settings;

	fabric_settings_default(&settings);
	return testing_fabric_with(n_hosts, &settings);
}

static UNUSED void testing_unplug(struct fabric_port *p)
{
	if (p->peer) {
		p->peer->state = IB_PORT_DOWN;
		p->peer->peer = NULL;
	}
	p->state = IB_PORT_DOWN;
	p->peer = NULL;
}

/* Hosts only, with nothing plugged in. */
static UNUSED struct fabric *testing_bare_fabric(unsigned n_hosts)
{
	struct fabric *f = testing_fabric(n_hosts);

	for (unsigned i = 0; i < n_hosts; i++)
		testing_unplug(f->hca_port[i]);
	while (f->node[f->n_nodes - 1]->type == FABRIC_SWITCH) {
		struct fabric_node *sw = f->node[--f->n_nodes];

		free(sw->port);
		free(sw);
	}
	f->n_switches = 0;
	return f;
}

static UNUSED struct fabric_node *testing_switch(struct fabric *f, unsigned n_ports)
{
	struct fabric_node *sw = calloc(1, sizeof(*sw));

	assert_non_null(sw);
	sw->port = calloc(n_ports + 1, sizeof(*sw->port));
	assert_non_null(sw->port);
	f->node = realloc(f->node, (f->n_nodes + 1) * sizeof(struct fabric_node *));
	assert_non_null(f->node);
	sw->type = FABRIC_SWITCH;
	sw->n_ports = n_ports;
	sw->index = f->n_switches++;
	fabric_lft_set_top(sw, IB_LID_MCAST_FIRST - 1);
	sw->mcast_primary = sw->mcast_not_primary = FABRIC_LFT_NONE;
	for (unsigned i = 0; i <= n_ports; i++) {
		sw->port[i] = (struct fabric_port){
			.node = sw, .num = (uint8_t)i, .state = IB_PORT_DOWN, .mtu = IBV_MTU_4096
		};
		fabric_port_init_lists(&sw->port[i]);
	}
	f->node[f->n_nodes++] = sw;
	return sw;
}

/* Plugs in a cable. Both ports become INIT, as they do without a subnet manager. */
static UNUSED void testing_plug(struct fabric_port *a, struct fabric_port *b)
{
	assert_null(a->peer);
	assert_null(b->peer);
	a->peer = b;
	b->peer = a;
	a->state = b->state = IB_PORT_INIT;
}

/* Makes all linked ports ACTIVE, as a subnet manager does. */
static UNUSED void testing_activate_all(struct fabric *f)
{
	for (unsigned i = 0; i < f->n_nodes; i++)
		for (unsigned k = 1; k <= f->node[i]->n_ports; k++)
			if (f->node[i]->port[k].peer)
				f->node[i]->port[k].state = IB_PORT_ACTIVE;
}

/* Sets the LID of HCA port i to i + 1. */
static UNUSED void testing_give_lids(struct fabric *f)
{
	for (unsigned i = 0; i < f->n_hca_ports; i++)
		f->hca_port[i]->lid = (uint16_t)(i + 1);
}

/* Sets the row of @mlid to the ports listed; 0 ends the list. */
static UNUSED void testing_row(struct fabric *f, struct fabric_node *sw, uint16_t mlid, ...)
{
	struct fabric_mft_row row = { { 0 } };
	va_list ports;
	int port;

	va_start(ports, mlid);
	while ((port = va_arg(ports, int)))
		fabric_row_add(&row, (unsigned)port);
	va_end(ports);
	assert_int_equal(fabric_mft_set(f, sw, mlid, &row), 0);
}

/* ---- queue pairs ---- */

/* A queue pair on a port; its number is its index. */
static UNUSED uint32_t testing_qp(struct fabric *f, uint32_t qpn, const struct fabric_port *p)
{
	*shm_qp_at(f->region, qpn) = (struct shm_qp){ .qpn = qpn,
		                                      .port = p->index,
		                                      .port_num = p->num,
		                                      .flags = SHM_QP_LIVE | SHM_QP_RECEIVES,
		                                      .type = IBV_QPT_UD };
	return qpn;
}

static UNUSED struct ib_gid testing_mgid(unsigned n)
{
	struct ib_gid mgid = { { 0xFF, 0x12, 0x40, 0x01, 0xFF, 0xFF } };

	mgid.raw[14] = (uint8_t)(n >> 8);
	mgid.raw[15] = (uint8_t)n;
	return mgid;
}

/* ---- flows ---- */

static UNUSED struct fabric_flow *testing_flow(struct fabric *f, struct fabric_port *from,
                                               uint32_t qpn, uint16_t dlid,
                                               const struct ib_gid *dgid)
{
	struct fabric_flow_key key = { .qpn = qpn, .dlid = dlid, .is_global = dgid != NULL };
	struct fabric_flow *flow;

	if (dgid)
		key.dgid = *dgid;
	assert_int_equal(fabric_flow_add(f, from, &key, &flow), 0);
	return flow;
}

/* The same without a GRH, with a service level. */
static UNUSED struct fabric_flow *testing_flow_sl(struct fabric *f, struct fabric_port *from,
                                                  uint32_t qpn, uint16_t dlid, uint8_t sl)
{
	const struct fabric_flow_key key = { .qpn = qpn, .dlid = dlid, .sl = sl };
	struct fabric_flow *flow;

	assert_int_equal(fabric_flow_add(f, from, &key, &flow), 0);
	return flow;
}

static UNUSED const struct shm_flow *testing_record(const struct fabric *f,
                                                    const struct fabric_flow *flow)
{
	const struct shm_flow *r = shm_flow_at(f->region, flow->id);

	assert_int_equal(r->seq % 2, 0); /* nobody is left with a half-written record */
	return r;
}

/* How many copies @qpn gets of what is sent on @flow. */
static UNUSED unsigned testing_copies(const struct fabric *f, const struct fabric_flow *flow,
                                      uint32_t qpn)
{
	const struct shm_flow *r = testing_record(f, flow);
	const uint32_t *list = (const uint32_t *)((char *)f->region->control + r->list_off);
	unsigned n = 0;

	for (uint32_t i = 0; i < r->count; i++)
		n += list[i] == qpn;
	return n;
}

static UNUSED uint32_t testing_receivers(const struct fabric *f, const struct fabric_flow *flow)
{
	return testing_record(f, flow)->count;
}

/* For a walk of which only the end matters (fabric/forward.h). */
static UNUSED void testing_no_hop(void *arg, struct fabric_port *out, uint8_t in, uint8_t vl)
{
	(void)arg;
	(void)out;
	(void)in;
	(void)vl;
}

#endif
