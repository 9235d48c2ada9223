/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections: made, refused and ended; messages that get lost or come twice; deaths; what no
 * program should do.
 */
#include <harness.h>

#include "cm/testing.h"

#include "cm/conn.h"

#define PORT      7174
#define ASKER_QPN 0x000101
#define TAKER_QPN 0x000202
#define LONG_MS   200000 /* longer than all repetitions */

/* A listener on host 2, and somebody on host 1. */
struct ends {
	struct testing *t;
	struct cm_client *listening, *asking;
	uint32_t listener, asker;
	uint32_t taken; /* the identifier of the request */
};

/* An identifier on host 1 that knows the way there. */
static uint32_t make_asker(struct cm_client *c)
{
	struct control_cm_resolve_route route = { .timeout_ms = 1000 };
	uint32_t id = testing_id(c, RDMA_PS_TCP, 2);

	assert_int_equal(testing_resolve(c, id, "10.0.0.2", PORT), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	route.id = id;
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, route, NULL), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

static struct ends make_ends(struct testing *t, int backlog)
{
	struct ends e = { .t = t,
		          .listening = testing_client(t, 1),
		          .asking = testing_client(t, 0) };

	e.listener = testing_id(e.listening, RDMA_PS_TCP, 1);
	assert_int_equal(testing_bind(e.listening, e.listener, "10.0.0.2", PORT), 0);
	assert_int_equal(testing_listen(e.listening, e.listener, backlog), 0);
	e.asker = make_asker(e.asking);
	return e;
}

static void free_ends(struct ends *e)
{
	if (e->asking)
		cm_client_free(e->t->cm, e->asking);
	if (e->listening)
		cm_client_free(e->t->cm, e->listening);
}

static struct control_cm_connect connect_of(uint32_t id, uint32_t qpn, uint32_t bytes)
{
	struct control_cm_connect r = { .uid = 3, .id = id, .qp_num = qpn, .bytes = bytes };

	r.param = (struct control_cm_param){ .responder_resources = 4,
		                             .initiator_depth = 5,
		                             .flow_control = 1,
		                             .retry_count = 6,
		                             .rnr_retry_count = 7,
		                             .srq = 1,
		                             .ece_vendor = 0x0A0B0C,
		                             .ece_options = 0x01020304 };
	for (uint32_t i = 0; i < bytes && i < CONTROL_CM_PRIVATE; i++)
		r.private_data[i] = (uint8_t)(i + 1);
	return r;
}

static int ask(struct ends *e)
{
	struct control_cm_connect r = connect_of(e->asker, ASKER_QPN, 10);

	return REQUEST(e->asking, CONNECT, r, NULL);
}

static void take(struct ends *e)
{
	e->taken =
	        testing_expect(e->listening, e->listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0).new_id;
}

static int accept_taken(struct ends *e)
{
	struct control_cm_connect r = connect_of(e->taken, TAKER_QPN, 20);

	return REQUEST(e->listening, ACCEPT, r, NULL);
}

static int call(struct cm_client *c, uint32_t type, uint32_t id)
{
	struct control_cm_id request = { .id = id };

	return testing_request(c, type, &request, sizeof(request), NULL);
}

static void establish(struct ends *e)
{
	testing_expect(e->asking, e->asker, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(call(e->asking, CONTROL_CM_ESTABLISH, e->asker), 0);
}

static struct ends make_connection(struct testing *t)
{
	struct ends e = make_ends(t, 0);

	assert_int_equal(ask(&e), 0);
	take(&e);
	assert_int_equal(accept_taken(&e), 0);
	establish(&e);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_ESTABLISHED, 0);
	return e;
}

static struct control_cm_qp_reply query_qp(struct cm_client *c, uint32_t id)
{
	struct control_cm_id request = { .id = id };
	struct control_cm_qp_reply reply;

	assert_int_equal(REQUEST(c, QUERY_QP, request, &reply), 0);
	return reply;
}

static void assert_nothing(struct cm_client *c, uint32_t id)
{
	struct control_cm_event e;

	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
}

static enum cm_conn_state state_of(struct cm_client *c, uint32_t id)
{
	const struct cm_id *p = cm_id_at(c, id);

	return p->conn->state;
}

static uint16_t last_attribute(const struct testing *t)
{
	struct wire_mad head;

	wire_mad_decode(t->last_cm.data, &head);
	return head.attribute_id;
}

/* ---- as it should be ---- */

CASE_WITH(each_end_hears_what_the_other_one_says, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_event event;
	struct control_cm_id_reply id;

	assert_int_equal(ask(&e), 0);
	event = testing_expect(e.listening, e.listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(event.qp_num, ASKER_QPN);
	assert_int_equal(event.bytes, CM_REQ_PRIVATE - wire_cm_ip_bytes);
	assert_int_equal(event.private_data[9], 10);
	assert_int_equal(event.private_data[10], 0);
	assert_int_equal(event.param.responder_resources, 5); /* what the peer initiates */
	assert_int_equal(event.param.initiator_depth, 4);
	assert_int_equal(event.param.flow_control, 1);
	assert_int_equal(event.param.retry_count, 6);
	assert_int_equal(event.param.rnr_retry_count, 7);
	assert_int_equal(event.param.srq, 1);
	assert_int_equal(event.param.ece_vendor, 0x0A0B0C);
	assert_int_equal(event.param.ece_options, 0x01020304);
	e.taken = event.new_id;
	id = testing_query(e.listening, e.taken);
	assert_int_equal(id.num_paths, 1);
	assert_int_equal(id.path.dlid, e.t->f->hca_port[0]->lid);
	assert_int_equal(id.path.slid, e.t->f->hca_port[1]->lid);
	assert_memory_equal(&id.dgid, &shm_port_at(e.t->f->region, 0)->gid[0], sizeof(id.dgid));
	assert_int_equal(accept_taken(&e), 0);
	event = testing_expect(e.asking, e.asker, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(event.qp_num, TAKER_QPN);
	assert_int_equal(event.bytes, CM_REP_PRIVATE);
	assert_int_equal(event.private_data[19], 20);
	assert_int_equal(event.param.responder_resources, 5);
	assert_int_equal(event.param.ece_vendor, 0x0A0B0C);
	assert_int_equal(call(e.asking, CONTROL_CM_ESTABLISH, e.asker), 0);
	event = testing_expect(e.listening, e.taken, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event.uid, 3);
	free_ends(&e);
}

CASE_WITH(queue_pairs_get_what_was_agreed, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);
	struct control_cm_qp_reply a = query_qp(e.asking, e.asker);
	struct control_cm_qp_reply b = query_qp(e.listening, e.taken);

	assert_true(a.has_peer && b.has_peer);
	assert_int_equal(a.dest_qp_num, TAKER_QPN);
	assert_int_equal(b.dest_qp_num, ASKER_QPN);
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(a.sq_psn, b.rq_psn);
	assert_int_not_equal(a.sq_psn, a.rq_psn);
	assert_int_equal(a.responder_resources, 5);
	assert_int_equal(a.initiator_depth, 4);
	assert_int_equal(a.access, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	                                   IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(a.retry_count, 6);
	assert_int_equal(b.retry_count, 6);
	assert_int_equal(b.rnr_retry_count, 7);
	assert_int_equal(a.ah.dlid, e.t->f->hca_port[1]->lid);
	assert_int_equal(b.ah.dlid, e.t->f->hca_port[0]->lid);
	assert_int_equal(a.path_mtu, b.path_mtu);
	assert_true(a.timeout && b.timeout);
	free_ends(&e);
}

CASE_WITH(before_the_answer_a_queue_pair_has_no_peer, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_qp_reply r = query_qp(e.asking, e.asker);

	assert_false(r.has_connection);
	assert_int_equal(r.access, 0);
	assert_int_equal(ask(&e), 0);
	r = query_qp(e.asking, e.asker);
	assert_true(r.has_connection);
	assert_false(r.has_peer);
	assert_true(r.access & IBV_ACCESS_REMOTE_WRITE);
	take(&e);
	assert_true(query_qp(e.listening, e.taken).has_peer);
	free_ends(&e);
}

CASE_WITH(disconnecting_is_heard_and_ends_in_timewait, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);

	assert_int_equal(call(e.asking, CONTROL_CM_DISCONNECT, e.asker), 0);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_nothing(e.asking, e.asker); /* not before the peer's program answers */
	assert_int_equal(call(e.listening, CONTROL_CM_DISCONNECT, e.taken), 0);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(state_of(e.asking, e.asker), CM_CONN_TIMEWAIT);
	assert_int_equal(state_of(e.listening, e.taken), CM_CONN_TIMEWAIT);
	assert_true(query_qp(e.asking, e.asker).is_over);
	testing_pass(e.t, LONG_MS);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_nothing(e.asking, e.asker);
	free_ends(&e);
}

CASE_WITH(both_may_disconnect_at_once, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);

	e.t->loses_cm = 1;
	assert_int_equal(call(e.asking, CONTROL_CM_DISCONNECT, e.asker), 0);
	assert_int_equal(call(e.listening, CONTROL_CM_DISCONNECT, e.taken), 0);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(call(e.asking, CONTROL_CM_DISCONNECT, e.asker), 0);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_DISCONNECTED, 0);
	free_ends(&e);
}

