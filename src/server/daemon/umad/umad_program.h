/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs on their way to a program, by its port's socket.
 */
#ifndef DAEMON_UMAD_PROGRAM_H
#define DAEMON_UMAD_PROGRAM_H

#include "daemon/umad/umad_state.h"

/* Sends @bytes of MAD or message to the agent's program; fills in @header's agent and length. */
void umad_program_send(struct umad_agent *agent, struct ib_user_mad *header, const uint8_t *data,
                       size_t bytes);

/* A program's submission comes back to it with a status (+errno): just the beginning. */
void umad_program_return(struct umad_agent *agent, const struct ib_user_mad *header,
                         const uint8_t *data, int status);

#endif
