/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several subnet managers on one fabric, each at a host's port: one becomes the master and the
 * others stand by; when the master dies, a standby takes over. The test sets the time.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/testing.h"
#include "subnet/sm_role.h"

#define MAX_SMS 4

struct env;

struct sm {
	struct env *e;
	struct sm_role *role;
	unsigned masters, resigns; /* how often it became master, and gave up */
	uint64_t wake_ms;
	bool dead; /* it hears nothing and does nothing; its port still says IsSM */
};

struct queued {
	struct fabric_port *from;
	struct fabric_mad mad;
};

struct env {
	struct fabric *f;
	uint64_t now;
	struct sm sm[MAX_SMS];
	unsigned n;
	struct queued queue[256];
	unsigned head, tail;
};

static void enqueue(struct env *e, struct fabric_port *from, const struct fabric_mad *mad)
{
	assert_true(e->tail < 256);
	e->queue[e->tail++] = (struct queued){ from, *mad };
}

static void on_send(void *arg, const struct fabric_mad *mad)
{
	struct sm *sm = arg;

	enqueue(sm->e, sm_role_home(sm->role), mad);
}

static void on_master(void *arg)
{
	((struct sm *)arg)->masters++;
}

static void on_resign(void *arg)
{
	((struct sm *)arg)->resigns++;
}

static void on_wake(void *arg, unsigned ms)
{
	struct sm *sm = arg;

	if (sm->e->now + ms < sm->wake_ms)
		sm->wake_ms = sm->e->now + ms;
}

static bool deliver(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct env *e = arg;
	struct fabric_mad out = { .slid = at->lid,
		                  .dlid = mad->slid,
		                  .src_qpn = mad->dest_qpn,
		                  .dest_qpn = mad->src_qpn };
	bool accepted = false, reply;

	for (unsigned i = 0; i < e->n && !accepted; i++) {
		struct sm *sm = &e->sm[i];

		if (sm_role_home(sm->role) != at || sm_role_state(sm->role) == SM_NOT_ACTIVE)
			continue;
		if (sm->dead)
			return true; /* the program is there, and stopped */
		accepted = sm_role_input(sm->role, mad, e->now, &out, &reply);
		if (reply)
			enqueue(e, at, &out);
	}
	return accepted;
}

static void pump(struct env *e)
{
	while (e->head < e->tail) {
		struct queued q = e->queue[e->head++];

		fabric_mad_send(e->f, q.from, &q.mad);
	}
	e->head = e->tail = 0;
}

/* @ms pass, in small steps. */
static void pass(struct env *e, unsigned ms)
{
	for (uint64_t end = e->now + ms; e->now < end; e->now += 10) {
		for (unsigned i = 0; i < e->n; i++) {
			struct sm *sm = &e->sm[i];

			if (sm->wake_ms > e->now)
				continue;
			sm->wake_ms = UINT64_MAX;
			if (!sm->dead)
				sm_role_run_due(sm->role, e->now);
		}
		pump(e);
	}
}

static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	e->f = testing_fabric(MAX_SMS);
	e->now = 1000;
	e->f->mads->sink.deliver = deliver;
	e->f->mads->sink.arg = e;
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	for (unsigned i = 0; i < e->n; i++)
		sm_role_free(e->sm[i].role);
	fabric_free(e->f);
	free(e);
	return 0;
}

/* Starts a subnet manager at host @host. */
static struct sm *start(struct env *e, unsigned host)
{
	struct sm *sm = &e->sm[e->n++];
	const struct sm_role_ops ops = { .send = on_send,
		                         .master = on_master,
		                         .resign = on_resign,
		                         .wake = on_wake,
		                         .tid_high = e->n,
		                         .arg = sm };

	sm->e = e;
	sm->wake_ms = UINT64_MAX;
	assert_int_equal(sm_role_new(&sm->role, e->f, e->f->hca_port[host], &ops), 0);
	e->f->hca_port[host]->capabilities |= PORT_CAP_SM;
	sm_role_start(sm->role, e->now);
	pump(e);
	return sm;
}

