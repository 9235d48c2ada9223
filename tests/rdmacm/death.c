/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon dies: every call says so, and none waits for ever. The last test of this
 * fabric.
 *
 * Ends its fabric.
 */
#include "daemon.h"

#include "base/pause.h"

static struct node blocked, busy, destroyed;
static struct node without_route, with_route, refused; /* these would not wait for the daemon */
static struct rdma_conn_param param = { .qp_num = 1 };

static void *get_in_thread(void *arg)
{
	struct rdma_cm_event *e;

	(void)arg;
	return rdma_get_cm_event(blocked.channel, &e) ? (void *)(intptr_t)errno : NULL;
}

static void *destroy_in_thread(void *arg)
{
	(void)arg;
	return rdma_destroy_id(destroyed.id) ? (void *)(intptr_t)errno : NULL;
}

/* Whether an event lies in the channel's descriptor, within @ms; -1: for ever. */
static bool has_event(const struct node *n, int ms)
{
	struct pollfd p = { .fd = n->channel->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* A thread destroys an identifier, and waits for the second of its two events: the first one was
 * taken out of the descriptor here. */
static pthread_t destroy_while_an_event_is_missing(void)
{
	union address nobody = host_address(250, 1);
	struct base_pause pause = { 0 };
	pthread_t thread;
	char event[4096];

	destroyed = node_open(RDMA_PS_UDP);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rdma_resolve_addr(destroyed.id, NULL, &nobody.sa, 1000), 0);
	assert_true(recv(destroyed.channel->fd, event, sizeof(event), 0) > 0);
	assert_true(has_event(&destroyed, -1));
	assert_int_equal(pthread_create(&thread, NULL, destroy_in_thread, NULL), 0);
	while (has_event(&destroyed, 0)) /* behind that, nothing but death ends it */
		base_pause_sleep(&pause);
	return thread;
}

/* How far they can get, as nobody listens. */
static void take_steps(void)
{
	union address host = host_address(2, 1);
	struct rdma_cm_event *e;

	without_route = node_open(RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(without_route.id, NULL, &host.sa, 1000), 0);
	expect_event(&without_route, RDMA_CM_EVENT_ADDR_RESOLVED);
	with_route = node_open(RDMA_PS_TCP);
	node_resolve(&with_route, 2, 1);
	refused = node_open(RDMA_PS_TCP);
	node_resolve(&refused, 2, 1);
	assert_int_equal(rdma_connect(refused.id, &param), 0);
	e = next_event(&refused);
	assert_string_equal(rdma_event_str(e->event), "RDMA_CM_EVENT_REJECTED");
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

CASE(threads_that_wait_for_events_are_woken)
{
	pthread_t thread, destroyer;
	void *err;

	blocked = node_open(RDMA_PS_UDP);
	busy = node_open(RDMA_PS_UDP);
	node_bind(&busy, 1, 0);
	join(&busy, "239.1.1.1");
	take_steps();
	assert_int_equal(pthread_create(&thread, NULL, get_in_thread, NULL), 0);
	destroyer = destroy_while_an_event_is_missing();
	kill_daemon(busy.channel);
	assert_int_equal(pthread_join(thread, &err), 0);
	assert_int_equal((intptr_t)err, EIO);
	assert_int_equal(pthread_join(destroyer, &err), 0);
	assert_null(err); /* it had been destroyed before */
}

CASE(the_channel_polls_readable)
{
	struct pollfd p = { .fd = busy.channel->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	assert_int_equal(poll(&p, 1, -1), 1);
	assert_true(p.revents & POLLIN);
	expect_event(&busy, RDMA_CM_EVENT_DEVICE_REMOVAL); /* removal.c has more of that */
	assert_fails(rdma_get_cm_event(busy.channel, &e), EIO);
}

CASE(who_would_not_wait_fails_with_eio)
{
	assert_fails(rdma_disconnect(refused.id), EIO);
	assert_fails(rdma_resolve_route(without_route.id, 1000), EIO);
	assert_fails(rdma_connect(with_route.id, &param), EIO);
}

CASE(calls_fail_with_eio)
{
	union address host = host_address(2, 0), group = address("239.1.1.1", 0);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;

	assert_fails(rdma_bind_addr(blocked.id, &host.sa), EIO);
	assert_fails(rdma_resolve_addr(blocked.id, NULL, &host.sa, 1000), EIO);
	assert_fails(rdma_join_multicast(busy.id, &group.sa, NULL), EIO);
	assert_fails(rdma_leave_multicast(busy.id, &group.sa), EIO);
	assert_fails(rdma_listen(busy.id, 0), EIO);
	assert_fails(rdma_connect(busy.id, NULL), EIO);
	assert_fails(rdma_create_id(busy.channel, &id, NULL, RDMA_PS_UDP), EIO);
	assert_fails(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), EIO);
	assert_int_equal(rdma_destroy_id(busy.id), 0);
	errno = 0;
	ch = rdma_create_event_channel();
	assert_null(ch);
	assert_int_equal(errno, EIO);
	rdma_destroy_event_channel(blocked.channel);
}
