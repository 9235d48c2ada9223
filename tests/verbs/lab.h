/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the programs in this folder: objects of the verbs library on hosts h1 to h4 of the
 * fabric that ctest starts, made in one call each, and messages between them.
 *
 * Whatever a call here makes is destroyed when its test ends, even by a failed
 * assertion: a test is LAB_CASE(name) { ... }, or a row LAB_TEST(name) of a table. A call that
 * fails, and a wait in vain (deadline.h), fails the test. For one thread, but for the calls that
 * say otherwise.
 */
#ifndef TESTS_VERBS_LAB_H
#define TESTS_VERBS_LAB_H

#include "harness.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define LAB_SECONDS 120 /* for work that takes long on a busy machine */
#define LAB_QKEY    0x11111111
#define LAB_MCAST   0xFFFFFF /* the QP number that multicast is sent to */
#define LAB_GRH     40
#define LAB_MTU     4096
#define LAB_SLOTS   128 /* receives that an end has memory for */
#define LAB_SLOT    (LAB_GRH + LAB_MTU)

#define LAB_CASE(name) CASE_WITH(name, NULL, lab_clean_up)
#define LAB_TEST(name) cmocka_unit_test_teardown(name, lab_clean_up)
#define LAB_ARRAY(a)   (sizeof(a) / sizeof((a)[0]))

/* ---- objects ---- */

/* Undoes what is below, newest first. cmocka calls it. */
int lab_clean_up(void **state);

/* Calls undo(object) at the end, unless the test forgets it: it has destroyed it itself. */
void lab_undo(void (*undo)(void *object), void *object);
void lab_forget(void *object);

/* The device of host @host, from 1. It stays valid. */
struct ibv_device *lab_device(int host);
struct ibv_context *lab_open(int host);
struct ibv_pd *lab_pd(struct ibv_context *context);
struct ibv_comp_channel *lab_channel(struct ibv_context *context);
struct ibv_cq *lab_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel);
struct ibv_mr *lab_mr(struct ibv_pd *pd, void *memory, size_t bytes);
struct ibv_ah *lab_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr);

/* A UD queue pair as @init says, in RESET. */
struct ibv_qp *lab_qp(struct ibv_pd *pd, const struct ibv_qp_init_attr *init);

/* Moves it: RESET to INIT, INIT to RTR, RTR to RTS; or from RESET through all three. */
void lab_to_init(struct ibv_qp *qp, uint32_t qkey);
void lab_to_rtr(struct ibv_qp *qp);
void lab_to_rts(struct ibv_qp *qp);
void lab_start(struct ibv_qp *qp, uint32_t qkey);
void lab_to(struct ibv_qp *qp, enum ibv_qp_state state); /* nothing but the state */
/* RC, UC or XRC, from RESET to RTS: connected to number @peer at port 1 of device @there. Of XRC,
 * attributes of the side that it does not have are given, too: they mean nothing. */
void lab_connect(struct ibv_qp *qp, uint32_t peer, struct ibv_context *there, unsigned access);
/* Likewise, with packets of another size. */
void lab_connect_mtu(struct ibv_qp *qp, uint32_t peer, struct ibv_context *there, unsigned access,
                     enum ibv_mtu mtu);
enum ibv_qp_state lab_state(struct ibv_qp *qp);

/* MGID number @n that nobody joins: for what attachments do by themselves. */
union ibv_gid lab_mgid(unsigned n);
void lab_attach(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t mlid);
void lab_detach(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t mlid);

/* ---- ends: a queue pair with all it needs ---- */

struct lab_options {
	int host;                  /* 1 if not said */
	struct ibv_qp_cap cap;     /* what is 0 becomes LAB_SLOTS requests, 4 entries, 64 bytes */
	uint32_t create_flags;     /* needs ibv_create_qp_ex() */
	uint64_t send_ops;         /* for ibv_wr_start() */
	int cqe;                   /* of both CQs; 4 * LAB_SLOTS if not said */
	uint32_t qkey;             /* LAB_QKEY if not said */
	bool channel;              /* the receives' CQ has one */
	bool signal_all;           /* sq_sig_all */
	bool reset;                /* leave it in RESET */
	struct lab_end *neighbour; /* share context, PD, channel and CQs with this end */
};