/* ---- refused ---- */

static void expect_rejected(struct ends *e, int reason)
{
	testing_expect(e->asking, e->asker, RDMA_CM_EVENT_REJECTED, reason);
	assert_int_equal(state_of(e->asking, e->asker),
	                 reason == CM_REJ_STALE_CONNECTION ? CM_CONN_TIMEWAIT : CM_CONN_IDLE);
}

CASE_WITH(where_nobody_listens_requests_are_rejected, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);

	testing_destroy(e.listening, e.listener);
	assert_int_equal(ask(&e), 0);
	expect_rejected(&e, CM_REJ_INVALID_SERVICE_ID);
	free_ends(&e);
}

CASE_WITH(a_program_rejects_with_its_own_words, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_connect r;
	struct control_cm_event event;

	assert_int_equal(ask(&e), 0);
	take(&e);
	r = connect_of(e.taken, 0, CM_REJ_PRIVATE + 1);
	assert_int_equal(REQUEST(e.listening, REJECT, r, NULL), -EINVAL);
	r = connect_of(e.taken, 0, CM_REJ_PRIVATE);
	r.reason = 3; /* it may not choose any */
	assert_int_equal(REQUEST(e.listening, REJECT, r, NULL), -EINVAL);
	r.reason = 0;
	assert_int_equal(REQUEST(e.listening, REJECT, r, NULL), 0);
	event = testing_expect(e.asking, e.asker, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(event.bytes, CM_REJ_PRIVATE);
	assert_int_equal(event.private_data[147], 148);
	assert_int_equal(REQUEST(e.listening, REJECT, r, NULL), -EINVAL); /* once */
	assert_int_equal(accept_taken(&e), -EINVAL);
	free_ends(&e);
}

CASE_WITH(who_does_not_like_the_answer_rejects_it, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_connect r = connect_of(e.asker, 0, 1);

	assert_int_equal(ask(&e), 0);
	take(&e);
	assert_int_equal(accept_taken(&e), 0);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	r.reason = CM_REJ_VENDOR_OPTION;
	assert_int_equal(REQUEST(e.asking, REJECT, r, NULL), 0);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_REJECTED, CM_REJ_VENDOR_OPTION);
	assert_int_equal(call(e.asking, CONTROL_CM_ESTABLISH, e.asker), -EINVAL);
	free_ends(&e);
}

