/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that join by MADs of their own, beside each other and beside rdma_cm on one port: the
 * port is a member while somebody holds it, and nobody leaves for somebody else.
 */
#include <harness.h>

#include "cm/testing.h"
#include "wire/rmpp.h"

#define GROUP   "239.1.1.1"
#define QKEY    0x01234567 /* of RDMA_PS_UDP */
#define JOIN_MS 3000
#define FULL    IB_JOIN_FULL
#define NON     IB_JOIN_NON
#define SENDER  IB_JOIN_SEND_ONLY_FULL
#define ASK     (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE | SA_MCM_QKEY | SA_MCM_PKEY)

/* A program with its port open, and what has been answered. */
struct program {
	struct testing *t;
	struct cm_program *cm;
	struct fabric_port *port;
	uint64_t tid;
	unsigned answers;
	struct wire_sa_mad last;
};

static void on_response(void *arg, struct fabric_port *port, const struct fabric_mad *mad)
{
	struct program *p = arg;

	assert_ptr_equal(port, p->port);
	assert_int_equal(mad->slid, port->sm_lid);
	assert_int_equal(mad->dlid, port->lid);
	wire_sa_mad_decode(mad->data, &p->last);
	p->answers++;
}

static struct program program_on(struct testing *t, unsigned host)
{
	return (struct program){ .t = t, .port = t->f->hca_port[host] };
}

static void program_open(struct program *p)
{
	const struct cm_program_ops ops = { .respond = on_response, .arg = p };

	assert_int_equal(cm_program_new(p->t->cm, p->port, &ops, &p->cm), 0);
}

/* Its memberships end in slices. */
static void program_end(struct program *p)
{
	cm_program_free(p->cm);
	p->cm = NULL;
	testing_do_slices(p->t);
}

static struct wire_mcmember record(const struct program *p, const char *group, uint8_t states)
{
	struct wire_mcmember r = { .qkey = QKEY, .pkey = IB_PKEY_DEFAULT, .join_state = states };
	union control_cm_addr addr = testing_addr(group, 0);

	cm_addr_to_mgid(&addr, IB_PKEY_DEFAULT, true, &r.mgid);
	cm_port_gid(p->t->cm, p->port, &r.port_gid);
	return r;
}

static struct fabric_mad mad_of(const struct program *p, uint8_t method,
                                const struct wire_mcmember *r)
{
	struct wire_sa_mad sa = { .mad = { .base_version = MAD_BASE_VERSION,
		                           .mgmt_class = MAD_CLASS_SUBN_ADM,
		                           .class_version = MAD_VERSION_SUBN_ADM,
		                           .method = method,
		                           .transaction_id = p->tid,
		                           .attribute_id = SA_ATTR_MCMEMBER },
		                  .component_mask = ASK };
	struct fabric_mad mad = { .slid = p->port->lid,
		                  .dlid = p->port->sm_lid,
		                  .src_qpn = IB_QPN_GSI,
		                  .dest_qpn = IB_QPN_GSI,
		                  .qkey = IB_QKEY_GSI };

	wire_mcmember_encode(r, sa.data);
	wire_sa_mad_encode(&sa, mad.data);
	return mad;
}

/* The program sends a request, and the daemon takes its MAD to count the membership. */
static void program_send(struct program *p, uint8_t method, const char *group, uint8_t states)
{
	struct wire_mcmember r = record(p, group, states);
	struct fabric_mad mad;

	p->tid++;
	mad = mad_of(p, method, &r);
	assert_true(cm_program_wants(p->cm, &mad));
	cm_program_send(p->cm, &mad);
	testing_settle(p->t);
}

/* The status that it gets for its request, which is answered at once. */
static uint16_t program_asks(struct program *p, uint8_t method, const char *group, uint8_t states)
{
	const unsigned before = p->answers;

	program_send(p, method, group, states);
	assert_int_equal(p->answers, before + 1);
	assert_int_equal(p->last.mad.transaction_id, p->tid);
	assert_int_equal(p->last.mad.method, wire_mad_response_method(method));
	return p->last.mad.status;
}

