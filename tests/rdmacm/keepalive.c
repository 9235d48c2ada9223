/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SO_KEEPALIVE of stream rsockets: a socket that waits for a peer which cannot be reached any more
 * is told, and a socket without the option waits on. Its times, and which are none.
 */
#include "rsocket_stream.h"

#include <netinet/tcp.h>

#define MOST_MS 120000 /* until all retries are over, on a busy machine */

static void umbel(const char *command)
{
	char text[128];

	snprintf(text, sizeof(text), "umbel %s", command);
	if (system(text))
		fail_msg("it fails: %s", text);
}

static int idle_of(int rs)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	assert_int_equal(rgetsockopt(rs, IPPROTO_TCP, TCP_KEEPIDLE, &value, &bytes), 0);
	return value;
}

static int set(int rs, int level, int name, int value)
{
	return rsetsockopt(rs, level, name, &value, sizeof(value));
}

static int of_system(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_keepalive_time", "r");
	int value = -1;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &value), 1);
	fclose(f);
	return value;
}

CASE(the_time_is_the_systems_unless_it_is_set)
{
	int rs = stream(0);

	assert_int_equal(idle_of(rs), of_system());
	assert_int_equal(set(rs, IPPROTO_TCP, TCP_KEEPIDLE, 1), 0);
	assert_int_equal(idle_of(rs), 1);
	assert_int_equal(set(rs, IPPROTO_TCP, TCP_KEEPIDLE, INT_MAX), 0);
	assert_fails(set(rs, IPPROTO_TCP, TCP_KEEPIDLE, 0), EINVAL);
	assert_fails(set(rs, IPPROTO_TCP, TCP_KEEPIDLE, INT_MIN), EINVAL);
	assert_fails(rsetsockopt(rs, IPPROTO_TCP, TCP_KEEPIDLE, &(short){ 5 }, sizeof(short)),
	             EINVAL);
	assert_fails(rsetsockopt(rs, IPPROTO_TCP, TCP_KEEPIDLE, NULL, sizeof(int)), EINVAL);
	assert_int_equal(idle_of(rs), INT_MAX);
	assert_int_equal(rclose(rs), 0);
}

static void keep_alive(int rs)
{
	assert_int_equal(set(rs, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
	assert_int_equal(set(rs, IPPROTO_TCP, TCP_KEEPIDLE, 1), 0);
}

static struct pair kept_alive(void)
{
	struct pair p = connected_pair();

	keep_alive(p.client);
	assert_int_equal(rclose(p.listener), 0); /* the port number is for the next one */
	return p;
}

static void *receive_in_thread(void *arg)
{
	char byte;

	return rrecv(*(int *)arg, &byte, 1, 0) < 0 ? (void *)(intptr_t)errno : NULL;
}

static int error_of(int rs)
{
	int error = -1;
	socklen_t bytes = sizeof(error);

	assert_int_equal(rgetsockopt(rs, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	return error;
}

CASE(a_peer_that_is_out_of_reach_is_noticed)
{
	struct pair received = kept_alive(), polled = kept_alive(), sent = kept_alive();
	struct pair late = connected_pair(), other;
	struct pollfd p = { .fd = polled.client, .events = POLLIN };
	struct pollfd still = { .events = POLLIN };
	pthread_t thread, late_thread;
	void *err;

	assert_int_equal(rclose(late.listener), 0);
	other = connected_pair();
	still.fd = other.client;
	assert_int_equal(pthread_create(&late_thread, NULL, receive_in_thread, &late.client), 0);
	assert_int_equal(pthread_create(&thread, NULL, receive_in_thread, &received.client), 0);
	assert_int_equal(rpoll(&p, 1, 3000), 0); /* as long as it lives nothing is noticed */
	keep_alive(late.client);                 /* while the thread waits */
	umbel("link down h2:1");
	assert_int_equal(rpoll(&p, 1, MOST_MS), 1);
	assert_true(p.revents & POLLERR);
	assert_true(p.revents & POLLHUP);
	assert_int_equal(error_of(polled.client), ETIMEDOUT);
	assert_int_equal(pthread_join(thread, &err), 0);
	assert_int_equal((intptr_t)err, ETIMEDOUT);
	assert_int_equal(pthread_join(late_thread, &err), 0);
	assert_int_equal((intptr_t)err, ETIMEDOUT);
	while (rsend(sent.client, "x", 1, 0) == 1)
		;
	assert_int_equal(errno, ETIMEDOUT);
	assert_fails(rsend(sent.client, "x", 1, 0), ECONNRESET);
	assert_int_equal(rpoll(&still, 1, 0), 0);
	umbel("link up h2:1");
	close_both(received.client, received.server);
	close_both(polled.client, polled.server);
	close_both(sent.client, sent.server);
	close_both(late.client, late.server);
	close_pair(&other);
}