CASE_WITH(a_listener_of_another_type_is_not_asked, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct cm_id *l = cm_id_at(e.listening, e.listener);

	l->qp_type = IBV_QPT_UC;
	assert_int_equal(ask(&e), 0);
	expect_rejected(&e, CM_REJ_CONSUMER_DEFINED);
	free_ends(&e);
}

/* A requester of XRC is connected to the target that stands in the REP's EECN. */
CASE_WITH(an_xrc_target_answers, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct cm_id *asker = cm_id_at(e.asking, e.asker);
	struct cm_id *l = cm_id_at(e.listening, e.listener);

	l->qp_type = asker->qp_type = IBV_QPT_XRC_RECV;
	assert_int_equal(ask(&e), -EOPNOTSUPP); /* a target does not ask */
	asker->qp_type = IBV_QPT_XRC_SEND;
	assert_int_equal(ask(&e), 0);
	take(&e);
	assert_int_equal(accept_taken(&e), 0);
	establish(&e);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(query_qp(e.asking, e.asker).dest_qp_num, TAKER_QPN);
	assert_int_equal(query_qp(e.listening, e.taken).dest_qp_num, ASKER_QPN);
	free_ends(&e);
}

CASE_WITH(who_asks_by_xrc_needs_a_target, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct cm_id *asker = cm_id_at(e.asking, e.asker);

	asker->qp_type = IBV_QPT_XRC_SEND;
	assert_int_equal(ask(&e), 0);
	expect_rejected(&e, CM_REJ_CONSUMER_DEFINED); /* the listener's type is RC */
	free_ends(&e);
}

CASE_WITH(private_data_must_fit, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_connect r =
	        connect_of(e.asker, ASKER_QPN, CM_REQ_PRIVATE - wire_cm_ip_bytes + 1);

	assert_int_equal(REQUEST(e.asking, CONNECT, r, NULL), -EINVAL);
	r.bytes = UINT32_MAX;
	assert_int_equal(REQUEST(e.asking, CONNECT, r, NULL), -EINVAL);
	assert_int_equal(ask(&e), 0);
	take(&e);
	r = connect_of(e.taken, TAKER_QPN, CM_REP_PRIVATE + 1);
	assert_int_equal(REQUEST(e.listening, ACCEPT, r, NULL), -EINVAL); /* and so rejects */
	expect_rejected(&e, CM_REJ_CONSUMER_DEFINED);
	free_ends(&e);
}

