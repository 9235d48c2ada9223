/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MCMemberRecord requests: which ports may create, join and leave groups, the values of groups, and
 * that every MLID is freed.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/testing.h"
#include "subnet/partitions.h"
#include "subnet/sa_groups.h"
#include "subnet/testing_passes.h"
#include "wire/mgid.h"

#define JOIN   (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE)
#define CREATE (JOIN | SA_MCM_QKEY | SA_MCM_TCLASS | SA_MCM_PKEY | SA_MCM_FLOW_LABEL | SA_MCM_SL)
#define MTU    (SA_MCM_MTU | SA_MCM_MTU_SELECTOR)
#define RATE   (SA_MCM_RATE | SA_MCM_RATE_SELECTOR)

#define FULL      IB_JOIN_FULL
#define NON       IB_JOIN_NON
#define SEND_NON  IB_JOIN_SEND_ONLY_NON
#define SEND_FULL IB_JOIN_SEND_ONLY_FULL

struct env {
	struct fabric *f;
	struct sm *sm;
	struct sa *sa;
};

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

static struct env *start(const struct shm_settings *settings)
{
	struct env *e = calloc(1, sizeof(*e));
	const struct sm_ops ops = { .wake = no_wake };

	e->f = testing_fabric_with(4, settings);
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(sa_new(&e->sa, e->f, e->sm), 0);
	return e;
}

static void stop(struct env *e)
{
	sa_free(e->sa);
	sm_free(e->sm);
	fabric_free(e->f);
	free(e);
}

static int setup(void **state)
{
	struct shm_settings settings;

	fabric_settings_default(&settings);
	*state = start(&settings);
	return 0;
}

static int teardown(void **state)
{
	stop(*state);
	return 0;
}

/* ---- requests ---- */

static struct ib_gid gid_of(const char *text)
{
	struct ib_gid gid;

	assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static const struct ib_gid *port_gid(const struct env *e, unsigned host)
{
	return &shm_port_at(e->f->region, host)->gid[0];
}

/* A request of @host that has all that a group needs. */
static struct wire_mcmember request(const struct env *e, unsigned host, const char *mgid,
                                    uint8_t join_state)
{
	return (struct wire_mcmember){ .mgid = gid_of(mgid),
		                       .port_gid = *port_gid(e, host),
		                       .qkey = 0x11111111,
		                       .pkey = IB_PKEY_DEFAULT,
		                       .join_state = join_state };
}

#define GROUP "ff12:1::1"

static enum sa_status join(struct env *e, unsigned host, const char *mgid, uint8_t join_state)
{
	struct wire_mcmember rec = request(e, host, mgid, join_state);

	return sa_mcmember_set(e->sa, CREATE, &rec);
}

static enum sa_status leave(struct env *e, unsigned host, const char *mgid, uint8_t join_state)
{
	struct wire_mcmember rec = request(e, host, mgid, join_state);

	return sa_mcmember_delete(e->sa, JOIN, &rec);
}

static const struct sa_group *find(const struct env *e, const char *mgid)
{
	struct ib_gid gid = gid_of(mgid);

	return sa_group_find(e->sa, &gid);
}

static uint8_t state_of(const struct env *e, unsigned host, const char *mgid)
{
	const struct sa_group *g = find(e, mgid);

	for (unsigned i = 0; g && i < g->n_members; i++)
		if (g->member[i].port == e->f->hca_port[host])
			return g->member[i].join_state;
	return 0;
}

/* The hosts that the one switch forwards the group to, as bits. */
static uint64_t forwarded(const struct env *e, uint16_t mlid)
{
	const struct fabric_mft_row *row = fabric_mft_get(e->f->hca_port[0]->peer->node, mlid);

	return row ? row->ports[0] >> 1 : 0;
}

/* Groups other than the broadcast group. */
static unsigned groups(const struct env *e)
{
	return (unsigned)e->sa->groups.n - 1;
}

/* ---- create ---- */

CASE_WITH(a_group_is_created_with_what_was_asked_for, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 1, GROUP, FULL);

	rec.tclass = 3;
	rec.sl = 2;
	rec.flow_label = 0x12345;
	rec.hop_limit = 9;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | SA_MCM_HOP_LIMIT, &rec), SA_OK);
	assert_true(ib_lid_is_mcast(rec.mlid));
	assert_int_equal(rec.qkey, 0x11111111);
	assert_int_equal(rec.pkey, IB_PKEY_DEFAULT);
	assert_int_equal(rec.tclass, 3);
	assert_int_equal(rec.sl, 2);
	assert_int_equal(rec.flow_label, 0x12345);
	assert_int_equal(rec.hop_limit, 9);
	assert_int_equal(rec.join_state, FULL);
	assert_int_equal(rec.scope, 2);
	assert_memory_equal(&rec.port_gid, port_gid(e, 1), 16);
}

/* With dfsssp messages to groups have the lane of their trees. */
CASE(where_paths_have_lanes_groups_have_one)
{
	struct partition partition[] = { { .pkey = 0x7FFF, .sl = 3 } };
	struct partition_group group[] = { { .mgid = gid_of("ff12::b10e"),
		                             .pkey = IB_PKEY_DEFAULT,
		                             .mtu = IBV_MTU_2048,
		                             .rate = IBV_RATE_10_GBPS,
		                             .sl = 3 } };
	const struct partitions partitions = {
		.partition = partition, .n = 1, .group = group, .n_groups = 1
	};
	struct shm_settings settings;
	struct wire_mcmember rec;
	struct env *e;

	fabric_settings_default(&settings);
	settings.routing = SM_ROUTING_DFSSSP;
	e = start(&settings);
	sm_set_partitions(e->sm, &partitions);
	assert_int_equal(sa_partitions_changed(e->sa), 0);
	assert_int_equal(find(e, "ff12::b10e")->rec.sl, sm_group_sl(e->sm));
	for (unsigned i = 0; i < 2; i++) {
		rec = request(e, i, GROUP, FULL);
		rec.sl = (uint8_t)(2 + i);
		assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
		assert_int_equal(rec.sl, sm_group_sl(e->sm));
	}
	assert_int_equal(find(e, GROUP)->n_members, 2);
	assert_int_equal(sm_group_sl(e->sm), 0);
	stop(e);
}

