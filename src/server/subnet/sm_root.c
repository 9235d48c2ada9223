/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of all engines for the present root: its LIDs, its own entries, the switches by
 * distance. See sm_routes.h.
 */
#include <string.h>

#include "subnet/sm_routes.h"

void sm_routes_list_lids(struct sm_routes *r, unsigned root)
{
	const struct fabric_node *sw = r->net->sw[root];

	r->root = root;
	r->n_lids = 0;
	r->one_each = r->all_up = true;
	r->all_noted = false;
	for (unsigned k = 1; k <= sw->n_ports; k++) {
		const struct fabric_port *p = sw->port[k].peer;
		const struct sm_known_port *hca;

		if (!p || p->node->type != FABRIC_HCA)
			continue;
		hca = &r->net->known[p->index];
		for (unsigned i = 0; i < 1u << hca->lmc; i++)
			r->lid[r->n_lids++] = (struct sm_home_lid){
				.lid = (uint16_t)(hca->lid + i),
				.n = (uint8_t)(1u << hca->lmc),
				.port = (uint8_t)k,
				.up = hca->up,
			};
		r->one_each &= !hca->lmc;
	}
	r->row = r->n_lids ? r->lid[0].lid : 0;
	for (unsigned i = 0; i < r->n_lids; i++) {
		r->row = r->lid[i].lid == r->lid[0].lid + i ? r->row : 0;
		r->all_up &= r->lid[i].up;
	}
}

int sm_routes_home(struct sm_routes *r, unsigned at)
{
	int ret = sm_routes_write(r, at, r->net->lid[at], 0);

	for (unsigned i = 0; i < r->n_lids && !ret; i++)
		ret = sm_routes_write(r, at, r->lid[i].lid,
		                      r->lid[i].up ? r->lid[i].port : FABRIC_LFT_NONE);
	return ret;
}

/* By counting: how many there are of each distance; those without a path count as the farthest. */
void sm_routes_sort(struct sm_routes *r)
{
	const unsigned n = r->net->n;
	unsigned *start = r->start, far = 0; /* by how much nearer than the farthest one */

	for (unsigned i = 0; i < n; i++)
		far = r->hops[i] > far && r->hops[i] < n ? r->hops[i] : far;
	far++; /* of those without a path */
	memset(start, 0, (far + 2) * sizeof(*start));
	for (unsigned i = 0; i < n; i++)
		start[far - (r->hops[i] < far ? r->hops[i] : far) + 1]++;
	for (unsigned k = 0; k < far; k++)
		start[k + 1] += start[k];
	for (unsigned i = 0; i < n; i++)
		r->order[start[far - (r->hops[i] < far ? r->hops[i] : far)]++] = i;
}
