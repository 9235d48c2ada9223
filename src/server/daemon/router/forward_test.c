/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of forward.c: senders wait for the other end of a router that is slow, and not for one that
 * stands still. Two routers, each with a socket of which the test is the other end.
 */
#include <harness.h>

#include "daemon/router/router.h"
#include "fabric/forwarding/flow.h"
#include "fabric/forwarding/mcast_path.h"

#define ROUTERS 2
#define PREFIX  0xFEC0000000000001u /* of this subnet; the others' are greater */
#define PAYLOAD 4000
#define MANY    2000 /* packets that no queue of a router takes all */
#define FULL    300  /* some of 1 MiB, and what the socket takes */

struct env {
	uint64_t now_ns;
	struct fabric f;
	struct fabric_routers routers;
	struct fabric_port port[ROUTERS];
	struct daemon_loop loop;
	struct daemon_detour detour;
	struct daemon_routers all;
	int other[ROUTERS]; /* the test's ends */
};

static uint64_t now(void *arg)
{
	return *(uint64_t *)arg;
}

static struct ib_gid gid_in(uint64_t prefix)
{
	struct ib_gid gid = { { 0 } };

	for (int i = 0; i < 8; i++)
		gid.raw[i] = (uint8_t)(prefix >> (56 - 8 * i));
	gid.raw[15] = 1;
	return gid;
}

static void join(struct env *e, unsigned i)
{
	struct daemon_router *r = &e->all.of[i];
	int pair[2];

	e->port[i].router = (uint8_t)(i + 1);
	e->port[i].pkey[0] = 0xFFFF;
	e->routers.port[i] = &e->port[i];
	r->all = &e->all;
	r->port = &e->port[i];
	r->is_up = true;
	r->told.n = 1;
	r->told.route[0].prefix = PREFIX + 1 + i;
	r->link.loop = &e->loop;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(router_link_open(&r->link, pair[0]), 0);
	e->other[i] = pair[1];
}

static int set_up(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	assert_int_equal(daemon_loop_init(&e->loop), 0);
	e->now_ns = 1000 * DAEMON_NS_PER_MS;
	base_timers_init(&e->loop.timers, &(struct base_clock){ .now_ns = now, .arg = &e->now_ns });
	e->f.routers = &e->routers;
	e->f.subnet_prefix = PREFIX;
	e->routers.n = ROUTERS;
	e->detour.loop = &e->loop;
	e->all.f = &e->f;
	e->all.loop = &e->loop;
	e->all.detour = &e->detour;
	router_forward_init(&e->all);
	for (unsigned i = 0; i < ROUTERS; i++)
		join(e, i);
	*state = e;
	return 0;
}

static int tear_down(void **state)
{
	struct env *e = *state;

	for (unsigned i = 0; i < ROUTERS; i++) {
		router_link_close(&e->all.of[i].link);
		router_forward_end(&e->all.of[i]);
		close(e->other[i]);
	}
	daemon_loop_fini(&e->loop);
	free(e);
	return 0;
}

/* That many packets reach the router's port, for its other end. */
static void leave(struct env *e, unsigned router, unsigned n)
{
	static const uint8_t payload[PAYLOAD];
	const struct ib_gid from = gid_in(PREFIX);
	struct fabric_mcast_path path = { .routers = fabric_router_bit(&e->port[router]) };
	struct fabric_flow flow = { .key = { .is_global = true, .dlid = 1 }, .path = &path };
	const struct control_detour packet = { .flags = SHM_ARRIVAL_GRH,
		                               .hop_limit = 64,
		                               .payload_bytes = PAYLOAD,
		                               .h.bth.pkey = 0xFFFF };
	const struct daemon_leaving leaving = {
		.flow = &flow, .packet = &packet, .payload = payload, .sgid = &from
	};

	flow.key.dgid = gid_in(PREFIX + 1 + router);
	while (n--)
		e->detour.leave(e->detour.leave_arg, &leaving);
}

/* The other end takes all. */
static void drain(struct env *e, unsigned router)
{
	static uint8_t message[sizeof(struct router_message)];

	while (e->all.of[router].link.waiting_bytes) {
		while (recv(e->other[router], message, sizeof(message), MSG_DONTWAIT) > 0)
			;
		assert_int_equal(daemon_loop_turn(&e->loop), 0);
	}
	while (recv(e->other[router], message, sizeof(message), MSG_DONTWAIT) > 0)
		;
}

static void pass(struct env *e, uint64_t ms)
{
	e->now_ns += ms * DAEMON_NS_PER_MS;
	base_timers_run(&e->loop.timers);
}

CASE_WITH(a_few_packets_hold_nobody_back, set_up, tear_down)
{
	struct env *e = *state;

	leave(e, 0, 10);
	assert_int_equal(e->all.of[0].sent, 10);
	assert_false(e->detour.is_held_back);
	drain(e, 0);
	assert_false(e->detour.is_held_back);
}

CASE_WITH(senders_wait_until_the_other_end_has_taken_them, set_up, tear_down)
{
	struct env *e = *state;

	for (int i = 0; i < 3; i++) {
		leave(e, 0, FULL);
		assert_true(e->detour.is_held_back);
		drain(e, 0);
		assert_false(e->detour.is_held_back);
	}
	assert_int_equal(e->all.of[0].sent, 3 * FULL);
	assert_int_equal(e->all.of[0].dropped[ROUTER_DROP_FULL], 0);
}

CASE_WITH(senders_wait_for_the_slowest_of_two, set_up, tear_down)
{
	struct env *e = *state;

	leave(e, 0, FULL);
	leave(e, 1, FULL);
	drain(e, 0);
	assert_true(e->detour.is_held_back);
	drain(e, 1);
	assert_false(e->detour.is_held_back);
}

CASE_WITH(senders_do_not_wait_for_one_that_stands_still, set_up, tear_down)
{
	struct env *e = *state;

	leave(e, 0, FULL);
	pass(e, 99);
	assert_true(e->detour.is_held_back);
	pass(e, 1);
	assert_false(e->detour.is_held_back);
	leave(e, 0, MANY); /* not again, either: packets that are too many are lost, and counted */
	assert_false(e->detour.is_held_back);
	assert_int_not_equal(e->all.of[0].dropped[ROUTER_DROP_FULL], 0);
	assert_int_equal(e->all.of[0].sent + e->all.of[0].dropped[ROUTER_DROP_FULL], FULL + MANY);
	drain(e, 0); /* once it has caught up, they do */
	leave(e, 0, FULL);
	assert_true(e->detour.is_held_back);
	pass(e, 50);
	assert_true(e->detour.is_held_back);
}

CASE_WITH(a_router_that_ends_holds_nobody_back, set_up, tear_down)
{
	struct env *e = *state;

	leave(e, 0, FULL);
	assert_true(e->detour.is_held_back);
	router_forward_end(&e->all.of[0]);
	assert_false(e->detour.is_held_back);
	pass(e, 1000); /* no timer is left */
	assert_false(e->all.of[0].is_stalled);
}
