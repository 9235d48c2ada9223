/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes and ports by the names that the command line has for them.
 */
#ifndef FABRIC_PORT_NAME_H
#define FABRIC_PORT_NAME_H

#include "fabric/model/fabric.h"

/* The node of that name, or the only HCA of the host of that name, or HOST.HCA. @name may come
 * without its end. 0, -ENOENT, -EMLINK. */
int fabric_node_named(const struct fabric *f, const char name[static FABRIC_NAME],
                      struct fabric_node **node);

/* Port number @num of that node. 0, -ENOENT, -EMLINK, -ERANGE. */
int fabric_port_named(const struct fabric *f, const char name[static FABRIC_NAME], unsigned num,
                      struct fabric_port **port);

#endif
