/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages that begin by an offered load, against queueing theory: the waits by Lindley's recursion
 * from the same times, to the picosecond, and the means by formulae, within the error of the
 * sample. Little's law holds for the counts.
 */
#include <harness.h>
#include <math.h>

#include "base/util.h"
#include "simulate/simulate.h"

#define HOP_NS 100
#define HOP_PS ((uint64_t)HOP_NS * 1000)
#define MTU    4096
#define S_PS   ((uint64_t)(MTU + SIMULATE_HEADERS) * 80) /* a packet at 100 Gb/s: the service */
#define BUFFER 4

/* ---- fabrics ---- */

static struct simulation open_shape(const struct fabric_shape *shape)
{
	struct simulation s = { 0 };
	struct shm_settings settings;
	char why[256] = "";

	fabric_settings_default(&settings);
	assert_int_equal(simulate_open(&s, shape, &settings, why, sizeof(why)), 0);
	return s;
}

/* Hosts 1 to @n send to host 0, all on one switch. */
static struct simulation open_star(unsigned n)
{
	const struct fabric_shape shape = { .hosts = n + 1 };
	struct simulation s = open_shape(&shape);

	for (uint32_t i = 1; i <= n; i++)
		assert_int_equal(simulate_pattern_add_pair(&s.pattern, i, 0), 0);
	return s;
}

/* Two switches: hosts 1 to 3 on the first one, 0 and 4 to 6 on the second one. */
static struct simulation open_tandem(void)
{
	char text[] = "Switch 9 \"a\"\n[1] \"h1\"[1]\n[2] \"h2\"[1]\n[3] \"h3\"[1]\n[4] \"b\"[1]\n"
	              "Switch 9 \"b\"\n[2] \"h0\"[1]\n[3] \"h4\"[1]\n[4] \"h5\"[1]\n[5] \"h6\"[1]\n"
	              "Hca 1 \"h0\"\nHca 1 \"h1\"\nHca 1 \"h2\"\nHca 1 \"h3\"\nHca 1 \"h4\"\n"
	              "Hca 1 \"h5\"\nHca 1 \"h6\"\n";
	const struct fabric_shape shape = { .topology = "t",
		                            .text = text,
		                            .text_bytes = strlen(text) };

	return open_shape(&shape);
}

/* Messages of so many packets of the MTU. */
static void run(struct simulation *s, struct simulate_arrivals *a, unsigned packets)
{
	const struct simulate_cost cost = { (uint64_t)packets * MTU, HOP_NS };

	s->arrivals = a;
	assert_int_equal(simulate_count(s), 0);
	assert_int_equal(simulate_credits(s, &cost, BUFFER), 0);
	assert_int_equal(s->credits.n_messages, a->messages);
	assert_int_equal(s->credits.stuck, 0);
	for (uint32_t i = 0; i < s->credits.n_messages; i++)
		assert_true(credits_has_arrived(&s->credits.message[i]));
}

/* ---- theory ---- */

/* How long the message waited for others: its time, less the time of a packet alone over @links. */
static uint64_t waited(const struct credits_message *m, unsigned links)
{
	return credits_took_ps(m) - S_PS - links * HOP_PS;
}

/* Pollaczek and Khinchine, for M/D/1. */
static double wait_of(double load)
{
	return load * (double)S_PS / (2 * (1 - load));
}

/* The mean of what is counted, and its standard error by the means of batches. */
#define BATCHES 30
struct sample {
	double mean, error;
};

static struct sample sample_of(const struct credits *c, unsigned links)
{
	uint32_t n = (c->n_messages - c->first_counted) / BATCHES;
	double batch[BATCHES] = { 0 }, squares = 0;
	struct sample s = { 0 };

	for (uint32_t i = 0; i < BATCHES * n; i++)
		batch[i / n] += (double)waited(&c->message[c->first_counted + i], links) / n;
	for (unsigned i = 0; i < BATCHES; i++)
		s.mean += batch[i] / BATCHES;
	for (unsigned i = 0; i < BATCHES; i++)
		squares += (batch[i] - s.mean) * (batch[i] - s.mean);
	s.error = sqrt(squares / (BATCHES - 1) / BATCHES);
	return s;
}

