/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Subscriptions to notices, the reports that the subnet administrator makes by itself, and which
 * subscribers are told.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "subnet/testing_passes.h"
#include "subnet/testing_sa.h"
#include "wire/mgid.h"

/* ---- subscriptions ---- */

static void sweep(struct env *e)
{
	assert_int_equal(sm_sweep(e->sm), 0);
	sa_swept(e->sa);
}

struct told {
	unsigned n;
	uint16_t lid;
	uint32_t qpn;
};

static void tell(void *arg, const struct sa_told *told)
{
	struct told *t = arg;

	t->n++;
	t->lid = told->lid;
	t->qpn = told->qpn;
}

/* The subscriber that hears of a notice. */
static struct told tell_of(struct env *e, const struct wire_notice *n)
{
	struct told t = { 0 };
	uint32_t budget = UINT32_MAX;

	assert_true(sa_notice_add(e->sa, n, ++e->notices));
	assert_true(sa_notices_step(e->sa, &budget, tell, &t));
	return t;
}

static struct told tell_all(struct env *e, uint16_t trap, uint16_t issuer)
{
	struct wire_notice n = { .is_generic = 1,
		                 .type = NOTICE_URGENT,
		                 .producer_type = NOTICE_FROM_SWITCH,
		                 .trap_number = trap,
		                 .issuer_lid = issuer };

	return tell_of(e, &n);
}

static uint16_t inform(struct env *e, unsigned host, uint8_t subscribe, uint16_t trap, uint32_t qpn)
{
	prepare(e, MAD_SET, SA_ATTR_INFORM_INFO);
	e->request.slid = lid(e, host);
	e->request.qpn = 1;
	return ASK(e, inform_info, 0, .lid_range_begin = INFORM_ALL, .is_generic = 1,
	           .subscribe = subscribe, .type = INFORM_ALL, .trap_number = trap, .qpn = qpn,
	           .producer_type = NOTICE_FROM_ANYBODY);
}

CASE_WITH(a_subscriber_gets_reports, setup, teardown)
{
	struct env *e = *state;
	struct told t;

	assert_int_equal(inform(e, 2, 1, TRAP_LINK_STATE_CHANGED, 0), SA_OK);
	assert_int_equal(RECORD(e, inform_info, 0).subscribe, 1);
	t = tell_all(e, TRAP_LINK_STATE_CHANGED, 5);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.lid, lid(e, 2));
	assert_int_equal(t.qpn, 1);
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 5).n, 0);
	assert_int_equal(inform(e, 3, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(tell_all(e, TRAP_LINK_STATE_CHANGED, 5).n, 2);
}

CASE_WITH(subscribing_twice_makes_one_subscription, setup, teardown)
{
	struct env *e = *state;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(inform(e, 2, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 5).n, 1);
}

CASE_WITH(after_unsubscribing_there_are_no_reports, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(inform(e, 2, 0, TRAP_ANY, 1), SA_REQ_INVALID);
	assert_int_equal(inform(e, 2, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(inform(e, 3, 0, TRAP_ANY, 1), SA_REQ_INVALID); /* another's */
	assert_int_equal(inform(e, 2, 0, TRAP_ANY, 1), SA_OK);
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 5).n, 0);
}

/* QPN @qpn of a host subscribes to notices from LID @from on. */
static uint16_t subscribe(struct env *e, unsigned host, uint32_t qpn, uint16_t from)
{
	prepare(e, MAD_SET, SA_ATTR_INFORM_INFO);
	e->request.slid = lid(e, host);
	e->request.qpn = qpn;
	return ASK(e, inform_info, 0, .lid_range_begin = from, .lid_range_end = 0xBFFF,
	           .is_generic = 1, .subscribe = 1, .type = INFORM_ALL, .trap_number = TRAP_ANY,
	           .producer_type = NOTICE_FROM_ANYBODY);
}

CASE_WITH(who_subscribes_several_times_is_told_once, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(inform(e, 2, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(inform(e, 2, 1, TRAP_LOCAL_CHANGES, 0), SA_OK);
	assert_int_equal(subscribe(e, 2, 1, 5), SA_OK);
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 5).n, 1);
	assert_int_equal(subscribe(e, 2, 2, 5), SA_OK); /* another QPN */
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 5).n, 2);
	assert_int_equal(inform(e, 2, 0, TRAP_ANY, 1), SA_OK);
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 4).n, 1); /* of what is left */
}

