/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * P_Key tables by the partitions, and their changes when the partitions change.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/agents/mads.h"
#include "fabric/testing.h"
#include "subnet/partitions.h"
#include "subnet/sa_groups.h"
#include "subnet/sm.h"
#include "subnet/testing_passes.h"

#define HOSTS 4

struct env {
	struct fabric *f;
	struct sm *sm;
	struct sa *sa;
	struct partitions *partitions;
	unsigned changed[HOSTS]; /* how often its table was said to have changed */
};

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

static void port_changed(void *arg, struct fabric_port *p, unsigned what)
{
	struct env *e = arg;

	if (p->node->type == FABRIC_HCA && (what & FABRIC_PORT_PKEYS))
		e->changed[p->index]++;
}

static struct partitions *parse(const char *text)
{
	const struct partitions_file file = { "conf", text, strlen(text) };
	struct partitions *p;
	char why[256];

	if (partitions_parse(&p, &file, why, sizeof(why)))
		fail_msg("%s", why);
	return p;
}

static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));
	const struct sm_ops ops = { .wake = no_wake };

	assert_non_null(e);
	e->f = testing_fabric(HOSTS);
	e->f->mads->sink.port_changed = port_changed;
	e->f->mads->sink.arg = e;
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	if (e->sa)
		sa_free(e->sa);
	sm_free(e->sm);
	if (e->partitions)
		partitions_free(e->partitions);
	fabric_free(e->f);
	free(e);
	return 0;
}

static void use(struct env *e, const char *text)
{
	struct partitions *old = e->partitions;

	memset(e->changed, 0, sizeof(e->changed));
	e->partitions = parse(text);
	sm_set_partitions(e->sm, e->partitions);
	if (old)
		partitions_free(old);
	assert_int_equal(sm_sweep(e->sm), 0);
}

static void assert_table(const uint16_t *table, const uint16_t *want, unsigned n)
{
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		assert_int_equal(table[i], i < n ? want[i] : 0);
}

/* The table of host @host, and what processes see of it. */
#define ASSERT_PKEYS(e, host, ...)                                                  \
	do {                                                                        \
		const uint16_t want[] = { __VA_ARGS__ };                            \
		struct shm_port seen;                                               \
		shm_port_read((e)->f->region, host, &seen);                         \
		assert_table((e)->f->hca_port[host]->pkey, want, ARRAY_SIZE(want)); \
		assert_table(seen.pkey, want, ARRAY_SIZE(want));                    \
	} while (0)

/* GUIDs of hosts' ports, as the fabric gives them. */
#define H1 "0x02756d0000000101"
#define H2 "0x02756d0000000201"
#define H3 "0x02756d0000000301"

/* ---- tables ---- */

CASE_WITH(without_partitions_tables_are_left_alone, setup, teardown)
{
	struct env *e = *state;

	e->f->hca_port[1]->pkey[3] = 0x8123;
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(e->f->hca_port[1]->pkey[0], 0xFFFF);
	assert_int_equal(e->f->hca_port[1]->pkey[3], 0x8123);
}

CASE_WITH(by_an_empty_file_all_are_limited_but_the_sm, setup, teardown)
{
	struct env *e = *state;

	use(e, "");
	ASSERT_PKEYS(e, 0, 0xFFFF);
	for (unsigned host = 1; host < HOSTS; host++)
		ASSERT_PKEYS(e, host, 0x7FFF);
	assert_int_equal(e->changed[0], 0);
	assert_int_equal(e->changed[1], 1);
}

CASE_WITH(pkeys_follow_the_default_one_in_their_order, setup, teardown)
{
	struct env *e = *state;

	use(e, "Default:ALL=full; C=0x30:" H1 "=full; A=0x10:" H1 "," H2 "=full; B=0x20:ALL=both;");
	ASSERT_PKEYS(e, 0, 0xFFFF, 0x0010, 0x8020, 0x0020, 0x8030);
	ASSERT_PKEYS(e, 1, 0xFFFF, 0x8010, 0x8020, 0x0020);
	ASSERT_PKEYS(e, 2, 0xFFFF, 0x8020, 0x0020);
}

CASE_WITH(the_later_rule_holds, setup, teardown)
{
	struct env *e = *state;

	use(e, "A=1:ALL=full," H2 "=limited; B=2:" H1 "=limited," H1 "=full; B=2:ALL=limited," H3
	       "=both;");
	ASSERT_PKEYS(e, 0, 0xFFFF, 0x8001, 0x0002);
	ASSERT_PKEYS(e, 1, 0x7FFF, 0x0001, 0x0002);
	ASSERT_PKEYS(e, 2, 0x7FFF, 0x8001, 0x8002, 0x0002);
}

