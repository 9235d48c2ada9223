/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A subnet manager that makes one mistake, and what the switches do then: each row of the table is
 * a field that a Set writes wrong. A message that the mistake concerns is discarded and counted
 * where the specification says so, `umbel check` names the mistake, and when the field is as before
 * messages arrive again. docs/subnet.md lists the fields.
 *
 * The fabric: h1 and h2 at leaf1, h3 and h4 at leaf2; the leaves' ports 3 and 4 lead to spine1 and
 * spine2. Messages go from h1 to h3, or to a group of both; h4, at leaf2 as h3, proves that none
 * has come.
 */
#include "verbs/lab.h"
#include "deadline.h"
#include "wrong_sm/agent.h"

/* Where fields are in SwitchInfo. */
#define SW_LFT_TOP     6
#define SW_PRIMARY     9
#define SW_NOT_PRIMARY 10
#define SW_MFT_TOP     18
/* And in PortInfo. */
#define PORT_KEY        0
#define PORT_LID        16
#define PORT_WIDTHS     29 /* enabled, supported, active */
#define PORT_SPEEDS     35 /* active and enabled */
#define PORT_EXT_SPEEDS 62 /* active and supported */
#define PORT_STATE      32 /* in the low half; in the high half of the next byte the physical one */
#define PORT_LEASE      26
#define PORT_VIOLATIONS 44 /* M_KeyViolations */
#define PORT_LMC        34 /* in the low bits; protection by the M_Key in the highest two */
#define PORT_MTU        36 /* NeighborMTU, in the high half */
#define PORT_LANES      43 /* OperationalVLs, and what the port enforces */

#define LFT_BLOCK 64

/* A message, which is larger than the least MTU. */
static const char text[1000] = "a message";

static const struct agent_node leaf1 = { "leaf1", 1, { 1 } };

/* ---- who sends and receives ---- */

static struct {
	struct lab_end *from, *to, *witness;
	struct ibv_ah *unicast, *group;
	uint32_t group_qkey;
	uint16_t lid, own_lid, mlid, leaf_lid;
	uint8_t up; /* the port by which leaf1 sends to @lid */
} lab;

static uint16_t lid_of(struct lab_end *e)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(e->context, 1, &port), 0);
	return port.lid;
}

static void make_group(void)
{
	struct lab_group *sends = lab_join(1, "239.1.1.1"), *receives = lab_join(3, "239.1.1.1");
	const struct lab_options member = { .host = 3, .qkey = receives->qkey };

	lab.to = lab_end_with(&member);
	lab.witness = lab_end_with(&(struct lab_options){ .host = 4, .qkey = receives->qkey });
	lab_attach(lab.to->qp, &receives->mgid, receives->mlid);
	lab.group = lab_ah_group(lab.from, sends);
	lab.group_qkey = receives->qkey;
	lab.mlid = receives->mlid;
	assert_in_range(lab.mlid, 0xC000, 0xC01F); /* of the first block */
}

static void begin(void)
{
	struct agent_attribute a = { .at = &leaf1, .id = UMAD_SM_ATTR_PORT_INFO };

	agent_open();
	lab.from = lab_end(1);
	make_group();
	lab.unicast = lab_ah_to(lab.from, lab.to);
	lab.lid = lid_of(lab.to);
	lab.own_lid = lid_of(lab.from);
	agent_get(&a);
	lab.leaf_lid = (uint16_t)agent_number(a.data + 16, 2);
	a.id = UMAD_SM_ATTR_LINEAR_FT;
	agent_get(&a);
	lab.up = a.data[lab.lid];
	lab_post(lab.to, 100);
}

/* The destination of a message from h1: h3, the group, or leaf1 itself, which responds. */
enum target { HOST, GROUP, SWITCH };

static void send_message(enum target to)
{
	struct lab_request r;

	lab_request(lab.from, &r, to == GROUP ? lab.group : lab.unicast,
	            to == GROUP ? LAB_MCAST : lab.to->qp->qp_num, text, sizeof(text));
	r.wr.wr.ud.remote_qkey = lab.group_qkey;
	lab_send_request(lab.from, &r);
}

static unsigned ask(uint16_t lid, bool is_lost)
{
	uint8_t mad[256] = { 0 };

	return agent_perf_get(lid, UMAD_ATTR_CLASS_PORT_INFO, mad, is_lost);
}

