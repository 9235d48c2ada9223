/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagram rsockets (rsocket(7)) of hosts h1 to h4: bound, connected, sent to and received from,
 * polled together with ordinary descriptors, across fork(), interrupted, and when a peer dies.
 */
#include "common.h"

#include <rdma/rsocket.h>
#include <sys/eventfd.h>
#include <sys/select.h>

#define PORT    7300
#define LONGEST (4096 - 8) /* the MTU without the header */

static int bound(unsigned host, uint16_t port)
{
	union address a = host_address(host, port);
	int rs = rsocket(AF_INET, SOCK_DGRAM, 0);

	assert_true(rs >= 0);
	assert_int_equal(rbind(rs, &a.sa, sizeof(a.in)), 0);
	return rs;
}

static uint16_t port_of(int rs)
{
	union address a;
	socklen_t bytes = sizeof(a);

	assert_int_equal(rgetsockname(rs, &a.sa, &bytes), 0);
	return ntohs(a.in.sin_port);
}

static int connected(unsigned from, unsigned to, uint16_t port)
{
	union address a = host_address(to, port);
	int rs = bound(from, 0);

	assert_int_equal(rconnect(rs, &a.sa, sizeof(a.in)), 0);
	return rs;
}

static void send_text(int rs, unsigned host, uint16_t port, const char *text)
{
	union address a = host_address(host, port);

	assert_int_equal(rsendto(rs, text, strlen(text), 0, &a.sa, sizeof(a.in)), strlen(text));
}

/* The next datagram is @text, and comes from @host (any if that is 0). */
static union address expect_text(int rs, unsigned host, const char *text)
{
	char buffer[LONGEST + 1] = "";
	union address from, want = host_address(host, 0);
	socklen_t bytes = sizeof(from);
	ssize_t n = rrecvfrom(rs, buffer, sizeof(buffer) - 1, 0, &from.sa, &bytes);

	assert_int_equal(n, strlen(text));
	assert_string_equal(buffer, text);
	assert_int_equal(bytes, sizeof(from.in));
	if (host)
		assert_int_equal(from.in.sin_addr.s_addr, want.in.sin_addr.s_addr);
	return from;
}

static void expect_nothing(int rs)
{
	char byte;

	assert_fails(rrecv(rs, &byte, 1, MSG_DONTWAIT), EAGAIN);
}

static void close_all(int a, int b)
{
	assert_int_equal(rclose(a), 0);
	assert_int_equal(rclose(b), 0);
}

/* ---- what there is ---- */

