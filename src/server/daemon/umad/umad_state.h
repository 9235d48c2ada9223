/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects of libibumad's programs in the daemon, which is to them what the kernel's user_mad
 * and ib_mad are: open ports with agents, requests that wait for their responses, messages that are
 * cut into segments and put together by RMPP. Behaviour is the kernel's unless a comment says
 * otherwise.
 *
 * From the bottom to the top: umad_memory.c has budgets, umad_agents.c finds the agent that gets a
 * MAD, umad_program.c sends to programs, umad_request.c has requests that wait for a response,
 * umad_rmpp.c has messages of several segments, umad_mad.c decides what a MAD is, umad_long.c reads
 * long messages, umad.c has ports and agents and receives from programs.
 */
#ifndef DAEMON_UMAD_STATE_H
#define DAEMON_UMAD_STATE_H

#include "base/hash.h"
#include "base/idtable.h"
#include "cm/cm.h"
#include "control/umad_message.h"
#include "daemon/core/chores.h"
#include "daemon/core/giver.h"
#include "daemon/core/outbox.h"
#include "daemon/subnet/mads.h"
#include "wire/rmpp.h"

struct daemon_subnet;
struct umad_batch;
struct umad_long;
struct umad_open;

struct umad_agent {
	struct umad_open *port;
	struct control_umad_register as;
	uint32_t id;       /* in port->agent */
	uint32_t tid_high; /* of its requests, and so of their responses */
	bool is_found;     /* by these */
	struct base_hash_node by_tid, by_class;
	bool reassembles; /* RMPP is not its own business */
	/* It is unregistered, and gets nothing any more: it ends once the port has taken so many
	 * bytes, which its program sent before. */
	bool leaving;
	uint64_t ends_at;
	LIST_HEAD(, umad_request) requests;
	LIST_HEAD(, umad_reassembly) reassemblies;
	unsigned n_reassemblies, n_lingering;
	/* Nobody has it any more; its objects wait to be freed. */
	bool ended;
	struct daemon_chore end;
};

/* A port that umad_open_port() opens. */
struct umad_open {
	struct daemon_umad *u;
	struct fabric_port *at;
	uint32_t handle;
	int fd; /* the same socket as box's, for receiving */
	struct daemon_source source;
	struct daemon_giver giver;
	struct umad_batch *kept;   /* received, and not all of it taken yet: umad.c */
	struct umad_long *reading; /* what was taken last, of which all is not read yet */
	bool waits;                /* for its turn to take, or read, more */
	TAILQ_ENTRY(umad_open) wait_entry;
	uint64_t received, taken; /* bytes of datagrams */
	unsigned n_leaving;
	struct cm_outbox *box;
	struct cm_program *program; /* what it has joined by MADs */
	uint64_t message_bytes;     /* memory of its requests and messages, both directions */
	struct umad_agent *agent[UMAD_CA_MAX_AGENTS];
	unsigned n_agents; /* these, and those that have ended */
	bool ended;        /* it is freed with the last of them */
};

/* A MAD that waits for its response; before that, one of several segments for their ACKs. */
struct umad_request {
	LIST_ENTRY(umad_request) entry;
	struct base_hash_node by_tid;
	struct umad_agent *agent;
	struct ib_user_mad header; /* as the program sent it */
	struct fabric_mad mad;     /* the first, or only, one */
	struct wire_mad head;
	struct base_timer timer; /* for the response, or the ACKs */
	uint32_t retries;        /* that are left */
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
	struct base_timer timer;
	struct wire_rmpp_receiver receiver;
	bool lingers; /* done */
	uint8_t *message;
	uint32_t bytes, room;
};

/* umad_agents.h */
struct umad_agents {
	struct base_hash by_tid, by_class;
	uint64_t looked_at; /* agents, so far */
};

struct umad_issm;

/* The parts of the daemon that umad needs. */
struct daemon_umad_needs {
	const char *fabric; /* its name */
	struct fabric *f;
	struct daemon_loop *loop;
	struct daemon_chores *chores;
	struct daemon_mads *mads;
	struct daemon_subnet *subnet;
	struct cm *cm;
};

struct daemon_umad {
	struct daemon_umad_needs d;
	struct base_idtable ports;
	struct umad_agents agents; /* those that have not been unregistered */
	uint32_t last_tid_high;
	struct base_hash requests_by_tid, reassemblies_by_tid;
	uint64_t message_bytes; /* of all ports */
	int issm_fd;            /* says that somebody opens one of: */
	struct daemon_source issm_source;
	LIST_HEAD(, umad_issm) issms;
	struct umad_batch *spare;        /* NULL: the next one is allocated */
	TAILQ_HEAD(, umad_open) waiting; /* ports that wait for their turn */
	unsigned n_kept;                 /* batches */
	struct base_timer turn;          /* of the first of them */
	uint8_t packet[CONTROL_UMAD_DATAGRAM];
};

#endif