static void expect_arrival(enum target to)
{
	if (to == SWITCH) {
		assert_int_equal(ask(lab.leaf_lid, false), 0);
		return;
	}
	send_message(to);
	lab_expect(lab.to, text, sizeof(text));
}

static void expect_loss(enum target to)
{
	static const char next[] = "it is the next";
	struct lab_request r;

	if (to == SWITCH) {
		assert_int_equal(ask(lab.leaf_lid, true), AGENT_NO_RESPONSE);
		return;
	}
	send_message(to);
	lab_request(lab.witness, &r, lab_ah_to(lab.witness, lab.to), lab.to->qp->qp_num, next,
	            sizeof(next));
	r.wr.wr.ud.remote_qkey = lab.group_qkey;
	lab_send_request(lab.witness, &r);
	lab_expect(lab.to, next, sizeof(next));
}

/* ---- what is counted ---- */

enum counter { NOTHING, RELAY, DISCARDS, XMIT_CONSTRAINT, RCV_CONSTRAINT, BY_SENDER };

/* The attribute of the performance management agent, where the counter is in its data, and how long
 * it is. A detail is counted beside its sum. */
static const struct place {
	uint16_t attribute;
	uint8_t at, bytes;
} counters[] = {
	[RELAY] = { 0x12, 12, 2 },           [DISCARDS] = { 0x12, 14, 2 },
	[XMIT_CONSTRAINT] = { 0x12, 16, 1 }, [RCV_CONSTRAINT] = { 0x12, 17, 1 },
	[BY_SENDER] = { 0x16, 6, 2 }, /* PortNeighborMTUDiscards of its HCA */
};

#define PERF_DATA 64

static uint64_t count_at(uint16_t lid, unsigned port, const struct place *p)
{
	uint8_t mad[256] = { 0 };

	mad[PERF_DATA + 1] = (uint8_t)port;
	assert_int_equal(agent_perf_get(lid, p->attribute, mad, false), 0);
	return agent_number(mad + PERF_DATA + p->at, p->bytes);
}

/* ---- the mistakes ---- */

/* Modifiers that name the port to the other leaf. */
#define KEYS_OF_UP   0xFFFFFFFD /* P_KeyTable */
#define FROM_1_TO_UP 0xFFFFFFFE /* SLtoVLMappingTable: of what comes in by port 1 */
#define UP           0xFFFFFFFF

struct change {
	uint16_t attribute;
	uint32_t modifier;           /* or one of those above */
	void (*make)(uint8_t *data); /* of what a Get has said */
};

struct mistake {
	const char *what;
	struct change change;
	const char *says; /* what `umbel check` says of it, in a line that has this in it */
	enum target to;
	bool arrives; /* all the same */
	enum counter counted;
	uint8_t detail; /* offset in PortRcvErrorDetails or PortXmitDiscardDetails; 0: none */
	bool at_out;    /* counted at the port that leads to the other leaf, not where it came in */
	struct change first; /* is right, and makes the other one a mistake */
};

static void top_below_h3(uint8_t *data)
{
	agent_put(data + SW_LFT_TOP, 2, lab.lid - 1u);
}

static void no_port(uint8_t *data)
{
	data[lab.lid % LFT_BLOCK] = 255;
}

static void beyond_the_last_port(uint8_t *data)
{
	data[lab.lid % LFT_BLOCK] = 77;
}

static void back_where_it_comes_from(uint8_t *data)
{
	data[lab.lid % LFT_BLOCK] = 1;
}

static void own_lid_elsewhere(uint8_t *data)
{
	data[lab.leaf_lid % LFT_BLOCK] = lab.up;
}

static void no_own_lid(uint8_t *data)
{
	data[lab.leaf_lid % LFT_BLOCK] = 255;
}

static void no_row(uint8_t *data)
{
	agent_put(data + (lab.mlid - 0xC000) * 2, 2, 0);
}

static void row_of_the_sender(uint8_t *data)
{
	agent_put(data + (lab.mlid - 0xC000) * 2, 2, 1 << 1);
}

static void row_of_a_stranger(uint8_t *data)
{
	uint8_t *row = data + (lab.mlid - 0xC000) * 2;

	agent_put(row, 2, agent_number(row, 2) | 1 << 2);
}

static void top_below_the_group(uint8_t *data)
{
	agent_put(data + SW_MFT_TOP, 2, lab.mlid - 1u);
}

