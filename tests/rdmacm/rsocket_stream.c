/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stream rsockets (rsocket(7)) of hosts h1 to h4, both ends in one process: connected, accepted,
 * sent to and received from in all ways, polled, shut down by halves, mapped. rsocket_stream_ends.c
 * has what ends badly, and other processes.
 */
#include "rsocket_stream.h"

#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/select.h>

#include "base/pause.h"

#define MANY (1 << 20)

/* ---- connecting ---- */

CASE(bytes_go_both_ways)
{
	struct pair CLOSED_PAIR p = connected_pair();
	char text[8] = "";

	assert_int_equal(rsend(p.client, "there", 5, 0), 5);
	assert_int_equal(rrecv(p.server, text, sizeof(text), 0), 5);
	assert_string_equal(text, "there");
	assert_int_equal(rwrite(p.server, "back", 4), 4);
	assert_int_equal(rread(p.client, text, 4), 4);
	assert_memory_equal(text, "back", 4);
}

CASE(names_are_those_of_both_ends)
{
	struct pair CLOSED_PAIR p = connected_pair();
	union address a, b;
	socklen_t bytes = sizeof(a);

	assert_int_equal(rgetpeername(p.client, &a.sa, &bytes), 0);
	assert_int_equal(a.in.sin_addr.s_addr, host_address(2, 0).in.sin_addr.s_addr);
	assert_int_equal(ntohs(a.in.sin_port), PORT);
	assert_int_equal(rgetpeername(p.server, &a.sa, &bytes), 0);
	assert_int_equal(a.in.sin_addr.s_addr, host_address(1, 0).in.sin_addr.s_addr);
	assert_int_equal(rgetsockname(p.client, &b.sa, &bytes), 0);
	assert_memory_equal(&a.in, &b.in, sizeof(a.in));
	assert_int_equal(rgetsockname(p.server, &b.sa, &bytes), 0);
	assert_int_equal(b.in.sin_addr.s_addr, host_address(2, 0).in.sin_addr.s_addr);
}

