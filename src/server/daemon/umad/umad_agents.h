/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent that gets a MAD: the agents of all open ports, by properties that their MADs have in
 * common. However many agents there are, few are looked at for one MAD.
 */
#ifndef DAEMON_UMAD_AGENTS_H
#define DAEMON_UMAD_AGENTS_H

#include "daemon/umad/umad_state.h"

/* From now on it is found, by its class if it gets requests. 0 or -ENOMEM. */
int umad_agents_add(struct umad_agents *all, struct umad_agent *agent);

/* It is not found any more. It need not be found now. */
void umad_agents_remove(struct umad_agents *all, struct umad_agent *agent);

/* The agent whose request a response at @at answers. NULL: none. */
struct umad_agent *umad_agents_of_response(struct umad_agents *all, const struct fabric_port *at,
                                           const struct wire_mad *head);

/* The agent that gets a request at @at. NULL: none. */
struct umad_agent *umad_agents_of_request(struct umad_agents *all, const struct fabric_port *at,
                                          const struct wire_mad *head,
                                          const uint8_t data[static MAD_BYTES]);

/* An agent that gets one of these requests already, at this HCA port. NULL: there is none. */
struct umad_agent *umad_agents_conflicting(struct umad_agents *all, const struct fabric_port *at,
                                           const struct control_umad_register *as);

/* Whether the OUI is part of what the class is. */
bool umad_agents_is_oui_class(uint8_t c);

#endif
