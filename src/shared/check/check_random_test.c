/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The checker on subnets made by chance, with tables that may lead anywhere, beside a judge that
 * walks each message of each host by itself: both find the same messages lost, the same loads, and
 * the same circles of links that wait. UMBEL_FUZZ_SEEDS has it try more subnets.
 */
#include <harness.h>

#include "base/util.h"
#include "check/check.h"

#define SWITCHES 7
#define PORTS    8
#define HOSTS    2 /* of a switch, at most: its first ports */
#define LIDS     (1 + SWITCHES * (HOSTS + 1))
#define LANES    (SWITCHES * (PORTS + 1) * CHECK_LANES)
#define GROUP    0xC000
#define MOST     50 /* links that a walk crosses */

static struct check_net net;
static unsigned seed;
static char names[SWITCHES * (HOSTS + 1)][8];

static unsigned any(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

/* ---- subnets ---- */

static void link_by_chance(void)
{
	for (unsigned i = 0; i < net.n * 3; i++) {
		uint32_t a = i < net.n - 1 ? i + 1 : any(net.n),
		         b = i < net.n - 1 ? any(i + 1) : any(net.n);
		unsigned k = HOSTS + 1 + any(PORTS - HOSTS), l = HOSTS + 1 + any(PORTS - HOSTS);

		if (a == b || net.sw[a].port[k].end || net.sw[b].port[l].end)
			continue;
		check_link(&net, a, k, b, l);
		check_link(&net, b, l, a, k);
	}
}

/* Lanes, and what service levels packets have. */
static void set_lanes(struct check_switch *sw)
{
	if (any(2)) {
		sw->sl = malloc(LIDS);
		assert_non_null(sw->sl);
		sw->n_sls = LIDS;
		for (unsigned lid = 0; lid < LIDS; lid++)
			sw->sl[lid] = any(3) ? (uint8_t)any(3) : CHECK_ANY_SL;
	}
	for (unsigned k = 1; k <= PORTS; k++) {
		sw->port[k].vls = any(4) ? 0 : (uint8_t)(1u << any(3));
		if (any(4))
			continue;
		sw->port[k].map = calloc(PORTS + 1, sizeof(*sw->port[k].map));
		assert_non_null(sw->port[k].map);
		for (unsigned in = 0; in <= PORTS; in++)
			for (unsigned sl = 0; sl < CHECK_SLS; sl++)
				sw->port[k].map[in][sl] = any(12) ? (uint8_t)any(3) : 15;
	}
}

/* The port towards switch @to by the fewest links, whichever comes first; or 0. */
static unsigned port_towards(uint32_t from, uint32_t to)
{
	unsigned far[SWITCHES];
	unsigned start = any(PORTS);

	for (uint32_t i = 0; i < net.n; i++)
		far[i] = i == to ? 0 : 99;
	for (unsigned again = 0; again < net.n; again++)
		for (uint32_t i = 0; i < net.n; i++)
			for (unsigned k = 1; k <= PORTS; k++) {
				const struct check_port *p = &net.sw[i].port[k];

				if (p->end == CHECK_TO_SWITCH && far[p->to] + 1 < far[i])
					far[i] = far[p->to] + 1;
			}
	for (unsigned i = 0; i < PORTS; i++) {
		unsigned k = 1 + (start + i) % PORTS;

		if (net.sw[from].port[k].end == CHECK_TO_SWITCH &&
		    far[net.sw[from].port[k].to] + 1 == far[from])
			return k;
	}
	return CHECK_NO_ROUTE;
}

/* @wild: one in so many entries is anything. */
static void fill_table(uint32_t i, unsigned wild)
{
	struct check_switch *sw = &net.sw[i];

	sw->n_lids = LIDS;
	sw->lft = malloc(LIDS);
	assert_non_null(sw->lft);
	memset(sw->lft, CHECK_NO_ROUTE, LIDS);
	for (uint32_t h = 0; h < net.n_hosts; h++)
		sw->lft[net.host[h].lid] =
		        (uint8_t)(net.host[h].at == i ? net.host[h].at_port
		                                      : port_towards(i, net.host[h].at));
	for (uint32_t k = 0; k < net.n; k++)
		sw->lft[net.sw[k].lid] = (uint8_t)(k == i ? 0 : port_towards(i, k));
	for (unsigned lid = 1; lid < LIDS; lid++)
		if (!any(wild))
			sw->lft[lid] = (uint8_t)any(PORTS + 2);
}

/* A tree to some hosts, or anything. */
static void fill_group(unsigned wild)
{
	struct check_group *g = check_add_group(&net);
	uint64_t rows[SWITCHES][CHECK_BLOCKS] = { { 0 } };

	assert_non_null(g);
	g->mlid = GROUP;
	g->sl = (uint8_t)any(3);
	for (uint32_t h = 0; h < net.n_hosts; h++) {
		const struct check_member m = { h, any(4) != 0, any(4) != 0 };
		uint32_t at = net.host[h].at;

		if (any(2))
			continue;
		assert_int_equal(check_add_member(g, &m), 0);
		if (m.receives)
			rows[at][0] |= 1ull << net.host[h].at_port;
		while (at) { /* towards switch 0; the first link that leads nearer is the tree's */
			unsigned k = 1;

			while (k <= PORTS && (net.sw[at].port[k].end != CHECK_TO_SWITCH ||
			                      net.sw[at].port[k].to >= at))
				k++;
			if (k > PORTS)
				break;
			rows[at][0] |= 1ull << k;
			rows[net.sw[at].port[k].to][0] |= 1ull << net.sw[at].port[k].to_port;
			at = net.sw[at].port[k].to;
		}
	}
	for (uint32_t i = 0; i < net.n; i++) {
		if (!any(wild))
			rows[i][0] ^= 1ull << (1 + any(PORTS));
		if (rows[i][0])
			assert_int_equal(check_add_row(&net, GROUP, i, rows[i]), 0);
	}
}

static void begin(void)
{
	uint32_t n = 2 + any(SWITCHES - 1), n_hosts = 0, host_at[SWITCHES * HOSTS];
	unsigned wild = any(2) ? 1000 : 10;

	for (uint32_t i = 0; i < n; i++)
		for (unsigned k = any(HOSTS + 1); k--;)
			host_at[n_hosts++] = i;
	assert_int_equal(check_net_init(&net, n, n_hosts), 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(check_set_ports(&net.sw[i], PORTS), 0);
		net.sw[i].lid = (uint16_t)(1 + n_hosts + i);
		snprintf(names[i], sizeof(names[i]), "s%u", i % 100);
		net.sw[i].name = names[i];
	}
	for (uint32_t h = 0; h < n_hosts; h++) {
		net.host[h].lid = (uint16_t)(1 + h);
		net.host[h].n_lids = 1;
		net.host[h].name = "h";
		check_link_host(&net, host_at[h], 1 + (h && host_at[h - 1] == host_at[h]), h);
	}
	link_by_chance();
	for (uint32_t i = 0; i < n; i++) {
		set_lanes(&net.sw[i]);
		fill_table(i, wild);
	}
	fill_group(wild);
	assert_int_equal(check_net_finish(&net), 0);
}

/* ---- the other judge ---- */

static bool waits[LANES][LANES];
static uint64_t routes[SWITCHES * (PORTS + 1)];
static bool no_lane[LIDS][SWITCHES][PORTS + 1][CHECK_SLS]; /* where what came in by a port ends */
static bool ends[LIDS][SWITCHES]; /* where messages to a LID of a host are lost, or go round */

struct crossing {
	uint32_t channel;
	unsigned in, lane;
};

/* The first of the crossings that has no lane. */
static unsigned first_without_lane(const struct crossing *c, unsigned n)
{
	unsigned i = 0;

	while (i < n && c[i].lane < CHECK_LANES)
		i++;
	return i;
}

static void add_waits(const struct crossing *c, unsigned n)
{
	for (unsigned i = 0; i + 1 < n && c[i + 1].lane < CHECK_LANES; i++)
		waits[c[i].channel * CHECK_LANES + c[i].lane]
		     [c[i + 1].channel * CHECK_LANES + c[i + 1].lane] = true;
}

/* A message from a host to a LID of @to (a host) or of switch @sw. */
static void send_message(uint32_t from, unsigned lid, uint32_t to, uint32_t sw)
{
	struct crossing crossed[MOST + 1];
	uint32_t at = net.host[from].at, least;
	unsigned in = net.host[from].at_port, n = 0, sl = CHECK_ANY_SL;
	bool arrives = false;

	if (net.sw[at].sl)
		sl = net.sw[at].sl[lid];
	sl = sl == CHECK_ANY_SL ? 0 : sl;
	while (n < MOST) {
		unsigned out = net.sw[at].lft[lid];
		const struct check_port *p = &net.sw[at].port[out <= PORTS ? out : 0];

		if (!out || out > PORTS || p->end != CHECK_TO_SWITCH) {
			arrives = !out ? to == CHECK_NONE && at == sw
			               : out <= PORTS && p->end == CHECK_TO_HOST && p->to == to;
			break;
		}
		crossed[n].channel = net.first[at] + out;
		crossed[n].in = in;
		crossed[n++].lane = check_lane(&net, at, out, in, sl);
		in = p->to_port;
		at = p->to;
	}
	least = at;
	for (unsigned i = 0; n == MOST && i < MOST; i++) { /* where it goes round */
		uint32_t passed = net.channel_at[crossed[i].channel];

		least = i >= MOST / 2 && passed < least ? passed : least;
	}
	if (!arrives && to != CHECK_NONE &&
	    net.sw[net.host[from].at].island == net.sw[net.host[to].at].island)
		ends[lid][least] = true;
	if (n == MOST)
		return;
	for (unsigned i = 0; i < n && to != CHECK_NONE; i++)
		routes[crossed[i].channel]++;
	if (arrives && to != CHECK_NONE) { /* the host's link */
		crossed[n].channel = net.first[at] + net.host[to].at_port;
		crossed[n].in = in;
		crossed[n].lane = check_lane(&net, at, net.host[to].at_port, in, sl);
		least = first_without_lane(crossed, n + 1);
		if (least <= n)
			no_lane[lid][net.channel_at[crossed[least].channel]][crossed[least].in]
			       [sl] = true;
	}
	/* what has no lane there goes no further */
	add_waits(crossed, first_without_lane(crossed, n));
}

static uint64_t count_no_lanes(void)
{
	const bool *all = &no_lane[0][0][0][0];
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(no_lane) / sizeof(*all); i++)
		n += all[i];
	return n;
}

