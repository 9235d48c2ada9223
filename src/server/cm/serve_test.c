/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Services that the daemon resolves by itself: the peer that asks hears of the port's queue pair at
 * once, and the listener's process hears nothing.
 */
#include <harness.h>

#include "cm/testing.h"

#define PORT  7174
#define NOONE 1 /* SIDR status: unsupported */

/* A queue pair in use on a port. */
static void use_qp(struct testing *t, uint32_t qpn, unsigned port)
{
	struct shm_qp *qp = shm_qp_at(t->f->region, SHM_QP_INDEX(qpn));

	qp->qpn = qpn;
	qp->port_num = 1;
	qp->port = t->f->hca_port[port]->index;
}

static int serve(struct cm_client *c, uint32_t id, uint32_t qpn)
{
	struct control_cm_serve request = { .id = id, .qp_num = qpn };
	struct control_cm_id_reply reply;

	return REQUEST(c, SERVE, request, &reply);
}

/* Asks from h1 for the service at @dst; the event that tells the outcome. */
static struct control_cm_event ask(struct testing *t, const char *dst, uint32_t type, int status)
{
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_resolve_route route = { .id = id, .timeout_ms = 1000 };
	struct control_cm_connect connect = { .id = id };
	struct control_cm_event e;

	assert_int_equal(testing_resolve(c, id, dst, PORT), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, route, NULL), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(REQUEST(c, CONNECT, connect, NULL), 0);
	e = testing_expect(c, id, type, status);
	cm_client_free(t->cm, c);
	return e;
}

CASE_WITH(who_asks_hears_of_the_ports_queue_pair, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, CM_ALL_HOSTS);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 2);
	struct control_cm_event e;

	use_qp(t, 20, 0);
	use_qp(t, 21, 1);
	assert_int_equal(testing_bind(c, id, "0.0.0.0", PORT), 0);
	assert_int_equal(serve(c, id, 20), 0);
	assert_int_equal(serve(c, id, 21), 0);
	e = ask(t, "10.0.0.2", RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(e.qp_num, 21);
	assert_int_equal(e.qkey, 0x01234567);
	assert_int_equal(ask(t, "10.0.0.1", RDMA_CM_EVENT_ESTABLISHED, 0).qp_num, 20);
	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_port_can_be_given_another_queue_pair, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 1);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 2);

	use_qp(t, 20, 1);
	use_qp(t, 21, 1);
	assert_int_equal(testing_bind(c, id, "10.0.0.2", PORT), 0);
	assert_int_equal(serve(c, id, 20), 0);
	assert_int_equal(serve(c, id, 21), 0);
	assert_int_equal(ask(t, "10.0.0.2", RDMA_CM_EVENT_ESTABLISHED, 0).qp_num, 21);
	cm_client_free(t->cm, c);
	ask(t, "10.0.0.2", RDMA_CM_EVENT_UNREACHABLE, NOONE); /* it has gone */
}

CASE_WITH(a_port_without_a_queue_pair_has_no_such_service, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, CM_ALL_HOSTS);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 2);

	use_qp(t, 20, 0);
	assert_int_equal(testing_bind(c, id, "0.0.0.0", PORT), 0);
	assert_int_equal(serve(c, id, 20), 0);
	ask(t, "10.0.0.2", RDMA_CM_EVENT_UNREACHABLE, NOONE);
	cm_client_free(t->cm, c);
}

CASE_WITH(what_is_no_queue_pair_or_no_port_number_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 1);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 2), other = testing_id(c, RDMA_PS_UDP, 3);
	uint32_t stream = testing_id(c, RDMA_PS_TCP, 4);

	use_qp(t, 20, 1);
	assert_int_equal(testing_bind(c, id, "10.0.0.2", PORT), 0);
	assert_int_equal(serve(c, id, 22), -EINVAL);
	assert_int_equal(serve(c, id, 0), -EINVAL);
	assert_int_equal(serve(c, id, 0xFFFFFF), -EINVAL);
	assert_int_equal(serve(c, id, 0xFFFFFFFF), -EINVAL);
	assert_int_equal(serve(c, 999, 20), -EINVAL);
	assert_int_equal(serve(c, stream, 20), -EOPNOTSUPP);
	assert_int_equal(serve(c, id, 20), 0);
	assert_int_equal(testing_bind(c, other, "10.0.0.2", PORT), -EADDRINUSE);
	cm_client_free(t->cm, c);
}
