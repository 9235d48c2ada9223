/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire of an Ethernet port: RoCEv2 datagrams in and out.
 *
 * Out: ibv_post_send() delivers to neighbours in memory as ever; for who is elsewhere it adds
 * the message to its queue pair's batch, which goes out, one system call, before it returns.
 *
 * In: a port has one socket for each IP version, and every process that has the HCA open has
 * duplicates of them, as has the manager. Whoever polls a CQ and finds nothing takes a batch
 * in, for all: into memory of his own, where it is checked; then each message goes into a
 * payload slot of his and by hca_deliver() to whom it is for, in whatever process that is. So the
 * wire is received once, by someone who is awake, and nobody else's thread is needed. When nobody
 * polls, the manager does the same.
 *
 * Complications. One at a time receives, so that a flow's packets stay in order: a word in
 * shared memory says who, and since when, as he may die or be stopped over it. The manager must
 * not be woken for each datagram that a polling process takes anyway: while somebody polls it
 * leaves the sockets alone, and who arms his CQ to sleep calls it back. And a receiver acts in
 * the name of a hidden queue pair: a sender like others when it is dead.
 *
 * Thread safety: any thread may call; one receives at a time.
 */
#ifndef HCA_WIRE_H
#define HCA_WIRE_H

#include "hca/hca.h"
#include "link/udp.h"
#include "wire/roce.h"

#define HCA_WIRE_SOURCES 16 /* sockets that send, by IP version: source ports to spread over */

#define HCA_WIRE_NO_SLOT UINT32_MAX

/* Nobody who polls looks seldomer than this, or the manager does it for him. */
#define HCA_WIRE_POLL_NS 1000000

struct hca_wire_batch;

struct hca_wire_source {
	int fd; /* -1: not opened yet */
	uint16_t port;
	uint8_t round; /* of the port's sockets when it was opened */
};

struct hca_wire {
	struct hca_process *process;
	uint32_t hca_handle; /* the manager's */
	uint32_t port;       /* index */
	struct shm_wire *shm;
	int wake_fd;
	struct hca_qp qp; /* hidden: whose claims and payload memory it is */
	/* receiving: under receive_lock */
	struct base_lock receive_lock;
	int receive_fd[2]; /* IPv4, IPv6; -1: there is none */
	uint8_t round;     /* of these sockets */
	unsigned busy;     /* the one that had something last */
	unsigned batch;    /* datagrams, or several joined, to ask for next */
	uint32_t polls;
	struct hca_ah group;   /* where the last message to a group went */
	struct ib_gid foreign; /* who sent the last one, no address of ours */
	uint32_t foreign_seq;  /* of the port's record then */
	struct link_udp_datagram datagram[LINK_UDP_BATCH];
	uint8_t *memory; /* where they come */
	struct {         /* of the batch just now */
		unsigned datagrams, packets, delivered;
		uint64_t bytes;
	} now;
	/* sending: under source_lock */
	struct base_lock source_lock;
	struct hca_wire_source source[2][HCA_WIRE_SOURCES];
	_Atomic bool one_by_one; /* messages leave so: nobody cuts larger pieces */
};

/* The wire of HCA @hca (index), which the process has open as @handle. 0 or -errno. */
int hca_wire_open(struct hca_process *p, uint32_t hca, uint32_t handle, struct hca_wire **wire);
void hca_wire_close(struct hca_wire *wire);

/*
 * Takes in what has come, if nobody else is at it. @again: the caller will look again soon, so
 * the manager need not. Whether anything was delivered to anybody.
 */
bool hca_wire_receive(struct hca_wire *wire, bool again);

/* Whether somebody looks at the sockets, or has and will soon again. */
bool hca_wire_is_polled(const struct hca_wire *wire);

/* The caller is about to sleep until something comes: the manager looks. */
void hca_wire_rest(struct hca_wire *wire);

/* Another process, dead now, may have been receiving in the name of wire QP index @writer. */
void hca_wire_release(struct shm_wire *shm, uint16_t writer);

/* The port's sockets as they are now: the device may have been away. Under receive_lock. */
void hca_wire_reopen(struct hca_wire *wire);

/* Gives them up, or the next manager would find the UDP port taken. Under receive_lock. */
void hca_wire_abandon(struct hca_wire *wire);

/* ---- wire_send.c ---- */

/*
 * A socket that sends by that IP version, number @i of several; *@port: the port from where.
 * The descriptor or -errno.
 */
int hca_wire_source(struct hca_wire *wire, bool is_ipv6, unsigned i, uint16_t *port);

/*
 * Adds the message to @qp's batch; it lies where @pkt says, and must stay there, if it is in a
 * payload slot, until hca_wire_flush(). With the send lock held.
 */
void hca_wire_send(struct hca_qp *qp, const struct hca_packet *pkt, uint32_t remote_qpn);

/*
 * Sends one message of nobody's queue pair, now. Its UDP source port is filled in. 0 or -errno:
 * see link_udp_send().
 */
int hca_wire_send_one(struct hca_wire *wire, struct wire_roce_packet *packet);

/* Sends the batch. With the send lock held. */
void hca_wire_flush(struct hca_qp *qp);

#endif
