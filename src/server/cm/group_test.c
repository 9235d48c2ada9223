/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port and its SA: the MADs to it, and their order. The outcome of joins when the SA is slow,
 * busy, deaf or refuses, or when those that asked leave or the port changes meanwhile.
 */
#include <harness.h>

#include "cm/testing.h"

#define GROUP     "239.1.1.1"
#define TRY_MS    300 /* a tenth of the kernel's 3 seconds */
#define JOIN_MS   3000
#define SEND_ONLY RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER

static void assert_no_event(struct cm_client *c, uint32_t id)
{
	struct control_cm_event e;

	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
}

static int join_send_only(struct cm_client *c, uint32_t id, const char *group, uint32_t *join)
{
	union control_cm_addr addr = testing_addr(group, 0);

	return testing_join_flags(c, id, &addr, SEND_ONLY, join);
}

static uint8_t states_of_member(struct testing *t)
{
	struct testing_group *g = testing_group(t);

	return g ? g->member[0].join_state : 0;
}

/* ---- requests ---- */

CASE_WITH(a_join_is_a_request_of_the_port, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 2);
	struct wire_mcmember r;

	testing_joined(c, testing_bound_id(c, RDMA_PS_UDP), GROUP);
	assert_int_equal(t->sa.last.mad.method, MAD_SET);
	assert_int_equal(t->sa.last.mad.attribute_id, SA_ATTR_MCMEMBER);
	assert_int_equal(t->sa.last.component_mask, 0x130C7 | SA_MCM_FLOW_LABEL);
	wire_mcmember_decode(t->sa.last.data, &r);
	assert_memory_equal(&r.port_gid, &shm_port_at(t->f->region, 2)->gid[0], 16);
	assert_int_equal(r.qkey, 0x01234567);
	assert_int_equal(r.join_state, IB_JOIN_FULL);
	cm_client_free(t->cm, c);
}

CASE_WITH(for_ipoib_mtu_and_rate_are_the_broadcast_group_s, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct wire_mcmember r;

	testing_joined(c, testing_bound_id(c, RDMA_PS_IPOIB), GROUP);
	wire_mcmember_decode(t->sa.last.data, &r);
	assert_true(t->sa.last.component_mask & SA_MCM_MTU);
	assert_int_equal(r.mtu_selector, SA_EXACTLY);
	assert_int_equal(r.mtu, TESTING_SA_MTU);
	assert_int_equal(r.rate, IBV_RATE_100_GBPS);
	assert_int_equal(r.qkey, TESTING_SA_QKEY);
	cm_client_free(t->cm, c);
}

CASE_WITH(the_second_join_is_no_request, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, 0), *b = testing_client(t, 0);

	testing_joined(a, testing_bound_id(a, RDMA_PS_UDP), GROUP);
	testing_joined(b, testing_bound_id(b, RDMA_PS_UDP), GROUP);
	assert_int_equal(t->sa.n_set, 1);
	cm_client_free(t->cm, a);
	testing_settle(t);
	assert_int_equal(t->sa.n_delete, 0);
	cm_client_free(t->cm, b);
	testing_settle(t);
	assert_int_equal(t->sa.n_delete, 1);
}

CASE_WITH(joins_made_while_the_sa_thinks_are_one_request, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.keeps = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	assert_no_event(c, id);
	testing_release(t);
	for (int i = 0; i < 3; i++)
		testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(t->sa.n_set, 1);
	cm_client_free(t->cm, c);
}

CASE_WITH(another_join_state_is_another_request_after_the_first, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	assert_int_equal(join_send_only(c, id, GROUP, NULL), 0);
	assert_int_equal(t->sa.n_set, 1);
	testing_release(t);
	assert_int_equal(t->sa.n_set, 2);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(states_of_member(t), IB_JOIN_FULL | IB_JOIN_SEND_ONLY_FULL);
	cm_client_free(t->cm, c);
}

