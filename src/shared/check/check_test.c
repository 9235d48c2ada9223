/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The checker on subnets made by hand: each is right, or wrong in one way, which is found by name.
 */
#include <harness.h>

#include "check/check.h"

#define LIDS   64
#define PORTS  8
#define GROUP  0xC001
#define HOST   1 /* the port of a switch that leads to its host */
#define EAST   2
#define WEST   3
#define MTU    5 /* 4096 */
#define SLOWER 4

static struct check_net net;
static struct check_report report;
static char names[2 * LIDS][8];

/* @n switches s0, s1, ... with a host each, h0, h1, ..., which has LID 1, 2, ...; no links between
 * them, and no routes but to the own host. Switches have LIDs from 33 on. */
static void begin(uint32_t n)
{
	assert_int_equal(check_net_init(&net, n, n), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct check_switch *sw = &net.sw[i];
		struct check_host *h = &net.host[i];

		assert_int_equal(check_set_ports(sw, PORTS), 0);
		check_link_host(&net, i, HOST, i);
		sw->lft = malloc(LIDS);
		assert_non_null(sw->lft);
		memset(sw->lft, CHECK_NO_ROUTE, LIDS);
		sw->n_lids = LIDS;
		sw->lid = (uint16_t)(33 + i);
		h->lid = (uint16_t)(1 + i);
		h->n_lids = 1;
		h->mtu = MTU;
		h->rate = 1000;
		sw->lft[h->lid] = HOST;
		sw->lft[sw->lid] = 0;
		snprintf(names[i], sizeof(names[i]), "s%u", i % 100);
		snprintf(names[LIDS + i], sizeof(names[i]), "h%u", i % 100);
		sw->name = names[i];
		h->name = names[LIDS + i];
	}
	net.has_m_keys = true;
}

static void link_both(uint32_t a, unsigned port_a, uint32_t b, unsigned port_b)
{
	check_link(&net, a, port_a, b, port_b);
	check_link(&net, b, port_b, a, port_a);
}

/* Switch @at sends what is for host @to, and for its switch, out of @port. */
static void route(uint32_t at, uint32_t to, unsigned port)
{
	net.sw[at].lft[1 + to] = net.sw[at].lft[33 + to] = (uint8_t)port;
}

static void row(uint32_t at, unsigned a, unsigned b, unsigned c)
{
	const uint64_t ports[CHECK_BLOCKS] = { (1ull << a | 1ull << b | 1ull << c) & ~1ull };

	assert_int_equal(check_add_row(&net, GROUP, at, ports), 0);
}

/* The group's members are all hosts but @stranger. */
static struct check_group *join_all_but(uint32_t stranger)
{
	struct check_group *g = check_add_group(&net);

	assert_non_null(g);
	g->name = "G";
	g->mlid = GROUP;
	for (uint32_t i = 0; i < net.n_hosts; i++) {
		const struct check_member m = { i, true, true };

		if (i != stranger)
			assert_int_equal(check_add_member(g, &m), 0);
	}
	return g;
}

static void judge(void)
{
	assert_int_equal(check_net_finish(&net), 0);
	report = (struct check_report){ .keep = 10 };
	assert_int_equal(check_run(&net, &report), 0);
}

static void end(void)
{
	check_report_fini(&report);
	check_net_fini(&net);
}

/* This is found, and nothing else, and one of the findings has this text in it. */
static void expect_only(enum check_property only, const char *text)
{
	bool said = false;

	judge();
	for (int p = 0; p < CHECK_PROPERTIES; p++) {
		const struct check_result *result = &report.result[p];

		for (unsigned i = 0; i < result->n; i++) {
			said |= p == (int)only && strstr(result->text[i], text);
			if (p != (int)only)
				print_message("%s: %s\n", check_property_name(p), result->text[i]);
		}
		if (p != (int)only)
			assert_int_equal(result->found, 0);
	}
	if (only != CHECK_PROPERTIES && !said)
		for (unsigned i = 0; i < report.result[only].n; i++)
			print_message("found: %s\n", report.result[only].text[i]);
	assert_true(said || only == CHECK_PROPERTIES);
	end();
}

/* s0 - s1 - s2 in a row, with all routes. */
static void begin_row(void)
{
	begin(3);
	link_both(0, EAST, 1, WEST);
	link_both(1, EAST, 2, WEST);
	route(0, 1, EAST);
	route(0, 2, EAST);
	route(1, 0, WEST);
	route(1, 2, EAST);
	route(2, 0, WEST);
	route(2, 1, WEST);
}

