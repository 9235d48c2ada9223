/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of subnet_mad.c: what one request to the subnet administrator may take at a time.
 */
#include <harness.h>

#include "daemon/subnet/subnet_mad.h"
#include "fabric/testing.h"
#include "subnet/sa_query.h"
#include "wire/rmpp.h"
#include "wire/sa_records.h"

#define HOSTS 4
#define LMC   6

struct env {
	struct fabric *f;
	struct sm *sm;
	struct sm_role *role;
	struct daemon_loop loop;
	struct daemon_mads mads;
	struct daemon_subnet_mad m;
	unsigned n; /* MADs that have come to programs */
	struct wire_sa_mad last;
};

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

static void no_change(void *arg)
{
	(void)arg;
}

/* To the subnet administrator, or a program, which refuses the rest of a long response. */
static bool deliver(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct env *e = arg;
	struct fabric_mad reply = { .slid = at->lid,
		                    .dlid = mad->slid,
		                    .src_qpn = mad->dest_qpn,
		                    .dest_qpn = mad->src_qpn,
		                    .qkey = mad->qkey };

	if (at == sm_role_home(e->role))
		return daemon_subnet_mad(&e->m, at, mad);
	e->n++;
	wire_sa_mad_decode(mad->data, &e->last);
	if (wire_rmpp_is_active(mad->data)) {
		wire_rmpp_refuse(mad->data, RMPP_STATUS_RESOURCES_EXHAUSTED, reply.data);
		daemon_mads_queue(&e->mads, at, &reply);
	}
	return true;
}

/* Whether MADs wait to be sent. */
static bool queued(const struct env *e)
{
	return !STAILQ_EMPTY(&e->mads.queue);
}

static void send_all(struct env *e)
{
	while (queued(e))
		daemon_mads_send(&e->mads);
}

static int setup(void **state)
{
	static const struct sm_ops ops = { .wake = no_wake };
	static const struct sm_role_ops role_ops = { .master = no_change,
		                                     .resign = no_change,
		                                     .wake = no_wake };
	struct env *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->f = testing_fabric(HOSTS);
	e->f->settings.lmc = LMC;
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(sm_role_new(&e->role, e->f, sm_port(e->sm), &role_ops), 0);
	sm_role_start(e->role, 0);
	assert_int_equal(sm_role_state(e->role), SM_MASTER);
	assert_int_equal(daemon_loop_init(&e->loop), 0);
	daemon_mads_init(&e->mads, e->f, &e->loop);
	assert_int_equal(daemon_subnet_mad_init(&e->m, e->f, &e->loop, &e->mads), 0);
	assert_int_equal(sa_new(&e->m.sa, e->f, e->sm), 0);
	e->m.role = e->role;
	e->m.sa->reports = daemon_subnet_mad_reports(&e->m);
	e->f->mads->sink.deliver = deliver;
	e->f->mads->sink.arg = e;
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	send_all(e); /* what programs have to say of responses */
	assert_int_equal(e->m.responses.n, 0);
	daemon_subnet_mad_forget(&e->m);
	sa_free(e->m.sa);
	sa_segments_free(e->m.segments);
	daemon_mads_fini(&e->mads);
	daemon_loop_fini(&e->loop);
	sm_role_free(e->role);
	sm_free(e->sm);
	fabric_free(e->f);
	free(e);
	return 0;
}

/* A request arrives at the subnet administrator, of the port with that LID. */
static void ask_from(struct env *e, uint16_t lid, const struct wire_sa_mad *sa)
{
	struct fabric_port *at = sm_role_home(e->role);
	struct fabric_mad mad = { .slid = lid,
		                  .dlid = at->lid,
		                  .src_qpn = IB_QPN_GSI,
		                  .dest_qpn = IB_QPN_GSI,
		                  .qkey = IB_QKEY_GSI };

	wire_sa_mad_encode(sa, mad.data);
	assert_true(daemon_subnet_mad(&e->m, at, &mad));
}

static void ask(struct env *e, unsigned host, const struct wire_sa_mad *sa)
{
	ask_from(e, e->f->hca_port[host]->lid, sa);
}