CASE_WITH(states_that_others_joined_in_stay_theirs, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), join;

	/* somebody joins with MADs of his own, as saquery might */
	assert_int_equal(testing_join(c, id, GROUP, &join), 0);
	testing_group(t)->member[0].join_state |= IB_JOIN_NON;
	assert_int_equal(join_send_only(c, id, GROUP, NULL), 0);
	assert_int_equal(testing_leave(c, join), 0);
	assert_int_equal(states_of_member(t), IB_JOIN_NON | IB_JOIN_SEND_ONLY_FULL);
	cm_client_free(t->cm, c);
	assert_int_equal(states_of_member(t), IB_JOIN_NON);
	free(testing_group(t));
	LIST_INIT(&t->sa.groups);
}

/* ---- an SA that is not at its best ---- */

CASE_WITH(a_lost_request_is_sent_again, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.loses = 2;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	testing_pass(t, TRY_MS);
	assert_no_event(c, id);
	testing_pass(t, TRY_MS);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_busy_sa_is_asked_again, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.says = MAD_STATUS_BUSY;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	assert_no_event(c, id);
	t->sa.says = 0;
	testing_pass(t, TRY_MS);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(an_sa_that_does_not_respond_is_an_event, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), join;
	struct control_cm_event e;
	unsigned sent = t->n_sent;

	t->sa.loses = UINT_MAX;
	assert_int_equal(testing_join(c, id, GROUP, &join), 0);
	testing_pass(t, JOIN_MS - 1);
	assert_no_event(c, id);
	assert_int_equal(t->n_sent - sent, 10);
	testing_pass(t, 1);
	e = testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ETIMEDOUT);
	assert_int_equal(e.uid, TESTING_JOIN_UID);
	assert_int_equal(testing_leave(c, join), 0);
	t->sa.loses = 0;
	testing_pass(t, TRY_MS); /* it is told that we are no member */
	cm_client_free(t->cm, c);
}

CASE_WITH(a_refusal_fails_its_join_alone, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.says = SA_NO_RESOURCES;
	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	t->sa.says = 0;
	testing_release(t);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(what_the_sa_did_and_could_not_say_is_taken_back, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	testing_pass(t, JOIN_MS);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ETIMEDOUT);
	assert_null(testing_group(t)); /* by a Delete, whose response is kept as well */
	testing_release(t);
	assert_no_event(c, id);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_response_that_comes_twice_counts_once, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	testing_pass(t, 2 * TRY_MS); /* it is asked, and responds, three times */
	assert_int_equal(t->sa.n_set, 3);
	testing_release(t);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_no_event(c, id);
	assert_int_equal(t->cm->transactions.n, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_member_is_given_back_though_the_sa_is_deaf_for_a_while, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	testing_joined(c, testing_bound_id(c, RDMA_PS_UDP), GROUP);
	t->sa.loses = 25;
	cm_client_free(t->cm, c);
	testing_pass(t, 25 * TRY_MS);
	assert_null(testing_group(t));
	assert_int_equal(t->cm->groups.n, 0);
}

CASE_WITH(at_last_a_deaf_sa_is_given_up, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	testing_joined(c, testing_bound_id(c, RDMA_PS_UDP), GROUP);
	t->sa.loses = UINT_MAX;
	cm_client_free(t->cm, c);
	testing_pass(t, 4 * JOIN_MS);
	assert_int_equal(t->cm->groups.n, 0);
	assert_int_equal(t->cm->transactions.n, 0);
	assert_non_null(testing_group(t));
	t->sa.loses = 0;
	free(testing_group(t));
	LIST_INIT(&t->sa.groups);
}

/* ---- members that leave early ---- */

CASE_WITH(who_leaves_while_the_sa_thinks_is_out_when_it_has, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), join;

	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, &join), 0);
	assert_int_equal(testing_leave(c, join), 0);
	assert_int_equal(testing_leave(c, join), -EADDRNOTAVAIL);
	assert_non_null(testing_group(t));
	testing_release(t);
	assert_null(testing_group(t));
	assert_no_event(c, id);
	cm_client_free(t->cm, c);
}

