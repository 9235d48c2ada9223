/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests as such: malformed ones are refused, a client cannot name objects of others, and no
 * request does harm or stays behind.
 */
#include <harness.h>

#include "cm/testing.h"

CASE_WITH(a_request_of_the_wrong_size_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	char body[CONTROL_MAX_BYTES] = { 0 };

	for (uint32_t type = CONTROL_CM_FIRST; type < CONTROL_CM_END; type++) {
		unsigned right = 0;

		for (uint32_t bytes = 0; bytes <= sizeof(body); bytes++)
			right += testing_request(c, type, body, bytes, NULL) != -EPROTO;
		assert_int_equal(right, 1);
	}
	cm_client_free(t->cm, c);
}

CASE_WITH(an_unknown_type_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	for (uint32_t type = CONTROL_CM_END; type <= CONTROL_CM_LAST + 1; type++)
		assert_int_equal(testing_request(c, type, NULL, 0, NULL), -EPROTO);
	assert_int_equal(testing_request(c, 0, NULL, 0, NULL), -EPROTO);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_handle_of_another_client_names_nothing, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, 0), *b = testing_client(t, 0);
	uint32_t id = testing_id(a, RDMA_PS_UDP, 1);
	struct control_cm_id request = { .id = id };
	struct control_cm_read read = { .id = id, .requests = 1 };
	struct control_cm_channel channel = { .channel = 0 };
	struct control_cm_event e;

	assert_int_equal(REQUEST(b, QUERY_ID, request, NULL), -EINVAL);
	assert_int_equal(REQUEST(b, DESTROY_ID, read, NULL), -EINVAL);
	assert_int_equal(REQUEST(b, READ, read, NULL), 0);
	assert_int_equal(REQUEST(b, GET_EVENT, channel, &e), -EBADF);
	assert_int_equal(REQUEST(b, DESTROY_CHANNEL, channel, NULL), -EBADF);
	cm_client_free(t->cm, a);
	cm_client_free(t->cm, b);
}

CASE_WITH(an_unknown_port_space_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_create_id request = { .channel = testing_channel(c), .ps = 0x1234 };

	assert_int_equal(REQUEST(c, CREATE_ID, request, NULL), -EINVAL);
	cm_client_free(t->cm, c);
}

