/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands whose programs run on a weak fabric (base/weak.h): `umbel run --weak`, `umbel exec
 * --weak`. Single-threaded.
 */
#ifndef CLI_WEAK_H
#define CLI_WEAK_H

#include <limits.h>
#include <stdbool.h>

#include "cli/base/options.h"

struct cli_weak {
	bool on;
	const char *text; /* SEED[,KIND...], or a file of choices; NULL: a seed is looked for */
	const char *save; /* where the choices of a failure go; NULL: umbel-weak-SEED.txt */
	long runs;        /* so many seeds, from the given one on; 0: not given */
	long limit_s;     /* a run that takes longer hangs; 0: not given */
};

#define CLI_WEAK_HANGS 124 /* exit status, as timeout(1) has it */

/* --weak; and what else a search has. */
extern const struct cli_option cli_weak_rows[], cli_weak_search_rows[];

/* Checks what was given. 0, or the exit status after saying what is wrong. */
int cli_weak_check(const struct cli_weak *w);

/* Whether more than one run is asked for. */
bool cli_weak_searches(const struct cli_weak *w);

/* One run: sets the environment in which programs are. 0, or the exit status. */
int cli_weak_begin(const struct cli_weak *w);

/*
 * Has @run, which runs the command once and returns its status, called in children: first on the
 * strong fabric, then for each seed until one fails. Tells which one and what it needs. Returns the
 * status of the failure; 0: there is none.
 */
int cli_weak_search(const struct cli_weak *w, int (*run)(void *arg), void *arg);

#endif
