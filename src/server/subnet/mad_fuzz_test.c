/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random MADs of every class from every host of a fat tree that the embedded subnet manager has
 * brought up. SMI, SMA, PMA and SA respond with a status, or drop and count the MAD; all counts
 * must add up. Sets may change the fabric; the next sweep and, now and then, a new fabric repair
 * it.
 *
 * The test runs for UMBEL_FUZZ_SECONDS, or for about a second. UMBEL_FUZZ_SEED sets the first seed.
 * Each fabric has a seed, which a failure prints: with it as the first, the failure comes at once.
 */
#include <harness.h>

#include "fabric/model/lanes.h"
#include "fabric/agents/link.h"
#include "fabric/testing.h"
#include "fabric/agents/traps.h"
#include "subnet/sa_segments.h"
#include "subnet/sa_server.h"
#include "subnet/testing_passes.h"
#include "wire/testing_mad_fuzz.h"

#define N_MADS   100000
#define A_FABRIC 5000 /* MADs for each fabric */
#define HOSTS    6
#define RADIX    4
#define KEY      0x1234
#define SECOND   1000000000ull

struct lab {
	struct fabric *f;
	struct sm *sm;
	struct sa *sa;
	struct sa_segments *segments;
	struct fuzz fuzz;
	struct fuzz_world world;
	uint64_t now;
	/* responses of the SA and to traps; sent when the sender has finished */
	struct fabric_mad reply;
	bool has_reply;
	uint64_t n_sa_responses, n_received;
};

/* ---- the subnet administrator, as the daemon has it ---- */

static void check_response(const struct sa_response *a, uint8_t method)
{
	assert_true(a->method == 0 || a->method == wire_mad_response_method(method));
	assert_true(a->n == 0 || !a->status);
	assert_int_equal(a->bytes, (size_t)a->n * a->record_bytes);
	assert_int_equal(a->record_bytes % 8, 0);
	assert_true((a->records != NULL) == (a->n != 0));
	if (a->method == MAD_GET_RESP && !a->status)
		assert_int_equal(a->n, 1);
	for (size_t i = 0; i < a->bytes; i += 64) /* reads all of it */
		(void)*(volatile uint8_t *)(a->records + i);
}

static void prepare_reply(struct lab *l, const struct fabric_mad *to)
{
	l->reply = (struct fabric_mad){ .slid = sm_port(l->sm)->lid,
		                        .dlid = to->slid,
		                        .src_qpn = to->dest_qpn,
		                        .dest_qpn = to->src_qpn,
		                        .pkey_index = to->pkey_index };
	l->has_reply = true;
}

static void serve(struct lab *l, const struct fabric_mad *mad, struct sa_request *request)
{
	struct wire_sa_mad out = *request->mad;
	struct sa_response response;

	request->slid = mad->slid;
	request->qpn = mad->src_qpn;
	request->now_s = l->now / SECOND;
	sa_serve(l->sa, request, &response);
	check_response(&response, request->mad->mad.method);
	free(response.records);
	l->n_sa_responses += response.n != 0;
	if (!response.method)
		return;
	out.mad.method = response.method;
	out.mad.status = response.status;
	prepare_reply(l, mad);
	wire_sa_mad_encode(&out, l->reply.data);
}

static void receive_sa(struct lab *l, const struct fabric_mad *mad)
{
	struct sa_segment_step step;
	struct wire_sa_mad sa;

	if (!wire_rmpp_is_active(mad->data)) {
		wire_sa_mad_decode(mad->data, &sa);
		serve(l, mad,
		      &(struct sa_request){
		              .mad = &sa, .data = sa.data, .bytes = sizeof(sa.data) });
		return;
	}
	sa_segments_receive(l->segments, mad, l->now, &step);
	if (step.replied) {
		prepare_reply(l, mad);
		memcpy(l->reply.data, step.reply, sizeof(step.reply));
	}
	if (step.whole)
		serve(l, mad,
		      &(struct sa_request){
		              .mad = &step.mad, .data = step.data, .bytes = step.bytes });
}

