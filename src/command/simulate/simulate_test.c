/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Simulations: counting together gives the same as single packets, on random fabrics and with
 * tables that lead anywhere; and patterns out of any text.
 */
#include <harness.h>

#include "base/util.h"
#include "simulate/simulate.h"

#define FABRICS 200

static unsigned seed;

static unsigned any(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

/* ---- fabrics ---- */

static struct simulation open_shape(const struct fabric_shape *shape)
{
	struct simulation s = { 0 };
	struct shm_settings settings;
	char why[256] = "";

	fabric_settings_default(&settings);
	settings.routing = any(3);
	settings.lmc = any(4) ? 0 : 1;
	assert_int_equal(simulate_open(&s, shape, &settings, why, sizeof(why)), 0);
	return s;
}

static struct simulation open_text(char *text)
{
	const struct fabric_shape shape = { .topology = "t",
		                            .text = text,
		                            .text_bytes = strlen(text) };

	return open_shape(&shape);
}

static struct simulation open_hosts(unsigned n)
{
	const struct fabric_shape shape = { .hosts = n };

	return open_shape(&shape);
}

#define SWITCHES 12
#define HOSTS    15

/* Switches with cables between any two, and hosts on any; not all need be connected. */
static struct simulation open_random(void)
{
	unsigned switches = 1 + any(SWITCHES), hosts = 2 + any(HOSTS - 1);
	unsigned cables = any(3 * switches), ports[SWITCHES] = { 0 };
	char section[SWITCHES][2048], text[SWITCHES * 2048 + HOSTS * 64] = "";
	size_t len[SWITCHES];

	for (unsigned i = 0; i < switches; i++)
		len[i] = (size_t)sprintf(section[i], "Switch 100 \"S%u\"\n", i);
	for (unsigned i = 0; i < hosts; i++) {
		unsigned at = any(switches);

		sprintf(text + strlen(text), "Hca 1 \"H%u\"\n[1] \"S%u\"[%u]\n", i, at,
		        ++ports[at]);
	}
	for (; cables; cables--) {
		unsigned a = any(switches), b = any(switches);

		if (a == b)
			continue;
		len[a] += (size_t)sprintf(section[a] + len[a], "[%u] \"S%u\"[%u]\n", ++ports[a], b,
		                          ports[b] + 1);
		ports[b]++;
	}
	for (unsigned i = 0; i < switches; i++)
		strcat(text, section[i]);
	return open_text(text);
}

/* A chain of so many switches, with a host on each. */
static struct simulation open_chain(unsigned n)
{
	static char text[1 << 16];
	size_t len = 0;

	for (unsigned i = 0; i < n; i++) {
		len += (size_t)sprintf(text + len, "Switch 4 \"S%u\"\n[1] \"H%u\"[1]\n", i, i);
		if (i + 1 < n)
			len += (size_t)sprintf(text + len, "[2] \"S%u\"[3]\n", i + 1);
	}
	for (unsigned i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "Hca 1 \"H%u\"\n", i);
	return open_text(text);
}

static void fail_some(struct simulation *s)
{
	struct simulate_random r = { seed };
	unsigned reroute = any(3);
	int ret = any(2) ? simulate_fail_links(s, 1, &r) : simulate_fail_switches(s, 1, &r);

	assert_true(!ret || ret == -ERANGE);
	if (reroute)
		assert_int_equal(simulate_reroute(s), 0);
}

/* ---- comparing ---- */

static void assert_same_sum(const struct simulation *a, const struct simulation *b)
{
	assert_memory_equal(&a->net.sum, &b->net.sum, sizeof(a->net.sum));
}

static void assert_same_links(const struct simulation *a, const struct simulation *b)
{
	struct simulate_link x = { 0 }, y = { 0 };

	while (simulate_next_link(a, &x)) {
		assert_ptr_equal(simulate_next_link(b, &y), x.from);
		assert_int_equal(x.crossed.messages, y.crossed.messages);
	}
	assert_null(simulate_next_link(b, &y));
}

/* The same fabric with another pattern; only its own things are to be freed. */
static struct simulation again(const struct simulation *s)
{
	return (struct simulation){ .f = s->f, .sm = s->sm };
}

static void close_again(struct simulation *s)
{
	s->f = NULL;
	s->sm = NULL;
	simulate_close(s);
}

static void add_all_pairs(struct simulation *s)
{
	for (unsigned from = 0; from < s->f->n_ib_ports; from++)
		for (unsigned to = 0; to < s->f->n_ib_ports; to++)
			if (from != to)
				assert_int_equal(simulate_pattern_add_pair(&s->pattern, from, to),
				                 0);
}

static void count_both(struct simulation *all, struct simulation *pairs)
{
	all->pattern.all_to_all = true;
	add_all_pairs(pairs);
	assert_int_equal(simulate_count(all), 0);
	assert_int_equal(simulate_count(pairs), 0);
}

/* ---- all to all ---- */

CASE(all_to_all_is_all_pairs)
{
	for (seed = 1; seed <= FABRICS; seed++) {
		struct simulation all = open_random(), pairs = again(&all);

		fail_some(&all);
		count_both(&all, &pairs);
		assert_same_sum(&all, &pairs);
		assert_same_links(&all, &pairs);
		close_again(&pairs);
		simulate_close(&all);
	}
}

/* Packets that circle or go astray are lost. A walk pair by pair counts their circles, so links may
 * differ. */
CASE(tables_that_lead_anywhere_lose_the_same)
{
	for (seed = 1; seed <= FABRICS; seed++) {
		struct simulation all = open_random(), pairs = again(&all);

		for (unsigned i = 0; i < all.f->n_nodes; i++) {
			struct fabric_node *sw = all.f->node[i];

			for (unsigned n = 10; sw->type == FABRIC_SWITCH && n; n--)
				assert_int_equal(fabric_lft_set(sw, (uint16_t)(1 + any(40)),
				                                (uint8_t)any(256)),
				                 0);
		}
		count_both(&all, &pairs);
		assert_same_sum(&all, &pairs);
		close_again(&pairs);
		simulate_close(&all);
	}
}

CASE(more_switches_than_a_packet_may_cross_lose_it)
{
	struct simulation all, pairs;

	for (unsigned n = 63; n <= 67; n++) {
		seed = 1;
		all = open_chain(n);
		pairs = again(&all);
		count_both(&all, &pairs);
		assert_same_sum(&all, &pairs);
		if (n <= LOAD_MAX_SWITCHES)
			assert_same_links(&all, &pairs);
		/* from both ends: 1 pair with 65 switches, 2 with 65 and 1 with 66, ... */
		assert_int_equal(all.net.sum.lost, n <= 64 ? 0 : (n - 64) * (n - 63));
		close_again(&pairs);
		simulate_close(&all);
	}
}

CASE(the_links_of_one_switch_carry_what_one_expects)
{
	struct simulate_time t;
	struct simulation s;

	seed = 4; /* lmc=0 */
	s = open_hosts(8);
	s.pattern.all_to_all = true;
	assert_int_equal(simulate_count(&s), 0);
	assert_int_equal(s.net.sum.sent, 56);
	assert_int_equal(s.net.sum.lost, 0);
	assert_int_equal(s.net.sum.links[2], 56);
	for (struct simulate_link l = { 0 }; simulate_next_link(&s, &l);)
		assert_int_equal(l.crossed.messages, 7);
	/* 7 messages of 10,000 bytes in 3 packets at 100 Gb/s, and 2 links */
	simulate_time(&s, &(struct simulate_cost){ 10000, 150 }, &t);
	assert_int_equal((int)(t.transfer_ns * 100 + 0.5), 7 * 10078 * 8);
	assert_int_equal((int)t.hosts_ns, (int)t.transfer_ns);
	assert_int_equal((int)t.path_ns, 300);
	simulate_close(&s);
}

/* ---- groups ---- */

CASE(a_message_to_a_group_is_a_datagram)
{
	const struct simulate_groups groups = { 1, 4 };
	struct simulate_random r = { .state = 1 };
	struct simulate_time t;
	struct simulation s;

	seed = 4; /* lmc=0 */
	s = open_hosts(4);
	assert_int_equal(simulate_check_size(&s, 1 << 20), 0);
	assert_int_equal(simulate_pattern_groups(&s.pattern, 4, &groups, &r), 0);
	assert_int_equal(simulate_check_size(&s, IB_MTU_BYTES(s.f->settings.mtu)), 0);
	assert_int_equal(simulate_check_size(&s, IB_MTU_BYTES(s.f->settings.mtu) + 1), -EMSGSIZE);
	assert_int_equal(simulate_pattern_shift(&s.pattern, 4, 1), 0);
	assert_int_equal(simulate_join(&s), 0);
	assert_int_equal(simulate_count(&s), 0);
	for (struct simulate_link l = { 0 }; simulate_next_link(&s, &l);)
		assert_int_equal(l.crossed.messages - l.crossed.to_groups, 1);
	/* to each host, at 100 Gb/s: 3 messages with 74 bytes of headers, and one with 26 */
	simulate_time(&s, &(struct simulate_cost){ 64, 150 }, &t);
	assert_int_equal((int)(t.transfer_ns * 100 + 0.5), (3 * (64 + 74) + 64 + 26) * 8);
	simulate_close(&s);
}

/* Each message by itself. */
static void hop(void *arg, struct fabric_port *out, uint8_t in, uint8_t vl)
{
	const struct simulation *s = arg;

	(void)in;
	(void)vl;
	simulate_link_at(s, out)->messages++;
}

static void reached(void *arg, struct fabric_port *hca)
{
	struct simulation *s = arg;

	(void)hca;
	s->net.sum.sent++;
}

/* Sums the packets up in @one, with the copies that reach their senders. */
static void walk_each(const struct simulation *s, struct simulation *one)
{
	struct fabric_walk walk = { .hop = hop, .reached = reached, .arg = one };

	assert_int_equal(simulate_count(one), 0);
	for (unsigned i = 0; i < s->pattern.n_groups; i++) {
		const struct simulate_group *g = &s->pattern.group[i];
		const struct simulate_list *from = g->has_senders ? &g->senders : &g->members;

		for (unsigned k = 0; k < from->n; k++)
			fabric_walk_multicast(s->f, s->f->hca_port[from->host[k]], SIMULATE_MLID(i),
			                      &walk);
	}
}

/* Copies that senders whose ports are up get of their own packets. */
static uint64_t own_copies(const struct simulation *s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < s->pattern.n_groups; i++) {
		const struct simulate_group *g = &s->pattern.group[i];
		const struct simulate_list *from = g->has_senders ? &g->senders : &g->members;

		for (unsigned k = 0; k < from->n; k++)
			for (unsigned m = 0; m < g->members.n; m++)
				n += g->members.host[m] == from->host[k] &&
				     s->net.host[from->host[k]].at != LOAD_NOWHERE;
	}
	return n;
}

