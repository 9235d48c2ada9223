/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes and ports by the names that the command line has for them.
 */
#ifndef DAEMON_PORT_NAME_H
#define DAEMON_PORT_NAME_H

#include "control/message.h"
#include "fabric/fabric.h"

/* The node of that name, or the only HCA of the host of that name. @name may come without its
 * end. 0, -ENOENT, -EMLINK. */
int daemon_node_find(const struct fabric *f, const char name[static 32], struct fabric_node **node);

/* The HCA or switch port. 0, -ENOENT, -EMLINK, -ERANGE. */
int daemon_port_find(const struct fabric *f, const struct control_port *at,
                     struct fabric_port **port);

#endif
