/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Resolution of addresses and routes, and of services: connect, listen, accept, reject,
 * time out, die.
 */
#include <harness.h>

#include "cm/testing.h"

#define UID_ASKER    11
#define UID_LISTENER 22
#define UID_ACCEPTED 33
#define NO_ONE       1 /* SIDR status: unsupported */
#define REJECTED     2

struct pair {
	struct testing *t;
	struct cm_client *asking, *listening;
	uint32_t asker, listener;
};

/* An asker on h1 with a route to h2, where a listener is bound to @addr. */
static struct pair make_pair(struct testing *t, const char *addr, int backlog)
{
	struct pair p = { .t = t };
	struct control_cm_resolve_route route = { .timeout_ms = 1000 };

	p.asking = testing_client(t, 0);
	p.listening = testing_client(t, 1);
	p.asker = testing_id(p.asking, RDMA_PS_UDP, UID_ASKER);
	p.listener = testing_id(p.listening, RDMA_PS_UDP, UID_LISTENER);
	if (addr) {
		assert_int_equal(testing_bind(p.listening, p.listener, addr, 7174), 0);
		assert_int_equal(testing_listen(p.listening, p.listener, backlog), 0);
	}
	assert_int_equal(testing_resolve(p.asking, p.asker, "10.0.0.2", 7174), 0);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	route.id = p.asker;
	assert_int_equal(REQUEST(p.asking, RESOLVE_ROUTE, route, NULL), 0);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return p;
}

static void end_pair(struct pair *p)
{
	cm_client_free(p->t->cm, p->asking);
	cm_client_free(p->t->cm, p->listening);
}

static int connect_with(struct pair *p, uint32_t bytes)
{
	struct control_cm_connect request = { .id = p->asker, .bytes = bytes };

	memset(request.private_data, 0x5A, sizeof(request.private_data));
	return REQUEST(p->asking, CONNECT, request, NULL);
}