CASE_WITH(a_port_has_so_many_subscriptions, setup, teardown)
{
	struct env *e = *state;
	unsigned n = 0;

	while (n < 5000 && subscribe(e, 2, 2 + n % 3, (uint16_t)(1 + n)) == SA_OK)
		n++;
	assert_in_range(n, 256, 2048);
	assert_int_equal(e->response.status, SA_NO_RESOURCES);
	assert_int_equal(subscribe(e, 2, 2, 1), SA_OK); /* it has that one */
	assert_int_equal(subscribe(e, 2, 9, 1), SA_NO_RESOURCES);
	assert_int_equal(subscribe(e, 3, 9, 1), SA_OK);
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 0x100).n, 4);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[2], false), 0);
	sweep(e);
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 0x100).n, 1);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[2], true), 0);
	sweep(e);
	assert_int_equal(subscribe(e, 2, 2, 1), SA_OK);
}

static struct wire_notice notice_of(uint16_t issuer)
{
	return (struct wire_notice){ .is_generic = 1,
		                     .type = NOTICE_URGENT,
		                     .producer_type = NOTICE_FROM_SWITCH,
		                     .trap_number = TRAP_LOCAL_CHANGES,
		                     .issuer_lid = issuer };
}

/* A subscriber that leaves meanwhile hears nothing more. One that comes does not hear of earlier
 * notices. */
CASE_WITH(a_notice_is_told_in_slices, setup, teardown)
{
	struct env *e = *state;
	const struct wire_notice n = notice_of(5);
	struct told t = { 0 };
	uint32_t budget;
	unsigned before, steps = 0;

	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(subscribe(e, 2, 10 + i, 1), SA_OK);
	assert_true(sa_notice_add(e->sa, &n, ++e->notices));
	assert_true(sa_notice_add(e->sa, &n, ++e->notices));
	budget = 100;
	assert_false(sa_notices_step(e->sa, &budget, tell, &t));
	assert_in_range(t.n, 1, 20);
	assert_int_equal(subscribe(e, 3, 7, 1), SA_OK);
	/* the subscriber whose turn is next goes, and one that has been told */
	for (unsigned i = 0; i < 2; i++) {
		prepare(e, MAD_SET, SA_ATTR_INFORM_INFO);
		e->request.slid = lid(e, 2);
		assert_int_equal(ASK(e, inform_info, 0, .lid_range_begin = 1,
		                     .lid_range_end = 0xBFFF, .is_generic = 1, .type = INFORM_ALL,
		                     .trap_number = TRAP_ANY, .qpn = i ? 10 : t.qpn + 1,
		                     .producer_type = NOTICE_FROM_ANYBODY),
		                 SA_OK);
	}
	do {
		before = t.n;
		budget = 100;
		assert_in_range(++steps, 1, 200);
	} while (!sa_notices_step(e->sa, &budget, tell, &t) && t.n - before <= 20);
	assert_true(t.n - before <= 20 && steps > 8);
	assert_int_equal(t.n, 99 + 98);
	assert_int_equal(tell_all(e, TRAP_LOCAL_CHANGES, 5).n, 99);
}

CASE_WITH(so_many_notices_wait, setup, teardown)
{
	struct env *e = *state;
	const struct wire_notice n = notice_of(5);
	struct told t = { 0 };
	uint32_t budget;
	unsigned waiting = 0;

	assert_int_equal(subscribe(e, 2, 1, 1), SA_OK);
	while (waiting < 100000 && sa_notice_add(e->sa, &n, ++e->notices))
		waiting++;
	assert_in_range(waiting, 40000, 99999); /* all ports of the largest fabrics */
	do
		budget = 10000;
	while (!sa_notices_step(e->sa, &budget, tell, &t));
	assert_int_equal(t.n, waiting);
	/* the more there are to hear of them, the fewer wait */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(subscribe(e, 3, 1, (uint16_t)(1 + i)), SA_OK);
	for (waiting = 0; waiting < 100000 && sa_notice_add(e->sa, &n, ++e->notices); waiting++)
		;
	assert_in_range(waiting, 1000, 10000);
}

CASE_WITH(a_subscription_may_be_about_some_lids, setup, teardown)
{
	struct env *e = *state;

	prepare(e, MAD_SET, SA_ATTR_INFORM_INFO);
	assert_int_equal(ASK(e, inform_info, 0, .lid_range_begin = 10, .lid_range_end = 12,
	                     .is_generic = 1, .subscribe = 1, .type = INFORM_ALL,
	                     .trap_number = TRAP_ANY, .producer_type = NOTICE_FROM_SWITCH),
	                 SA_OK);
	assert_int_equal(tell_all(e, 128, 9).n, 0);
	assert_int_equal(tell_all(e, 128, 10).n, 1);
	assert_int_equal(tell_all(e, 128, 12).n, 1);
	assert_int_equal(tell_all(e, 128, 13).n, 0);
}

