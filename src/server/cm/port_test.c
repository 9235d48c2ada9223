/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Facts about SAs that are known beforehand: when the SAs are asked for them, by which port, and
 * what holds until the SAs have responded.
 */
#include <harness.h>

#include "cm/testing.h"

#define GROUP      "239.1.1.1"
#define TIMEOUT_MS 3000

/* The allocation that finds no memory, counted from 1; 0: none. */
static unsigned fails_at, allocations;

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

void *__wrap_calloc(size_t n, size_t bytes)
{
	return ++allocations == fails_at ? NULL : __real_calloc(n, bytes);
}

static struct fabric_port *first_port(struct testing *t)
{
	return t->f->hca_port[0];
}

static bool has_broadcast(struct testing *t)
{
	return cm_port_broadcast(t->cm, first_port(t), IB_PKEY_DEFAULT) != NULL;
}

static void set_state(struct testing *t, unsigned i, uint8_t port_state)
{
	t->f->hca_port[i]->state = port_state;
	cm_port_active(t->cm, t->f->hca_port[i]);
}

/* The ports come to be ACTIVE as if it were the first time: so many of them. */
static void begin_anew(struct testing *t, unsigned n_ports)
{
	for (unsigned i = 0; i < t->f->n_hca_ports; i++)
		set_state(t, i, IB_PORT_INIT);
	t->sa.n_get = t->n_sent = 0;
	for (unsigned i = 0; i < n_ports; i++)
		set_state(t, i, IB_PORT_ACTIVE);
	testing_settle(t);
}

CASE_WITH(an_active_port_has_a_broadcast_group_and_a_capable_sa, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	const struct wire_mcmember *r = cm_port_broadcast(t->cm, first_port(t), IB_PKEY_DEFAULT);

	assert_non_null(r);
	assert_int_equal(r->mtu, TESTING_SA_MTU);
	assert_int_equal(r->qkey, TESTING_SA_QKEY);
	assert_true(cm_port_allows_send_only(t->cm, first_port(t)));
}

CASE_WITH(limited_members_have_the_same_broadcast_group, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	assert_ptr_equal(cm_port_broadcast(t->cm, first_port(t), 0x7FFF),
	                 cm_port_broadcast(t->cm, first_port(t), 0xFFFF));
}

CASE_WITH(each_partition_is_asked_for_once, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct fabric_port *port = first_port(t);

	port->pkey[1] = 0x8001;
	port->pkey[3] = 0x0001;
	begin_anew(t, 1);
	assert_int_equal(t->sa.n_get, 3);                    /* and for ClassPortInfo */
	assert_null(cm_port_broadcast(t->cm, port, 0x8001)); /* that partition has none */
	assert_null(cm_port_broadcast(t->cm, port, 0x8002)); /* nor is the port in this one */
	assert_null(cm_port_broadcast(t->cm, port, 0x8000)); /* no P_Key */
	assert_true(has_broadcast(t));
}

CASE_WITH(a_partition_that_the_port_has_left_is_forgotten, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct fabric_port *port = first_port(t);

	port->pkey[0] = 0x8001;
	cm_port_active(t->cm, port);
	testing_settle(t);
	assert_false(has_broadcast(t));
}

CASE_WITH(a_port_that_is_down_has_nothing, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	first_port(t)->state = IB_PORT_DOWN;
	assert_false(has_broadcast(t));
	assert_false(cm_port_allows_send_only(t->cm, first_port(t)));
	cm_port_changed(t->cm, first_port(t));
	first_port(t)->state = IB_PORT_ACTIVE;
	assert_false(has_broadcast(t)); /* before anybody has said so */
}

CASE_WITH(an_sa_that_does_not_respond_is_asked_again_ever_more_seldom, testing_setup,
          testing_teardown)
{
	static const unsigned waits[] = { 1000, 2000, 4000, 8000, 16000, 16000 };
	struct testing *t = *state;

	t->sa.loses = UINT_MAX;
	begin_anew(t, 1);
	for (size_t i = 0; EACH_ROW(i, waits); i++) {
		unsigned sent;

		testing_pass(t, TIMEOUT_MS);
		sent = t->n_sent;
		testing_pass(t, waits[i] - 1);
		assert_int_equal(t->n_sent, sent);
		testing_pass(t, 1);
		assert_int_equal(t->n_sent, sent + 2);
	}
	assert_false(has_broadcast(t));
	t->sa.loses = 0;
	testing_pass(t, TIMEOUT_MS);
	assert_true(has_broadcast(t));
	assert_true(base_timers_next(&t->timers) == BASE_TIMER_NEVER);
}

CASE_WITH(what_is_known_holds_until_there_is_a_response, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	t->sa.keeps = true;
	cm_port_active(t->cm, first_port(t));
	testing_settle(t);
	assert_true(has_broadcast(t));
	testing_release(t);
	t->sa.has_broadcast = false;
	t->sa.keeps = true;
	cm_port_active(t->cm, first_port(t));
	testing_settle(t);
	assert_true(has_broadcast(t));
	testing_release(t);
	assert_false(has_broadcast(t));
}