/* Takes the request that the listener got. */
static uint32_t accept_request(struct pair *p)
{
	struct control_cm_event e =
	        testing_expect(p->listening, p->listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	assert_int_equal(e.uid, UID_LISTENER);
	return e.new_id;
}

static int respond(struct pair *p, uint32_t type, uint32_t id, uint32_t bytes)
{
	struct control_cm_connect request = {
		.id = id, .uid = UID_ACCEPTED, .qp_num = 0x123, .bytes = bytes
	};

	return testing_request(p->listening, type, &request, sizeof(request), NULL);
}

/* ---- addresses and routes ---- */

CASE_WITH(resolving_binds_to_the_host_s_device, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 2);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	union control_cm_addr own = testing_addr("10.0.0.3", 0);
	struct control_cm_id_reply info;

	assert_int_equal(testing_resolve(c, id, "10.0.0.1", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	info = testing_query(c, id);
	assert_true(cm_addr_equal(&info.src, &own));
	assert_in_range(cm_addr_port(&info.src), 32768, 60999);
	assert_memory_equal(&info.dgid, &shm_port_at(t->f->region, 0)->gid[0], 16);
	assert_memory_equal(&info.sgid, &shm_port_at(t->f->region, 2)->gid[0], 16);
	cm_client_free(t->cm, c);
}

CASE_WITH(loopback_is_the_own_host, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 2);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_id_reply info;

	assert_int_equal(testing_resolve(c, id, "127.0.0.1", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	info = testing_query(c, id);
	assert_memory_equal(&info.dgid, &shm_port_at(t->f->region, 2)->gid[0], 16);
	cm_client_free(t->cm, c);
}

CASE_WITH(an_address_of_no_host_is_unreachable, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_resolve(c, id, "192.0.2.1", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	assert_string_equal(testing_query(c, id).hca, "");
	/* and another one may be tried */
	assert_int_equal(testing_resolve(c, id, "10.0.0.2", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(families_do_not_mix, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(testing_resolve(c, id, "ff12::1", 0), -EINVAL);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_route_needs_an_address, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .id = testing_id(c, RDMA_PS_UDP, 1) };

	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), -EINVAL);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_route_is_a_path_through_the_tables, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, NULL, 0);
	struct control_cm_id_reply info = testing_query(p.asking, p.asker);

	assert_int_equal(info.num_paths, 1);
	assert_int_equal(info.path.slid, p.t->f->hca_port[0]->lid);
	assert_int_equal(info.path.dlid, p.t->f->hca_port[1]->lid);
	assert_int_equal(info.path.mtu, TESTING_SA_MTU);
	assert_int_equal(info.path.pkey, 0xFFFF);
	end_pair(&p);
}

CASE_WITH(no_route_to_a_port_that_is_down, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_resolve_route request = { .id = id, .timeout_ms = 1000 };

	t->f->hca_port[1]->state = IB_PORT_DOWN;
	assert_int_equal(testing_resolve(c, id, "10.0.0.2", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	cm_client_free(t->cm, c);
}

static uint32_t resolved_id(struct cm_client *c, const char *dst)
{
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_resolve(c, id, dst, 7174), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return id;
}

CASE_WITH(the_sa_is_asked_for_what_the_kernel_asks, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .timeout_ms = 1000 };
	struct wire_path_record want;

	request.id = resolved_id(c, "10.0.0.2");
	t->sa.says = SA_NO_RECORDS;
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), 0);
	assert_int_equal(t->sa.last.mad.attribute_id, SA_ATTR_PATH);
	assert_int_equal(t->sa.last.component_mask, SA_PR(service_id) | SA_PR(dgid) | SA_PR(sgid) |
	                                                    SA_PR(reversible) | SA_PR(numb_path) |
	                                                    SA_PR(pkey) | SA_PR(qos_class));
	wire_path_record_decode(t->sa.last.data, &want);
	assert_int_equal(want.service_id, 0x01110000 | 7174);
	assert_int_equal(want.pkey, 0xFFFF);
	assert_int_equal(want.numb_path, 1);
	testing_expect(c, request.id, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	/* and it may be asked again */
	t->sa.says = 0;
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), 0);
	testing_expect(c, request.id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_route_times_out_when_the_program_says, testing_setup, testing_teardown)
{
	static const unsigned timeouts[] = { 0, 7, 2000 }; /* ms */
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .id = resolved_id(c, "10.0.0.2") };
	struct control_cm_event e;

	for (size_t i = 0; EACH_ROW(i, timeouts); i++) {
		request.timeout_ms = timeouts[i];
		t->sa.loses = 100;
		assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), 0);
		assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), -EINVAL); /* once */
		for (unsigned ms = 0; ms + 1 < timeouts[i]; ms++)
			testing_pass(t, 1);
		assert_int_equal(testing_event(c, request.id, &e), -EAGAIN);
		testing_pass(t, 1);
		testing_expect(c, request.id, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	}
	t->sa.loses = 0;
	cm_client_free(t->cm, c);
}

CASE_WITH(who_goes_away_waits_for_no_route, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .timeout_ms = 1000 };

	request.id = resolved_id(c, "10.0.0.2");
	t->sa.keeps = true;
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), 0);
	testing_destroy(c, request.id);
	testing_release(t);
	cm_client_free(t->cm, c);
}