CASE_WITH(what_the_request_leaves_out_is_filled_in, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, GROUP, FULL);

	rec.mtu = rec.rate = rec.life = rec.hop_limit = 0x3F; /* not in the mask: noise */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
	assert_int_equal(rec.mtu, IBV_MTU_4096);
	assert_int_equal(rec.rate, IBV_RATE_100_GBPS);
	assert_int_equal(rec.hop_limit, 0);
	assert_in_range(rec.life, 1, 0x3E);
	assert_int_equal(rec.mtu_selector, SA_EXACTLY);
	assert_int_equal(rec.rate_selector, SA_EXACTLY);
	assert_int_equal(rec.life_selector, SA_EXACTLY);
}

CASE_WITH(creating_needs_each_component, setup, teardown)
{
	static const uint64_t needed[] = { SA_MCM_PORT_GID, SA_MCM_JOIN_STATE, SA_MCM_QKEY,
		                           SA_MCM_TCLASS,   SA_MCM_PKEY,       SA_MCM_FLOW_LABEL,
		                           SA_MCM_SL };
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, needed); i++) {
		struct wire_mcmember rec = request(e, 0, GROUP, FULL);

		assert_int_equal(sa_mcmember_set(e->sa, CREATE & ~needed[i], &rec),
		                 SA_INSUFFICIENT_COMPONENTS);
		rec = request(e, 0, "::", FULL);
		assert_int_equal(sa_mcmember_set(e->sa, CREATE & ~needed[i], &rec),
		                 SA_INSUFFICIENT_COMPONENTS);
	}
	assert_int_equal(groups(e), 0);
}

CASE_WITH(only_full_members_create, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(join(e, 0, GROUP, NON), SA_REQ_INVALID);
	assert_int_equal(join(e, 0, GROUP, SEND_NON), SA_REQ_INVALID);
	assert_int_equal(join(e, 0, GROUP, NON | SEND_NON), SA_REQ_INVALID);
	assert_int_equal(groups(e), 0);
	assert_int_equal(join(e, 0, GROUP, SEND_FULL), SA_OK);
	assert_int_equal(join(e, 0, "ff12:1::2", FULL | NON), SA_OK);
}

CASE_WITH(mgids_that_may_be_created, setup, teardown)
{
	static const char *const good[] = {
		"ff01:0:2:c985::", /* perftest's */
		"ff02::1",         /* a well-known one */
		"ff10::1",         /* reserved scopes: OpenSM accepts them */
		"ff1f::1",         /* likewise */
		"ff1e::1",         "ff05::1:3", "ff12:4001:ffff::1", /* rdma_cm's */
		"ff15:a01b::1", /* made up on another subnet, perhaps */
	};
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, good); i++)
		assert_int_equal(join(e, 0, good[i], FULL), SA_OK);
	assert_int_equal(groups(e), ARRAY_SIZE(good));
}

/* As RFC 4391 and OpenSM have it. */
CASE_WITH(groups_of_ipoib_are_like_their_broadcast_group, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember good = request(e, 0, "ff12:401b:ffff::1", FULL), rec;
	struct wire_mcmember bad[6];

	good.qkey = 0x0B1B;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[0].qkey++;
	bad[1].tclass++;
	bad[2].sl++;
	bad[3].flow_label++;
	bad[4].mgid = gid_of("ff15:401b:ffff::1"); /* there is no broadcast group */
	bad[5].mgid = gid_of("ff12:601b:8001::1");
	for (size_t i = 0; EACH_ROW(i, bad); i++)
		assert_int_equal(sa_mcmember_set(e->sa, CREATE, &bad[i]), SA_REQ_INVALID);
	rec = good;
	rec.hop_limit = 1;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | SA_MCM_HOP_LIMIT, &rec), SA_REQ_INVALID);
	assert_int_equal(groups(e), 0);
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &good), SA_OK);
	good.mgid = gid_of("ff72:601b:ffff::1"); /* of IPoIB's, flags do not matter */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &good), SA_OK);
	good = request(e, 0, "ff15:401b:ffff::ffff:ffff", FULL); /* another broadcast group */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &good), SA_OK);
}

CASE_WITH(mgids_that_may_not_be_created, setup, teardown)
{
	static const char *const bad[] = {
		"fe80::1",      "fa12::1",      "ef12:1::1", "::1", "ff22::1", /* reserved flags */
		"ff92::1",      "ff05:a01b::1", /* made up, but not transient */
		"ff12:a01b::1",                 /* this subnet's SA alone makes such up */
	};
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, bad); i++)
		assert_int_equal(join(e, 0, bad[i], FULL), SA_REQ_INVALID);
	assert_int_equal(groups(e), 0);
}

CASE_WITH(for_a_zero_mgid_one_is_made_up, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember a = request(e, 0, "::", FULL), b = a;

	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &a), SA_OK);
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &b), SA_OK);
	assert_int_equal(a.mgid.raw[0], 0xFF);
	assert_int_equal(a.mgid.raw[1], 0x12);
	assert_int_equal(a.mgid.raw[2], 0xA0);
	assert_int_equal(a.mgid.raw[3], 0x1B);
	assert_memory_not_equal(&a.mgid, &b.mgid, 16);
	assert_int_not_equal(a.mlid, b.mlid);
}

/* So that SAs of subnets that a router connects do not make up the same. */
CASE_WITH(a_made_up_mgid_has_the_prefix_of_the_subnet, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, "::", FULL);
	const uint64_t prefix = htobe64(e->f->subnet_prefix);

	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
	assert_memory_equal(rec.mgid.raw + 4, &prefix, sizeof(prefix));
}

CASE_WITH(a_made_up_mgid_is_for_others_to_join, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember a = request(e, 0, "::", FULL), b = request(e, 1, "::", FULL);

	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &a), SA_OK);
	b.mgid = a.mgid;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &b), SA_OK);
	assert_int_equal(a.mlid, b.mlid);
	assert_int_equal(groups(e), 1);
}

CASE_WITH(a_made_up_mgid_has_the_scope_asked_for, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, "::", FULL);

	rec.scope = 5;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | SA_MCM_SCOPE, &rec), SA_OK);
	assert_int_equal(rec.mgid.raw[1], 0x15);
	assert_int_equal(rec.scope, 5);
}