CASE_WITH(who_misses_the_group_has_it_asked_for, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);

	t->sa.has_broadcast = false;
	begin_anew(t, 1);
	testing_pass(t, 60000);
	assert_int_equal(t->sa.n_get, 2); /* it has refused: nobody asks it for its own sake */
	t->sa.has_broadcast = true;
	assert_int_equal(testing_join(c, id, GROUP, NULL), -EADDRNOTAVAIL);
	assert_int_equal(t->sa.n_get, 3);
	testing_joined(c, id, GROUP);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_change_asks_anew_whatever_is_on_its_way, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	t->sa.keeps = true;
	begin_anew(t, 1);
	cm_port_changed(t->cm, first_port(t));
	testing_settle(t);
	assert_int_equal(t->cm->transactions.n, 2);
	testing_release(t);
	assert_true(has_broadcast(t));
}

CASE_WITH(without_an_sm_there_is_nobody_to_ask, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	first_port(t)->sm_lid = 0;
	begin_anew(t, 1);
	testing_pass(t, 60000);
	assert_int_equal(t->n_sent, 0);
	assert_false(has_broadcast(t));
	first_port(t)->sm_lid = TESTING_SA_LID;
	cm_port_active(t->cm, first_port(t));
	testing_settle(t);
	assert_true(has_broadcast(t));
}

CASE_WITH(an_ethernet_port_has_no_sa_to_ask, testing_setup, testing_teardown)
{
	static struct fabric_ethernet ethernet;
	struct testing *t = *state;

	first_port(t)->ethernet = &ethernet;
	begin_anew(t, 1);
	testing_pass(t, 60000);
	assert_int_equal(t->n_sent, 0);
	assert_false(has_broadcast(t));
	first_port(t)->ethernet = NULL; /* that the fabric would free */
}

CASE_WITH(requests_go_by_the_default_partition, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct testing_mad *m;

	begin_anew(t, 0);
	first_port(t)->pkey[0] = 0x8001;
	first_port(t)->pkey[2] = 0x7FFF;
	first_port(t)->sm_sl = 5;
	set_state(t, 0, IB_PORT_ACTIVE);
	m = STAILQ_FIRST(&t->mads);
	assert_non_null(m);
	assert_int_equal(m->mad.pkey_index, 2);
	assert_int_equal(m->mad.sl, 5);
	assert_int_equal(m->mad.dlid, TESTING_SA_LID);
}

/* ---- ports that share an SA ---- */

CASE_WITH(an_sa_is_asked_once_for_all_of_its_ports, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	begin_anew(t, 4);
	assert_int_equal(t->sa.n_get, 2);
	for (unsigned i = 0; i < 4; i++)
		assert_non_null(cm_port_broadcast(t->cm, t->f->hca_port[i], IB_PKEY_DEFAULT));
}

CASE_WITH(who_is_in_the_partition_asks_for_its_group, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct testing_mad *m;

	begin_anew(t, 0);
	t->f->hca_port[2]->pkey[1] = 0x8001;
	for (unsigned i = 0; i < 4; i++)
		set_state(t, i, IB_PORT_ACTIVE);
	m = STAILQ_FIRST(&t->mads);
	while (STAILQ_NEXT(m, entry))
		m = STAILQ_NEXT(m, entry);
	assert_ptr_equal(m->port, t->f->hca_port[2]);
	testing_settle(t);
	assert_int_equal(t->sa.n_get, 3);
}

CASE_WITH(another_port_asks_when_the_one_that_did_goes_down, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	/* the SA is behind the first one */
	begin_anew(t, 1);
	t->f->hca_port[0]->sm_lid = 0;
	cm_port_active(t->cm, first_port(t));
	t->sa.loses = 2;
	set_state(t, 1, IB_PORT_ACTIVE);
	set_state(t, 2, IB_PORT_ACTIVE);
	testing_settle(t);
	assert_null(cm_port_broadcast(t->cm, t->f->hca_port[2], IB_PKEY_DEFAULT));
	set_state(t, 1, IB_PORT_DOWN);
	testing_settle(t);
	assert_non_null(cm_port_broadcast(t->cm, t->f->hca_port[2], IB_PKEY_DEFAULT));
}

CASE_WITH(another_port_asks_when_there_is_no_response, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	uint16_t lid;

	/* the first one is out of the SA's reach */
	begin_anew(t, 0);
	set_state(t, 1, IB_PORT_ACTIVE);
	set_state(t, 0, IB_PORT_ACTIVE);
	testing_settle(t);
	t->sa.loses = 2 * 10;
	cm_port_active(t->cm, first_port(t));
	lid = STAILQ_FIRST(&t->mads)->mad.slid;
	testing_pass(t, TIMEOUT_MS);
	t->sa.keeps = true;
	testing_pass(t, 1000);
	assert_int_not_equal(STAILQ_FIRST(&t->sa.kept)->response.dlid, lid);
	testing_release(t);
}

