/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets over a socket pair: a packet that goes in comes out, descriptors included. Bytes that are
 * no packet are refused and leave no descriptor behind.
 */
#include <harness.h>

#include "base/util.h"
#include "control/socket.h"

#define MOST_FDS 253 /* that Linux takes */

static int pair[2];

static int setup(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
}

static int teardown(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	return 0;
}

/* Sends @bytes of a packet whose header claims @claimed, with @n_fds descriptors. */
static void send_raw(size_t bytes, uint32_t claimed, int n_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * MOST_FDS)];
	} ancillary = { .space = { 0 } };
	char data[sizeof(struct control_header) + CONTROL_MAX_BYTES + 64] = { 0 };
	struct control_header header = { .bytes = claimed };
	struct iovec iov = { .iov_base = data, .iov_len = bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[MOST_FDS];

	memcpy(data, &header, sizeof(header));
	if (n_fds) {
		msg.msg_control = &ancillary;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		ancillary.align.cmsg_level = SOL_SOCKET;
		ancillary.align.cmsg_type = SCM_RIGHTS;
		ancillary.align.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		for (int i = 0; i < n_fds; i++)
			fds[i] = STDERR_FILENO;
		memcpy(CMSG_DATA(&ancillary.align), fds, sizeof(int) * n_fds);
	}
	assert_int_equal(sendmsg(pair[0], &msg, 0), bytes);
}

CASE_WITH(bytes_arrive_as_sent, setup, teardown)
{
	static const uint32_t sizes[] = { 0, 1, 100, CONTROL_MAX_BYTES };
	struct control_packet out = { .header = { .type = 3, .serial = 9, .status = -7 } }, in;

	for (size_t i = 0; i < CONTROL_MAX_BYTES; i++)
		out.body[i] = (unsigned char)i;
	for (size_t i = 0; EACH_ROW(i, sizes); i++) {
		out.header.bytes = sizes[i];
		assert_int_equal(control_send(pair[0], &out), 0);
		assert_int_equal(control_receive(pair[1], &in), 0);
		assert_memory_equal(&in.header, &out.header, sizeof(in.header));
		assert_memory_equal(in.body, out.body, sizes[i]);
		assert_int_equal(in.n_fds, 0);
	}
}

CASE_WITH(descriptors_arrive_and_are_closed_on_exec, setup, teardown)
{
	struct control_packet out = { .n_fds = 2 }, in;
	unsigned before = harness_descriptors();
	int pipe_fd[2];
	char c = 'x';

	assert_int_equal(pipe(pipe_fd), 0);
	memcpy(out.fd, pipe_fd, sizeof(pipe_fd));
	assert_int_equal(control_send(pair[0], &out), 0);
	assert_int_equal(control_receive(pair[1], &in), 0);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	assert_int_equal(in.n_fds, 2);
	assert_int_equal(fcntl(in.fd[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(write(in.fd[1], &c, 1), 1);
	assert_int_equal(read(in.fd[0], &c, 1), 1);
	control_close_fds(&in);
	assert_int_equal(in.n_fds, 0);
	assert_int_equal(harness_descriptors(), before);
}

CASE_WITH(surplus_descriptors_are_closed, setup, teardown)
{
	static const struct {
		int n_fds, result;
	} row[] = { { 5, 0 }, { 8, 0 }, { MOST_FDS, 0 } };
	unsigned before = harness_descriptors();

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct control_packet in;

		send_raw(sizeof(struct control_header), 0, row[i].n_fds);
		assert_int_equal(control_receive(pair[1], &in), row[i].result);
		assert_int_equal(in.n_fds, row[i].result ? 0 : CONTROL_MAX_FDS);
		control_close_fds(&in);
		assert_int_equal(harness_descriptors(), before);
	}
}

CASE_WITH(a_process_without_room_for_descriptors_hears_of_it, setup, teardown)
{
	const unsigned before = harness_descriptors();
	struct rlimit limit, few;
	struct control_packet in;
	int lowest = dup(0);

	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){ (rlim_t)lowest + 2, limit.rlim_max };
	send_raw(sizeof(struct control_header), 0, CONTROL_MAX_FDS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(control_receive(pair[1], &in), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(in.n_fds, 0);
	assert_int_equal(harness_descriptors(), before);
}

CASE_WITH(what_is_no_packet_is_refused, setup, teardown)
{
	static const struct {
		size_t bytes;
		uint32_t claimed;
	} row[] = {
		{ 1, 0 },                                          /* no header */
		{ sizeof(struct control_header) - 1, 0 },          /* truncated header */
		{ sizeof(struct control_header), 1 },              /* body missing */
		{ sizeof(struct control_header) + 8, 9 },          /* body truncated */
		{ sizeof(struct control_header) + 8, 7 },          /* more than it says */
		{ sizeof(struct control_header) + 8, 0xFFFFFFFF }, /* nonsense */
		{ sizeof(struct control_header) + CONTROL_MAX_BYTES + 1,
		  CONTROL_MAX_BYTES },                                   /* cut */
		{ sizeof(struct control_header) + CONTROL_MAX_BYTES + 1, /* too long for us */
		  CONTROL_MAX_BYTES + 1 },
	};
	unsigned before = harness_descriptors();
	struct control_packet in;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		send_raw(row[i].bytes, row[i].claimed, 2);
		assert_int_equal(control_receive(pair[1], &in), -EPROTO);
		assert_int_equal(in.n_fds, 0);
		assert_int_equal(harness_descriptors(), before);
	}
}

/* Puts a request at @to that goes ahead of others, and behind it. */
static uint32_t put_ahead(unsigned char *to, uint32_t type, const char *body)
{
	const struct control_header h = { .type = type,
		                          .status = CONTROL_FOLLOWED,
		                          .bytes = (uint32_t)strlen(body) };

	memcpy(to, &h, sizeof(h));
	memcpy(to + sizeof(h), body, h.bytes);
	return (uint32_t)control_followed_bytes(h.bytes);
}

CASE_WITH(requests_that_go_together_come_one_after_the_other, setup, teardown)
{
	static const char *const bodies[] = { "first", "", "the third" };
	struct control_packet out = { .header = { .type = 9, .serial = 4, .bytes = 2 }, "ab" }, in;
	unsigned char ahead[256] = { 0 };
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(bodies); i++)
		bytes += put_ahead(ahead + bytes, i, bodies[i]);
	assert_int_equal(control_send_behind(pair[0], ahead, bytes, &out), 0);
	assert_int_equal(control_receive(pair[1], &in), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		assert_int_equal(in.header.type, i);
		assert_int_equal(in.header.bytes, strlen(bodies[i]));
		assert_memory_equal(in.body, bodies[i], strlen(bodies[i]));
		assert_true(control_packet_next(&in));
	}
	assert_memory_equal(&in.header, &out.header, sizeof(in.header));
	assert_memory_equal(in.body, "ab", 2);
	assert_int_equal(in.behind, 0);
	assert_false(control_packet_next(&in));
}

CASE_WITH(what_goes_ahead_must_be_whole_and_have_somebody_behind_it, setup, teardown)
{
	static const struct {
		uint32_t claimed;
		size_t cut; /* from the end */
	} row[] = {
		{ 8, 0 },          /* more behind it than a request */
		{ 64, 0 },         /* nothing behind it */
		{ 0xFFFFFFFF, 0 }, /* nonsense */
		{ 48, 1 },         /* not all of the one behind it */
		{ 65, 0 },         /* not all of it */
	};
	struct control_packet in;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct control_header data[5] = { { .status = CONTROL_FOLLOWED,
			                            .bytes = row[i].claimed } };

		assert_int_equal(send(pair[0], data, sizeof(data) - row[i].cut, 0),
		                 sizeof(data) - row[i].cut);
		assert_int_equal(control_receive(pair[1], &in), -EPROTO);
	}
}