static struct wire_sa_mad request(uint8_t method, uint16_t attribute, uint64_t tid)
{
	return (struct wire_sa_mad){ .mad = { .base_version = MAD_BASE_VERSION,
		                              .mgmt_class = MAD_CLASS_SUBN_ADM,
		                              .class_version = MAD_VERSION_SUBN_ADM,
		                              .method = method,
		                              .transaction_id = tid,
		                              .attribute_id = attribute } };
}

/* Turns of the loop until @n MADs have come to programs. */
static unsigned turns_until(struct env *e, unsigned n)
{
	unsigned turns = 0;

	for (; e->n < n; turns++) {
		assert_true(turns < 1000000);
		assert_int_equal(daemon_loop_turn(&e->loop), 0);
	}
	return turns;
}

static struct ib_gid gid(const struct env *e, unsigned host)
{
	return shm_port_at(e->f->region, host)->gid[0];
}

/* A MultiPathRecord between all hosts, with an MTU that no path has. */
static struct wire_sa_mad impossible_multipath(const struct env *e, uint64_t tid)
{
	struct wire_sa_mad sa = request(MAD_GET_MULTI, SA_ATTR_MULTIPATH, tid);
	const struct wire_multipath_record m = {
		.sgid_count = HOSTS, .dgid_count = HOSTS, .mtu_selector = SA_GREATER, .mtu = 5
	};

	sa.component_mask =
	        SA_MPR(sgid_count) | SA_MPR(dgid_count) | SA_MPR(mtu_selector) | SA_MPR(mtu);
	wire_multipath_record_encode(&m, sa.data);
	for (unsigned i = 0; i < 2 * HOSTS; i++) {
		struct ib_gid g = gid(e, i % HOSTS);

		memcpy(sa.data + wire_multipath_record_bytes + i * sizeof(g), &g, sizeof(g));
	}
	return sa;
}

/* 4 x 4 ports with 64 LIDs each are 65,536 paths to be tried. */
CASE_WITH(a_multipath_that_no_path_meets_takes_many_turns, setup, teardown)
{
	struct env *e = *state;
	const struct wire_sa_mad multi = impossible_multipath(e, 7);

	ask(e, 1, &multi);
	assert_int_equal(e->n, 0); /* not in this turn */
	ask(e, 1, &multi);         /* it asks again: the same request */
	assert_in_range(turns_until(e, 1), 40, 100000);
	assert_int_equal(e->last.mad.method, MAD_GET_MULTI_RESP);
	assert_int_equal(e->last.mad.status, 0);
	assert_int_equal(e->last.mad.transaction_id, 7);
	assert_true(TAILQ_EMPTY(&e->m.jobs));
}

CASE_WITH(a_get_that_no_path_meets_takes_many_turns, setup, teardown)
{
	struct env *e = *state;
	struct wire_sa_mad get = request(MAD_GET, SA_ATTR_PATH, 8);
	const struct wire_path_record r = { .mtu_selector = SA_GREATER, .mtu = 5 };

	get.component_mask = SA_PR(mtu_selector) | SA_PR(mtu);
	wire_path_record_encode(&r, get.data);
	ask(e, 1, &get);
	assert_int_equal(e->n, 0);
	assert_in_range(turns_until(e, 1), 40, 100000);
	assert_int_equal(e->last.mad.status, SA_NO_RECORDS);
	/* an ordinary one is answered at once */
	get = request(MAD_GET, SA_ATTR_PATH, 9);
	get.component_mask = SA_PR(dgid);
	wire_path_record_encode(&(struct wire_path_record){ .dgid = gid(e, 2) }, get.data);
	ask(e, 1, &get);
	assert_int_equal(e->n, 2);
	assert_int_equal(e->last.mad.status, 0);
}

/* Those of a port that asks for more than it may have at a time are refused. */
CASE_WITH(requests_that_wait_are_limited, setup, teardown)
{
	struct env *e = *state;
	struct wire_sa_mad multi;

	for (unsigned i = 0; i < 100; i++) {
		multi = impossible_multipath(e, 100 + i);
		ask(e, 1, &multi);
	}
	assert_in_range(e->n, 20, 60);
	assert_int_equal(e->last.mad.status, MAD_STATUS_BUSY);
	multi = impossible_multipath(e, 1);
	ask(e, 2, &multi); /* another port is served */
	turns_until(e, 101);
	assert_true(TAILQ_EMPTY(&e->m.jobs));
}