CASE_WITH(ports_of_another_sa_know_what_that_one_says, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	t->f->hca_port[3]->sm_lid = 3; /* where there is none */
	cm_port_active(t->cm, t->f->hca_port[3]);
	testing_settle(t);
	assert_null(cm_port_broadcast(t->cm, t->f->hca_port[3], IB_PKEY_DEFAULT));
	t->f->hca_port[3]->sm_lid = TESTING_SA_LID;
	cm_port_active(t->cm, t->f->hca_port[3]);
	assert_non_null(cm_port_broadcast(t->cm, t->f->hca_port[3], IB_PKEY_DEFAULT));
	testing_settle(t);
}

CASE_WITH(when_its_last_port_is_gone_an_sa_is_forgotten, testing_setup, testing_teardown)
{
	struct testing *t = *state;

	begin_anew(t, 0);
	assert_true(LIST_EMPTY(&t->cm->sas));
	assert_true(base_timers_next(&t->timers) == BASE_TIMER_NEVER);
	set_state(t, 3, IB_PORT_ACTIVE);
	assert_null(cm_port_broadcast(t->cm, t->f->hca_port[3], IB_PKEY_DEFAULT));
	set_state(t, 3, IB_PORT_DOWN);
}

/* ---- MADs that are not what they seem ---- */

static struct fabric_mad response_to(const struct testing_mad *m)
{
	struct fabric_mad response = m->mad;

	response.data[3] = MAD_GET_RESP;
	return response;
}

CASE_WITH(a_response_to_another_port_or_request_is_none, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct fabric_port *port = first_port(t);
	struct fabric_mad response;

	cm_port_changed(t->cm, port);
	response = response_to(STAILQ_FIRST(&t->mads));
	cm_mad_input(t->cm, t->f->hca_port[1], &response);
	assert_int_equal(t->cm->transactions.n, 2);
	response.data[1] = MAD_CLASS_PERF;
	cm_mad_input(t->cm, port, &response);
	response = response_to(STAILQ_FIRST(&t->mads));
	response.data[3] = MAD_DELETE_RESP;
	cm_mad_input(t->cm, port, &response);
	response = response_to(STAILQ_FIRST(&t->mads));
	response.data[15] ^= 0x40; /* of the transaction ID */
	cm_mad_input(t->cm, port, &response);
	response = response_to(STAILQ_FIRST(&t->mads));
	response.data[17] ^= 1; /* of the attribute ID */
	cm_mad_input(t->cm, port, &response);
	assert_int_equal(t->cm->transactions.n, 2);
}

CASE_WITH(what_is_not_for_the_daemon_is_not_taken, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct fabric_port *port = first_port(t);
	struct fabric_mad response, mad;

	cm_port_changed(t->cm, port);
	response = response_to(STAILQ_FIRST(&t->mads));
	mad = response;
	mad.data[0] = 2; /* the base version */
	assert_false(cm_mad_input(t->cm, port, &mad));
	mad = response;
	mad.data[3] = MAD_GET;
	assert_false(cm_mad_input(t->cm, port, &mad));
	mad = response;
	mad.data[8] ^= 1; /* a program's transaction */
	assert_false(cm_mad_input(t->cm, port, &mad));
	mad = response;
	mad.dest_qpn = 0;
	assert_false(cm_mad_input(t->cm, port, &mad));
	assert_int_equal(t->cm->transactions.n, 2);
}

CASE_WITH(random_mads_do_no_harm, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct fabric_mad mad = { .dest_qpn = IB_QPN_GSI, .src_qpn = IB_QPN_GSI };
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_bound_id(c, RDMA_PS_UDP);
	unsigned seed = 3;

	t->sa.keeps = true;
	assert_int_equal(testing_join(c, id, GROUP, NULL), 0);
	for (int n = 0; n < 100000; n++) {
		for (unsigned i = 0; i < MAD_BYTES; i++)
			mad.data[i] = (uint8_t)rand_r(&seed);
		if (n % 2) { /* almost right */
			mad.data[0] = MAD_BASE_VERSION;
			mad.data[1] = MAD_CLASS_SUBN_ADM;
			memcpy(mad.data + 8, "\0\0\0\2\0\0", 6);
		}
		cm_mad_input(t->cm, t->f->hca_port[rand_r(&seed) % 4], &mad);
	}
	testing_release(t);
	cm_client_free(t->cm, c);
}

/* Whichever allocation finds none, all that was made goes again. */
CASE_WITH(without_memory_there_is_no_cm, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	const struct cm_ops ops = { .random = 1 };
	struct cm *cm = NULL;
	int ret = -ENOMEM;

	for (unsigned i = 1; ret && i < 100; i++) {
		allocations = 0;
		fails_at = i;
		ret = cm_new(&cm, t->f, &ops);
		fails_at = 0;
		assert_true(!ret || (ret == -ENOMEM && allocations >= i));
	}
	assert_int_equal(ret, 0);
	assert_true(allocations >= 4);
	cm_free(cm);
}
