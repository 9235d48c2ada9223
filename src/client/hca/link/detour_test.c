/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's end of the detour as a sender's: it sends to itself what its own function takes, and
 * nothing by a socket, which it would wait for.
 */
#include <harness.h>

#include "hca/link/detour.h"

static unsigned asked;

static void serve(void *arg, struct control_packet *p)
{
	(void)arg;
	(void)p;
	asked++;
}

static void count(void *arg, const struct control_detour *packet, const void *payload)
{
	unsigned *taken = arg;

	(void)packet;
	(void)payload;
	++*taken;
}

CASE(the_daemon_asks_itself_for_no_socket)
{
	static struct hca_process daemon = { .must_not_block = true };
	const struct control_detour packet = { .src_qpn = 2 };
	unsigned taken = 0;

	assert_int_equal(control_local(&daemon.control, serve, NULL), 0);
	assert_false(hca_detour_send(&daemon, &packet, NULL));
	assert_int_equal(asked, 0);
	daemon.detour.take = count;
	daemon.detour.arg = &taken;
	assert_true(hca_detour_send(&daemon, &packet, NULL));
	assert_int_equal(taken, 1);
	control_close(daemon.control);
}