/* Within three standard errors, which must be small enough to say something. */
static void assert_wait(const struct sample *s, double theory)
{
	if (fabs(s->mean - theory) > 3 * s->error)
		fail_msg("the wait is %.0f ps +- %.0f, not %.0f", s->mean, s->error, theory);
	if (s->error > 0.03 * theory)
		fail_msg("the error, %.0f ps, says nothing of %.0f", s->error, theory);
}

static int by_size(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/*
 * The sum of what all messages wait for one server, by Lindley's recursion: if messages reach it
 * after links_of() links. Links of equal rate that lead to it, also by other links, do not make it
 * idle: while a packet waits at one of these links, the message whose packet the link is sending
 * has reached the server.
 */
static uint64_t lindley(const struct credits *c,
                        unsigned (*links_of)(const struct credits_message *))
{
	uint64_t *at = calloc(c->n_messages, sizeof(*at)), sum = 0, free_ps = 0;

	assert_non_null(at);
	for (uint32_t i = 0; i < c->n_messages; i++)
		at[i] = c->message[i].begins_ps + links_of(&c->message[i]) * HOP_PS;
	qsort(at, c->n_messages, sizeof(*at), by_size);
	for (uint32_t i = 0; i < c->n_messages; i++) {
		sum += free_ps > at[i] ? free_ps - at[i] : 0;
		free_ps = (free_ps > at[i] ? free_ps : at[i]) + S_PS;
	}
	free(at);
	return sum;
}

static unsigned one_link(const struct credits_message *m)
{
	(void)m;
	return 1;
}

static unsigned links_in_tandem(const struct credits_message *m)
{
	return m->from <= 3 ? 2 : 1;
}

static uint64_t sum_of_waits(const struct credits *c,
                             unsigned (*links_of)(const struct credits_message *))
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < c->n_messages; i++)
		sum += waited(&c->message[i], links_of(&c->message[i]) + 1);
	return sum;
}

/* ---- chance ---- */

CASE(exponential_numbers_are_exponential)
{
	struct simulate_random r = { 1 };
	const unsigned n = 1000000;
	double sum = 0, squares = 0;
	unsigned over[6] = { 0 };

	for (unsigned i = 0; i < n; i++) {
		double x = simulate_random_exponential(&r);

		sum += x;
		squares += x * x;
		for (unsigned k = 0; k < ARRAY_SIZE(over); k++)
			over[k] += x > k * 0.5;
	}
	assert_true(fabs(sum / n - 1) < 0.004);
	assert_true(fabs(squares / n - 2) < 0.02);
	for (unsigned k = 0; EACH_ROW(k, over); k++)
		assert_true(fabs(over[k] / (double)n - exp(-0.5 * k)) < 0.002);
}

/* Each sender's load, and how often it sends to each receiver. */
CASE(senders_offer_their_load_to_all_alike)
{
	struct simulate_arrivals a = { .load = 0.2, .messages = 120000, .random = { 3 } };
	const struct fabric_shape shape = { .hosts = 4 };
	struct simulation s = open_shape(&shape);
	unsigned sent[4][4] = { 0 };
	uint64_t end;

	s.pattern.all_to_all = true;
	run(&s, &a, 2);
	end = s.credits.message[a.messages - 1].begins_ps;
	for (uint32_t i = 0; i < a.messages; i++) {
		const struct credits_message *m = &s.credits.message[i];

		assert_true(!i || m->begins_ps >= m[-1].begins_ps);
		sent[m->from][m->to]++;
	}
	for (unsigned from = 0; from < 4; from++)
		for (unsigned to = 0; to < 4; to++) /* the error of 10,000 is 100 */
			assert_in_range(sent[from][to], from == to ? 0 : 9600,
			                from == to ? 0 : 10400);
	assert_true(fabs(a.messages / 4.0 * 2 * S_PS / (double)end - 0.2) < 0.004);
	simulate_close(&s);
}