CASE_WITH(another_pkey_may_be_at_index_0, setup, teardown)
{
	struct env *e = *state;

	use(e, "A=0x10,indx0:" H1 "=full," H2 ";");
	ASSERT_PKEYS(e, 0, 0x8010, 0xFFFF);
	ASSERT_PKEYS(e, 1, 0x0010, 0x7FFF);
	ASSERT_PKEYS(e, 2, 0x7FFF);
	use(e, "A=0x10,indx0:" H1 "=full; A=0x10:" H1 "=full;");
	ASSERT_PKEYS(e, 0, 0xFFFF, 0x8010);
}

CASE_WITH(what_a_port_has_already_stays_where_it_is, setup, teardown)
{
	struct env *e = *state;

	use(e, "A=0x10:ALL=full; B=0x20:ALL=full; C=0x30:ALL=full;");
	ASSERT_PKEYS(e, 1, 0x7FFF, 0x8010, 0x8020, 0x8030);
	use(e, "B=0x20:ALL=full; C=0x30:ALL=full;");
	ASSERT_PKEYS(e, 1, 0x7FFF, 0, 0x8020, 0x8030);
	use(e, "B=0x20:ALL=full; C=0x30:ALL=limited; D=0x5:ALL=full;");
	ASSERT_PKEYS(e, 1, 0x7FFF, 0x8005, 0x8020, 0x0030);
	assert_int_equal(e->changed[1], 1);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(e->changed[1], 1);
}

CASE_WITH(kinds_of_ports_are_told_apart, setup, teardown)
{
	struct env *e = *state;
	const struct fabric_node *sw = sm_switch(e->sm, 0);

	use(e, "A=1:ALL_CAS=full; B=2:ALL_SWITCHES=full; C=3:ALL=full; D=4:ALL_ROUTERS=full;");
	ASSERT_PKEYS(e, 1, 0x7FFF, 0x8001, 0x8003);
	assert_table(sw->port[0].pkey, (const uint16_t[]){ 0x7FFF, 0x8002, 0x8003 }, 3);
}

CASE_WITH(a_switch_s_port_enforces_its_hca_s_table, setup, teardown)
{
	struct env *e = *state;
	const struct fabric_port *p = e->f->hca_port[2]->peer;

	assert_false(p->link.partition_inbound);
	use(e, "A=1:" H3 "=full;");
	assert_true(p->link.partition_inbound && p->link.partition_outbound);
	assert_table(p->pkey, (const uint16_t[]){ 0x7FFF, 0x8001 }, 2);
}

CASE_WITH(self_is_where_the_sm_is, setup, teardown)
{
	struct env *e = *state;

	use(e, "A=1:SELF=full;");
	ASSERT_PKEYS(e, 0, 0xFFFF, 0x8001);
	sm_move_to(e->sm, e->f->hca_port[2]);
	ASSERT_PKEYS(e, 0, 0x7FFF);
	ASSERT_PKEYS(e, 2, 0xFFFF, 0x8001);
}

CASE_WITH(a_table_too_small_is_noticed_before, setup, teardown)
{
	struct env *e = *state;
	char text[1024] = "", why[160] = "";
	struct partitions *p;

	for (unsigned i = 1; i <= 15; i++)
		sprintf(text + strlen(text), "%u:" H2 "=full;", i);
	p = parse(text);
	assert_int_equal(sm_partitions_check(e->f, p, why, sizeof(why)), 0);
	partitions_free(p);
	strcat(text, "16:" H2 ";");
	p = parse(text);
	assert_int_equal(sm_partitions_check(e->f, p, why, sizeof(why)), -ENOSPC);
	assert_string_equal(why, "port 1 of 'umbel_h2_0' would have 17 P_Keys; its table has room "
	                         "for 16");
	partitions_free(p);
}

/* ---- groups ---- */

static bool has_group(const struct env *e, const char *text)
{
	struct ib_gid mgid;

	assert_int_equal(inet_pton(AF_INET6, text, mgid.raw), 1);
	return sa_group_find(e->sa, &mgid);
}

static enum sa_status join(struct env *e, unsigned host, const char *text)
{
	struct wire_mcmember rec = { .port_gid = shm_port_at(e->f->region, host)->gid[0],
		                     .join_state = IB_JOIN_FULL };

	assert_int_equal(inet_pton(AF_INET6, text, rec.mgid.raw), 1);
	return sa_mcmember_set(e->sa, SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE, &rec);
}

#define BROADCAST "ff12:401b:ffff::ffff:ffff"
#define RED       "ff12:401b:8010::ffff:ffff"

CASE_WITH(partitions_have_groups_for_their_members, setup, teardown)
{
	struct env *e = *state;

	use(e, "Default,ipoib:ALL=full; Red=0x10,ipoib:" H1 "=full," H2 ";");
	assert_int_equal(sa_new(&e->sa, e->f, e->sm), 0);
	assert_true(has_group(e, BROADCAST));
	assert_int_equal(join(e, 0, RED), SA_OK);
	assert_int_equal(join(e, 1, RED), SA_OK);
	assert_int_equal(join(e, 2, RED), SA_REQ_INVALID);
	assert_int_equal(join(e, 2, BROADCAST), SA_OK);
}

