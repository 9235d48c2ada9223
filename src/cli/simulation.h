/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `umbel simulate` prints of a simulation. Single-threaded.
 */
#ifndef CLI_SIMULATION_H
#define CLI_SIMULATION_H

#include "simulate/simulate.h"

struct cli_simulation {
	const char *pattern; /* its name */
	bool rerouted;       /* after failures, if there were any */
	struct simulate_cost cost;
};

/* Print what was counted. CLI_OK or CLI_FAILED. */
int cli_simulation_text(const struct simulation *s, const struct cli_simulation *what);
int cli_simulation_json(const struct simulation *s, const struct cli_simulation *what);

/* Shows on standard error, a terminal, how far it is, if it has taken a second; @what NULL: takes
 * it away. For struct simulation. */
void cli_simulation_progress(void *arg, const char *what, unsigned percent);

#endif