CASE(the_same_seed_has_the_same_course)
{
	struct simulate_times t[3];

	for (unsigned i = 0; i < 3; i++) {
		struct simulate_arrivals a = { .load = 0.1, .messages = 1000, .random = { i / 2 } };
		struct simulation s = open_star(5);

		run(&s, &a, 1);
		assert_int_equal(simulate_times(&s.credits, &t[i]), 0);
		simulate_close(&s);
	}
	assert_memory_equal(&t[0], &t[1], sizeof(t[0]));
	assert_true(t[0].mean_ps != t[2].mean_ps);
}

/* ---- equal gaps ---- */

/* D/D/1. */
CASE(one_sender_with_equal_gaps_never_waits)
{
	static const double loads[] = { 0.1, 0.7, 1 };

	for (size_t i = 0; EACH_ROW(i, loads); i++) {
		struct simulate_arrivals a = {
			.load = loads[i], .even = true, .messages = 10000, .random = { 1 }
		};
		struct simulation s = open_star(1);
		struct simulate_times t;

		run(&s, &a, 1);
		assert_int_equal(simulate_times(&s.credits, &t), 0);
		assert_int_equal(t.n, 9000);
		assert_int_equal(t.most_ps, S_PS + 2 * HOP_PS);
		assert_true(t.mean_ps == (double)t.most_ps);
		assert_int_equal(t.p99_ps, t.most_ps);
		simulate_close(&s);
	}
}

/* The second one waits each time, if it begins before the first one's packet has gone. */
CASE(of_two_equal_streams_one_waits_for_what_is_left_of_the_other)
{
	unsigned waited_at_all = 0;

	for (unsigned seed = 1; seed <= 20; seed++) {
		struct simulate_arrivals a = {
			.load = 0.4, .even = true, .messages = 1000, .random = { seed }
		};
		struct simulation s = open_star(2);
		const struct credits_message *m;
		uint64_t apart;

		run(&s, &a, 1);
		m = s.credits.message;
		/* which of them is the first one in a round changes nothing: 2.5 S are a round */
		apart = m[1].begins_ps - m[0].begins_ps;
		for (uint32_t i = 2; i < a.messages; i++) {
			uint64_t gap = m[i].begins_ps - m[i - 1].begins_ps;

			assert_int_equal(gap, i % 2 ? apart : S_PS * 5 / 2 - apart);
			assert_int_equal(waited(&m[i], 2), gap < S_PS ? S_PS - gap : 0);
			waited_at_all += gap < S_PS;
		}
		simulate_close(&s);
	}
	assert_in_range(waited_at_all, 5 * 499, 19 * 499);
}

/* N*D/D/1: nobody waits for more than one packet of each other sender. */
CASE(equal_streams_wait_for_one_packet_of_each_other_at_most)
{
	uint64_t most = 0;

	for (unsigned seed = 1; seed <= 10; seed++) {
		struct simulate_arrivals a = {
			.load = 0.1, .even = true, .messages = 5000, .random = { seed }
		};
		struct simulation s = open_star(10);

		run(&s, &a, 1);
		assert_int_equal(sum_of_waits(&s.credits, one_link), lindley(&s.credits, one_link));
		for (uint32_t i = 0; i < a.messages; i++) {
			uint64_t w = waited(&s.credits.message[i], 2);

			assert_true(w <= 9 * S_PS);
			most = w > most ? w : most;
		}
		simulate_close(&s);
	}
	assert_true(most > S_PS);
}

/* The time for a packet is no whole number of picoseconds, as with a rate of FDR: if gaps were cut
 * off, they would be shorter than that time. */