/* It ends; only its IsSM bit goes. */
static void stop(struct sm *sm)
{
	sm_role_home(sm->role)->capabilities &= ~PORT_CAP_SM;
	sm_role_stop(sm->role);
}

CASE_WITH(alone_it_is_master_at_once_and_asks_nobody, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 0);

	assert_int_equal(sm_role_state(a->role), SM_MASTER);
	assert_int_equal(a->masters, 1);
	assert_true(a->wake_ms == UINT64_MAX);
	assert_int_equal(e->f->mads->stats.delivered, 0);
}

CASE_WITH(the_second_finds_a_master_and_stands_by_whatever_its_guid, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 0), *b = start(e, 1);

	assert_int_equal(sm_role_state(a->role), SM_MASTER);
	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
	pass(e, 10000);
	assert_int_equal(sm_role_state(a->role), SM_MASTER);
	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
	assert_int_equal(b->masters, 0);
}

CASE_WITH(of_equals_the_one_with_the_lower_guid_is_handed_the_subnet, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 2), *b = start(e, 1);

	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
	sm_role_look(a->role, e->now); /* it has learned of a new SM */
	pump(e);
	assert_int_equal(sm_role_state(b->role), SM_MASTER);
	assert_int_equal(sm_role_state(a->role), SM_STANDBY);
	assert_int_equal(a->resigns, 1);
	assert_int_equal(b->masters, 1);
}

CASE_WITH(a_master_that_asks_from_time_to_time_hands_over_without_being_told, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 2), *b = start(e, 1);

	sm_role_look(a->role, e->now);
	e->head = e->tail = 0; /* all requests are lost */
	pass(e, 2 * e->f->settings.sm_poll_ms);
	assert_int_equal(sm_role_state(b->role), SM_MASTER);
	assert_int_equal(sm_role_state(a->role), SM_STANDBY);
}

CASE_WITH(a_standby_takes_over_when_the_master_is_silent, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 0), *b = start(e, 1);

	a->dead = true;
	pass(e, 10 * e->f->settings.sm_poll_ms);
	assert_int_equal(sm_role_state(b->role), SM_MASTER);
	assert_int_equal(b->masters, 1);
}

CASE_WITH(a_standby_takes_over_at_once_when_the_master_has_no_is_sm, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 0), *b = start(e, 1);

	stop(a);
	assert_int_equal(a->resigns, 1);
	sm_role_look(b->role, e->now);
	pump(e);
	assert_int_equal(sm_role_state(b->role), SM_MASTER);
}

CASE_WITH(one_lost_response_makes_no_new_master, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 0), *b = start(e, 1);

	a->dead = true;
	pass(e, e->f->settings.sm_poll_ms + 100);
	a->dead = false;
	pass(e, 5 * e->f->settings.sm_poll_ms);
	assert_int_equal(sm_role_state(a->role), SM_MASTER);
	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
	assert_int_equal(b->masters, 0);
}

CASE_WITH(of_two_standbys_one_takes_over, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 0), *b = start(e, 1), *c = start(e, 2);

	stop(a);
	pass(e, 20 * e->f->settings.sm_poll_ms);
	assert_int_equal(sm_role_state(b->role), SM_MASTER);
	assert_int_equal(sm_role_state(c->role), SM_STANDBY);
}

CASE_WITH(masters_of_two_halves_agree_when_the_halves_meet, setup, teardown)
{
	struct env *e = *state;
	struct sm *a, *b;

	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[1], false), 0);
	a = start(e, 0);
	b = start(e, 1);
	pass(e, 1000);
	assert_int_equal(sm_role_state(a->role), SM_MASTER);
	assert_int_equal(sm_role_state(b->role), SM_MASTER);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[1], true), 0);
	sm_role_look(b->role, e->now);
	pass(e, 5 * e->f->settings.sm_poll_ms);
	assert_int_equal(sm_role_state(a->role), SM_MASTER);
	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
}