CASE(messages_to_groups_are_those_of_single_senders)
{
	for (seed = 1; seed <= FABRICS; seed++) {
		struct simulation s = open_random(), one = again(&s);
		const struct simulate_groups groups = { 3, 2 + any(s.f->n_ib_ports - 1) };
		struct simulate_random r = { seed };

		assert_int_equal(simulate_pattern_groups(&s.pattern, s.f->n_ib_ports, &groups, &r),
		                 0);
		s.pattern.group[2].has_senders = true;
		for (unsigned n = 5; n; n--)
			assert_int_equal(simulate_list_add(&s.pattern.group[2].senders,
			                                   any(s.f->n_ib_ports)),
			                 0);
		assert_int_equal(simulate_join(&s), 0);
		fail_some(&s);
		assert_int_equal(simulate_count(&s), 0);
		walk_each(&s, &one);
		assert_same_links(&s, &one);
		assert_int_equal(s.net.sum.sent - s.net.sum.lost,
		                 one.net.sum.sent - own_copies(&s));
		close_again(&one);
		simulate_close(&s);
	}
}

CASE(more_groups_than_switches_have_room_for_are_refused)
{
	const struct simulate_groups groups = { 3, 2 };
	struct simulate_random r = { 1 };
	struct simulation s;

	seed = 1;
	s = open_hosts(4);
	s.f->settings.mft_capacity = 3; /* one of them is that of IP over InfiniBand */
	assert_int_equal(simulate_pattern_groups(&s.pattern, 4, &groups, &r), 0);
	assert_int_equal(simulate_join(&s), -ENOSPC);
	simulate_close(&s);
}