/* As OpenSM does: a port that wants the SA to choose asks for the MGID 0. */
CASE_WITH(without_an_mgid_in_the_mask_a_group_is_refused, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, GROUP, FULL);

	assert_int_equal(sa_mcmember_set(e->sa, CREATE & ~SA_MCM_MGID, &rec),
	                 SA_INSUFFICIENT_COMPONENTS);
	assert_int_equal(groups(e), 0);
}

CASE_WITH(a_group_has_the_mlid_that_it_asks_for_if_that_is_free, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember a = request(e, 0, GROUP, FULL), b = request(e, 0, "ff12::7", FULL);
	struct wire_mcmember c = request(e, 0, "ff12::8", FULL), d = request(e, 0, "ff12::9", FULL);

	a.mlid = b.mlid = c.mlid = 0xC123;
	d.mlid = 0x0123;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | SA_MCM_MLID, &a), SA_OK);
	assert_int_equal(a.mlid, 0xC123);
	/* it is another group's; it is not asked for; it is no MLID */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | SA_MCM_MLID, &b), SA_OK);
	assert_int_not_equal(b.mlid, 0xC123);
	assert_int_equal(leave(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &c), SA_OK);
	assert_int_not_equal(c.mlid, 0xC123);
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | SA_MCM_MLID, &d), SA_OK);
	assert_true(ib_lid_is_mcast(d.mlid));
}

CASE_WITH(a_partition_that_the_port_is_not_in_is_refused, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, GROUP, FULL);

	rec.pkey = 0x8001;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_REQ_INVALID);
	rec.pkey = 0x8000; /* no partition at all */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_REQ_INVALID);
	rec.pkey = 0x7FFF; /* the limited half of the default one */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
}

/* ---- MTU and rate ---- */

struct select_row {
	uint8_t selector, value;
	enum sa_status status;
	uint8_t chosen;
};

CASE_WITH(mtu_of_a_new_group, setup, teardown)
{
	static const struct select_row row[] = {
		{ SA_EXACTLY, IBV_MTU_1024, SA_OK, IBV_MTU_1024 },
		{ SA_EXACTLY, IBV_MTU_2048, SA_OK, IBV_MTU_2048 },
		{ SA_EXACTLY, IBV_MTU_4096, SA_REQ_INVALID, 0 }, /* more than the port has */
		{ SA_GREATER, IBV_MTU_256, SA_OK, IBV_MTU_2048 },
		{ SA_GREATER, IBV_MTU_2048, SA_REQ_INVALID, 0 },
		{ SA_LESS, IBV_MTU_4096, SA_OK, IBV_MTU_2048 },
		{ SA_LESS, IBV_MTU_1024, SA_OK, IBV_MTU_512 },
		{ SA_LESS, IBV_MTU_256, SA_REQ_INVALID, 0 },
		{ SA_LARGEST, IBV_MTU_256, SA_OK, IBV_MTU_2048 },
		{ SA_EXACTLY, 0, SA_REQ_INVALID, 0 },
		{ SA_EXACTLY, 6, SA_REQ_INVALID, 0 },
		{ SA_GREATER, 0, SA_REQ_INVALID, 0 },
		{ SA_LESS, 0x3F, SA_REQ_INVALID, 0 },
	};
	struct env *e = *state;

	e->f->hca_port[0]->mtu = IBV_MTU_2048;
	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct wire_mcmember rec = request(e, 0, GROUP, FULL);

		rec.mtu_selector = row[i].selector;
		rec.mtu = row[i].value;
		assert_int_equal(sa_mcmember_set(e->sa, CREATE | MTU, &rec), row[i].status);
		if (row[i].status != SA_OK)
			continue;
		assert_int_equal(rec.mtu, row[i].chosen);
		assert_int_equal(leave(e, 0, GROUP, FULL), SA_OK);
	}
}

CASE_WITH(rate_of_a_new_group, setup, teardown)
{
	static const struct select_row row[] = {
		{ SA_EXACTLY, IBV_RATE_10_GBPS, SA_OK, IBV_RATE_10_GBPS },
		{ SA_EXACTLY, IBV_RATE_100_GBPS, SA_OK, IBV_RATE_100_GBPS },
		{ SA_EXACTLY, IBV_RATE_200_GBPS, SA_REQ_INVALID, 0 },
		{ SA_GREATER, IBV_RATE_10_GBPS, SA_OK, IBV_RATE_100_GBPS },
		{ SA_GREATER, IBV_RATE_100_GBPS, SA_REQ_INVALID, 0 },
		{ SA_GREATER, IBV_RATE_300_GBPS, SA_REQ_INVALID, 0 },
		{ SA_LESS, IBV_RATE_10_GBPS, SA_OK, IBV_RATE_5_GBPS },
		{ SA_LESS, IBV_RATE_300_GBPS, SA_OK, IBV_RATE_100_GBPS },
		{ SA_LESS, IBV_RATE_2_5_GBPS, SA_REQ_INVALID, 0 },
		{ SA_LARGEST, IBV_RATE_10_GBPS, SA_OK, IBV_RATE_100_GBPS },
		{ SA_EXACTLY, IBV_RATE_MAX, SA_REQ_INVALID, 0 },
		{ SA_GREATER, 0x3F, SA_REQ_INVALID, 0 },
	};
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct wire_mcmember rec = request(e, 0, GROUP, FULL);

		rec.rate_selector = row[i].selector;
		rec.rate = row[i].value;
		assert_int_equal(sa_mcmember_set(e->sa, CREATE | RATE, &rec), row[i].status);
		if (row[i].status != SA_OK)
			continue;
		assert_int_equal(rec.rate, row[i].chosen);
		assert_int_equal(leave(e, 0, GROUP, FULL), SA_OK);
	}
}

CASE_WITH(a_value_without_its_selector_asks_for_nothing, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, GROUP, FULL);

	rec.mtu = IBV_MTU_256;
	rec.rate = IBV_RATE_10_GBPS;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | SA_MCM_MTU | SA_MCM_RATE, &rec), SA_OK);
	assert_int_equal(rec.mtu, IBV_MTU_4096);
	assert_int_equal(rec.rate, IBV_RATE_100_GBPS);
}

