/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups of the link, each of which the SA has to let us in. Of the broadcast group we
 * are a full member before anything else happens; all other groups get its parameters (RFC 4391,
 * section 4). Of groups that sockets of the host have joined we are a full member, of groups to
 * which the host only sends a send-only member, until it has not sent for a while. Not thread-safe.
 */
#ifndef IPOIB_GROUPS_H
#define IPOIB_GROUPS_H

#include "base/hash.h"
#include "base/timer.h"
#include "ipoib/link.h"
#include "ipoib/packet.h"
#include "ipoib/paths.h"
#include "ipoib/sa.h"

#define IPOIB_GROUPS_MAX 4096

struct ipoib_group {
	struct base_hash_node node;
	TAILQ_ENTRY(ipoib_group) entry;
	struct base_timer timer; /* asks again, or leaves */
	struct ipoib_sa_request request;
	struct ipoib_groups *table;
	struct ib_gid mgid;
	struct ibv_ah *ah; /* NULL: it cannot be sent to */
	uint16_t mlid;     /* where the queue pair is attached: @attached */
	uint8_t joined;    /* enum ib_join_state, ORed */
	uint8_t asked;     /* what the request under way asks for */
	unsigned failures; /* in a row */
	unsigned idle;     /* how often it was not in use when it would have been renewed */
	bool create;       /* the request makes the group: the broadcast group */
	bool wanted;       /* a socket has joined */
	bool mark;         /* ipoib_groups_want() since ipoib_groups_want_begin() */
	bool used;         /* since the timer was set */
	bool attached;
	struct ipoib_queue queue;
};

struct ipoib_groups {
	struct base_hash by_mgid;
	TAILQ_HEAD(, ipoib_group) all;
	struct base_timers *timers;
	struct ipoib_sa *sa;
	struct ipoib_link *link;
	const struct ipoib_port *port;
	struct ipoib_budget *budget;
	/* Sends a packet that has waited. */
	void (*send)(void *arg, struct ibv_ah *ah, const struct ipoib_packet *p);
	/* We are a member of the broadcast group, which has these parameters. */
	void (*ready)(void *arg, const struct wire_mcmember *broadcast);
	void *arg;
	struct ipoib_group *broadcast;
	struct wire_mcmember parameters; /* the broadcast group's; its mgid is zero: not known */
	bool active;                     /* the port is: requests can be made */
	uint64_t dropped;
};

/* Makes the entry of the broadcast group. 0 or -ENOMEM. */
int ipoib_groups_init(struct ipoib_groups *t);
void ipoib_groups_fini(struct ipoib_groups *t);

/* The port has become active, or the SM has forgotten us: joins all that it should be in. */
void ipoib_groups_rejoin(struct ipoib_groups *t);
/* The port is not active any more. */
void ipoib_groups_stop(struct ipoib_groups *t);

/* By which address handle to send @p to the group now. NULL: not known yet, and the table has kept
 * a copy of @p, or dropped it. */
struct ibv_ah *ipoib_groups_use(struct ipoib_groups *t, const struct ib_gid *mgid,
                                const struct ipoib_packet *p);

/* The groups of which the host is a member, all between begin and end. */
void ipoib_groups_want_begin(struct ipoib_groups *t);
void ipoib_groups_want(struct ipoib_groups *t, const struct ib_gid *mgid);
void ipoib_groups_want_end(struct ipoib_groups *t);

#endif