/* ---- failures ---- */

CASE(what_cannot_fail_is_refused)
{
	struct simulate_random r = { 1 };
	struct simulation s;

	seed = 1;
	s = open_hosts(40); /* 2 switches with hosts and one above */
	assert_int_equal(simulate_fail(&s, (char[FABRIC_NAME]){ "sw7" }, 0), -ENOENT);
	assert_int_equal(simulate_fail(&s, (char[FABRIC_NAME]){ "h1" }, 0), -ENOTTY);
	assert_int_equal(simulate_fail(&s, (char[FABRIC_NAME]){ "h1" }, 2), -ERANGE);
	assert_int_equal(simulate_fail(&s, (char[FABRIC_NAME]){ "h1" }, 1), 0);
	assert_int_equal(simulate_fail(&s, (char[FABRIC_NAME]){ "h1" }, 1), -EALREADY);
	assert_int_equal(simulate_fail_links(&s, 1000, &r), -ERANGE);
	assert_int_equal(simulate_fail_switches(&s, s.f->n_switches + 1, &r), -ERANGE);
	assert_int_equal(simulate_fail_switches(&s, s.f->n_switches, &r), 0);
	assert_int_equal(simulate_fail_links(&s, 1, &r), -ERANGE);
	assert_int_equal(s.n_failed, s.f->n_switches + 1);
	assert_int_equal(simulate_reroute(&s), 0);
	s.pattern.all_to_all = true;
	assert_int_equal(simulate_count(&s), 0);
	assert_int_equal(s.net.sum.sent, 40 * 39);
	assert_int_equal(s.net.sum.lost, 40 * 39);
	simulate_close(&s);
}

