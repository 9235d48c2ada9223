/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of programs that wait: each for its response, sent again and again until its retries are
 * used up. A message of several segments is one, too; umad_rmpp.c sends it.
 */
#ifndef DAEMON_UMAD_REQUEST_H
#define DAEMON_UMAD_REQUEST_H

#include "daemon/umad/umad_state.h"

/* Whether it is a response, and so goes to the requester. */
bool umad_is_response(const struct wire_mad *head);

/* A request with what the program sent. 0 or -ENOMEM. */
int umad_request_new(struct umad_agent *agent, const struct ib_user_mad *header,
                     const struct fabric_mad *mad, struct umad_request **out);

/* Sends a MAD, in its turn if it joins or leaves a group (cm/cm.h). A response may come before this
 * returns. */
void umad_request_send_mad(struct umad_open *port, const struct fabric_mad *mad);

/* Sends it and waits for the response, by which it is freed; of a single MAD. */
void umad_request_send(struct umad_request *r);

/* The request that a MAD belongs to by class and transaction ID. @sent_response: it is a response
 * itself. NULL: none. */
struct umad_request *umad_request_find(struct umad_agent *agent, const struct wire_mad *head,
                                       bool sent_response);

/* The response, or the fate of a message, will not come: the program gets the MAD's header back,
 * with a status (+errno), and the request ends. */
void umad_request_fail(struct umad_request *r, int status);
void umad_request_free(struct umad_request *r);

/* The agent has ended: frees its requests. False: some are left, the budget (chores.h) is used up.
 */
bool umad_request_forget(struct umad_agent *agent, uint32_t *budget);

/* A MAD, or the whole of a message whose first one @mad is, for this agent. A response ends the
 * request that waits for it. */
void umad_request_receive(struct umad_agent *agent, const struct fabric_mad *mad,
                          const uint8_t *data, size_t bytes);

#endif