static void program_joins(struct program *p, uint8_t states)
{
	assert_int_equal(program_asks(p, MAD_SET, GROUP, states), 0);
}

static void program_leaves(struct program *p, uint8_t states)
{
	assert_int_equal(program_asks(p, MAD_DELETE, GROUP, states), 0);
}

/* As the SA has it. */
static uint8_t states_of(const struct program *p, const char *group)
{
	struct wire_mcmember r = record(p, group, 0);
	const struct testing_group *g = testing_sa_group(&p->t->sa, &r.mgid);
	unsigned i = g ? testing_sa_member(g, &r.port_gid) : 0;

	return g && i < g->n_members ? g->member[i].join_state : 0;
}

static uint32_t rdmacm_joins(struct cm_client *c, uint32_t id)
{
	uint32_t join;

	assert_int_equal(testing_join(c, id, GROUP, &join), 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	return join;
}

/* ---- the holders of the port's membership ---- */

CASE_WITH(who_leaves_by_a_mad_leaves_nobody_else_s, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct cm_client *c = testing_client(t, 0);

	program_open(&p);
	rdmacm_joins(c, testing_bound_id(c, RDMA_PS_UDP));
	program_joins(&p, FULL);
	program_leaves(&p, FULL);
	assert_int_equal(t->sa.n_delete, 0);
	assert_int_equal(states_of(&p, GROUP), FULL);
	cm_client_free(t->cm, c);
	testing_do_slices(t);
	assert_int_equal(states_of(&p, GROUP), 0);
	program_end(&p);
}

CASE_WITH(who_leaves_by_rdma_cm_leaves_nobody_else_s, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct cm_client *c = testing_client(t, 0);
	uint32_t join;

	program_open(&p);
	program_joins(&p, FULL);
	join = rdmacm_joins(c, testing_bound_id(c, RDMA_PS_UDP));
	assert_int_equal(t->sa.n_set, 1); /* the port is a member */
	assert_int_equal(testing_leave(c, join), 0);
	assert_int_equal(states_of(&p, GROUP), FULL);
	program_leaves(&p, FULL);
	assert_int_equal(states_of(&p, GROUP), 0);
	cm_client_free(t->cm, c);
	program_end(&p);
}

CASE_WITH(each_program_holds_it_once, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program a = program_on(t, 0), b = program_on(t, 0);

	program_open(&a);
	program_open(&b);
	program_joins(&a, FULL);
	program_joins(&a, FULL);
	program_joins(&b, FULL);
	program_leaves(&a, FULL);
	assert_int_equal(states_of(&a, GROUP), FULL);
	program_leaves(&b, FULL);
	assert_int_equal(states_of(&a, GROUP), 0);
	program_end(&a);
	program_end(&b);
}

CASE_WITH(who_is_no_member_cannot_leave_for_others, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0), hostile = program_on(t, 0);
	struct cm_client *c = testing_client(t, 0);
	uint32_t join = rdmacm_joins(c, testing_bound_id(c, RDMA_PS_UDP));

	program_open(&p);
	program_open(&hostile);
	assert_int_equal(program_asks(&hostile, MAD_DELETE, GROUP, FULL), SA_REQ_INVALID);
	program_joins(&p, FULL | NON);
	assert_int_equal(testing_leave(c, join), 0);
	for (uint8_t states = 1; states < 16; states++)
		assert_int_equal(program_asks(&hostile, MAD_DELETE, GROUP, states), SA_REQ_INVALID);
	assert_int_equal(states_of(&p, GROUP), FULL | NON);
	program_leaves(&p, FULL | NON);
	program_end(&p);
	program_end(&hostile);
	cm_client_free(t->cm, c);
}

