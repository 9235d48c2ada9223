/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A reader asks for the events of a fabric again and again, reads none, or writes to the stream:
 * others read all the same, and the places that it has given up are free again.
 */
#include "daemon_lab.h"
#include "harness.h"

#define READERS 8 /* at one time */

static int ask(struct control_client *c, int *fd)
{
	return control_call(c, &(struct control_call){ .type = CONTROL_MONITOR, .fd = fd });
}

/* The daemon may hear of a request before it hears that somebody has gone. */
static int ask_until_room(struct control_client *c)
{
	int fd, ret;

	do
		ret = ask(c, &fd);
	while (ret == -EUSERS);
	assert_int_equal(ret, 0);
	return fd;
}

static void set_often(struct control_client *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(control_set(c, "mft_delay_ms", i % 2 ? "1" : "0"), 0);
}

/* Whether @text comes by @fd, of what comes within a second of silence. */
static bool comes(int fd, const char *text)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	char got[65536];
	size_t n = 0;

	while (n < sizeof(got) - 1 && poll(&in, 1, 1000) > 0) {
		const ssize_t some = read(fd, got + n, sizeof(got) - 1 - n);

		if (some <= 0)
			break;
		n += (size_t)some;
		got[n] = '\0';
		if (strstr(got, text))
			return true;
	}
	return false;
}

CASE(readers_that_go_make_room)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_CLI);
	int fd[READERS], more;

	for (unsigned i = 0; i < 100; i++) {
		for (unsigned n = 0; n < READERS; n++)
			fd[n] = ask_until_room(c);
		for (unsigned n = 0; n < 10; n++)
			assert_int_equal(ask(c, &more), -EUSERS);
		for (unsigned n = 0; n < READERS; n++)
			close(fd[n]);
	}
	control_close(c);
}

CASE(none_that_reads_waits_for_one_that_does_not)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_CLI);
	int fd[READERS];

	for (unsigned n = 0; n < READERS; n++)
		fd[n] = ask_until_room(c);
	set_often(c, 10000);
	close(fd[0]);
	fd[0] = ask_until_room(c);
	set_often(c, 2);
	assert_true(comes(fd[0], "\"value\":\"1\""));
	for (unsigned n = 0; n < READERS; n++)
		close(fd[n]);
	control_close(c);
}

/* A reader has nothing to say. */
CASE(who_writes_to_the_stream_loses_it)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_CLI);
	int fd = ask_until_room(c);
	char byte = 0;

	assert_int_equal(send(fd, &byte, 1, 0), 1);
	while (recv(fd, &byte, 1, 0) > 0)
		;
	close(fd);
	fd = ask_until_room(c);
	set_often(c, 1);
	assert_true(comes(fd, "mft_delay_ms"));
	close(fd);
	control_close(c);
}

CASE(a_request_with_a_body_is_refused)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_CLI);
	int fd;

	assert_int_equal(control_call(c, &(struct control_call){ .type = CONTROL_MONITOR,
	                                                         .request = "x",
	                                                         .request_bytes = 1,
	                                                         .fd = &fd }),
	                 -EPROTO);
	control_close(c);
}
