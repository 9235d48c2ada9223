/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of neighbours, on a clock that stands still unless a test moves it.
 */
#include <harness.h>

#include "ipoib/neighbours.h"
#include "ipoib/testing.h"

#define SECOND 1000000000ull

struct fixture {
	struct base_timers timers;
	uint64_t now;
	struct ipoib_budget budget;
	struct ipoib_neighbours table;
	unsigned asked, asked_by_unicast, sent, unreachable, doubts;
	uint32_t sent_to;
};

static uint64_t now_ns(void *arg)
{
	return ((struct fixture *)arg)->now;
}

static void ask(void *arg, const struct ib_gid *ip, const struct ipoib_address *at)
{
	struct fixture *f = arg;

	(void)ip;
	f->asked++;
	f->asked_by_unicast += at != NULL;
}

static void send_held(void *arg, const struct ipoib_address *to, const struct ipoib_packet *p)
{
	struct fixture *f = arg;

	(void)p;
	f->sent++;
	f->sent_to = to->qpn;
}

static void unreachable(void *arg, const struct ipoib_packet *p)
{
	(void)p;
	((struct fixture *)arg)->unreachable++;
}

static void doubt(void *arg, const struct ipoib_address *at)
{
	(void)at;
	((struct fixture *)arg)->doubts++;
}

static const struct ipoib_neighbour_ops ops = { ask, send_held, unreachable, doubt };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct base_clock clock = { .now_ns = now_ns, .arg = f };

	if (!f)
		return -1;
	base_timers_init(&f->timers, &clock);
	f->budget.max_bytes = 1 << 20;
	ipoib_neighbours_init(&f->table, &f->timers, &f->budget, &ops, f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ipoib_neighbours_fini(&f->table);
	assert_int_equal(f->budget.bytes, 0);
	free(f);
	return 0;
}

static const struct ipoib_address *use(struct fixture *f, const char *text)
{
	static uint8_t data[100];
	const struct ipoib_packet p = { .data = data, .bytes = sizeof(data) };
	struct ib_gid ip = testing_ip(text);

	return ipoib_neighbours_use(&f->table, &ip, &p);
}

static void learn(struct fixture *f, const char *text, uint32_t qpn, struct ipoib_news news)
{
	news.ip = testing_ip(text);
	news.address = (struct ipoib_address){ .gid = { { 0xFE, 0x80, [15] = 1 } }, .qpn = qpn };
	ipoib_neighbours_learn(&f->table, &news);
}

static const struct ipoib_news answer = { .answer = true, .override = true, .certain = true };
static const struct ipoib_news question = { .override = true, .create = true, .certain = true };
static const struct ipoib_news uncertain_answer = { .answer = true, .override = true };
static const struct ipoib_news uncertain_question = { .override = true, .create = true };

static enum ipoib_neighbour_state state_of(struct fixture *f, const char *text)
{
	struct ib_gid ip = testing_ip(text);
	struct ipoib_neighbour *n = ipoib_neighbours_find(&f->table, &ip);

	assert_non_null(n);
	return n->state;
}

static bool knows(struct fixture *f, const char *text)
{
	struct ib_gid ip = testing_ip(text);

	return ipoib_neighbours_find(&f->table, &ip);
}

static void pass(struct fixture *f, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		f->now += SECOND;
		base_timers_run(&f->timers);
	}
}

CASE_WITH(packets_wait_for_the_answer_and_leave_in_one_go, setup, teardown)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++)
		assert_null(use(f, "192.0.2.2"));
	assert_int_equal(f->asked, 1);
	learn(f, "192.0.2.2", 7, answer);
	assert_int_equal(f->sent, 3);
	assert_int_equal(f->sent_to, 7);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_REACHABLE);
	assert_int_equal(use(f, "192.0.2.2")->qpn, 7);
}

CASE_WITH(only_so_many_packets_wait, setup, teardown)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < IPOIB_QUEUE_MAX + 5; i++)
		use(f, "2001:db8::2");
	assert_int_equal(f->table.dropped, 5);
	f->budget.max_bytes = f->budget.bytes;
	use(f, "2001:db8::3");
	assert_int_equal(f->table.dropped, 6);
}

CASE_WITH(who_does_not_answer_three_times_is_unreachable, setup, teardown)
{
	struct fixture *f = *state;

	use(f, "192.0.2.2");
	use(f, "192.0.2.2");
	pass(f, 2);
	assert_int_equal(f->asked, 3);
	assert_int_equal(f->unreachable, 0);
	pass(f, 1);
	assert_int_equal(f->unreachable, 2);
	assert_false(knows(f, "192.0.2.2"));
	/* the next packet begins anew */
	use(f, "192.0.2.2");
	assert_int_equal(f->asked, 4);
}

CASE_WITH(what_has_aged_is_asked_for_by_unicast_when_used, setup, teardown)
{
	struct fixture *f = *state;

	use(f, "192.0.2.2");
	learn(f, "192.0.2.2", 7, answer);
	pass(f, 31);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_STALE);
	assert_int_equal(f->asked, 1);
	assert_non_null(use(f, "192.0.2.2"));
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_DELAY);
	pass(f, 5);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_PROBE);
	assert_int_equal(f->asked_by_unicast, 1);
	learn(f, "192.0.2.2", 7, answer);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_REACHABLE);
}

