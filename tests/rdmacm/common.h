/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the programs of this folder: an identifier with its channel and, if wanted, a UD
 * QP with a buffer, on one of the four hosts that `umbel run --hosts 4` gives. They use
 * the public API alone and would run on hardware with these addresses. Calls that must
 * work stop the test if they do not.
 */
#ifndef TESTS_RDMACM_COMMON_H
#define TESTS_RDMACM_COMMON_H

#include "harness.h"

#include <rdma/rdma_cma.h>
#include <infiniband/ib.h>

#include "deadline.h"

#define UNUSED    __attribute__((unused))
#define UDP_QKEY  0x01234567
#define GRH_BYTES 40
#define MESSAGE   64
#define RECEIVES  16
#define LATER_S   20

#define assert_fails(call, err)               \
	do {                                  \
		errno = 0;                    \
		assert_int_equal(call, -1);   \
		assert_int_equal(errno, err); \
	} while (0)

#define assert_event(event_, type_, status_)                                  \
	do {                                                                  \
		assert_string_equal(rdma_event_str((event_)->event), #type_); \
		assert_int_equal((event_)->status, status_);                  \
	} while (0)

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
	struct sockaddr_storage storage;
};

static UNUSED union address address(const char *text, uint16_t port)
{
	union address a;

	memset(&a, 0, sizeof(a));
	if (inet_pton(AF_INET, text, &a.in.sin_addr) == 1) {
		a.in.sin_family = AF_INET;
		a.in.sin_port = htons(port);
		return a;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
	a.in6.sin6_family = AF_INET6;
	a.in6.sin6_port = htons(port);
	return a;
}

/* The address of a host, h1 and so on. */
static UNUSED union address host_address(unsigned host, uint16_t port)
{
	char text[INET_ADDRSTRLEN];

	snprintf(text, sizeof(text), "10.0.0.%u", host);
	return address(text, port);
}

/* ---- calls that are to return ---- */

static UNUSED const char *expected_soon;

static UNUSED void too_late(int signal)
{
	(void)signal;
	dprintf(STDERR_FILENO, "waited %d s: %s\n", LATER_S, expected_soon);
	_exit(1);
}

/* The calls that follow return before long. NULL: they have. */
static UNUSED void expect_soon(const char *what)
{
	const struct sigaction action = { .sa_handler = too_late };

	expected_soon = what;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	alarm(what ? LATER_S : 0);
}

/* ---- an identifier ---- */

struct node {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	char *buffer; /* RECEIVES + 1 messages, the last one to send */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	const char *group; /* joined by join(), for node_close() to leave */
	struct ibv_wc own; /* of a message of its own, which came before the send completed */
	bool has_own;
};

static UNUSED struct node node_open(enum rdma_port_space ps)
{
	struct node n = { .channel = rdma_create_event_channel() };

	assert_non_null(n.channel);
	assert_int_equal(rdma_create_id(n.channel, &n.id, NULL, ps), 0);
	return n;
}

static UNUSED void node_bind(struct node *n, unsigned host, uint16_t port)
{
	union address a = host_address(host, port);

	assert_int_equal(rdma_bind_addr(n->id, &a.sa), 0);
}

/* A UD QP that has posted RECEIVES receives. */
static UNUSED void node_qp(struct node *n, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 4,
		         .max_recv_wr = RECEIVES,
		         .max_send_sge = 1,
		         .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.comp_mask =
		        IBV_QP_INIT_ATTR_PD | (create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0),
		.pd = n->id->pd,
		.create_flags = create_flags,
	};

	assert_non_null(n->cq = ibv_create_cq(n->id->verbs, 2 * RECEIVES, NULL, NULL, 0));
	attr.send_cq = attr.recv_cq = n->cq;
	assert_int_equal(rdma_create_qp_ex(n->id, &attr), 0);
	n->buffer = calloc(RECEIVES + 1, GRH_BYTES + MESSAGE);
	assert_non_null(n->mr = ibv_reg_mr(n->id->pd, n->buffer,
	                                   (RECEIVES + 1) * (GRH_BYTES + MESSAGE),
	                                   IBV_ACCESS_LOCAL_WRITE));
	for (unsigned i = 0; i < RECEIVES; i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)n->buffer + i * (GRH_BYTES + MESSAGE),
			               .length = GRH_BYTES + MESSAGE,
			               .lkey = n->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		assert_int_equal(ibv_post_recv(n->id->qp, &wr, &bad), 0);
	}
}

/* ---- events ---- */

#define next_event(node) next_event_at(node, __FILE__, __LINE__)
static UNUSED struct rdma_cm_event *next_event_at(struct node *n, const char *file, int line)
{
	struct rdma_cm_event *e;

	deadline_await(n->channel->fd, "an event of rdma_cm", file, line);
	assert_int_equal(rdma_get_cm_event(n->channel, &e), 0);
	return e;
}

#define expect_event(node, type)                                 \
	do {                                                     \
		struct rdma_cm_event *event_ = next_event(node); \
                                                                 \
		assert_event(event_, type, 0);                   \
		assert_int_equal(rdma_ack_cm_event(event_), 0);  \
	} while (0)

static UNUSED void assert_no_event(const struct node *n)
{
	struct pollfd p = { .fd = n->channel->fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 0), 0);
}

