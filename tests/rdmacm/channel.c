/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels: their descriptor, the order of events, acknowledgement, migration,
 * fork.
 */
#include "common.h"

#include <sys/epoll.h>

static void resolve(struct node *n, unsigned host)
{
	union address a = host_address(host, 1);

	assert_int_equal(rdma_resolve_addr(n->id, NULL, &a.sa, 1000), 0);
}

static void set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void an_empty_nonblocking_channel_says_eagain(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	struct rdma_cm_event *e;

	(void)state;
	set_nonblocking(n.channel->fd);
	assert_fails(rdma_get_cm_event(n.channel, &e), EAGAIN);
	resolve(&n, 2);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_fails(rdma_get_cm_event(n.channel, &e), EAGAIN);
	node_close(&n);
}

static void the_descriptor_polls_readable_while_there_are_events(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	struct pollfd p = { .fd = n.channel->fd, .events = POLLIN };

	(void)state;
	assert_int_equal(poll(&p, 1, 0), 0);
	resolve(&n, 2);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(p.revents, POLLIN);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(poll(&p, 1, 0), 0);
	node_close(&n);
}

static void epoll_takes_the_descriptor(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	struct epoll_event want = { .events = EPOLLIN | EPOLLET }, got;
	int ep = epoll_create1(0);

	(void)state;
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, n.channel->fd, &want), 0);
	assert_int_equal(epoll_wait(ep, &got, 1, 0), 0);
	resolve(&n, 2);
	assert_int_equal(epoll_wait(ep, &got, 1, -1), 1);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	close(ep);
	node_close(&n);
}

static void *get_in_thread(void *arg)
{
	return next_event(arg);
}

static void a_blocked_thread_gets_the_event_of_another(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	pthread_t thread;
	void *e;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, get_in_thread, &n), 0);
	resolve(&n, 2);
	assert_int_equal(pthread_join(thread, &e), 0);
	assert_event((struct rdma_cm_event *)e, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	node_close(&n);
}

static void events_of_several_identifiers_come_in_order(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	struct rdma_cm_id *id[5];
	struct rdma_cm_event *e;
	union address a = host_address(2, 1);

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(rdma_create_id(n.channel, &id[i], NULL, RDMA_PS_UDP), 0);
		assert_int_equal(rdma_resolve_addr(id[i], NULL, &a.sa, 1000), 0);
	}
	for (int i = 0; i < 5; i++) {
		e = next_event(&n);
		assert_ptr_equal(e->id, id[i]);
		assert_int_equal(rdma_ack_cm_event(e), 0);
		assert_int_equal(rdma_destroy_id(id[i]), 0);
	}
	node_close(&n);
}

static void destroying_an_identifier_takes_its_events_back(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	struct rdma_cm_id *other;
	union address a = host_address(2, 1);
	struct rdma_cm_event *e;

	(void)state;
	assert_int_equal(rdma_create_id(n.channel, &other, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(other, NULL, &a.sa, 1000), 0);
	resolve(&n, 2);
	assert_int_equal(rdma_destroy_id(other), 0);
	e = next_event(&n);
	assert_ptr_equal(e->id, n.id);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_no_event(&n);
	node_close(&n);
}

static void *destroy_in_thread(void *arg)
{
	return (void *)(intptr_t)rdma_destroy_id(arg);
}

static void destroying_waits_until_events_are_acknowledged(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	struct rdma_cm_event *e;
	pthread_t thread;
	void *result;

	(void)state;
	resolve(&n, 2);
	e = next_event(&n);
	assert_int_equal(pthread_create(&thread, NULL, destroy_in_thread, n.id), 0);
	assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	rdma_destroy_event_channel(n.channel);
}

static void migrating_takes_waiting_events_along(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	struct rdma_event_channel *old = n.channel;

	(void)state;
	resolve(&n, 2);
	n.channel = rdma_create_event_channel();
	assert_int_equal(rdma_migrate_id(n.id, n.channel), 0);
	assert_ptr_equal(n.id->channel, n.channel);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(poll(&(struct pollfd){ .fd = old->fd, .events = POLLIN }, 1, 0), 0);
	rdma_destroy_event_channel(old);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	node_close(&n);
}

static void migrating_to_no_channel_makes_it_synchronous(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	union address a = host_address(2, 1);

	(void)state;
	assert_int_equal(rdma_migrate_id(n.id, NULL), 0);
	assert_ptr_not_equal(n.id->channel, n.channel);
	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	assert_event(n.id->event, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_fails(rdma_migrate_id(n.id, NULL), EINVAL);
	assert_int_equal(rdma_migrate_id(n.id, n.channel), 0);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	node_close(&n);
}

static void *hammer(void *arg)
{
	union address a = host_address(2, 1);

	for (int i = 0; i < 200; i++) {
		struct rdma_cm_id *id;

		assert_int_equal(rdma_create_id(arg, &id, NULL, RDMA_PS_UDP), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, &a.sa, 1000), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	return NULL;
}

static void *drain(void *arg)
{
	struct node *n = arg;
	struct rdma_cm_event *e;

	for (;;) {
		bool last;

		e = next_event(n);
		last = e->id == n->id;
		assert_int_equal(rdma_ack_cm_event(e), 0);
		if (last)
			return NULL;
	}
}

static void threads_may_share_a_channel(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	pthread_t thread[4], getter;

	(void)state;
	assert_int_equal(pthread_create(&getter, NULL, drain, &n), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, n.channel), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	resolve(&n, 2);
	assert_int_equal(pthread_join(getter, NULL), 0);
	assert_no_event(&n);
	node_close(&n);
}

static void a_child_has_a_session_of_its_own(void **state)
{
	struct node n = node_open(RDMA_PS_UDP);
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		struct node m = node_open(RDMA_PS_UDP);

		resolve(&m, 2);
		expect_event(&m, RDMA_CM_EVENT_ADDR_RESOLVED);
		node_close(&m);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	resolve(&n, 2);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	node_close(&n);
}

static void bad_arguments_are_refused(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	(void)state;
	assert_fails(rdma_get_cm_event(ch, NULL), EINVAL);
	assert_fails(rdma_get_cm_event(NULL, &e), EINVAL);
	assert_fails(rdma_ack_cm_event(NULL), EINVAL);
	assert_fails(rdma_create_id(ch, NULL, NULL, RDMA_PS_UDP), EINVAL);
	assert_fails(rdma_create_id(ch, &id, NULL, 0x1234), EINVAL);
	assert_fails(rdma_create_id(ch, &id, NULL, (enum rdma_port_space)0x10111), EINVAL);
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(NULL);
}

static void every_event_has_its_name(void **state)
{
	(void)state;
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
	                    "RDMA_CM_EVENT_ADDR_RESOLVED");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
	                    "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT + 1), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_nonblocking_channel_says_eagain),
		cmocka_unit_test(the_descriptor_polls_readable_while_there_are_events),
		cmocka_unit_test(epoll_takes_the_descriptor),
		cmocka_unit_test(a_blocked_thread_gets_the_event_of_another),
		cmocka_unit_test(events_of_several_identifiers_come_in_order),
		cmocka_unit_test(destroying_an_identifier_takes_its_events_back),
		cmocka_unit_test(destroying_waits_until_events_are_acknowledged),
		cmocka_unit_test(migrating_takes_waiting_events_along),
		cmocka_unit_test(migrating_to_no_channel_makes_it_synchronous),
		cmocka_unit_test(threads_may_share_a_channel),
		cmocka_unit_test(a_child_has_a_session_of_its_own),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(every_event_has_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