static void top_below_all_groups(uint8_t *data)
{
	agent_put(data + SW_MFT_TOP, 2, 0xBFFF);
}

/* The way that its row would say. */
static void default_port(uint8_t *data)
{
	top_below_the_group(data);
	data[SW_PRIMARY] = lab.up;
}

static void default_port_of_the_sender(uint8_t *data)
{
	top_below_the_group(data);
	data[SW_PRIMARY] = 1;
}

static void default_port_for_what_comes_by_the_other(uint8_t *data)
{
	default_port_of_the_sender(data);
	data[SW_NOT_PRIMARY] = lab.up;
}

/* SL 0, which comes in by port 1. */
static void lane_15(uint8_t *data)
{
	data[0] |= 0xF0;
}

static void lane_of_a_wider_port(uint8_t *data)
{
	data[0] = (uint8_t)((data[0] & 0x0F) | 8 << 4);
}

static void lane_4(uint8_t *data)
{
	data[0] = (uint8_t)((data[0] & 0x0F) | 4 << 4);
}

static void one_lane(uint8_t *data)
{
	data[PORT_LANES] = (uint8_t)((data[PORT_LANES] & 0x0F) | 1 << 4);
}

/* P_KeyTable without the default partition. */
static void other_keys(uint8_t *data)
{
	memset(data, 0, UMAD_LEN_SMP_DATA);
	agent_put(data, 2, 0x8001);
}

static void enforce_inbound(uint8_t *data)
{
	data[PORT_LANES] |= 8;
}

static void enforce_outbound(uint8_t *data)
{
	data[PORT_LANES] |= 4;
}

static void smallest_mtu(uint8_t *data)
{
	data[PORT_MTU] = (uint8_t)((data[PORT_MTU] & 0x0F) | 1 << 4);
}

static void lid_of_h3(uint8_t *data)
{
	agent_put(data + PORT_LID, 2, lab.lid);
}

#define DLID_MAPPING 10
#define VL_MAPPING   12
#define LOOPING      14
#define INACTIVE     4 /* of PortXmitDiscardDetails */
#define RELAYED(why) .counted = RELAY, .detail = (why)