static uint64_t send_all(void)
{
	uint64_t n = 0;

	memset(waits, 0, sizeof(waits));
	memset(routes, 0, sizeof(routes));
	memset(no_lane, 0, sizeof(no_lane));
	memset(ends, 0, sizeof(ends));
	for (uint32_t from = 0; from < net.n_hosts; from++) {
		for (uint32_t to = 0; to < net.n_hosts; to++)
			if (to != from)
				send_message(from, net.host[to].lid, to, CHECK_NONE);
		for (uint32_t sw = 0; sw < net.n; sw++)
			send_message(from, net.sw[sw].lid, CHECK_NONE, sw);
	}
	for (unsigned lid = 0; lid < LIDS; lid++)
		for (unsigned i = 0; i < SWITCHES; i++)
			n += ends[lid][i];
	return n + count_no_lanes();
}

static char colour[LANES];

static bool is_on_circle(unsigned v)
{
	if (colour[v])
		return colour[v] == 1;
	colour[v] = 1;
	for (unsigned i = 0; i < LANES; i++)
		if (waits[v][i] && is_on_circle(i))
			return true;
	colour[v] = 2;
	return false;
}

static bool has_circle(void)
{
	memset(colour, 0, sizeof(colour));
	for (unsigned v = 0; v < LANES; v++)
		if (is_on_circle(v))
			return true;
	return false;
}

