/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The traffic between both ends of an RC connection of two hosts in tests: all that RC does, in one
 * order, WRITE, READ, SEND, FETCH_ADD, WRITE with immediate, atomic WRITE, FLUSH. All that arrives
 * is checked, and in the end whether all of it is there, once. An end that finds something wrong
 * says so and ends the process. A thread has one connection at a time.
 */
#ifndef TESTS_ROCE_WIRE_TRAFFIC_H
#define TESTS_ROCE_WIRE_TRAFFIC_H

#include "posix.h"

#include <infiniband/verbs.h>

#define TRAFFIC_STALL_NS 20000000000 /* nothing may take so long, on a busy machine neither */

/* How far a process is, for its survivors. */
struct traffic_log {
	_Atomic uint64_t posted, done; /* requests */
};

struct traffic_address {
	union ibv_gid gid;
	uint64_t memory;
	uint32_t rkey, qpn;
};

struct traffic {
	bool is_peer;
	int other; /* TCP */
	uint8_t timeout, retries;
	bool sleeps;
	bool may_lose_device;    /* then calls may fail with EIO */
	struct traffic_log *log; /* NULL: nobody wants to know */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct traffic_address here, there;
	uint64_t posted, done, received; /* requests, messages */
	uint64_t receives;               /* posted less completed */
	uint64_t flushed;                /* requests that failed */
	enum ibv_wc_status status;       /* of the first of them */
	uint64_t failed_ns;              /* when that was seen; 0: none has failed */
	uint64_t began_ns;
	bool found;         /* a poll has found something since the last look at the clock, */
	uint64_t looked_ns; /* which was then */
	uint64_t found_ns;  /* such a look before which one had */
	uint64_t away_ns;   /* the longest time between looks */
	bool is_gone;       /* the other one has closed its TCP */
	unsigned looks;
};

/* Complaints begin with this. */
extern char traffic_name[64];

/* A call has failed, with errno, unless @ok. */
void traffic_check(bool ok, const char *what);
void traffic_wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

uint64_t traffic_mix(uint64_t z);

/* The only device: once. */
void traffic_open_device(struct traffic *t);
/* Memory and a queue pair in INIT; one at a time. */
void traffic_open(struct traffic *t);
void traffic_connect(struct traffic *t);
void traffic_close(struct traffic *t);

/* By TCP. False: the other one is gone. */
bool traffic_hear(int fd, void *bytes, size_t length);
bool traffic_tell(int fd, const void *bytes, size_t length);
/* Both tell their addresses. */
bool traffic_meet(struct traffic *t);

/* Polls, or sleeps for a while. Whether the other one has said something, or has gone. */
bool traffic_look(struct traffic *t);
/* Sends until the other one tells how many requests it has sent, or *@ends says so, or a request
 * fails; and up to the last completion. */
void traffic_run(struct traffic *t, uint64_t *theirs, const _Atomic uint32_t *ends);
/* That a receiver sees of so many requests. */
uint64_t traffic_messages_in(uint64_t n);
/* The memory is what the first @n of the other end's requests have made of it; or if @n is less
 * than @most, up to so many, the last WRITE of them perhaps in part. */
void traffic_expect(bool of_peer, uint64_t n, uint64_t most);

#endif
