/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Resolution of addresses and routes, and of services: connect, listen, accept, reject,
 * time out, die.
 */
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
static uint32_t take_request(struct pair *p)
{
	struct control_cm_event e =
	        testing_expect(p->listening, p->listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	assert_int_equal(e.uid, UID_LISTENER);
	return e.new_id;
}

static int answer(struct pair *p, uint32_t type, uint32_t id, uint32_t bytes)
{
	struct control_cm_connect request = {
		.id = id, .uid = UID_ACCEPTED, .qp_num = 0x123, .bytes = bytes
	};

	return testing_request(p->listening, type, &request, sizeof(request), NULL);
}

/* ---- addresses and routes ---- */

static void resolving_binds_to_the_host_s_device(void **state)
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
	assert_memory_equal(&info.dgid, &t->f->region->ports[0].gid[0], 16);
	assert_memory_equal(&info.sgid, &t->f->region->ports[2].gid[0], 16);
	cm_client_free(t->cm, c);
}

static void loopback_is_the_own_host(void **state)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 2);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_id_reply info;

	assert_int_equal(testing_resolve(c, id, "127.0.0.1", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	info = testing_query(c, id);
	assert_memory_equal(&info.dgid, &t->f->region->ports[2].gid[0], 16);
	cm_client_free(t->cm, c);
}

static void an_address_of_no_host_is_unreachable(void **state)
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

static void families_do_not_mix(void **state)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(testing_resolve(c, id, "ff12::1", 0), -EINVAL);
	cm_client_free(t->cm, c);
}

static void a_route_needs_an_address(void **state)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .id = testing_id(c, RDMA_PS_UDP, 1) };

	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), -EINVAL);
	cm_client_free(t->cm, c);
}

static void a_route_is_a_path_through_the_tables(void **state)
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

static void no_route_to_a_port_that_is_down(void **state)
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

static void the_sa_is_asked_for_what_the_kernel_asks(void **state)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .timeout_ms = 1000 };
	struct wire_path_record want;

	request.id = resolved_id(c, "10.0.0.2");
	t->sa.says = SA_NO_RECORDS;
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), 0);
	assert_int_equal(t->sa.last.mad.attribute_id, SA_ATTR_PATH);
	assert_int_equal(t->sa.last.component_mask, SA_PR_SERVICE_ID | SA_PR_DGID | SA_PR_SGID |
	                                                    SA_PR_REVERSIBLE | SA_PR_NUMB_PATH |
	                                                    SA_PR_PKEY | SA_PR_QOS_CLASS);
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

static void a_route_times_out_when_the_program_says(void **state)
{
	static const unsigned timeouts[] = { 0, 7, 2000 }; /* ms */
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .id = resolved_id(c, "10.0.0.2") };
	struct control_cm_event e;

	for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
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

static void who_goes_away_waits_for_no_route(void **state)
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

static void without_an_sm_there_is_no_route(void **state)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_resolve_route request = { .timeout_ms = 1000 };

	request.id = resolved_id(c, "10.0.0.2");
	t->f->hca_port[0]->sm_lid = 0;
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), -EAGAIN);
	cm_client_free(t->cm, c);
}

static void a_path_of_the_program_s_own_is_taken(void **state)
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

static void a_request_reaches_the_listener_with_its_private_data(void **state)
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
	assert_memory_equal(&info.dgid, &p.t->f->region->ports[0].gid[0], 16);
	end_pair(&p);
}

static void private_data_have_a_limit(void **state)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	uint32_t id;

	assert_int_equal(connect_with(&p, 181), -EINVAL);
	assert_int_equal(connect_with(&p, UINT32_MAX), -EINVAL);
	assert_int_equal(connect_with(&p, 0), 0);
	id = take_request(&p);
	assert_int_equal(answer(&p, CONTROL_CM_ACCEPT, id, 137), -EINVAL);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	end_pair(&p);
}

static void accept_tells_qp_number_and_key(void **state)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_event e;

	assert_int_equal(connect_with(&p, 0), 0);
	assert_int_equal(answer(&p, CONTROL_CM_ACCEPT, take_request(&p), 3), 0);
	e = testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(e.uid, UID_ASKER);
	assert_int_equal(e.qp_num, 0x123);
	assert_int_equal(e.qkey, 0x01234567);
	assert_int_equal(e.bytes, 136);
	assert_int_equal(e.ah.dlid, p.t->f->hca_port[1]->lid);
	assert_int_equal(e.ah.port_num, 1);
	assert_true(LIST_EMPTY(&p.t->cm->timers));
	end_pair(&p);
}

static void a_request_is_answered_once(void **state)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_event e;
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	id = take_request(&p);
	assert_int_equal(answer(&p, CONTROL_CM_ACCEPT, id, 0), 0);
	assert_int_equal(answer(&p, CONTROL_CM_ACCEPT, id, 0), -EINVAL);
	assert_int_equal(answer(&p, CONTROL_CM_REJECT, id, 0), -EINVAL);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(testing_event(p.asking, p.asker, &e), -EAGAIN);
	end_pair(&p);
}

static void reject_tells_private_data(void **state)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_connect request = { .bytes = 2, .private_data = "no" };
	struct control_cm_event e;

	assert_int_equal(connect_with(&p, 0), 0);
	request.id = take_request(&p);
	assert_int_equal(REQUEST(p.listening, REJECT, request, NULL), 0);
	e = testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	assert_string_equal((char *)e.private_data, "no");
	end_pair(&p);
}