CASE_WITH(each_state_is_counted, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program a = program_on(t, 0), b = program_on(t, 0);

	program_open(&a);
	program_open(&b);
	program_joins(&a, FULL | SENDER);
	program_joins(&b, SENDER | NON);
	program_leaves(&a, FULL | SENDER);
	assert_int_equal(states_of(&a, GROUP), SENDER | NON);
	program_leaves(&b, NON);
	assert_int_equal(states_of(&a, GROUP), SENDER);
	program_leaves(&b, SENDER);
	assert_int_equal(states_of(&a, GROUP), 0);
	program_end(&a);
	program_end(&b);
}

CASE_WITH(other_ports_are_other_memberships, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program a = program_on(t, 0), b = program_on(t, 1);
	struct wire_mcmember r;
	struct fabric_mad mad;

	program_open(&a);
	program_open(&b);
	program_joins(&a, FULL);
	program_joins(&b, FULL);
	program_leaves(&a, FULL);
	assert_int_equal(states_of(&a, GROUP), 0);
	assert_int_equal(states_of(&b, GROUP), FULL);
	/* a request about another port is between the program and the SA */
	r = record(&b, GROUP, FULL);
	mad = mad_of(&a, MAD_DELETE, &r);
	assert_false(cm_program_wants(a.cm, &mad));
	program_leaves(&b, FULL);
	program_end(&a);
	program_end(&b);
}

/* ---- what the SA says ---- */

CASE_WITH(a_refusal_is_the_program_s_and_no_membership, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);

	program_open(&p);
	t->sa.says = SA_NO_RESOURCES;
	assert_int_equal(program_asks(&p, MAD_SET, GROUP, FULL), SA_NO_RESOURCES);
	t->sa.says = 0;
	assert_int_equal(program_asks(&p, MAD_DELETE, GROUP, FULL), SA_REQ_INVALID);
	program_end(&p);
	assert_int_equal(t->cm->memberships.n, 0);
}

CASE_WITH(the_sa_may_choose_the_group, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct wire_mcmember r;

	program_open(&p);
	assert_int_equal(program_asks(&p, MAD_SET, "0.0.0.0", FULL), 0);
	wire_mcmember_decode(p.last.data, &r);
	assert_true(ib_gid_is_mcast(&r.mgid));
	cm_program_leave_at_end(p.cm);
	program_end(&p);
	assert_null(testing_group(t));
}

CASE_WITH(a_request_is_sent_once_however_often_the_program_sends_it, testing_setup,
          testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct wire_mcmember r = record(&p, GROUP, FULL);
	struct fabric_mad mad;

	program_open(&p);
	t->sa.keeps = true;
	program_send(&p, MAD_SET, GROUP, FULL);
	mad = mad_of(&p, MAD_SET, &r);
	for (int i = 0; i < 100; i++)
		cm_program_send(p.cm, &mad);
	testing_settle(t);
	testing_release(t);
	assert_int_equal(t->sa.n_set, 1);
	assert_int_equal(p.answers, 1);
	program_leaves(&p, FULL);
	program_end(&p);
}

CASE_WITH(a_request_of_several_segments_is_one_of_one, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct wire_mcmember r = record(&p, GROUP, FULL);
	struct fabric_mad mad;

	program_open(&p);
	mad = mad_of(&p, MAD_SET, &r);
	memset(mad.data + RMPP_AT, 0xFF, wire_rmpp_bytes);
	assert_true(cm_program_wants(p.cm, &mad));
	cm_program_send(p.cm, &mad);
	testing_settle(t);
	assert_int_equal(t->sa.last.rmpp.flags, 0);
	assert_int_equal(p.answers, 1);
	program_leaves(&p, FULL);
	program_end(&p);
}

CASE_WITH(an_sa_that_lost_the_answer_is_told_to_forget, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);

	program_open(&p);
	t->sa.keeps = true; /* what it keeps does not come in time */
	program_send(&p, MAD_SET, GROUP, FULL);
	assert_int_equal(states_of(&p, GROUP), FULL);
	testing_pass(t, JOIN_MS);
	assert_int_equal(p.answers, 0);
	testing_release(t);
	assert_int_equal(states_of(&p, GROUP), 0);
	program_end(&p);
}

