/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes and ports as people write them, "sw1:3" or "h2:1", and what to say when the
 * manager does not take one. For link.c, switch.c and sm.c. Single-threaded. A function
 * that fails has printed its one line.
 */
#ifndef CLI_PORT_H
#define CLI_PORT_H

#include "cli/cli.h"

struct cli_port {
	const char *text; /* as written */
	char node[128];   /* what is longer than any node's name is none */
	unsigned port;
};

/* Takes "NODE:PORT" apart. 0 or CLI_USAGE. */
int cli_port_parse(const struct cli_command *cmd, const char *text, struct cli_port *port);

/* Says why the manager did not take @port (@error: see control/message.h). CLI_FAILED. */
int cli_port_refused(struct control_client *client, const struct cli_port *port, int error);

/* Likewise of the switch named @name. */
int cli_switch_refused(struct control_client *client, const char *name, int error);

/* Takes the option --name of a command that takes words too; they begin at optind then. 0 and the
 * fabric's name, or -1 and the exit status. */
int cli_words(const struct cli_command *cmd, int argc, char **argv, const char **name, int *status);

#endif