CASE_WITH(who_comes_after_him_has_what_he_asked_for, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), join;

	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, &join), 0);
	assert_int_equal(testing_leave(c, join), 0);
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	testing_release(t);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(t->sa.n_set, 1);
	assert_int_equal(t->sa.n_delete, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_join_waits_for_the_leave_before_it, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), join;

	assert_int_equal(testing_join(c, id, GROUP, &join), 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	t->sa.keeps = true;
	assert_int_equal(testing_leave(c, join), 0);
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	assert_int_equal(t->sa.n_set, 1);
	testing_release(t);
	assert_int_equal(t->sa.n_set, 2);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_non_null(testing_group(t));
	cm_client_free(t->cm, c);
}

CASE_WITH(a_process_that_dies_while_the_sa_thinks_leaves_nothing, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	assert_int_equal(testing_join(c, id, "0.0.0.0", NULL), 0);
	cm_client_free(t->cm, c);
	assert_non_null(testing_group(t));
	testing_release(t);
	assert_null(testing_group(t));
}

CASE_WITH(at_the_daemon_s_end_nothing_is_sent, testing_setup, NULL)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	unsigned sent;

	testing_joined(c, id, GROUP);
	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, "239.1.1.2", NULL), 0);
	cm_client_free(t->cm, c);
	sent = t->n_sent;
	testing_end(state); /* with a Set and a Delete in flight */
	assert_int_not_equal(sent, 0);
}

/* ---- another subnet administrator ---- */

/* It knows no members. */
static void sa_forgets(struct testing *t)
{
	testing_sa_fini(&t->sa);
	LIST_INIT(&t->sa.groups);
}

CASE_WITH(members_are_registered_with_a_new_sa, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct testing_group *g;
	uint16_t mlid;

	testing_joined(c, id, GROUP);
	mlid = testing_group(t)->rec.mlid;
	sa_forgets(t);
	cm_port_renew(t->cm, t->f->hca_port[0]);
	testing_settle(t);
	g = testing_group(t);
	assert_non_null(g);
	assert_int_equal(g->rec.mlid, mlid);
	assert_int_equal(g->member[0].join_state, IB_JOIN_FULL);
	assert_no_event(c, id);
	cm_client_free(t->cm, c); /* and leave it */
	testing_settle(t);
	assert_null(testing_group(t));
}

CASE_WITH(a_slow_new_sa_is_asked_again, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	testing_joined(c, id, GROUP);
	sa_forgets(t);
	t->sa.loses = 25; /* more than one round; and two more requests that ask what it can do */
	cm_port_renew(t->cm, t->f->hca_port[0]);
	testing_pass(t, 5000);
	assert_non_null(testing_group(t));
	assert_no_event(c, id);
	t->sa.loses = UINT32_MAX; /* it never responds */
	sa_forgets(t);
	cm_port_renew(t->cm, t->f->hca_port[0]);
	testing_pass(t, 60000);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	t->sa.loses = 0;
	cm_client_free(t->cm, c);
	testing_pass(t, 120000);
}

CASE_WITH(who_cannot_keep_a_group_as_it_was_hears_of_it, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	testing_joined(c, id, GROUP);
	sa_forgets(t);
	t->sa.chooses = true; /* another MLID */
	cm_port_renew(t->cm, t->f->hca_port[0]);
	testing_settle(t);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	testing_settle(t);
	assert_null(testing_group(t));
	cm_client_free(t->cm, c);
}

CASE_WITH(a_join_on_its_way_goes_to_the_new_sa, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP), other = testing_bound_id(c, RDMA_PS_UDP);

	testing_joined(c, id, GROUP);
	t->sa.loses = 1;
	assert_int_equal(testing_join(c, other, GROUP, NULL), 0); /* shares the membership */
	sa_forgets(t);
	cm_port_renew(t->cm, t->f->hca_port[0]);
	testing_settle(t);
	testing_expect(c, other, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	testing_pass(t, 5000);
	assert_non_null(testing_group(t));
	assert_no_event(c, id);
	cm_client_free(t->cm, c);
}

