/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the tests of stream rsockets: connected pairs, and threads that send or receive a pattern of
 * bytes. Calls that must work stop the test if they do not.
 */
#ifndef TESTS_RDMACM_RSOCKET_STREAM_H
#define TESTS_RDMACM_RSOCKET_STREAM_H

#include "common.h"

#include <rdma/rsocket.h>

#define PORT    7400
#define BACKLOG 64

/* In the child an assertion that fails ends it: the tests that follow are the parent's. */
static UNUSED pid_t fork_child(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		setenv("CMOCKA_TEST_ABORT", "1", 1);
	return child;
}

static UNUSED int stream(int flags)
{
	int rs = rsocket(AF_INET, SOCK_STREAM | flags, 0);

	assert_true(rs >= 0);
	return rs;
}

/* From that host, at any port number. */
static UNUSED int bound(unsigned host)
{
	union address a = host_address(host, 0);
	int rs = stream(0);

	assert_int_equal(rbind(rs, &a.sa, sizeof(a.in)), 0);
	return rs;
}

static UNUSED int listening(unsigned host, uint16_t port)
{
	union address a = host_address(host, port);
	int rs = stream(0);

	/* though a process that had the port may have died a moment ago */
	assert_int_equal(rbind(rs, &a.sa, sizeof(a.in)), 0);
	assert_int_equal(rlisten(rs, BACKLOG), 0);
	return rs;
}

static UNUSED int connected_to(unsigned host, uint16_t port)
{
	union address a = host_address(host, port);
	int rs = bound(1);

	assert_int_equal(rconnect(rs, &a.sa, sizeof(a.in)), 0);
	return rs;
}

static UNUSED int connecting_to(unsigned host, uint16_t port)
{
	union address to = host_address(host, port);
	int rs = stream(SOCK_NONBLOCK);

	assert_fails(rconnect(rs, &to.sa, sizeof(to.in)), EINPROGRESS);
	return rs;
}

static UNUSED void close_both(int a, int b)
{
	assert_int_equal(rclose(a), 0);
	assert_int_equal(rclose(b), 0);
}

struct pair {
	int listener, client, server;
};

/* Of h1 and h2. */
static UNUSED struct pair connected_pair(void)
{
	struct pair p = { .listener = listening(2, PORT) };

	p.client = connected_to(2, PORT);
	p.server = raccept(p.listener, NULL, NULL);
	assert_true(p.server >= 0);
	return p;
}

static UNUSED void close_pair(const struct pair *p)
{
	close_both(p->client, p->server);
	assert_int_equal(rclose(p->listener), 0);
}

/* struct pair CLOSED_PAIR p = ...: it is closed when its block ends. */
#define CLOSED_PAIR __attribute__((cleanup(close_pair)))

static UNUSED void expect_bytes_pass(int from, int to)
{
	char text[4] = "";

	assert_int_equal(rsend(from, "now", 3, 0), 3);
	assert_int_equal(rrecv(to, text, 3, MSG_WAITALL), 3);
	assert_string_equal(text, "now");
}

/* ---- much at once ---- */

struct transfer {
	int rs;
	size_t bytes;
	unsigned seed;
	pthread_t thread;
	char *data;
};

static char *pattern(size_t bytes, unsigned seed)
{
	char *data = malloc(bytes);

	assert_non_null(data);
	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)((i * 7 + (i >> 8) + seed) % 251);
	return data;
}

static void *send_all(void *arg)
{
	struct transfer *t = arg;
	size_t sent = 0;

	while (sent < t->bytes) {
		ssize_t n = rsend(t->rs, t->data + sent, t->bytes - sent, 0);

		assert_true(n > 0);
		sent += (size_t)n;
	}
	return NULL;
}

static UNUSED void *receive_all(void *arg)
{
	struct transfer *t = arg;
	char *want = pattern(t->bytes, t->seed), *got = malloc(t->bytes);
	size_t done = 0;

	assert_non_null(got);
	while (done < t->bytes) {
		ssize_t n = rrecv(t->rs, got + done, t->bytes - done, 0);

		assert_true(n > 0);
		done += (size_t)n;
	}
	assert_memory_equal(got, want, t->bytes);
	free(want);
	free(got);
	return NULL;
}

static UNUSED void begin_sending(struct transfer *t)
{
	t->data = pattern(t->bytes, t->seed);
	assert_int_equal(pthread_create(&t->thread, NULL, send_all, t), 0);
}

static UNUSED void end_sending(struct transfer *t)
{
	assert_int_equal(pthread_join(t->thread, NULL), 0);
	free(t->data);
}

static UNUSED void begin_receiving(struct transfer *t)
{
	assert_int_equal(pthread_create(&t->thread, NULL, receive_all, t), 0);
}

static UNUSED void end_receiving(struct transfer *t)
{
	assert_int_equal(pthread_join(t->thread, NULL), 0);
}

#endif