CASE_WITH(security_traps_are_for_trusted_subscribers, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(inform(e, 2, 1, TRAP_BAD_MKEY, 0), SA_REQ_INVALID);
	e->mad.sm_key = SA_KEY;
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(inform(e, 2, 2, TRAP_ANY, 0), SA_REQ_INVALID);
}

CASE_WITH(all_traps_exclude_security_traps_for_untrusted_subscribers, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(inform(e, 2, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(tell_all(e, TRAP_BAD_PKEY, 5).n, 0);
	prepare(e, MAD_SET, SA_ATTR_INFORM_INFO);
	e->mad.sm_key = SA_KEY;
	assert_int_equal(ASK(e, inform_info, 0, .lid_range_begin = INFORM_ALL, .is_generic = 1,
	                     .subscribe = 1, .type = INFORM_ALL, .trap_number = TRAP_ANY,
	                     .producer_type = NOTICE_FROM_ANYBODY),
	                 SA_OK);
	assert_int_equal(tell_all(e, TRAP_BAD_PKEY, 5).n, 1);
}

/* ---- what the SA reports ---- */

struct reported {
	unsigned n;
	struct wire_notice last;
	struct ib_gid gid;
};

static void report(void *arg, const struct wire_notice *notice)
{
	struct reported *r = arg;
	struct wire_trap_gid details;

	r->n++;
	r->last = *notice;
	wire_trap_gid_decode(notice->details, &details);
	r->gid = details.gid;
}

static void listen_to_reports(struct env *e, struct reported *r)
{
	e->sa->reports = (struct sa_reports){ report, r };
}

static void expect_report(const struct env *e, const struct reported *r, uint16_t trap,
                          const struct ib_gid *about)
{
	assert_int_equal(r->last.is_generic, 1);
	assert_int_equal(r->last.type, NOTICE_SUBNET_MANAGEMENT);
	assert_int_equal(r->last.producer_type, NOTICE_FROM_CLASS_MANAGER);
	assert_int_equal(r->last.trap_number, trap);
	assert_int_equal(r->last.issuer_lid, lid(e, 0));
	assert_memory_equal(&r->gid, about, sizeof(*about));
}

CASE_WITH(a_port_that_goes_and_comes_is_reported, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid about = gid(e, 2);
	struct reported r = { 0 };

	listen_to_reports(e, &r);
	sweep(e);
	assert_int_equal(r.n, 0);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[2], false), 0);
	sweep(e);
	assert_int_equal(r.n, 1);
	expect_report(e, &r, TRAP_GID_OUT_OF_SERVICE, &about);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[2], true), 0);
	sweep(e);
	assert_int_equal(r.n, 2);
	expect_report(e, &r, TRAP_GID_IN_SERVICE, &about);
}

CASE_WITH(all_behind_a_switch_that_dies_is_reported, setup, teardown)
{
	struct env *e = *state;
	struct reported r = { 0 };

	listen_to_reports(e, &r);
	assert_int_equal(fabric_switch_set(e->f, e->sw, false), 0);
	sweep(e);
	assert_int_equal(r.n, HOSTS); /* the switch, and all hosts but the SM's own */
	assert_int_equal(fabric_switch_set(e->f, e->sw, true), 0);
	sweep(e);
	assert_int_equal(r.n, 2 * HOSTS);
}

static struct wire_mcmember member_of(const struct env *e, unsigned host)
{
	return (struct wire_mcmember){ .mgid = testing_mgid(5),
		                       .port_gid = gid(e, host),
		                       .join_state = IB_JOIN_FULL,
		                       .qkey = 1,
		                       .pkey = IB_PKEY_DEFAULT };
}

CASE_WITH(a_group_is_reported_when_it_begins_and_when_it_ends, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid mgid = testing_mgid(5);
	struct reported r = { 0 };
	struct wire_mcmember rec;

	listen_to_reports(e, &r);
	for (unsigned host = 1; host < 3; host++) {
		rec = member_of(e, host);
		assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
		assert_int_equal(r.n, 1);
	}
	expect_report(e, &r, TRAP_MGID_CREATED, &mgid);
	for (unsigned host = 1; host < 3; host++) {
		assert_int_equal(r.n, 1);
		rec = member_of(e, host);
		assert_int_equal(sa_mcmember_delete(e->sa, JOIN, &rec), SA_OK);
	}
	assert_int_equal(r.n, 2);
	expect_report(e, &r, TRAP_MGID_DELETED, &mgid);
}

