/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Management datagrams of Ethernet ports: QP1 only, in UDP as data is. One that is received is
 * checked as QP1 of an HCA does, and goes on as a MAD that came by a link; a MAD that is sent gets
 * its headers here.
 */
#ifndef DAEMON_ROCE_MAD_H
#define DAEMON_ROCE_MAD_H

#include "control/message.h"
#include "fabric/agents/mads.h"

struct daemon_roce;

/* A MAD has come in from the network at @port (index), so a process says. */
void daemon_roce_mad(struct daemon_roce *r, uint32_t port, const struct control_roce_mad *came);

/* Sends @mad to the network. If it cannot be sent, no response comes. */
void daemon_roce_send_mad(struct daemon_roce *r, struct fabric_port *from,
                          const struct fabric_mad *mad);

#endif