struct lab_end {
	int host;
	uint32_t qkey;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* or NULL */
	struct ibv_cq *send_cq, *cq;      /* the channel, if any, is cq's: of receives */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *slot;      /* LAB_SLOTS receive buffers of LAB_SLOT bytes */
	char *out;       /* LAB_SLOT bytes to send from */
	unsigned posted; /* receives; they take the slots in turn */
};

/* An end in RTS, or as @options say; it can be used until the test ends. */
struct lab_end *lab_end(int host);
struct lab_end *lab_end_with(const struct lab_options *options);

/* Address handles from one end to another: by LID, by LID and GID. */
/* Takes the link of the host's port 1 down, or up, and waits until the port's state says so. */
void lab_link(int host, bool up);
/* The path from any port to port 1 of that device. */
struct ibv_ah_attr lab_path(struct ibv_context *to);
struct ibv_ah_attr lab_attr_to(const struct lab_end *to);
struct ibv_ah_attr lab_attr_global(const struct lab_end *to);
struct ibv_ah *lab_ah_to(struct lab_end *from, const struct lab_end *to);

/* ---- messages ---- */

struct lab_message {
	struct ibv_wc wc;
	const char *grh;  /* LAB_GRH bytes */
	const char *data; /* behind it */
	uint32_t length;  /* of data */
};

/* Exactly @n completions. Any thread may call, with a CQ of its own. */
void lab_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);

/* The next completion, which must have this status. */
struct ibv_wc lab_complete(struct ibv_cq *cq, enum ibv_wc_status status);

void lab_set_nonblocking(int fd);

/* Until a thread of this process, once it has said which, sleeps. */
void lab_await_sleep(_Atomic pid_t *tid);

/* Until the descriptor, of events of any kind, can be read. */
#define lab_await(fd) lab_await_at(fd, __FILE__, __LINE__)
void lab_await_at(int fd, const char *file, int line);

/* The next asynchronous event, acknowledged; nothing else may come before. */
struct ibv_async_event lab_async_event(struct ibv_context *context, enum ibv_event_type type);

/* Nothing waits in the CQ. */
void lab_quiet(struct ibv_cq *cq);

/* Posts @n receives of a slot each; wr_id is the slot's number. */
void lab_post(struct lab_end *e, unsigned n);
int lab_try_post(struct lab_end *e, uint64_t wr_id);

/* A signalled request that sends @bytes of @data (copied to e->out; NULL: what is there). */
struct lab_request {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};
void lab_request(struct lab_end *e, struct lab_request *r, struct ibv_ah *ah, uint32_t qpn,
                 const void *data, uint32_t bytes);

/* Sends it and takes its completion, which must be a success. */
void lab_send(struct lab_end *e, struct ibv_ah *ah, uint32_t qpn, const void *data, uint32_t bytes);
void lab_send_text(struct lab_end *e, struct ibv_ah *ah, uint32_t qpn, const char *text);
void lab_send_request(struct lab_end *e, struct lab_request *r);

/* A send that fails, which moves the queue to SQE; and from whatever state to @state. */
void lab_fail_a_send(struct lab_end *e);
void lab_bring_to(struct lab_end *e, int state);

/* The next message, which must be received without error. */
struct lab_message lab_receive(struct lab_end *e);
void lab_expect(struct lab_end *e, const void *data, uint32_t bytes);
void lab_expect_text(struct lab_end *e, const char *text);

/* Nothing has come: proven by a message from @from, which is the next to arrive. */
void lab_expect_nothing(struct lab_end *e, struct lab_end *from);

/* ---- groups ---- */

struct lab_group {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_in address;
	struct ibv_ah_attr attr;
	union ibv_gid mgid;
	uint16_t mlid;
	uint32_t qkey;
};

/* Host @host joins the IPv4 group as a full member, or as a sender only. */
struct lab_group *lab_join(int host, const char *address);
struct lab_group *lab_join_send_only(int host, const char *address);
void lab_leave(struct lab_group *g);

/* An address handle to the group, of this end. */
struct ibv_ah *lab_ah_group(struct lab_end *e, const struct lab_group *g);

/* ---- what the fabric counts ---- */

/* Of the port of host @host, as `umbel show counters --json` names it. */
uint64_t lab_counter(int host, const char *name);

/* The sum of those of all ports, of hosts and switches. */
uint64_t lab_fabric_counter(const char *name);

/* A number of `umbel status --json`; and waits until it is @value. */
uint64_t lab_status(const char *name);
void lab_await_status(const char *name, uint64_t value);

#endif
