/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traps: when they are sent and sent again, TrapRepress, and traps about keys. Host 0 is the subnet
 * manager.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/agents/traps.h"
#include "fabric/testing_mads.h"
#include "wire/notice.h"

#define KEY     0x1122334455667788
#define TIMEOUT 18
#define PERIOD  (4096ull << TIMEOUT)
#define SECOND  1000000000ull

static uint64_t now, woken_at;

static uint64_t clock_now(void *arg)
{
	(void)arg;
	return now;
}

static void clock_wake(void *arg, uint64_t at_ns)
{
	(void)arg;
	if (!woken_at || at_ns < woken_at)
		woken_at = at_ns;
}

static int setup(void **state)
{
	struct lab *l;

	lab_setup_active(state);
	l = *state;
	now = SECOND;
	woken_at = 0;
	l->f->mads->clock = (struct fabric_clock){ clock_now, clock_wake, NULL };
	for (unsigned i = 0; i < CHAIN; i++) {
		l->sw[i]->port[0].sm_lid = 1;
		l->sw[i]->port[0].subnet_timeout = TIMEOUT;
	}
	lab_host(l, 1)->sm_lid = 1;
	lab_host(l, 1)->subnet_timeout = TIMEOUT;
	return 0;
}

/* Time passes, and the traps are woken if they asked for it. */
static void pass(struct lab *l, uint64_t ns)
{
	now += ns;
	if (!woken_at || woken_at > now)
		return;
	woken_at = 0;
	fabric_traps_run(l->f, now);
}

/* The last that came to the subnet manager. */
static struct wire_smp last(const struct lab *l, struct wire_notice *notice)
{
	struct wire_smp smp;

	assert_ptr_equal(l->at, lab_host(l, 0));
	wire_smp_decode(l->got.data, &smp);
	assert_int_equal(smp.mad.method, MAD_TRAP);
	wire_smp_notice_decode(smp.data, notice);
	assert_int_equal(notice->is_generic, 1);
	assert_int_equal(notice->toggle, 0);
	assert_int_equal(notice->count, 0);
	return smp;
}

static uint64_t last_tid(const struct lab *l)
{
	struct wire_notice notice;

	return last(l, &notice).mad.transaction_id;
}

static uint16_t last_number(const struct lab *l)
{
	struct wire_notice notice;

	last(l, &notice);
	return notice.trap_number;
}

/* The subnet manager responds to the last trap, with this key. */
static void repress_with(struct lab *l, uint64_t m_key)
{
	struct wire_notice notice;
	struct wire_smp smp = last(l, &notice);
	struct fabric_mad mad;

	smp.mad.method = MAD_TRAP_REPRESS;
	smp.m_key = m_key;
	mad = lab_to_lid(lab_host(l, 0), l->got.slid, &smp);
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
}

static void repress(struct lab *l)
{
	repress_with(l, 0);
}

/* The first switch sends a trap about one of its ports. */
static void change_link(struct lab *l)
{
	fabric_trap_link_state(l->f, l->sw[0]);
}

static void send_wrong_key(struct lab *l)
{
	struct wire_smp smp = lab_smp(MAD_SET, SMP_ATTR_PORT_INFO, 1);
	struct fabric_mad mad = lab_to_lid(lab_host(l, 0), 2, &smp);

	lab_host(l, 1)->m_key = KEY;
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
}

/* ---- until TrapRepress ---- */

CASE_WITH(a_trap_is_sent_again_after_the_subnet_timeout, setup, lab_teardown)
{
	struct lab *l = *state;
	uint64_t tid;

	change_link(l);
	assert_int_equal(l->n_got, 1);
	tid = last_tid(l);
	assert_true(woken_at == now + PERIOD);
	pass(l, PERIOD - 1);
	assert_int_equal(l->n_got, 1);
	for (unsigned i = 2; i < 10; i++) {
		pass(l, i == 2 ? 1 : PERIOD);
		assert_int_equal(l->n_got, i);
		assert_true(last_tid(l) == tid);
	}
}

CASE_WITH(trap_repress_ends_a_trap, setup, lab_teardown)
{
	struct lab *l = *state;

	change_link(l);
	repress(l);
	pass(l, 10 * PERIOD);
	assert_int_equal(l->n_got, 1);
	assert_true(LIST_EMPTY(&l->f->mads->traps));
	change_link(l);
	assert_int_equal(l->n_got, 2);
}