/* A ring of @n, around which everything goes east. */
static void begin_ring(uint32_t n)
{
	begin(n);
	for (uint32_t i = 0; i < n; i++) {
		link_both(i, EAST, (i + 1) % n, WEST);
		for (uint32_t to = 0; to < n; to++)
			if (to != i)
				route(i, to, EAST);
	}
}

CASE(test_right)
{
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, HOST, EAST, WEST);
	row(2, HOST, WEST, 0);
	join_all_but(CHECK_NONE)->mtu = MTU;
	judge();
	assert_int_equal(report.result[CHECK_PATHS].checked, 6);
	assert_int_equal(report.result[CHECK_GROUPS].checked, 1);
	assert_int_equal(report.longest, 4);
	assert_int_equal(report.routes[net.first[0] + EAST], 2); /* h0 to two */
	assert_int_equal(report.routes[net.first[1] + EAST], 2); /* two to h2 */
	assert_int_equal(report.trees[1], 1);
	end();
	begin_row();
	expect_only(CHECK_PROPERTIES, "");
}

CASE(test_mlid_top)
{
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, HOST, EAST, WEST);
	row(2, HOST, WEST, 0);
	join_all_but(CHECK_NONE);
	net.sw[0].mlid_top = net.sw[1].mlid_top = GROUP;
	net.sw[2].mlid_top = GROUP - 1;
	judge();
	assert_string_equal(report.result[CHECK_GROUPS].text[0],
	                    "group G: s2 has a MulticastFDBTop too low (0xc000), and discards it");
	assert_string_equal(report.result[CHECK_GROUPS].text[1],
	                    "group G, from s0: h2 not reached");
	end();
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, HOST, WEST, 0);
	join_all_but(2);
	net.sw[1].mlid_top = GROUP - 1;
	net.sw[1].has_default = true;
	expect_only(CHECK_GROUPS, "group G: s1 has a MulticastFDBTop too low (0xc000), and sends "
	                          "it to a default port");
}

/* Port @out of switch @at gives SL 0 lane @vl if it came in by port @in, and lane 0 if not. */
static void map_lane(uint32_t at, unsigned out, unsigned in, uint8_t vl)
{
	net.sw[at].port[out].map = calloc(PORTS + 1, sizeof(*net.sw[at].port[out].map));
	assert_non_null(net.sw[at].port[out].map);
	net.sw[at].port[out].map[in][0] = vl;
}

CASE(test_no_lane)
{
	static const struct {
		uint32_t at;
		unsigned out, in;
		const char *text;
	} rows[] = {
		{ 0, EAST, HOST, "s0:2 has no lane for SL 0 from port 1, for h1 (LID 2)" },
		{ 1, EAST, WEST, "s1:2 has no lane for SL 0 from port 3, for h2 (LID 3)" },
		{ 2, HOST, WEST, "s2:1 has no lane for SL 0 from port 3, for h2 (LID 3)" },
	};

	for (unsigned vl = 8; vl <= 15; vl += 7)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			begin_row();
			net.hosts_only = true;
			map_lane(rows[i].at, rows[i].out, rows[i].in, (uint8_t)vl);
			judge();
			assert_true(report.result[CHECK_PATHS].found > 0);
			assert_string_equal(report.result[CHECK_PATHS].text[0], rows[i].text);
			end();
		}
	begin_row();
	map_lane(1, EAST, WEST, 2);
	expect_only(CHECK_PROPERTIES, "");
	begin_row();
	map_lane(1, EAST, WEST, 2);
	net.sw[1].port[EAST].vls = 2; /* the lane was there before */
	judge();
	assert_string_equal(report.result[CHECK_PATHS].text[0], rows[1].text);
	end();
}

CASE(test_no_lane_for_a_group)
{
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, HOST, EAST, WEST);
	row(2, HOST, WEST, 0);
	join_all_but(CHECK_NONE)->sl = 3;
	map_lane(1, EAST, HOST, 0);
	net.sw[1].port[EAST].map[WEST][3] = 15;
	expect_only(CHECK_GROUPS, "group G: s1:2 has no lane for SL 3 from port 3");
}

CASE(test_hole)
{
	begin_row();
	net.sw[1].lft[3] = CHECK_NO_ROUTE;
	net.sw[2].lft[2] = CHECK_NO_ROUTE;
	judge();
	assert_int_equal(report.result[CHECK_PATHS].found, 2);
	assert_string_equal(report.result[CHECK_PATHS].text[0],
	                    "s2 has no route to h1 (LID 2): 1 host does not reach it");
	assert_string_equal(report.result[CHECK_PATHS].text[1],
	                    "s1 has no route to h2 (LID 3): 2 hosts do not reach it");
	end();
}

