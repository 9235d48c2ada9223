/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The service levels of a fabric that is up, as its subnet administrator tells them, whichever
 * subnet manager that belongs to: of paths, as `saquery -p` asks for them, and of groups, as
 * `saquery -g` does. Single-threaded.
 */
#ifndef CLI_LEVELS_H
#define CLI_LEVELS_H

#include "cli/check/subnet.h"

/*
 * Asks, by MADs from an active port of the fabric, for the paths of each host, one table a host and
 * a few at a time. 0: all have been told; -errno, of which nothing is printed: what was not told
 * stays unknown. -ENXIO: no port knows a subnet administrator; -ETIMEDOUT: it does not respond.
 */
int cli_levels_ask(struct cli_subnet *s, const char *fabric);

#endif