CASE(other_types_and_protocols_are_refused)
{
	assert_fails(rsocket(AF_INET, SOCK_RAW, 0), EOPNOTSUPP);
	assert_fails(rsocket(AF_UNIX, SOCK_DGRAM, 0), EAFNOSUPPORT);
	assert_fails(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
	assert_fails(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
}

CASE(what_streams_have_is_refused)
{
	int rs = bound(1, 0);
	char byte = 0;

	assert_fails(rlisten(rs, 1), EOPNOTSUPP);
	assert_fails(raccept(rs, NULL, NULL), EOPNOTSUPP);
	assert_fails(riomap(rs, &byte, 1, 0, 0, 0), EOPNOTSUPP);
	assert_fails(riounmap(rs, &byte, 1), EOPNOTSUPP);
	assert_fails(riowrite(rs, &byte, 1, 0, 0), EOPNOTSUPP);
	assert_int_equal(rclose(rs), 0);
}

CASE(what_is_no_rsocket_is_a_bad_descriptor)
{
	int pipefd[2];
	char byte;

	assert_int_equal(pipe(pipefd), 0);
	assert_fails(rread(pipefd[0], &byte, 1), EBADF);
	assert_fails(rclose(pipefd[0]), EBADF);
	assert_fails(rclose(-1), EBADF);
	assert_fails(rfcntl(100000, F_GETFL), EBADF);
	close(pipefd[0]);
	close(pipefd[1]);
}

CASE(options_are_kept_or_refused)
{
	int rs = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP), value = 1 << 19, got;
	struct linger linger = { 1, 5 };
	socklen_t bytes = sizeof(got);

	assert_int_equal(rfcntl(rs, F_GETFL), O_RDWR | O_NONBLOCK);
	assert_int_equal(rfcntl(rs, F_SETFL, 0), 0);
	assert_int_equal(rfcntl(rs, F_GETFL), O_RDWR);
	assert_fails(rfcntl(rs, F_SETOWN, 1), ENOTSUP);
	assert_int_equal(rsetsockopt(rs, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)), 0);
	assert_int_equal(rgetsockopt(rs, SOL_SOCKET, SO_RCVBUF, &got, &bytes), 0);
	assert_int_equal(got, 2 * value);
	value = 10;
	assert_int_equal(rsetsockopt(rs, SOL_RDMA, RDMA_RQSIZE, &value, sizeof(value)), 0);
	assert_int_equal(rgetsockopt(rs, SOL_RDMA, RDMA_RQSIZE, &got, &bytes), 0);
	assert_int_equal(got, 10);
	assert_int_equal(rsetsockopt(rs, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(rgetsockopt(rs, SOL_SOCKET, SO_TYPE, &got, &bytes), 0);
	assert_int_equal(got, SOCK_DGRAM);
	assert_int_equal(rgetsockopt(rs, SOL_SOCKET, SO_ERROR, &got, &bytes), 0);
	assert_int_equal(got, 0);
	assert_fails(rsetsockopt(rs, SOL_RDMA, RDMA_IOMAPSIZE, &value, sizeof(value)), ENOTSUP);
	assert_fails(rsetsockopt(rs, SOL_SOCKET, SO_BROADCAST, &value, sizeof(value)), ENOTSUP);
	assert_fails(rsetsockopt(rs, SOL_SOCKET, SO_RCVBUF, &value, 1), EINVAL);
	assert_int_equal(rclose(rs), 0);
}

/* ---- addresses ---- */

CASE(a_port_number_belongs_to_one)
{
	union address a = host_address(1, PORT), elsewhere = host_address(77, 0);
	int first = bound(1, PORT), second = rsocket(AF_INET, SOCK_DGRAM, 0);

	assert_fails(rbind(second, &a.sa, sizeof(a.in)), EADDRINUSE);
	assert_fails(rbind(second, &elsewhere.sa, sizeof(a.in)), EADDRNOTAVAIL);
	assert_fails(rbind(second, &a.sa, 3), EINVAL);
	assert_fails(rbind(first, &a.sa, sizeof(a.in)), EINVAL);
	assert_int_equal(rclose(first), 0);
	assert_int_equal(rbind(second, &a.sa, sizeof(a.in)), 0);
	assert_int_equal(port_of(second), PORT);
	assert_int_equal(rclose(second), 0);
}

static int try_to_bind(const char *host, bool reuse)
{
	union address a = address(host, PORT);
	int rs = rsocket(AF_INET, SOCK_DGRAM, 0), on = reuse;

	assert_true(rs >= 0);
	assert_int_equal(rsetsockopt(rs, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	if (!rbind(rs, &a.sa, sizeof(a.in)))
		return rs;
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(rclose(rs), 0);
	return -1;
}

CASE(any_address_is_in_use_where_one_is)
{
	static const char *const hosts[][2] = { { "10.0.0.1", "0.0.0.0" },
		                                { "0.0.0.0", "10.0.0.1" },
		                                { "0.0.0.0", "0.0.0.0" } };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		int first = try_to_bind(hosts[i][0], false);

		assert_true(first >= 0);
		assert_int_equal(try_to_bind(hosts[i][1], false), -1);
		assert_int_equal(rclose(first), 0);
	}
}

/* As with UDP: the socket that was bound last gets the datagrams. */
CASE(a_port_number_is_shared_if_all_allow_it)
{
	static const char *const hosts[] = { "10.0.0.1", "0.0.0.0" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		int first = try_to_bind(hosts[i], true), second, sender = bound(2, 0);

		assert_int_equal(try_to_bind(hosts[i], false), -1);
		second = try_to_bind(hosts[i], true);
		assert_true(first >= 0 && second >= 0);
		send_text(sender, 1, PORT, "second");
		expect_text(second, 2, "second");
		expect_nothing(first);
		close_all(second, sender);
		sender = bound(2, 0);
		send_text(sender, 1, PORT, "first");
		expect_text(first, 2, "first");
		close_all(first, sender);
	}
}

CASE(names_are_those_of_both_ends)
{
	int server = bound(2, PORT), client = connected(1, 2, PORT);
	union address a, want = host_address(2, PORT);
	socklen_t bytes = sizeof(a);

	assert_int_equal(rgetpeername(client, &a.sa, &bytes), 0);
	assert_memory_equal(&a, &want, sizeof(a.in));
	bytes = sizeof(a);
	assert_int_equal(rgetsockname(client, &a.sa, &bytes), 0);
	want = host_address(1, 0);
	assert_int_equal(a.in.sin_addr.s_addr, want.in.sin_addr.s_addr);
	assert_int_not_equal(a.in.sin_port, 0);
	assert_fails(rgetpeername(server, &a.sa, &bytes), ENOTCONN);
	close_all(client, server);
}

CASE(an_ipv6_rsocket_hears_ipv4_by_mapped_addresses)
{
	union address any = address("::", PORT), from, want = address("::ffff:10.0.0.1", 0);
	int server = rsocket(AF_INET6, SOCK_DGRAM, 0), client = bound(1, 0);
	socklen_t bytes = sizeof(from);
	char buffer[8];

	assert_int_equal(rbind(server, &any.sa, sizeof(any.in6)), 0);
	send_text(client, 2, PORT, "four");
	assert_int_equal(rrecvfrom(server, buffer, sizeof(buffer), 0, &from.sa, &bytes), 4);
	assert_int_equal(bytes, sizeof(from.in6));
	assert_memory_equal(&from.in6.sin6_addr, &want.in6.sin6_addr, 16);
	assert_int_equal(rsendto(server, "back", 4, 0, &from.sa, bytes), 4);
	expect_text(client, 0, "back"); /* from any of the hosts that the server sees */
	close_all(client, server);
}

CASE(a_host_that_is_not_there_is_unreachable)
{
	union address nowhere = address("10.9.9.9", PORT), group = address("239.1.1.1", PORT);
	int rs = bound(1, 0);

	assert_fails(rsendto(rs, "x", 1, 0, &nowhere.sa, sizeof(nowhere.in)), EHOSTUNREACH);
	assert_fails(rconnect(rs, &nowhere.sa, sizeof(nowhere.in)), EHOSTUNREACH);
	assert_fails(rsendto(rs, "x", 1, 0, &group.sa, sizeof(group.in)), EOPNOTSUPP);
	assert_fails(rsend(rs, "x", 1, 0), EDESTADDRREQ);
	assert_int_equal(rclose(rs), 0);
}

/* ---- datagrams ---- */

CASE(datagrams_of_all_sizes_arrive_whole)
{
	static const size_t sizes[] = { 0, 1, 7, 63, 64, 65, 1000, 1536, 2048, 4000, LONGEST };
	int server = bound(2, PORT), client = connected(1, 2, PORT);
	char out[LONGEST], in[LONGEST + 1];

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 7);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(in, 0, sizeof(in));
		assert_int_equal(rsend(client, out, sizes[i], 0), sizes[i]);
		assert_int_equal(rrecv(server, in, sizeof(in), 0), sizes[i]);
		assert_memory_equal(in, out, sizes[i]);
	}
	assert_fails(rsend(client, out, LONGEST + 1, 0), EMSGSIZE);
	close_all(client, server);
}

CASE(lists_of_buffers_and_short_ones)
{
	int server = bound(2, PORT), client = connected(1, 2, PORT);
	char a[4] = "", b[8] = "";
	struct iovec out[] = { { "abc", 3 }, { NULL, 0 }, { "defgh", 5 } };
	struct iovec in[] = { { a, 3 }, { b, 2 } };
	union address from;
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = in, .msg_iovlen = 2
	};

	assert_int_equal(rwritev(client, out, 3), 8);
	assert_int_equal(rrecv(server, NULL, 0, MSG_PEEK | MSG_TRUNC), 8);
	assert_int_equal(rrecvmsg(server, &msg, MSG_PEEK), 5);
	assert_int_equal(msg.msg_flags, MSG_TRUNC);
	assert_int_equal(from.in.sin_port, htons(port_of(client)));
	assert_string_equal(a, "abc");
	assert_string_equal(b, "de");
	in[1].iov_len = sizeof(b);
	assert_int_equal(rreadv(server, in, 2), 8);
	assert_string_equal(b, "defgh");
	msg = (struct msghdr){ .msg_iov = out, .msg_iovlen = 1, .msg_controllen = sizeof(a) };
	assert_int_equal(rsendmsg(client, &msg, 0), 3);
	msg.msg_control = a;
	assert_fails(rsendmsg(client, &msg, 0), EOPNOTSUPP);
	expect_text(server, 1, "abc");
	expect_nothing(server);
	close_all(client, server);
}

