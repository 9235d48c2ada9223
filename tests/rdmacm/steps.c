/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which calls wait for the daemon, and which do not: the steps whose outcome is an event, and the
 * end of a connection. Where a call must not wait, the daemon is stopped meanwhile.
 */
#include "daemon.h"
#include "../qp_states.h"

#define PORT  7300
#define BYTES 64

static int setup(void **state)
{
	(void)state;
	post_much();
	return 0;
}

/* The daemon does nothing while @call is made, so it must not wait. */
#define without_daemon(node, call)            \
	do {                                  \
		stop_daemon((node)->channel); \
		assert_int_equal(call, 0);    \
		continue_daemon();            \
	} while (0)

static void umbel(const char *command)
{
	char text[128];

	snprintf(text, sizeof(text), "umbel %s", command);
	if (system(text))
		fail_msg("it fails: %s", text);
}

/* ---- steps ---- */

/* Host 1 knows host 2's address. */
static struct node resolved(void)
{
	struct node n = node_open(RDMA_PS_TCP);
	union address a = host_address(2, PORT);

	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	return n;
}

static void wait_readable(const struct node *n)
{
	struct pollfd p = { .fd = n->channel->fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 10000), 1);
}

static struct rdma_conn_param no_param(void)
{
	return (struct rdma_conn_param){ .retry_count = 7, .rnr_retry_count = 7, .qp_num = 1 };
}