/* Responds to half of the traps. */
static void receive_trap(struct lab *l, const struct fabric_mad *mad)
{
	struct wire_smp smp;

	if (fuzz_chance(&l->fuzz, 50))
		return;
	wire_smp_decode(mad->data, &smp);
	smp.mad.method = MAD_TRAP_REPRESS;
	smp.m_key = fuzz_chance(&l->fuzz, 80) ? KEY : 0;
	prepare_reply(l, mad);
	wire_smp_encode(&smp, l->reply.data);
}

static bool deliver(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct lab *l = arg;
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	if (fuzz_chance(&l->fuzz, 10))
		return false;
	l->n_received++;
	if (at == sm_port(l->sm) && h.mgmt_class == MAD_CLASS_SUBN_ADM)
		receive_sa(l, mad);
	else if (at == sm_port(l->sm) && h.method == MAD_TRAP && mad->dest_qpn == IB_QPN_SMI)
		receive_trap(l, mad);
	return true;
}

static void port_changed(void *arg, struct fabric_port *port, unsigned what)
{
	(void)arg;
	(void)port;
	(void)what;
}

static void report(void *arg, const struct wire_notice *notice)
{
	(void)arg;
	(void)notice;
}

static uint64_t clock_now(void *arg)
{
	return ((struct lab *)arg)->now;
}

/* ---- the fabric ---- */

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

/* End ports: those of HCAs, then the switches' ports 0. */
static struct fabric_port *end_port(const struct lab *l, unsigned i)
{
	struct fabric_node *sw;

	if (i < HOSTS)
		return l->f->hca_port[i];
	sw = sm_switch(l->sm, i - HOSTS);
	return sw ? &sw->port[0] : NULL;
}

static void see_world(struct lab *l)
{
	struct fuzz_world *w = &l->world;
	struct fabric_port *p;

	*w = (struct fuzz_world){ .n_ports = RADIX, .m_key = KEY };
	for (unsigned i = 0; (p = end_port(l, i)); i++) {
		assert_true(i + 1 < FUZZ_WORLD);
		w->lid[w->n_lids++] = p->lid;
		if (i < HOSTS)
			w->gid[w->n_gids++] = shm_port_at(l->f->region, i)->gid[0];
	}
	w->lid[w->n_lids++] = IB_LID_PERMISSIVE;
}

static void build(struct lab *l)
{
	const struct fabric_fat_tree tree = { .levels = 2, .radix = RADIX, .hosts = HOSTS };
	const struct sm_ops ops = { .wake = no_wake };
	struct shm_settings settings;
	struct fabric_plan plan;
	char why[128];

	fabric_settings_default(&settings);
	settings.mft_capacity = 100;
	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_fat_tree(&plan, &tree, why, sizeof(why)), 0);
	l->f = testing_build(&plan, &settings);
	l->f->mads->sink = (struct fabric_mad_sink){ .deliver = deliver,
		                                     .port_changed = port_changed,
		                                     .arg = l };
	l->f->mads->clock = (struct fabric_clock){ clock_now, NULL, l };
	assert_int_equal(sm_new(&l->sm, l->f, &ops), 0);
	assert_int_equal(sm_sweep(l->sm), 0);
	assert_int_equal(sa_new(&l->sa, l->f, l->sm), 0);
	assert_int_equal(sa_segments_new(&l->segments), 0);
	l->sa->reports = (struct sa_reports){ report, l };
	testing_flow(l->f, l->f->hca_port[0], testing_qp(l->f, 10, l->f->hca_port[0]),
	             l->f->hca_port[1]->lid, NULL);
	see_world(l);
}

static void tear_down(struct lab *l)
{
	sa_segments_free(l->segments);
	sa_free(l->sa);
	sm_free(l->sm);
	fabric_free(l->f);
}

/* Does a subnet manager's work: LIDs, keys off, lanes as they were, ports enabled, all active
 * again. */
