/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Feeds: records come in the order in which they were written, whatever the reader does. A slow
 * reader gets the records that fit and no more. A reader that is gone is noticed.
 */
#include <harness.h>
#include <sys/epoll.h>

#include "base/util.h"
#include "daemon/core/feed.h"

#define ROOM (1 << 20) /* more than a socket has room for */

struct lab {
	struct daemon_loop loop;
	struct daemon_feed feed;
	int reader;
	uint32_t events; /* that the loop has seen */
	uint32_t put, got;
};

static void on_event(struct daemon_source *source, uint32_t events)
{
	struct lab *l = container_of(source, struct lab, feed.source);

	l->events |= events;
	daemon_feed_send(&l->feed);
}

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	*state = l;
	return daemon_loop_init(&l->loop) ||
	       daemon_feed_open(&l->feed, &l->loop, ROOM, on_event, &l->reader);
}

static int teardown(void **state)
{
	struct lab *l = *state;

	if (l->reader >= 0)
		close(l->reader);
	daemon_feed_close(&l->feed);
	daemon_loop_fini(&l->loop);
	free(l);
	return 0;
}

/* Puts as many of the next numbers, at most. How many there was room for. */
static unsigned put(struct lab *l, unsigned n)
{
	unsigned done = 0;

	for (; done < n && daemon_feed_fits(&l->feed, sizeof(l->put)); done++) {
		daemon_feed_put(&l->feed, &l->put, sizeof(l->put));
		l->put++;
	}
	return done;
}

/* Reads as many numbers, at most, and expects the next ones. */
static unsigned get(struct lab *l, unsigned n)
{
	unsigned done = 0;
	uint32_t number;

	for (; done < n && recv(l->reader, &number, sizeof(number), MSG_DONTWAIT) > 0; done++)
		assert_int_equal(number, l->got++);
	return done;
}

CASE_WITH(what_is_put_comes_in_order, setup, teardown)
{
	struct lab *l = *state;

	for (unsigned i = 0; i < 3000; i++) { /* the ring goes round */
		assert_int_equal(put(l, 1 + i * 7 % 331), 1 + i * 7 % 331);
		assert_true(daemon_feed_may_send(&l->feed));
		assert_true(daemon_feed_send(&l->feed));
		get(l, UINT32_MAX);
	}
	assert_int_equal(l->got, l->put);
	assert_int_equal(l->events, 0);
}

CASE_WITH(a_slow_reader_has_what_fits, setup, teardown)
{
	struct lab *l = *state;
	unsigned at_once;

	assert_int_equal(put(l, UINT32_MAX), ROOM / sizeof(l->put));
	assert_true(daemon_feed_send(&l->feed));
	at_once = put(l, UINT32_MAX); /* what the socket has taken */
	assert_in_range(at_once, 1, ROOM / sizeof(l->put) - 1);
	assert_false(daemon_feed_may_send(&l->feed));
	assert_int_equal(put(l, 1), 0);
	/* as it reads, the loop sends the rest */
	for (get(l, UINT32_MAX); l->got < l->put; get(l, UINT32_MAX))
		assert_true(daemon_loop_turn(&l->loop) >= 0);
	assert_true(l->events & EPOLLOUT);
	assert_int_equal(l->feed.used, 0);
	assert_false(l->feed.full);
}

CASE_WITH(a_reader_that_is_gone_is_noticed, setup, teardown)
{
	struct lab *l = *state;

	close(l->reader);
	l->reader = -1;
	assert_true(daemon_loop_turn(&l->loop) >= 0);
	assert_true(l->events & EPOLLHUP);
	put(l, 1);
	assert_false(daemon_feed_send(&l->feed));
}

CASE_WITH(what_is_there_at_the_end_still_comes, setup, teardown)
{
	struct lab *l = *state;

	assert_int_equal(put(l, 100), 100);
	assert_int_equal(shutdown(l->reader, SHUT_WR), 0);
	daemon_feed_end(&l->feed);
	assert_true(daemon_loop_turn(&l->loop) >= 0);
	assert_int_equal(get(l, UINT32_MAX), 100);
	assert_int_equal(l->events, EPOLLOUT); /* not that the reader says no more */
}
