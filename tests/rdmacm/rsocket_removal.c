/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric ends under stream rsockets: what has arrived can still be received, a peer that had
 * said so before has ended in order, and all else is EIO, for calls that sleep and for calls that
 * do not. Prepared by the first test, which ends the daemon.
 *
 * Ends its fabric.
 */
#include "rsocket_stream.h"

#include "daemon.h"

static struct pair idle, sending, holding, over, asleep;
static int listener;

static struct pair accepted(void)
{
	struct pair p = { .client = connected_to(2, PORT) };

	p.server = raccept(listener, NULL, NULL);
	assert_true(p.server >= 0);
	return p;
}

static void *receive_in_thread(void *arg)
{
	char byte;

	return rrecv(*(int *)arg, &byte, 1, 0) < 0 ? (void *)(intptr_t)errno : NULL;
}

#define WAIT_MS 200 /* until the parent sleeps; if it does not, the test proves less */

/* While the parent is stopped the connection ends in order, and then the daemon ends. */
static void end_both_at_once(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int rs = connected_to(2, PORT);

	assert_non_null(channel);
	poll(NULL, 0, WAIT_MS);
	assert_int_equal(kill(getppid(), SIGSTOP), 0);
	assert_int_equal(rclose(rs), 0);
	kill_daemon(channel);
	assert_int_equal(kill(getppid(), SIGCONT), 0);
	_exit(0);
}

CASE(the_fabric_ends)
{
	char byte;
	int orderly;
	pthread_t thread;
	pid_t child;
	void *err;

	listener = listening(2, PORT);
	idle = accepted();
	sending = accepted();
	holding = accepted();
	over = accepted();
	asleep = accepted();
	assert_int_equal(rsend(holding.server, "data", 4, 0), 4);
	assert_int_equal(rclose(over.server), 0);
	child = fork_child();
	if (!child)
		end_both_at_once();
	assert_int_equal(pthread_create(&thread, NULL, receive_in_thread, &asleep.client), 0);
	orderly = raccept(listener, NULL, NULL);
	assert_true(orderly >= 0);
	assert_int_equal(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rrecv(orderly, &byte, 1, 0), 0);
	assert_int_equal(rrecv(orderly, &byte, 1, 0), 0);
	harness_expect_success(child);
	assert_int_equal(rclose(orderly), 0);
	assert_int_equal(pthread_join(thread, &err), 0);
	assert_int_equal((intptr_t)err, EIO);
}

static int error_of(int rs)
{
	int error = -1;
	socklen_t bytes = sizeof(error);

	assert_int_equal(rgetsockopt(rs, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	return error;
}

CASE(who_receives_is_told)
{
	char byte;

	for (int i = 0; i < 3; i++)
		assert_fails(rrecv(idle.client, &byte, 1, 0), EIO);
	assert_fails(rrecv(idle.server, &byte, 1, MSG_DONTWAIT), EIO);
	assert_int_equal(error_of(idle.client), EIO);
}

CASE(who_sends_is_told)
{
	while (rsend(sending.client, "x", 1, 0) == 1)
		;
	assert_int_equal(errno, EIO);
	assert_fails(rsend(sending.client, "x", 1, MSG_DONTWAIT), EIO);
}

CASE(what_has_arrived_can_be_received)
{
	struct pollfd p = { .fd = holding.client, .events = POLLIN };
	char text[8] = "";

	for (int i = 0; i < 2; i++) {
		assert_int_equal(rpoll(&p, 1, -1), 1);
		assert_int_equal(p.revents, POLLIN);
	}
	assert_int_equal(rrecv(holding.client, text, sizeof(text), 0), 4);
	assert_string_equal(text, "data");
	assert_fails(rrecv(holding.client, text, sizeof(text), 0), EIO);
	assert_int_equal(rpoll(&p, 1, -1), 1);
	assert_true(p.revents & POLLERR);
}

CASE(an_orderly_end_stays_one)
{
	struct pollfd p = { .fd = over.client, .events = POLLIN };
	char byte;

	assert_int_equal(rpoll(&p, 1, -1), 1);
	assert_int_equal(rrecv(over.client, &byte, 1, 0), 0);
	assert_int_equal(rrecv(over.client, &byte, 1, 0), 0);
}

CASE(who_accepts_without_blocking_does_not_try_for_ever)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	assert_int_equal(rpoll(&p, 1, -1), 1);
	assert_fails(raccept(listener, NULL, NULL), EIO);
	assert_fails(raccept(listener, NULL, NULL), EIO);
}

CASE(all_can_be_closed)
{
	close_both(idle.client, idle.server);
	close_both(sending.client, sending.server);
	close_both(holding.client, holding.server);
	close_both(asleep.client, asleep.server);
	close_both(over.client, listener);
}