/* ---- the port changes meanwhile ---- */

CASE_WITH(a_join_on_its_way_starts_again, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.loses = 1;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	cm_port_changed(t->cm, t->f->hca_port[0]);
	testing_settle(t);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_no_event(c, id);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_late_response_from_before_the_change_means_nothing, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	cm_port_changed(t->cm, t->f->hca_port[0]);
	testing_settle(t);
	assert_int_equal(t->sa.n_set, 2);
	testing_release(t);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_no_event(c, id);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_lost_member_s_state_is_given_back, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	testing_joined(c, id, GROUP);
	cm_port_changed(t->cm, t->f->hca_port[0]);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_null(testing_group(t));
	cm_client_free(t->cm, c);
}

CASE_WITH(members_are_lost_with_their_partition, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct fabric_port *port = t->f->hca_port[0];

	testing_joined(c, id, GROUP);
	port->pkey[0] = 0x8001;
	port->pkey[1] = 0x7FFF; /* a limited member is one still */
	cm_port_active(t->cm, port);
	assert_no_event(c, id);
	port->pkey[1] = 0;
	cm_port_active(t->cm, port);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	testing_settle(t);
	assert_null(testing_group(t));
	cm_client_free(t->cm, c);
}

CASE_WITH(a_port_that_is_down_sends_nothing, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	unsigned sent;

	testing_joined(c, id, GROUP);
	sent = t->n_sent;
	t->f->hca_port[0]->state = IB_PORT_DOWN;
	cm_port_changed(t->cm, t->f->hca_port[0]);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	cm_client_free(t->cm, c);
	testing_pass(t, 60000);
	assert_int_equal(t->n_sent, sent);
	assert_int_equal(t->cm->groups.n, 0);
	free(testing_group(t)); /* an SM takes such a port out by itself */
	LIST_INIT(&t->sa.groups);
}

CASE_WITH(a_join_goes_through_when_the_port_returns, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct fabric_port *port = t->f->hca_port[0];

	t->sa.loses = 1;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	port->state = IB_PORT_DOWN;
	cm_port_changed(t->cm, port);
	testing_pass(t, TRY_MS);
	assert_no_event(c, id);
	port->state = IB_PORT_ACTIVE;
	cm_port_active(t->cm, port);
	testing_pass(t, TRY_MS);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(the_sa_is_where_the_port_s_sm_is_by_then, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 1);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct fabric_port *port = t->f->hca_port[1];

	port->sm_lid = 4; /* which does not response */
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	testing_pass(t, TRY_MS);
	assert_no_event(c, id);
	port->sm_lid = TESTING_SA_LID;
	testing_pass(t, TRY_MS);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	cm_client_free(t->cm, c);
}

/* ---- slices ---- */

#define MANY 1000 /* joins: several slices */

/* How many events of @id wait that are as these, one after the other. */
static unsigned count_events(struct cm_client *c, uint32_t id, uint32_t type, int status)
{
	struct control_cm_event e;
	unsigned n = 0;

	while (!testing_event(c, id, &e)) {
		assert_int_equal(e.type, type);
		assert_int_equal(e.status, status);
		n++;
	}
	return n;
}

static uint32_t id_with_many_joins(struct testing *t, struct cm_client *c, bool of_one_group)
{
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	for (unsigned i = 0; i < MANY; i++) {
		char group[32];

		snprintf(group, sizeof(group), "239.1.%u.%u", of_one_group ? 0 : i / 250,
		         of_one_group ? 0 : i % 250);
		testing_joined(c, id, group);
	}
	testing_do_slices(t);
	return id;
}