CASE_WITH(without_an_sm_there_is_no_route, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .timeout_ms = 1000 };

	request.id = resolved_id(c, "10.0.0.2");
	t->f->hca_port[0]->sm_lid = 0;
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), -EAGAIN);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_path_of_the_program_s_own_is_taken, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_set_option o = { .id = id,
		                           .level = RDMA_OPTION_IB,
		                           .name = RDMA_OPTION_IB_PATH };
	struct ibv_path_data data = { .flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
		                               IBV_PATH_FLAG_BIDIRECTIONAL };

	data.path.dlid = htobe16(77);
	memcpy(o.value, &data, sizeof(data));
	o.bytes = sizeof(data);
	assert_int_equal(REQUEST(c, SET_OPTION, o, NULL), -EINVAL); /* too early */
	assert_int_equal(testing_resolve(c, id, "10.0.0.2", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	o.bytes--;
	assert_int_equal(REQUEST(c, SET_OPTION, o, NULL), -EINVAL);
	o.bytes++;
	assert_int_equal(REQUEST(c, SET_OPTION, o, NULL), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(testing_query(c, id).path.dlid, 77);
	cm_client_free(t->cm, c);
}

/* ---- services ---- */

CASE_WITH(a_request_reaches_the_listener_with_its_private_data, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_id_reply info;
	struct control_cm_event e;

	assert_int_equal(connect_with(&p, 180), 0);
	e = testing_expect(p.listening, p.listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(e.bytes, 180); /* whatever was given: the MAD has so many */
	assert_int_equal(e.private_data[179], 0x5A);
	info = testing_query(p.listening, e.new_id);
	assert_string_equal(info.hca, p.t->f->hca_port[1]->node->name);
	assert_int_equal(cm_addr_port(&info.src), 7174);
	assert_memory_equal(&info.dgid, &shm_port_at(p.t->f->region, 0)->gid[0], 16);
	end_pair(&p);
}

CASE_WITH(private_data_have_a_limit, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	uint32_t id;

	assert_int_equal(connect_with(&p, 181), -EINVAL);
	assert_int_equal(connect_with(&p, UINT32_MAX), -EINVAL);
	assert_int_equal(connect_with(&p, 0), 0);
	id = accept_request(&p);
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, id, 137), -EINVAL);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	end_pair(&p);
}

CASE_WITH(accept_tells_qp_number_and_key, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_event e;

	assert_int_equal(connect_with(&p, 0), 0);
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, accept_request(&p), 3), 0);
	e = testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(e.uid, UID_ASKER);
	assert_int_equal(e.qp_num, 0x123);
	assert_int_equal(e.qkey, 0x01234567);
	assert_int_equal(e.bytes, 136);
	assert_int_equal(e.ah.dlid, p.t->f->hca_port[1]->lid);
	assert_int_equal(e.ah.port_num, 1);
	assert_true(base_timers_next(&p.t->timers) == BASE_TIMER_NEVER);
	end_pair(&p);
}

CASE_WITH(a_request_is_responded_to_once, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_event e;
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	id = accept_request(&p);
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, id, 0), 0);
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, id, 0), -EINVAL);
	assert_int_equal(respond(&p, CONTROL_CM_REJECT, id, 0), -EINVAL);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(testing_event(p.asking, p.asker, &e), -EAGAIN);
	end_pair(&p);
}

CASE_WITH(reject_tells_private_data, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_connect request = { .bytes = 2, .private_data = "no" };
	struct control_cm_event e;

	assert_int_equal(connect_with(&p, 0), 0);
	request.id = accept_request(&p);
	assert_int_equal(REQUEST(p.listening, REJECT, request, NULL), 0);
	e = testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	assert_string_equal((char *)e.private_data, "no");
	end_pair(&p);
}

CASE_WITH(nobody_listens, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, NULL, 0);

	assert_int_equal(connect_with(&p, 0), 0);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, NO_ONE);
	assert_int_equal(connect_with(&p, 0), -EINVAL); /* once */
	end_pair(&p);
}

CASE_WITH(a_wildcard_listens_for_its_host_alone, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, NULL, 0);
	struct cm_client *other = testing_client(t, 2);
	uint32_t id = testing_id(other, RDMA_PS_UDP, 1);

	assert_int_equal(testing_bind(other, id, "0.0.0.0", 7174), 0);
	assert_int_equal(testing_listen(other, id, 0), 0);
	assert_int_equal(connect_with(&p, 0), 0);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, NO_ONE);
	cm_client_free(t->cm, other);
	end_pair(&p);
}