CASE_WITH(calls_in_the_wrong_state_fail, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_notify notify = { .id = e.asker, .event = IBV_EVENT_COMM_EST };

	assert_int_equal(call(e.asking, CONTROL_CM_DISCONNECT, e.asker), -EINVAL);
	assert_int_equal(call(e.asking, CONTROL_CM_ESTABLISH, e.asker), -EINVAL);
	assert_int_equal(REQUEST(e.asking, NOTIFY, notify, NULL), -EINVAL);
	assert_int_equal(ask(&e), 0);
	assert_int_equal(ask(&e), -EINVAL);
	assert_int_equal(REQUEST(e.asking, NOTIFY, notify, NULL), -EINVAL);
	take(&e);
	assert_int_equal(call(e.listening, CONTROL_CM_ESTABLISH, e.taken), -EINVAL); /* rejects */
	expect_rejected(&e, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(call(e.asking, CONTROL_CM_DISCONNECT, e.asker), 0); /* as in Linux */
	free_ends(&e);
}

CASE_WITH(what_nobody_waits_for_fails_by_an_event, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_resolve_route route = { .id = e.asker, .timeout_ms = 1000 };
	struct control_cm_connect connect = connect_of(e.asker, ASKER_QPN, CONTROL_CM_REQ_PRIVATE);
	struct control_cm_event event;

	assert_int_equal(POST(e.asking, RESOLVE_ROUTE, route), -EINVAL);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	assert_int_equal(REQUEST(e.asking, RESOLVE_ROUTE, route, NULL), -EINVAL);
	assert_int_equal(testing_event(e.asking, e.asker, &event), -EAGAIN);
	assert_int_equal(POST(e.asking, CONNECT, connect), 0);
	assert_int_equal(testing_event(e.asking, e.asker, &event), -EAGAIN);
	take(&e);
	assert_int_equal(POST(e.asking, CONNECT, connect), -EINVAL);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
	free_ends(&e);
}

/* Its outcome has room, and no more than that. */
CASE_WITH(addresses_that_nobody_waits_for_fail_by_an_event, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t first = testing_id(c, RDMA_PS_TCP, 1), id = testing_id(c, RDMA_PS_TCP, 2);
	struct control_cm_resolve_addr request = { .id = id,
		                                   .src = testing_addr("10.0.0.1", 7),
		                                   .dst = testing_addr("10.0.0.2", 1) };

	assert_int_equal(testing_bind(c, first, "10.0.0.1", 7), 0);
	assert_int_equal(REQUEST(c, RESOLVE_ADDR, request, NULL), -EADDRINUSE);
	assert_nothing(c, id);
	POST(c, RESOLVE_ADDR, request);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_ERROR, -EADDRINUSE);
	testing_destroy(c, first);
	POST(c, RESOLVE_ADDR, request);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(who_never_reads_is_told_what_fails, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_resolve_route route = { .id = id, .timeout_ms = 1000 };
	unsigned n = 0;

	while (!testing_resolve(c, id, "192.0.2.1", 0))
		n++;
	for (; n < CM_MAX_EVENTS + CONTROL_CM_MAX_IDS; n++) {
		assert_int_equal(POST(c, RESOLVE_ROUTE, route), -EINVAL);
		assert_int_equal(t->last_box->n_sent, n + 1);
	}
	assert_int_equal(POST(c, RESOLVE_ROUTE, route), -EINVAL);
	assert_int_equal(t->last_box->n_sent, n);
	cm_client_free(t->cm, c);
}

/* ---- lost, repeated ---- */

CASE_WITH(a_lost_message_is_sent_again, testing_setup, testing_teardown)
{
	/* REQ, REP, RTU; what the answer to a repeated one is */
	for (unsigned lost = 0; lost < 3; lost++) {
		struct ends e = make_ends(*state, 0);

		e.t->loses_cm = lost == 0;
		assert_int_equal(ask(&e), 0);
		testing_pass(e.t, lost == 0 ? 10000 : 0);
		take(&e);
		e.t->loses_cm = lost == 1;
		assert_int_equal(accept_taken(&e), 0);
		testing_pass(e.t, lost == 1 ? 10000 : 0);
		e.t->loses_cm = lost == 2;
		establish(&e);
		if (lost == 2)
			assert_nothing(e.listening, e.taken);
		testing_pass(e.t, lost == 2 ? 10000 : 0);
		testing_expect(e.listening, e.taken, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_nothing(e.listening, e.listener);
		assert_nothing(e.asking, e.asker);
		free_ends(&e);
		testing_pass(e.t, LONG_MS);
	}
}

CASE_WITH(lost_ends_are_repeated, testing_setup, testing_teardown)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct ends e = make_connection(*state);

		e.t->loses_cm = lost == 0;
		assert_int_equal(call(e.asking, CONTROL_CM_DISCONNECT, e.asker), 0);
		testing_pass(e.t, lost == 0 ? 10000 : 0);
		testing_expect(e.listening, e.taken, RDMA_CM_EVENT_DISCONNECTED, 0);
		e.t->loses_cm = lost == 1;
		assert_int_equal(call(e.listening, CONTROL_CM_DISCONNECT, e.taken), 0);
		testing_pass(e.t, lost == 1 ? 10000 : 0);
		testing_expect(e.asking, e.asker, RDMA_CM_EVENT_DISCONNECTED, 0);
		free_ends(&e);
	}
}

CASE_WITH(who_gets_no_answer_gives_up, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);

	e.t->loses_cm = UINT32_MAX;
	assert_int_equal(ask(&e), 0);
	testing_pass(e.t, LONG_MS);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_int_equal(UINT32_MAX - e.t->loses_cm, CM_CONN_RETRIES + 1);
	free_ends(&e);
	e.t->loses_cm = 0;
}