CASE_WITH(what_goes_ahead_counts_as_well, setup, teardown)
{
	struct control_packet out = { .header = { .bytes = CONTROL_MAX_BYTES - 64 } }, in;
	unsigned char ahead[72] = { 0 };

	assert_int_equal(control_send_behind(pair[0], ahead, 65, &out), -EMSGSIZE);
	assert_int_equal(control_receive(pair[1], &in), -EAGAIN);
	assert_int_equal(put_ahead(ahead, 1, "just as long as there is room for 48 of them...."),
	                 64);
	assert_int_equal(control_send_behind(pair[0], ahead, 64, &out), 0);
	assert_int_equal(control_receive(pair[1], &in), 0);
	assert_true(control_packet_next(&in));
	assert_int_equal(in.header.bytes, CONTROL_MAX_BYTES - 64);
}

CASE_WITH(after_a_bad_datagram_the_next_packet_arrives, setup, teardown)
{
	struct control_packet out = { .header = { .serial = 5 } }, in;

	send_raw(3, 0, 0);
	assert_int_equal(control_send(pair[0], &out), 0);
	assert_int_equal(control_receive(pair[1], &in), -EPROTO);
	assert_int_equal(control_receive(pair[1], &in), 0);
	assert_int_equal(in.header.serial, 5);
}

CASE_WITH(nothing_there_is_eagain, setup, teardown)
{
	struct control_packet in;

	assert_int_equal(control_receive(pair[1], &in), -EAGAIN);
}

CASE_WITH(a_full_socket_is_eagain, setup, teardown)
{
	struct control_packet out = { .header = { .bytes = CONTROL_MAX_BYTES } };
	int ret = 0;

	for (int i = 0; i < 100000 && !ret; i++)
		ret = control_send(pair[0], &out);
	assert_int_equal(ret, -EAGAIN);
}

CASE_WITH(the_other_end_gone_is_epipe, setup, teardown)
{
	struct control_packet p = { .header = { .bytes = 4 } };

	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(control_send(pair[1], &p), -EPIPE); /* and no SIGPIPE */
	assert_int_equal(control_receive(pair[1], &p), -EPIPE);
}

CASE_WITH(the_other_end_gone_with_our_data_unread_is_epipe, setup, teardown)
{
	struct control_packet p = { .header = { .bytes = 4 } };

	assert_int_equal(control_send(pair[1], &p), 0);
	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(control_receive(pair[1], &p), -EPIPE);
}

CASE_WITH(a_packet_that_holds_too_much_is_not_sent, setup, teardown)
{
	struct control_packet out = { .header = { .bytes = CONTROL_MAX_BYTES + 1 } }, in;

	assert_int_equal(control_send(pair[0], &out), -EMSGSIZE);
	out.header.bytes = 0;
	out.n_fds = CONTROL_MAX_FDS + 1;
	assert_int_equal(control_send(pair[0], &out), -EMSGSIZE);
	assert_int_equal(control_receive(pair[1], &in), -EAGAIN);
}