CASE(test_top)
{
	begin_row();
	net.sw[1].n_relayed = 36; /* those of the switches are above those of hosts */
	expect_only(CHECK_PROPERTIES, "");
	begin_row();
	net.sw[1].n_relayed = 3;
	judge();
	assert_int_equal(report.result[CHECK_PATHS].found, 1);
	assert_string_equal(report.result[CHECK_PATHS].text[0],
	                    "s1 has a LinearFDBTop too low, and discards what is for h2 (LID 3): 2 "
	                    "hosts do not reach it");
	end();
}

/* No subnet manager has been there. */
CASE(test_idle_links)
{
	begin(1);
	net.host[0].at = CHECK_NONE;
	net.host[0].idle = true;
	net.sw[0].port[HOST].end = CHECK_TO_NOTHING;
	net.sw[0].port[HOST].idle = true;
	judge();
	assert_int_equal(report.result[CHECK_LINKS].found, 2);
	assert_string_equal(report.result[CHECK_LINKS].text[0], "h0 is not active");
	assert_string_equal(report.result[CHECK_LINKS].text[1], "s0:1 is not active");
	end();
}

CASE(test_wrong_ways)
{
	begin_row();
	net.sw[2].lft[1] = 7; /* nothing is plugged in there */
	judge();
	assert_string_equal(
	        report.result[CHECK_PATHS].text[0],
	        "s2 sends out of a port without a link what is for h0 (LID 1): 1 host does not "
	        "reach it");
	end();
	begin_row();
	net.sw[1].lft[1] = HOST;
	judge();
	assert_string_equal(report.result[CHECK_PATHS].text[0],
	                    "s1 sends to another port what is for h0 (LID 1): 2 hosts do not reach "
	                    "it");
	end();
	begin_row();
	net.sw[0].lft[35] = CHECK_NO_ROUTE; /* the LID of s2 */
	expect_only(CHECK_SWITCH_PATHS, "s0 has no route to s2 (LID 35): 1 host does");
	begin_row();
	net.host[2].lid = 2;
	judge();
	assert_string_equal(report.result[CHECK_LIDS].text[0], "LID 2 is that of h1 and of h2");
	end();
}

/* No cable leads there: that is nobody's fault. */
CASE(test_islands)
{
	begin(2);
	judge();
	assert_int_equal(report.unconnected, 2);
	assert_int_equal(report.result[CHECK_PATHS].found, 0);
	end();
}

CASE(test_loop)
{
	begin_row();
	net.sw[1].lft[3] = WEST;
	judge();
	assert_int_equal(report.result[CHECK_LOOPS].found, 1);
	assert_string_equal(report.result[CHECK_LOOPS].text[0],
	                    "LID 3 (h2) goes round: s0 > s1 > s0");
	assert_string_equal(report.result[CHECK_PATHS].text[0],
	                    "s0 is on a circle of what is for h2 (LID 3): 2 hosts do not reach it");
	assert_int_equal(report.result[CHECK_DEADLOCK].found, 0);
	end();
}

CASE(test_credit_loop)
{
	begin_ring(4);
	expect_only(CHECK_DEADLOCK, "4 links wait for each other: ");
}

/* Paths that cross the line between s2 and s0 have a service level of their own, and lanes if there
 * are any. */
static void begin_dateline(uint8_t lanes)
{
	begin_ring(3);
	for (uint32_t i = 0; i < 3; i++) {
		net.sw[i].sl = calloc(LIDS, 1);
		assert_non_null(net.sw[i].sl);
		net.sw[i].n_sls = LIDS;
		net.sw[i].port[EAST].vls = lanes;
		for (uint32_t to = 0; to < i; to++)
			net.sw[i].sl[1 + to] = net.sw[i].sl[33 + to] = 1;
	}
}

CASE(test_lanes)
{
	begin_dateline(0);
	expect_only(CHECK_PROPERTIES, "");
	begin_dateline(1);
	expect_only(CHECK_DEADLOCK, "3 links wait for each other");
	/* the same, host by host, and if nobody asks for one */
	for (uint32_t asking = 0; asking <= 3; asking += 3) {
		begin_ring(3);
		for (uint32_t i = 0; i < asking; i++)
			for (uint32_t to = 0; to < i; to++) {
				assert_int_equal(check_set_level(&net.host[i], 1 + to, 1), 0);
				assert_int_equal(check_set_level(&net.host[i], 33 + to, 1), 0);
			}
		expect_only(asking == 3 ? CHECK_PROPERTIES : CHECK_DEADLOCK, "3 links wait");
	}
}

/* Levels of hosts, two at each switch, one after the other: the same are the switch's, others the
 * host's own. */
