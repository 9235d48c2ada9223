/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Joins: the requests to the SA, the answers that reach the process, and how the membership of a
 * port is shared among joins.
 */
#include <harness.h>

#include "cm/testing.h"

static void assert_mgid(const struct ib_gid *mgid, const char *text)
{
	char got[INET6_ADDRSTRLEN];

	assert_non_null(inet_ntop(AF_INET6, mgid->raw, got, sizeof(got)));
	assert_string_equal(got, text);
}

/* ---- what the event says ---- */

CASE_WITH(the_event_has_what_a_sender_needs, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_event e =
	        testing_joined(c, testing_bound_id(c, RDMA_PS_UDP), "239.1.1.1");

	assert_int_equal(e.uid, 99);
	assert_int_equal(e.qp_num, 0xFFFFFF);
	assert_int_equal(e.qkey, 0x01234567);
	assert_int_equal(e.ah.is_global, 1);
	assert_int_equal(e.ah.dlid, testing_group(t)->rec.mlid);
	assert_int_equal(e.ah.port_num, 1);
	assert_mgid(&e.ah.dgid, "ff12:4001:ffff::f01:101");
	cm_client_free(t->cm, c);
}

CASE_WITH(the_ipoib_port_space_has_its_own_mgid_and_qkey, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_event e =
	        testing_joined(c, testing_bound_id(c, RDMA_PS_IPOIB), "239.1.1.1");

	assert_mgid(&e.ah.dgid, "ff12:401b:ffff::f01:101");
	assert_int_equal(e.qkey, 0x0B1B);
	cm_client_free(t->cm, c);
}

CASE_WITH(ipv6_groups_are_mapped, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_event e;
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	e = testing_joined(c, id, "ff1e::1:2");
	assert_mgid(&e.ah.dgid, "ff12:6001:ffff::1:2");
	cm_client_free(t->cm, c);
}

CASE_WITH(a_zero_address_lets_the_sa_choose, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, 0), *b = testing_client(t, 1);
	struct control_cm_event e = testing_joined(a, testing_bound_id(a, RDMA_PS_UDP), "0.0.0.0");
	char text[INET6_ADDRSTRLEN];

	assert_int_equal(e.ah.dgid.raw[0], 0xFF);
	assert_int_equal(e.ah.dgid.raw[2] << 8 | e.ah.dgid.raw[3], 0xA01B);
	/* and by that address others join it */
	inet_ntop(AF_INET6, e.ah.dgid.raw, text, sizeof(text));
	e = testing_joined(b, testing_bound_id(b, RDMA_PS_UDP), text);
	assert_mgid(&e.ah.dgid, text);
	assert_int_equal(testing_group(t)->n_members, 2);
	cm_client_free(t->cm, a);
	cm_client_free(t->cm, b);
}

CASE_WITH(two_zero_addresses_are_two_groups, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct control_cm_event first = testing_joined(c, id, "0.0.0.0"),
	                        second = testing_joined(c, id, "0.0.0.0");

	assert_memory_not_equal(&first.ah.dgid, &second.ah.dgid, 16);
	cm_client_free(t->cm, c);
}

CASE_WITH(an_af_ib_address_is_the_mgid, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	union control_cm_addr addr = { .ib = { .sib_family = AF_IB } };
	struct control_cm_event e;

	inet_pton(AF_INET6, "ff0e::abcd", &addr.ib.sib_addr);
	assert_int_equal(testing_join_flags(c, id, &addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL), 0);
	e = testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_mgid(&e.ah.dgid, "ff0e::abcd");
	cm_client_free(t->cm, c);
}

/* ---- what is refused ---- */

CASE_WITH(a_join_needs_a_device, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_join(c, id, "239.1.1.1", NULL), -EINVAL);
	assert_int_equal(testing_bind(c, id, "0.0.0.0", 0), 0);
	assert_int_equal(testing_join(c, id, "239.1.1.1", NULL), -EINVAL);
	assert_int_equal(testing_resolve(c, id, "239.1.1.1", 0), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	testing_joined(c, id, "239.1.1.1");
	cm_client_free(t->cm, c);
}

CASE_WITH(an_unknown_flag_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	union control_cm_addr addr = testing_addr("239.1.1.1", 0);

	assert_int_equal(testing_join_flags(c, testing_bound_id(c, RDMA_PS_UDP), &addr, 2, NULL),
	                 -EINVAL);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_reliable_identifier_does_not_join, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	assert_int_equal(testing_join(c, testing_bound_id(c, RDMA_PS_TCP), "239.1.1.1", NULL),
	                 -EINVAL);
	cm_client_free(t->cm, c);
}