CASE(a_full_load_is_not_more_than_a_link_carries)
{
	for (unsigned bytes = 1; bytes <= 50; bytes++) {
		struct simulate_arrivals a = { .load = 1, .even = true, .messages = 100 };
		struct credits c = { .bytes = bytes, .mtu = MTU, .headers = SIMULATE_HEADERS };
		const struct credits_message m = { .copies = 1 };
		const struct credits_hop hop = { .arrives = true };
		double ps;
		uint32_t at;

		assert_int_equal(credits_open(&c, 1), 0);
		c.link[0].ps_per_byte = 440 / 3.0;
		ps = (bytes + SIMULATE_HEADERS) * c.link[0].ps_per_byte;
		assert_int_equal(credits_add_hop(&c, CREDITS_NONE, &hop, &at), 0);
		assert_int_equal(credits_add_message(&c, &m), 0);
		assert_int_equal(simulate_arrivals_draw(&c, &a), 0);
		for (uint32_t i = 1; i < a.messages; i++) {
			double gap = (double)(c.message[i].begins_ps - c.message[i - 1].begins_ps);

			assert_true(gap >= ps && gap < ps + 1);
		}
		credits_fini(&c);
	}
}

CASE(with_equal_gaps_a_sender_takes_its_receivers_in_turn)
{
	struct simulate_arrivals a = {
		.load = 0.3, .even = true, .messages = 1000, .random = { 2 }
	};
	const struct fabric_shape shape = { .hosts = 4 };
	struct simulation s = open_shape(&shape);
	uint32_t to[4] = { 0, 1, 2, 3 };

	s.pattern.all_to_all = true;
	run(&s, &a, 1);
	for (uint32_t i = 0; i < a.messages; i++) {
		const struct credits_message *m = &s.credits.message[i];
		uint32_t next = (to[m->from] + 1) % 4;

		next = next == m->from ? (next + 1) % 4 : next;
		assert_int_equal(m->to, next);
		to[m->from] = next;
	}
	simulate_close(&s);
}

/* ---- Poisson ---- */

CASE(one_port_that_many_send_to_is_m_d_1)
{
	static const double loads[] = { 0.3, 0.5, 0.7, 0.9 };

	for (size_t i = 0; EACH_ROW(i, loads); i++) {
		struct simulate_arrivals a = { .load = loads[i] / 8,
			                       .messages = 600000,
			                       .random = { i } };
		struct simulation s = open_star(8);
		struct sample sample;

		run(&s, &a, 1);
		assert_int_equal(sum_of_waits(&s.credits, one_link), lindley(&s.credits, one_link));
		sample = sample_of(&s.credits, 2);
		assert_wait(&sample, wait_of(loads[i]));
		simulate_close(&s);
	}
}

/* That a message waits no longer than this: Erlang, for M/D/1, first come, first served. */
static double share_that_waits_at_most(double load, double ps)
{
	double t = ps / (double)S_PS, sum = 0;

	for (unsigned k = 0; k <= (unsigned)t; k++) {
		double term = exp(load * (t - k));

		for (unsigned i = 1; i <= k; i++)
			term *= load * (k - t) / i;
		sum += term;
	}
	return (1 - load) * sum;
}

CASE(one_sender_waits_for_itself_as_long_as_m_d_1_does)
{
	struct simulate_arrivals a = { .load = 0.6, .messages = 300000, .random = { 1 } };
	struct simulation s = open_star(1);
	struct simulate_times t;
	unsigned at_once = 0, more = 0;
	double share;

	run(&s, &a, 1);
	assert_int_equal(simulate_times(&s.credits, &t), 0);
	share = share_that_waits_at_most(0.6, (double)(t.p99_ps - S_PS - 2 * HOP_PS));
	if (fabs(share - 0.99) > 0.001)
		fail_msg("%.4f of the messages should wait no longer than 0.99 do", share);
	for (uint32_t i = s.credits.first_counted; i < a.messages; i++) {
		const struct credits_message *m = &s.credits.message[i];

		at_once += waited(m, 2) == 0;
		more += credits_took_ps(m) > t.p99_ps;
		assert_true(credits_took_ps(m) <= t.most_ps);
	}
	assert_int_equal(more, t.n / 100);
	assert_true(fabs(at_once / (double)t.n - 0.4) < 0.01);
	simulate_close(&s);
}