CASE_WITH(a_disconnect_without_answer_ends_all_the_same, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);

	e.t->loses_cm = UINT32_MAX;
	assert_int_equal(call(e.asking, CONTROL_CM_DISCONNECT, e.asker), 0);
	testing_pass(e.t, LONG_MS);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	e.t->loses_cm = 0;
	free_ends(&e);
}

/* A program that thinks for minutes is waited for: MRA. */
CASE_WITH(a_slow_program_is_waited_for, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);

	assert_int_equal(ask(&e), 0);
	take(&e);
	testing_pass(e.t, 7000);
	assert_int_equal(last_attribute(e.t), CM_ATTR_MRA);
	assert_int_equal(state_of(e.asking, e.asker), CM_CONN_MRA_REQ_RCVD);
	testing_pass(e.t, 60000);
	assert_nothing(e.asking, e.asker);
	assert_nothing(e.listening, e.listener); /* the request is announced once */
	assert_int_equal(accept_taken(&e), 0);
	testing_pass(e.t, 7000); /* the same at the other end */
	assert_int_equal(last_attribute(e.t), CM_ATTR_MRA);
	assert_int_equal(state_of(e.listening, e.taken), CM_CONN_MRA_REP_RCVD);
	establish(&e);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_ESTABLISHED, 0);
	free_ends(&e);
}

CASE_WITH(a_message_on_the_queue_pair_is_as_good_as_an_rtu, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_notify notify = { .event = IBV_EVENT_COMM_EST };

	assert_int_equal(ask(&e), 0);
	take(&e);
	assert_int_equal(accept_taken(&e), 0);
	e.t->loses_cm = 1;
	establish(&e);
	notify.id = e.taken;
	assert_int_equal(REQUEST(e.listening, NOTIFY, notify, NULL), 0);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(REQUEST(e.listening, NOTIFY, notify, NULL), -EISCONN);
	assert_nothing(e.listening, e.taken);
	notify.event = IBV_EVENT_SQ_DRAINED;
	assert_int_equal(REQUEST(e.listening, NOTIFY, notify, NULL), -EINVAL);
	free_ends(&e);
}

CASE_WITH(requests_beyond_the_backlog_come_again, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 1);
	uint32_t other = make_asker(e.asking);
	struct control_cm_connect r = connect_of(other, ASKER_QPN + 1, 0);

	assert_int_equal(ask(&e), 0);
	assert_int_equal(REQUEST(e.asking, CONNECT, r, NULL), 0);
	take(&e);
	assert_nothing(e.listening, e.listener);
	assert_nothing(e.asking, other); /* nobody says anything */
	testing_pass(e.t, 10000);
	take(&e);
	assert_int_equal(accept_taken(&e), 0);
	testing_expect(e.asking, other, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	free_ends(&e);
}

/* The identifier of the request that was sent last, which nobody has read. */
static uint32_t announced(const struct ends *e)
{
	const struct cm_id *listener = cm_id_at(e->listening, e->listener);

	return TAILQ_LAST(&listener->requests, cm_id_events)->announced->handle;
}

static int read_requests(const struct ends *e, uint32_t n)
{
	struct control_cm_read read = { .id = e->listener, .requests = n };

	return REQUEST(e->listening, READ, read, NULL);
}

CASE_WITH(who_uses_what_a_request_brought_has_read_it, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 1);
	uint32_t other = make_asker(e.asking);
	struct control_cm_connect r = connect_of(other, ASKER_QPN + 1, 0);

	assert_int_equal(ask(&e), 0);
	e.taken = announced(&e);
	assert_int_equal(accept_taken(&e), 0);
	assert_int_equal(REQUEST(e.asking, CONNECT, r, NULL), 0);
	assert_int_not_equal(announced(&e), e.taken); /* the backlog had room */
	testing_destroy(e.listening, e.taken);
	assert_int_equal(read_requests(&e, 1), 0); /* that one, which is gone */
	assert_int_equal(read_requests(&e, 2), 0);
	assert_int_equal(read_requests(&e, 2), 0);
	free_ends(&e);
}

CASE_WITH(what_was_not_read_goes_with_its_listener, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	uint32_t other = make_asker(e.asking);
	struct control_cm_connect r = connect_of(other, ASKER_QPN + 1, 0);
	struct control_cm_read destroy = { .id = e.listener, .requests = 1 };
	struct control_cm_events_reply reply;

	assert_int_equal(ask(&e), 0);
	e.taken = announced(&e);
	assert_int_equal(REQUEST(e.asking, CONNECT, r, NULL), 0);
	assert_int_equal(REQUEST(e.listening, DESTROY_ID, destroy, &reply), 0);
	assert_int_equal(reply.sent, 2);
	testing_expect(e.asking, other, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(accept_taken(&e), 0);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	free_ends(&e);
}

/* The process wants no more of it, and has got all that was sent, which it knows by a word that it
 * shares with the daemon. */
static bool ends_unasked(struct cm_client *c, uint32_t id, uint32_t got)
{
	return shm_events_end(cm_id_word(cm_id_at(c, id)), got);
}

CASE_WITH(what_is_gone_gets_no_event, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);
	const uint32_t sent = cm_id_at(e.asking, e.asker)->events_sent;
	struct control_cm_read request = { .id = e.asker };

	assert_true(sent > 0);
	assert_false(ends_unasked(e.asking, e.asker, sent - 1));
	assert_false(ends_unasked(e.asking, e.asker, sent + 1));
	assert_true(ends_unasked(e.asking, e.asker, sent));
	assert_int_equal(call(e.listening, CONTROL_CM_DISCONNECT, e.taken), 0);
	assert_int_equal(state_of(e.asking, e.asker), CM_CONN_DREQ_RCVD);
	assert_nothing(e.asking, e.asker);
	assert_int_equal(POST(e.asking, DESTROY_ID, request), 0);
	assert_null(cm_id_at(e.asking, e.asker));
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_DISCONNECTED, 0);
	free_ends(&e);
}

