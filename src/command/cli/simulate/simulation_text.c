/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names and times in what `umbel simulate` prints: see simulation.h.
 */
#include <stdio.h>

#include "cli/simulate/simulation.h"

const char *cli_simulation_name(const struct simulation *s, const struct fabric_node *node)
{
	return node->type == FABRIC_HCA ? shm_hca_at(s->f->region, node->hca)->host : node->name;
}

void cli_simulation_print_ns(double ns)
{
	if (ns < 1e4)
		printf("%.0f ns", ns);
	else if (ns < 1e7)
		printf("%.1f us", ns / 1e3);
	else if (ns < 1e10)
		printf("%.1f ms", ns / 1e6);
	else
		printf("%.1f s", ns / 1e9);
}