CASE(without_blocking_it_is_in_progress_and_then_writable)
{
	int listener = listening(2, PORT), client = stream(SOCK_NONBLOCK), server, error = -1;
	union address to = host_address(2, PORT);
	struct pollfd out = { .fd = client, .events = POLLOUT };
	struct pollfd in = { .fd = listener, .events = POLLIN };
	socklen_t bytes = sizeof(error);

	assert_int_equal(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
	assert_fails(raccept(listener, NULL, NULL), EAGAIN);
	assert_int_equal(rpoll(&in, 1, 0), 0);
	assert_fails(rconnect(client, &to.sa, sizeof(to.in)), EINPROGRESS);
	assert_fails(rsend(client, "x", 1, 0), EAGAIN);
	assert_int_equal(rpoll(&out, 1, -1), 1);
	assert_int_equal(out.revents, POLLOUT);
	assert_int_equal(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	assert_int_equal(error, 0);
	assert_int_equal(rconnect(client, &to.sa, sizeof(to.in)), 0);
	assert_int_equal(rpoll(&in, 1, -1), 1);
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(rfcntl(server, F_GETFL), O_RDWR);
	assert_fails(rrecv(client, &(char){ 0 }, 1, 0), EAGAIN);
	close_both(client, server);
	assert_int_equal(rclose(listener), 0);
}

CASE(nobody_there_is_refused)
{
	int client = stream(SOCK_NONBLOCK), blocking = stream(0), error = 0;
	union address to = host_address(2, 9);
	struct pollfd p = { .fd = client, .events = POLLOUT };
	socklen_t bytes = sizeof(error);

	assert_fails(rconnect(client, &to.sa, sizeof(to.in)), EINPROGRESS);
	assert_int_equal(rpoll(&p, 1, -1), 1);
	assert_true(p.revents & POLLERR && p.revents & POLLOUT);
	assert_int_equal(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	assert_int_equal(error, ECONNREFUSED);
	assert_int_equal(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	assert_int_equal(error, 0);
	assert_fails(rsend(client, "x", 1, 0), ENOTCONN);
	assert_fails(rconnect(blocking, &to.sa, sizeof(to.in)), ECONNREFUSED);
	close_both(client, blocking);
}

CASE(a_host_that_is_not_there_is_unreachable)
{
	union address nowhere = address("10.9.9.9", PORT), from = host_address(1, 0);
	int client = stream(0);

	assert_int_equal(rbind(client, &from.sa, sizeof(from.in)), 0);
	assert_fails(rconnect(client, &nowhere.sa, sizeof(nowhere.in)), EHOSTUNREACH);
	assert_int_equal(rclose(client), 0);
}

CASE(who_is_not_connected_can_do_little)
{
	int client = stream(0), listener = listening(2, PORT);
	union address to = host_address(2, PORT), a;
	socklen_t bytes = sizeof(a);
	char byte = 0;

	assert_fails(rsend(client, &byte, 1, 0), ENOTCONN);
	assert_fails(rrecv(client, &byte, 1, 0), ENOTCONN);
	assert_fails(rshutdown(client, SHUT_WR), ENOTCONN);
	assert_fails(rgetpeername(client, &a.sa, &bytes), ENOTCONN);
	assert_fails(raccept(client, NULL, NULL), EINVAL);
	assert_fails(riomap(client, &byte, 1, PROT_WRITE, 0, 0), EINVAL);
	assert_fails(rrecv(listener, &byte, 1, 0), ENOTCONN);
	assert_fails(rconnect(listener, &to.sa, sizeof(to.in)), EINVAL);
	close_both(client, listener);
}

CASE(a_port_number_belongs_to_one_listener)
{
	int listener = listening(2, PORT), other = stream(0);
	union address to = host_address(2, PORT);

	assert_fails(rbind(other, &to.sa, sizeof(to.in)), EADDRINUSE);
	assert_int_equal(rclose(listener), 0);
	assert_int_equal(rbind(other, &to.sa, sizeof(to.in)), 0);
	assert_int_equal(rclose(other), 0);
}

CASE(ipv6_and_ipv4_by_one_listener)
{
	union address any = address("::", PORT), six = address("fd75:6d62:656c::2", PORT), from;
	union address four = host_address(2, PORT), mapped = address("::ffff:10.0.0.1", 0);
	int listener = rsocket(AF_INET6, SOCK_STREAM, IPPROTO_TCP), a, b, server;
	socklen_t bytes = sizeof(from);

	assert_int_equal(rbind(listener, &any.sa, sizeof(any.in6)), 0);
	assert_int_equal(rlisten(listener, 2), 0);
	a = rsocket(AF_INET6, SOCK_STREAM, 0);
	assert_int_equal(rconnect(a, &six.sa, sizeof(six.in6)), 0);
	server = raccept(listener, &from.sa, &bytes);
	assert_true(server >= 0);
	assert_int_equal(from.sa.sa_family, AF_INET6);
	close_both(a, server);
	b = bound(1);
	assert_int_equal(rconnect(b, &four.sa, sizeof(four.in)), 0);
	bytes = sizeof(from);
	server = raccept(listener, &from.sa, &bytes);
	assert_int_equal(bytes, sizeof(from.in6));
	assert_memory_equal(&from.in6.sin6_addr, &mapped.in6.sin6_addr, 16);
	close_both(b, server);
	assert_int_equal(rclose(listener), 0);
}

/* A client is connected once the listener's reply has come. The listener has the client's answer to
 * that later, so it may accept them in another order. */
CASE(many_connect_before_any_is_accepted)
{
	enum { N = 40 };
	int listener = listening(2, PORT), client[N], server, from;
	bool seen[N] = { false };

	for (int i = 0; i < N; i++) {
		client[i] = connected_to(2, PORT);
		assert_int_equal(rsend(client[i], &i, sizeof(i), 0), sizeof(i));
	}
	for (int i = 0; i < N; i++) {
		server = raccept(listener, NULL, NULL);
		assert_true(server >= 0);
		assert_int_equal(rrecv(server, &from, sizeof(from), MSG_WAITALL), sizeof(from));
		assert_in_range(from, 0, N - 1);
		assert_false(seen[from]);
		seen[from] = true;
		close_both(client[from], server);
	}
	assert_int_equal(rclose(listener), 0);
}

/* ---- options ---- */

static int get(int rs, int level, int name)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	assert_int_equal(rgetsockopt(rs, level, name, &value, &bytes), 0);
	return value;
}

static void set(int rs, int level, int name, int value)
{
	assert_int_equal(rsetsockopt(rs, level, name, &value, sizeof(value)), 0);
}

CASE(options_are_kept_or_refused)
{
	struct linger linger = { 1, 5 }, got;
	socklen_t bytes = sizeof(got);
	int rs = stream(0), six = rsocket(AF_INET6, SOCK_STREAM, 0), value = 1;

	assert_int_equal(get(rs, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	set(rs, SOL_SOCKET, SO_REUSEADDR, 1);
	assert_int_equal(get(rs, SOL_SOCKET, SO_REUSEADDR), 1);
	set(rs, SOL_SOCKET, SO_SNDBUF, 1 << 19);
	assert_int_equal(get(rs, SOL_SOCKET, SO_SNDBUF), 1 << 20);
	set(rs, SOL_SOCKET, SO_RCVBUF, 1 << 18);
	assert_int_equal(get(rs, SOL_SOCKET, SO_RCVBUF), 1 << 19);
	set(rs, SOL_SOCKET, SO_KEEPALIVE, 1);
	assert_int_equal(get(rs, SOL_SOCKET, SO_KEEPALIVE), 1);
	set(rs, IPPROTO_TCP, TCP_KEEPIDLE, 7);
	assert_int_equal(get(rs, IPPROTO_TCP, TCP_KEEPIDLE), 7);
	set(rs, IPPROTO_TCP, TCP_KEEPCNT, 3);
	set(rs, IPPROTO_TCP, TCP_KEEPINTVL, 3);
	set(rs, IPPROTO_TCP, TCP_NODELAY, 1);
	assert_int_equal(get(rs, IPPROTO_TCP, TCP_NODELAY), 1);
	assert_int_equal(get(rs, IPPROTO_TCP, TCP_MAXSEG), 2048);
	set(rs, SOL_RDMA, RDMA_SQSIZE, 100);
	set(rs, SOL_RDMA, RDMA_RQSIZE, 200);
	set(rs, SOL_RDMA, RDMA_INLINE, 32);
	set(rs, SOL_RDMA, RDMA_IOMAPSIZE, 1000);
	assert_int_equal(get(rs, SOL_RDMA, RDMA_SQSIZE), 100);
	assert_int_equal(get(rs, SOL_RDMA, RDMA_RQSIZE), 200);
	assert_int_equal(get(rs, SOL_RDMA, RDMA_INLINE), 32);
	assert_int_equal(get(rs, SOL_RDMA, RDMA_IOMAPSIZE), 768); /* 8 bits have to do */
	assert_int_equal(rsetsockopt(rs, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(rgetsockopt(rs, SOL_SOCKET, SO_LINGER, &got, &bytes), 0);
	assert_memory_equal(&got, &linger, sizeof(got));
	set(six, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	assert_int_equal(get(six, IPPROTO_IPV6, IPV6_V6ONLY), 1);
	assert_fails(rsetsockopt(rs, SOL_SOCKET, SO_BROADCAST, &value, sizeof(value)), ENOTSUP);
	assert_fails(rsetsockopt(rs, IPPROTO_TCP, TCP_CORK, &value, sizeof(value)), ENOTSUP);
	close_both(rs, six);
}

CASE(options_of_queues_are_fixed_once_there_are_any)
{
	struct pair CLOSED_PAIR p = connected_pair();
	int value = 100, before = get(p.client, SOL_SOCKET, SO_SNDBUF);

	set(p.client, SOL_SOCKET, SO_SNDBUF, 1 << 20);
	assert_int_equal(get(p.client, SOL_SOCKET, SO_SNDBUF), before);
	assert_fails(rsetsockopt(p.client, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EINVAL);
	assert_int_equal(get(p.client, IPPROTO_TCP, TCP_MAXSEG), 4096);
}

CASE(the_path_can_be_asked_for_and_given)
{
	struct pair p = connected_pair(), q;
	struct ibv_path_data path[4];
	socklen_t bytes = sizeof(path);
	union address to = host_address(2, PORT + 1);

	assert_int_equal(rgetsockopt(p.client, SOL_RDMA, RDMA_ROUTE, path, &bytes), 0);
	assert_int_equal(bytes, sizeof(path[0]));
	q.listener = listening(2, PORT + 1);
	q.client = bound(1);
	assert_int_equal(rsetsockopt(q.client, SOL_RDMA, RDMA_ROUTE, path, bytes), 0);
	assert_int_equal(rconnect(q.client, &to.sa, sizeof(to.in)), 0);
	q.server = raccept(q.listener, NULL, NULL);
	expect_bytes_pass(q.client, q.server);
	close_pair(&q);
	close_pair(&p);
}

/* ---- sending and receiving ---- */

CASE(bytes_of_all_sizes_arrive_in_order)
{
	static const size_t sizes[] = { 1,    63,    64,    65,     2047,    2048,   2049,
		                        4096, 65535, 65536, 131071, 1 << 18, 777777, MANY };
	struct pair CLOSED_PAIR p = connected_pair();

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct transfer out = { .rs = p.client, .bytes = sizes[i], .seed = (unsigned)i };
		struct transfer in = { .rs = p.server, .bytes = sizes[i], .seed = (unsigned)i };

		begin_sending(&out);
		receive_all(&in);
		end_sending(&out);
	}
}

CASE(small_buffers_and_queues_carry_much_as_well)
{
	struct pair CLOSED_PAIR p = { .listener = listening(2, PORT), .client = bound(1) };
	union address to = host_address(2, PORT);
	struct transfer out = { .bytes = MANY }, in = { .bytes = MANY };

	set(p.client, SOL_SOCKET, SO_SNDBUF, 1);
	set(p.client, SOL_RDMA, RDMA_SQSIZE, 1);
	set(p.client, SOL_RDMA, RDMA_INLINE, 0);
	set(p.listener, SOL_SOCKET, SO_RCVBUF, 1);
	set(p.listener, SOL_RDMA, RDMA_RQSIZE, 1);
	assert_int_equal(rconnect(p.client, &to.sa, sizeof(to.in)), 0);
	p.server = raccept(p.listener, NULL, NULL);
	out.rs = p.client;
	in.rs = p.server;
	begin_sending(&out);
	receive_all(&in);
	end_sending(&out);
}

CASE(both_send_at_once_and_each_receives_in_another_thread)
{
	struct pair CLOSED_PAIR p = connected_pair();
	struct transfer there = { .rs = p.client, .bytes = 8 * MANY, .seed = 1 };
	struct transfer back = { .rs = p.server, .bytes = 8 * MANY, .seed = 2 };
	struct transfer in_server = { .rs = p.server, .bytes = 8 * MANY, .seed = 1 };
	struct transfer in_client = { .rs = p.client, .bytes = 8 * MANY, .seed = 2 };

	begin_sending(&there);
	begin_sending(&back);
	begin_receiving(&in_server);
	receive_all(&in_client);
	end_sending(&there);
	end_sending(&back);
	end_receiving(&in_server);
}

CASE(lists_of_buffers)
{
	struct pair CLOSED_PAIR p = connected_pair();
	char a[4] = "", b[16] = "";
	struct iovec out[] = { { "abc", 3 }, { NULL, 0 }, { "defgh", 5 } };
	struct iovec in[] = { { a, 3 }, { NULL, 0 }, { b, 5 } };
	struct msghdr to = { .msg_iov = out, .msg_iovlen = 3 };
	struct msghdr from = { .msg_iov = in, .msg_iovlen = 3 };

	assert_int_equal(rwritev(p.client, out, 3), 8);
	assert_int_equal(rreadv(p.server, in, 3), 8);
	assert_string_equal(a, "abc");
	assert_string_equal(b, "defgh");
	memset(b, 0, sizeof(b));
	assert_int_equal(rsendmsg(p.client, &to, MSG_NOSIGNAL), 8);
	assert_int_equal(rrecvmsg(p.server, &from, 0), 8);
	assert_string_equal(b, "defgh");
	assert_fails(rsendto(p.client, "x", 1, 0, &(struct sockaddr){ 0 }, 8), EISCONN);
	assert_fails(rsend(p.client, "x", 1, MSG_OOB), EOPNOTSUPP);
}

CASE(peeking_leaves_what_is_there)
{
	struct pair CLOSED_PAIR p = connected_pair();
	char text[8] = "";

	assert_int_equal(rsend(p.client, "abcd", 4, 0), 4);
	assert_int_equal(rrecv(p.server, text, 2, MSG_PEEK), 2);
	assert_string_equal(text, "ab");
	assert_int_equal(rrecv(p.server, text, sizeof(text), MSG_PEEK), 4);
	assert_string_equal(text, "abcd");
	assert_int_equal(rrecv(p.server, text, 1, 0), 1);
	assert_int_equal(rrecv(p.server, text, sizeof(text), 0), 3);
	assert_memory_equal(text, "bcd", 3);
	assert_fails(rrecv(p.server, text, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	assert_int_equal(rrecv(p.server, text, 0, 0), 0);
}

static void *send_rest(void *arg)
{
	assert_int_equal(rsend(*(int *)arg, "rest", 4, 0), 4);
	return NULL;
}

CASE(waiting_for_all_is_one_call)
{
	struct pair CLOSED_PAIR p = connected_pair();
	pthread_t thread;
	char text[12] = "";

	assert_int_equal(rsend(p.client, "begun, ", 7, 0), 7);
	assert_int_equal(rrecv(p.server, text, 1, MSG_PEEK), 1);
	assert_int_equal(pthread_create(&thread, NULL, send_rest, &p.client), 0);
	assert_int_equal(rrecv(p.server, text, 11, MSG_WAITALL), 11);
	assert_string_equal(text, "begun, rest");
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Sends without waiting until no more goes. */
static size_t fill(int rs)
{
	const int late_ms = getenv("UMBEL_WEAK") ? 50 : 0;
	struct pollfd out = { .fd = rs, .events = POLLOUT };
	static char block[10000];
	size_t sent = 0;
	ssize_t n;

	do {
		while ((n = rsend(rs, block, sizeof(block), MSG_DONTWAIT)) > 0)
			sent += (size_t)n;
		assert_int_equal(n, -1);
		assert_int_equal(errno, EAGAIN);
	} while (rpoll(&out, 1, late_ms)); /* its own requests may complete later */
	return sent;
}

static void empty(int rs, size_t bytes)
{
	char block[10000];

	while (bytes) {
		ssize_t n = rrecv(rs, block, bytes < sizeof(block) ? bytes : sizeof(block), 0);

		assert_true(n > 0);
		bytes -= (size_t)n;
	}
}

CASE(who_is_not_read_from_is_not_writable)
{
	struct pair CLOSED_PAIR p = connected_pair();
	struct pollfd out = { .fd = p.client, .events = POLLOUT };

	for (int round = 0; round < 5; round++) {
		size_t sent = fill(p.client);

		assert_true(sent >= 65536);
		assert_int_equal(rpoll(&out, 1, 0), 0);
		assert_int_equal(rpoll(&out, 1, 20), 0);
		empty(p.server, sent);
		assert_int_equal(rpoll(&out, 1, -1), 1);
		assert_int_equal(out.revents, POLLOUT);
	}
}

CASE(small_messages_that_nobody_reads_end_with_the_credits)
{
	struct pair p = connected_pair();
	size_t n = 0;

	while (rsend(p.client, "x", 1, MSG_DONTWAIT) == 1)
		n++;
	assert_int_equal(errno, EAGAIN);
	assert_true(n >= 100);
	/* there is room for the message that ends it, all the same */
	assert_int_equal(rclose(p.client), 0);
	empty(p.server, n);
	assert_int_equal(rrecv(p.server, &(char){ 0 }, 1, 0), 0);
	close_both(p.server, p.listener);
}

/* ---- shutting down ---- */

CASE(one_half_is_shut_down_and_the_other_goes_on)
{
	struct pair CLOSED_PAIR p = connected_pair();
	struct pollfd in = { .fd = p.server, .events = POLLIN | POLLRDHUP };
	char text[8] = "";

	assert_fails(rshutdown(p.client, 9), EINVAL);
	assert_int_equal(rsend(p.client, "last", 4, 0), 4);
	assert_int_equal(rshutdown(p.client, SHUT_WR), 0);
	assert_fails(rsend(p.client, "x", 1, 0), EPIPE);
	assert_int_equal(rrecv(p.server, text, sizeof(text), 0), 4);
	assert_int_equal(rrecv(p.server, text, sizeof(text), 0), 0);
	assert_int_equal(rpoll(&in, 1, -1), 1);
	assert_int_equal(in.revents, POLLIN | POLLRDHUP);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(rsend(p.server, "answer", 6, 0), 6);
		assert_int_equal(rrecv(p.client, text, 6, MSG_WAITALL), 6);
	}
	assert_int_equal(rshutdown(p.server, SHUT_WR), 0);
	assert_int_equal(rrecv(p.client, text, sizeof(text), 0), 0);
}

CASE(what_was_sent_arrives_though_it_is_closed)
{
	struct pair p = connected_pair();
	size_t sent = fill(p.client);
	struct pollfd in = { .fd = p.server, .events = POLLIN };

	assert_int_equal(rclose(p.client), 0);
	assert_int_equal(rpoll(&in, 1, -1), 1);
	assert_int_equal(in.revents, POLLIN); /* the end is told after the bytes */
	empty(p.server, sent);
	assert_int_equal(rrecv(p.server, &(char){ 0 }, 1, 0), 0);
	assert_int_equal(rpoll(&in, 1, -1), 1);
	assert_int_equal(in.revents, POLLIN | POLLHUP);
	assert_fails(rsend(p.server, "x", 1, 0), ECONNRESET);
	close_both(p.server, p.listener);
}

CASE(who_reads_no_more_can_still_send)
{
	struct pair CLOSED_PAIR p = connected_pair();
	char byte;

	assert_int_equal(rshutdown(p.client, SHUT_RD), 0);
	assert_int_equal(rrecv(p.client, &byte, 1, 0), 0);
	assert_int_equal(rsend(p.client, "x", 1, 0), 1);
	assert_int_equal(rrecv(p.server, &byte, 1, 0), 1);
	assert_int_equal(rshutdown(p.client, SHUT_WR), 0);
	assert_int_equal(rrecv(p.server, &byte, 1, 0), 0);
}

static void *close_it(void *arg)
{
	assert_int_equal(rshutdown(*(int *)arg, SHUT_RDWR), 0);
	return NULL;
}

CASE(who_waits_hears_of_the_end)
{
	pthread_t thread;
	char byte;

	for (int i = 0; i < 20; i++) {
		struct pair p = connected_pair();
		int *who = i % 2 ? &p.client : &p.server;

		assert_int_equal(pthread_create(&thread, NULL, close_it, who), 0);
		assert_int_equal(rrecv(p.server, &byte, 1, 0), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		close_pair(&p);
	}
}

/* ---- polling ---- */

CASE(rpoll_takes_rsockets_and_others_mixed)
{
	struct pair CLOSED_PAIR p = connected_pair();
	int pipefd[2];
	struct pollfd fds[4] = { { .fd = p.server, .events = POLLIN },
		                 { .fd = -1, .events = POLLIN },
		                 { .events = POLLIN },
		                 { .fd = p.listener, .events = POLLIN } };

	assert_int_equal(pipe(pipefd), 0);
	fds[2].fd = pipefd[0];
	assert_int_equal(rpoll(fds, 4, 0), 0);
	assert_int_equal(rpoll(fds, 4, 20), 0);
	assert_int_equal(write(pipefd[1], "x", 1), 1);
	assert_int_equal(rpoll(fds, 4, -1), 1);
	assert_int_equal(fds[2].revents, POLLIN);
	assert_int_equal(rsend(p.client, "x", 1, 0), 1);
	assert_int_equal(rpoll(fds, 4, -1), 2);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(fds[3].revents, 0);
	assert_int_equal(rrecv(p.server, &(char){ 0 }, 1, 0), 1);
	close(pipefd[0]);
	close(pipefd[1]);
}

CASE(rselect_takes_rsockets_and_others_mixed)
{
	struct pair CLOSED_PAIR p = connected_pair();
	struct timeval none = { 0 };
	int e = eventfd(0, 0), n = 1 + (e > p.server ? e : p.server);
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(p.server, &in);
	FD_SET(e, &in);
	assert_int_equal(rselect(n, &in, NULL, NULL, &none), 0);
	assert_int_equal(rsend(p.client, "x", 1, 0), 1);
	FD_SET(p.server, &in);
	FD_SET(e, &in);
	assert_int_equal(rselect(n, &in, NULL, NULL, NULL), 1);
	FD_SET(p.server, &out);
	FD_SET(e, &in);
	assert_int_equal(rselect(n, &in, &out, NULL, NULL), 2);
	assert_true(FD_ISSET(p.server, &in) && FD_ISSET(p.server, &out));
	assert_false(FD_ISSET(e, &in));
	close(e);
}

static void *send_one(void *arg)
{
	assert_int_equal(rsend(*(int *)arg, "x", 1, 0), 1);
	return NULL;
}

CASE(who_waits_is_woken)
{
	struct pair CLOSED_PAIR p = connected_pair();
	struct pollfd in = { .fd = p.server, .events = POLLIN };
	pthread_t thread;

	for (int i = 0; i < 200; i++) {
		assert_int_equal(pthread_create(&thread, NULL, send_one, &p.client), 0);
		if (i % 2)
			assert_int_equal(rpoll(&in, 1, -1), 1);
		assert_int_equal(rrecv(p.server, &(char){ 0 }, 1, 0), 1);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void *read_to_the_end(void *arg)
{
	char byte;

	while (rrecv(*(int *)arg, &byte, 1, 0) > 0)
		;
	return NULL;
}

CASE(one_polls_while_another_waits_in_a_call)
{
	struct pair CLOSED_PAIR p = connected_pair();
	struct pollfd out = { .fd = p.server, .events = POLLOUT };
	pthread_t reader;

	assert_int_equal(pthread_create(&reader, NULL, read_to_the_end, &p.server), 0);
	for (int i = 0; i < 50; i++) {
		size_t sent = fill(p.server);

		assert_int_equal(rsend(p.client, "x", 1, 0), 1);
		assert_int_equal(rpoll(&out, 1, i % 3), 0);
		empty(p.client, sent);
		assert_int_equal(rpoll(&out, 1, -1), 1);
	}
	assert_int_equal(rshutdown(p.client, SHUT_WR), 0);
	assert_int_equal(pthread_join(reader, NULL), 0);
}

static void on_alarm(int signal)
{
	(void)signal;
}

CASE(a_signal_interrupts_who_waits)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
	struct pair CLOSED_PAIR p = connected_pair();
	struct pollfd in = { .fd = p.server, .events = POLLIN };
	char byte;

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_fails(rrecv(p.server, &byte, 1, 0), EINTR);
	assert_fails(raccept(p.listener, NULL, NULL), EINTR);
	assert_fails(rpoll(&in, 1, -1), EINTR);
	for (int i = 0; i < 20000; i++) { /* what need not wait is not disturbed */
		assert_int_equal(rsend(p.client, "x", 1, 0), 1);
		while (rpoll(&in, 1, -1) != 1)
			assert_int_equal(errno, EINTR);
		assert_int_equal(rrecv(p.server, &byte, 1, 0), 1);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

/* ---- rsockets that no call waits for ---- */

static bool is_writable(int rs)
{
	struct pollfd out = { .fd = rs, .events = POLLOUT };
	int n = rpoll(&out, 1, 0);

	assert_true(n >= 0);
	return n && out.revents == POLLOUT;
}

/* By calls that never sleep, of rsockets that have nothing to do with it. */
CASE(connecting_goes_on_by_calls_that_do_not_wait)
{
	struct pair CLOSED_PAIR p = connected_pair();
	struct pollfd in = { .fd = p.server, .events = POLLIN };
	char byte;

	assert_int_equal(rfcntl(p.listener, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 3; i++) {
		int client = connecting_to(2, PORT), server;

		expect_soon("raccept() between calls of another connection");
		do {
			if (i == 0)
				assert_fails(rrecv(p.server, &byte, 1, MSG_DONTWAIT), EAGAIN);
			else if (i == 1)
				assert_int_equal(rpoll(&in, 1, 0), 0);
			else
				expect_bytes_pass(p.client, p.server);
			server = raccept(p.listener, NULL, NULL);
		} while (server < 0 && errno == EAGAIN);
		expect_soon(NULL);
		assert_true(server >= 0);
		close_both(client, server);
	}
}

static void *accept_one(void *arg)
{
	struct pair *p = arg;

	p->server = raccept(p->listener, NULL, NULL);
	return NULL;
}

/* Several wait for each of two listeners, in the thread that connects nobody waits. */
CASE(those_who_wait_in_accept_connect_others)
{
	int listener[2] = { listening(2, PORT), listening(3, PORT) }, client[4];
	struct pair waiting[4];
	pthread_t thread[4];

	for (int round = 0; round < 10; round++) {
		expect_soon("raccept() of four threads");
		for (int i = 0; i < 4; i++) {
			waiting[i] = (struct pair){ .listener = listener[i % 2], .server = -1 };
			assert_int_equal(pthread_create(&thread[i], NULL, accept_one, &waiting[i]),
			                 0);
		}
		for (int i = 0; i < 4; i++)
			client[i] = connecting_to(2 + i % 2, PORT);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
		expect_soon(NULL);
		for (int i = 0; i < 4; i++) {
			assert_true(waiting[i].server >= 0);
			close_both(client[i], waiting[i].server);
		}
	}
	close_both(listener[0], listener[1]);
}

static void *connect_it(void *arg)
{
	union address to = host_address(2, PORT);

	(void)rconnect(*(int *)arg, &to.sa, sizeof(to.in));
	return NULL;
}

/* A thread that leads is cancelled: the work that others have left to it is theirs again. */
CASE(connecting_goes_on_though_its_thread_is_cancelled)
{
	struct pair CLOSED_PAIR p = connected_pair();
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		int client = stream(0), error = -1, server;
		socklen_t bytes = sizeof(error);

		assert_int_equal(pthread_create(&thread, NULL, connect_it, &client), 0);
		usleep((unsigned)i * 20);
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(rfcntl(client, F_SETFL, O_NONBLOCK), 0);
		connect_it(&client); /* if it had no time to begin */
		expect_soon("raccept() of what a cancelled thread connected");
		server = raccept(p.listener, NULL, NULL);
		assert_true(server >= 0);
		expect_soon("rpoll() of it");
		while (!is_writable(client))
			;
		expect_soon(NULL);
		assert_int_equal(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
		assert_int_equal(error, 0);
		close_both(client, server);
	}
}

/* ---- mapped memory ---- */

static struct pair pair_with_maps(int n)
{
	struct pair p = { .listener = listening(2, PORT), .client = bound(1) };
	union address to = host_address(2, PORT);

	set(p.client, SOL_RDMA, RDMA_IOMAPSIZE, n);
	set(p.listener, SOL_RDMA, RDMA_IOMAPSIZE, n);
	assert_int_equal(rconnect(p.client, &to.sa, sizeof(to.in)), 0);
	p.server = raccept(p.listener, NULL, NULL);
	assert_true(p.server >= 0);
	return p;
}

CASE(what_is_written_to_a_mapping_is_there_before_the_next_bytes)
{
	struct pair CLOSED_PAIR p = pair_with_maps(2);
	static char memory[2][100000], data[100000];

	memset(data, 'd', sizeof(data));
	assert_int_equal(riomap(p.server, memory[0], sizeof(memory[0]), PROT_WRITE, 0, 5000), 5000);
	assert_int_equal(riomap(p.server, memory[1], sizeof(memory[1]), PROT_WRITE, 0, -1),
	                 (off_t)(uintptr_t)memory[1]);
	assert_fails(riomap(p.server, data, 1, PROT_WRITE, 0, 0), ENOMEM);
	expect_bytes_pass(p.server, p.client); /* which tells of the mappings */
	assert_int_equal(riowrite(p.client, data, sizeof(data), 5000, 0), sizeof(data));
	assert_int_equal(riowrite(p.client, "x", 1, (off_t)(uintptr_t)&memory[1][7], 0), 1);
	expect_bytes_pass(p.client, p.server);
	assert_memory_equal(memory[0], data, sizeof(data));
	assert_int_equal(memory[1][7], 'x');
	/* as far as the mapping goes, and not beyond */
	assert_int_equal(riowrite(p.client, "yy", 2, 5000 + sizeof(data) - 1, 0), 1);
	assert_int_equal(riowrite(p.client, "yy", 2, 4999, 0), 0);
	assert_int_equal(riounmap(p.server, memory[0], sizeof(memory[0])), 0);
	assert_fails(riounmap(p.server, memory[0], sizeof(memory[0])), EINVAL);
	assert_int_equal(riomap(p.server, data, 1, PROT_WRITE, 0, 0), 0);
}

struct sender {
	int rs;
	_Atomic pid_t tid;
};

static void *send_end(void *arg)
{
	struct sender *sender = arg;

	sender->tid = gettid();
	assert_int_equal(rsend(sender->rs, "end", 3, 0), 3);
	return NULL;
}

/* Until that thread of ours sleeps. */
static void await_sleep(_Atomic pid_t *tid)
{
	struct base_pause pause = { 0 };
	char path[64], state = 0;

	while (!*tid)
		base_pause(&pause);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)*tid);
	while (state != 'S') {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
		base_pause_sleep(&pause);
	}
}

/* A thread that sends waits to tell the peer of the first of three. */
CASE(what_is_unmapped_before_it_is_told_of_is_not_told_of)
{
	struct pair CLOSED_PAIR p = pair_with_maps(4);
	struct sender sender = { .rs = p.server };
	static char memory[3][4096];
	pthread_t thread;
	size_t bytes = fill(p.server);

	for (int i = 0; i < 3; i++)
		assert_int_equal(riomap(p.server, memory[i], 4096, PROT_WRITE, 0, 4096 * i),
		                 4096 * i);
	assert_int_equal(pthread_create(&thread, NULL, send_end, &sender), 0);
	await_sleep(&sender.tid);
	assert_int_equal(riounmap(p.server, memory[0], 4096), 0);
	assert_int_equal(riounmap(p.server, memory[1], 4096), 0);
	empty(p.client, bytes + 3);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(riowrite(p.client, "x", 1, 0, 0), 0);
	assert_int_equal(riowrite(p.client, "x", 1, 4096, 0), 0);
	assert_int_equal(riowrite(p.client, "x", 1, 8192, 0), 1);
	expect_bytes_pass(p.client, p.server);
	assert_int_equal(memory[2][0], 'x');
}

CASE(without_a_table_there_are_no_mappings)
{
	struct pair CLOSED_PAIR p = connected_pair();
	char byte = 0;

	assert_fails(riomap(p.server, &byte, 1, PROT_WRITE, 0, 0), ENOMEM);
	assert_fails(riomap(p.server, &byte, 1, PROT_READ, 0, 0), EINVAL);
	assert_int_equal(riomap(p.server, &byte, 1, PROT_NONE, 0, 0), 0);
	assert_int_equal(riowrite(p.client, &byte, 1, 0, 0), 0);
}
