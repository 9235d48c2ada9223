/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's own agent on QP1 of each HCA port, as ib_mad and ib_sa are in the kernel: a
 * request is sent until its response comes or its time is over. Requests to the subnet
 * administrator go to wherever the port's subnet manager is by then; others to a peer.
 *
 * Not thread-safe. Nothing here calls back before it has returned.
 */
#ifndef CM_MAD_H
#define CM_MAD_H

#include "cm/state.h"

/* A request to the subnet administrator. */
struct cm_sa_request {
	struct fabric_port *port; /* the port that asks */
	const uint8_t *mad;       /* the request as a program has made it, but for its
	                             transaction ID; NULL: made of what follows */
	uint8_t method;           /* MAD_GET, MAD_SET, MAD_DELETE */
	uint16_t attribute;       /* enum sa_attr */
	const struct wire_layout *layout;
	const void *record; /* after the layout; NULL: all zero */
	uint64_t mask;      /* the components that it names */
	uint64_t timeout_ms;
	/*
	 * It is over. 0; -EINVAL: the SA refuses; -ETIMEDOUT: there is no @response. Its record,
	 * in wire format, is cm_sa_record(@response).
	 */
	void (*done)(void *arg, int status, const struct fabric_mad *response);
	void *arg;
};

/*
 * Asks up to CM_SA_TRIES times within the timeout. *@t is the caller's until done() is called or
 * cm_mad_cancel(). 0 or -ENOMEM.
 */
#define CM_SA_TRIES 10
int cm_sa_ask(struct cm *cm, const struct cm_sa_request *request, struct cm_transaction **t);

static inline const uint8_t *cm_sa_record(const struct fabric_mad *response)
{
	return response->data + SA_DATA_AT;
}

/* The sender of @mad, which was received. */
struct cm_peer cm_peer_of(const struct fabric_mad *mad);

/* Begins a MAD of communication management from @port to @to: all but the message. */
void cm_mad_begin(const struct cm *cm, struct fabric_port *port, const struct cm_peer *to,
                  const struct wire_mad *head, struct fabric_mad *mad);

/* A message of communication management that is sent until somebody cancels it. */
struct cm_repetition {
	struct fabric_port *port;
	const struct fabric_mad *mad;
	unsigned tries;
	uint64_t try_ms; /* from one to the next */
	/* No response to the last one either: -ETIMEDOUT. */
	void (*done)(void *arg, int status, const struct fabric_mad *response);
	void *arg;
};

/* *@t as above. 0 or -ENOMEM. */
int cm_mad_repeat(struct cm *cm, const struct cm_repetition *r, struct cm_transaction **t);

/* The next try, or the end of the last one, comes so much later from now. */
void cm_mad_postpone(struct cm_transaction *t, uint64_t ms);

/* A transaction ID of our own. */
uint64_t cm_mad_new_tid(struct cm *cm);

/* Ends it: done() is not called. *@t, which may be NULL, becomes NULL. */
void cm_mad_cancel(struct cm_transaction **t);

#endif
