/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sender delivers packets. Each queue pair has one. In each process an open Ethernet port has
 * one, too, for packets that it receives from the network and delivers to processes of this fabric.
 * When a process dies, the daemon uses the sender's queue pair number to find its claims and their
 * rings (struct shm_sender), its flows and its payload memory.
 *
 * Not thread-safe: callers hold the lock of its owner (a queue pair's send lock, a port's receive
 * lock).
 */
#ifndef HCA_SENDER_H
#define HCA_SENDER_H

#include <sys/queue.h>

#include "base/hash.h"
#include "hca/process/process.h"

struct hca_link;
struct hca_payload;
struct hca_roce_batch;
struct hca_roce_path;

/* Its payload memory: payload.h. */
struct hca_payloads {
	struct hca_payload *slot;
	uint32_t n;
	uint32_t window; /* slots [0, window) are used in turn */
	uint32_t cursor;
	uint32_t max_pinned; /* slots that a link may be sending at one time */
	bool leased;         /* shm_sender.payload_lease is IN_USE */
	bool crowded;        /* in this round a slot was still in use when its turn came */
	uint64_t looks;      /* how often we have looked at a receiver's ring */
	struct hca_payload_seen *seen;
};

struct hca_sender {
	struct hca_process *process;
	struct shm_sender *shm;
	uint32_t qpn;
	uint32_t port;                   /* index in the shared port table */
	const struct shm_port *port_is;  /* its record; a queue pair has one from INIT on */
	struct base_hash flows;          /* struct hca_flow, by destination */
	TAILQ_HEAD(, hca_flow) eviction; /* the same, the next one to be looked at first */
	uint32_t new_flows;              /* since those were evicted that reach nobody */
	struct hca_payloads payloads;
	struct hca_link *network;     /* of the port; NULL: it is an InfiniBand port */
	struct hca_roce_path *path;   /* where the last one went that the network link has sent;
	                                 NULL: there were never any */
	struct hca_roce_batch *batch; /* packets that the network link has yet to send; NULL: none
	                               */
	uint32_t psn;                 /* of the next packet to the network */
	bool unfinished; /* has a batch or a lease: a post ends with hca_sender_finish() */
};

#endif