CASE_WITH(a_wildcard_hears_requests_to_its_host, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "0.0.0.0", 0);
	union control_cm_addr own = testing_addr("10.0.0.2", 0);
	struct control_cm_id_reply info;

	assert_int_equal(connect_with(&p, 0), 0);
	info = testing_query(p.listening, accept_request(&p));
	assert_true(cm_addr_equal(&info.src, &own));
	end_pair(&p);
}

CASE_WITH(an_ipv6_wildcard_hears_ipv4_too, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "::", 0);

	assert_int_equal(connect_with(&p, 0), 0);
	accept_request(&p);
	end_pair(&p);
}

CASE_WITH(a_full_backlog_rejects, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "10.0.0.2", 1), q = make_pair(t, NULL, 0);

	assert_int_equal(connect_with(&p, 0), 0);
	assert_int_equal(connect_with(&q, 0), 0);
	testing_expect(q.asking, q.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	accept_request(&p); /* that makes room */
	end_pair(&q);
	q = make_pair(t, NULL, 0);
	assert_int_equal(connect_with(&q, 0), 0);
	accept_request(&p);
	end_pair(&q);
	end_pair(&p);
}

CASE_WITH(a_request_without_response_times_out, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_event e;
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	id = accept_request(&p);
	assert_int_equal(base_timers_next(&p.t->timers), (p.t->now_ms + 4096) * CM_NS_PER_MS);
	testing_pass(p.t, 65535);
	assert_int_equal(testing_event(p.asking, p.asker, &e), -EAGAIN);
	testing_pass(p.t, 1);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, id, 0), 0); /* nobody hears it */
	assert_int_equal(testing_event(p.asking, p.asker, &e), -EAGAIN);
	end_pair(&p);
}

CASE_WITH(a_port_that_went_down_does_not_respond, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_event e;

	p.t->f->hca_port[1]->state = IB_PORT_DOWN;
	assert_int_equal(connect_with(&p, 0), 0);
	assert_int_equal(testing_event(p.listening, p.listener, &e), -EAGAIN);
	testing_pass(p.t, 70000);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	end_pair(&p);
}

/* ---- MADs ---- */

/* A SIDR_REQ from h1 to h2's service, as it would be without addresses. */
static struct fabric_mad raw_request(const struct testing *t, uint64_t service_id)
{
	const struct wire_mad head = { .base_version = MAD_BASE_VERSION,
		                       .mgmt_class = MAD_CLASS_COM_MGT,
		                       .class_version = MAD_VERSION_COM_MGT,
		                       .method = MAD_SEND,
		                       .transaction_id = 5,
		                       .attribute_id = CM_ATTR_SIDR_REQ };
	const struct wire_sidr_req req = { .request_id = 6,
		                           .pkey = 0xFFFF,
		                           .service_id = service_id };
	struct fabric_mad mad = { .slid = t->f->hca_port[0]->lid,
		                  .dlid = t->f->hca_port[1]->lid,
		                  .src_qpn = IB_QPN_GSI,
		                  .dest_qpn = IB_QPN_GSI,
		                  .qkey = IB_QKEY_GSI };

	wire_mad_encode(&head, mad.data);
	wire_sidr_req_encode(&req, mad.data + CM_MESSAGE_AT);
	return mad;
}

/* It arrives at h2. */
static bool arrives(struct testing *t, const struct fabric_mad *mad)
{
	bool taken = cm_mad_input(t->cm, t->f->hca_port[1], mad);

	testing_settle(t);
	return taken;
}

static struct wire_sidr_rep last_rep(const struct testing *t)
{
	struct wire_sidr_rep rep;
	struct wire_mad head;

	wire_mad_decode(t->last_cm.data, &head);
	assert_int_equal(head.attribute_id, CM_ATTR_SIDR_REP);
	wire_sidr_rep_decode(t->last_cm.data + CM_MESSAGE_AT, &rep);
	return rep;
}