CASE_WITH(send_only_needs_the_sa_s_support, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	union control_cm_addr addr = testing_addr("239.1.1.1", 0);
	const uint32_t send_only = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;

	t->sa.send_only = false;
	cm_port_active(t->cm, t->f->hca_port[0]);
	testing_settle(t);
	assert_int_equal(testing_join_flags(c, id, &addr, send_only, NULL), -EOPNOTSUPP);
	t->sa.send_only = true;
	cm_port_active(t->cm, t->f->hca_port[0]);
	testing_settle(t);
	assert_int_equal(testing_join_flags(c, id, &addr, send_only, NULL), 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(testing_group(t)->member[0].join_state, IB_JOIN_SEND_ONLY_FULL);
	cm_client_free(t->cm, c);
}

CASE_WITH(what_the_sa_refuses_is_an_event, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), handle = 0;
	union control_cm_addr addr = { .ib = { .sib_family = AF_IB } };
	struct control_cm_event e;

	inet_pton(AF_INET6, "fe80::1", &addr.ib.sib_addr); /* no multicast GID */
	assert_int_equal(testing_join_flags(c, id, &addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, &handle),
	                 0);
	e = testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL);
	assert_int_equal(e.uid, 99);
	assert_int_equal(testing_leave(c, handle), 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_group_with_another_qkey_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t udp = testing_bound_id(c, RDMA_PS_UDP), ipoib = testing_bound_id(c, RDMA_PS_IPOIB);
	union control_cm_addr addr = { .ib = { .sib_family = AF_IB } };

	inet_pton(AF_INET6, "ff0e::abcd", &addr.ib.sib_addr);
	assert_int_equal(testing_join_flags(c, udp, &addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL), 0);
	testing_expect(c, udp, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(testing_join_flags(c, ipoib, &addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL),
	                 0);
	testing_expect(c, ipoib, RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL);
	cm_client_free(t->cm, c);
}

CASE_WITH(without_the_broadcast_group_nothing_is_joined, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->f->hca_port[0]->state = IB_PORT_DOWN; /* so it is for a port that is down */
	assert_int_equal(testing_join(c, id, "239.1.1.1", NULL), -EADDRNOTAVAIL);
	cm_client_free(t->cm, c);
}

/* ---- one membership, many joins ---- */

CASE_WITH(the_port_leaves_with_its_last_join, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, 0), *b = testing_client(t, 0);
	uint32_t id_a = testing_bound_id(a, RDMA_PS_UDP), id_b = testing_bound_id(b, RDMA_PS_UDP);
	uint32_t join_a, join_b;

	assert_int_equal(testing_join(a, id_a, "239.1.1.1", &join_a), 0);
	assert_int_equal(testing_join(b, id_b, "239.1.1.1", &join_b), 0);
	assert_int_equal(testing_group(t)->n_members, 1);
	assert_int_equal(t->cm->groups.n, 1);
	assert_int_equal(testing_leave(a, join_a), 0);
	assert_non_null(testing_group(t));
	assert_int_equal(testing_leave(b, join_b), 0);
	assert_null(testing_group(t));
	cm_client_free(t->cm, a);
	cm_client_free(t->cm, b);
}

CASE_WITH(ports_are_members_each_for_itself, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, 0), *b = testing_client(t, 1);

	testing_joined(a, testing_bound_id(a, RDMA_PS_UDP), "239.1.1.1");
	testing_joined(b, testing_bound_id(b, RDMA_PS_UDP), "239.1.1.1");
	assert_int_equal(testing_group(t)->n_members, 2);
	cm_client_free(t->cm, a);
	assert_int_equal(testing_group(t)->n_members, 1);
	cm_client_free(t->cm, b);
	assert_null(testing_group(t));
}

CASE_WITH(join_states_are_counted_apart, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), full = 0, send_only = 0;
	union control_cm_addr addr = testing_addr("239.1.1.1", 0);

	assert_int_equal(testing_join(c, id, "239.1.1.1", &full), 0);
	assert_int_equal(
	        testing_join_flags(c, id, &addr, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, &send_only),
	        0);
	assert_int_equal(testing_group(t)->member[0].join_state,
	                 IB_JOIN_FULL | IB_JOIN_SEND_ONLY_FULL);
	assert_int_equal(testing_leave(c, full), 0);
	assert_int_equal(testing_group(t)->member[0].join_state, IB_JOIN_SEND_ONLY_FULL);
	assert_int_equal(testing_leave(c, send_only), 0);
	assert_null(testing_group(t));
	cm_client_free(t->cm, c);
}

CASE_WITH(the_same_address_may_be_joined_twice, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), first, second;

	assert_int_equal(testing_join(c, id, "239.1.1.1", &first), 0);
	assert_int_equal(testing_join(c, id, "239.1.1.1", &second), 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(testing_leave(c, first), 0);
	assert_non_null(testing_group(t));
	assert_int_equal(testing_leave(c, first), -EADDRNOTAVAIL);
	assert_int_equal(testing_leave(c, second), 0);
	assert_null(testing_group(t));
	cm_client_free(t->cm, c);
}