CASE_WITH(what_is_gone_is_asked_by_nobody, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 1);

	assert_true(ends_unasked(e.listening, e.listener, 0));
	assert_int_equal(ask(&e), 0);
	assert_nothing(e.listening, e.listener);
	expect_rejected(&e, CM_REJ_CONSUMER_DEFINED);
	free_ends(&e);
}

/* ... whose process asks for it, too. */
CASE_WITH(what_is_gone_gets_no_event_that_waits, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);

	cm_id_at(e.asking, e.asker)->channel->box->full = true;
	assert_int_equal(ask(&e), 0);
	take(&e);
	assert_int_equal(accept_taken(&e), 0);
	assert_int_equal(cm_id_at(e.asking, e.asker)->channel->n_events, 1);
	assert_false(ends_unasked(e.asking, e.asker, cm_id_at(e.asking, e.asker)->events_sent));
	assert_true(ends_unasked(e.asking, e.asker, cm_id_at(e.asking, e.asker)->events_sent + 1));
	assert_int_equal(call(e.listening, CONTROL_CM_DISCONNECT, e.taken), 0);
	assert_int_equal(cm_id_at(e.asking, e.asker)->channel->n_events, 1);
	free_ends(&e);
}

CASE_WITH(a_number_s_next_identifier_is_not_gone, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);
	_Atomic uint32_t *own = cm_id_word(cm_id_at(e.asking, e.asker));
	_Atomic uint32_t *announced = cm_id_word(cm_id_at(e.listening, e.taken));

	assert_ptr_not_equal(own, announced);
	assert_true(ends_unasked(e.asking, e.asker, cm_id_at(e.asking, e.asker)->events_sent));
	testing_destroy(e.asking, e.asker);
	assert_int_equal(*own, 0);
	assert_int_not_equal(*announced, 0);
	testing_destroy(e.listening, e.taken);
	assert_int_equal(*announced, 0);
	free_ends(&e);
}

