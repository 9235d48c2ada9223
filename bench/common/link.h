/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A link is a way for messages from one process to another: what is compared. Each
 * kind is a table of operations; the loops that measure know nothing else of it.
 * Both copies are made by each: from the sender's buffer, and into the receiver's.
 *
 *	ring		a raw single-producer ring in shared memory: the floor
 *	udp		UDP multicast sockets, sendmmsg() and recvmmsg(); over loopback, or between
 *			the two sides' network devices
 *	eventfd		no message, only a wake-up
 *	umbel		ibv_post_send() to a multicast group, ibv_poll_cq()
 *	roce		the same on RoCEv2, between the two sides' network devices
 *	umbel-wr	the same with ibv_wr_*() and an extended CQ
 *	umbel-event	the same as umbel, but the receiver sleeps on a completion channel
 *	rc-send		SEND and RECV between two RC queue pairs; with network devices, on RoCEv2
 *			between them
 *	rc-write	RDMA WRITE between them, to memory that the receiver looks at
 *	tcp		a TCP connection between the two sides' network devices
 */
#ifndef BENCH_COMMON_LINK_H
#define BENCH_COMMON_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct bench_spec {
	uint32_t bytes;
	unsigned depth;         /* messages under way, at most; a power of two */
	const char *address[2]; /* hosts of the two sides */
	const char *device;     /* the network device of either side; NULL: loopback */
	unsigned idle_qps;      /* Umbel: further queue pairs on the receive CQ */
	bool has_srq;           /* RC: receives are those of a shared receive queue */
	unsigned index;         /* tells links of one process apart */
};

struct bench_link_ops {
	const char *name;
	unsigned exchanges; /* there and back, in a sample of latency */
	unsigned messages;  /* of 64 bytes, in a sample of rate */
	/* Makes the memory that both sides share, before the fork. */
	void *(*prepare)(const struct bench_spec *spec);
	void *(*open)(void *shared, const struct bench_spec *spec, int side);
	void (*send)(void *link, unsigned n);
	/* Called while the receiver has no room. NULL: there is nothing to do. */
	void (*wait)(void *link);
	/* Looks once (a link that sleeps: until there is one). How many came, up to @max. */
	unsigned (*receive)(void *link, unsigned max);
	/* Lets the sender have the room of what was received. */
	void (*settle)(void *link);
	void (*close)(void *link);
};

/* NULL: no link has that name. */
const struct bench_link_ops *bench_link_find(const char *name);

extern const struct bench_link_ops bench_ring_ops, bench_udp_ops, bench_eventfd_ops;
extern const struct bench_link_ops bench_verbs_ops, bench_wr_ops, bench_event_ops;
extern const struct bench_link_ops bench_roce_ops, bench_rc_send_ops, bench_rc_write_ops;
extern const struct bench_link_ops bench_tcp_ops;

#endif