/* ---- one request at a time ---- */

CASE_WITH(a_join_waits_for_a_program_that_leaves, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	program_open(&p);
	program_joins(&p, FULL);
	t->sa.keeps = true;
	program_send(&p, MAD_DELETE, GROUP, FULL);
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	assert_int_equal(t->sa.n_set, 1);
	testing_release(t);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(states_of(&p, GROUP), FULL);
	cm_client_free(t->cm, c);
	program_end(&p);
}

CASE_WITH(a_leave_waits_for_a_program_that_joins, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct cm_client *c = testing_client(t, 0);
	uint32_t join = rdmacm_joins(c, testing_bound_id(c, RDMA_PS_UDP));

	program_open(&p);
	t->sa.keeps = true;
	program_send(&p, MAD_SET, GROUP, FULL);
	assert_int_equal(testing_leave(c, join), 0);
	testing_release(t);
	assert_int_equal(t->sa.n_delete, 0);
	assert_int_equal(states_of(&p, GROUP), FULL);
	program_leaves(&p, FULL);
	cm_client_free(t->cm, c);
	program_end(&p);
}

CASE_WITH(one_who_floods_a_group_keeps_a_join_waiting_for_one_request, testing_setup,
          testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	program_open(&p);
	t->sa.keeps = true;
	for (int i = 0; i < 1000; i++)
		program_send(&p, MAD_SET, GROUP, NON);
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	assert_int_equal(t->sa.n_set, 1);
	for (int i = 0; i < 2; i++) { /* that request, and the join */
		struct testing_sa_kept *k = STAILQ_FIRST(&t->sa.kept);

		STAILQ_REMOVE_HEAD(&t->sa.kept, entry);
		assert_true(cm_mad_input(t->cm, k->port, &k->response));
		testing_settle(t);
		free(k);
	}
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	testing_release(t);
	assert_in_range(p.answers, 2, 16); /* what is too much gets lost */
	cm_client_free(t->cm, c);
	program_leaves(&p, NON);
	program_end(&p);
}

/* ---- programs that end ---- */

CASE_WITH(what_is_left_behind_stays_until_a_program_leaves, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program a = program_on(t, 0), b = program_on(t, 0);
	struct cm_client *c = testing_client(t, 0);
	uint32_t join;

	program_open(&a);
	program_open(&b);
	program_joins(&a, FULL);
	program_end(&a);
	join = rdmacm_joins(c, testing_bound_id(c, RDMA_PS_UDP));
	assert_int_equal(testing_leave(c, join), 0);
	assert_int_equal(states_of(&b, GROUP), FULL);
	program_leaves(&b, FULL);
	assert_int_equal(states_of(&b, GROUP), 0);
	cm_client_free(t->cm, c);
	program_end(&b);
}

CASE_WITH(who_joins_again_takes_over_what_is_left_behind, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);

	program_open(&p);
	program_joins(&p, FULL);
	program_end(&p);
	program_open(&p);
	program_joins(&p, FULL);
	program_leaves(&p, FULL);
	assert_int_equal(states_of(&p, GROUP), 0);
	program_end(&p);
}

CASE_WITH(one_that_leaves_at_its_end_leaves_its_own, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program left = program_on(t, 0), ends = program_on(t, 0);

	program_open(&left);
	program_open(&ends);
	cm_program_leave_at_end(ends.cm);
	program_joins(&left, FULL);
	program_end(&left);
	program_joins(&ends, FULL | NON);
	program_end(&ends);
	assert_int_equal(states_of(&ends, GROUP), FULL);
	program_open(&left);
	program_leaves(&left, FULL);
	program_end(&left);
}