/* clang-format off */
static const struct mistake mistakes[] = {
	{ "LinearFDBTop below a LID", { UMAD_SM_ATTR_SWITCH_INFO, 0, top_below_h3 },
	  "leaf1 has a LinearFDBTop too low, and discards what is for", RELAYED(DLID_MAPPING) },
	{ "an entry without a port", { UMAD_SM_ATTR_LINEAR_FT, 0, no_port },
	  "leaf1 has no route to umbel_h3_0", RELAYED(DLID_MAPPING) },
	{ "an entry with a port that is not there", { UMAD_SM_ATTR_LINEAR_FT, 0, beyond_the_last_port },
	  "leaf1 has no route to umbel_h3_0", RELAYED(DLID_MAPPING) },
	{ "an entry with the port that it comes in by", { UMAD_SM_ATTR_LINEAR_FT, 0, back_where_it_comes_from },
	  "leaf1 sends to another port what is for umbel_h3_0", RELAYED(LOOPING) },
	{ "no entry for the LID of the switch", { UMAD_SM_ATTR_LINEAR_FT, 0, no_own_lid },
	  "leaf1 has no route to leaf1", .to = SWITCH, RELAYED(DLID_MAPPING) },
	{ "another port for the LID of the switch", { UMAD_SM_ATTR_LINEAR_FT, 0, own_lid_elsewhere },
	  "goes round: leaf1 >", .to = SWITCH },
	{ "no row for a group", { UMAD_SM_ATTR_MCAST_FT, 0, no_row },
	  "umbel_h3_0 not reached", .to = GROUP, RELAYED(DLID_MAPPING) },
	{ "a row that leads back to the sender", { UMAD_SM_ATTR_MCAST_FT, 0, row_of_the_sender },
	  "umbel_h3_0 not reached", .to = GROUP },
	{ "a row that leads to a stranger", { UMAD_SM_ATTR_MCAST_FT, 0, row_of_a_stranger },
	  "umbel_h2_0 reached, and no member", .to = GROUP, .arrives = true },
	{ "MulticastFDBTop below a group", { UMAD_SM_ATTR_SWITCH_INFO, 0, top_below_the_group },
	  "leaf1 has a MulticastFDBTop too low", .to = GROUP, RELAYED(DLID_MAPPING) },
	{ "MulticastFDBTop below all groups", { UMAD_SM_ATTR_SWITCH_INFO, 0, top_below_all_groups },
	  "leaf1 has a MulticastFDBTop too low (0xbfff), and discards it", .to = GROUP, RELAYED(DLID_MAPPING) },
	{ "DefaultMulticastPrimaryPort", { UMAD_SM_ATTR_SWITCH_INFO, 0, default_port },
	  "and sends it to a default port", .to = GROUP, .arrives = true },
	{ "the same is the sender's port", { UMAD_SM_ATTR_SWITCH_INFO, 0, default_port_of_the_sender },
	  "and sends it to a default port", .to = GROUP, RELAYED(DLID_MAPPING) },
	{ "DefaultMulticastNotPrimaryPort", { UMAD_SM_ATTR_SWITCH_INFO, 0, default_port_for_what_comes_by_the_other },
	  "and sends it to a default port", .to = GROUP, .arrives = true },
	{ "a lane 15", { UMAD_SM_ATTR_SLVL_TABLE, FROM_1_TO_UP, lane_15 },
	  "has no lane for SL 0", RELAYED(VL_MAPPING) },
	{ "the same for a group", { UMAD_SM_ATTR_SLVL_TABLE, FROM_1_TO_UP, lane_15 },
	  "has no lane for SL 0", .to = GROUP, RELAYED(VL_MAPPING) },
	{ "a lane that there is not", { UMAD_SM_ATTR_SLVL_TABLE, FROM_1_TO_UP, lane_of_a_wider_port },
	  "has no lane for SL 0", RELAYED(VL_MAPPING) },
	{ "OperationalVLs without a lane in use", { UMAD_SM_ATTR_PORT_INFO, UP, one_lane },
	  "has no lane for SL 0", RELAYED(VL_MAPPING), .first = { UMAD_SM_ATTR_SLVL_TABLE, FROM_1_TO_UP, lane_4 } },
	{ "a partition that is not let in", { UMAD_SM_ATTR_PORT_INFO, 1, enforce_inbound },
	  "leaf1:1 blocks partition 0xffff of umbel_h1_0", .counted = RCV_CONSTRAINT,
	  .first = { UMAD_SM_ATTR_PKEY_TABLE, 1 << 16, other_keys } },
	{ "a partition that is not let out", { UMAD_SM_ATTR_PORT_INFO, UP, enforce_outbound },
	  "blocks partition 0xffff of umbel_h1_0", .counted = XMIT_CONSTRAINT, .at_out = true,
	  .first = { UMAD_SM_ATTR_PKEY_TABLE, KEYS_OF_UP, other_keys } },
	{ "the same for a group", { UMAD_SM_ATTR_PORT_INFO, UP, enforce_outbound },
	  "blocks its partition 0xffff", .to = GROUP, .counted = XMIT_CONSTRAINT, .at_out = true,
	  .first = { UMAD_SM_ATTR_PKEY_TABLE, KEYS_OF_UP, other_keys } },
	{ "a NeighborMTU less than a message", { UMAD_SM_ATTR_PORT_INFO, UP, smallest_mtu },
	  "umbel_h1_0 to umbel_h3_0: a link between has MTU 256", .counted = BY_SENDER },
	{ "the LID of a host for a switch", { UMAD_SM_ATTR_PORT_INFO, 0, lid_of_h3 },
	  "LID 3 is that of umbel_h3_0 and of leaf1", .to = SWITCH },
};
/* clang-format on */

/* A counter, and the detail of it. */
struct counts {
	uint64_t sum, detail;
};

static struct counts counts_of(const struct mistake *m)
{
	const unsigned port = m->at_out ? lab.up : 1;
	const struct place detail = { m->counted == DISCARDS ? 0x16 : 0x15, m->detail, 2 };
	const uint16_t at = m->counted == BY_SENDER ? lab.own_lid : lab.leaf_lid;

	if (!m->counted)
		return (struct counts){ 0 };
	return (struct counts){ count_at(at, port, &counters[m->counted]),
		                m->detail ? count_at(at, port, &detail) : 0 };
}

/* Whether `umbel check` has that in a line, and is not content. */
static void assert_said(const char *text)
{
	FILE *f = popen("umbel check --strict --most 100 2>&1", "r");
	char line[1000], all[20000] = "";
	bool said = false;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		said |= strstr(line, text) != NULL;
		strncat(all, line, sizeof(all) - strlen(all) - 1);
	}
	if (pclose(f) == 0 || !said)
		fail_msg("umbel check does not say '%s' but:\n%s", text, all);
}

