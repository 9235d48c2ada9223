/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Responses of the embedded subnet administrator that take several MADs: each is sent in segments
 * by RMPP (wire/rmpp.h) until the last one is acknowledged, or nobody acknowledges any more.
 */
#ifndef DAEMON_SUBNET_RESPONSE_H
#define DAEMON_SUBNET_RESPONSE_H

#include "daemon/subnet/mads.h"

struct daemon_responses {
	struct daemon_loop *loop;
	struct daemon_mads *mads;
	LIST_HEAD(, daemon_response) all;
	unsigned n;
};

void daemon_responses_init(struct daemon_responses *all, struct daemon_loop *loop,
                           struct daemon_mads *mads);

/*
 * Sends @payload, whose ownership is transferred, from @from. @mad: the addresses of all segments,
 * and the header of the response. If there are too many already, nothing: the requester asks
 * again.
 */
void daemon_response_send(struct daemon_responses *all, struct fabric_port *from,
                          const struct fabric_mad *mad, uint8_t *payload, size_t bytes);

/* The bytes of responses that are being made: to one LID, and to all. */
struct daemon_response_bytes {
	uint64_t to_lid, to_all;
};

/*
 * Whether so much is on its way to @lid, or to all, that a request has to wait. A requester that
 * asks again and again and acknowledges nothing would otherwise hold all memory, and the SA's time.
 * @coming counts too.
 */
bool daemon_responses_are_busy(const struct daemon_responses *all, uint16_t lid,
                               struct daemon_response_bytes coming);

/* @mad is an ACK, STOP or ABORT. Whether it belonged to a response that is being sent. */
bool daemon_response_input(struct daemon_responses *all, const struct fabric_mad *mad);

#endif
