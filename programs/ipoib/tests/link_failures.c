/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The datagrams of an interface (programs/ipoib/link.h) when calls and requests fail: rules of
 * faults on h1, which sends, and on h2, which receives. A packet may be lost, but none behind it.
 */
#include <stdio.h>

#include "verbs/lab.h"

#include "base/util.h"
#include "ipoib/link.h"

#define QKEY       0x0B1B
#define BYTES      100
#define PATIENCE   20000000000ull /* ns */
#define AREA       128            /* receives that a link has at first */
#define NEVER      "host=h3 register=ENOMEM nth=1000000000"
#define ARRAY_FULL 256

struct end {
	struct ipoib_link *link;
	uint16_t lid;
};

static struct end sender, receiver;
static struct ibv_ah *way;
static uint8_t got[ARRAY_FULL]; /* how often, by number */

/* ---- rules: calls ask about them only if there was one when the device was opened */

static void add_rule(const char *rule)
{
	char command[256];

	snprintf(command, sizeof(command), "umbel fault add %s > /dev/null", rule);
	assert_int_equal(system(command), 0);
}

static void only_rule(const char *rule)
{
	assert_int_equal(system("umbel fault clear > /dev/null"), 0);
	add_rule(NEVER);
	if (rule)
		add_rule(rule);
}

/* ---- ends */

static void open_end(struct end *e, int host)
{
	struct ipoib_link_options options = { .context = lab_open(host), .port = 1, .qkey = QKEY };
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(options.context, 1, &attr), 0);
	assert_int_equal(ipoib_link_open(&e->link, &options), 0);
	ipoib_link_set_mtu(e->link, 2044);
	e->lid = attr.lid;
}

static void close_ends(void *unused)
{
	(void)unused;
	ipoib_link_retire_ah(sender.link, way);
	ipoib_link_close(sender.link);
	ipoib_link_close(receiver.link);
}

static void open_ends(void)
{
	struct ipoib_way to = { 0 };

	only_rule(NULL);
	open_end(&sender, 1);
	open_end(&receiver, 2);
	to.lid = receiver.lid;
	way = ipoib_link_ah(sender.link, &to);
	assert_non_null(way);
	lab_undo(close_ends, NULL);
	memset(got, 0, sizeof(got));
}

/* Adds packets of these numbers to the list. */
static void send_packets(unsigned first, unsigned end)
{
	uint64_t until = base_now_ns() + PATIENCE;

	while (first < end) {
		struct ipoib_packet p = { .data = ipoib_link_slot(sender.link),
			                  .bytes = BYTES,
			                  .type = IPOIB_TYPE_IPV4 };

		assert_true(base_now_ns() < until);
		if (!p.data)
			continue;
		memset(p.data, (int)first, BYTES);
		if (ipoib_link_send(sender.link, way, ipoib_link_qpn(receiver.link), &p))
			first++;
	}
}

/* Receives so many, and posts their receives again. */
static void receive(unsigned n)
{
	struct ipoib_received r[IPOIB_POLL_MAX];
	uint64_t until = base_now_ns() + PATIENCE;

	for (unsigned i = 0; i < n;) {
		int ret = ipoib_link_poll(receiver.link, r);

		assert_true(ret >= 0);
		assert_true(base_now_ns() < until);
		for (int k = 0; k < ret; k++) {
			assert_int_equal(r[k].bytes, BYTES + 4);
			got[r[k].data[4]]++;
		}
		if (ret)
			ipoib_link_repost(receiver.link);
		i += (unsigned)ret;
	}
}

/* ---- tests */

static void a_request_that_cannot_be_posted_is_lost_alone(void **state)
{
	(void)state;
	open_ends();
	only_rule("host=h1 post=EAGAIN nth=2");
	send_packets(0, 4);
	ipoib_link_flush(sender.link);
	send_packets(4, 5);
	ipoib_link_flush(sender.link);
	receive(4);
	assert_memory_equal(got, ((uint8_t[]){ 1, 0, 1, 1, 1 }), 5);
	assert_int_equal(ipoib_link_lost(sender.link), 1);
}

/* Its completion says that those before it have left. */
static void the_last_of_a_list_is_tried_again(void **state)
{
	(void)state;
	open_ends();
	only_rule("host=h1 post=ENOMEM nth=4 count=3");
	send_packets(0, 4);
	ipoib_link_flush(sender.link);
	receive(4);
	assert_memory_equal(got, ((uint8_t[]){ 1, 1, 1, 1 }), 4);
	assert_int_equal(ipoib_link_lost(sender.link), 0);
}

static void when_nothing_can_be_posted_for_a_time_it_goes_on_afterwards(void **state)
{
	(void)state;
	open_ends();
	only_rule("host=h1 post=EIO");
	for (unsigned i = 0; i < 200; i++) {
		send_packets(i, i + 1);
		ipoib_link_flush(sender.link);
	}
	send_packets(0, 100);
	ipoib_link_flush(sender.link);
	assert_int_equal(ipoib_link_lost(sender.link), 300);
	only_rule(NULL);
	for (unsigned i = 200; i < 250; i++) {
		send_packets(i, i + 1);
		ipoib_link_flush(sender.link);
	}
	receive(50);
	assert_int_equal(got[200], 1);
	assert_int_equal(got[249], 1);
}

/* The queue stops with a request that fails, until somebody sees to it. */
static void the_queue_goes_on_behind_a_request_that_fails(void **state)
{
	(void)state;
	open_ends();
	only_rule("host=h1 wc=GENERAL nth=1");
	for (unsigned i = 0; i < 100; i++) {
		send_packets(i, i + 1);
		ipoib_link_flush(sender.link);
	}
	receive(100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(got[i], 1);
	assert_int_equal(ipoib_link_lost(sender.link), 1);
}

static void a_receive_that_cannot_be_posted_is_posted_again(void **state)
{
	(void)state;
	open_ends();
	only_rule("host=h2 receive=ENOMEM chance=50%");
	for (unsigned i = 0; i < 3 * AREA; i++) {
		send_packets(i % ARRAY_FULL, i % ARRAY_FULL + 1);
		ipoib_link_flush(sender.link);
		receive(1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(a_request_that_cannot_be_posted_is_lost_alone),
		LAB_TEST(the_last_of_a_list_is_tried_again),
		LAB_TEST(when_nothing_can_be_posted_for_a_time_it_goes_on_afterwards),
		LAB_TEST(the_queue_goes_on_behind_a_request_that_fails),
		LAB_TEST(a_receive_that_cannot_be_posted_is_posted_again),
	};

	return cmocka_run_group_tests_name("link_failures", tests, NULL, NULL);
}