/* Connections beyond the words, and connections for whose words there is no memory. */
CASE_WITH(what_has_no_word_gets_its_events, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct control_cm_create_id high = { .uid = 1, .id = SHM_EVENT_NUMBERS, .ps = RDMA_PS_TCP };
	struct control_cm_channel_reply channel;
	struct cm_client *c = testing_client(t, 0), *poor;
	uint32_t id;

	t->no_memory = true;
	poor = testing_client(t, 0);
	assert_int_equal(testing_request(c, CONTROL_CM_CREATE_CHANNEL, NULL, 0, &channel), 0);
	assert_int_not_equal(channel.events, 0);
	high.channel = channel.channel;
	assert_int_equal(REQUEST(c, CREATE_ID, high, NULL), 0);
	assert_null(cm_id_word(cm_id_at(c, high.id)));
	assert_int_equal(testing_resolve(c, high.id, "10.0.0.2", 1), 0);
	testing_expect(c, high.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(testing_request(poor, CONTROL_CM_CREATE_CHANNEL, NULL, 0, &channel), 0);
	assert_int_equal(channel.events, 0);
	id = testing_id(poor, RDMA_PS_TCP, 1);
	assert_int_equal(testing_resolve(poor, id, "10.0.0.2", 1), 0);
	testing_expect(poor, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_client_free(t->cm, c);
	cm_client_free(t->cm, poor);
}

CASE_WITH(what_was_not_read_moves_with_its_listener, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct control_cm_migrate_id migrate = { .id = e.listener };
	struct control_cm_events_reply reply;
	struct control_cm_channel old;

	assert_int_equal(ask(&e), 0);
	e.taken = announced(&e);
	old.channel = cm_id_at(e.listening, e.taken)->channel->handle;
	migrate.channel = testing_channel(e.listening);
	assert_int_equal(REQUEST(e.listening, MIGRATE_ID, migrate, &reply), 0);
	assert_int_equal(reply.sent, 1);
	assert_int_equal(REQUEST(e.listening, DESTROY_CHANNEL, old, NULL), 0);
	assert_int_equal(accept_taken(&e), 0);
	free_ends(&e);
}

/* The process has no memory for the first datagram on the listener's channel. */
static int return_first(const struct ends *e)
{
	struct cm_channel *ch = cm_id_at(e->listening, e->listener)->channel;
	struct testing_datagram *d = box_take(ch->box);
	struct control_cm_return request = { .channel = ch->handle, .id = e->listener };

	assert_non_null(d);
	request.got = d->got;
	free(d);
	return REQUEST(e->listening, RETURN, request, NULL);
}

CASE_WITH(a_request_that_is_sent_again_is_read_after_the_others, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	uint32_t other = make_asker(e.asking);
	struct control_cm_connect r = connect_of(other, ASKER_QPN + 1, 0);

	assert_int_equal(ask(&e), 0);
	assert_int_equal(REQUEST(e.asking, CONNECT, r, NULL), 0);
	assert_int_equal(return_first(&e), 0);
	take(&e);
	testing_destroy(e.listening, e.listener);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(accept_taken(&e), 0);
	testing_expect(e.asking, other, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	free_ends(&e);
}

CASE_WITH(a_request_that_nobody_has_room_for_is_refused, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	const struct cm_id *listener = cm_id_at(e.listening, e.listener);

	assert_int_equal(ask(&e), 0);
	listener->channel->box->full = true;
	assert_int_equal(return_first(&e), -ENOBUFS);
	assert_int_equal(listener->n_requests, 0);
	testing_expect(e.asking, e.asker, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED);
	free_ends(&e);
}

CASE_WITH(who_never_says_that_it_has_read_gets_no_more_at_some_point, testing_setup,
          testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	uint32_t n;

	for (n = 0; n < 3 * CONTROL_CM_MAX_BACKLOG; n++) {
		const struct cm_id *listener = cm_id_at(e.listening, e.listener);

		assert_int_equal(ask(&e), 0);
		if (listener->n_requests == n)
			break;
		testing_destroy(e.listening, announced(&e));
		cm_client_free(e.t->cm, e.asking);
		e.asking = testing_client(e.t, 0);
		e.asker = make_asker(e.asking);
	}
	assert_int_equal(n, 2 * CONTROL_CM_MAX_BACKLOG);
	assert_int_equal(read_requests(&e, n), 0);
	testing_pass(e.t, 10000);
	assert_int_not_equal(announced(&e), 0);
	free_ends(&e);
}

CASE_WITH(who_says_that_it_has_read_too_much_does_no_harm, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 1);

	assert_int_equal(read_requests(&e, 5), 0);
	assert_int_equal(ask(&e), 0);
	assert_int_equal(read_requests(&e, UINT32_MAX), 0);
	assert_int_equal(read_requests(&e, 0), 0);
	free_ends(&e);
}

CASE_WITH(who_asks_too_often_leaves_room_for_others, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 16);
	struct cm_client *third = testing_client(e.t, 2);
	struct control_cm_connect r = connect_of(make_asker(third), ASKER_QPN, 0);

	for (uint32_t i = 0; i < 20; i++) {
		struct control_cm_connect often =
		        connect_of(make_asker(e.asking), ASKER_QPN + i, 0);

		assert_int_equal(REQUEST(e.asking, CONNECT, often, NULL), 0);
	}
	assert_int_equal(REQUEST(third, CONNECT, r, NULL), 0);
	for (unsigned i = 0; i < 14 + 1; i++)
		take(&e);
	assert_nothing(e.listening, e.listener);
	assert_int_equal(accept_taken(&e), 0); /* the last one is that of the third host */
	testing_expect(third, r.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	testing_pass(e.t, 10000);
	for (unsigned i = 0; i < 20 - 14; i++) /* and the others come again */
		take(&e);
	assert_nothing(e.listening, e.listener);
	cm_client_free(e.t->cm, third);
	free_ends(&e);
}

/* ---- stale ---- */

CASE_WITH(a_queue_pair_that_asks_anew_is_no_longer_connected, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);
	struct control_cm_connect r = connect_of(0, ASKER_QPN, 0);
	struct cm_id *before = cm_id_at(e.asking, e.asker);

	/* the first connection is forgotten without a word */
	before->conn->state = CM_CONN_IDLE;
	testing_destroy(e.asking, e.asker);
	r.id = e.asker = make_asker(e.asking);
	assert_int_equal(REQUEST(e.asking, CONNECT, r, NULL), 0);
	expect_rejected(&e, CM_REJ_STALE_CONNECTION);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_DISCONNECTED, 0);
	free_ends(&e);
}

/* ---- deaths ---- */

CASE_WITH(a_death_disconnects, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);

	cm_client_free(e.t->cm, e.asking);
	e.asking = NULL;
	testing_settle(e.t);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_DISCONNECTED, 0);
	free_ends(&e);
}