/* Messages of many packets take turns, so each gets its share of the link: M/D/1 with processor
 * sharing, where a message is in the network for its own time, divided by 1 - load. */
CASE(messages_that_take_turns_share_a_processor)
{
	struct simulate_arrivals a = { .load = 0.5, .messages = 20000, .random = { 2 } };
	const double alone = 32 * (double)S_PS + 2 * (double)HOP_PS;
	struct simulation s = open_star(1);
	struct simulate_times t;

	run(&s, &a, 32);
	assert_int_equal(simulate_times(&s.credits, &t), 0);
	assert_true(fabs(t.mean_ps / alone - 2) < 0.08);
	simulate_close(&s);
}

/* ---- two hops ---- */

static void add_pair(struct simulation *s, uint32_t from, uint32_t to)
{
	assert_int_equal(simulate_pattern_add_pair(&s->pattern, from, to), 0);
}

/* All for one host: only the last link is ever waited for, wherever a packet does wait. */
CASE(a_tree_of_links_waits_as_its_last_one_does)
{
	static const uint32_t from[] = { 1, 2, 3, 4, 5 };
	static const double loads[] = { 0.5, 0.8 };

	for (size_t i = 0; EACH_ROW(i, loads); i++) {
		struct simulate_arrivals a = { .load = loads[i] / ARRAY_SIZE(from),
			                       .messages = 300000,
			                       .random = { i } };
		struct simulation s = open_tandem();
		double n = a.messages, mean;

		for (size_t k = 0; k < ARRAY_SIZE(from); k++)
			add_pair(&s, from[k], 0);
		run(&s, &a, 1);
		assert_int_equal(sum_of_waits(&s.credits, links_in_tandem),
		                 lindley(&s.credits, links_in_tandem));
		mean = (double)sum_of_waits(&s.credits, links_in_tandem) / n;
		assert_true(fabs(mean / wait_of(loads[i]) - 1) < 0.04);
		simulate_close(&s);
	}
}

/* Hosts 2 and 3 send by the first of two links to hosts 5 and 6, and host 4 by the second one to
 * host 0, as host 1 does by both. A link lets packets out further apart than chance does, so they
 * wait for the second one no longer than M/D/1 says, and those of host 1 not longer in all than the
 * sum of both. */
CASE(two_hops_wait_no_longer_than_each_alone)
{
	struct simulate_arrivals a = { .load = 0.2, .messages = 300000, .random = { 1 } };
	struct simulation s = open_tandem();
	double sum = 0, first = wait_of(0.6), second = wait_of(0.4), n = 0;

	add_pair(&s, 1, 0);
	add_pair(&s, 2, 5);
	add_pair(&s, 3, 6);
	add_pair(&s, 4, 0);
	run(&s, &a, 1);
	for (uint32_t i = s.credits.first_counted; i < a.messages; i++)
		if (s.credits.message[i].from == 1) {
			sum += (double)waited(&s.credits.message[i], 3);
			n++;
		}
	assert_true(sum / n > first);
	assert_true(sum / n < first + second);
	simulate_close(&s);
}

/* ---- Little ---- */