CASE(a_reply_goes_to_who_asked)
{
	int server = bound(3, PORT), one = bound(1, 0), two = bound(2, 0);
	union address from;

	for (int i = 0; i < 3; i++) {
		send_text(one, 3, PORT, "first");
		send_text(two, 3, PORT, "second");
		for (int k = 0; k < 2; k++) {
			char text[8] = "";
			socklen_t bytes = sizeof(from);
			ssize_t n = rrecvfrom(server, text, sizeof(text), 0, &from.sa, &bytes);

			assert_true(n > 0);
			assert_int_equal(rsendto(server, text, (size_t)n, 0, &from.sa, bytes), n);
		}
		expect_text(one, 3, "first");
		expect_text(two, 3, "second");
	}
	assert_int_equal(rclose(two), 0);
	close_all(one, server);
}

CASE(who_is_connected_hears_no_other)
{
	int server = bound(2, PORT), client = connected(1, 2, PORT), other = bound(3, 0);
	union address none = { .sa.sa_family = AF_UNSPEC };
	uint16_t port = port_of(client);

	send_text(other, 1, port, "not for you");
	send_text(server, 1, port, "for you");
	expect_text(client, 2, "for you");
	expect_nothing(client);
	assert_int_equal(rconnect(client, &none.sa, sizeof(none.sa)), 0);
	send_text(other, 1, port, "for all");
	expect_text(client, 3, "for all");
	assert_int_equal(rclose(other), 0);
	close_all(client, server);
}