static void assert_right(void)
{
	assert_int_equal(system("umbel check > /dev/null"), 0);
}

static uint32_t modifier_of(const struct change *c)
{
	if (c->modifier == KEYS_OF_UP)
		return (uint32_t)lab.up << 16;
	if (c->modifier == FROM_1_TO_UP)
		return 1u << 8 | lab.up;
	return c->modifier == UP ? lab.up : c->modifier;
}

/* Makes the change. Returns the attribute that undoes it. */
static struct agent_attribute change(const struct change *c)
{
	struct agent_attribute a = { .at = &leaf1, .id = c->attribute, .modifier = modifier_of(c) };
	struct agent_attribute before;

	if (!c->attribute)
		return a;
	agent_get(&a);
	if (c->attribute == UMAD_SM_ATTR_PORT_INFO) { /* no change of states */
		a.data[PORT_STATE] &= 0xF0;
		a.data[PORT_STATE + 1] &= 0x0F;
	}
	before = a;
	c->make(a.data);
	agent_set(&a);
	return before;
}

static void undo(struct agent_attribute *before)
{
	if (before->id)
		agent_set(before);
}

static void make_mistake(const struct mistake *m)
{
	struct agent_attribute first = change(&m->first), before;
	struct counts had, has;

	expect_arrival(m->to);
	had = counts_of(m);
	before = change(&m->change);
	if (m->arrives)
		expect_arrival(m->to);
	else
		expect_loss(m->to);
	assert_said(m->says);
	undo(&before);
	has = counts_of(m);
	assert_int_equal(has.sum - had.sum, m->counted ? 1 : 0);
	assert_int_equal(has.detail - had.detail, m->detail ? 1 : 0);
	expect_arrival(m->to);
	undo(&first);
}

LAB_CASE(each_mistake_has_its_effect_its_counter_and_its_verdict)
{
	begin();
	assert_right();
	for (size_t i = 0; EACH_NAMED(i, mistakes, what); i++)
		make_mistake(&mistakes[i]);
	assert_right();
	agent_close();
}

/* ---- states of ports ---- */

/* The link from leaf1 to the other leaf: its ends, as a subnet manager brings them up. */
struct end {
	const struct agent_node *at;
	uint8_t port;
};

static void set_port_state(const struct end *e, uint8_t state)
{
	struct agent_attribute a = { .at = e->at,
		                     .id = UMAD_SM_ATTR_PORT_INFO,
		                     .modifier = e->port };

	agent_get(&a);
	a.data[PORT_STATE] = (uint8_t)((a.data[PORT_STATE] & 0xF0) | state);
	a.data[PORT_STATE + 1] &= 0x0F;
	agent_set(&a);
	assert_int_equal(a.data[PORT_STATE] & 0x0F, state == IBV_PORT_DOWN ? IBV_PORT_INIT : state);
}

/* Nothing but SMPs crosses the link. */
static void assert_only_smps(const struct agent_node *beyond, const char *says)
{
	struct agent_attribute a = { .at = beyond, .id = UMAD_SM_ATTR_NODE_INFO };
	const struct mistake m = { .counted = DISCARDS, .detail = INACTIVE, .at_out = true };
	const struct counts had = counts_of(&m);
	struct counts has;

	agent_get(&a);
	expect_loss(HOST);
	expect_loss(GROUP);
	assert_int_equal(ask(lab.lid, true), AGENT_NO_RESPONSE);
	has = counts_of(&m);
	assert_int_equal(has.sum - had.sum, 3);
	assert_int_equal(has.detail - had.detail, 3);
	assert_said(says);
}

