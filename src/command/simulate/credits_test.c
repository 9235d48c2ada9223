/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that wait for credits: times that can be computed by hand, what queueing theory says of
 * switches whose inputs have queues, links that wait for each other in circles and routes by which
 * they do not; what arbitration tables let lanes send; and on random fabrics each link is busy for
 * what it is said to carry.
 */
#include <harness.h>
#include <math.h>

#include "base/util.h"
#include "simulate/simulate.h"

#define HOP_NS    100
#define HOP_PS    ((uint64_t)HOP_NS * 1000)
#define MTU       4096
#define PACKET_PS ((uint64_t)(MTU + SIMULATE_HEADERS) * 80) /* at 100 Gb/s */
#define GROUP_PS  ((uint64_t)(MTU + SIMULATE_GROUP_HEADERS) * 80)
#define FABRICS   60

static unsigned seed;

static unsigned any(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

/* ---- fabrics ---- */

static struct simulation open_shape(const struct fabric_shape *shape, const char *routing)
{
	struct simulation s = { 0 };
	struct shm_settings settings;
	char why[256] = "";

	fabric_settings_default(&settings);
	assert_int_equal(fabric_settings_set(&settings, "routing", routing, false), 0);
	assert_int_equal(simulate_open(&s, shape, &settings, why, sizeof(why)), 0);
	return s;
}

/* On one switch. */
static struct simulation open_hosts(unsigned n)
{
	const struct fabric_shape shape = { .hosts = n };

	return open_shape(&shape, "minhop");
}

static struct simulation open_text(char *text, const char *routing)
{
	const struct fabric_shape shape = { .topology = "t",
		                            .text = text,
		                            .text_bytes = strlen(text) };

	return open_shape(&shape, routing);
}

/* Switches in a circle, with a host each. */
static struct simulation open_ring(unsigned n, const char *routing)
{
	char text[4096] = "";
	size_t len = 0;

	for (unsigned i = 0; i < n; i++)
		len += (size_t)sprintf(text + len,
		                       "Switch 4 \"s%u\"\n[1] \"h%u\"[1]\n[2] \"s%u\"[3]\n", i, i,
		                       (i + 1) % n);
	for (unsigned i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "Hca 1 \"h%u\"\n", i);
	return open_text(text, routing);
}

#define SWITCHES 10

/* A chain of switches with two hosts each, and more links between any of them. */
static struct simulation open_random(const char *routing)
{
	unsigned switches = 3 + any(SWITCHES - 2), cables = any(2 * switches), ports[SWITCHES];
	char section[SWITCHES][2048], text[SWITCHES * 2048] = "";
	size_t len[SWITCHES];

	for (unsigned i = 0; i < switches; i++) {
		ports[i] = 2;
		len[i] = (size_t)sprintf(
		        section[i], "Switch 60 \"S%u\"\n[1] \"H%u\"[1]\n[2] \"G%u\"[1]\n", i, i, i);
		sprintf(text + strlen(text), "Hca 1 \"H%u\"\nHca 1 \"G%u\"\n", i, i);
	}
	for (unsigned i = 0; i + 1 < switches + cables; i++) {
		unsigned a = i + 1 < switches ? i : any(switches);
		unsigned b = i + 1 < switches ? i + 1 : any(switches);

		if (a == b)
			continue;
		len[a] += (size_t)sprintf(section[a] + len[a], "[%u] \"S%u\"[%u]\n", ++ports[a], b,
		                          ports[b] + 1);
		ports[b]++;
	}
	for (unsigned i = 0; i < switches; i++)
		strcat(text, section[i]);
	return open_text(text, routing);
}

static void add_pairs(struct simulation *s, uint32_t from, uint32_t to, unsigned n)
{
	for (; n; n--)
		assert_int_equal(simulate_pattern_add_pair(&s->pattern, from, to), 0);
}

/* A group of the first @n hosts, to which number 0 sends so often. */
static void add_group(struct simulation *s, unsigned n, unsigned times)
{
	assert_int_equal(simulate_pattern_add_group(&s->pattern), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(simulate_list_add(&s->pattern.group[0].members, i), 0);
	for (s->pattern.group[0].has_senders = true; times; times--)
		assert_int_equal(simulate_list_add(&s->pattern.group[0].senders, 0), 0);
	assert_int_equal(simulate_join(s), 0);
}

static void run(struct simulation *s, uint64_t packets, unsigned buffer)
{
	const struct simulate_cost cost = { packets * MTU, HOP_NS };

	assert_int_equal(simulate_count(s), 0);
	assert_int_equal(simulate_credits(s, &cost, buffer), 0);
}

static void assert_all_arrived(const struct simulation *s)
{
	assert_int_equal(s->credits.stuck, 0);
	assert_int_equal(s->credits.sent, s->credits.to_send);
	for (uint32_t i = 0; i < s->credits.n_messages; i++)
		assert_int_equal(s->credits.message[i].received, s->credits.message[i].copies);
}

/* ---- by hand ---- */

CASE(a_link_that_always_has_credits_carries_its_rate)
{
	struct simulation s = open_hosts(2);

	add_pairs(&s, 0, 1, 1);
	run(&s, 1000, 4);
	assert_all_arrived(&s);
	assert_int_equal(s.credits.arrived_ps, 1000 * PACKET_PS + 2 * HOP_PS);
	assert_int_equal(s.credits.link[0].busy_ps, 1000 * PACKET_PS);
	assert_int_equal(s.credits.link[0].blocked_ps, 0);
	simulate_close(&s);
}

/* The next packet goes when the first one has left the switch and the credit is back. */
CASE(with_room_for_one_packet_a_link_waits_for_each_credit)
{
	const uint64_t period = PACKET_PS + 2 * HOP_PS;
	struct simulation s = open_hosts(2);

	add_pairs(&s, 0, 1, 1);
	run(&s, 1000, 1);
	assert_all_arrived(&s);
	assert_int_equal(s.credits.arrived_ps, 999 * period + PACKET_PS + 2 * HOP_PS);
	assert_int_equal(s.credits.link[0].blocked_ps, 999 * 2 * HOP_PS);
	simulate_close(&s);
}

/* D/D/1 with all customers at the start: number k is served after k times the service time. */
CASE(packets_for_one_host_are_served_one_after_the_other)
{
	struct simulation s = open_hosts(8);

	for (uint32_t i = 1; i < 8; i++)
		add_pairs(&s, i, 0, 1);
	run(&s, 1, 4);
	assert_all_arrived(&s);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(s.credits.message[i].arrived_ps, 2 * HOP_PS + (i + 1) * PACKET_PS);
	simulate_close(&s);
}

CASE(senders_to_one_host_share_its_link_equally)
{
	for (unsigned n = 2; n < 12; n++) {
		struct simulation s = open_hosts(n + 1);
		uint64_t end = 2 * HOP_PS + (uint64_t)n * 100 * PACKET_PS;

		for (uint32_t i = 1; i <= n; i++)
			add_pairs(&s, i, 0, 1);
		run(&s, 100, 4);
		assert_all_arrived(&s);
		assert_int_equal(s.credits.arrived_ps, end);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(s.credits.message[i].arrived_ps,
			                 end - (n - 1 - i) * PACKET_PS);
		simulate_close(&s);
	}
}

/* Hosts 0 and 1 are on one switch, the others on the next one. Host 1 could have the three quarters
 * of the link between that host 0, one of four who send to host 2, does not get, and be done after
 * 4/3 of its own time; but its packets stand behind those that wait for host 2. */
CASE(the_first_packet_of_a_queue_holds_up_those_behind)
{
	char text[] = "Switch 3 \"a\"\n[1] \"h0\"[1]\n[2] \"h1\"[1]\n[3] \"b\"[1]\n"
	              "Switch 9 \"b\"\n[2] \"h2\"[1]\n[3] \"h3\"[1]\n[4] \"h4\"[1]\n"
	              "[5] \"h5\"[1]\n[6] \"h6\"[1]\n"
	              "Hca 1 \"h0\"\nHca 1 \"h1\"\nHca 1 \"h2\"\nHca 1 \"h3\"\nHca 1 \"h4\"\n"
	              "Hca 1 \"h5\"\nHca 1 \"h6\"\n";
	struct simulation s = open_text(text, "minhop");
	const struct credits_message *m;

	add_pairs(&s, 0, 2, 1);
	add_pairs(&s, 1, 3, 1);
	for (uint32_t i = 4; i < 7; i++)
		add_pairs(&s, i, 2, 1);
	run(&s, 400, 4);
	assert_all_arrived(&s);
	m = s.credits.message;
	assert_true(m[0].arrived_ps >= 3 * HOP_PS + 4 * 400 * PACKET_PS);
	assert_in_range(m[1].arrived_ps, m[0].arrived_ps - 10 * PACKET_PS,
	                m[0].arrived_ps + 10 * PACKET_PS);
	simulate_close(&s);
}

/* Host 3 fills the link of host 2. */
CASE(a_packet_to_a_group_waits_for_its_last_copy)
{
	struct simulation s = open_hosts(4);
	const struct credits_message *m;

	add_group(&s, 3, 100);
	add_pairs(&s, 3, 2, 100);
	run(&s, 1, 4);
	assert_all_arrived(&s);
	assert_int_equal(s.credits.arrived_ps, 2 * HOP_PS + 100 * (GROUP_PS + PACKET_PS));
	m = &s.credits.message[100]; /* the first to the group: pairs come first */
	assert_int_equal(m->copies, 2);
	/* the two that are under way at the end wait for nobody */
	assert_true(s.credits.link[0].busy_ps == 100 * GROUP_PS);
	assert_true(s.credits.link[0].blocked_ps > 90 * PACKET_PS);
	assert_int_equal(s.credits.lane[0][0].most, 4);
	simulate_close(&s);
}

/* ---- by hand, without a fabric ---- */

/* Links of 100 Gb/s. */
static struct credits open_links(uint32_t n, uint32_t packets)
{
	struct credits c = { .hop_ps = HOP_PS,
		             .bytes = packets * MTU,
		             .mtu = MTU,
		             .headers = SIMULATE_HEADERS,
		             .buffer = 4 * credits_blocks(MTU + SIMULATE_HEADERS) };

	assert_int_equal(credits_open(&c, n), 0);
	for (uint32_t i = 0; i < n; i++)
		c.link[i].ps_per_byte = 80;
	return c;
}

/* A message on one lane of these links, of which the last leads to a host. */
static void send_over(struct credits *c, uint8_t lane, const uint32_t *links, unsigned n)
{
	struct credits_message m = { .copies = credits_packets(c) };
	uint32_t at = CREDITS_NONE;

	for (unsigned i = 0; i < n; i++) {
		const struct credits_hop hop = { .link = links[i],
			                         .lane = lane,
			                         .arrives = i + 1 == n };

		assert_int_equal(credits_add_hop(c, at, &hop, &at), 0);
		if (!i)
			m.hop = at;
	}
	assert_int_equal(credits_add_message(c, &m), 0);
}
#define SEND(c, lane, ...)                                    \
	send_over(c, lane, (const uint32_t[]){ __VA_ARGS__ }, \
	          ARRAY_SIZE(((const uint32_t[]){ __VA_ARGS__ })))

/* As in the_first_packet_of_a_queue_holds_up_those_behind(). */
CASE(another_lane_has_a_queue_of_its_own)
{
	struct credits c = open_links(8, 400);

	SEND(&c, 0, 0, 2, 3);
	SEND(&c, 1, 1, 2, 4);
	SEND(&c, 0, 5, 3);
	SEND(&c, 0, 6, 3);
	SEND(&c, 0, 7, 3);
	assert_int_equal(credits_run(&c), 0);
	assert_int_equal(c.stuck, 0);
	assert_in_range(c.message[0].arrived_ps, 1595 * PACKET_PS, 1601 * PACKET_PS);
	/* what host 0 sends in the meantime has its turn, and the buffer before it is filled */
	assert_in_range(c.message[1].arrived_ps, 533 * PACKET_PS, 550 * PACKET_PS);
	credits_fini(&c);
}

/* Three messages cross link 3, of which two are on one lane. */
CASE(lanes_take_turns)
{
	struct credits c = open_links(4, 100);

	SEND(&c, 1, 0, 3);
	SEND(&c, 0, 1, 3);
	SEND(&c, 0, 2, 3);
	assert_int_equal(credits_run(&c), 0);
	assert_int_equal(c.message[0].arrived_ps, 2 * HOP_PS + 200 * PACKET_PS);
	assert_int_equal(c.message[1].arrived_ps, 2 * HOP_PS + 299 * PACKET_PS);
	assert_int_equal(c.message[2].arrived_ps, 2 * HOP_PS + 300 * PACKET_PS);
	credits_fini(&c);
}

/* Though the other one's packet was looked at first. */
CASE(of_packets_that_come_together_the_lane_whose_turn_it_is_goes_first)
{
	struct credits c = open_links(3, 1);

	SEND(&c, 1, 0, 2);
	SEND(&c, 0, 1, 2);
	assert_int_equal(credits_run(&c), 0);
	assert_int_equal(c.message[0].arrived_ps, 2 * HOP_PS + 2 * PACKET_PS);
	assert_int_equal(c.message[1].arrived_ps, 2 * HOP_PS + PACKET_PS);
	credits_fini(&c);
}

/* Its bytes come no faster than the link before it has them. */
CASE(a_faster_link_does_not_run_out_of_bytes)
{
	struct credits c = open_links(3, 1);

	c.link[1].ps_per_byte = 20;
	SEND(&c, 0, 0, 1, 2);
	assert_int_equal(credits_run(&c), 0);
	assert_int_equal(c.link[1].busy_ps, PACKET_PS / 4);
	/* it waits for three quarters of the packet, and the next link begins with its head */
	assert_int_equal(c.arrived_ps, 3 * HOP_PS + PACKET_PS * 3 / 4 + PACKET_PS);
	credits_fini(&c);
}

/* ---- arbitration ---- */

#define BLOCKS  65 /* of a packet */
#define PACKETS 600

/* Messages that always have packets for link 3, on lanes 0 and 1. */
static struct credits compete(const struct credits_arbitration *a)
{
	struct credits c = open_links(4, PACKETS);

	c.arbitration = a;
	SEND(&c, 0, 0, 3);
	SEND(&c, 1, 1, 3);
	assert_int_equal(credits_unserved(&c), CREDITS_LANES);
	assert_int_equal(credits_run(&c), 0);
	assert_int_equal(c.stuck, 0);
	assert_int_equal(c.arrived_ps, 2 * HOP_PS + 2 * PACKETS * PACKET_PS);
	return c;
}

/* The lanes' shares while both want to send: as @a packets to @b. */
static void assert_shares(const struct credits *c, unsigned a, unsigned b)
{
	const uint64_t *shared = c->arbiter[3].shared, packet = MTU + SIMULATE_HEADERS;
	uint64_t x = shared[0] / packet, y = shared[1] / packet;

	if (x * b > y * a + a * b || x * b + a * b < y * a || x + y < PACKETS)
		fail_msg("%ju packets to %ju are not as %u to %u", (uintmax_t)x, (uintmax_t)y, a,
		         b);
}

CASE(lanes_share_a_link_by_their_weights)
{
	for (unsigned a = 1; a <= 3; a++)
		for (unsigned b = 1; b <= 3; b++) {
			const struct credits_arbitration tables = {
				.low = { { { 0, (uint8_t)(a * BLOCKS) },
				           { 1, (uint8_t)(b * BLOCKS) } },
				         2 }
			};
			struct credits c = compete(&tables);

			assert_shares(&c, a, b);
			credits_fini(&c);
		}
}

/* Rounds of three packets and one: all of lane 0 have gone with 200 of lane 1 before the last
 * three. */
CASE(with_weights_of_three_to_one_the_first_lane_is_done_at_two_thirds)
{
	const struct credits_arbitration a = { .low = { { { 0, 3 * BLOCKS }, { 1, BLOCKS } }, 2 } };
	struct credits c = compete(&a);

	assert_int_equal(c.message[0].arrived_ps,
	                 2 * HOP_PS + (PACKETS + PACKETS / 3 - 1) * PACKET_PS);
	assert_int_equal(c.message[1].arrived_ps, 2 * HOP_PS + 2 * PACKETS * PACKET_PS);
	assert_int_equal(c.arbiter[3].busy_ps[0], PACKETS * PACKET_PS);
	assert_int_equal(c.arbiter[3].busy_ps[1], PACKETS * PACKET_PS);
	credits_fini(&c);
}

/* The last packet of a turn may be more than what is left; and what is less than one is one. */
CASE(a_turn_has_whole_packets)
{
	static const struct {
		uint8_t weight, packets;
	} turns[] = {
		{ 1, 1 }, { 64, 1 }, { 65, 1 }, { 66, 2 }, { 130, 2 }, { 131, 3 }, { 255, 4 }
	};

	for (size_t i = 0; EACH_ROW(i, turns); i++) {
		const struct credits_arbitration a = {
			.low = { { { 0, turns[i].weight }, { 1, 1 } }, 2 }
		};
		struct credits c = compete(&a);

		assert_shares(&c, turns[i].packets, 1);
		credits_fini(&c);
	}
}

/* Weights of 0 are passed over, so are lanes that no packet has. */
CASE(a_lane_may_be_in_a_table_more_than_once)
{
	const struct credits_arbitration a = { .low = { { { 1, 0 },
		                                          { 0, BLOCKS },
		                                          { 7, 255 },
		                                          { 1, BLOCKS },
		                                          { 0, BLOCKS },
		                                          { 14, 9 } },
		                                        6 } };
	struct credits c = compete(&a);

	assert_shares(&c, 2, 1);
	credits_fini(&c);
}

CASE(high_priority_starves_low_without_a_limit)
{
	const struct credits_arbitration a = { .high = { { { 1, 1 } }, 1 },
		                               .low = { { { 0, 255 } }, 1 },
		                               .limit = CREDITS_NO_LIMIT };
	struct credits c = compete(&a);

	assert_int_equal(c.message[1].arrived_ps, 2 * HOP_PS + PACKETS * PACKET_PS);
	assert_int_equal(c.arbiter[3].shared[0], 0);
	credits_fini(&c);
}

/* After each 4096 bytes of it, in blocks, one packet of low priority; with 0, after each packet. */
CASE(a_limit_lets_low_priority_send)
{
	for (uint8_t limit = 0; limit <= 8; limit++) {
		const struct credits_arbitration a = { .high = { { { 1, 255 } }, 1 },
			                               .low = { { { 0, 255 } }, 1 },
			                               .limit = limit };
		struct credits c = compete(&a);

		assert_shares(&c, 1, limit ? limit : 1);
		credits_fini(&c);
	}
}

/* Lane 1's next link has a tenth of the rate, so its buffer is full for nine tenths of the time. */
CASE(high_priority_without_credits_holds_up_nobody)
{
	const struct credits_arbitration a = { .high = { { { 1, 1 } }, 1 },
		                               .low = { { { 0, 1 } }, 1 },
		                               .limit = CREDITS_NO_LIMIT };
	struct credits c = open_links(5, PACKETS);

	c.arbitration = &a;
	c.link[4].ps_per_byte = 800;
	SEND(&c, 0, 0, 3);
	SEND(&c, 1, 1, 3, 4);
	assert_int_equal(credits_run(&c), 0);
	assert_int_equal(c.stuck, 0);
	/* with four packets of lane 1 for the buffer at first, and one for each ten */
	assert_in_range(c.message[0].arrived_ps, PACKETS * PACKET_PS * 10 / 9,
	                (PACKETS * 10 / 9 + 8) * PACKET_PS);
	credits_fini(&c);
}

CASE(equal_weights_of_one_packet_are_turns)
{
	static const struct credits_arbitration equal = { .low = { { { 0, 1 },
		                                                     { 1, 1 },
		                                                     { 2, 1 },
		                                                     { 3, 1 },
		                                                     { 4, 1 },
		                                                     { 5, 1 },
		                                                     { 6, 1 },
		                                                     { 7, 1 } },
		                                                   8 } };

	for (unsigned n = 1; n <= 20; n++) {
		struct credits c[2] = { open_links(20, 5), open_links(20, 5) };

		c[1].arbitration = &equal;
		for (unsigned k = 0; k < 2; k++) {
			seed = n;
			for (unsigned i = 0; i < 60; i++) {
				uint8_t lane = (uint8_t)any(CREDITS_LANES);

				SEND(&c[k], lane, any(10), 10 + any(5), 15 + any(5));
			}
			assert_int_equal(credits_run(&c[k]), 0);
		}
		for (unsigned i = 0; i < 60; i++)
			assert_int_equal(c[0].message[i].arrived_ps, c[1].message[i].arrived_ps);
		credits_fini(&c[0]);
		credits_fini(&c[1]);
	}
}

CASE(a_lane_that_no_table_serves_is_found)
{
	const struct credits_arbitration a = { .high = { { { 1, 255 }, { 2, 0 } }, 2 },
		                               .low = { { { 0, 1 } }, 1 } };
	struct credits c = open_links(2, 1);

	c.arbitration = &a;
	SEND(&c, 0, 0, 1);
	SEND(&c, 1, 0, 1);
	assert_int_equal(credits_unserved(&c), CREDITS_LANES);
	SEND(&c, 2, 0, 1);
	assert_int_equal(credits_unserved(&c), 2);
	c.arbitration = NULL;
	assert_int_equal(credits_unserved(&c), CREDITS_LANES);
	credits_fini(&c);
}

/* ---- times ---- */

/* The second one comes when the first one's packet is half over, the third one to an idle link. */
CASE(messages_begin_at_their_times)
{
	static const uint64_t begins[] = { 0, PACKET_PS / 2, 5 * PACKET_PS };
	static const uint64_t took[] = { PACKET_PS, PACKET_PS * 3 / 2, PACKET_PS };
	struct credits c = open_links(4, 1);

	c.first_counted = 1;
	for (uint32_t i = 0; i < ARRAY_SIZE(begins); i++) {
		SEND(&c, 0, i, 3);
		c.message[i].begins_ps = begins[i];
	}
	assert_int_equal(credits_run(&c), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(begins); i++)
		assert_int_equal(credits_took_ps(&c.message[i]), 2 * HOP_PS + took[i]);
	assert_int_equal((uint64_t)c.queue_ps, 4 * HOP_PS + took[1] + took[2]);
	assert_int_equal(c.queue_last, 1);
	assert_int_equal(c.queue, 0);
	credits_fini(&c);
}

/* ---- queueing theory ---- */

/* How much of its rate each output of a switch carries if each of @n inputs always has a packet for
 * one of @n outputs, whichever chance says. */
static double throughput(unsigned n)
{
	const unsigned packets = 40000;
	struct simulation s = open_hosts(2 * n);
	struct simulate_random r = { .state = n };
	double busy;

	for (unsigned k = 0; k < packets; k++)
		for (uint32_t i = 0; i < n; i++)
			add_pairs(&s, i, n + simulate_random_below(&r, n), 1);
	run(&s, 1, 4);
	assert_all_arrived(&s);
	busy = (double)packets * (double)PACKET_PS / (double)s.credits.arrived_ps;
	simulate_close(&s);
	return busy;
}

/* M. J. Karol, M. G. Hluchyj, S. P. Morgan: Input versus output queueing on a space-division packet
 * switch, 1987, table I. */
CASE(queues_at_inputs_have_the_throughput_that_theory_says)
{
	static const double theory[] = {
		0, 1, 0.75, 0.6825, 0.6553, 0.6399, 0.6302, 0.6234, 0.6184
	};

	for (unsigned n = 1; n < ARRAY_SIZE(theory); n++) {
		double got = throughput(n);

		if (fabs(got - theory[n]) > 0.005)
			fail_msg("%u inputs carry %.4f, not %.4f", n, got, theory[n]);
	}
}

/* ---- circles ---- */

static void assert_circle(const struct simulation *s)
{
	const struct credits *c = &s->credits;

	assert_true(c->n_circle > 1);
	for (uint32_t i = 0; i < c->n_circle; i++) {
		const struct fabric_port *here = s->link_from[c->circle[i].link];
		const struct credits_wait *next = &c->circle[(i + 1) % c->n_circle];

		assert_ptr_equal(here->peer->node, s->link_from[next->link]->node);
		assert_int_not_equal(c->lane[next->link][next->lane].held, 0);
		assert_true(c->link[next->link].blocked_ps > 0);
	}
}

static void around_the_ring(struct simulation *s)
{
	assert_int_equal(simulate_pattern_shift(&s->pattern, s->f->n_ib_ports, 3), 0);
	run(s, 64, 4);
}

CASE(shortest_paths_around_a_ring_deadlock)
{
	struct simulation s = open_ring(7, "minhop");

	around_the_ring(&s);
	assert_true(s.credits.stuck > 0);
	assert_true(s.credits.sent < s.credits.to_send);
	assert_int_equal(s.credits.n_circle, 7);
	assert_circle(&s);
	simulate_close(&s);
}

CASE(other_paths_or_more_lanes_mend_that)
{
	static const char *const routing[] = { "updn", "dfsssp" };

	for (size_t i = 0; EACH_ROW(i, routing); i++) {
		struct simulation s = open_ring(7, routing[i]);

		around_the_ring(&s);
		assert_all_arrived(&s);
		assert_int_equal(s.credits.n_circle, 0);
		simulate_close(&s);
	}
}

/* ---- random fabrics ---- */

static void fill(struct simulation *s)
{
	const struct simulate_groups groups = { 2, 2 + any(s->f->n_ib_ports - 1) };
	struct simulate_random r = { seed };

	s->pattern.all_to_all = true;
	assert_int_equal(simulate_pattern_groups(&s->pattern, s->f->n_ib_ports, &groups, &r), 0);
	assert_int_equal(simulate_join(s), 0);
}

CASE(engines_that_promise_it_have_no_deadlock)
{
	static const char *const routing[] = { "updn", "ftree", "dfsssp" };

	for (seed = 1; seed <= FABRICS;) {
		struct simulation s = open_random(routing[seed % ARRAY_SIZE(routing)]);
		struct simulate_random r = { seed };
		unsigned was = seed;

		fill(&s);
		if (any(2) && !simulate_fail_links(&s, 1, &r))
			assert_int_equal(simulate_reroute(&s), 0);
		run(&s, 1, 1);
		assert_all_arrived(&s);
		simulate_close(&s);
		seed = was % 1000 + 1;
	}
}

/* Also of those that are lost on their way. */
CASE(links_are_busy_for_what_they_carry)
{
	for (unsigned n = 1; n <= FABRICS; n++) {
		struct simulation s;
		struct simulate_random r = { n };

		seed = n;
		s = open_random("updn");
		fill(&s);
		assert_int_equal(simulate_fail_links(&s, any(3), &r), 0);
		run(&s, 1, 1 + any(8));
		assert_all_arrived(&s);
		for (struct simulate_link l = { 0 }; simulate_next_link(&s, &l);) {
			uint64_t to_hosts = l.crossed.messages - l.crossed.to_groups;

			assert_int_equal(s.credits.link[simulate_link_number(&s, l.from)].busy_ps,
			                 to_hosts * PACKET_PS + l.crossed.to_groups * GROUP_PS);
		}
		simulate_close(&s);
	}
}

CASE(who_is_stuck_is_on_a_circle)
{
	unsigned stuck = 0;

	for (unsigned n = 1; n <= FABRICS; n++) {
		struct simulation s;

		seed = n;
		s = open_random("minhop");
		fill(&s);
		run(&s, 1, 1);
		if (s.credits.stuck)
			assert_circle(&s);
		else
			assert_all_arrived(&s);
		stuck += s.credits.stuck > 0;
		simulate_close(&s);
	}
	assert_in_range(stuck, 1, FABRICS - 1);
}