CASE_WITH(without_ipoib_there_is_no_broadcast_group, setup, teardown)
{
	struct env *e = *state;

	use(e, "Default:ALL=full;");
	assert_int_equal(sa_new(&e->sa, e->f, e->sm), 0);
	assert_int_equal(e->sa->groups.n, 0);
}

CASE_WITH(groups_come_and_go_with_partitions, setup, teardown)
{
	struct env *e = *state;

	use(e, "Default,ipoib:ALL=full; Red=0x10,ipoib:ALL=full; Blue=0x20,ipoib:ALL=full;");
	assert_int_equal(sa_new(&e->sa, e->f, e->sm), 0);
	assert_int_equal(join(e, 0, RED), SA_OK);
	use(e, "Default,ipoib:ALL=full; Red=0x10:ALL=full; Green=0x30,ipoib:ALL=full;");
	assert_int_equal(sa_partitions_changed(e->sa), 0);
	assert_true(has_group(e, BROADCAST));
	assert_true(has_group(e, "ff12:401b:8030::ffff:ffff"));
	assert_false(has_group(e, "ff12:401b:8020::ffff:ffff"));
	assert_true(has_group(e, RED)); /* somebody is in it */
	fabric_link_set(e->f, e->f->hca_port[0], false);
	assert_int_equal(sm_sweep(e->sm), 0);
	sa_swept(e->sa);
	assert_false(has_group(e, RED));
}

static unsigned all_changes(const struct env *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < HOSTS; i++)
		n += e->changed[i];
	return n;
}

/* Every table changes in a sweep in slices of @budget, at most @most of them in one slice. */
static void sweep_in_slices(struct env *e, uint32_t budget, unsigned most)
{
	unsigned n = 0;
	bool done;

	e->partitions = parse("A=0x0010:ALL=full;");
	sm_set_partitions(e->sm, e->partitions);
	sm_sweep_begin(e->sm);
	do {
		uint32_t left = budget;

		done = sm_sweep_step(e->sm, &left);
		assert_in_range(all_changes(e), n, n + most);
		n = all_changes(e);
	} while (!done);
	assert_int_equal(sm_sweep_result(e->sm), 0);
	assert_int_equal(n, HOSTS);
}

CASE_WITH(keys_are_written_in_slices, setup, teardown)
{
	sweep_in_slices(*state, 1, 1);
}

/* It has consequences for queue pairs and programs. */
CASE_WITH(a_table_that_changes_costs_more, setup, teardown)
{
	sweep_in_slices(*state, 1500, 2);
}

/* A slice. Whether the sweep is over. */
static bool step(struct env *e)
{
	uint32_t budget = 1;

	return sm_sweep_step(e->sm, &budget);
}

static void begin_to_write_keys(struct env *e)
{
	e->partitions = parse("A=0x0010:ALL=full;");
	sm_set_partitions(e->sm, e->partitions);
	fabric_flow_follow_all(e->f);
	sm_sweep_begin(e->sm);
	while (all_changes(e) < 2)
		assert_false(step(e));
}

CASE_WITH(flows_follow_keys_once, setup, teardown)
{
	struct env *e = *state;
	const uint64_t before = e->f->flows->marks.round;

	begin_to_write_keys(e);
	assert_true(e->f->flows->marks.round == before);
	while (!step(e))
		;
	assert_true(e->f->flows->marks.round == before + 1);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_true(e->f->flows->marks.round == before + 1);
}

CASE_WITH(flows_follow_the_keys_of_a_sweep_that_is_given_up, setup, teardown)
{
	const struct sm_ops ops = { .wake = no_wake };
	struct env *e = *state;
	const uint64_t before = e->f->flows->marks.round;

	begin_to_write_keys(e);
	sm_free(e->sm);
	assert_true(e->f->flows->marks.round == before + 1);
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
}

/* Those for one port and those for many are in lists of their own. */
CASE_WITH(later_rules_hold_whomever_they_are_for, setup, teardown)
{
	struct env *e = *state;

	use(e, "A=0x0010:" H2 "=full,ALL=limited;"
	       "B=0x0011:ALL=full;"
	       "B=0x0011:" H2 "=limited;"
	       "C=0x0012:" H3 "=full;");
	ASSERT_PKEYS(e, 0, 0xFFFF, 0x0010, 0x8011);
	ASSERT_PKEYS(e, 1, 0x7FFF, 0x0010, 0x0011);
	ASSERT_PKEYS(e, 2, 0x7FFF, 0x0010, 0x8011, 0x8012);
	ASSERT_PKEYS(e, 3, 0x7FFF, 0x0010, 0x8011);
}