CASE_WITH(mtu_and_rate_of_a_group_that_is_joined_must_be_as_selected, setup, teardown)
{
	static const struct {
		uint8_t selector, mtu, rate;
		bool mtu_fits, rate_fits;
	} row[] = {
		{ SA_EXACTLY, IBV_MTU_1024, IBV_RATE_40_GBPS, true, true },
		{ SA_EXACTLY, IBV_MTU_512, IBV_RATE_20_GBPS, false, false },
		{ SA_GREATER, IBV_MTU_512, IBV_RATE_20_GBPS, true, true },
		{ SA_GREATER, IBV_MTU_1024, IBV_RATE_40_GBPS, false, false },
		{ SA_GREATER, IBV_MTU_512, IBV_RATE_14_GBPS, true,
		  true }, /* 11, but slower than 7 */
		{ SA_LESS, IBV_MTU_2048, IBV_RATE_56_GBPS, true, true },
		{ SA_LESS, IBV_MTU_1024, IBV_RATE_40_GBPS, false, false },
		{ SA_LARGEST, IBV_MTU_4096, IBV_RATE_10_GBPS, true, true },
		{ SA_EXACTLY, 0, IBV_RATE_MAX, false, false },
	};
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, GROUP, FULL);

	rec.mtu_selector = rec.rate_selector = SA_EXACTLY;
	rec.mtu = IBV_MTU_1024;
	rec.rate = IBV_RATE_40_GBPS;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | MTU | RATE, &rec), SA_OK);
	for (size_t i = 0; EACH_ROW(i, row); i++) {
		rec = request(e, 1, GROUP, FULL);
		rec.mtu_selector = rec.rate_selector = row[i].selector;
		rec.mtu = row[i].mtu;
		rec.rate = row[i].rate;
		assert_int_equal(sa_mcmember_set(e->sa, JOIN | MTU, &rec),
		                 row[i].mtu_fits ? SA_OK : SA_REQ_INVALID);
		rec = request(e, 1, GROUP, FULL);
		rec.rate_selector = row[i].selector;
		rec.rate = row[i].rate;
		assert_int_equal(sa_mcmember_set(e->sa, JOIN | RATE, &rec),
		                 row[i].rate_fits ? SA_OK : SA_REQ_INVALID);
	}
}

CASE_WITH(a_port_with_a_smaller_mtu_than_the_group_cannot_join, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	e->f->hca_port[1]->mtu = IBV_MTU_2048;
	assert_int_equal(join(e, 1, GROUP, FULL), SA_REQ_INVALID);
	assert_int_equal(state_of(e, 1, GROUP), 0);
}

/* Four lanes of that speed, to host @host. */
static void set_speed(struct env *e, unsigned host, uint8_t speed)
{
	e->f->hca_port[host]->speed = e->f->hca_port[host]->peer->speed = speed;
}

CASE_WITH(a_group_is_as_fast_as_the_port_that_creates_it, setup, teardown)
{
	static const struct {
		uint8_t speed, rate;
	} row[] = {
		{ FABRIC_SPEED_SDR, IBV_RATE_10_GBPS },  { FABRIC_SPEED_DDR, IBV_RATE_20_GBPS },
		{ FABRIC_SPEED_QDR, IBV_RATE_40_GBPS },  { FABRIC_SPEED_FDR, IBV_RATE_56_GBPS },
		{ FABRIC_SPEED_EDR, IBV_RATE_100_GBPS }, { FABRIC_SPEED_HDR, IBV_RATE_200_GBPS },
		{ FABRIC_SPEED_NDR, IBV_RATE_400_GBPS },
	};
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		set_speed(e, 2, row[i].speed);
		assert_int_equal(join(e, 2, GROUP, FULL), SA_OK);
		assert_int_equal(find(e, GROUP)->rec.rate, row[i].rate);
		assert_int_equal(leave(e, 2, GROUP, FULL), SA_OK);
	}
}

CASE_WITH(a_port_with_a_slower_link_than_the_group_cannot_join, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, "ff12:1::2", FULL);

	set_speed(e, 1, FABRIC_SPEED_QDR);
	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(join(e, 1, GROUP, FULL), SA_REQ_INVALID);
	assert_int_equal(join(e, 1, GROUP, SEND_FULL), SA_REQ_INVALID);
	assert_int_equal(state_of(e, 1, GROUP), 0);
	/* a creator that wants all to join says how fast it shall be */
	rec.rate_selector = SA_EXACTLY;
	rec.rate = IBV_RATE_40_GBPS;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE | RATE, &rec), SA_OK);
	assert_int_equal(join(e, 1, "ff12:1::2", FULL), SA_OK);
}

CASE_WITH(a_faster_port_joins_a_slow_group, setup, teardown)
{
	struct env *e = *state;

	set_speed(e, 1, FABRIC_SPEED_QDR);
	assert_int_equal(join(e, 1, GROUP, FULL), SA_OK);
	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(find(e, GROUP)->rec.rate, IBV_RATE_40_GBPS);
}

/* ---- join ---- */

CASE_WITH(joining_needs_mgid_port_gid_and_join_state, setup, teardown)
{
	static const uint64_t needed[] = { SA_MCM_MGID, SA_MCM_PORT_GID, SA_MCM_JOIN_STATE };
	struct env *e = *state;
	struct wire_mcmember rec;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	for (size_t i = 0; EACH_ROW(i, needed); i++) {
		rec = request(e, 1, GROUP, FULL);
		assert_int_equal(sa_mcmember_set(e->sa, JOIN & ~needed[i], &rec),
		                 SA_INSUFFICIENT_COMPONENTS);
	}
	rec = request(e, 1, GROUP, FULL);
	assert_int_equal(sa_mcmember_set(e->sa, JOIN, &rec), SA_OK);
	assert_int_equal(rec.qkey, 0x11111111); /* the group's own */
}

CASE_WITH(a_join_state_of_nothing_or_nonsense_is_refused, setup, teardown)
{
	static const uint8_t bad[] = { 0, 0x10, 0x11, 0xFF };
	struct env *e = *state;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		assert_int_equal(join(e, 1, GROUP, bad[i]), SA_REQ_INVALID);
		assert_int_equal(join(e, 1, "ff12:1::2", bad[i]), SA_REQ_INVALID);
	}
	assert_int_equal(groups(e), 1);
	assert_int_equal(state_of(e, 1, GROUP), 0);
}