CASE_WITH(leaving_takes_the_event_back, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), handle;
	struct control_cm_handle request;
	struct control_cm_events_reply reply;
	struct control_cm_event e;

	assert_int_equal(testing_join(c, id, "239.1.1.1", &handle), 0);
	request.join = handle;
	assert_int_equal(REQUEST(c, LEAVE, request, &reply), 0);
	assert_int_equal(reply.withdrawn, 1);
	assert_int_equal(reply.reported, 0);
	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
	cm_client_free(t->cm, c);
}

CASE_WITH(destroying_an_identifier_leaves_its_groups, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct control_cm_events_reply reply;

	testing_joined(c, id, "239.1.1.1");
	assert_int_equal(testing_join(c, id, "239.1.1.2", NULL), 0);
	reply = testing_destroy(c, id);
	assert_int_equal(reply.reported, 1);
	assert_int_equal(reply.withdrawn, 1);
	assert_null(testing_group(t));
	cm_client_free(t->cm, c);
}

/* ---- a port changes ---- */

CASE_WITH(a_changed_port_tells_each_of_its_joins, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, 0), *b = testing_client(t, 0);
	struct cm_client *other = testing_client(t, 1);
	uint32_t id_a = testing_bound_id(a, RDMA_PS_UDP), id_b = testing_bound_id(b, RDMA_PS_UDP);
	uint32_t id_other = testing_bound_id(other, RDMA_PS_UDP);
	struct control_cm_event e;

	testing_joined(a, id_a, "239.1.1.1");
	testing_joined(b, id_b, "239.1.1.1");
	testing_joined(other, id_other, "239.1.1.1");
	cm_port_changed(t->cm, t->f->hca_port[0]);
	e = testing_expect(a, id_a, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_int_equal(e.uid, 99);
	testing_expect(b, id_b, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_int_equal(testing_event(other, id_other, &e), -EAGAIN);
	assert_int_equal(testing_group(t)->n_members, 1);
	cm_client_free(t->cm, a);
	cm_client_free(t->cm, b);
	cm_client_free(t->cm, other);
}

CASE_WITH(after_a_reset_one_leaves_and_joins_anew, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), handle;

	assert_int_equal(testing_join(c, id, "239.1.1.1", &handle), 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	cm_port_changed(t->cm, t->f->hca_port[0]);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	testing_joined(c, id, "239.1.1.1");
	assert_int_equal(testing_leave(c, handle), 0);
	assert_non_null(testing_group(t)); /* the second join holds it */
	cm_client_free(t->cm, c);
}

/* ---- many joins ---- */

#define MANY 1000

/* Joins all of them, and reads no event. The handle of the last join. */
static uint32_t join_many(struct testing *t, struct cm_client *c, uint32_t id)
{
	uint32_t handle = 0;

	for (unsigned i = 0; i < MANY; i++) {
		union control_cm_addr group = testing_addr("239.2.0.0", 0);

		group.in.sin_addr.s_addr = htonl(0xEF020000 + i);
		assert_int_equal(
		        testing_join_flags(c, id, &group, RDMA_MC_JOIN_FLAG_FULLMEMBER, &handle),
		        0);
	}
	testing_settle(t);
	return handle;
}

/* Which part of the end the daemon does in one piece, and what happens meanwhile. */
CASE_WITH(an_identifier_s_joins_end_in_slices, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), other = testing_bound_id(c, RDMA_PS_UDP);
	uint32_t handle = join_many(t, c, id);

	assert_int_equal(testing_leave(c, handle), 0);
	join_many(t, c, other);
	assert_int_equal(testing_destroy(c, other).withdrawn, MANY);
	testing_pass(t, 1);
	assert_int_equal(c->joins.used, MANY - 1);
	testing_joined(c, testing_bound_id(c, RDMA_PS_UDP), "239.2.0.0");
	assert_int_equal(testing_destroy(c, id).withdrawn, MANY - 1);
	assert_in_range(c->joins.used, MANY / 2, MANY - 1);
	assert_null(cm_id_at(c, id));
	assert_int_equal(testing_leave(c, 1), -EADDRNOTAVAIL);
	testing_settle(t);
	assert_in_range(t->cm->groups.n, MANY / 2, MANY - 1);
	testing_pass(t, 1);
	assert_int_equal(c->joins.used, 1);
	assert_int_equal(t->cm->groups.n, 1); /* which another join holds */
	cm_client_free(t->cm, c);
}

CASE_WITH(what_becomes_of_a_port_is_nothing_to_joins_that_end, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	join_many(t, c, id);
	testing_destroy(c, id);
	assert_true(c->joins.used > 0);
	cm_port_changed(t->cm, t->f->hca_port[0]);
	cm_client_free(t->cm, c);
	testing_pass(t, 1);
}

CASE_WITH(a_death_with_many_joins_is_no_one_s_burden, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	join_many(t, c, testing_bound_id(c, RDMA_PS_UDP));
	cm_client_free(t->cm, c);
	assert_in_range(c->joins.used, MANY / 2, MANY - 1);
	testing_pass(t, 1);
}