CASE(test_given_levels)
{
	for (uint8_t other = 0; other <= 1; other++) {
		begin_ring(3);
		for (uint32_t i = 0; i < 6; i++) {
			uint8_t *sl = malloc(LIDS);

			assert_non_null(sl);
			memset(sl, CHECK_ANY_SL, LIDS);
			for (uint32_t to = 0; to < i % 3; to++)
				sl[1 + to] = sl[33 + to] = i < 3 ? 1 : other;
			check_give_levels(&net, i % 3, sl, LIDS);
		}
		assert_non_null(net.sw[1].sl);
		/* what is told last holds; nothing else is told by s0 */
		assert_int_equal(net.host[2].sl != NULL, !other);
		expect_only(other ? CHECK_PROPERTIES : CHECK_DEADLOCK, "3 links wait");
	}
}

/* The lanes of a table: what comes by the line between s3 and s0 goes on to lane 1. */
CASE(test_lane_map)
{
	begin_ring(4);
	for (uint32_t i = 0; i < 4; i++) {
		uint8_t(*map)[CHECK_SLS] = calloc(PORTS + 1, sizeof(*map));

		assert_non_null(map);
		net.sw[i].port[EAST].map = map;
		if (i == 0)
			map[WEST][0] = 1;
	}
	expect_only(CHECK_DEADLOCK, "/VL1"); /* back to lane 0 at s1 */
}

/* A ring of four, whose LIDs go without circles: no path crosses s2 and then s3 to s0, or s3 and
 * then s0 to s1. */
static void begin_broken_ring(void)
{
	static const unsigned way[4][4] = {
		{ 0, EAST, EAST, WEST },
		{ WEST, 0, EAST, EAST },
		{ WEST, WEST, 0, EAST },
		{ EAST, WEST, WEST, 0 },
	};

	begin(4);
	for (uint32_t i = 0; i < 4; i++)
		link_both(i, EAST, (i + 1) % 4, WEST);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t to = 0; to < 4; to++)
			if (i != to)
				route(i, to, way[i][to]);
}

/* If all lanes count as one, lanes free nothing of circles, and what has none needs none. */
CASE(test_one_lane)
{
	begin_dateline(0);
	net.one_lane = true;
	expect_only(CHECK_DEADLOCK, "3 links wait for each other");
	begin_broken_ring();
	net.one_lane = true;
	expect_only(CHECK_PROPERTIES, "");
}

/* A tree around three quarters of it, the other way round. */
CASE(test_group_credit_loop)
{
	begin_broken_ring();
	expect_only(CHECK_PROPERTIES, "");
	begin_broken_ring();
	row(2, HOST, EAST, 0);
	row(3, HOST, EAST, WEST);
	row(0, HOST, EAST, WEST);
	row(1, HOST, WEST, 0);
	join_all_but(CHECK_NONE);
	expect_only(CHECK_DEADLOCK_GROUPS, "(0xc001)");
}

/* Packets for switches go all around it. */
static void begin_ring_of_switches(bool hosts_only)
{
	begin_broken_ring();
	net.hosts_only = hosts_only;
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t to = 0; to < 4; to++)
			if (i != to)
				net.sw[i].lft[33 + to] = EAST;
}

CASE(test_circle_of_what_is_for_switches)
{
	begin_ring_of_switches(false);
	expect_only(CHECK_DEADLOCK, "4 links wait for each other: ");
	begin_ring_of_switches(true);
	expect_only(CHECK_PROPERTIES, "");
}

CASE(test_group_members)
{
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, HOST, EAST, WEST);
	row(2, WEST, 0, 0);
	join_all_but(CHECK_NONE);
	expect_only(CHECK_GROUPS, "group G, from s0: h2 not reached");
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, HOST, EAST, WEST);
	row(2, HOST, WEST, 0);
	join_all_but(1);
	expect_only(CHECK_GROUPS, "group G, from s0: h1 reached, and no member");
	/* s1 does not lead back to s0, which nobody sees who sends from there */
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, HOST, EAST, 0);
	row(2, HOST, WEST, 0);
	join_all_but(CHECK_NONE);
	expect_only(CHECK_GROUPS, "group G, from s1: h0 not reached");
	/* nobody knows the members */
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, EAST, WEST, 0);
	row(2, HOST, 0, 0);
	expect_only(CHECK_GROUPS, "group 0xc001, from s2: h0 not reached");
	/* one member needs no tree, and a host that only sends none that leads to it */
	begin_row();
	join_all_but(CHECK_NONE)->n = 1;
	expect_only(CHECK_PROPERTIES, "");
	begin_row();
	row(0, EAST, 0, 0);
	row(1, HOST, EAST, WEST);
	row(2, HOST, WEST, 0);
	join_all_but(CHECK_NONE)->member[0].receives = false;
	expect_only(CHECK_PROPERTIES, "");
}