CASE_WITH(what_the_request_says_of_the_group_must_be_so, setup, teardown)
{
	struct env *e = *state;
	const struct wire_mcmember good = request(e, 1, GROUP, FULL);
	struct wire_mcmember bad[6];

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[0].qkey++;
	bad[1].pkey = 0x8001;
	bad[2].tclass++;
	bad[3].sl++;
	bad[4].flow_label++;
	bad[5].hop_limit++;
	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		struct wire_mcmember rec = bad[i];

		assert_int_equal(sa_mcmember_set(e->sa, CREATE | SA_MCM_HOP_LIMIT, &rec),
		                 SA_REQ_INVALID);
		rec = bad[i];
		assert_int_equal(sa_mcmember_set(e->sa, JOIN, &rec), SA_OK); /* not in the mask */
		assert_int_equal(rec.qkey, good.qkey);
		assert_int_equal(leave(e, 1, GROUP, FULL), SA_OK);
	}
}

CASE_WITH(a_limited_pkey_of_the_partition_will_do, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 1, GROUP, FULL);

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	rec.pkey = 0x7FFF;
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
	assert_int_equal(rec.pkey, IB_PKEY_DEFAULT);
}

CASE_WITH(join_states_add_up, setup, teardown)
{
	static const struct {
		uint8_t join, now;
	} row[] = { { FULL, FULL },
		    { NON, FULL | NON },
		    { FULL, FULL | NON },
		    { SEND_NON, FULL | NON | SEND_NON },
		    { SEND_FULL, 0xF } };
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct wire_mcmember rec = request(e, 0, GROUP, row[i].join);

		assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
		assert_int_equal(rec.join_state, row[i].now);
	}
	assert_int_equal(find(e, GROUP)->n_members, 1);
}

CASE_WITH(a_gid_that_is_no_ports_is_refused, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, GROUP, FULL);

	rec.port_gid.raw[15] ^= 0x40; /* of this subnet */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_REQ_INVALID);
	assert_int_equal(sa_mcmember_delete(e->sa, JOIN, &rec), SA_REQ_INVALID);
	rec.port_gid.raw[0] ^= 1; /* of another one */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_REQ_INVALID_GID);
	assert_int_equal(sa_mcmember_delete(e->sa, JOIN, &rec), SA_REQ_INVALID_GID);
	rec.join_state = 0; /* what is wrong besides comes behind it, or before it */
	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_REQ_INVALID_GID);
	assert_int_equal(sa_mcmember_set(e->sa, 0, &rec), SA_INSUFFICIENT_COMPONENTS);
	assert_int_equal(groups(e), 0);
}

CASE_WITH(joined_means_forwarding, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 2, GROUP, FULL);

	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
	assert_int_equal(forwarded(e, rec.mlid), 1 << 2);
	assert_int_equal(join(e, 0, GROUP, NON), SA_OK);
	assert_int_equal(forwarded(e, rec.mlid), 1 << 2 | 1 << 0);
	assert_int_equal(leave(e, 0, GROUP, NON), SA_OK);
	assert_int_equal(forwarded(e, rec.mlid), 1 << 2);
	assert_int_equal(leave(e, 2, GROUP, FULL), SA_OK);
	assert_int_equal(forwarded(e, rec.mlid), 0);
}

CASE_WITH(send_only_members_are_not_forwarded_to, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, GROUP, FULL);

	assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
	assert_int_equal(join(e, 1, GROUP, SEND_FULL), SA_OK);
	assert_int_equal(join(e, 2, GROUP, SEND_NON), SA_OK);
	assert_int_equal(forwarded(e, rec.mlid), 1 << 0);
	assert_int_equal(join(e, 1, GROUP, FULL), SA_OK); /* now it receives as well */
	assert_int_equal(forwarded(e, rec.mlid), 1 << 0 | 1 << 1);
	assert_int_equal(leave(e, 1, GROUP, FULL), SA_OK);
	assert_int_equal(forwarded(e, rec.mlid), 1 << 0);
}

CASE_WITH(an_sa_without_send_only_full_members_refuses_them, setup, teardown)
{
	struct env *e = *state;

	e->f->settings.sa_send_only = 0;
	assert_int_equal(join(e, 0, GROUP, SEND_FULL), SA_REQ_INVALID);
	assert_int_equal(join(e, 0, GROUP, FULL | SEND_FULL), SA_REQ_INVALID);
	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(join(e, 1, GROUP, SEND_NON), SA_OK);
}

CASE_WITH(perftests_request_works, setup, teardown)
{
	struct env *e = *state;
	const char *mgid = "ff01:0:2:c985::";

	for (unsigned host = 0; host < 2; host++) {
		struct wire_mcmember rec = request(e, host, mgid, FULL);

		assert_int_equal(sa_mcmember_set(e->sa, CREATE, &rec), SA_OK);
		assert_int_equal(rec.scope, 1);
		assert_true(ib_lid_is_mcast(rec.mlid));
	}
	for (unsigned host = 0; host < 2; host++) {
		struct wire_mcmember rec = request(e, host, mgid, FULL);

		assert_int_equal(sa_mcmember_delete(e->sa, CREATE, &rec), SA_OK);
	}
	assert_null(find(e, mgid));
}

/* ---- leave ---- */

CASE_WITH(leaving_needs_mgid_port_gid_and_join_state, setup, teardown)
{
	static const uint64_t needed[] = { SA_MCM_MGID, SA_MCM_PORT_GID, SA_MCM_JOIN_STATE };
	struct env *e = *state;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	for (size_t i = 0; EACH_ROW(i, needed); i++) {
		struct wire_mcmember rec = request(e, 0, GROUP, FULL);

		assert_int_equal(sa_mcmember_delete(e->sa, JOIN & ~needed[i], &rec),
		                 SA_INSUFFICIENT_COMPONENTS);
	}
	assert_int_equal(state_of(e, 0, GROUP), FULL);
}

CASE_WITH(a_partial_leave_clears_its_bits, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec;

	assert_int_equal(join(e, 0, GROUP, FULL | NON | SEND_NON), SA_OK);
	rec = request(e, 0, GROUP, NON);
	assert_int_equal(sa_mcmember_delete(e->sa, JOIN, &rec), SA_OK);
	assert_int_equal(rec.join_state, FULL | SEND_NON);
	assert_int_equal(state_of(e, 0, GROUP), FULL | SEND_NON);
}