static void lose_many(struct testing *t, bool of_one_group)
{
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = id_with_many_joins(t, c, of_one_group), other;
	unsigned lost;

	cm_port_changed(t->cm, t->f->hca_port[0]);
	lost = count_events(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_in_range(lost, 0, CM_SLICE + 64); /* first it is looked whether P_Keys are lost */
	base_timers_run(&t->timers);
	lost += count_events(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_in_range(lost, 2, 2 * (CM_SLICE + 64));
	/* a member that joins meanwhile is not lost, nor told of others' loss */
	other = testing_bound_id(c, RDMA_PS_UDP); /* on another channel */
	assert_int_equal(testing_join(c, other, of_one_group ? "239.1.0.0" : "239.1.3.249", NULL),
	                 0);
	testing_do_slices(t);
	testing_expect(c, other, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_no_event(c, other);
	lost += count_events(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_int_equal(lost, MANY);
	cm_client_free(t->cm, c);
	testing_do_slices(t);
}

CASE_WITH(many_groups_are_lost_in_slices, testing_setup, testing_teardown)
{
	lose_many(*state, false);
}

CASE_WITH(many_joins_of_a_group_are_lost_in_slices, testing_setup, testing_teardown)
{
	lose_many(*state, true);
}

CASE_WITH(many_joins_are_let_in_in_slices, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct testing_sa_kept *k;
	unsigned n;

	t->sa.keeps = true;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	k = STAILQ_FIRST(&t->sa.kept);
	STAILQ_REMOVE_HEAD(&t->sa.kept, entry);
	assert_true(cm_mad_input(t->cm, k->port, &k->response));
	free(k);
	n = count_events(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_in_range(n, 1, CM_SLICE);
	testing_do_slices(t);
	n += count_events(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(n, MANY);
	testing_release(t);
	cm_client_free(t->cm, c);
	testing_do_slices(t);
}

CASE_WITH(members_leave_before_they_have_heard_of_their_loss, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = id_with_many_joins(t, c, true);

	cm_port_changed(t->cm, t->f->hca_port[0]);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(testing_leave(c, i), 0);
	testing_do_slices(t);
	assert_no_event(c, id);
	assert_null(testing_group(t));
	cm_client_free(t->cm, c);
}

CASE_WITH(many_groups_are_registered_with_a_new_sa_in_slices, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	unsigned before;

	id_with_many_joins(t, c, false);
	sa_forgets(t);
	before = t->sa.n_set;
	cm_port_renew(t->cm, t->f->hca_port[0]);
	testing_settle(t);
	assert_in_range(t->sa.n_set - before, 0, CM_SLICE);
	while (cm_ports_have_news(t->cm)) {
		assert_in_range(t->sa.n_set - before, 0, MANY);
		base_timers_run(&t->timers);
		testing_settle(t);
	}
	assert_int_equal(t->sa.n_set - before, MANY);
	testing_do_slices(t);
	assert_int_equal(t->sa.n_set - before, MANY);
	cm_client_free(t->cm, c);
	testing_do_slices(t);
}

CASE_WITH(who_dies_gives_his_port_number_back_though_groups_have_work, testing_setup,
          testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0), *server = testing_client(t, 1);

	id_with_many_joins(t, c, false);
	assert_int_equal(testing_bind(server, testing_id(server, RDMA_PS_UDP, 1), "10.0.0.2", 7000),
	                 0);
	cm_port_changed(t->cm, t->f->hca_port[0]);
	cm_client_free(t->cm, server);
	base_timers_run(&t->timers);
	assert_true(cm_groups_wait(t->cm));
	server = testing_client(t, 1);
	assert_int_equal(testing_bind(server, testing_id(server, RDMA_PS_UDP, 1), "10.0.0.2", 7000),
	                 0);
	cm_client_free(t->cm, server);
	cm_client_free(t->cm, c);
	testing_do_slices(t);
}

CASE_WITH(a_large_group_does_not_keep_another_one_waiting, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0), *other = testing_client(t, 1);
	uint32_t id = id_with_many_joins(t, c, true), small = testing_bound_id(other, RDMA_PS_UDP);

	for (unsigned i = 0; i < 100; i++)
		testing_joined(other, small, GROUP);
	testing_do_slices(t);
	cm_port_changed(t->cm, t->f->hca_port[0]);
	cm_port_changed(t->cm, t->f->hca_port[1]);
	base_timers_run(&t->timers);
	assert_int_equal(count_events(other, small, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET),
	                 100);
	assert_in_range(count_events(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET), 1,
	                MANY - 1);
	cm_client_free(t->cm, other);
	cm_client_free(t->cm, c);
	testing_do_slices(t);
}

CASE_WITH(a_loss_is_told_though_nobody_reads, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	struct control_cm_create_id request = { .channel = cm_id_at(c, id)->channel->handle,
		                                .ps = RDMA_PS_UDP,
		                                .qp_type = IBV_QPT_UD };
	uint32_t other = testing_new_id(c, &request);
	struct control_cm_event e;

	testing_joined(c, id, GROUP);
	while (!testing_resolve(c, other, "192.0.2.1", 0))
		;
	cm_port_changed(t->cm, t->f->hca_port[0]);
	testing_do_slices(t);
	do
		assert_int_equal(testing_event(c, other, &e), 0);
	while (e.type == RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(e.type, RDMA_CM_EVENT_MULTICAST_ERROR);
	cm_client_free(t->cm, c);
}

/* ---- anything at all ---- */

static void random_step(struct testing *t, struct cm_client *c, uint32_t *id, unsigned *seed)
{
	static const char *const groups[] = { "239.1.1.1", "239.1.1.2", "0.0.0.0" };
	const char *group = groups[rand_r(seed) % ARRAY_SIZE(groups)];

	switch (rand_r(seed) % 8) {
	case 0:
		testing_destroy(c, *id);
		*id = testing_bound_id(c, RDMA_PS_UDP);
		break;
	case 1:
		t->sa.loses = (unsigned)rand_r(seed) % 12;
		break;
	case 2:
		testing_release(t);
		t->sa.keeps = rand_r(seed) % 2;
		break;
	case 3:
		t->sa.says = rand_r(seed) % 4   ? 0
		             : rand_r(seed) % 2 ? MAD_STATUS_BUSY
		                                : SA_REQ_DENIED;
		break;
	case 4:
		cm_port_changed(t->cm, t->f->hca_port[rand_r(seed) % 4]);
		break;
	case 5:
		testing_pass(t, (uint64_t)rand_r(seed) % 1000);
		break;
	case 6:
		join_send_only(c, *id, group, NULL);
		break;
	default:
		testing_join(c, *id, group, NULL);
		break;
	}
}

/* The SA knows of no membership that it lost. Nobody holds the memberships that it knows of in the
 * end. */
CASE_WITH(whatever_happens_the_sa_knows_who_is_a_member_in_the_end, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct control_cm_event e;
	struct cm_client *c[4];
	unsigned seed = 7;
	uint32_t id[4];

	for (int i = 0; i < 4; i++) {
		c[i] = testing_client(t, i);
		id[i] = testing_bound_id(c[i], RDMA_PS_UDP);
	}
	for (int n = 0; n < 20000; n++) {
		int i = rand_r(&seed) % 4;

		random_step(t, c[i], &id[i], &seed);
	}
	t->sa.loses = t->sa.says = 0;
	testing_release(t);
	testing_pass(t, 5 * JOIN_MS);
	for (int i = 0; i < 4; i++) {
		testing_destroy(c[i], id[i]);
		id[i] = testing_bound_id(c[i], RDMA_PS_UDP);
		e = testing_joined(c[i], id[i], GROUP);
	}
	assert_int_equal(testing_sa_group(&t->sa, &e.ah.dgid)->n_members, 4);
	for (int i = 0; i < 4; i++)
		cm_client_free(t->cm, c[i]);
	testing_do_slices(t);
	assert_null(testing_sa_group(&t->sa, &e.ah.dgid));
	testing_sa_fini(&t->sa); /* groups whose MGID it chose and could not tell us */
}