/* Nobody listens: the request has come there and will not come to a listener of the next case. */
static void expect_nobody(struct node *n)
{
	struct rdma_cm_event *e = next_event(n);

	assert_event(e, RDMA_CM_EVENT_REJECTED, 8);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

CASE_WITH(steps_do_not_wait, NULL, leave_daemon_running)
{
	struct rdma_conn_param param = no_param();
	struct node CLOSED n = resolved();

	without_daemon(&n, rdma_resolve_route(n.id, 1000));
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	without_daemon(&n, rdma_connect(n.id, &param));
	expect_nobody(&n);
}

/* Where others have been before. */
CASE_WITH(resolving_does_not_wait, NULL, leave_daemon_running)
{
	union address a = host_address(2, PORT);
	struct node CLOSED n = resolved();
	struct rdma_cm_id *before = n.id;

	stop_daemon(n.channel);
	assert_int_equal(rdma_create_id(n.channel, &n.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	assert_int_equal(rdma_destroy_id(before), 0);
	continue_daemon();
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_string_equal(ibv_get_device_name(n.id->verbs->device), "umbel_h1_0");
	without_daemon(&n, rdma_resolve_route(n.id, 1000));
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

CASE_WITH(who_gives_up_at_once_does_not_wait, NULL, leave_daemon_running)
{
	union address a = host_address(2, PORT);
	struct node CLOSED n = resolved();
	struct rdma_cm_id *id;

	stop_daemon(n.channel);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(rdma_create_id(n.channel, &id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, &a.sa, 1000), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	continue_daemon();
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_no_event(&n);
}

/* Though the same was resolved before, by identifiers that could. */
CASE_WITH(what_cannot_be_resolved_is_said_at_once, NULL, leave_daemon_running)
{
	union address to = host_address(2, PORT), from = host_address(1, 0);
	union address taken = host_address(1, PORT + 1);
	struct node CLOSED n = node_open(RDMA_PS_TCP), other = node_open(RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addr(n.id, &from.sa, &to.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_fails(rdma_resolve_addr(n.id, &from.sa, &to.sa, 1000), EINVAL);
	node_bind(&other, 1, PORT + 1);
	assert_int_equal(rdma_destroy_id(n.id), 0);
	assert_int_equal(rdma_create_id(n.channel, &n.id, NULL, RDMA_PS_TCP), 0);
	assert_fails(rdma_resolve_addr(n.id, &taken.sa, &to.sa, 1000), EADDRINUSE);
	assert_int_equal(rdma_resolve_addr(n.id, &from.sa, &to.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_no_event(&n);
}

CASE_WITH(a_step_too_many_is_said_at_once, NULL, leave_daemon_running)
{
	struct rdma_conn_param param = no_param();
	struct node CLOSED n = resolved();

	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	assert_fails(rdma_resolve_route(n.id, 1000), EINVAL);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(n.id, &param), 0);
	assert_fails(rdma_connect(n.id, &param), EINVAL);
	expect_nobody(&n);
}

CASE_WITH(what_is_wrong_is_said_at_once, NULL, leave_daemon_running)
{
	struct rdma_conn_param param = no_param();
	struct node CLOSED n = resolved();
	char much[57] = { 0 };

	assert_fails(rdma_connect(n.id, &param), EINVAL);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	param.private_data = much;
	param.private_data_len = sizeof(much);
	assert_fails(rdma_connect(n.id, &param), EINVAL);
	param.private_data_len--;
	assert_int_equal(rdma_connect(n.id, &param), 0);
	expect_nobody(&n);
}

/* An event that comes late says nothing of what was asked for since. */
CASE_WITH(a_late_event_is_no_step, NULL, leave_daemon_running)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);
	union address a = host_address(2, PORT);

	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	wait_readable(&n);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_fails(rdma_resolve_route(n.id, 1000), EINVAL);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

CASE_WITH(a_port_that_is_down_is_said_at_once, NULL, leave_daemon_running)
{
	struct node CLOSED n = resolved();

	umbel("link down h1:1");
	assert_fails(rdma_resolve_route(n.id, 1000), EAGAIN);
	umbel("link up h1:1");
	while (rdma_resolve_route(n.id, 1000))
		assert_int_equal(errno, EAGAIN);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* Steps are served in the order in which they were asked for. */
CASE_WITH(what_is_under_way_goes_with_its_identifier, NULL, leave_daemon_running)
{
	struct node n = resolved(), other = resolved();

	assert_int_equal(rdma_migrate_id(other.id, n.channel), 0);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	assert_int_equal(rdma_destroy_id(n.id), 0);
	assert_no_event(&n);
	assert_int_equal(rdma_resolve_route(other.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_destroy_id(other.id), 0);
	rdma_destroy_event_channel(n.channel);
	rdma_destroy_event_channel(other.channel);
}

CASE_WITH(what_is_under_way_moves_with_its_identifier, NULL, leave_daemon_running)
{
	struct node from = resolved(), to = { .channel = rdma_create_event_channel() };

	assert_int_equal(rdma_resolve_route(from.id, 1000), 0);
	assert_int_equal(rdma_migrate_id(from.id, to.channel), 0);
	assert_no_event(&from);
	to.id = from.id;
	expect_event(&to, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_destroy_event_channel(from.channel);
	node_close(&to);
}

CASE_WITH(a_child_has_no_part_in_its_parent_s_identifiers, NULL, leave_daemon_running)
{
	struct node CLOSED n = resolved();
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(rdma_resolve_route(n.id, 1000) && errno == EINVAL ? 0 : 1);
	harness_expect_success(child);
	assert_no_event(&n);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* ---- a connection ---- */

/* Two queue pairs that are connected, and a piece of memory each, which the other one may write. */
struct pair {
	struct node listener, client;
	struct rdma_cm_id *server;
	struct ibv_mr *mr[2]; /* the client's, the server's */
	char memory[2][BYTES];
};

/* @cq: NULL: it gets its own. */
static void make_qp_on(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1
	};

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static struct ibv_mr *make_qp(struct rdma_cm_id *id, char *memory)
{
	struct ibv_mr *mr;

	make_qp_on(id, NULL);
	assert_non_null(mr = ibv_reg_mr(id->pd, memory, BYTES,
	                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	return mr;
}

static void post_receive(struct rdma_cm_id *id, struct ibv_mr *mr)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr, .length = BYTES, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(id->qp, &wr, &bad), 0);
}

/* Fills memory of the server with @byte, by the client. */
static void post_work(struct pair *p, enum ibv_wr_opcode opcode, int byte)
{
	struct ibv_sge sge = { (uintptr_t)p->memory[0], BYTES, p->mr[0]->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = opcode,
		                  .wr.rdma = { (uintptr_t)p->memory[1], p->mr[1]->rkey } },
	                   *bad;

	memset(p->memory[0], byte, BYTES);
	assert_int_equal(ibv_post_send(p->client.id->qp, &wr, &bad), 0);
}

/* Fills memory of the client, by the server. */
static void post_write(struct rdma_cm_id *server, struct pair *p, int byte)
{
	struct ibv_sge sge = { (uintptr_t)p->memory[1], BYTES, p->mr[1]->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_RDMA_WRITE,
		                  .wr.rdma = { (uintptr_t)p->memory[0], p->mr[0]->rkey } },
	                   *bad;

	memset(p->memory[1], byte, BYTES);
	assert_int_equal(ibv_post_send(server->qp, &wr, &bad), 0);
}

static enum ibv_wc_status wait_sent(struct pair *p)
{
	return next_completion(p->client.id->send_cq).status;
}

/* Until the server knows of the client. */
static void pair_begin(struct pair *p)
{
	struct rdma_conn_param param = no_param();
	struct rdma_cm_event *e;

	memset(p, 0, sizeof(*p));
	p->listener = node_open(RDMA_PS_TCP);
	node_bind(&p->listener, 2, PORT);
	assert_int_equal(rdma_listen(p->listener.id, 0), 0);
	p->client = resolved();
	assert_int_equal(rdma_resolve_route(p->client.id, 1000), 0);
	expect_event(&p->client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	p->mr[0] = make_qp(p->client.id, p->memory[0]);
	assert_int_equal(rdma_connect(p->client.id, &param), 0);
	e = next_event(&p->listener);
	assert_event(e, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	p->server = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

/* Until it can accept. */
static void pair_ask(struct pair *p)
{
	pair_begin(p);
	p->mr[1] = make_qp(p->server, p->memory[1]);
}

static void pair_open(struct pair *p)
{
	struct rdma_conn_param param = no_param();

	pair_ask(p);
	assert_int_equal(rdma_accept(p->server, &param), 0);
	expect_event(&p->client, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(&p->listener, RDMA_CM_EVENT_ESTABLISHED);
	post_work(p, IBV_WR_RDMA_WRITE, 1);
	assert_int_equal(wait_sent(p), IBV_WC_SUCCESS);
	assert_int_equal(p->memory[1][BYTES - 1], 1);
}

static void pair_close(struct pair *p)
{
	rdma_destroy_qp(p->client.id);
	rdma_destroy_qp(p->server);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_dereg_mr(p->mr[i]), 0);
	assert_int_equal(rdma_destroy_id(p->server), 0);
	node_close(&p->client);
	node_close(&p->listener);
}

static void assert_unwritten(const struct pair *p)
{
	for (int i = 0; i < BYTES; i++)
		assert_int_equal(p->memory[1][i], 1);
}

/* ---- the beginning of a connection ---- */

CASE_WITH(accepting_does_not_wait, NULL, leave_daemon_running)
{
	struct rdma_conn_param param = no_param();
	struct pair p;

	pair_ask(&p);
	without_daemon(&p.client, rdma_accept(p.server, &param));
	assert_fails(rdma_accept(p.server, &param), EINVAL);
	pair_close(&p);
}

/* So many that some are reserved for the next one. */
static void make_many(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	for (unsigned i = 0; i < 10; i++) {
		make_qp_on(id, cq);
		rdma_destroy_qp(id);
	}
}

/* Nor does a program that makes a queue pair for that, one of many; and requests to the queue pair
 * at once are carried out, though the daemon knows nothing of it yet. */
CASE_WITH(making_a_queue_pair_of_many_does_not_wait, NULL, leave_daemon_running)
{
	struct rdma_conn_param param = no_param();
	struct ibv_cq *cq;
	struct pair p;
	pid_t waker;

	pair_begin(&p);
	p.mr[1] = make_qp(p.server, p.memory[1]);
	rdma_destroy_qp(p.server);
	assert_non_null(cq = ibv_create_cq(p.server->verbs, 64, NULL, NULL, 0));
	make_many(p.server, cq);
	stop_daemon(p.client.channel);
	make_qp_on(p.server, cq);
	post_receive(p.server, p.mr[1]);
	assert_int_equal(rdma_accept(p.server, &param), 0);
	waker = continue_daemon_soon(NULL);
	post_write(p.server, &p, 6); /* it waits for a path */
	assert_int_equal(waitpid(waker, NULL, 0), waker);
	expect_event(&p.client, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(&p.listener, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(next_completion(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(p.memory[0][BYTES - 1], 6);
	post_work(&p, IBV_WR_SEND, 7);
	assert_int_equal(wait_sent(&p), IBV_WC_SUCCESS);
	assert_int_equal(next_completion(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(p.memory[1][BYTES - 1], 7);
	pair_close(&p);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

CASE_WITH(what_is_wrong_with_accepting_is_said_at_once, NULL, leave_daemon_running)
{
	struct rdma_conn_param param = no_param();
	char much[197] = { 0 };
	struct pair p;

	pair_ask(&p);
	param.private_data = much;
	param.private_data_len = sizeof(much);
	assert_fails(rdma_accept(p.server, &param), EINVAL);
	pair_close(&p);
}

CASE_WITH(who_accepts_too_late_has_an_event, NULL, leave_daemon_running)
{
	struct rdma_conn_param param = no_param();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	struct pair p;

	pair_ask(&p);
	id = p.client.id;
	assert_int_equal(rdma_create_id(p.client.channel, &p.client.id, NULL, RDMA_PS_TCP), 0);
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_accept(p.server, &param), 0);
	e = next_event(&p.listener);
	assert_event(e, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
	assert_ptr_equal(e->id, p.server);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(ibv_query_qp(p.server->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_no_event(&p.listener);
	pair_close(&p);
}

/* The server has accepted, and the client can read that it is connected. */
static void pair_accept(struct pair *p)
{
	struct rdma_conn_param param = no_param();

	pair_ask(p);
	assert_int_equal(rdma_accept(p->server, &param), 0);
	wait_readable(&p->client);
}

/* ... nor does the client; and a request that is posted at once is carried out at once. */
CASE_WITH(establishing_does_not_wait, NULL, leave_daemon_running)
{
	struct pair p;
	pid_t waker;

	pair_accept(&p);
	stop_daemon(p.client.channel);
	expect_event(&p.client, RDMA_CM_EVENT_ESTABLISHED);
	waker = continue_daemon_soon(NULL);
	post_work(&p, IBV_WR_RDMA_WRITE, 4);
	assert_int_equal(p.memory[1][0], 4);
	assert_int_equal(p.memory[1][BYTES - 1], 4);
	assert_int_equal(wait_sent(&p), IBV_WC_SUCCESS);
	assert_int_equal(waitpid(waker, NULL, 0), waker);
	expect_event(&p.listener, RDMA_CM_EVENT_ESTABLISHED);
	pair_close(&p);
}

/* A request of the server, which does not wait for the client, goes on when the client is
 * connected. */
CASE_WITH(a_request_that_comes_early_goes_on, NULL, leave_daemon_running)
{
	struct deadline deadline = { 0 };
	struct pair p;
	pid_t waker;

	pair_accept(&p);
	post_write(p.server, &p, 5);
	assert_int_equal(p.memory[0][0], 0);
	stop_daemon(p.client.channel);
	waker = continue_daemon_soon(NULL);
	expect_event(&p.client, RDMA_CM_EVENT_ESTABLISHED);
	while (*(volatile char *)p.memory[0] != 5)
		DEADLINE_LOOK(&deadline, "the server's WRITE, which waited for the client");
	assert_int_equal(waitpid(waker, NULL, 0), waker);
	expect_event(&p.listener, RDMA_CM_EVENT_ESTABLISHED);
	pair_close(&p);
}

/* ---- the end of one ---- */

/* From when rdma_disconnect() returns, though the daemon has yet to hear of it. */
CASE_WITH(who_disconnects_lets_nothing_in, NULL, leave_daemon_running)
{
	struct pair p;

	pair_open(&p);
	post_receive(p.server, p.mr[1]);
	stop_daemon(p.client.channel);
	assert_int_equal(rdma_disconnect(p.server), 0);
	post_work(&p, IBV_WR_RDMA_WRITE, 2);
	assert_unwritten(&p);
	post_work(&p, IBV_WR_SEND, 3);
	assert_unwritten(&p);
	continue_daemon();
	expect_event(&p.client, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(p.client.id), 0);
	assert_int_equal(wait_sent(&p), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wait_sent(&p), IBV_WC_WR_FLUSH_ERR);
	assert_unwritten(&p);
	pair_close(&p);
}

/* ... nor when the queue pair is destroyed, or reset. */
CASE_WITH(who_has_disconnected_and_destroys_lets_nothing_in, NULL, leave_daemon_running)
{
	struct pair p;
	struct ibv_qp *qp;

	pair_open(&p);
	qp = p.server->qp;
	stop_daemon(p.client.channel);
	assert_int_equal(rdma_disconnect(p.server), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	p.server->qp = NULL;
	post_work(&p, IBV_WR_RDMA_WRITE, 2);
	assert_unwritten(&p);
	continue_daemon();
	expect_event(&p.client, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(p.client.id), 0);
	assert_unwritten(&p);
	pair_close(&p);
}

/* A queue pair that had ended can be connected anew. */
CASE_WITH(who_was_reset_is_let_in_again, NULL, leave_daemon_running)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR }, before;
	struct ibv_qp_init_attr init;
	struct pair p;

	pair_open(&p);
	assert_int_equal(ibv_query_qp(p.server->qp, &before, ~0, &init), 0);
	assert_int_equal(ibv_modify_qp(p.server->qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(ibv_modify_qp(p.server->qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(qp_to_init(p.server->qp, &before), 0);
	post_work(&p, IBV_WR_RDMA_WRITE, 2); /* it waits */
	assert_unwritten(&p);
	assert_int_equal(qp_to_rtr(p.server->qp, &before), 0);
	assert_int_equal(wait_sent(&p), IBV_WC_SUCCESS);
	assert_int_equal(p.memory[1][0], 2);
	pair_close(&p);
}

/* ---- processes ---- */

/* Whether that event comes next. A child makes no assertions: they would go on with its parent's
 * tests. */
static bool comes(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;
	bool as_expected;

	if (rdma_get_cm_event(channel, &e))
		return false;
	as_expected = e->event == type;
	return !rdma_ack_cm_event(e) && as_expected;
}

static bool connect_to_server(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_conn_param param = no_param();
	union address a = { .in = { .sin_family = AF_INET,
		                    .sin_port = htons(PORT),
		                    .sin_addr.s_addr = htonl(0x0A000002) } };
	struct rdma_cm_id *id;

	return channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) &&
	       !rdma_resolve_addr(id, NULL, &a.sa, 1000) &&
	       comes(channel, RDMA_CM_EVENT_ADDR_RESOLVED) && !rdma_resolve_route(id, 1000) &&
	       comes(channel, RDMA_CM_EVENT_ROUTE_RESOLVED) && !rdma_create_qp(id, NULL, &attr) &&
	       !rdma_connect(id, &param) && comes(channel, RDMA_CM_EVENT_ESTABLISHED);
}

/* A process that connects, and leaves a child behind, which lives until @hold has no other end. */
static void connect_and_leave_a_child(int hold)
{
	char byte;

	if (!connect_to_server())
		_exit(1);
	if (fork() == 0)
		while (read(hold, &byte, 1) > 0)
			;
	_exit(0);
}

CASE_WITH(a_child_keeps_its_parent_s_connections, NULL, leave_daemon_running)
{
	struct node CLOSED listener = node_open(RDMA_PS_TCP);
	struct rdma_conn_param param = no_param();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	char memory[BYTES];
	struct ibv_mr *mr;
	int hold[2];
	pid_t process;

	node_bind(&listener, 2, PORT);
	assert_int_equal(rdma_listen(listener.id, 0), 0);
	assert_int_equal(pipe(hold), 0);
	process = fork();
	assert_true(process >= 0);
	if (process == 0) {
		close(hold[1]);
		connect_and_leave_a_child(hold[0]);
	}
	close(hold[0]);
	e = next_event(&listener);
	assert_event(e, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	id = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	mr = make_qp(id, memory);
	assert_int_equal(rdma_accept(id, &param), 0);
	expect_event(&listener, RDMA_CM_EVENT_ESTABLISHED);
	harness_expect_success(process);
	umbel("status > /dev/null"); /* the daemon has heard of the end */
	assert_no_event(&listener);
	close(hold[1]);
	expect_event(&listener, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

int main(void)
{
	return harness_run(setup, NULL);
}