CASE_WITH(a_listener_s_death_rejects_and_disconnects, testing_setup, testing_teardown)
{
	/* before the request is taken, before it is accepted, before the RTU */
	for (unsigned when = 0; when < 3; when++) {
		struct ends e = make_ends(*state, 0);

		assert_int_equal(ask(&e), 0);
		if (when > 0)
			take(&e);
		if (when > 1) {
			assert_int_equal(accept_taken(&e), 0);
			testing_expect(e.asking, e.asker, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		}
		cm_client_free(e.t->cm, e.listening);
		e.listening = NULL;
		testing_settle(e.t);
		testing_expect(e.asking, e.asker, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED);
		free_ends(&e);
	}
}

/* The daemon's slices: the time that the death of a process with so many identifiers takes in one
 * piece. */
CASE_WITH(the_death_of_many_is_no_one_s_burden, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0), *other = testing_client(t, 1);
	struct control_cm_create_id request = { .uid = 1, .ps = RDMA_PS_TCP };
	uint32_t before;

	request.channel = testing_channel(c);
	for (; request.id < 10000; request.id++)
		assert_int_equal(REQUEST(c, CREATE_ID, request, NULL), 0);
	assert_int_equal(testing_bind(c, 9999, "10.0.0.1", PORT), 0);
	assert_int_equal(testing_listen(c, 9999, 0), 0);
	assert_int_equal(testing_request(c, CONTROL_CM_DESTROY_CHANNEL, &request.channel,
	                                 sizeof(struct control_cm_channel), NULL),
	                 0);
	assert_int_equal(t->cm->n_listeners, 0); /* the newest goes first */
	assert_int_equal(testing_set_int(c, 5, RDMA_OPTION_ID_REUSEADDR, 1), -EINVAL);
	before = c->ids.used;
	assert_true(before > 9000);
	cm_client_free(t->cm, c);
	assert_int_equal(c->ids.used, before);
	base_timers_run(&t->timers);
	assert_in_range(c->ids.used, 9000, before - 1);
	testing_pass(t, 1);
	assert_true(TAILQ_EMPTY(&t->cm->doomed));
	cm_client_free(t->cm, other);
}

CASE_WITH(who_gives_up_is_not_accepted, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);

	assert_int_equal(ask(&e), 0);
	testing_destroy(e.asking, e.asker);
	take(&e);
	assert_int_equal(accept_taken(&e), -EINVAL);
	assert_int_equal(state_of(e.listening, e.taken), CM_CONN_IDLE);
	free_ends(&e);
}

CASE_WITH(an_answer_to_one_who_has_gone_is_rejected, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);

	/* the DREQ of the side that goes is lost: the peer finds out when it disconnects itself */
	e.t->loses_cm = 1;
	testing_destroy(e.asking, e.asker);
	assert_nothing(e.listening, e.taken);
	assert_int_equal(call(e.listening, CONTROL_CM_DISCONNECT, e.taken), 0);
	testing_expect(e.listening, e.taken, RDMA_CM_EVENT_DISCONNECTED, 0);
	free_ends(&e);
}

/* ---- nonsense ---- */

CASE_WITH(random_messages_do_no_harm, testing_setup, testing_teardown)
{
	struct ends e = make_connection(*state);
	unsigned seed = 7;

	for (int n = 0; n < 50000; n++) {
		struct fabric_mad mad = e.t->last_cm;
		unsigned from = n % 3 ? CM_MESSAGE_AT + 8 : CM_MESSAGE_AT;

		for (unsigned i = from; i < MAD_BYTES; i++)
			if (rand_r(&seed) % 4 == 0)
				mad.data[i] = (uint8_t)rand_r(&seed);
		mad.data[17] = (uint8_t)(CM_ATTR_REQ + rand_r(&seed) % 7);
		cm_mad_input(e.t->cm, e.t->f->hca_port[rand_r(&seed) % 2], &mad);
		if (n % 512 == 0)
			testing_settle(e.t);
	}
	testing_pass(e.t, LONG_MS);
	free_ends(&e);
}

CASE_WITH(ack_timeouts_are_linux_s, testing_setup, testing_teardown)
{
	assert_int_equal(cm_conn_ack_timeout(15, 18), 19); /* the way is longer */
	assert_int_equal(cm_conn_ack_timeout(15, 14), 16); /* both are the same */
	assert_int_equal(cm_conn_ack_timeout(15, 13), 16); /* close */
	assert_int_equal(cm_conn_ack_timeout(15, 12), 15);
	assert_int_equal(cm_conn_ack_timeout(15, 0), 15);
	assert_int_equal(cm_conn_ack_timeout(31, 31), 31);
}

CASE_WITH(connections_and_listeners_are_counted, testing_setup, testing_teardown)
{
	struct ends e = make_ends(*state, 0);
	struct cm_counts counts;

	assert_int_equal(ask(&e), 0);
	cm_count(e.t->cm, &counts);
	assert_int_equal(counts.listeners, 1);
	assert_int_equal(counts.connections, 2);
	free_ends(&e);
	cm_count(e.t->cm, &counts);
	assert_int_equal(counts.listeners, 0);
	assert_int_equal(counts.connections, 0);
}