/* The queue is counted as time goes by, the times by message: L = lambda W. */
CASE(littles_law_holds_for_what_was_counted)
{
	for (unsigned seed = 1; seed <= 10; seed++) {
		struct simulate_arrivals a = { .load = 0.09 * seed,
			                       .messages = 3000,
			                       .even = seed % 3 == 0,
			                       .random = { seed } };
		const struct fabric_shape shape = { .hosts = 9 };
		const struct simulate_groups groups = { 2, 4 };
		struct simulation s = open_shape(&shape);
		struct simulate_times t;
		double seconds;

		s.pattern.all_to_all = seed % 2;
		assert_int_equal(simulate_pattern_permutation(&s.pattern, 9, &a.random), 0);
		assert_int_equal(simulate_pattern_groups(&s.pattern, 9, &groups, &a.random), 0);
		assert_int_equal(simulate_join(&s), 0);
		run(&s, &a, 1);
		assert_int_equal(simulate_times(&s.credits, &t), 0);
		assert_int_equal(t.n, a.messages - a.messages / 10);
		assert_true(t.sum_ps > 0 && t.sum_ps < 0x1p53);
		assert_true(s.credits.queue_ps == t.sum_ps);
		assert_int_equal(s.credits.queue, 0);
		seconds = (double)(s.credits.arrived_ps -
		                   s.credits.message[s.credits.first_counted].begins_ps);
		assert_true(fabs(t.queue / (t.n / seconds * t.mean_ps) - 1) < 1e-12);
		simulate_close(&s);
	}
}

/* ---- bounds ---- */

/* Sends 1000 messages by chance, a tenth of what links carry; some may be lost. */
static struct simulate_times send_some(struct simulation *s)
{
	struct simulate_arrivals a = { .load = 0.1, .messages = 1000, .random = { 1 } };
	const struct simulate_cost cost = { MTU, HOP_NS };
	struct simulate_times t;

	s->arrivals = &a;
	assert_int_equal(simulate_count(s), 0);
	assert_int_equal(simulate_credits(s, &cost, BUFFER), 0);
	assert_int_equal(simulate_times(&s->credits, &t), 0);
	s->arrivals = NULL;
	return t;
}

CASE(who_has_no_link_sends_nothing)
{
	struct simulation s = open_star(3);
	struct simulate_times t;

	assert_int_equal(simulate_fail(&s, (char[FABRIC_NAME]){ "h2" }, 1), 0);
	assert_int_equal(simulate_reroute(&s), 0);
	t = send_some(&s);
	/* host 1 is lost for all that it sends, the others' arrive */
	assert_in_range(t.n, 500, 700);
	for (uint32_t i = 0; i < s.credits.n_messages; i++)
		assert_int_equal(credits_has_arrived(&s.credits.message[i]),
		                 s.credits.message[i].from != 1);
	assert_int_equal(s.credits.queue, 0);
	assert_true(s.credits.queue_ps == t.sum_ps);
	simulate_close(&s);
}

/* They cross links, but no host is to get them. */
CASE(messages_that_are_lost_on_their_way_are_in_no_queue)
{
	struct simulation s = open_star(3);
	struct simulate_times t;

	assert_int_equal(simulate_pattern_add_pair(&s.pattern, 1, 2), 0);
	assert_int_equal(simulate_fail(&s, (char[FABRIC_NAME]){ "h1" }, 1), 0);
	t = send_some(&s);
	assert_true(s.credits.link[3].busy_ps > 0); /* of what is lost */
	assert_in_range(t.n, 50, 250); /* a half of what host 1 sends, a third of all */
	assert_int_equal(s.credits.queue, 0);
	assert_true(s.credits.queue_ps == t.sum_ps);
	simulate_close(&s);
}

CASE(without_messages_there_are_no_times)
{
	struct simulation s = open_star(0);
	struct simulate_times t;

	t = send_some(&s);
	assert_int_equal(s.credits.n_messages, 0);
	assert_int_equal(t.n, 0);
	assert_true(t.queue == 0);
	simulate_close(&s);
}

CASE(a_load_that_takes_years_is_refused)
{
	const struct simulate_cost cost = { 1 << 30, HOP_NS };

	for (unsigned even = 0; even < 2; even++) {
		struct simulate_arrivals a = {
			.load = 1e-9, .even = even, .messages = 1000, .random = { 1 }
		};
		struct simulation s = open_star(3);

		s.arrivals = &a;
		assert_int_equal(simulate_count(&s), 0);
		assert_int_equal(simulate_credits(&s, &cost, BUFFER), -ERANGE);
		simulate_close(&s);
	}
}