CASE_WITH(a_request_is_as_the_kernel_s, testing_setup, testing_teardown)
{
	static const uint8_t header[] = { 0, 0x40, [16] = 10, 0, 0, 1, [32] = 10, 0, 0, 2 };
	struct testing *t = *state;
	struct pair p = make_pair(t, "10.0.0.2", 0);
	struct control_cm_id_reply info;
	struct wire_sidr_req req;
	struct wire_mad head;

	assert_int_equal(connect_with(&p, 1), 0);
	info = testing_query(p.asking, p.asker);
	wire_mad_decode(t->last_cm.data, &head);
	assert_int_equal(head.mgmt_class, 0x07);
	assert_int_equal(head.class_version, 2);
	assert_int_equal(head.method, 0x03);
	assert_int_equal(head.attribute_id, CM_ATTR_SIDR_REQ);
	wire_sidr_req_decode(t->last_cm.data + CM_MESSAGE_AT, &req);
	assert_int_equal(req.service_id, 0x01110000 | 7174);
	assert_int_equal(req.pkey, 0xFFFF);
	assert_memory_equal(req.private_data, header, 2);
	assert_memory_equal(req.private_data + 4, header + 4, sizeof(header) - 4);
	assert_int_equal(req.private_data[2] << 8 | req.private_data[3], cm_addr_port(&info.src));
	assert_int_equal(req.private_data[36], 0x5A);
	assert_int_equal(req.private_data[37], 0);
	end_pair(&p);
}

CASE_WITH(a_lost_request_is_sent_again, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "10.0.0.2", 0);

	t->loses_cm = 1;
	assert_int_equal(connect_with(&p, 0), 0);
	testing_pass(t, 4096);
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, accept_request(&p), 0), 0);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_pair(&p);
}

CASE_WITH(a_request_that_comes_again_is_the_same, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "10.0.0.2", 0);
	struct control_cm_event e;
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	id = accept_request(&p);
	testing_pass(t, 3 * 4096);
	assert_int_equal(testing_event(p.listening, p.listener, &e), -EAGAIN);
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, id, 0), 0);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_pair(&p);
}

CASE_WITH(a_lost_response_is_sent_again, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "10.0.0.2", 0);
	struct control_cm_event e;
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	id = accept_request(&p);
	t->loses_cm = 1;
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, id, 0), 0);
	assert_int_equal(testing_event(p.asking, p.asker, &e), -EAGAIN);
	testing_pass(t, 4096);
	e = testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(e.qp_num, 0x123);
	assert_int_equal(testing_event(p.listening, p.listener, &e), -EAGAIN);
	end_pair(&p);
}

CASE_WITH(another_port_s_request_is_another, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "0.0.0.0", 0);
	struct fabric_mad mad;

	assert_int_equal(connect_with(&p, 0), 0);
	mad = t->last_cm; /* the request */
	accept_request(&p);
	mad.slid = t->f->hca_port[2]->lid;
	assert_true(arrives(t, &mad));
	accept_request(&p);
	mad.data[CM_MESSAGE_AT] ^= 1; /* of the request ID */
	assert_true(arrives(t, &mad));
	accept_request(&p);
	assert_true(arrives(t, &mad));
	assert_int_equal(t->cm->asked.n, 3);
	end_pair(&p);
}

CASE_WITH(a_request_with_a_grh_has_a_response_with_one, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct fabric_mad mad = raw_request(t, 0x01110000 | 7174);

	mad.has_grh = true;
	cm_port_gid(t->cm, t->f->hca_port[0], &mad.sgid);
	assert_true(arrives(t, &mad));
	assert_int_equal(last_rep(t).status, NO_ONE);
	assert_true(t->last_cm.has_grh);
	assert_memory_equal(&t->last_cm.dgid, &mad.sgid, sizeof(mad.sgid));
	assert_memory_equal(&t->last_cm.sgid, &shm_port_at(t->f->region, 1)->gid[0],
	                    sizeof(mad.sgid));
}