CASE_WITH(trap_repress_of_another_trap_does_not_end_it, setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad;
	struct wire_smp smp = lab_smp(MAD_TRAP_REPRESS, SMP_ATTR_NOTICE, 0);
	uint64_t unwanted = l->f->mads->stats.unwanted;

	change_link(l);
	mad = lab_to_lid(lab_host(l, 0), SW_LID, &smp);
	l->refuses = true;
	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.unwanted, unwanted + 1);
	l->refuses = false;
	pass(l, PERIOD);
	assert_int_equal(l->n_got, 2);
}

CASE_WITH(each_port_has_traps_of_its_own, setup, lab_teardown)
{
	struct lab *l = *state;

	change_link(l);
	fabric_trap_link_state(l->f, l->sw[1]);
	fabric_trap_local_changes(l->f, lab_host(l, 1), 0);
	fabric_trap_local_changes(l->f, &l->sw[0]->port[0], 0);
	assert_int_equal(l->n_got, 4);
	repress(l);
	pass(l, PERIOD);
	assert_int_equal(l->n_got, 4 + 3);
}

CASE_WITH(changes_during_a_trap_are_sent_after_trap_repress, setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *p = lab_host(l, 1);
	struct wire_trap_local_changes details;
	struct wire_notice notice;
	uint64_t tid;

	fabric_sma_set_capabilities(l->f, p, PORT_CAP_SM, 0);
	tid = last_tid(l);
	fabric_sma_set_capabilities(l->f, p, PORT_CAP_CM, 0);
	assert_int_equal(l->n_got, 1);
	repress(l);
	assert_int_equal(l->n_got, 2);
	assert_true(last(l, &notice).mad.transaction_id != tid);
	wire_trap_local_changes_decode(notice.details, &details);
	assert_true(details.capability_mask & PORT_CAP_CM);
	repress(l);
	pass(l, 10 * PERIOD);
	assert_int_equal(l->n_got, 2);
}

CASE_WITH(a_trap_ends_when_the_port_has_no_subnet_manager, setup, lab_teardown)
{
	struct lab *l = *state;

	change_link(l);
	l->sw[0]->port[0].sm_lid = 0;
	pass(l, PERIOD);
	assert_int_equal(l->n_got, 1);
	assert_true(LIST_EMPTY(&l->f->mads->traps));
}

CASE_WITH(a_trap_goes_to_the_next_subnet_manager, setup, lab_teardown)
{
	struct lab *l = *state;

	change_link(l);
	l->sw[0]->port[0].sm_lid = 2;
	pass(l, PERIOD);
	assert_int_equal(l->n_got, 2);
	assert_ptr_equal(l->at, lab_host(l, 1));
}

CASE_WITH(a_trap_lost_at_a_broken_link_is_sent_again, setup, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(fabric_link_set(l->f, &l->sw[1]->port[TO_LEFT], false), 0);
	assert_int_equal(l->n_got, 1); /* the first switch's; the second's has no path */
	repress(l);
	assert_int_equal(fabric_link_set(l->f, &l->sw[1]->port[TO_LEFT], true), 0);
	assert_int_equal(l->n_got, 2);
	repress(l);
	pass(l, PERIOD);
	assert_int_equal(l->n_got, 3);
	assert_int_equal(l->got.slid, SW_LID + 1);
}

/* ---- keys ---- */

CASE_WITH(wrong_keys_are_reported_once_in_a_timeout, setup, lab_teardown)
{
	struct lab *l = *state;

	send_wrong_key(l);
	assert_int_equal(l->n_got, 1);
	repress_with(l, KEY);
	for (int i = 0; i < 100; i++)
		send_wrong_key(l);
	assert_int_equal(l->n_got, 1);
	pass(l, PERIOD);
	assert_int_equal(l->n_got, 2);
	repress_with(l, KEY);
	pass(l, PERIOD);
	assert_int_equal(l->n_got, 2);
	assert_true(LIST_EMPTY(&l->f->mads->traps));
}

CASE_WITH(trap_repress_needs_the_m_key, setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *p = lab_host(l, 1);

	p->m_key = KEY;
	fabric_trap_local_changes(l->f, p, 0);
	repress_with(l, KEY + 1);
	assert_int_equal(p->m_key_violations, 1);
	assert_int_equal(last_number(l), TRAP_BAD_MKEY);
	assert_int_equal(l->n_got, 2);
	pass(l, PERIOD);
	assert_int_equal(l->n_got, 4);
}