static void nobody_listens(void **state)
{
	struct pair p = make_pair(*state, NULL, 0);

	assert_int_equal(connect_with(&p, 0), 0);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, NO_ONE);
	assert_int_equal(connect_with(&p, 0), -EINVAL); /* once */
	end_pair(&p);
}

static void a_wildcard_listens_for_its_host_alone(void **state)
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

static void a_wildcard_hears_requests_to_its_host(void **state)
{
	struct pair p = make_pair(*state, "0.0.0.0", 0);
	union control_cm_addr own = testing_addr("10.0.0.2", 0);
	struct control_cm_id_reply info;

	assert_int_equal(connect_with(&p, 0), 0);
	info = testing_query(p.listening, take_request(&p));
	assert_true(cm_addr_equal(&info.src, &own));
	end_pair(&p);
}

static void an_ipv6_wildcard_hears_ipv4_too(void **state)
{
	struct pair p = make_pair(*state, "::", 0);

	assert_int_equal(connect_with(&p, 0), 0);
	take_request(&p);
	end_pair(&p);
}

static void a_full_backlog_rejects(void **state)
{
	struct testing *t = *state;
	struct pair p = make_pair(t, "10.0.0.2", 1), q = make_pair(t, NULL, 0);

	assert_int_equal(connect_with(&p, 0), 0);
	assert_int_equal(connect_with(&q, 0), 0);
	testing_expect(q.asking, q.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	take_request(&p); /* that makes room */
	end_pair(&q);
	q = make_pair(t, NULL, 0);
	assert_int_equal(connect_with(&q, 0), 0);
	take_request(&p);
	end_pair(&q);
	end_pair(&p);
}

static void an_unanswered_request_times_out(void **state)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	struct control_cm_event e;
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	id = take_request(&p);
	testing_pass(p.t, 65535);
	assert_int_equal(testing_event(p.asking, p.asker, &e), -EAGAIN);
	assert_int_equal(p.t->woken_in, 1);
	testing_pass(p.t, 1);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_int_equal(answer(&p, CONTROL_CM_ACCEPT, id, 0), 0); /* nobody hears it */
	assert_int_equal(testing_event(p.asking, p.asker, &e), -EAGAIN);
	end_pair(&p);
}

static void a_port_that_went_down_does_not_answer(void **state)
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

/* ---- deaths ---- */

static void a_dying_listener_rejects_what_it_has_not_taken(void **state)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);

	assert_int_equal(connect_with(&p, 0), 0);
	cm_client_free(p.t->cm, p.listening);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	cm_client_free(p.t->cm, p.asking);
}

static void a_dying_listener_rejects_what_it_has_not_answered(void **state)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);

	assert_int_equal(connect_with(&p, 0), 0);
	take_request(&p);
	cm_client_free(p.t->cm, p.listening);
	testing_expect(p.asking, p.asker, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
	cm_client_free(p.t->cm, p.asking);
}

static void the_asker_s_death_is_no_one_s_trouble(void **state)
{
	struct pair p = make_pair(*state, "10.0.0.2", 0);
	uint32_t id;

	assert_int_equal(connect_with(&p, 0), 0);
	cm_client_free(p.t->cm, p.asking);
	id = take_request(&p);
	assert_int_equal(answer(&p, CONTROL_CM_ACCEPT, id, 0), 0);
	cm_client_free(p.t->cm, p.listening);
}

static void reliable_identifiers_do_not_listen(void **state)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	assert_int_equal(testing_listen(c, testing_id(c, RDMA_PS_TCP, 1), 0), -EOPNOTSUPP);
	cm_client_free(t->cm, c);
}

static void listening_without_an_address_takes_a_wildcard(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(resolving_binds_to_the_host_s_device),
		TEST(loopback_is_the_own_host),
		TEST(an_address_of_no_host_is_unreachable),
		TEST(families_do_not_mix),
		TEST(a_route_needs_an_address),
		TEST(a_route_is_a_path_through_the_tables),
		TEST(no_route_to_a_port_that_is_down),
		TEST(the_sa_is_asked_for_what_the_kernel_asks),
		TEST(a_route_times_out_when_the_program_says),
		TEST(who_goes_away_waits_for_no_route),
		TEST(without_an_sm_there_is_no_route),
		TEST(a_path_of_the_program_s_own_is_taken),
		TEST(a_request_reaches_the_listener_with_its_private_data),
		TEST(private_data_have_a_limit),
		TEST(accept_tells_qp_number_and_key),
		TEST(a_request_is_answered_once),
		TEST(reject_tells_private_data),
		TEST(nobody_listens),
		TEST(a_wildcard_listens_for_its_host_alone),
		TEST(a_wildcard_hears_requests_to_its_host),
		TEST(an_ipv6_wildcard_hears_ipv4_too),
		TEST(a_full_backlog_rejects),
		TEST(an_unanswered_request_times_out),
		TEST(a_port_that_went_down_does_not_answer),
		TEST(a_dying_listener_rejects_what_it_has_not_taken),
		TEST(a_dying_listener_rejects_what_it_has_not_answered),
		TEST(the_asker_s_death_is_no_one_s_trouble),
		TEST(reliable_identifiers_do_not_listen),
		TEST(listening_without_an_address_takes_a_wildcard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
