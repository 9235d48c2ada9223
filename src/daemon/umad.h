/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What libibumad's programs have in the manager, which is to them what the kernel's user_mad
 * and ib_mad are: open ports with agents, requests that wait for their answers, messages that
 * are taken apart and put together by RMPP. Behaviour is the kernel's unless a comment says
 * otherwise. For umad.c, umad_mad.c, umad_rmpp.c and umad_issm.c.
 *
 * MADs are sent from a queue: a MAD that arrives may be answered with others, which arrive
 * elsewhere, and so on; so nothing is freed or changed under the feet of who sends.
 */
#ifndef DAEMON_UMAD_H
#define DAEMON_UMAD_H

#include "base/hash.h"
#include "control/umad_message.h"
#include "daemon/state.h"
#include "fabric/mads.h"
#include "wire/rmpp.h"

struct umad_open;

struct umad_agent {
	struct umad_open *port;
	struct control_umad_register as;
	uint32_t id;       /* in port->agent */
	uint32_t tid_high; /* of its requests, and so of their answers */
	bool reassembles;  /* RMPP is not its own business */
	unsigned n_requests, n_reassemblies, n_lingering;
};

/* What umad_open_port() opens. */
struct umad_open {
	LIST_ENTRY(umad_open) entry;
	struct daemon_umad *u;
	struct fabric_port *at;
	uint32_t handle;
	int fd; /* the same socket as box's, for receiving */
	struct cm_outbox *box;
	struct umad_agent *agent[UMAD_CA_MAX_AGENTS];
};

/* A MAD that waits for its answer; before that, of several segments, for their ACKs. */
struct umad_request {
	LIST_ENTRY(umad_request) entry;
	struct base_hash_node by_tid;
	struct umad_agent *agent;
	struct ib_user_mad header; /* as the program sent it */
	struct fabric_mad mad;     /* the first, or only, one */
	struct wire_mad head;
	uint64_t deadline; /* ns */
	uint32_t retries;  /* that are left */
	/* of several segments */
	struct wire_rmpp_sender sender;
	uint8_t *message; /* NULL: a single MAD */
	uint32_t message_bytes;
};

/* A message that arrives in segments. */
struct umad_reassembly {
	LIST_ENTRY(umad_reassembly) entry;
	struct base_hash_node by_tid;
	struct umad_agent *agent;
	struct fabric_mad first; /* its addresses tell it from others */
	struct wire_mad head;
	uint64_t deadline;
	struct wire_rmpp_receiver receiver;
	bool lingers; /* done */
	uint8_t *message;
	uint32_t bytes, room;
};

struct umad_out {
	STAILQ_ENTRY(umad_out) entry;
	struct fabric_port *from;
	struct fabric_mad mad;
};

struct umad_issm;

struct daemon_umad {
	struct daemon *d;
	struct base_idtable ports;
	LIST_HEAD(, umad_open) * at; /* open ports by HCA port, by index */
	uint32_t last_tid_high;
	LIST_HEAD(, umad_request) requests;
	LIST_HEAD(, umad_reassembly) reassemblies;
	struct base_hash requests_by_tid, reassemblies_by_tid;
	uint64_t message_bytes; /* memory of messages, both ways */
	STAILQ_HEAD(, umad_out) out;
	bool sending;
	int ports_fd; /* an epoll over the sockets of all ports, by handle */
	sd_event_source *ports_source;
	sd_event_source *timer, *more; /* more: the queue was too long for one go */
	LIST_HEAD(, umad_issm) issms;
	uint8_t in[CONTROL_UMAD_DATAGRAM], packet[CONTROL_UMAD_DATAGRAM];
};

/* ---- umad_mad.c ---- */

/* What a program sends: @bytes of MAD or message behind @header. Checks all of it. */
void daemon_umad_submit(struct umad_open *port, const struct ib_user_mad *header,
                        const uint8_t *data, size_t bytes);

/* A MAD, or the whole of a message whose first one @mad is, for this agent. */
void daemon_umad_receive(struct umad_agent *agent, const struct fabric_mad *mad,
                         const uint8_t *data, size_t bytes);

/* Queues a MAD; sent when daemon_umad_send_queued() is called. */
void daemon_umad_queue(struct daemon_umad *u, struct fabric_port *from,
                       const struct fabric_mad *mad);
void daemon_umad_send_queued(struct daemon_umad *u);

/* The first of these, as cm/ wants it. @arg: struct daemon. */
void daemon_umad_send_from(void *arg, struct fabric_port *from, const struct fabric_mad *mad);

/* Looks after requests and messages at that time, on the clock of base_now_ns(). */
void daemon_umad_wake_at(struct daemon_umad *u, uint64_t ns);

/* The answer to a request, or the fate of a message, will not come: the program gets the MAD's
 * header back, with a status (+errno), and the request ends. */
void daemon_umad_request_fail(struct umad_request *r, int status);
void daemon_umad_request_free(struct umad_request *r);

/* The agent is no more: forgets what it waits for. */
void daemon_umad_forget(struct umad_agent *agent);

/* The sink of fabric/mads.h. @arg: struct daemon. */
bool daemon_umad_deliver(void *arg, struct fabric_port *at, const struct fabric_mad *mad);

/* Whether it is an answer, and so goes to who asked. */
bool daemon_umad_is_response(const struct wire_mad *head);

/* ---- umad_rmpp.c ---- */

/* Begins to send a message of several segments. 0 or -errno. */
int daemon_umad_message_new(struct umad_request *r, const uint8_t *data, size_t bytes);
void daemon_umad_message_send(struct umad_request *r);

/* Its deadline has come. */
void daemon_umad_message_expire(struct umad_request *r, uint64_t now);
void daemon_umad_reassembly_expire(struct umad_reassembly *a, uint64_t now);

/* A MAD of a message, either way. */
void daemon_umad_segment(struct umad_agent *agent, const struct fabric_mad *mad);
void daemon_umad_reassembly_free(struct umad_reassembly *a);

/* The request that a MAD belongs to by class and transaction ID. @sent_response: it is an answer
 * itself. NULL: none. */
struct umad_request *daemon_umad_request_find(struct umad_agent *agent, const struct wire_mad *head,
                                              bool sent_response);

/* ---- umad_issm.c ---- */

/* Makes the FIFO of the port that says, while it is open, that there is a subnet manager. */
int daemon_umad_issm(struct daemon_umad *u, struct fabric_port *at);
void daemon_umad_issm_fini(struct daemon_umad *u);

#endif