CASE_WITH(a_leave_names_only_states_that_the_port_has, setup, teardown)
{
	static const uint8_t bad[] = { 0, SEND_NON, FULL | SEND_NON, 0xF, 0xFF, 0x10 };
	struct env *e = *state;

	assert_int_equal(join(e, 0, GROUP, FULL | NON), SA_OK);
	for (size_t i = 0; EACH_ROW(i, bad); i++)
		assert_int_equal(leave(e, 0, GROUP, bad[i]), SA_REQ_INVALID);
	assert_int_equal(state_of(e, 0, GROUP), FULL | NON);
}

CASE_WITH(who_is_no_member_cannot_leave, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(leave(e, 0, GROUP, FULL), SA_REQ_INVALID);
	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(leave(e, 1, GROUP, FULL), SA_REQ_INVALID);
	assert_int_equal(leave(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(leave(e, 0, GROUP, FULL), SA_REQ_INVALID);
}

CASE_WITH(a_group_ends_with_its_last_full_member, setup, teardown)
{
	struct env *e = *state;
	uint16_t mlid;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(join(e, 1, GROUP, NON), SA_OK);
	assert_int_equal(join(e, 2, GROUP, SEND_FULL), SA_OK);
	mlid = find(e, GROUP)->rec.mlid;
	assert_int_equal(leave(e, 0, GROUP, FULL), SA_OK);
	assert_non_null(find(e, GROUP)); /* a send-only full member is a full member */
	assert_int_equal(leave(e, 2, GROUP, SEND_FULL), SA_OK);
	assert_null(find(e, GROUP));
	assert_int_equal(forwarded(e, mlid), 0); /* the non-member went with it */
	assert_int_equal(leave(e, 1, GROUP, NON), SA_REQ_INVALID);
}

CASE_WITH(what_is_left_of_a_full_member_does_not_keep_the_group, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(join(e, 0, GROUP, FULL | NON), SA_OK);
	assert_int_equal(leave(e, 0, GROUP, FULL), SA_OK);
	assert_null(find(e, GROUP));
}

CASE_WITH(joining_with_9_and_leaving_with_1_leaks_no_mlid, setup, teardown)
{
	struct env *e = *state;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(join(e, 0, GROUP, FULL | SEND_FULL), SA_OK);
		assert_int_equal(leave(e, 0, GROUP, FULL), SA_OK);
		assert_int_equal(state_of(e, 0, GROUP), SEND_FULL);
		assert_int_equal(leave(e, 0, GROUP, SEND_FULL), SA_OK);
		assert_int_equal(groups(e), 0);
		assert_int_equal(e->sa->mlids.used, 1);
	}
}

/* ---- MLIDs ---- */

CASE_WITH(two_groups_have_two_mlids, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(join(e, 0, "ff12:1::1", FULL), SA_OK);
	assert_int_equal(join(e, 0, "ff12:1::2", FULL), SA_OK);
	assert_int_not_equal(find(e, "ff12:1::1")->rec.mlid, find(e, "ff12:1::2")->rec.mlid);
}

static enum sa_status join_nth(struct env *e, unsigned n)
{
	struct wire_mcmember rec = request(e, 0, "ff12:1::", FULL);

	rec.mgid.raw[14] = (uint8_t)(n >> 8);
	rec.mgid.raw[15] = (uint8_t)n;
	return sa_mcmember_set(e->sa, CREATE, &rec);
}

CASE(without_mlids_left_there_are_no_resources)
{
	struct shm_settings settings;
	struct env *e;

	fabric_settings_default(&settings);
	settings.mft_capacity = 20;
	e = start(&settings);
	for (unsigned n = 0; n < 19; n++) /* one is the broadcast group's */
		assert_int_equal(join_nth(e, n), SA_OK);
	assert_int_equal(join_nth(e, 19), SA_NO_RESOURCES);
	assert_int_equal(groups(e), 19);
	assert_int_equal(join(e, 1, "ff12:1::3", FULL), SA_OK); /* joining needs none */
	assert_int_equal(leave(e, 0, "ff12:1::7", FULL), SA_OK);
	assert_int_equal(join_nth(e, 19), SA_OK);
	stop(e);
}

/* Room for the broadcast group and two more. */
static struct env *start_sharing(void)
{
	struct shm_settings settings;

	fabric_settings_default(&settings);
	settings.mft_capacity = 3;
	settings.mlid_sharing = 1;
	return start(&settings);
}

static uint16_t mlid_of(const struct env *e, unsigned n)
{
	char mgid[32];

	snprintf(mgid, sizeof(mgid), "ff12:1::%x", n);
	return find(e, mgid)->rec.mlid;
}

CASE(groups_share_mlids_when_there_are_no_more)
{
	struct env *e = start_sharing();
	unsigned used[3] = { 1 };

	for (unsigned n = 0; n < 29; n++)
		assert_int_equal(join_nth(e, n), SA_OK);
	assert_int_equal(groups(e), 29);
	assert_int_equal(e->sa->mlids.used, 3);
	assert_int_not_equal(mlid_of(e, 0), mlid_of(e, 1));
	for (unsigned n = 0; n < 29; n++)
		used[mlid_of(e, n) - IB_LID_MCAST_FIRST]++;
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(used[i], 9, 11);
	stop(e);
}

CASE(the_tree_of_a_shared_mlid_leads_to_the_members_of_all)
{
	struct env *e = start_sharing();
	const char *third;

	assert_int_equal(join(e, 0, "ff12:1::1", FULL), SA_OK);
	assert_int_equal(join(e, 1, "ff12:1::2", FULL), SA_OK);
	do { /* until one has the first one's */
		third = "ff12:1::3";
		if (find(e, third))
			leave(e, 2, third, FULL);
		assert_int_equal(join(e, 2, third, FULL), SA_OK);
	} while (mlid_of(e, 3) != mlid_of(e, 1));
	assert_int_equal(forwarded(e, mlid_of(e, 1)), 1 << 0 | 1 << 2);
	assert_int_equal(join(e, 3, third, FULL), SA_OK);
	assert_int_equal(forwarded(e, mlid_of(e, 1)), 1 << 0 | 1 << 2 | 1 << 3);
	assert_int_equal(leave(e, 2, third, FULL), SA_OK);
	assert_int_equal(forwarded(e, mlid_of(e, 1)), 1 << 0 | 1 << 3);
	/* one group ends: its members are off the tree, the other's stay */
	assert_int_equal(leave(e, 0, "ff12:1::1", FULL), SA_OK);
	assert_null(find(e, "ff12:1::1"));
	assert_int_equal(forwarded(e, mlid_of(e, 3)), 1 << 3);
	stop(e);
}

CASE(a_port_in_two_groups_of_an_mlid_stays_until_it_has_left_both)
{
	struct env *e = start_sharing();
	uint16_t mlid;

	for (unsigned n = 0; n < 8; n++)
		assert_int_equal(join_nth(e, n), SA_OK);
	mlid = mlid_of(e, 0);
	for (unsigned n = 0; n < 8; n++) {
		char mgid[32];

		assert_int_equal(forwarded(e, mlid), 1);
		snprintf(mgid, sizeof(mgid), "ff12:1::%x", n);
		/* those of the MLID last */
		if (mlid_of(e, n) != mlid)
			assert_int_equal(leave(e, 0, mgid, FULL), SA_OK);
	}
	for (unsigned n = 0; n < 8; n++) {
		char mgid[32];

		snprintf(mgid, sizeof(mgid), "ff12:1::%x", n);
		if (!find(e, mgid))
			continue;
		assert_int_equal(forwarded(e, mlid), 1);
		assert_int_equal(leave(e, 0, mgid, FULL), SA_OK);
	}
	assert_int_equal(forwarded(e, mlid), 0);
	assert_int_equal(e->sa->mlids.used, 1);
	stop(e);
}

CASE_WITH(what_cannot_be_routed_leaves_all_as_it_was, setup, teardown)
{
	struct env *e = *state;
	const uint32_t capacity = e->f->settings.mft_capacity;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	e->f->settings.mft_capacity = 1; /* has room for the broadcast group alone */
	assert_int_equal(join(e, 0, GROUP, FULL | NON), SA_NO_RESOURCES);
	assert_int_equal(state_of(e, 0, GROUP), FULL);
	assert_int_equal(join(e, 1, GROUP, FULL), SA_NO_RESOURCES);
	assert_int_equal(find(e, GROUP)->n_members, 1);
	assert_int_equal(join(e, 1, "ff12:1::2", FULL), SA_NO_RESOURCES);
	assert_null(find(e, "ff12:1::2"));
	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK); /* it is a member as it is */
	e->f->settings.mft_capacity = capacity;
	assert_int_equal(join(e, 1, "ff12:1::2", FULL), SA_OK);
}