CASE_WITH(trap_256_says_how_a_directed_request_came, setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_SET, SMP_ATTR_PKEY_TABLE, 0x30000);
	struct fabric_mad mad;
	struct wire_trap_bad_mkey details;
	struct wire_notice notice;

	l->sw[1]->port[0].m_key = KEY;
	smp.m_key = 7;
	mad = lab_directed(&smp, (const uint8_t[]){ 1, TO_RIGHT, 0 });
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
	last(l, &notice);
	assert_int_equal(notice.type, NOTICE_SECURITY);
	assert_int_equal(notice.trap_number, TRAP_BAD_MKEY);
	assert_int_equal(notice.producer_type, NOTICE_FROM_SWITCH);
	assert_int_equal(notice.issuer_lid, SW_LID + 1);
	wire_trap_bad_mkey_decode(notice.details, &details);
	assert_int_equal(details.lid, IB_LID_PERMISSIVE);
	assert_int_equal(details.dr_slid, IB_LID_PERMISSIVE);
	assert_int_equal(details.method, MAD_SET);
	assert_int_equal(details.attribute_id, SMP_ATTR_PKEY_TABLE);
	assert_int_equal(details.attribute_modifier, 0x30000);
	assert_true(details.m_key == 7);
	assert_int_equal(details.dr_notice, 1);
	assert_int_equal(details.dr_path_truncated, 0);
	assert_int_equal(details.dr_hop_count, 2);
	assert_int_equal(details.dr_return_path[0], TO_HOST);
	assert_int_equal(details.dr_return_path[1], TO_LEFT);
}

static uint16_t protection(struct lab *l)
{
	uint8_t data[SMP_DATA_BYTES] = { 0 };
	struct wire_port_info i;

	fabric_sma_get(l->f, lab_host(l, 1), SMP_ATTR_PORT_INFO, 1, data);
	wire_port_info_decode(data, &i);
	return i.m_key_protect_bits;
}

CASE_WITH(the_protection_ends_with_its_lease, setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *p = lab_host(l, 1);

	p->m_key_protect = 2;
	p->m_key_lease = 5;
	send_wrong_key(l);
	now += 5 * SECOND - 1;
	send_wrong_key(l); /* does not begin it anew */
	assert_int_equal(protection(l), 2);
	now += 1;
	assert_int_equal(protection(l), 0);
	assert_true(p->m_key == KEY);
}

CASE_WITH(a_request_with_the_key_stops_the_lease, setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_port *p = lab_host(l, 1);
	struct fabric_mad mad;

	p->m_key_protect = 2;
	p->m_key_lease = 5;
	send_wrong_key(l);
	smp.m_key = KEY;
	mad = lab_to_lid(lab_host(l, 0), 2, &smp);
	lab_ask(l, lab_host(l, 0), &mad);
	now += 6 * SECOND;
	assert_int_equal(protection(l), 2);
}

CASE_WITH(without_a_lease_period_the_protection_stays, setup, lab_teardown)
{
	struct lab *l = *state;

	lab_host(l, 1)->m_key_protect = 2;
	send_wrong_key(l);
	now += 100000 * SECOND;
	assert_int_equal(protection(l), 2);
}

/* A MAD to QP1 of @to, in a partition that @to is not in. */
static void send_wrong_p_key(struct lab *l, uint16_t lid)
{
	struct fabric_mad mad = { .slid = 1,
		                  .dlid = lid,
		                  .src_qpn = IB_QPN_GSI,
		                  .dest_qpn = IB_QPN_GSI,
		                  .pkey_index = 1,
		                  .sl = 3 };

	lab_host(l, 0)->pkey[1] = 0x8123;
	mad.data[0] = MAD_BASE_VERSION;
	mad.data[1] = MAD_CLASS_PERF;
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
}

CASE_WITH(a_mad_of_another_partition_is_reported_as_trap_257, setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_trap_bad_key details;
	struct wire_notice notice;

	send_wrong_p_key(l, 2);
	last(l, &notice);
	assert_int_equal(notice.type, NOTICE_SECURITY);
	assert_int_equal(notice.trap_number, TRAP_BAD_PKEY);
	assert_int_equal(notice.producer_type, NOTICE_FROM_CA);
	assert_int_equal(notice.issuer_lid, 2);
	wire_trap_bad_key_decode(notice.details, &details);
	assert_int_equal(details.lid1, 1);
	assert_int_equal(details.lid2, 2);
	assert_int_equal(details.key, 0x8123);
	assert_int_equal(details.sl, 3);
	assert_int_equal(details.qp1, IB_QPN_GSI);
	assert_int_equal(details.qp2, IB_QPN_GSI);
	fabric_traps_notice_keys(l->f); /* is not reported twice */
	assert_int_equal(l->n_got, 1);
}

