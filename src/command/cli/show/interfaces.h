/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The answers of interfaces (umbel-ipoib) of hosts with a network of their own, as `umbel show`
 * shows them: beside the hosts, and their neighbours. A fabric without such hosts has none.
 * Single-threaded.
 */
#ifndef CLI_INTERFACES_H
#define CLI_INTERFACES_H

struct control_client;
struct json_object;

/* All of them, an array to be put; empty if there are none, or if they cannot be asked, which is
 * said then. NULL: no memory. */
struct json_object *cli_interfaces_request(struct control_client *client);

/* Gives each of @hosts, as the daemon shows them, its "interfaces". */
void cli_interfaces_add(struct json_object *hosts, struct json_object *interfaces);

/* The neighbours of all interfaces, an array to be put. */
struct json_object *cli_interfaces_neighbours(struct json_object *interfaces);

/* A row with the counters of each interface of @hosts, an array to be put. */
struct json_object *cli_interfaces_counters(struct json_object *hosts);

#endif