/* ---- groups ---- */

static unsigned copies[SWITCHES * HOSTS];
static bool entered[SWITCHES][PORTS + 1], twice; /* by one message */
static bool flown[LANES], lacks_lane;

static const struct check_row *row_of(uint32_t sw)
{
	const struct check_tree *t = check_tree_of(&net, GROUP);

	for (uint32_t i = 0; t && i < t->n; i++)
		if (t->row[i].sw == sw)
			return &t->row[i];
	return NULL;
}

static void flood(uint32_t at, unsigned in, unsigned depth)
{
	const struct check_row *row = row_of(at);
	bool from_host = net.sw[at].port[in].end == CHECK_TO_HOST;

	twice |= entered[at][in] && !from_host;
	entered[at][in] = true;
	for (unsigned k = 1; row && k <= PORTS; k++) {
		const struct check_port *p = &net.sw[at].port[k];

		if (k == in || !check_row_has(row, k) || p->end == CHECK_TO_NOTHING)
			continue;
		if (p->end == CHECK_TO_HOST)
			copies[p->to]++;
		else if (depth)
			flood(p->to, p->to_port, depth - 1);
	}
}

/* @before: the lane of a link by which it came; LANES: none. */
static void fly(uint32_t at, unsigned in, unsigned sl, unsigned before)
{
	const struct check_row *row = row_of(at);

	for (unsigned k = 1; row && k <= PORTS; k++) {
		unsigned lane = check_lane(&net, at, k, in, sl), v;

		if (k == in || !check_row_has(row, k))
			continue;
		lacks_lane |= lane >= CHECK_LANES && net.sw[at].port[k].end != CHECK_TO_NOTHING;
		if (net.sw[at].port[k].end != CHECK_TO_SWITCH || lane >= CHECK_LANES)
			continue;
		v = (net.first[at] + k) * CHECK_LANES + lane;
		if (before < LANES)
			waits[before][v] = true;
		if (flown[v])
			continue;
		flown[v] = true;
		fly(net.sw[at].port[k].to, net.sw[at].port[k].to_port, sl, v);
	}
}