/* Sends a SubnSet(SMInfo) as an SM at host 3 with this state. The status of the response. */
static uint16_t control(struct env *e, struct sm *to, uint32_t what, enum sm_state from)
{
	struct fabric_mad in = { .src_qpn = 0 }, out;
	const struct wire_sm_info info = { .guid = e->f->hca_port[3]->guid, .sm_state = from };
	struct wire_smp smp = { .mad = { .base_version = MAD_BASE_VERSION,
		                         .mgmt_class = MAD_CLASS_SUBN_LID,
		                         .class_version = MAD_VERSION_SUBN,
		                         .method = MAD_SET,
		                         .attribute_id = SMP_ATTR_SM_INFO,
		                         .attribute_modifier = what } };
	bool reply;

	wire_sm_info_encode(&info, smp.data);
	wire_smp_encode(&smp, in.data);
	assert_true(sm_role_input(to->role, &in, e->now, &out, &reply));
	assert_true(reply);
	wire_smp_decode(out.data, &smp);
	assert_int_equal(smp.mad.method, MAD_GET_RESP);
	return smp.mad.status;
}

CASE_WITH(a_standby_obeys_its_master, setup, teardown)
{
	struct env *e = *state;
	struct sm *b;

	start(e, 0);
	b = start(e, 1);
	assert_int_equal(control(e, b, SM_CONTROL_DISABLE, SM_MASTER), MAD_STATUS_OK);
	assert_int_equal(sm_role_state(b->role), SM_NOT_ACTIVE);
	assert_int_equal(control(e, b, SM_CONTROL_HANDOVER, SM_MASTER), MAD_STATUS_BAD_FIELD);
	assert_int_equal(control(e, b, SM_CONTROL_STANDBY, SM_MASTER), MAD_STATUS_OK);
	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
	assert_int_equal(control(e, b, SM_CONTROL_HANDOVER, SM_MASTER), MAD_STATUS_OK);
	assert_int_equal(sm_role_state(b->role), SM_MASTER);
	assert_int_equal(b->masters, 1);
}

CASE_WITH(what_the_state_machine_has_not_is_refused, setup, teardown)
{
	struct env *e = *state;
	struct sm *a = start(e, 0), *b = start(e, 1);

	assert_int_equal(control(e, a, SM_CONTROL_DISABLE, SM_MASTER), MAD_STATUS_BAD_FIELD);
	assert_int_equal(control(e, a, SM_CONTROL_STANDBY, SM_MASTER), MAD_STATUS_BAD_FIELD);
	assert_int_equal(control(e, a, SM_CONTROL_DISCOVER, SM_MASTER), MAD_STATUS_BAD_FIELD);
	assert_int_equal(control(e, b, SM_CONTROL_HANDOVER, SM_STANDBY), MAD_STATUS_BAD_FIELD);
	assert_int_equal(control(e, b, SM_CONTROL_ACKNOWLEDGE, SM_MASTER), MAD_STATUS_BAD_FIELD);
	assert_int_equal(control(e, b, 0, SM_MASTER), MAD_STATUS_BAD_FIELD);
	assert_int_equal(control(e, b, 99, SM_MASTER), MAD_STATUS_BAD_FIELD);
	assert_int_equal(sm_role_state(a->role), SM_MASTER);
	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
}

CASE_WITH(without_the_m_key_nothing_is_controlled_and_no_sm_key_shown, setup, teardown)
{
	struct env *e = *state;
	struct sm *b;

	start(e, 0);
	b = start(e, 1);
	e->f->hca_port[1]->m_key = 42;
	assert_int_equal(control(e, b, SM_CONTROL_DISABLE, SM_MASTER), MAD_STATUS_BAD_FIELD);
	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
	pass(e, 5 * e->f->settings.sm_poll_ms); /* its own polls continue */
	assert_int_equal(sm_role_state(b->role), SM_STANDBY);
}

int main(void)
{

	return harness_run(NULL, NULL);
}