CASE_WITH(refused_requests_cost_no_mlid, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec;

	for (int i = 0; i < 100; i++) {
		join(e, 0, "ff22::1", FULL);
		join(e, 0, GROUP, NON);
		rec = request(e, 0, GROUP, FULL);
		rec.mtu_selector = SA_GREATER;
		rec.mtu = IBV_MTU_4096;
		assert_int_equal(sa_mcmember_set(e->sa, CREATE | MTU, &rec), SA_REQ_INVALID);
	}
	assert_int_equal(e->sa->mlids.used, 1);
	assert_int_equal(groups(e), 0);
}

CASE_WITH(every_mlid_comes_back, setup, teardown)
{
	struct env *e = *state;
	unsigned seed = 17;

	for (int step = 0; step < 20000; step++) {
		unsigned host = rand_r(&seed) % 4, states = rand_r(&seed) % 16;
		char mgid[32];

		snprintf(mgid, sizeof(mgid), "ff12:1::%x", 1 + rand_r(&seed) % 30);
		if (rand_r(&seed) % 2)
			join(e, host, mgid, (uint8_t)states);
		else
			leave(e, host, mgid, (uint8_t)(states & state_of(e, host, mgid)));
		assert_int_equal(e->sa->mlids.used, e->sa->groups.n);
	}
	for (unsigned n = 1; n <= 30; n++)
		for (unsigned host = 0; host < 4; host++) {
			char mgid[32];

			snprintf(mgid, sizeof(mgid), "ff12:1::%x", n);
			if (state_of(e, host, mgid))
				assert_int_equal(leave(e, host, mgid, state_of(e, host, mgid)),
				                 SA_OK);
		}
	assert_int_equal(groups(e), 0);
	assert_int_equal(e->sa->mlids.used, 1);
	for (uint16_t mlid = 0xC001; mlid < 0xFFFF; mlid++)
		assert_int_equal(forwarded(e, mlid), 0);
}

/* ---- the broadcast group ---- */

#define BROADCAST "ff12:401b:ffff::ffff:ffff"

CASE_WITH(the_broadcast_group_is_there_from_the_start, setup, teardown)
{
	struct env *e = *state;
	const struct sa_group *g = find(e, BROADCAST);

	assert_non_null(g);
	assert_int_equal(g->rec.qkey, 0x0B1B);
	assert_int_equal(g->rec.pkey, IB_PKEY_DEFAULT);
	assert_int_equal(g->rec.mtu, IBV_MTU_4096);
	assert_true(ib_lid_is_mcast(g->rec.mlid));
}

CASE_WITH(all_ports_can_join_the_broadcast_group, setup, teardown)
{
	struct env *e = *state;
	struct sa *sa;

	set_speed(e, 1, FABRIC_SPEED_QDR);
	e->f->hca_port[2]->mtu = IBV_MTU_1024;
	assert_int_equal(sa_new(&sa, e->f, e->sm), 0);
	sa_free(e->sa);
	e->sa = sa;
	assert_int_equal(find(e, BROADCAST)->rec.mtu, IBV_MTU_1024);
	assert_int_equal(find(e, BROADCAST)->rec.rate, IBV_RATE_40_GBPS);
	for (unsigned host = 0; host < 4; host++) {
		struct wire_mcmember rec = request(e, host, BROADCAST, FULL);

		assert_int_equal(sa_mcmember_set(e->sa, JOIN, &rec), SA_OK);
	}
}