CASE_WITH(a_group_that_cannot_be_is_not_reported, setup, teardown)
{
	struct env *e = *state;
	struct reported r = { 0 };
	struct wire_mcmember rec = member_of(e, 1);

	listen_to_reports(e, &r);
	rec.pkey = 0x8123;
	assert_int_not_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
	assert_int_equal(r.n, 0);
}

static unsigned n_told_of(struct env *e, uint16_t trap, const struct ib_gid *about)
{
	struct wire_notice n = { .is_generic = 1,
		                 .type = NOTICE_SUBNET_MANAGEMENT,
		                 .producer_type = NOTICE_FROM_CLASS_MANAGER,
		                 .trap_number = trap,
		                 .issuer_lid = lid(e, 0) };
	const struct wire_trap_gid details = { .gid = *about };

	wire_trap_gid_encode(&details, n.details);
	return tell_of(e, &n).n;
}

CASE_WITH(a_subscriber_of_another_partition_gets_no_report, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid about = gid(e, 1), mgid;

	wire_mgid_broadcast(&mgid, IB_PKEY_DEFAULT);
	assert_int_equal(inform(e, 2, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(n_told_of(e, TRAP_GID_IN_SERVICE, &about), 1);
	assert_int_equal(n_told_of(e, TRAP_MGID_CREATED, &mgid), 1);
	e->f->hca_port[2]->pkey[0] = 0x8005;
	assert_int_equal(n_told_of(e, TRAP_GID_IN_SERVICE, &about), 0);
	assert_int_equal(n_told_of(e, TRAP_MGID_CREATED, &mgid), 0);
}

static void add_notice(void *arg, const struct wire_notice *notice)
{
	struct env *e = arg;

	assert_true(sa_notice_add(e->sa, notice, ++e->notices));
}

/* A group is no longer there when subscribers are told that it has ended. */
CASE_WITH(the_end_of_a_group_is_told_in_its_partition_alone, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = member_of(e, 1);
	struct told t = { 0 };
	uint32_t budget = UINT32_MAX;

	assert_int_equal(inform(e, 2, 1, TRAP_MGID_DELETED, 0), SA_OK);
	assert_int_equal(inform(e, 3, 1, TRAP_MGID_DELETED, 0), SA_OK);
	e->f->hca_port[2]->pkey[0] = 0x8005;
	e->sa->reports = (struct sa_reports){ add_notice, e };
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
	rec = member_of(e, 1);
	assert_int_equal(sa_mcmember_delete(e->sa, JOIN, &rec), SA_OK);
	assert_true(sa_notices_step(e->sa, &budget, tell, &t));
	assert_int_equal(t.n, 1);
	assert_int_equal(t.lid, lid(e, 3));
}

CASE_WITH(the_subscriptions_of_a_port_end_with_its_service, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid left = gid(e, 3), got;

	assert_int_equal(inform(e, 2, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(inform(e, 3, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[2], false), 0);
	sweep(e);
	assert_int_equal(TABLE(e, SA_ATTR_INFORM_INFO_RECORD, inform_info_record, 0, 0), 1);
	got = RECORD(e, inform_info_record, 0).subscriber_gid;
	assert_memory_equal(&got, &left, sizeof(got));
}

CASE_WITH(subscriptions_are_listed, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid who = gid(e, 2);

	assert_int_equal(inform(e, 2, 1, TRAP_ANY, 0), SA_OK);
	assert_int_equal(inform(e, 3, 1, 128, 0), SA_OK);
	assert_int_equal(TABLE(e, SA_ATTR_INFORM_INFO_RECORD, inform_info_record, 0, 0), 2);
	assert_int_equal(GET(e, SA_ATTR_INFORM_INFO_RECORD, inform_info_record,
	                     SA_IIR(subscriber_gid), .subscriber_gid = who),
	                 SA_OK);
	assert_int_equal(RECORD(e, inform_info_record, 0).info.trap_number, TRAP_ANY);
	assert_int_equal(RECORD(e, inform_info_record, 0).info.qpn, 0);
	e->mad.sm_key = SA_KEY;
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(RECORD(e, inform_info_record, 0).info.qpn, 1);
}

CASE_WITH(subscriptions_in_slices_are_the_same, setup, teardown)
{
	struct env *e = *state;

	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(subscribe(e, i % 4, 1 + i % 9, (uint16_t)(1 + i)), SA_OK);
	for (uint32_t budget = 1; budget < 100; budget = 3 * budget + 1) {
		prepare(e, MAD_GET_TABLE, SA_ATTR_INFORM_INFO_RECORD);
		assert_same_in_slices(e, budget, true);
		assert_int_equal(e->response.n, 200);
	}
}