CASE(test_group_twice)
{
	begin(3);
	for (uint32_t i = 0; i < 3; i++) {
		link_both(i, EAST, (i + 1) % 3, WEST);
		for (uint32_t to = 0; to < 3; to++)
			if (to != i)
				route(i, to, to == (i + 1) % 3 ? EAST : WEST);
	}
	for (uint32_t i = 0; i < 3; i++)
		row(i, HOST, EAST, WEST);
	join_all_but(CHECK_NONE);
	judge();
	assert_int_equal(report.result[CHECK_DEADLOCK].found, 0);
	assert_int_equal(report.result[CHECK_DEADLOCK_GROUPS].found, 1);
	assert_non_null(strstr(report.result[CHECK_GROUPS].text[0], "from s0: goes round"));
	assert_non_null(strstr(report.result[CHECK_GROUPS].text[1], "reached more than once"));
	end();
}

CASE(test_m_keys)
{
	const struct check_m_key good = { .key = 5, .protect = 1, .lease_s = 60 };

	begin_row();
	for (uint32_t i = 0; i < net.n_hosts; i++)
		net.host[i].m_key = good;
	for (uint32_t i = 0; i < net.n; i++)
		net.sw[i].m_key = good;
	expect_only(CHECK_PROPERTIES, "");
	begin_row();
	net.host[1].m_key = good;
	expect_only(CHECK_M_KEYS, "h1 has another M_Key than h0");
	begin_row();
	net.sw[2].m_key = (struct check_m_key){ .key = 5, .lease_s = 60 };
	expect_only(CHECK_M_KEYS, "s2 shows its M_Key to everybody");
	begin_row();
	net.sw[2].m_key = (struct check_m_key){ .key = 5, .protect = 2 };
	expect_only(CHECK_M_KEYS, "s2 is locked for ever");
	begin_row();
	net.sw[2].m_key = good;
	net.has_m_keys = false;
	expect_only(CHECK_PROPERTIES, "");
}

CASE(test_slow_links)
{
	begin_row();
	net.sw[1].port[EAST].mtu = SLOWER;
	judge();
	assert_int_equal(report.result[CHECK_MTU].found, 2);
	assert_string_equal(report.result[CHECK_MTU].text[0],
	                    "h0 to h2: a link between has MTU 2048");
	end();
	begin_row();
	net.host[2].mtu = SLOWER; /* the end says it itself */
	net.sw[1].port[EAST].mtu = SLOWER;
	expect_only(CHECK_PROPERTIES, "");
	begin_row();
	net.sw[0].port[EAST].rate = 100;
	expect_only(CHECK_RATE, "h0 to h1: a link between has 10 Gb/s");
	begin_row();
	row(0, HOST, EAST, 0);
	row(1, HOST, EAST, WEST);
	row(2, HOST, WEST, 0);
	join_all_but(CHECK_NONE)->rate = 1000;
	net.sw[2].port[HOST].rate = 200;
	expect_only(CHECK_GROUPS, "group G: 100 Gb/s, but s2:1 has 20");
}

static void give_key(struct check_keys *keys, uint16_t key)
{
	keys->key = malloc(sizeof(key));
	assert_non_null(keys->key);
	*keys->key = key;
	keys->n = 1;
}

CASE(test_partitions)
{
	begin_row();
	give_key(&net.host[0].keys, 0x8001);
	give_key(&net.sw[0].port[HOST].keys, 0x0001);
	net.sw[0].port[HOST].inbound = true;
	expect_only(CHECK_PROPERTIES, "");
	begin_row();
	give_key(&net.host[0].keys, 0x8001);
	give_key(&net.sw[1].port[EAST].keys, 0x8002);
	net.sw[1].port[EAST].outbound = true;
	expect_only(CHECK_PARTITIONS, "s1:2 blocks partition 0x8001 of h0");
}

/* Both hosts of s0 by one of two parallel links. */
CASE(test_balance)
{
	begin(2);
	link_both(0, EAST, 1, WEST);
	link_both(0, EAST + 2, 1, WEST + 2);
	route(0, 1, EAST);
	route(1, 0, WEST + 2);
	judge();
	assert_int_equal(report.routes[net.first[0] + EAST], 1);
	assert_int_equal(report.routes[net.first[0] + EAST + 2], 0);
	assert_int_equal(report.routes[net.first[1] + WEST + 2], 1);
	end();
}