CASE_WITH(the_broadcast_group_cannot_be_deleted, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, BROADCAST, FULL);

	assert_int_equal(leave(e, 0, BROADCAST, FULL), SA_REQ_INVALID);
	assert_int_equal(sa_mcmember_set(e->sa, JOIN, &rec), SA_OK);
	assert_int_equal(forwarded(e, rec.mlid), 1);
	assert_int_equal(leave(e, 0, BROADCAST, FULL), SA_OK);
	assert_non_null(find(e, BROADCAST));
	assert_int_equal(find(e, BROADCAST)->n_members, 0);
	assert_int_equal(forwarded(e, rec.mlid), 0);
	assert_int_equal(sa_mcmember_set(e->sa, JOIN, &rec), SA_OK);
}

CASE_WITH(the_broadcast_group_accepts_members_of_any_kind, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, BROADCAST, NON);

	assert_int_equal(sa_mcmember_set(e->sa, JOIN, &rec), SA_OK); /* it need not be created */
	assert_int_equal(leave(e, 0, BROADCAST, NON), SA_OK);
	assert_non_null(find(e, BROADCAST));
}

/* ---- sweeps ---- */

static void set_link(struct env *e, unsigned host, bool up)
{
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[host], up), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	sa_swept(e->sa);
}

static unsigned members(const struct env *e, const char *mgid)
{
	const struct sa_group *g = find(e, mgid);

	return g ? g->n_members : 0;
}

CASE_WITH(a_port_that_is_down_leaves_all_its_groups, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(join(e, 1, GROUP, FULL), SA_OK);
	assert_int_equal(join(e, 1, "ff12:1::2", FULL), SA_OK);
	set_link(e, 1, false);
	assert_int_equal(members(e, GROUP), 1);
	assert_int_equal(members(e, "ff12:1::2"), 0);
	set_link(e, 1, true);
	assert_int_equal(members(e, GROUP), 1);
}

CASE_WITH(with_the_last_full_member_s_port_the_group_goes, setup, teardown)
{
	struct env *e = *state;
	uint32_t mlids = e->sa->mlids.used;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	assert_int_equal(join(e, 1, GROUP, NON), SA_OK);
	set_link(e, 0, false);
	assert_int_equal(members(e, GROUP), 0);
	assert_int_equal(e->sa->mlids.used, mlids);
}

CASE_WITH(a_port_that_is_down_can_neither_join_nor_leave, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(join(e, 0, GROUP, FULL), SA_OK);
	set_link(e, 1, false);
	assert_int_equal(join(e, 1, GROUP, FULL), SA_REQ_INVALID);
	assert_int_equal(leave(e, 1, GROUP, FULL), SA_REQ_INVALID);
	set_link(e, 1, true);
	assert_int_equal(join(e, 1, GROUP, FULL), SA_OK);
}

CASE_WITH(the_broadcast_group_outlives_its_members, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = request(e, 0, BROADCAST, FULL);

	assert_int_equal(sa_mcmember_set(e->sa, JOIN, &rec), SA_OK);
	set_link(e, 0, false);
	assert_non_null(find(e, BROADCAST));
	assert_int_equal(find(e, BROADCAST)->n_members, 0);
}

/* ---- after another subnet manager ---- */

/* A new SM and SA take the subnet over, and know no members. */
static void take_over(struct env *e)
{
	const struct sm_ops ops = { .wake = no_wake };

	sa_free(e->sa);
	sm_free(e->sm);
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	sm_learn(e->sm);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(sa_new(&e->sa, e->f, e->sm), 0);
}

/* As ports do that were members: with the MLID that the group had. */
static enum sa_status join_again(struct env *e, unsigned host, const char *mgid, uint16_t mlid)
{
	struct wire_mcmember rec = request(e, host, mgid, FULL);

	rec.mlid = mlid;
	return sa_mcmember_set(e->sa, CREATE | SA_MCM_MLID, &rec);
}

CASE_WITH(members_miss_nothing_while_they_register_again, setup, teardown)
{
	struct env *e = *state;
	uint16_t mlid, other, third;

	join(e, 0, GROUP, FULL);
	join(e, 1, GROUP, FULL);
	join(e, 2, "ff12:1::2", FULL);
	mlid = find(e, GROUP)->rec.mlid;
	other = find(e, "ff12:1::2")->rec.mlid;
	take_over(e);
	assert_true(sm_is_learning(e->sm));
	assert_int_equal(forwarded(e, mlid), 3);
	/* a new group gets an MLID that is nobody's */
	assert_int_equal(join(e, 3, "ff12:1::3", FULL), SA_OK);
	third = find(e, "ff12:1::3")->rec.mlid;
	assert_true(third != mlid && third != other);
	assert_int_equal(forwarded(e, third), 1 << 3);
	assert_int_equal(leave(e, 3, "ff12:1::3", FULL), SA_OK);
	assert_int_equal(forwarded(e, third), 0);
	/* the first member is back, and the second misses nothing */
	assert_int_equal(join_again(e, 0, GROUP, mlid), SA_OK);
	assert_int_equal(find(e, GROUP)->rec.mlid, mlid);
	assert_int_equal(forwarded(e, mlid), 3);
	sa_swept(e->sa);
	assert_int_equal(forwarded(e, mlid), 3);
	assert_int_equal(join_again(e, 1, GROUP, mlid), SA_OK);
	/* nobody registered the other group */
	assert_int_equal(forwarded(e, other), 1 << 2);
	sa_learned(e->sa);
	assert_false(sm_is_learning(e->sm));
	assert_int_equal(forwarded(e, mlid), 3);
	assert_int_equal(forwarded(e, other), 0);
	assert_int_equal(leave(e, 1, GROUP, FULL), SA_OK);
	assert_int_equal(forwarded(e, mlid), 1);
}

CASE_WITH(who_was_no_member_is_routed_at_once, setup, teardown)
{
	struct env *e = *state;
	uint16_t mlid;

	join(e, 0, GROUP, FULL);
	mlid = find(e, GROUP)->rec.mlid;
	take_over(e);
	assert_int_equal(join_again(e, 0, GROUP, mlid), SA_OK);
	assert_int_equal(join(e, 3, GROUP, FULL), SA_OK);
	assert_int_equal(forwarded(e, mlid), 1 | 1 << 3);
}

CASE_WITH(without_earlier_tables_there_is_nothing_to_learn, setup, teardown)
{
	struct env *e = *state;

	join(e, 0, GROUP, FULL);
	leave(e, 0, GROUP, FULL);
	take_over(e);
	assert_false(sm_is_learning(e->sm));
}