CASE_WITH(a_service_that_is_none_of_rdma_cm_s_is_not_supported, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "10.0.0.2", 0);
	struct fabric_mad mad = raw_request(t, 1ull << 32 | 0x01110000 | 7174);

	assert_true(arrives(t, &mad));
	assert_int_equal(last_rep(t).status, NO_ONE);
	assert_int_equal(last_rep(t).request_id, 6);
	assert_int_equal(last_rep(t).service_id, 1ull << 32 | 0x01110000 | 7174);
	end_pair(&p);
}

CASE_WITH(a_request_without_addresses_is_not_for_who_listens_by_ip, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "::", 0);
	struct fabric_mad mad = raw_request(t, 0x01110000 | 7174);

	mad.data[CM_MESSAGE_AT + 17] = 0x50; /* IPv5 */
	assert_true(arrives(t, &mad));
	assert_int_equal(last_rep(t).status, REJECTED);
	mad.data[CM_MESSAGE_AT + 17] = 0x40;
	mad.data[CM_MESSAGE_AT + 16] = 1; /* of another version */
	assert_true(arrives(t, &mad));
	assert_int_equal(last_rep(t).status, REJECTED);
	end_pair(&p);
}

CASE_WITH(who_listens_by_gid_gets_all_of_the_private_data, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 1);
	struct control_cm_bind_addr bind = { .id = testing_id(c, RDMA_PS_UDP, UID_LISTENER) };
	struct fabric_mad mad = raw_request(t, 0x01110000 | 7174);
	struct control_cm_id_reply info;
	struct control_cm_event e;

	bind.addr.ib.sib_family = AF_IB;
	bind.addr.ib.sib_sid = htobe64(0x01110000 | 7174);
	bind.addr.ib.sib_sid_mask = UINT64_MAX;
	cm_addr_from_port(t->cm, t->f->hca_port[1], false, &bind.addr);
	assert_int_equal(REQUEST(c, BIND_ADDR, bind, &info), 0);
	assert_int_equal(testing_listen(c, bind.id, 0), 0);
	memset(mad.data + CM_MESSAGE_AT + 16, 0xA5, 216);
	assert_true(arrives(t, &mad));
	e = testing_expect(c, bind.id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(e.bytes, 216);
	assert_int_equal(e.private_data[0], 0xA5);
	info = testing_query(c, e.new_id);
	assert_int_equal(info.src.sa.sa_family, AF_IB);
	assert_int_equal(cm_addr_port(&info.src), 7174);
	assert_memory_equal(&info.src.ib.sib_addr, &shm_port_at(t->f->region, 1)->gid[0], 16);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_response_to_another_port_or_request_is_none, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "10.0.0.2", 0);
	struct control_cm_event e;
	struct fabric_mad mad;
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	id = accept_request(&p);
	t->loses_cm = 1;
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, id, 0), 0);
	mad = t->last_cm;
	assert_false(cm_mad_input(t->cm, t->f->hca_port[1], &mad));
	mad.data[CM_MESSAGE_AT] ^= 1;
	assert_false(cm_mad_input(t->cm, t->f->hca_port[0], &mad));
	assert_int_equal(testing_event(p.asking, p.asker, &e), -EAGAIN);
	mad.data[CM_MESSAGE_AT] ^= 1;
	assert_true(cm_mad_input(t->cm, t->f->hca_port[0], &mad));
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_false(cm_mad_input(t->cm, t->f->hca_port[0], &mad)); /* once */
	end_pair(&p);
}

CASE_WITH(who_wants_a_connection_hears_that_there_is_nobody, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct fabric_mad mad = raw_request(t, 0);
	struct wire_cm_rej rej;
	struct wire_mad head;

	mad.data[17] = CM_ATTR_REQ;
	assert_true(arrives(t, &mad));
	wire_mad_decode(t->last_cm.data, &head);
	assert_int_equal(head.attribute_id, CM_ATTR_REJ);
	assert_int_equal(head.transaction_id, 5);
	wire_cm_rej_decode(t->last_cm.data + CM_MESSAGE_AT, &rej);
	assert_int_equal(rej.remote_id, 6);
	assert_int_equal(rej.reason, 8);
}