/* A link-local address with its scope, and those that are any of our own: the replies come from
 * others, by the program's words. */
CASE(replies_come_by_whatever_address_it_was_connected_to)
{
	static const struct {
		const char *addr;
		uint32_t scope;
	} row[] = { { "fe80::275:6d00:0:101", 0 },
		    { "fe80::275:6d00:0:101", 1 },
		    { "fd75:6d62:656c::1", 0 },
		    { "::1", 0 },
		    { "::", 0 },
		    { "::ffff:0.0.0.0", 0 } };
	union address any = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) } };
	int server = rsocket(AF_INET6, SOCK_DGRAM, 0);

	assert_int_equal(rbind(server, &any.sa, sizeof(any.in6)), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		union address to = any, from;
		int client = rsocket(AF_INET6, SOCK_DGRAM, 0);
		struct pollfd in = { .fd = client, .events = POLLIN };
		socklen_t bytes = sizeof(from);
		char text[8] = "";

		assert_int_equal(inet_pton(AF_INET6, row[i].addr, &to.in6.sin6_addr), 1);
		to.in6.sin6_scope_id = row[i].scope;
		assert_int_equal(rconnect(client, &to.sa, sizeof(to.in6)), 0);
		assert_int_equal(rsend(client, "ask", 3, 0), 3);
		assert_int_equal(rrecvfrom(server, text, 3, 0, &from.sa, &bytes), 3);
		assert_int_equal(rsendto(server, "say", 3, 0, &from.sa, bytes), 3);
		assert_int_equal(rpoll(&in, 1, 5000), 1);
		assert_int_equal(rrecv(client, text, sizeof(text), MSG_DONTWAIT), 3);
		assert_string_equal(text, "say");
		assert_int_equal(rclose(client), 0);
	}
	assert_int_equal(rclose(server), 0);
}