LAB_CASE(data_crosses_a_link_whose_ends_are_active)
{
	struct agent_node spine = { "spine", 2, { 1 } };
	struct end near = { .at = &leaf1 }, far = { &spine, 1 };
	char says[40];

	begin();
	assert_int_equal(system("umbel sm stop > /dev/null"), 0);
	spine.path[1] = near.port = lab.up;
	snprintf(says, sizeof(says), "leaf1:%u is not active", near.port);
	set_port_state(&near, IBV_PORT_DOWN); /* it trains, and is INIT */
	assert_only_smps(&spine, says);
	set_port_state(&near, IBV_PORT_ARMED);
	set_port_state(&far, IBV_PORT_ARMED);
	assert_only_smps(&spine, says);
	set_port_state(&near, IBV_PORT_ACTIVE);
	snprintf(says, sizeof(says), "spine%d:1 is not active", near.port == 3 ? 1 : 2);
	assert_only_smps(&spine, says);
	set_port_state(&far, IBV_PORT_ACTIVE);
	expect_arrival(HOST);
	expect_arrival(GROUP);
	assert_right();
	assert_int_equal(system("umbel sm start > /dev/null"), 0);
	agent_close();
}

/* ---- what is refused ---- */

enum { BAD_METHOD = 0x08, BAD_METHOD_ATTRIBUTE = 0x0C, BAD_FIELD = 0x1C };

struct refusal {
	const char *what;
	uint16_t attribute;
	uint32_t modifier;
	unsigned status;
	struct {
		uint8_t at, bytes;
		uint16_t number;
	} put;          /* into the data; no bytes: nothing */
	uint8_t method; /* 0: Set */
	bool clear;     /* the LID is even, and free */
};

#define BAD(...) .status = BAD_FIELD, .put = { __VA_ARGS__ }

/* clang-format off */
static const struct refusal refusals[] = {
	{ "a block beyond LinearFDBCap", UMAD_SM_ATTR_LINEAR_FT, 0xC000 / LFT_BLOCK, .status = BAD_FIELD },
	{ "LinearFDBTop of LinearFDBCap", UMAD_SM_ATTR_SWITCH_INFO, 0, BAD(SW_LFT_TOP, 2, 0xC000) },
	{ "a block beyond all MLIDs", UMAD_SM_ATTR_MCAST_FT, 0x200, .status = BAD_FIELD },
	{ "a position beyond all ports", UMAD_SM_ATTR_MCAST_FT, 1u << 28, .status = BAD_FIELD },
	{ "MulticastFDBTop of no group", UMAD_SM_ATTR_SWITCH_INFO, 0, BAD(SW_MFT_TOP, 2, 0xFFFF) },
	{ "MulticastFDBTop of a port", UMAD_SM_ATTR_SWITCH_INFO, 0, BAD(SW_MFT_TOP, 2, 0xBFFE) },
	{ "SwitchInfo with a modifier", UMAD_SM_ATTR_SWITCH_INFO, 1, .status = BAD_FIELD },
	{ "RandomForwardingTable", UMAD_SM_ATTR_RANDOM_FT, 0, .status = BAD_METHOD_ATTRIBUTE },
	{ "a port that is not there", UMAD_SM_ATTR_PORT_INFO, 5, .status = BAD_FIELD },
	{ "PortInfo with bits for nothing", UMAD_SM_ATTR_PORT_INFO, 0x10001, .status = BAD_FIELD },
	{ "a multicast LID", UMAD_SM_ATTR_PORT_INFO, 0, BAD(PORT_LID, 2, 0xC000) },
	{ "the permissive LID", UMAD_SM_ATTR_PORT_INFO, 0, BAD(PORT_LID, 2, 0xFFFF) },
	{ "no LID", UMAD_SM_ATTR_PORT_INFO, 0, BAD(PORT_LID, 2, 0) },
	{ "an SM without a LID of its own", UMAD_SM_ATTR_PORT_INFO, 0, BAD(PORT_LID + 2, 2, 0xC001) },
	{ "an LMC of a base port 0", UMAD_SM_ATTR_PORT_INFO, 0, BAD(PORT_LMC, 1, 1), .clear = true },
	{ "Initialize of an active port", UMAD_SM_ATTR_PORT_INFO, 1, BAD(PORT_STATE, 1, IBV_PORT_INIT) },
	{ "Armed of an active port", UMAD_SM_ATTR_PORT_INFO, 1, BAD(PORT_STATE, 1, IBV_PORT_ARMED) },
	{ "a state that is none", UMAD_SM_ATTR_PORT_INFO, 1, BAD(PORT_STATE, 1, 6) },
	{ "LinkUp as physical state", UMAD_SM_ATTR_PORT_INFO, 1, BAD(PORT_STATE + 1, 1, 0x52) },
	{ "LinkDownDefaultState Disabled", UMAD_SM_ATTR_PORT_INFO, 1, BAD(PORT_STATE + 1, 1, 0x03) },
	{ "a width that is none", UMAD_SM_ATTR_PORT_INFO, 1, BAD(PORT_WIDTHS, 1, 0x80) },
	{ "an MTU above MTUCap", UMAD_SM_ATTR_PORT_INFO, 1, BAD(PORT_MTU, 1, 0x60) },
	{ "lanes above VLCap", UMAD_SM_ATTR_PORT_INFO, 1, BAD(PORT_LANES, 1, 0x50) },
	{ "P_Keys beyond PartitionEnforcementCap", UMAD_SM_ATTR_PKEY_TABLE, 1 << 16 | 1, .status = BAD_FIELD },
	{ "P_Keys of no port", UMAD_SM_ATTR_PKEY_TABLE, 5 << 16, .status = BAD_FIELD },
	{ "lanes out of no port", UMAD_SM_ATTR_SLVL_TABLE, 1 << 8 | 5, .status = BAD_FIELD },
	{ "lanes from no port", UMAD_SM_ATTR_SLVL_TABLE, 5 << 8 | 1, .status = BAD_FIELD },
	{ "part 0 of VLArbitrationTable", UMAD_SM_ATTR_VL_ARB_TABLE, 1, .status = BAD_FIELD },
	{ "part 5 of VLArbitrationTable", UMAD_SM_ATTR_VL_ARB_TABLE, 5 << 16 | 1, .status = BAD_FIELD },
	{ "part 1 of no port", UMAD_SM_ATTR_VL_ARB_TABLE, 1 << 16 | 5, .status = BAD_FIELD },
	{ "GUIDs that a switch cannot have", UMAD_SM_ATTR_GUID_INFO, 1, .status = BAD_FIELD },
	{ "Set of NodeInfo", UMAD_SM_ATTR_NODE_INFO, 0, .status = BAD_METHOD_ATTRIBUTE },
	{ "Set of NodeDescription", UMAD_SM_ATTR_NODE_DESC, 0, .status = BAD_METHOD_ATTRIBUTE },
	{ "VendorDiag", 0x0030, 0, .status = BAD_METHOD_ATTRIBUTE },
	{ "LedInfo", 0x0031, 0, .status = BAD_METHOD_ATTRIBUTE },
	{ "an attribute that is none", 0x00FF, 0, .status = BAD_METHOD_ATTRIBUTE },
	{ "an unknown method", UMAD_SM_ATTR_NODE_INFO, 0, .status = BAD_METHOD, .method = 0x0F },
	{ "GetTable", UMAD_SM_ATTR_NODE_INFO, 0, .status = BAD_METHOD, .method = 0x12 },
};
/* clang-format on */

