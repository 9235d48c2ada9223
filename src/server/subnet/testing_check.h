/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of routing: a fabric's tables, LIDs and lanes, and the groups that a test has, as the
 * judge of `umbel check` wants them. Each test program includes it once.
 */
#ifndef SUBNET_TESTING_CHECK_H
#define SUBNET_TESTING_CHECK_H

#include "check/check.h"
#include "subnet/testing_routes.h"

/* A group: its members are those of hca_port[] that are listed. */
struct checked_group {
	uint16_t mlid;
	unsigned n;
	uint32_t member[MAX_SWITCH];
};

static UNUSED void checked_switch(const struct env *e, struct check_net *net, uint32_t i)
{
	struct fabric_node *node = sm_switch(e->sm, i);
	struct check_switch *sw = &net->sw[i];

	sw->name = node->name;
	sw->lid = node->port[0].lid;
	assert_int_equal(check_set_ports(sw, node->n_ports), 0);
	sw->n_lids = sw->n_sls = node->lft_size;
	sw->n_relayed = node->lft_top + 1u;
	sw->lft = malloc(node->lft_size + 1);
	sw->sl = malloc(node->lft_size + 1);
	assert_non_null(sw->lft);
	assert_non_null(sw->sl);
	for (uint32_t lid = 0; lid < node->lft_size; lid++) {
		int sl = sm_path_sl(e->sm, &node->port[1], (uint16_t)lid);

		sw->lft[lid] = node->lft[lid];
		sw->sl[lid] = sl < 0 ? CHECK_ANY_SL : (uint8_t)sl;
	}
	for (unsigned k = 1; k <= node->n_ports; k++) {
		const struct fabric_port *p = &node->port[k];

		if (!fabric_port_carries(p))
			continue;
		if (p->peer->node->type == FABRIC_SWITCH)
			check_link(net, i, k, p->peer->node->index, p->peer->num);
		else
			check_link_host(net, i, k, p->peer->index);
	}
	for (uint32_t m = 0; m < node->mft_size; m++)
		if (!fabric_row_is_empty(&node->mft[m]))
			assert_int_equal(check_add_row(net, (uint16_t)(CHECK_MLID + m), i,
			                               node->mft[m].ports),
			                 0);
}

/* The verdict; check_report_fini() is due. */
static UNUSED void checked(const struct env *e, const struct checked_group *group,
                           unsigned n_groups, struct check_report *report)
{
	struct check_net net;

	assert_int_equal(check_net_init(&net, e->f->n_switches, e->f->n_hca_ports), 0);
	for (uint32_t i = 0; i < e->f->n_hca_ports; i++) {
		const struct fabric_port *p = e->f->hca_port[i];

		net.host[i].name = p->node->name;
		net.host[i].lid = p->lid;
		net.host[i].n_lids = (uint16_t)(1u << p->lmc);
	}
	for (uint32_t i = 0; i < e->f->n_switches; i++)
		checked_switch(e, &net, i);
	for (unsigned i = 0; i < n_groups; i++) {
		struct check_group *g = check_add_group(&net);

		assert_non_null(g);
		g->mlid = group[i].mlid;
		for (unsigned k = 0; k < group[i].n; k++) {
			const struct check_member m = { group[i].member[k], true, true };

			assert_int_equal(check_add_member(g, &m), 0);
		}
	}
	assert_int_equal(check_net_finish(&net), 0);
	*report = (struct check_report){ .keep = 3 };
	assert_int_equal(check_run(&net, report), 0);
	check_net_fini(&net);
}

#endif
