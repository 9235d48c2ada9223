/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's half of rdma_cm, in place of the kernel's modules rdma_cm, ib_cm and ib_sa.
 * Identifiers and their states, addresses and ports of hosts, service ID resolution for UD,
 * multicast joins on behalf of processes (a port joins once, however many processes ask). The
 * process's half is api/rdmacm. This half asks the subnet administrator by MADs, whichever
 * administrator the subnet has.
 *
 * The daemon's; not thread-safe. Sockets, MADs and time are passed in: events leave by an
 * outbox that the daemon provides, or are asked for (see control/cm_message.h).
 */
#ifndef CM_CM_H
#define CM_CM_H

#include "cm/ops.h"
#include "control/socket.h"

struct cm;
struct wire_mcmember;
struct cm_client; /* one process's connection */

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

/* How many identifiers a client has, and joins of multicast groups. */
struct cm_client_counts {
	uint32_t ids, joins;
};
void cm_client_count(const struct cm_client *client, struct cm_client_counts *counts);

/* How far an identifier is, by the numbers of Linux (enum rdma_cm_state), which programs see. */
enum cm_step {
	CM_STEP_IDLE,
	CM_STEP_ADDR_QUERY,
	CM_STEP_ADDR_RESOLVED,
	CM_STEP_ROUTE_QUERY,
	CM_STEP_ROUTE_RESOLVED,
	CM_STEP_CONNECT,
	CM_STEP_DISCONNECT,
	CM_STEP_ADDR_BOUND,
	CM_STEP_LISTEN,
};

/* One of a client's identifiers, for views. */
struct cm_shown {
	uint32_t number;           /* no other one of the client has it */
	const char *state;         /* as the specification names it, or "LISTEN" */
	uint8_t step;              /* enum cm_step */
	uint16_t ps, qp_type;      /* enum rdma_port_space, enum ibv_qp_type */
	const char *space;         /* its port space: "TCP" */
	struct fabric_port *port;  /* NULL: bound to none */
	union control_cm_addr src; /* of no family: it has none */
	union control_cm_addr dst;
	uint32_t qpn, peer_qpn; /* 0: not known */
	bool listens, connects; /* neither: it has only been resolved, or bound */
	uint32_t backlog;       /* a listener: connect requests that it still has room for */
};

/* Shows the one with number @at, from 0 to cm_client_end() - 1. False: it has none there. */
uint32_t cm_client_end(const struct cm_client *client);
bool cm_client_show(const struct cm_client *client, uint32_t at, struct cm_shown *shown);

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
 * The states, ORed, in which joins of @client hold @port's membership in a group; NULL: joins of
 * anybody. Of a client whose joins lie behind CM_JOINS_LOOKED_AT others', it is not known: 0.
 */
#define CM_JOINS_LOOKED_AT 256
uint8_t cm_joined(const struct cm *cm, const struct fabric_port *port, const struct ib_gid *mgid,
                  const struct cm_client *client);

/*
 * A port's membership in a group, by whomever it was joined: the states that the SA has granted and
 * somebody holds, ORed; 0: it is none. If it is one, *@rec is the group's record. *@age_ns: since
 * the port has lost all its memberships; UINT64_MAX: it never has.
 */
uint8_t cm_membership(const struct cm *cm, const struct fabric_port *port,
                      const struct ib_gid *mgid, struct wire_mcmember *rec, uint64_t *age_ns);

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
 * A port has come to be ACTIVE, or its SM, its P_Keys or the SA's capabilities have changed: the
 * facts about it are asked for anew. Members of partitions that it has left are lost, as below.
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

/* The places in the GID table of an Ethernet port that identifiers use: a bit for each. */
uint32_t cm_used_gids(const struct cm *cm, const struct fabric_port *port);

/* Whether members have yet to hear of what has happened to their port, which they do in slices: the
 * SA is asked to register them when they do. */
bool cm_ports_have_news(const struct cm *cm);

#endif