/* Resolves the address of a host, and the route to it. */
static UNUSED void node_resolve(struct node *n, unsigned host, uint16_t port)
{
	union address a = host_address(host, port);

	assert_int_equal(rdma_resolve_addr(n->id, NULL, &a.sa, 1000), 0);
	expect_event(n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(n->id, 1000), 0);
	expect_event(n, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* ---- groups ---- */

static UNUSED int join_with(struct node *n, const char *group, uint32_t flags, void *context)
{
	union address a = address(group, 0);
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = &a.sa,
	};

	return rdma_join_multicast_ex(n->id, &attr, context);
}

/* Joins, and returns what the event says. */
static UNUSED struct rdma_ud_param join(struct node *n, const char *group)
{
	struct rdma_ud_param ud;
	struct rdma_cm_event *e;

	assert_int_equal(join_with(n, group, RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL), 0);
	e = next_event(n);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ud = e->param.ud;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	n->group = group;
	return ud;
}

static UNUSED int leave(struct node *n, const char *group)
{
	union address a = address(group, 0);
	int ret = rdma_leave_multicast(n->id, &a.sa);

	if (!ret && n->group && !strcmp(n->group, group))
		n->group = NULL;
	return ret;
}

static UNUSED void assert_no_own(const struct node *n)
{
	if (n->has_own)
		fail_msg("the sender got a message where none was expected");
}

static UNUSED void node_close(struct node *n)
{
	if (n->group)
		assert_int_equal(leave(n, n->group), 0);
	if (n->id->qp)
		rdma_destroy_qp(n->id); /* which fails in silence while it is attached */
	if (n->mr)
		assert_int_equal(ibv_dereg_mr(n->mr), 0);
	if (n->cq)
		assert_int_equal(ibv_destroy_cq(n->cq), 0);
	free(n->buffer);
	assert_int_equal(rdma_destroy_id(n->id), 0);
	rdma_destroy_event_channel(n->channel);
}

/* struct node CLOSED n = ...: it is closed when its block ends; the last one first. */
#define CLOSED __attribute__((cleanup(node_close)))

/* Posted requests go by shared memory from then on, as with a program that lives longer. That comes
 * with a request that waits: before the daemon is stopped. */
static UNUSED void post_much(void)
{
	struct node n = node_open(RDMA_PS_TCP);
	union address a = host_address(2, 1);

	for (int i = 0; i < 40; i++) {
		assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
		expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_int_equal(rdma_destroy_id(n.id), 0);
		assert_int_equal(rdma_create_id(n.channel, &n.id, NULL, RDMA_PS_TCP), 0);
	}
	node_close(&n);
}

static UNUSED void assert_gid(const union ibv_gid *gid, const char *text)
{
	char got[INET6_ADDRSTRLEN];

	assert_non_null(inet_ntop(AF_INET6, gid->raw, got, sizeof(got)));
	assert_string_equal(got, text);
}

/* ---- messages ---- */

/* Sends a message and waits until it has gone; by then it has arrived where it does. The sender's
 * own copy may come before, and is for assert_received(). */
static UNUSED void send_to(struct node *n, const struct rdma_ud_param *to, const char *text)
{
	struct ibv_ah_attr attr = to->ah_attr;
	struct ibv_ah *ah = ibv_create_ah(n->id->pd, &attr);
	char *message = n->buffer + RECEIVES * (GRH_BYTES + MESSAGE);
	struct ibv_sge sge = { .addr = (uintptr_t)message, .length = MESSAGE, .lkey = n->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = RECEIVES,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr = { .ud = { .ah = ah, .remote_qpn = to->qp_num, .remote_qkey = to->qkey } }
	};
	struct ibv_send_wr *bad;
	struct deadline deadline = { 0 };
	struct ibv_wc wc;
	int done;

	assert_non_null(ah);
	snprintf(message, MESSAGE, "%s", text);
	assert_int_equal(ibv_post_send(n->id->qp, &wr, &bad), 0);
	do {
		DEADLINE_LOOK(&deadline, "the completion of a send");
		done = ibv_poll_cq(n->cq, 1, &wc);
		assert_true(done >= 0);
		if (done && wc.wr_id != RECEIVES) {
			assert_no_own(n);
			n->own = wc;
			n->has_own = true;
		}
	} while (!done || wc.wr_id != RECEIVES);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* The queue's next completion. */
#define next_completion(cq) next_completion_at(cq, __FILE__, __LINE__)
static UNUSED struct ibv_wc next_completion_at(struct ibv_cq *cq, const char *file, int line)
{
	struct deadline deadline = { 0 };
	struct ibv_wc wc;
	int done;

	while (!(done = ibv_poll_cq(cq, 1, &wc)))
		deadline_look(&deadline, "a completion", file, line);
	assert_int_equal(done, 1);
	return wc;
}

#define assert_received(node, text) assert_received_at(node, text, __FILE__, __LINE__)
static UNUSED void assert_received_at(struct node *n, const char *text, const char *file, int line)
{
	const struct ibv_wc wc = n->has_own ? n->own : next_completion_at(n->cq, file, line);

	n->has_own = false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_string_equal(n->buffer + wc.wr_id * (GRH_BYTES + MESSAGE) + GRH_BYTES, text);
}

static UNUSED void assert_nothing_received(struct node *n)
{
	struct ibv_wc wc;

	assert_no_own(n);
	assert_int_equal(ibv_poll_cq(n->cq, 1, &wc), 0);
}

#endif