CASE_WITH(what_was_sent_before_the_end_is_carried_out, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program stays = program_on(t, 0), ends = program_on(t, 0);

	program_open(&stays);
	program_open(&ends);
	cm_program_leave_at_end(ends.cm);
	t->sa.keeps = true;
	program_send(&stays, MAD_SET, GROUP, FULL);
	program_send(&ends, MAD_SET, GROUP, NON);
	program_end(&stays);
	program_end(&ends);
	testing_release(t);
	assert_int_equal(states_of(&stays, GROUP), FULL);
	assert_int_equal(stays.answers + ends.answers, 0); /* nobody is there */
	assert_int_equal(t->sa.n_set, 2);
	program_open(&stays);
	program_leaves(&stays, FULL);
	program_end(&stays);
}

CASE_WITH(many_memberships_end_in_slices, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	unsigned first;

	program_open(&p);
	cm_program_leave_at_end(p.cm);
	for (unsigned i = 0; i < 4 * CM_SLICE; i++) {
		char group[32];

		snprintf(group, sizeof(group), "239.2.%u.%u", i / 250, i % 250);
		assert_int_equal(program_asks(&p, MAD_SET, group, FULL), 0);
	}
	testing_do_slices(t);
	cm_program_free(p.cm);
	testing_settle(t);
	first = t->sa.n_delete;
	assert_in_range(first, 0, CM_SLICE);
	base_timers_run(&t->timers);
	testing_settle(t);
	assert_in_range(t->sa.n_delete, 1, first + CM_SLICE);
	testing_do_slices(t);
	assert_int_equal(t->sa.n_delete, 4 * CM_SLICE);
}

/* ---- changes of the port ---- */

CASE_WITH(a_change_of_the_port_ends_what_programs_hold, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);
	struct cm_client *c = testing_client(t, 0);
	uint32_t join;

	program_open(&p);
	program_joins(&p, FULL);
	cm_port_changed(t->cm, p.port);
	testing_do_slices(t);
	assert_int_equal(t->sa.n_delete, 0); /* if the SA still knows it, it is still the program's
	                                      */
	join = rdmacm_joins(c, testing_bound_id(c, RDMA_PS_UDP));
	assert_int_equal(t->sa.n_set, 2);
	assert_int_equal(testing_leave(c, join), 0);
	assert_int_equal(states_of(&p, GROUP), 0);
	cm_client_free(t->cm, c);
	program_end(&p);
}

CASE_WITH(what_programs_hold_is_registered_with_a_new_sa, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0), gone = program_on(t, 0);

	program_open(&p);
	program_open(&gone);
	program_joins(&p, FULL);
	program_joins(&gone, NON);
	program_end(&gone);
	testing_sa_fini(&t->sa);
	testing_sa_init(&t->sa, t->f);
	cm_port_renew(t->cm, p.port);
	testing_do_slices(t);
	assert_int_equal(states_of(&p, GROUP), FULL); /* nobody is there for the other state */
	program_leaves(&p, FULL);
	program_end(&p);
}

CASE_WITH(a_request_on_its_way_starts_again, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct program p = program_on(t, 0);

	program_open(&p);
	t->sa.loses = 1;
	program_send(&p, MAD_SET, GROUP, FULL);
	cm_port_changed(t->cm, p.port);
	testing_do_slices(t);
	assert_int_equal(p.answers, 1);
	assert_int_equal(states_of(&p, GROUP), FULL);
	program_leaves(&p, FULL);
	program_end(&p);
}

/* ---- anything at all ---- */

#define PROGRAMS 3 /* the last one leaves at its end */

/* The holders of each state of the one group, by the rules of cm.h. */
struct model {
	struct program program[PROGRAMS];
	uint8_t states[PROGRAMS], left_behind;
	struct cm_client *client;
	uint32_t id, join[2]; /* full, send-only */
	bool joined[2];
	unsigned seed;
};

static uint8_t union_of(const struct model *m)
{
	uint8_t states = m->left_behind;

	for (unsigned i = 0; i < PROGRAMS; i++)
		states |= m->states[i];
	return (uint8_t)(states | (m->joined[0] ? FULL : 0) | (m->joined[1] ? SENDER : 0));
}