/* Each of these LIDs may have as many, but not all at once. */
CASE_WITH(requests_of_all_that_wait_are_limited, setup, teardown)
{
	struct env *e = *state;
	const uint16_t lid = e->f->hca_port[1]->lid;

	for (unsigned i = 0; i < 640; i++) {
		const struct wire_sa_mad multi = impossible_multipath(e, 100 + i);

		ask_from(e, (uint16_t)(lid + i % 16), &multi);
	}
	assert_in_range(e->n, 640 - 520, 640 - 480);
	assert_int_equal(e->last.mad.status, MAD_STATUS_BUSY);
}

/* ---- reports ---- */

/* Subscribes to all notices about LIDs from @from on. */
static void subscribe(struct env *e, unsigned host, uint32_t qpn, uint16_t from)
{
	struct wire_sa_mad sa = request(MAD_SET, SA_ATTR_INFORM_INFO, 1);
	struct fabric_port *at = sm_role_home(e->role);
	struct fabric_mad mad = { .slid = e->f->hca_port[host]->lid,
		                  .dlid = at->lid,
		                  .src_qpn = qpn,
		                  .dest_qpn = IB_QPN_GSI,
		                  .qkey = IB_QKEY_GSI };
	const struct wire_inform_info info = { .lid_range_begin = from,
		                               .lid_range_end = 0xBFFF,
		                               .is_generic = 1,
		                               .subscribe = 1,
		                               .type = INFORM_ALL,
		                               .trap_number = TRAP_ANY,
		                               .producer_type = NOTICE_FROM_ANYBODY };

	wire_inform_info_encode(&info, sa.data);
	wire_sa_mad_encode(&sa, mad.data);
	assert_true(daemon_subnet_mad(&e->m, at, &mad));
	assert_int_equal(e->last.mad.status, 0);
}

static void notify(struct env *e)
{
	const struct wire_notice n = { .is_generic = 1,
		                       .type = NOTICE_URGENT,
		                       .producer_type = NOTICE_FROM_SWITCH,
		                       .trap_number = TRAP_LINK_STATE_CHANGED,
		                       .issuer_lid = 2000 };

	e->m.sa->reports.tell(e->m.sa->reports.arg, &n);
}

/* 900 subscriptions of one program, and 50 notices: 50 Reports, in the next turn. */
CASE_WITH(many_subscriptions_of_one_program_get_one_report, setup, teardown)
{
	struct env *e = *state;

	for (unsigned i = 0; i < 900; i++)
		subscribe(e, 1, IB_QPN_GSI, (uint16_t)(1 + i));
	e->n = 0;
	for (unsigned i = 0; i < 50; i++)
		notify(e);
	assert_int_equal(e->n, 0);
	assert_false(queued(e));
	turns_until(e, 50);
	assert_int_equal(e->last.mad.method, MAD_REPORT);
	assert_false(base_timer_is_set(&e->m.report_turn));
}

/* Three ports with 900 QPNs each: of many notices so many Reports are made in a turn, and so many
 * notices wait. */
CASE_WITH(reports_are_made_in_slices_and_limited, setup, teardown)
{
	struct env *e = *state;
	unsigned before, most = 0, wanted;

	for (unsigned i = 0; i < 2700; i++)
		subscribe(e, 1 + i / 900, 2 + i, 1);
	e->n = 0;
	for (unsigned i = 0; i < 5000; i++)
		notify(e);
	assert_in_range(e->f->mads->stats.unreported, 1000, 4900);
	wanted = 2700 * (5000 - (unsigned)e->f->mads->stats.unreported);
	for (unsigned i = 0; i < 1000; i++) {
		before = e->n;
		assert_int_equal(daemon_loop_turn(&e->loop), 0);
		most = e->n - before > most ? e->n - before : most;
	}
	assert_in_range(most, 1, 1000);
	assert_true(e->n < wanted); /* there is more, which ends with the administrator */
	assert_true(base_timer_is_set(&e->m.report_turn));
	daemon_subnet_mad_forget(&e->m);
	before = e->n;
	send_all(e);
	assert_in_range(e->n - before, 0, 1000); /* it did not wait in the queue */
}