CASE_WITH(what_is_no_message_of_ours_is_not_taken, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct fabric_mad mad;

	mad = raw_request(t, 0);
	mad.data[2] = 1; /* the class version */
	assert_false(arrives(t, &mad));
	mad = raw_request(t, 0);
	mad.data[3] = MAD_GET;
	assert_false(arrives(t, &mad));
	mad = raw_request(t, 0);
	mad.data[17] = 0x19; /* LAP */
	assert_false(arrives(t, &mad));
	assert_int_equal(t->cm->asked.n, 0);
}

CASE_WITH(random_messages_do_no_harm, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "::", 1000);
	struct control_cm_event e;
	unsigned seed = 5;

	assert_int_equal(connect_with(&p, 0), 0);
	for (int n = 0; n < 50000; n++) {
		struct fabric_mad mad = raw_request(t, 0x01110000 | 7174);

		for (unsigned i = n % 2 ? 18 : CM_MESSAGE_AT + 16; i < MAD_BYTES; i++)
			mad.data[i] = (uint8_t)rand_r(&seed);
		if (rand_r(&seed) % 4)
			mad.data[CM_MESSAGE_AT + 16] = 0;
		mad.data[17] = (uint8_t)(CM_ATTR_REQ + rand_r(&seed) % 16);
		cm_mad_input(t->cm, t->f->hca_port[rand_r(&seed) % 2], &mad);
		if (n % 512 == 0)
			testing_settle(t);
	}
	while (!testing_event(p.listening, p.listener, &e))
		testing_destroy(p.listening, e.new_id);
	end_pair(&p);
}

/* ---- deaths ---- */

CASE_WITH(a_dying_listener_rejects_what_it_has_not_taken, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);

	assert_int_equal(connect_with(&p, 0), 0);
	cm_client_free(p.t->cm, p.listening);
	testing_settle(p.t);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	cm_client_free(p.t->cm, p.asking);
}

CASE_WITH(a_dying_listener_rejects_what_it_has_not_responded_to, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);

	assert_int_equal(connect_with(&p, 0), 0);
	accept_request(&p);
	cm_client_free(p.t->cm, p.listening);
	testing_settle(p.t);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	cm_client_free(p.t->cm, p.asking);
}

CASE_WITH(the_asker_s_death_is_no_one_s_trouble, testing_setup, testing_teardown)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	cm_client_free(p.t->cm, p.asking);
	id = accept_request(&p);
	assert_int_equal(respond(&p, CONTROL_CM_ACCEPT, id, 0), 0);
	cm_client_free(p.t->cm, p.listening);
}

/* An identifier of a port space and a type of QP. */
static uint32_t typed_id(struct cm_client *c, uint16_t ps, uint16_t qp_type)
{
	struct control_cm_create_id request = {
		.uid = 1, .channel = testing_channel(c), .ps = ps, .qp_type = qp_type
	};

	return testing_new_id(c, &request);
}

CASE_WITH(identifiers_of_types_that_we_lack_do_not_listen, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	assert_int_equal(testing_listen(c, typed_id(c, RDMA_PS_IB, IBV_QPT_RAW_PACKET), 0),
	                 -EOPNOTSUPP);
	cm_client_free(t->cm, c);
}

CASE_WITH(listening_without_an_address_takes_a_wildcard, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_id_reply info;

	assert_int_equal(testing_listen(c, id, 0), 0);
	info = testing_query(c, id);
	assert_int_equal(info.src.sa.sa_family, AF_INET);
	assert_in_range(cm_addr_port(&info.src), 32768, 60999);
	assert_int_equal(testing_listen(c, id, 0), -EINVAL); /* once */
	cm_client_free(t->cm, c);
}
