/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sockets of Ethernet ports, of which processes get duplicates; and the daemon as the receiver
 * from them when no process polls: see hca/link/link_roce.h for the idea.
 *
 * The sockets wake it. If it then finds that somebody polls, it leaves them alone and looks again
 * by a timer whether that is still so; unless it is called back before.
 */
#ifndef DAEMON_ROCE_PORT_H
#define DAEMON_ROCE_PORT_H

#include "daemon/network/roce_state.h"

/* Opens the port's sockets, for the first time or anew. 0, or -errno with @why. */
int roce_port_open(struct daemon_roce_port *p, char *why, size_t len);

/* The device is gone: its sockets receive nothing any more, in whatever process they are. */
void roce_port_retire(struct daemon_roce_port *p);

/* Begins to receive by them. 0 or -errno. */
int roce_port_start(struct daemon_roce_port *p);
void roce_port_stop(struct daemon_roce_port *p);

/* A descriptor that the process may have: its own from then on. -errno. */
int daemon_roce_socket(struct daemon_roce *r, uint32_t port,
                       const struct control_roce_socket *request, uint32_t *source_port);

#endif
