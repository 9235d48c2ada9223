/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients send the daemon descriptors that are closed slowly, whether it takes them, does not want
 * them, or never receives them: it replies to everybody meanwhile. Afterwards it has none of them.
 */
#include "daemon_lab.h"
#include "base/util.h"
#include "control/client.h"
#include "control/socket.h"
#include "control/umad_message.h"
#include "daemon/core/closer.h"
#include "daemon/core/closer_testing.h"
#include "harness.h"

#define SURPLUS 9 /* more than a packet has */

static int reader[DAEMON_CLOSER_HELD + 16];
static unsigned n_readers;
static pid_t daemon_process;
static long at_rest;

/* Meanwhile our descriptor is closed, so that the last one is in a message. */
static void stop_daemon(void)
{
	char path[64], line[256];
	FILE *f;

	assert_int_equal(kill(daemon_process, SIGSTOP), 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", daemon_process);
	do {
		assert_non_null(f = fopen(path, "r"));
		assert_non_null(fgets(line, sizeof(line), f));
		fclose(f);
	} while (!strstr(line, ") T "));
}

static void go_on_daemon(void)
{
	assert_int_equal(kill(daemon_process, SIGCONT), 0);
}

static void send_lingering(int to, const void *data, size_t bytes, unsigned n)
{
	int fd = lingering(&reader[n_readers++]);

	assert_int_equal(send_descriptors(to, data, bytes, fd, n), bytes);
	close(fd);
}

/* All of them would linger still. */
static int let_go(void **state)
{
	(void)state;
	while (daemon_descriptors(daemon_process) > at_rest) /* ctest ends it */
		usleep(1000);
	while (n_readers)
		close(reader[--n_readers]);
	return 0;
}

static int look(void **state)
{
	(void)state;
	daemon_process = daemon_pid();
	daemon_serves_others(); /* it keeps some of what it opens for the first */
	at_rest = daemon_descriptors(daemon_process);
	return 0;
}

CASE_WITH(with_a_request_that_wants_none, look, let_go)
{
	const struct {
		struct control_header header;
		struct control_hello hello;
	} request = { { .type = CONTROL_HELLO, .serial = 1, .bytes = sizeof(struct control_hello) },
		      { .version = CONTROL_VERSION, .role = CONTROL_ROLE_VERBS } };
	int sock = daemon_socket();

	stop_daemon();
	send_lingering(sock, &request, sizeof(request), 1);
	send_lingering(sock, &request, sizeof(request), SURPLUS);
	go_on_daemon();
	daemon_serves_others();
	close(sock);
	daemon_serves_others();
}

/* The first message ends the connection, which closes the others unread. */
CASE_WITH(in_messages_that_it_never_receives, look, let_go)
{
	int sock = daemon_socket();

	stop_daemon();
	send_lingering(sock, "x", 1, 1);
	for (unsigned i = 0; i < 3; i++)
		send_lingering(sock, "", 0, 2);
	go_on_daemon();
	daemon_serves_others();
	close(sock);
}

/* The daemon has one at a time: each closes the one before. */
static void offer(unsigned n)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_VERBS);
	const struct control_offer_memory req = { .kind = CONTROL_MEMORY_ADOPTED };
	int fd;

	for (unsigned i = 0; i < n; i++) {
		fd = lingering(&reader[n_readers++]);
		assert_int_equal(
		        control_call(c, &(struct control_call){ .type = CONTROL_OFFER_MEMORY,
		                                                .request = &req,
		                                                .request_bytes = sizeof(req),
		                                                .send_fd = &fd }),
		        0);
		close(fd);
	}
	daemon_serves_others();
	control_close(c);
	daemon_serves_others();
}

CASE_WITH(as_its_memory, look, let_go)
{
	offer(2);
}

CASE_WITH(more_than_there_are_threads, look, let_go)
{
	offer(DAEMON_CLOSER_HELD + 8);
}

CASE_WITH(with_mads, look, let_go)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_UMAD);
	struct control_umad_at req = { .index = 0 };
	struct control_umad_port rep;
	char mad[CONTROL_UMAD_DATAGRAM] = { 0 };
	int port;

	assert_int_equal(control_call(c,
	                              &(struct control_call){
	                                      .type = (enum control_type)CONTROL_UMAD_OPEN_PORT,
	                                      .request = &req,
	                                      .request_bytes = sizeof(req),
	                                      .reply = &rep,
	                                      .reply_bytes = sizeof(rep),
	                                      .fd = &port }),
	                 0);
	stop_daemon();
	send_lingering(port, mad, sizeof(mad), 1);
	send_lingering(port, mad, sizeof(mad), SURPLUS);
	go_on_daemon();
	daemon_serves_others();
	close(port);
	control_close(c);
	daemon_serves_others();
}

/* Where none are expected they cannot be sent, or, before Linux 6.16, lie there until the end. */
CASE_WITH(where_it_never_looks, look, let_go)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_VERBS);
	int events, error, fd = lingering(&reader[n_readers++]);
	bool taken = false;

	daemon_open_hca(c, 0, &events);
	stop_daemon();
	for (unsigned i = 0; i < 2; i++) {
		taken |= send_descriptors(events, "", i, fd, 1) >= 0;
		error = errno;
	}
	if (taken)
		close(fd);
	close(events);
	control_close(c);
	go_on_daemon();
	daemon_serves_others();
	if (!taken) {
		assert_int_equal(error, EPERM);
		close(reader[--n_readers]);
		close(fd);
	}
}