/* ---- patterns ---- */

CASE(in_a_permutation_each_host_is_sent_to_by_another_one)
{
	for (unsigned n = 2; n < 50; n++) {
		struct simulate_pattern p = { 0 };
		struct simulate_random r = { n };
		bool to[50] = { false };

		assert_int_equal(simulate_pattern_permutation(&p, n, &r), 0);
		assert_int_equal(p.n_pairs, n);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(p.pair[i].from, i);
			assert_int_not_equal(p.pair[i].to, i);
			assert_false(to[p.pair[i].to]);
			to[p.pair[i].to] = true;
		}
		simulate_pattern_fini(&p);
	}
}

static int read_text(struct simulation *s, const char *text, size_t n, char why[static 256])
{
	const struct simulate_pattern_file file = { "p", text, n };
	int ret = simulate_pattern_read(&s->pattern, s->f, &file, why, 256);

	return ret;
}

CASE(files_say_what_they_mean)
{
	static const char text[] = "# nothing\n\nunicast h1 h2 h4 # and so on\n"
	                           "  group\th3 umbel_h1_0 h3 h1:1\nmulticast h2 h2\n"
	                           "unicast h3 h3\nsl 15\ngroup h4";
	struct simulation s;
	char why[256] = "";

	seed = 1;
	s = open_hosts(4);
	assert_int_equal(read_text(&s, text, strlen(text), why), 0);
	assert_int_equal(s.pattern.n_pairs, 3);
	assert_int_equal(s.pattern.pair[1].to, 3);
	assert_int_equal(s.pattern.n_groups, 2);
	assert_int_equal(s.pattern.group[0].members.n, 2);
	assert_int_equal(s.pattern.group[0].senders.n, 2);
	assert_false(s.pattern.group[1].has_senders);
	assert_int_equal(s.pattern.pair[2].sl, 0);
	assert_int_equal(s.pattern.group[0].sl, 0);
	assert_int_equal(s.pattern.group[1].sl, 15);
	simulate_close(&s);
}

CASE(what_is_wrong_in_a_file_is_said_with_its_line)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "unicast h1 h2\n\nunicast h1 h9", "p:3: no host 'h9'" },
		{ "unicast", "p:1: who sends? 'unicast'" },
		{ "multicast h1", "p:1: a line 'group' must come before 'multicast'" },
		{ "group h1:2", "p:1: there are fewer ports of 'h1'" },
		{ "group h1:0", "p:1: no port 'h1:0'" },
		{ "group h1:", "p:1: no port 'h1:'" },
		{ "group :1", "p:1: no host ''" },
		{ "send h1", "p:1: want unicast, group, multicast or sl, not 'send'" },
		{ "sl", "p:1: no service level ''" },
		{ "sl 16", "p:1: no service level '16'" },
		{ "sl -1", "p:1: no service level '-1'" },
		{ "sl 1 h2", "p:1: one service level, without 'h2'" },
		{ "group sw1", "p:1: no host 'sw1'" },
		{ "group \x01\xff", "p:1: no host '?\?'" },
	};

	seed = 1;
	for (size_t i = 0; EACH_ROW(i, wrong); i++) {
		struct simulation s = open_hosts(4);
		char why[256] = "";

		assert_int_equal(read_text(&s, wrong[i].text, strlen(wrong[i].text), why), -EINVAL);
		assert_string_equal(why, wrong[i].why);
		simulate_close(&s);
	}
}

CASE(no_text_does_harm)
{
	static const char *const words[] = { "sl ", "7",     "unicast ", "group ", "multicast ",
		                             "h1 ", "h2:1 ", "h3",       "\n",     "#",
		                             ":",   "",      " ",        "\t",     "umbel_h4_0\n" };
	struct simulation s;
	char text[500], why[256];

	seed = 1;
	s = open_hosts(4);
	for (unsigned n = 20000; n; n--) {
		size_t len = 0;

		for (unsigned k = any(30); k && len < 300; k--) {
			const char *word = words[any(ARRAY_SIZE(words))];

			memcpy(text + len, word, strlen(word));
			len += strlen(word);
			if (!any(5))
				text[len++] = (char)any(256);
			if (!any(20)) {
				memset(text + len, 'x', 90);
				len += 90;
			}
		}
		read_text(&s, text, len, why);
		simulate_pattern_fini(&s.pattern);
		s.pattern = (struct simulate_pattern){ 0 };
	}
	simulate_close(&s);
}