CASE_WITH(a_switch_that_blocks_a_partition_sends_trap_259, setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *out = &l->sw[1]->port[TO_RIGHT];
	uint64_t bad = l->f->mads->stats.bad_p_key;
	struct wire_trap_bad_switch_pkey details;
	struct wire_notice notice;

	out->link.partition_outbound = true;
	send_wrong_p_key(l, 2);
	assert_int_equal(l->f->mads->stats.bad_p_key, bad + 1);
	assert_int_equal(out->stats.lost[FABRIC_LOST_XMIT_PKEY], 1);
	last(l, &notice);
	assert_int_equal(notice.type, NOTICE_SECURITY);
	assert_int_equal(notice.trap_number, TRAP_BAD_SWITCH_PKEY);
	assert_int_equal(notice.producer_type, NOTICE_FROM_SWITCH);
	assert_int_equal(notice.issuer_lid, SW_LID + 1);
	wire_trap_bad_switch_pkey_decode(notice.details, &details);
	assert_int_equal(details.switch_lid, SW_LID + 1);
	assert_int_equal(details.port, TO_RIGHT);
	assert_int_equal(details.lid1, 1);
	assert_int_equal(details.lid2, 2);
	assert_int_equal(details.pkey, 0x8123);
	assert_int_equal(details.sl, 3);
	assert_int_equal(details.qp1, IB_QPN_GSI);
	assert_int_equal(details.qp2, IB_QPN_GSI);
	assert_int_equal(details.data_valid & BAD_SWITCH_PKEY_GIDS, 0);
}

CASE_WITH(the_management_lane_knows_no_partitions, setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_to_lid(lab_host(l, 0), 2, &smp);

	memset(l->sw[1]->port[TO_RIGHT].pkey, 0, sizeof(l->sw[1]->port[TO_RIGHT].pkey));
	l->sw[1]->port[TO_RIGHT].link.partition_outbound = true;
	lab_ask(l, lab_host(l, 0), &mad);
}

static struct wire_port_info port_info_of(struct lab *l, uint16_t lid)
{
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_PORT_INFO, 0);
	struct fabric_mad mad = lab_to_lid(lab_host(l, 0), lid, &smp);
	struct wire_port_info i;

	smp = lab_ask(l, lab_host(l, 0), &mad);
	wire_port_info_decode(smp.data, &i);
	return i;
}

CASE_WITH(violations_are_counted_until_they_are_set_to_0, setup, lab_teardown)
{
	struct lab *l = *state;
	const uint16_t lids[] = { 2, SW_LID };

	for (size_t k = 0; EACH_ROW(k, lids); k++) {
		struct wire_smp smp = lab_smp(MAD_SET, SMP_ATTR_PORT_INFO, 0);
		struct wire_port_info i;
		struct fabric_mad mad;

		send_wrong_p_key(l, lids[k]);
		send_wrong_p_key(l, lids[k]);
		i = port_info_of(l, lids[k]);
		assert_int_equal(i.p_key_violations, 2);
		i.p_key_violations = 0;
		i.port_state = i.port_physical_state = 0;
		wire_port_info_encode(&i, smp.data);
		mad = lab_to_lid(lab_host(l, 0), lids[k], &smp);
		lab_ask(l, lab_host(l, 0), &mad);
		assert_int_equal(port_info_of(l, lids[k]).p_key_violations, 0);
		send_wrong_p_key(l, lids[k]);
		assert_int_equal(port_info_of(l, lids[k]).p_key_violations, 1);
	}
}

/* As a program does that gets a packet with a bad key (hca/deliver.c). */
static void count_bad_q_key(struct lab *l)
{
	struct shm_port_count *c = shm_port_count_at(l->f->region, lab_host(l, 1)->index);

	c->last_bad_qkey.ends = 1ull << 48 | 0x11111ull << 24 | 0x22222;
	c->last_bad_qkey.key = 5ull << 32 | 0xCAFE;
	c->bad_qkey++;
	l->f->region->data->bad_keys++;
}

CASE_WITH(bad_keys_that_programs_count_are_reported_as_trap_258, setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_trap_bad_key details;
	struct wire_notice notice;

	fabric_traps_notice_keys(l->f);
	assert_int_equal(l->n_got, 0);
	count_bad_q_key(l);
	fabric_traps_notice_keys(l->f);
	assert_int_equal(l->n_got, 1);
	last(l, &notice);
	assert_int_equal(notice.trap_number, TRAP_BAD_QKEY);
	wire_trap_bad_key_decode(notice.details, &details);
	assert_int_equal(details.lid1, 1);
	assert_int_equal(details.lid2, 2);
	assert_int_equal(details.key, 0xCAFE);
	assert_int_equal(details.sl, 5);
	assert_int_equal(details.qp1, 0x11111);
	assert_int_equal(details.qp2, 0x22222);
	repress(l);
	pass(l, PERIOD);
	fabric_traps_notice_keys(l->f);
	assert_int_equal(l->n_got, 1);
	assert_int_equal(port_info_of(l, 2).q_key_violations, 1);
}
