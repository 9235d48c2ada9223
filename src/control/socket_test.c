/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets over a socket pair: what goes in comes out, descriptors included, and what
 * is no packet is refused and leaves no descriptor behind.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "control/socket.h"

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

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Sends @bytes of a packet whose header claims @claimed, with @n_fds descriptors. */
static void send_raw(size_t bytes, uint32_t claimed, int n_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 16)];
	} ancillary = { .space = { 0 } };
	char data[sizeof(struct control_header) + CONTROL_MAX_BYTES + 64] = { 0 };
	struct control_header header = { .bytes = claimed };
	struct iovec iov = { .iov_base = data, .iov_len = bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[16];

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

static void bytes_arrive_as_sent(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 100, CONTROL_MAX_BYTES };
	struct control_packet out = { .header = { .type = 3, .serial = 9, .status = -7 } }, in;

	(void)state;
	for (size_t i = 0; i < CONTROL_MAX_BYTES; i++)
		out.body[i] = (unsigned char)i;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		out.header.bytes = sizes[i];
		assert_int_equal(control_send(pair[0], &out), 0);
		assert_int_equal(control_receive(pair[1], &in), 0);
		assert_memory_equal(&in.header, &out.header, sizeof(in.header));
		assert_memory_equal(in.body, out.body, sizes[i]);
		assert_int_equal(in.n_fds, 0);
	}
}

static void descriptors_arrive_and_are_closed_on_exec(void **state)
{
	struct control_packet out = { .n_fds = 2 }, in;
	unsigned before = open_fds();
	int pipe_fd[2];
	char c = 'x';

	(void)state;
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
	assert_int_equal(open_fds(), before);
}

static void surplus_descriptors_are_closed(void **state)
{
	static const struct {
		int n_fds, result;
	} row[] = { { 5, 0 }, { 8, 0 }, { 16, -EMFILE } }; /* the kernel has closed some of 16 */
	unsigned before = open_fds();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct control_packet in;

		send_raw(sizeof(struct control_header), 0, row[i].n_fds);
		assert_int_equal(control_receive(pair[1], &in), row[i].result);
		assert_int_equal(in.n_fds, row[i].result ? 0 : CONTROL_MAX_FDS);
		control_close_fds(&in);
		assert_int_equal(open_fds(), before);
	}
}

static void what_is_no_packet_is_refused(void **state)
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
	unsigned before = open_fds();
	struct control_packet in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		send_raw(row[i].bytes, row[i].claimed, 2);
		assert_int_equal(control_receive(pair[1], &in), -EPROTO);
		assert_int_equal(in.n_fds, 0);
		assert_int_equal(open_fds(), before);
	}
}

static void after_a_bad_datagram_the_next_packet_arrives(void **state)
{
	struct control_packet out = { .header = { .serial = 5 } }, in;

	(void)state;
	send_raw(3, 0, 0);
	assert_int_equal(control_send(pair[0], &out), 0);
	assert_int_equal(control_receive(pair[1], &in), -EPROTO);
	assert_int_equal(control_receive(pair[1], &in), 0);
	assert_int_equal(in.header.serial, 5);
}

static void nothing_there_is_eagain(void **state)
{
	struct control_packet in;

	(void)state;
	assert_int_equal(control_receive(pair[1], &in), -EAGAIN);
}

static void a_full_socket_is_eagain(void **state)
{
	struct control_packet out = { .header = { .bytes = CONTROL_MAX_BYTES } };
	int ret = 0;

	(void)state;
	for (int i = 0; i < 100000 && !ret; i++)
		ret = control_send(pair[0], &out);
	assert_int_equal(ret, -EAGAIN);
}

static void the_other_end_gone_is_epipe(void **state)
{
	struct control_packet p = { .header = { .bytes = 4 } };

	(void)state;
	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(control_send(pair[1], &p), -EPIPE); /* and no SIGPIPE */
	assert_int_equal(control_receive(pair[1], &p), -EPIPE);
}

static void the_other_end_gone_with_our_data_unread_is_epipe(void **state)
{
	struct control_packet p = { .header = { .bytes = 4 } };

	(void)state;
	assert_int_equal(control_send(pair[1], &p), 0);
	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(control_receive(pair[1], &p), -EPIPE);
}

static void a_packet_that_holds_too_much_is_not_sent(void **state)
{
	struct control_packet out = { .header = { .bytes = CONTROL_MAX_BYTES + 1 } }, in;

	(void)state;
	assert_int_equal(control_send(pair[0], &out), -EMSGSIZE);
	out.header.bytes = 0;
	out.n_fds = CONTROL_MAX_FDS + 1;
	assert_int_equal(control_send(pair[0], &out), -EMSGSIZE);
	assert_int_equal(control_receive(pair[1], &in), -EAGAIN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_arrive_as_sent),
		TEST(descriptors_arrive_and_are_closed_on_exec),
		TEST(surplus_descriptors_are_closed),
		TEST(what_is_no_packet_is_refused),
		TEST(after_a_bad_datagram_the_next_packet_arrives),
		TEST(nothing_there_is_eagain),
		TEST(a_full_socket_is_eagain),
		TEST(the_other_end_gone_is_epipe),
		TEST(the_other_end_gone_with_our_data_unread_is_epipe),
		TEST(a_packet_that_holds_too_much_is_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
