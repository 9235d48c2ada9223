/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP_TOS of stream rsockets, where it is the traffic class of the path: within host r1, which has
 * RoCE.
 *
 * umbel: --roce-hosts 2 --host r1
 */
#include "rsocket_stream.h"

#define HOST "172.16.0.1"
#define TOS  0x68

static void set_tos(int rs)
{
	const int tos = TOS;

	assert_int_equal(rsetsockopt(rs, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), 0);
}

static void bind_to(int rs, const char *host, uint16_t port)
{
	union address a = address(host, port);

	assert_int_equal(rbind(rs, &a.sa, sizeof(a.in)), 0);
}

static int listener_at(const char *host)
{
	int rs = stream(0);

	bind_to(rs, host, PORT);
	assert_int_equal(rlisten(rs, BACKLOG), 0);
	return rs;
}

/* Closes it. */
static void expect_tos_of_path(int rs, int listener)
{
	union address to = address(HOST, PORT);
	struct ibv_path_data path;
	socklen_t bytes = sizeof(path);
	int accepted;

	assert_int_equal(rconnect(rs, &to.sa, sizeof(to.in)), 0);
	assert_int_equal(rgetsockopt(rs, SOL_RDMA, RDMA_ROUTE, &path, &bytes), 0);
	assert_int_equal(path.path.tclass, TOS);
	accepted = raccept(listener, NULL, NULL);
	assert_true(accepted >= 0);
	close_both(rs, accepted);
}

CASE(whenever_it_is_set_before_connecting_the_path_has_it)
{
	int listener = listener_at(HOST), rs = stream(0);

	set_tos(rs);
	expect_tos_of_path(rs, listener);

	rs = stream(0);
	set_tos(rs);
	bind_to(rs, HOST, 0);
	expect_tos_of_path(rs, listener);

	rs = stream(0);
	bind_to(rs, HOST, 0);
	set_tos(rs);
	expect_tos_of_path(rs, listener);
	assert_int_equal(rclose(listener), 0);
}