static void refuse(const struct refusal *r)
{
	struct agent_attribute a = { .at = &leaf1, .id = r->attribute, .modifier = r->modifier };
	struct agent_attribute before, after;
	const unsigned can_get = agent_request(&a, UMAD_METHOD_GET, false);

	before = after = a;
	if (r->attribute == UMAD_SM_ATTR_PORT_INFO) { /* no change of states */
		a.data[PORT_STATE] &= 0xF0;
		a.data[PORT_STATE + 1] &= 0x0F;
	}
	if (r->clear)
		agent_put(a.data + PORT_LID, 2, 100);
	agent_put(a.data + r->put.at, r->put.bytes, r->put.number);
	assert_int_equal(agent_request(&a, r->method ? r->method : UMAD_METHOD_SET, false),
	                 r->status);
	assert_int_equal(agent_request(&after, UMAD_METHOD_GET, false), can_get);
	assert_memory_equal(before.data, after.data, sizeof(before.data));
}

LAB_CASE(what_a_switch_cannot_do_is_refused_and_changes_nothing)
{
	agent_open();
	for (size_t i = 0; EACH_NAMED(i, refusals, what); i++)
		refuse(&refusals[i]);
	agent_close();
}

/* ---- port 0 ---- */

/* A path to a switch has the width and the speed of its port 0. */
LAB_CASE(port_0_is_as_fast_as_the_links)
{
	struct agent_attribute own = { .at = &leaf1, .id = UMAD_SM_ATTR_PORT_INFO };
	struct agent_attribute other = own;

	agent_open();
	other.modifier = 1;
	agent_get(&own);
	agent_get(&other);
	assert_int_equal(own.data[PORT_STATE], other.data[PORT_STATE]); /* speeds, and ACTIVE */
	for (unsigned at = PORT_WIDTHS; at < PORT_WIDTHS + 3; at++)
		assert_int_equal(own.data[at], other.data[at]);
	assert_int_equal(own.data[PORT_SPEEDS], other.data[PORT_SPEEDS]);
	assert_int_equal(own.data[PORT_EXT_SPEEDS], other.data[PORT_EXT_SPEEDS]);
	assert_int_not_equal(own.data[PORT_SPEEDS] >> 4, 0);
	agent_close();
}

