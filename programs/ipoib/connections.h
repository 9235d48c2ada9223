/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of an interface in connected mode (RFC 4755), by rdma_cm. Two interfaces have one for
 * each direction: an interface with packets for a neighbour that offers RC requests a connection,
 * and only sends on it. On connections that neighbours have requested it only receives. Groups, ARP
 * and neighbour discovery stay with the UD queue pair, and so do packets for neighbours that do not
 * offer RC, or to which there is no connection after all.
 *
 * Packets wait while a connection is made. It ends when it fails, when the peer ends it, or when it
 * was not used for long; the next packet asks for another. After a failure packets go as datagrams
 * for a while; large ones are dropped, until it has failed so often that the kernel had better make
 * small ones.
 *
 * Both tables are bounded: the entry that was not used for longest goes first. A port that asks for
 * many connections displaces its own.
 *
 * connections.c has the table and what is sent, connections_cm.c what rdma_cm says. Nothing waits.
 * Not thread-safe.
 */
#ifndef IPOIB_CONNECTIONS_H
#define IPOIB_CONNECTIONS_H

#include <rdma/rdma_cma.h>

#include "base/hash.h"
#include "base/timer.h"
#include "ipoib/encapsulation.h"
#include "ipoib/paths.h"
#include "ipoib/rc.h"

#define IPOIB_CONNECTIONS_MAX      256 /* in each direction */
#define IPOIB_CONNECTIONS_OF_PORT  8   /* that one port has asked for */
#define IPOIB_CONNECTION_FAILURES  3   /* in a row, after which large packets are refused */
#define IPOIB_CONNECTION_SLOTS     16  /* that may wait for one peer */
#define IPOIB_CONNECTION_SLOTS_ALL 28  /* for all; the UD queue pair always has some */

enum ipoib_connection_state {
	IPOIB_CONNECTING,
	IPOIB_CONNECTED,
	IPOIB_FAILED, /* may be tried again at ->not_before_ns */
};

struct ipoib_connections;

struct ipoib_connection {
	struct base_hash_node by_address; /* if we have asked for it */
	struct base_hash_node by_qpn;     /* if ->qp */
	TAILQ_ENTRY(ipoib_connection) entry;
	struct base_timer timer; /* how long it may take to connect */
	struct ipoib_connections *table;
	struct rdma_cm_id *id; /* NULL: there is none, it has failed */
	struct ibv_qp *qp;     /* likewise */
	struct ipoib_address peer;
	uint16_t lid;  /* the peer's */
	bool incoming; /* the peer has asked */
	enum ipoib_connection_state state;
	unsigned mtu;            /* the largest packet that the peer receives */
	unsigned requests;       /* on their way */
	uint32_t slots;          /* which are on their way, a bit each, */
	unsigned n_slots;        /* ... and how many */
	unsigned failures;       /* in a row */
	uint64_t not_before_ns;  /* FAILED */
	uint64_t since_ns;       /* CONNECTED */
	uint64_t used_ns;        /* a packet was sent, or received */
	struct ipoib_queue held; /* CONNECTING */
};

TAILQ_HEAD(ipoib_connection_list, ipoib_connection);

struct ipoib_connections {
	/* set by its maker */
	struct ipoib_link *link;
	const struct ipoib_port *port;
	struct base_timers *timers;
	struct ipoib_budget *budget;
	/* Sends a packet that has waited, again: to a peer with which there is a connection now, or
	 * will be none. */
	void (*send)(void *arg, const struct ipoib_address *to, const struct ipoib_packet *p);
	void *arg;

	struct ipoib_rc *rc;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* at the port's GID, as it was: */
	struct ib_gid gid;
	struct base_hash by_address, by_qpn;
	struct ipoib_connection_list outgoing, incoming; /* oldest use first */
	unsigned n_outgoing, n_incoming;
	struct base_timer idle;                  /* looks for those that are not used */
	uint8_t requests_of[IPOIB_SLOTS];        /* work requests of what is in a slot */
	unsigned n_slots;                        /* on their way */
	uint64_t dropped, refused, failed, made; /* packets; requests; connections */
};

/* 0 or -errno. */
int ipoib_connections_open(struct ipoib_connections *t);
/* Ends all of them. */
void ipoib_connections_close(struct ipoib_connections *t);

/* ---- connections.c ---- */

/* The ways of a packet for a neighbour that offers RC. */
enum ipoib_connection_use {
	IPOIB_BY_CONNECTION, /* it may be sent by the connection */
	IPOIB_BY_DATAGRAM,
	IPOIB_BY_NOTHING, /* there is a copy that waits, or it was dropped */
};

/* @c: the connection to @to, made if there is none. */
enum ipoib_connection_use ipoib_connections_use(struct ipoib_connections *t,
                                                const struct ipoib_address *to,
                                                const struct ipoib_packet *p,
                                                struct ipoib_connection **c);

/* Sends @p, which is in the next slot and not larger than c->mtu. False: it was dropped. */
bool ipoib_connections_send(struct ipoib_connections *t, struct ipoib_connection *c,
                            const struct ipoib_packet *p);

/* Takes back the slots of what has been sent, and ends connections that have failed. */
void ipoib_connections_sent(struct ipoib_connections *t);

/* The connection to @to that there is. NULL: there is none. */
const struct ipoib_connection *ipoib_connections_find(const struct ipoib_connections *t,
                                                      const struct ib_gid *gid, uint32_t qpn);
/* The one that has our queue pair @qpn, which has received. NULL: it has ended. */
struct ipoib_connection *ipoib_connections_received(struct ipoib_connections *t, uint32_t qpn);

/* Ends the connections that we have asked for with interfaces of that port: it may be elsewhere
 * now. */
void ipoib_connections_doubt(struct ipoib_connections *t, const struct ib_gid *gid);
/* The port has another LID or GID, or another place for the P_Key, or is not active: ends all. */
void ipoib_connections_reset(struct ipoib_connections *t);

const char *ipoib_connection_state_name(enum ipoib_connection_state state);

/* ---- for connections_cm.c ---- */

struct ipoib_connection *ipoib_connection_new(struct ipoib_connections *t, bool incoming);
/* Makes its queue pair. 0 or -errno. */
int ipoib_connection_add_qp(struct ipoib_connection *c);
/* It can be used from now on. */
void ipoib_connection_ready(struct ipoib_connection *c);
/* It cannot: one that we have asked for may be tried again later, others are gone. */
void ipoib_connection_fail(struct ipoib_connection *c);
/* It has ended well. */
void ipoib_connection_end(struct ipoib_connection *c);

/* ---- connections_cm.c ---- */

/* Asks for it, or for requests of others. 0 or -errno. */
int ipoib_connections_ask(struct ipoib_connection *c);
int ipoib_connections_listen(struct ipoib_connections *t);

static inline int ipoib_connections_fd(const struct ipoib_connections *t)
{
	return t->channel->fd;
}

/* Takes what has come by the descriptor. */
void ipoib_connections_dispatch(struct ipoib_connections *t);

#endif
