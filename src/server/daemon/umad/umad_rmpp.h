/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of several segments, for agents that leave RMPP to us: the program sends and gets them
 * whole. The protocol is wire/rmpp.h's; its memory, its timers and its peers are here.
 */
#ifndef DAEMON_UMAD_RMPP_H
#define DAEMON_UMAD_RMPP_H

#include "daemon/umad/umad_state.h"

/* Begins to send the message of @r, of several segments. @message: of umad_memory_alloc(); it is
 * the request's from now on. 0 or -errno. */
int umad_rmpp_send(struct umad_request *r, uint8_t *message, size_t bytes);

/* A segment, or what its receiver says to it, has come for the agent. */
void umad_rmpp_receive(struct umad_agent *agent, const struct fabric_mad *mad);

/* The agent has ended: forgets the messages that it was receiving. False: some are left, the budget
 * (chores.h) is used up. */
bool umad_rmpp_forget(struct umad_agent *agent, uint32_t *budget);

#endif