/* The states left behind end when a program leaves them. The last program leaves its own states
 * first. */
static uint8_t spared(const struct model *m, unsigned i)
{
	return i == PROGRAMS - 1 ? m->left_behind & m->states[i] : 0;
}

static void program_step(struct model *m, unsigned i)
{
	const uint8_t states = 1 + rand_r(&m->seed) % 15;

	if (rand_r(&m->seed) % 2) {
		program_send(&m->program[i], MAD_SET, GROUP, states);
		m->states[i] |= states;
		m->left_behind &= (uint8_t)~states | spared(m, i);
	} else {
		program_send(&m->program[i], MAD_DELETE, GROUP, states);
		if (states & ~(m->states[i] | m->left_behind))
			return; /* it is not in all of them */
		m->left_behind &= (uint8_t)~states | spared(m, i);
		m->states[i] &= (uint8_t)~states;
	}
}

static void program_restart(struct model *m, unsigned i)
{
	program_end(&m->program[i]);
	if (i != PROGRAMS - 1)
		m->left_behind |= m->states[i];
	m->states[i] = 0;
	program_open(&m->program[i]);
	if (i == PROGRAMS - 1)
		cm_program_leave_at_end(m->program[i].cm);
}

static void rdmacm_join_step(struct model *m, unsigned i)
{
	const union control_cm_addr addr = testing_addr(GROUP, 0);
	const uint32_t flags =
	        i ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER;

	if (!m->joined[i])
		assert_int_equal(testing_join_flags(m->client, m->id, &addr, flags, &m->join[i]),
		                 0);
	m->joined[i] = true;
}

static void rdmacm_leave_step(struct model *m, unsigned i)
{
	if (m->joined[i])
		assert_int_equal(testing_leave(m->client, m->join[i]), 0);
	m->joined[i] = false;
}

/* A few steps while the SA is slow, or loses some of what is sent; then it is not. */
static void steps(struct testing *t, struct model *m)
{
	/* before the others: a state that nobody holds any more could be left by anybody */
	if (!(rand_r(&m->seed) % 4))
		rdmacm_leave_step(m, (unsigned)rand_r(&m->seed) % 2);
	t->sa.keeps = rand_r(&m->seed) % 2;
	t->sa.loses = t->sa.keeps ? 0 : (unsigned)rand_r(&m->seed) % 4;
	for (int n = rand_r(&m->seed) % 5; n >= 0; n--) {
		if (rand_r(&m->seed) % 3)
			program_step(m, (unsigned)rand_r(&m->seed) % PROGRAMS);
		else
			rdmacm_join_step(m, (unsigned)rand_r(&m->seed) % 2);
	}
	testing_release(t);
	testing_pass(t, JOIN_MS);
	t->sa.loses = 0;
	if (!(rand_r(&m->seed) % 4))
		program_restart(m, (unsigned)rand_r(&m->seed) % PROGRAMS);
	assert_int_equal(states_of(&m->program[0], GROUP), union_of(m));
}

CASE_WITH(the_port_is_a_member_exactly_while_somebody_holds_it, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct model m = { .seed = 22, .client = testing_client(t, 0) };

	m.id = testing_bound_id(m.client, RDMA_PS_UDP);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		m.program[i] = program_on(t, 0);
		program_open(&m.program[i]);
	}
	cm_program_leave_at_end(m.program[PROGRAMS - 1].cm);
	for (int n = 0; n < 10000; n++)
		steps(t, &m);
	cm_client_free(t->cm, m.client);
	for (unsigned i = 0; i < PROGRAMS; i++)
		program_end(&m.program[i]);
	program_open(&m.program[0]);
	program_send(&m.program[0], MAD_DELETE, GROUP,
	             states_of(&m.program[0], GROUP)); /* what was left behind */
	program_end(&m.program[0]);
	assert_int_equal(states_of(&m.program[0], GROUP), 0);
}
