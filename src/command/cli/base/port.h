/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes and ports as people write them, "sw1:3" or "h2:1", and the message when the daemon
 * refuses one. For link.c, switch.c and sm.c. Single-threaded. A function that fails has
 * printed its one line.
 */
#ifndef CLI_PORT_H
#define CLI_PORT_H

#include "cli/base/command.h"

struct control_client;

struct cli_port {
	const char *text; /* as written */
	char node[128];   /* a longer text is cut, and is no node's name then either */
	unsigned port;
};

/* Parses "NODE:PORT". 0 or CLI_USAGE. */
int cli_port_parse(const struct cli_command *cmd, const char *text, struct cli_port *port);

/* Says why the daemon refused @port with @error (see control/message.h). Returns CLI_FAILED. */
int cli_port_refused(struct control_client *client, const struct cli_port *port, int error);

/* The same for the switch named @name. */
int cli_switch_refused(struct control_client *client, const char *name, int error);

#endif