static bool receives(const struct check_group *g, uint32_t host)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->member[i].host == host && g->member[i].receives)
			return true;
	return false;
}

/* Whether a member's message is wrong for somebody. */
static bool group_is_wrong(void)
{
	const struct check_group *g = &net.group[0];
	bool wrong = false;

	memset(flown, 0, sizeof(flown));
	lacks_lane = false;
	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t from = g->member[i].host;

		if (!g->member[i].sends)
			continue;
		memset(copies, 0, sizeof(copies));
		memset(entered, 0, sizeof(entered));
		twice = false;
		flood(net.host[from].at, net.host[from].at_port, 9);
		wrong |= twice;
		for (uint32_t h = 0; h < net.n_hosts; h++) {
			bool wants = h != from && receives(g, h);

			if (wants &&
			    net.sw[net.host[h].at].island != net.sw[net.host[from].at].island)
				wants = false;
			wrong |= copies[h] != wants;
		}
		fly(net.host[from].at, net.host[from].at_port, g->sl, LANES);
	}
	return wrong || lacks_lane;
}

/* ---- both ---- */

static void compare(unsigned number, unsigned *found)
{
	struct check_report r = { .keep = 5 };
	bool unicast, wrong;
	uint64_t lost;

	begin();
	assert_int_equal(check_run(&net, &r), 0);
	lost = send_all();
	unicast = has_circle();
	if (unicast)
		memset(waits, 0, sizeof(waits));
	wrong = group_is_wrong();
	if (r.result[CHECK_PATHS].found != lost ||
	    (r.result[CHECK_DEADLOCK].found > 0) != unicast ||
	    (r.result[CHECK_DEADLOCK_GROUPS].found > 0) != has_circle() ||
	    (r.result[CHECK_GROUPS].found > 0) != wrong)
		fail_msg("subnet %u: lost %ju, not %ju; circle %ju, not %d; %ju, not %d; groups "
		         "%ju, "
		         "not %d",
		         number, (uintmax_t)r.result[CHECK_PATHS].found, (uintmax_t)lost,
		         (uintmax_t)r.result[CHECK_DEADLOCK].found, unicast,
		         (uintmax_t)r.result[CHECK_DEADLOCK_GROUPS].found, has_circle(),
		         (uintmax_t)r.result[CHECK_GROUPS].found, wrong);
	for (uint32_t c = 0; c < net.n_channels; c++)
		assert_int_equal(r.routes[c], routes[c]);
	found[0] += lost > 0;
	found[1] += unicast;
	found[2] += has_circle();
	found[3] += wrong;
	check_report_fini(&r);
	check_net_fini(&net);
}

CASE(both_judges_find_the_same)
{
	const char *more = getenv("UMBEL_FUZZ_SEEDS");
	unsigned n = more ? (unsigned)atoi(more) : 2000, found[4] = { 0 };

	for (unsigned i = 1; i <= n; i++) {
		seed = i;
		compare(i, found);
	}
	print_message("of %u subnets %u lose messages, %u and %u have circles, groups of %u are "
	              "wrong\n",
	              n, found[0], found[1], found[2], found[3]);
	for (unsigned i = 0; EACH_ROW(i, found); i++)
		assert_in_range(found[i], n / 100, n - n / 100);
}
