/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports as programs of subnet management query them. That a program has closed issmN, or has ended,
 * the daemon notices in its own time; with a card the port says so at once. So a port whose issmN
 * was open is read again after the daemon has looked.
 */
#ifndef CONTROL_ISSM_H
#define CONTROL_ISSM_H

#include "control/client.h"
#include "shm/region.h"

/* As shm_port_read() of port @index, of the fabric that @c is connected to. The daemon looks for
 * its owner and root; others, and all if it does not respond, get what it has seen before. */
void control_issm_read_port(struct control_client *c, const struct shm_region *region,
                            uint32_t index, struct shm_port *port);

#endif