CASE(who_is_not_there_is_no_error)
{
	int client = connected(1, 2, PORT), server;

	assert_int_equal(rsend(client, "lost", 4, 0), 4);
	server = bound(2, PORT);
	do { /* a peer that was not there is not asked for at every datagram */
		assert_int_equal(rsend(client, "found", 5, 0), 5);
		errno = 0;
	} while (rrecv(server, &(char[8]){ 0 }, 8, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	assert_int_equal(errno, 0);
	close_all(client, server);
}

CASE(what_was_sent_without_waiting_arrives_though_it_is_closed)
{
	int server = bound(2, PORT), client = bound(1, 0);
	union address a = host_address(2, PORT);

	for (int i = 0; i < 5; i++)
		assert_int_equal(rsendto(client, &i, sizeof(i), MSG_DONTWAIT, &a.sa, sizeof(a.in)),
		                 sizeof(i));
	assert_int_equal(rclose(client), 0);
	for (int i = 0, got; i < 5; i++) {
		assert_int_equal(rrecv(server, &got, sizeof(got), 0), sizeof(got));
		assert_int_equal(got, i);
	}
	assert_int_equal(rclose(server), 0);
}

CASE(what_was_sent_without_waiting_arrives_while_another_is_read)
{
	int server = bound(2, PORT), client = bound(1, 0);
	union address a = host_address(2, PORT);
	char byte;

	assert_int_equal(rsendto(client, "x", 1, MSG_DONTWAIT, &a.sa, sizeof(a.in)), 1);
	expect_soon("rrecv(), which is the only call that there is");
	assert_int_equal(rrecv(server, &byte, 1, 0), 1);
	expect_soon(NULL);
	close_all(client, server);
}

/* Sends these bytes as they are: a program need not be one of rsockets. */
static void send_raw(struct node *n, const struct rdma_ud_param *to, const void *bytes,
                     uint32_t length)
{
	struct ibv_ah_attr attr = to->ah_attr;
	struct ibv_ah *ah = ibv_create_ah(n->id->pd, &attr);
	struct ibv_sge sge = { (uintptr_t)n->buffer, length, n->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr = { .ud = { .ah = ah, .remote_qpn = to->qp_num, .remote_qkey = to->qkey } }
	};
	struct ibv_send_wr *bad;

	assert_non_null(ah);
	memcpy(n->buffer, bytes, length);
	assert_int_equal(ibv_post_send(n->id->qp, &wr, &bad), 0);
	assert_int_equal(next_completion(n->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

CASE(what_has_no_whole_header_is_dropped)
{
	static const uint8_t header[] = { 4, 8, 0x1C, 0x84, 10, 0, 0, 1, 'r', 'i', 'g', 'h', 't' };
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	const int rs = bound(2, PORT);
	struct pollfd p = { .fd = n.channel->fd, .events = POLLIN };
	struct rdma_conn_param param = { .private_data = NULL };
	struct deadline deadline = { 0 };
	struct rdma_cm_event *e;
	struct rdma_ud_param ud;

	node_resolve(&n, 2, PORT);
	node_qp(&n, 0);
	assert_int_equal(rdma_connect(n.id, &param), 0);
	while (poll(&p, 1, 1) != 1) {
		DEADLINE_LOOK(&deadline, "an answer of the rsocket's host");
		expect_nothing(rs); /* it answers within */
	}
	e = next_event(&n);
	assert_event(e, RDMA_CM_EVENT_ESTABLISHED, 0);
	ud = e->param.ud;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	for (uint32_t length = 0; length < 8; length++)
		send_raw(&n, &ud, header, length);
	send_raw(&n, &ud, header, sizeof(header));
	expect_text(rs, 1, "right");
	expect_nothing(rs);
	assert_int_equal(rclose(rs), 0);
}

CASE(more_than_there_is_room_for_is_lost_and_the_rest_in_order)
{
	int server = rsocket(AF_INET, SOCK_DGRAM, 0), client, receives = 8, got, last = -1, n = 0;
	union address a = host_address(2, PORT);

	assert_int_equal(rsetsockopt(server, SOL_RDMA, RDMA_RQSIZE, &receives, sizeof(receives)),
	                 0);
	assert_int_equal(rbind(server, &a.sa, sizeof(a.in)), 0);
	client = connected(1, 2, PORT);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(rsend(client, &i, sizeof(i), 0), sizeof(i));
	while (rrecv(server, &got, sizeof(got), MSG_DONTWAIT) > 0) {
		assert_true(got > last);
		last = got;
		n++;
	}
	assert_int_equal(n, receives);
	close_all(client, server);
}

CASE(shutting_down_ends_reading_and_writing)
{
	int server = bound(2, PORT), client = connected(1, 2, PORT);
	char byte;

	assert_fails(rshutdown(server, SHUT_RD), ENOTCONN);
	assert_fails(rshutdown(client, 9), EINVAL);
	assert_int_equal(rshutdown(client, SHUT_WR), 0);
	assert_fails(rsend(client, "x", 1, 0), EPIPE);
	send_text(server, 1, port_of(client), "still read");
	expect_text(client, 2, "still read");
	assert_int_equal(rshutdown(client, SHUT_RD), 0);
	assert_int_equal(rrecv(client, &byte, 1, 0), 0);
	close_all(client, server);
}

/* ---- polling ---- */

CASE(rpoll_takes_rsockets_and_others_mixed)
{
	int rs = bound(2, PORT), quiet = bound(3, 0), client = connected(1, 2, PORT);
	int e = eventfd(0, 0);
	struct pollfd p[] = { { .fd = e, .events = POLLIN },
		              { .fd = rs, .events = POLLIN },
		              { .fd = -1, .events = POLLIN },
		              { .fd = quiet, .events = POLLIN } };

	assert_int_equal(rpoll(p, 4, 0), 0);
	assert_int_equal(rpoll(p, 4, 20), 0);
	assert_int_equal(eventfd_write(e, 1), 0);
	assert_int_equal(rpoll(p, 4, -1), 1);
	assert_int_equal(p[0].revents, POLLIN);
	assert_int_equal(p[1].revents, 0);
	assert_int_equal(rsend(client, "x", 1, 0), 1);
	assert_int_equal(rpoll(p, 4, -1), 2);
	assert_int_equal(p[1].revents, POLLIN);
	assert_int_equal(p[3].revents, 0);
	expect_text(rs, 1, "x");
	p[1].events = p[3].events = POLLIN | POLLOUT;
	assert_int_equal(rpoll(p, 4, -1), 3);
	assert_int_equal(p[1].revents, POLLOUT);
	assert_int_equal(rpoll(NULL, 0, 1), 0);
	close(e);
	assert_int_equal(rclose(quiet), 0);
	close_all(client, rs);
}

CASE(rselect_takes_rsockets_and_others_mixed)
{
	int rs = bound(2, PORT), client = connected(1, 2, PORT), pipefd[2], n;
	struct timeval none = { 0 };
	fd_set in, out;

	assert_int_equal(pipe(pipefd), 0);
	n = 1 + (rs > pipefd[1] ? rs : pipefd[1]);
	FD_ZERO(&in);
	FD_SET(rs, &in);
	FD_SET(pipefd[0], &in);
	assert_int_equal(rselect(n, &in, NULL, NULL, &none), 0);
	assert_false(FD_ISSET(rs, &in));
	assert_int_equal(rsend(client, "x", 1, 0), 1);
	FD_SET(rs, &in);
	FD_SET(pipefd[0], &in);
	FD_ZERO(&out);
	FD_SET(pipefd[1], &out);
	assert_int_equal(rselect(n, &in, &out, NULL, NULL), 2);
	assert_true(FD_ISSET(rs, &in) && FD_ISSET(pipefd[1], &out));
	assert_false(FD_ISSET(pipefd[0], &in));
	close(pipefd[0]);
	close(pipefd[1]);
	FD_SET(pipefd[0], &in);
	assert_fails(rselect(n, &in, NULL, NULL, &none), EBADF);
	close_all(client, rs);
}

static void *send_later(void *arg)
{
	int *rs = arg;

	send_text(*rs, 2, PORT, "later");
	return NULL;
}

CASE(who_waits_is_woken)
{
	int rs = bound(2, PORT), client = bound(1, 0), e = eventfd(0, 0);
	struct pollfd p[] = { { .fd = e, .events = POLLIN }, { .fd = rs, .events = POLLIN } };
	pthread_t thread;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(pthread_create(&thread, NULL, send_later, &client), 0);
		if (i % 2)
			assert_int_equal(rpoll(p, 2, -1), 1);
		expect_text(rs, 1, "later");
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	close(e);
	close_all(client, rs);
}

struct crowd {
	int rs;
	_Atomic int got;
};

static void *receive_one_each(void *arg)
{
	struct crowd *c = arg;
	char byte;

	if (rrecv(c->rs, &byte, 1, 0) == 1)
		c->got++;
	return NULL;
}

CASE(each_of_several_sleepers_gets_its_datagram)
{
	struct crowd c = { .rs = bound(2, PORT) };
	int client = connected(1, 2, PORT);
	pthread_t thread[8];

	for (int round = 0; round < 50; round++) {
		c.got = 0;
		for (int i = 0; i < 8; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, receive_one_each, &c), 0);
		for (int i = 0; i < 8; i++)
			assert_int_equal(rsend(client, "x", 1, 0), 1);
		for (int i = 0; i < 8; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(c.got, 8);
	}
	close_all(client, c.rs);
}

/* ---- interrupted ---- */

static void on_alarm(int signal)
{
	(void)signal;
}

CASE(a_signal_interrupts_who_waits)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
	int rs = bound(2, PORT), client = connected(1, 2, PORT);
	struct pollfd p = { .fd = rs, .events = POLLIN };
	char byte;

	/* the first one may wait, until the port's socket there is found */
	assert_int_equal(rsend(client, "x", 1, 0), 1);
	assert_int_equal(rrecv(rs, &byte, 1, 0), 1);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_fails(rrecv(rs, &byte, 1, 0), EINTR);
	assert_fails(rpoll(&p, 1, -1), EINTR);
	for (int i = 0; i < 20000; i++) { /* what need not wait is not disturbed */
		assert_int_equal(rsend(client, "x", 1, 0), 1);
		assert_int_equal(rrecv(rs, &byte, 1, 0), 1);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	close_all(client, rs);
}

/* ---- processes ---- */

/* Echoes @n datagrams in a child; then the child waits to be killed, or ends. */
static pid_t echo_in_child(unsigned host, int n, bool stay)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		int rs = bound(host, PORT);
		char buffer[64];

		if (write(ready[1], "", 1) != 1)
			_exit(1);
		while (n--) {
			union address from;
			socklen_t bytes = sizeof(from);
			ssize_t got = rrecvfrom(rs, buffer, sizeof(buffer), 0, &from.sa, &bytes);

			if (got < 0 || rsendto(rs, buffer, (size_t)got, 0, &from.sa, bytes) != got)
				_exit(2);
		}
		while (stay)
			pause();
		_exit(rclose(rs));
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

CASE(two_processes_talk)
{
	pid_t child = echo_in_child(2, 1000, false);
	int client = connected(1, 2, PORT);

	for (int i = 0; i < 1000; i++) {
		char text[16];

		snprintf(text, sizeof(text), "number %d", i);
		assert_int_equal(rwrite(client, text, strlen(text)), strlen(text));
		expect_text(client, 2, text);
	}
	harness_expect_success(child);
	assert_int_equal(rclose(client), 0);
}

CASE(after_fork_an_rsocket_stays_the_parents)
{
	int server = bound(2, PORT), client = connected(1, 2, PORT);
	pid_t child;

	assert_int_equal(rsend(client, "before", 6, 0), 6);
	child = fork();
	if (!child) {
		int own;

		if (rsend(client, "child", 5, 0) != -1 || errno != EBADF)
			_exit(1);
		if (rclose(client) || fcntl(client, F_GETFD) != -1)
			_exit(2);
		own = connected(3, 2, PORT);
		_exit(rsend(own, "own", 3, 0) != 3 || rclose(own));
	}
	harness_expect_success(child);
	expect_text(server, 1, "before");
	expect_text(server, 3, "own");
	assert_int_equal(rsend(client, "after", 5, 0), 5);
	expect_text(server, 1, "after");
	close_all(client, server);
}

CASE(a_peer_that_dies_and_comes_again_is_found_again)
{
	int client = connected(1, 2, PORT), status;
	struct pollfd p = { .fd = client, .events = POLLIN };
	pid_t child;

	for (int life = 0; life < 2; life++) {
		child = echo_in_child(2, INT32_MAX, true);
		do /* its queue pair is a new one, for which we ask after a silent second */
			assert_int_equal(rsend(client, "x", 1, 0), 1);
		while (!rpoll(&p, 1, 100));
		expect_text(client, 2, "x");
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		/* nobody is there: lost, and no error */
		assert_int_equal(rsend(client, "y", 1, 0), 1);
		while (rrecv(client, &(char){ 0 }, 1, MSG_DONTWAIT) >= 0)
			;
		expect_nothing(client);
	}
	assert_int_equal(rclose(client), 0);
}
