/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The operations that the daemon provides to its half of rdma_cm: it carries events to processes
 * and MADs to the fabric, and it knows the networks of hosts. cm.h and the files of this folder use
 * this.
 */
#ifndef CM_OPS_H
#define CM_OPS_H

#include "base/timer.h"
#include "control/cm_message.h"
#include "fabric/agents/mads.h"

struct cm_outbox; /* how one event channel reaches its process; the daemon's */

struct cm_search; /* for the owner of an address; the daemon's */

/* The address to search for, and the function to tell. */
struct cm_sought {
	struct fabric_port *port; /* on Ethernet: the sender */
	struct ib_gid sgid, dgid; /* from there, to there */
	uint32_t timeout_ms;
	/* The outcome, once: 0; -ETIMEDOUT: nobody has the address; -ENETUNREACH and the like: the
	 * route is gone. The search is over. */
	void (*done)(void *arg, int status);
	void *arg;
};

struct cm_ops {
	/* Opens an outbox; *@process_fd is the end that goes to the process. 0 or -errno. */
	int (*outbox_open)(void *arg, struct cm_outbox **box, int *process_fd);
	/* Sends one datagram, in order; never blocks. 0, or -errno: it is lost. */
	int (*outbox_send)(struct cm_outbox *box, const void *data, size_t bytes);
	/* Sends a byte of enum control_cm_byte, in order but for KEPT ahead of ASK or behind it; is
	 * never lost. */
	void (*outbox_ring)(struct cm_outbox *box, uint8_t byte);
	/* How many datagrams the process's end has had no room for yet. */
	unsigned (*outbox_waiting)(const struct cm_outbox *box);
	/* Whether the process has closed its end, or has ended. */
	bool (*outbox_closed)(const struct cm_outbox *box);
	void (*outbox_close)(struct cm_outbox *box);
	/* Has a MAD sent from an HCA port, soon, in order: not before this returns. */
	void (*mad_send)(void *arg, struct fabric_port *port, const struct fabric_mad *mad);
	/* Memory that the process has, too, all zero: its address, and its offset there. NULL:
	 * there is none. */
	void *(*memory_get)(void *arg, uint32_t bytes, uint64_t *off);
	void (*memory_put)(void *arg, uint64_t off);
	/* Ethernet ports only; may be NULL where there are none. */
	/*
	 * Asks the routes of host @host for the address from which packets to @dst leave. @src: its
	 * family is set; an address in it, if not zero, is the source that the route is for.
	 * Neither has a port number. 0; -ENETUNREACH and the like: there is no route.
	 */
	int (*route)(void *arg, int host, const union control_cm_addr *dst,
	             union control_cm_addr *src);
	/*
	 * Searches for the owner of an address, or for the gateway on the way. 0: it is known, or
	 * none is needed; -EINPROGRESS: *@search, which ends by done(), or before by search_end();
	 * else -errno.
	 */
	int (*search)(void *arg, const struct cm_sought *sought, struct cm_search **search);
	void (*search_end)(struct cm_search *search);
	/* Joins a group on a port's network, or ends one of several joins. 0 or -errno. */
	int (*join)(void *arg, struct fabric_port *port, const struct ib_gid *mgid);
	void (*leave)(void *arg, struct fabric_port *port, const struct ib_gid *mgid);
	uint32_t tid_high; /* of the transaction IDs of our requests: nobody else has it */
	uint32_t random;   /* where request IDs begin: elsewhere than another daemon's before us */
	void *arg;
	struct base_timers *timers; /* which the daemon runs */
};

#endif