CASE_WITH(an_identifier_is_made_once, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_create_id request = { .uid = 7, .id = 3, .ps = RDMA_PS_TCP };
	const struct cm_id *made;

	request.channel = testing_channel(c);
	assert_int_equal(REQUEST(c, CREATE_ID, request, NULL), 0);
	made = cm_id_at(c, 3);
	assert_int_equal(REQUEST(c, CREATE_ID, request, NULL), 0);
	assert_ptr_equal(cm_id_at(c, 3), made);
	assert_int_equal(c->ids.used, 1);
	request.uid = 8;
	assert_int_equal(REQUEST(c, CREATE_ID, request, NULL), -EEXIST);
	request.id = CONTROL_CM_MAX_IDS;
	assert_int_equal(REQUEST(c, CREATE_ID, request, NULL), -ENOSPC);
	request.id = CONTROL_CM_ANNOUNCED;
	assert_int_equal(REQUEST(c, CREATE_ID, request, NULL), -ENOSPC);
	testing_destroy(c, 3);
	request.id = 3;
	assert_int_equal(REQUEST(c, CREATE_ID, request, NULL), 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(each_event_rings_once, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_event e;

	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
	assert_int_equal(testing_resolve(c, id, "10.0.0.2", 7), 0);
	assert_int_equal(t->last_box->n_sent, 1);
	e = testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(e.uid, 1);
	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
	cm_client_free(t->cm, c);
}

CASE_WITH(destroying_tells_what_was_sent_and_takes_back_what_waits, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct control_cm_events_reply reply;

	testing_joined(c, id, "239.1.1.1");
	assert_int_equal(testing_join(c, id, "239.1.1.2", NULL), 0);
	testing_settle(t);
	assert_int_equal(testing_resolve(c, id, "10.0.0.2", 7), 0);
	reply = testing_destroy(c, id);
	assert_int_equal(reply.reported, 1);
	assert_int_equal(reply.withdrawn, 1);
	assert_int_equal(reply.sent, 1);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_process_has_its_channel_rung, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_ring request = { .n = 3 };

	request.channel = testing_channel(c);
	for (request.byte = 0; request.byte < CONTROL_CM_BYTES; request.byte++)
		assert_int_equal(REQUEST(c, RING, request, NULL), 0);
	assert_int_equal(t->last_box->n_sent, 3 * CONTROL_CM_BYTES);
	assert_int_equal(REQUEST(c, RING, request, NULL), -EINVAL);
	request.byte = CONTROL_CM_KEPT;
	request.n = CONTROL_CM_MAX_RING + 1;
	assert_int_equal(REQUEST(c, RING, request, NULL), -EINVAL);
	request.channel = 77;
	assert_int_equal(REQUEST(c, RING, request, NULL), -EBADF);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_process_has_an_event_sent_again, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_return request = { .got.event.uid = 5 };
	struct testing_datagram *d;

	request.id = testing_id(c, RDMA_PS_UDP, 5);
	request.channel = cm_id_at(c, request.id)->channel->handle;
	assert_int_equal(REQUEST(c, RETURN, request, NULL), 0);
	d = box_take(t->last_box);
	assert_non_null(d);
	assert_memory_equal(&d->got, &request.got, sizeof(request.got));
	free(d);
	t->last_box->full = true;
	assert_int_equal(REQUEST(c, RETURN, request, NULL), -ENOBUFS);
	request.id++;
	assert_int_equal(REQUEST(c, RETURN, request, NULL), -EBADF);
	request.id--;
	request.channel = 77;
	assert_int_equal(REQUEST(c, RETURN, request, NULL), -EBADF);
	cm_client_free(t->cm, c);
}

CASE_WITH(an_event_that_there_is_no_room_for_is_asked_for, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct control_cm_events_reply reply;
	struct control_cm_event e;

	t->last_box->full = true;
	assert_int_equal(testing_resolve(c, id, "192.0.2.1", 7), 0);
	assert_int_equal(t->last_box->n_sent, 1);
	e = testing_expect(c, id, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	assert_int_equal(e.uid, 1);
	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
	assert_int_equal(testing_resolve(c, id, "10.0.0.2", 7), 0);
	reply = testing_destroy(c, id);
	assert_int_equal(reply.reported, 1);
	assert_int_equal(reply.withdrawn, 1);
	assert_int_equal(reply.sent, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(migrating_moves_waiting_events_along, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct control_cm_migrate_id request = { .id = id };
	struct control_cm_events_reply reply;

	assert_int_equal(testing_join(c, id, "239.1.1.1", NULL), 0);
	testing_settle(t);
	request.channel = testing_channel(c);
	assert_int_equal(REQUEST(c, MIGRATE_ID, request, &reply), 0);
	assert_int_equal(reply.reported, 0);
	assert_int_equal(reply.withdrawn, 1);
	assert_int_equal(reply.sent, 0);
	assert_int_equal(t->last_box->n_sent, 1);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(destroying_a_channel_destroys_its_identifiers, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_channel request = { .channel = 0 };
	struct control_cm_id query = { .id = id };

	assert_int_equal(testing_bind(c, id, "10.0.0.1", 100), 0);
	assert_int_equal(REQUEST(c, DESTROY_CHANNEL, request, NULL), 0);
	assert_int_equal(REQUEST(c, QUERY_ID, query, NULL), -EINVAL);
	assert_int_equal(t->cm->bindings.n, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(who_never_reads_gets_no_more_at_some_point, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	unsigned n = 0;

	while (!testing_resolve(c, id, "192.0.2.1", 0)) /* an error each time */
		n++;
	assert_int_equal(n, CM_MAX_EVENTS);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	assert_int_equal(testing_resolve(c, id, "192.0.2.1", 0), 0);
	cm_client_free(t->cm, c);
}

/* ---- anything at all ---- */

static union control_cm_addr any_addr(unsigned *seed)
{
	static const char *const some[] = { "0.0.0.0",   "127.0.0.1", "10.0.0.1",   "10.0.0.2",
		                            "10.0.0.77", "239.1.1.1", "ff12::1:2",  "::",
		                            "::1",       "fe80::1",   "224.0.0.251" };
	union control_cm_addr a =
	        testing_addr(some[rand_r(seed) % ARRAY_SIZE(some)], rand_r(seed) % 4);

	if (rand_r(seed) % 8 == 0)
		a.sa.sa_family = rand_r(seed) % 2 ? AF_IB : (sa_family_t)rand_r(seed);
	return a;
}

static void random_request(struct cm_client *c, unsigned *seed)
{
	static const uint16_t spaces[] = { RDMA_PS_UDP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB };
	uint32_t small[2] = { rand_r(seed) % 12, rand_r(seed) % 4 };
	struct control_cm_create_id create = { .uid = 1, .id = small[0], .channel = small[1] };
	struct control_cm_join join = { .uid = 2, .id = small[0], .flags = rand_r(seed) % 3 };
	struct control_cm_bind_addr bind = { .id = small[0] };
	struct control_cm_resolve_addr resolve = { .id = small[0] };
	struct control_cm_connect connect = { .uid = 3, .id = small[0] };
	struct control_cm_got reply; /* the longest */
	uint32_t type = CONTROL_CM_FIRST + rand_r(seed) % (CONTROL_CM_END - CONTROL_CM_FIRST);
	char body[CONTROL_MAX_BYTES] = { 0 };

	create.ps = spaces[rand_r(seed) % ARRAY_SIZE(spaces)];
	create.qp_type = IBV_QPT_UD;
	join.addr = any_addr(seed);
	bind.addr = any_addr(seed);
	resolve.dst = any_addr(seed);
	connect.bytes = rand_r(seed) % 300;
	memcpy(body, small, sizeof(small));
	switch (type) {
	case CONTROL_CM_CREATE_ID:
		REQUEST(c, CREATE_ID, create, &reply);
		break;
	case CONTROL_CM_BIND_ADDR:
		REQUEST(c, BIND_ADDR, bind, &reply);
		break;
	case CONTROL_CM_RESOLVE_ADDR:
		REQUEST(c, RESOLVE_ADDR, resolve, &reply);
		break;
	case CONTROL_CM_JOIN:
		REQUEST(c, JOIN, join, &reply);
		break;
	case CONTROL_CM_CONNECT:
	case CONTROL_CM_ACCEPT:
	case CONTROL_CM_REJECT:
		testing_request(c, type, &connect, sizeof(connect), &reply);
		break;
	default: /* a handle or two, then zeros: whatever size it has */
		for (uint32_t bytes = 0; bytes <= sizeof(body); bytes += 4)
			testing_request(c, type, body, bytes, &reply);
		break;
	}
}

CASE_WITH(random_requests_do_no_harm_and_leave_nothing, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c[4];
	unsigned seed = 1;

	for (int i = 0; i < 4; i++)
		c[i] = testing_client(t, i - 1);
	for (int n = 0; n < 40000; n++) {
		int i = rand_r(&seed) % 4;

		random_request(c[i], &seed);
		if (n % 64 == 0)
			testing_pass(t, 64000);
		if (n % 512 == 0)
			cm_port_changed(t->cm, t->f->hca_port[rand_r(&seed) % 4]);
		if (n % 1024 == 0) { /* dies and comes again */
			cm_client_free(t->cm, c[i]);
			c[i] = testing_client(t, i - 1);
		}
	}
	for (int i = 0; i < 4; i++)
		cm_client_free(t->cm, c[i]);
}