static void put_in_order(struct lab *l)
{
	struct fabric_port *end;

	for (unsigned i = 0; (end = end_port(l, i)); i++) {
		end->lid = l->world.lid[i];
		end->lmc = 0;
	}
	for (unsigned i = 0; i < l->f->n_nodes; i++) {
		struct fabric_node *node = l->f->node[i];

		for (unsigned k = 0; k <= node->n_ports; k++) {
			struct fabric_port *p = &node->port[k];

			p->m_key = fuzz_chance(&l->fuzz, 10) ? KEY : 0;
			p->link.width_enabled = p->link.speed_enabled = 0;
			p->link.speed_ext_enabled = 0;
			p->pkey[0] = IB_PKEY_DEFAULT;
			p->link.operational_vls = 0;
			fabric_lanes_free(p);
			if (p->peer)
				fabric_port_disable(l->f, p, false);
		}
	}
	fabric_flow_follow_all(l->f);
	assert_int_equal(sm_sweep(l->sm), 0);
	sa_swept(l->sa);
}

/* ---- one after the other ---- */

static void check_counts(const struct fabric_mad_stats *s)
{
	assert_true(s->sent == s->delivered + s->roce + s->no_route + s->bad_path + s->bad_p_key);
	assert_true(s->delivered == s->answered + s->accepted + s->repressed + s->bad_m_key +
	                                    s->bad_cc_key + s->unwanted);
}

static void send_one(struct lab *l)
{
	struct fabric_port *from = l->f->hca_port[fuzz_below(&l->fuzz, HOSTS)];
	struct fabric_mad_stats before = l->f->mads->stats;
	struct fabric_mad mad = { 0 };
	struct fuzz_mad made;

	fuzz_make(&l->fuzz, &made);
	memcpy(mad.data, made.data, sizeof(mad.data));
	mad.slid = fuzz_chance(&l->fuzz, 95) ? from->lid : fuzz_lid(&l->fuzz);
	mad.dlid = made.dlid;
	mad.src_qpn = made.src_qpn;
	mad.dest_qpn = made.dest_qpn;
	mad.pkey_index = made.pkey_index;
	mad.sl = made.sl;
	mad.has_grh = made.has_grh;
	mad.dgid = made.dgid;
	fabric_mad_send(l->f, from, &mad);
	assert_true(l->f->mads->stats.sent > before.sent);
	while (l->has_reply) {
		l->has_reply = false;
		fabric_mad_send(l->f, sm_port(l->sm), &l->reply);
	}
	check_counts(&l->f->mads->stats);
}

static void send_many(struct lab *l)
{
	for (unsigned i = 1; i <= A_FABRIC; i++) {
		send_one(l);
		if (i % 16 == 0)
			fabric_flow_follow_all(l->f);
		if (i % 64 == 0) {
			l->now += fuzz_below(&l->fuzz, 3) * SECOND;
			fabric_traps_run(l->f, l->now);
			check_counts(&l->f->mads->stats);
		}
		if (i % 32 == 0)
			put_in_order(l);
	}
}

/* The run was useful: every kind of result has happened. */
static void check_reach(const struct fabric_mad_stats *s, uint64_t n)
{
	assert_true(s->answered > n / 10);
	assert_true(s->accepted > n / 10);
	assert_true(s->no_route && s->bad_path && s->bad_p_key && s->bad_m_key && s->unwanted &&
	            s->repressed);
}

static void add(struct fabric_mad_stats *sum, const struct fabric_mad_stats *s)
{
	sum->answered += s->answered;
	sum->accepted += s->accepted;
	sum->no_route += s->no_route;
	sum->bad_path += s->bad_path;
	sum->bad_p_key += s->bad_p_key;
	sum->bad_m_key += s->bad_m_key;
	sum->unwanted += s->unwanted;
	sum->repressed += s->repressed;
}

CASE(every_mad_gets_a_response_or_is_counted)
{
	struct fabric_mad_stats sum = { 0 };
	uint64_t end = fuzz_end(), seed = fuzz_seed(), n = 0, n_sa_responses = 0;
	static struct lab l;

	for (; n < N_MADS || base_now_ns() < end; seed++) {
		memset(&l, 0, sizeof(l));
		l.now = SECOND;
		l.fuzz = (struct fuzz){ .world = &l.world, .seed = seed };
		fprintf(stderr, "UMBEL_FUZZ_SEED=%llu\n", (unsigned long long)seed);
		build(&l);
		send_many(&l);
		add(&sum, &l.f->mads->stats);
		n_sa_responses += l.n_sa_responses;
		tear_down(&l);
		n += A_FABRIC;
	}
	check_reach(&sum, n);
	assert_true(n_sa_responses > n / 100);
}
