/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The output of `umbel simulate`. Single-threaded.
 */
#ifndef CLI_SIMULATION_H
#define CLI_SIMULATION_H

#include "simulate/simulate.h"

struct cli_simulation {
	const char *pattern; /* its name */
	bool rerouted;       /* after failures, if there were any */
	struct simulate_cost cost;
	unsigned buffer;                    /* packets; 0: links had no credits */
	const struct simulate_times *times; /* NULL: messages were all ready at once */
};

/* Print what was counted. CLI_OK, CLI_FAILED, or with credits CLI_DEADLOCK. */
int cli_simulation_text(const struct simulation *s, const struct cli_simulation *what);
int cli_simulation_json(const struct simulation *s, const struct cli_simulation *what);

/* Shows on standard error, a terminal, how far it is, if it has taken a second; @what NULL: takes
 * it away. For struct simulation. */
void cli_simulation_progress(void *arg, const char *what, unsigned percent);

/* Pictures, each into a file; NULL: none. @most: as of cli_picture_dot(), or 0. CLI_OK or
 * CLI_FAILED. */
struct cli_simulation_files {
	const char *svg, *png, *dot;
	long most;
};
int cli_simulation_draw(const struct simulation *s, const struct cli_simulation *what,
                        const struct cli_simulation_files *files);

/* ---- for simulation*.c ---- */

/* By which engine. */
const char *cli_simulation_routing(const struct simulation *s);

/* simulation_text.c: a host's port by its host's name; nanoseconds, in a unit that suits. */
const char *cli_simulation_name(const struct simulation *s, const struct fabric_node *node);
void cli_simulation_print_ns(double ns);

/* simulation_credits.c: what became of messages; where packets waited, and which messages took
 * longest, 0 or -ENOMEM; as JSON; of one link. */
void cli_credits_summary(const struct simulation *s, const struct cli_simulation *what);
int cli_credits_tables(const struct simulation *s);
void cli_credits_json(const struct simulation *s, const struct cli_simulation *what);
void cli_credits_json_link(const struct simulation *s, const struct fabric_port *from);

#endif