CASE_WITH(who_does_not_answer_any_more_is_forgotten_and_the_path_doubted, setup, teardown)
{
	struct fixture *f = *state;

	use(f, "192.0.2.2");
	learn(f, "192.0.2.2", 7, answer);
	pass(f, 31);
	use(f, "192.0.2.2");
	pass(f, 5 + 3);
	assert_int_equal(f->asked_by_unicast, 3);
	assert_int_equal(f->doubts, 1);
	assert_false(knows(f, "192.0.2.2"));
}

CASE_WITH(what_is_not_used_is_forgotten_without_a_question, setup, teardown)
{
	struct fixture *f = *state;

	learn(f, "192.0.2.2", 7, question);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_STALE);
	pass(f, 600);
	assert_false(knows(f, "192.0.2.2"));
	assert_int_equal(f->asked, 0);
}

CASE_WITH(nobody_is_learnt_of_unless_asked_to, setup, teardown)
{
	struct fixture *f = *state;

	learn(f, "192.0.2.2", 7, answer);
	assert_false(knows(f, "192.0.2.2"));
}

CASE_WITH(another_address_without_override_is_only_a_doubt, setup, teardown)
{
	static const struct ipoib_news weak = { .answer = true, .certain = true };
	struct fixture *f = *state;

	use(f, "2001:db8::2");
	learn(f, "2001:db8::2", 7, answer);
	learn(f, "2001:db8::2", 8, weak);
	assert_int_equal(state_of(f, "2001:db8::2"), IPOIB_STALE);
	assert_int_equal(use(f, "2001:db8::2")->qpn, 7);
	learn(f, "2001:db8::2", 8, answer);
	assert_int_equal(use(f, "2001:db8::2")->qpn, 8);
}

CASE_WITH(what_is_uncertain_replaces_nothing_but_has_it_asked_for, setup, teardown)
{
	const struct ipoib_news *const uncertain[] = { &uncertain_answer, &uncertain_question };
	struct fixture *f = *state;

	use(f, "192.0.2.2");
	for (unsigned i = 0; EACH_ROW(i, uncertain); i++) {
		learn(f, "192.0.2.2", 7, answer);
		learn(f, "192.0.2.2", 8, *uncertain[i]);
		assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_STALE);
		assert_int_equal(use(f, "192.0.2.2")->qpn, 7);
		pass(f, 5);
		assert_int_equal(f->asked_by_unicast, i + 1);
		/* more of it does not put off the end of the probe */
		learn(f, "192.0.2.2", 8, *uncertain[i]);
		assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_PROBE);
	}
	pass(f, 3);
	assert_false(knows(f, "192.0.2.2"));
}

CASE_WITH(what_is_uncertain_confirms_nothing, setup, teardown)
{
	struct fixture *f = *state;

	use(f, "192.0.2.2");
	learn(f, "192.0.2.2", 7, answer);
	pass(f, 31);
	learn(f, "192.0.2.2", 7, uncertain_answer);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_STALE);
}

CASE_WITH(what_is_uncertain_is_better_than_nothing, setup, teardown)
{
	struct fixture *f = *state;

	use(f, "192.0.2.2");
	learn(f, "192.0.2.2", 7, uncertain_answer);
	assert_int_equal(f->sent_to, 7);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_STALE);
	learn(f, "192.0.2.3", 9, uncertain_question);
	assert_int_equal(use(f, "192.0.2.3")->qpn, 9);
	/* what is certain replaces it */
	learn(f, "192.0.2.2", 8, answer);
	assert_int_equal(use(f, "192.0.2.2")->qpn, 8);
}

CASE_WITH(the_same_address_again_refreshes_nothing_unless_it_answers, setup, teardown)
{
	struct fixture *f = *state;

	use(f, "192.0.2.2");
	learn(f, "192.0.2.2", 7, answer);
	pass(f, 20);
	learn(f, "192.0.2.2", 7, question);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_REACHABLE);
	pass(f, 11);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_STALE);
}

CASE_WITH(a_flood_displaces_nobody_that_we_talk_to, setup, teardown)
{
	struct fixture *f = *state;
	char text[INET_ADDRSTRLEN];

	use(f, "192.0.2.2");
	learn(f, "192.0.2.2", 7, answer);
	for (unsigned i = 0; i < 3 * IPOIB_NEIGHBOURS_MAX; i++) {
		snprintf(text, sizeof(text), "198.18.%u.%u", i >> 8, i & 0xFF);
		learn(f, text, 9, question);
	}
	assert_int_equal(f->table.by_ip.n, IPOIB_NEIGHBOURS_MAX);
	assert_int_equal(state_of(f, "192.0.2.2"), IPOIB_REACHABLE);
	assert_true(knows(f, text));
}

CASE_WITH(a_full_table_of_ours_loses_the_one_used_longest_ago, setup, teardown)
{
	struct fixture *f = *state;

	f->table.max = 2;
	use(f, "192.0.2.2");
	use(f, "192.0.2.3");
	use(f, "192.0.2.2");
	use(f, "192.0.2.4");
	assert_true(knows(f, "192.0.2.2"));
	assert_false(knows(f, "192.0.2.3"));
}
