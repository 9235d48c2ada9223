/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's half of rdma_cm: what the kernel's rdma_cm, ib_cm and ib_sa modules
 * are to librdmacm. Identifiers and their states, addresses and ports of hosts,
 * service ID resolution for UD, multicast joins on behalf of processes (a port joins
 * once, however many processes ask). The process's half is api/rdmacm. What it wants of
 * the subnet administrator it asks for by MADs, whoever the administrator is.
 *
 * The daemon's; not thread-safe. Sockets, MADs and time are passed in: events leave by an
 * outbox that the daemon provides, or are asked for (see control/cm_message.h).
 */
#ifndef CM_CM_H
#define CM_CM_H

#include "base/timer.h"
#include "control/cm_message.h"
#include "control/socket.h"
#include "fabric/mads.h"

struct cm;
struct cm_client; /* one process's connection */
struct cm_outbox; /* how one event channel reaches its process; the daemon's */

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
	/* Joins a group on a port's network, or ends one of several joins. 0 or -errno. */
	int (*join)(void *arg, struct fabric_port *port, const struct ib_gid *mgid);
	void (*leave)(void *arg, struct fabric_port *port, const struct ib_gid *mgid);
	uint32_t tid_high; /* of the transaction IDs of our requests: nobody else has it */
	uint32_t random;   /* where request IDs begin: elsewhere than another daemon's before us */
	void *arg;
	struct base_timers *timers; /* which the daemon runs */
};

int cm_new(struct cm **cm, struct fabric *f, const struct cm_ops *ops);

/* Its clients have been freed. Sends nothing. */
void cm_free(struct cm *cm);

/* How many identifiers listen, and how many connections there are, both ends counted. */
struct cm_counts {
	uint64_t listeners, connections;
};
void cm_count(const struct cm *cm, struct cm_counts *counts);

/* A process of host @host_index (-1: it sees all hosts) has connected. 0 or -ENOMEM. */
int cm_client_new(struct cm *cm, int host_index, struct cm_client **client);

/* It is gone: its identifiers, joins, listeners and channels go too. */
void cm_client_free(struct cm *cm, struct cm_client *client);

/*
 * Serves one request of types CONTROL_CM_FIRST to CONTROL_CM_LAST, whose body is
 * input and checked as such. Fills body, bytes and descriptors of @reply; the
 * descriptors are the caller's to close. The status: 0 or -errno (-EPROTO: a malformed
 * request).
 */
int cm_request(struct cm *cm, struct cm_client *client, const struct control_packet *request,
               struct control_packet *reply);

/*
 * A program that sends MADs of its own from a port. By SubnAdmSet() and SubnAdmDelete() of
 * MCMemberRecord it has the port join groups and leave them: its memberships are counted with all
 * others of the port, and the port leaves when the last one ends.
 */
struct cm_program;

/* How a response reaches the program: as if it had come from the fabric. */
struct cm_program_ops {
	void (*respond)(void *arg, struct fabric_port *port, const struct fabric_mad *mad);
	void *arg;
};

/* 0 or -ENOMEM. */
int cm_program_new(struct cm *cm, struct fabric_port *port, const struct cm_program_ops *ops,
                   struct cm_program **program);

/* Its memberships are to end with it. Otherwise they are left to the port, as with hardware: until
 * a program leaves the group by a MAD, or the port changes. */
void cm_program_leave_at_end(struct cm_program *program);

/* It is gone. Requests that it has sent are carried out. */
void cm_program_free(struct cm_program *program);

/* Whether @mad, which it wants to send, is such a request; never one of several segments. */
bool cm_program_wants(const struct cm_program *program, const struct fabric_mad *mad);

/* Sends it when it is its turn. The response may come before this returns; none may come at all, as
 * when a MAD has got lost. One that is under way already, by its transaction ID, is not sent again.
 */
void cm_program_send(struct cm_program *program, const struct fabric_mad *mad);

/* A MAD was received at @port that is for no program. Whether it is for us. */
bool cm_mad_input(struct cm *cm, struct fabric_port *port, const struct fabric_mad *mad);

/*
 * A port has come to be ACTIVE, or its SM, its P_Keys or what the SA can do have changed: what is
 * known of it is asked for anew. Members of partitions that it has left are lost, as below.
 */
void cm_port_active(struct cm *cm, struct fabric_port *port);

/*
 * A port went down, or its LID changed, or it has to register with its SM again: its members get
 * MULTICAST_ERROR, -ENETRESET, and the port is a member no more. They may leave, and join
 * anew. Pending joins start again. Implies what cm_port_active() does.
 */
void cm_port_changed(struct cm *cm, struct fabric_port *port);

/*
 * A port has to register with its SM again, which knows nothing of its members: they are registered
 * without a word to the processes. Where the SA refuses, or gives a group another MLID, they are
 * lost as above. Implies what cm_port_active() does.
 */
void cm_port_renew(struct cm *cm, struct fabric_port *port);

/* Whether members have yet to hear of what has happened to their port, which they do in slices: the
 * SA is asked to register them when they do. */
bool cm_ports_have_news(const struct cm *cm);

#endif
