/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show routes`: the switches' tables as text or JSON, and what load they put on the links.
 * A large fabric has a hundred million entries: they are printed from the daemon's compact form
 * (src/server/daemon/show/show_tables.c), one switch at a time. Single-threaded.
 */
#ifndef CLI_ROUTES_H
#define CLI_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

struct control_client;

/* Prints the tables of the switch @of, or of all (NULL). 0 or CLI_FAILED. */
int cli_routes_print(struct control_client *client, const char *of, bool json);

/*
 * Prints for each kind of link between switches, by the names of both ends without their numbers,
 * how many paths from a host to a LID of another one cross a link, and how many LIDs it leads to.
 * 0 or CLI_FAILED.
 */
int cli_load_print(struct control_client *client, bool json);

/* Calls @each for every port of every switch, with the number of paths that leave by it. 0 or
 * CLI_FAILED. */
int cli_load_each(struct control_client *client,
                  void (*each)(void *arg, const char *name, unsigned port, uint64_t paths),
                  void *arg);

#endif