/* ---- the key ---- */

#define KEY 0x1234

/* A request with that key, which has a response, or none. Whether that shows the switch's own. */
static bool shows(uint8_t method, uint64_t key, bool is_lost)
{
	struct agent_attribute a = { .at = &leaf1, .id = UMAD_SM_ATTR_PORT_INFO, .m_key = KEY };

	agent_get(&a);
	a.data[PORT_STATE] &= 0xF0;
	a.data[PORT_STATE + 1] &= 0x0F;
	a.m_key = key;
	assert_int_equal(agent_request(&a, method, is_lost), is_lost ? AGENT_NO_RESPONSE : 0);
	return !is_lost && agent_number(a.data + PORT_KEY, 8) == KEY;
}

static void set_key(uint64_t own, uint64_t key, uint8_t protection, uint16_t lease)
{
	struct agent_attribute a = { .at = &leaf1, .id = UMAD_SM_ATTR_PORT_INFO, .m_key = own };

	agent_get(&a);
	a.data[PORT_STATE] &= 0xF0;
	a.data[PORT_STATE + 1] &= 0x0F;
	agent_put(a.data + PORT_KEY, 8, key);
	agent_put(a.data + PORT_LEASE, 2, lease);
	agent_put(a.data + PORT_VIOLATIONS, 2, 0); /* a counter that is set to 0 */
	a.data[PORT_LMC] = (uint8_t)((a.data[PORT_LMC] & 0x3F) | protection << 6);
	agent_set(&a);
}

static unsigned violations(uint64_t key)
{
	struct agent_attribute a = { .at = &leaf1, .id = UMAD_SM_ATTR_PORT_INFO, .m_key = key };

	agent_get(&a);
	return (unsigned)agent_number(a.data + PORT_VIOLATIONS, 2);
}

/* A subnet manager that has forgotten the key which it has set. */
LAB_CASE(without_the_key_a_switch_does_nothing)
{
	static const struct {
		uint8_t protection;
		bool can_read, is_shown;
	} rows[] = {
		{ 0, true, true }, { 1, true, false }, { 2, false, false }, { 3, false, false }
	};

	agent_open();
	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		set_key(i ? KEY : 0, KEY, rows[i].protection, 0);
		assert_int_equal(shows(UMAD_METHOD_GET, 0, !rows[i].can_read), rows[i].is_shown);
		assert_int_equal(violations(KEY), !rows[i].can_read);
		shows(UMAD_METHOD_SET, 0, true);
		assert_int_equal(violations(KEY), 1 + !rows[i].can_read);
		assert_true(shows(UMAD_METHOD_SET, KEY, false));
		assert_said(rows[i].protection ? "leaf1 is locked for ever if its M_Key is lost"
		                               : "leaf1 shows its M_Key to everybody");
	}
	assert_said("leaf1 has another M_Key than umbel_h1_0");
	set_key(KEY, 0, 0, 0);
	agent_close();
}

/* The lease runs from the first request with a wrong key on, and one with the right key ends it. */
LAB_CASE(the_protection_ends_with_its_lease)
{
	struct agent_attribute a = { .at = &leaf1, .id = UMAD_SM_ATTR_PORT_INFO };
	struct deadline deadline = { 0 };
	struct agent_attribute right = a;

	agent_open();
	set_key(0, KEY, 2, 1);
	assert_int_equal(agent_request(&a, UMAD_METHOD_GET, true), AGENT_NO_RESPONSE);
	right.m_key = KEY;
	agent_get(&right);
	do
		DEADLINE_LOOK(&deadline, "the end of a lease");
	while (agent_request(&a, UMAD_METHOD_GET, true) == AGENT_NO_RESPONSE);
	assert_int_equal(agent_number(a.data + PORT_KEY, 8), KEY);
	assert_int_equal(a.data[PORT_LMC] >> 6, 0);
	set_key(KEY, 0, 0, 0);
	agent_close();
}
