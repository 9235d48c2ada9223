/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The neighbours: which link-layer address an IP address on the link has, for IPv4 and IPv6 alike,
 * with the states of RFC 4861, section 7.3.2. An entry that is used is asked for again when it has
 * aged; packets wait while an address is unknown.
 *
 * The table is bounded. Entries that others made us make, and that we never used, are the first to
 * go, then those that were not used for longest: a port that floods us displaces no neighbour that
 * we talk to. The table asks for its actions by its operations. Not thread-safe.
 */
#ifndef IPOIB_NEIGHBOURS_H
#define IPOIB_NEIGHBOURS_H

#include "base/hash.h"
#include "base/timer.h"
#include "ipoib/encapsulation.h"
#include "ipoib/packet.h"

#define IPOIB_NEIGHBOURS_MAX 4096

enum ipoib_neighbour_state {
	IPOIB_INCOMPLETE, /* asked for; no address yet */
	IPOIB_REACHABLE,  /* heard of lately */
	IPOIB_STALE,      /* not lately */
	IPOIB_DELAY,      /* used since; will be asked soon */
	IPOIB_PROBE,      /* asked, by unicast */
};

struct ipoib_neighbour {
	struct base_hash_node node;
	TAILQ_ENTRY(ipoib_neighbour) entry; /* oldest use first */
	struct base_timer timer;
	struct ipoib_neighbours *table;
	struct ib_gid ip;
	struct ipoib_address address; /* unless INCOMPLETE */
	struct ipoib_queue queue;     /* if INCOMPLETE */
	enum ipoib_neighbour_state state;
	unsigned asked; /* how often in this state */
	bool used;
};

struct ipoib_neighbour_ops {
	/* Asks for @ip: the neighbour at @at, or everybody if it is NULL. */
	void (*ask)(void *arg, const struct ib_gid *ip, const struct ipoib_address *at);
	/* Sends a packet that has waited. */
	void (*send)(void *arg, const struct ipoib_address *to, const struct ipoib_packet *p);
	/* Nobody has @ip: of a packet that has waited for it. */
	void (*unreachable)(void *arg, const struct ipoib_packet *p);
	/* The neighbour does not answer at this address any more: the path to it may be wrong. */
	void (*doubt)(void *arg, const struct ipoib_address *at);
};

TAILQ_HEAD(ipoib_neighbour_list, ipoib_neighbour);

struct ipoib_neighbours {
	struct base_hash by_ip;
	struct ipoib_neighbour_list used, unused;
	struct base_timers *timers;
	struct ipoib_budget *budget;
	const struct ipoib_neighbour_ops *ops;
	void *arg;
	unsigned max;
	uint64_t seed;    /* nobody can choose addresses that are all in one bucket */
	uint64_t dropped; /* packets that waited in vain, or could not wait */
};

void ipoib_neighbours_init(struct ipoib_neighbours *t, struct base_timers *timers,
                           struct ipoib_budget *budget, const struct ipoib_neighbour_ops *ops,
                           void *arg);
/* Forgets all: their packets are dropped. */
void ipoib_neighbours_flush(struct ipoib_neighbours *t);
void ipoib_neighbours_fini(struct ipoib_neighbours *t);

struct ipoib_neighbour *ipoib_neighbours_find(const struct ipoib_neighbours *t,
                                              const struct ib_gid *ip);

/*
 * The address to which a packet for @ip is to be sent now. NULL: it is not known yet, and the table
 * has kept a copy of @p, or dropped it.
 */
const struct ipoib_address *ipoib_neighbours_use(struct ipoib_neighbours *t,
                                                 const struct ib_gid *ip,
                                                 const struct ipoib_packet *p);

/*
 * Somebody has said that @ip is at @address. @answer: because we asked, so it is there now.
 * @override: what we know may be replaced. @create: make an entry if there is none. @certain: it
 * was sent from @address; else anybody may have said it, and of what we know it changes nothing.
 */
struct ipoib_news {
	struct ib_gid ip;
	struct ipoib_address address;
	bool answer, override, create, certain;
};
void ipoib_neighbours_learn(struct ipoib_neighbours *t, const struct ipoib_news *news);

const char *ipoib_neighbour_state_name(enum ipoib_neighbour_state state);

#endif
