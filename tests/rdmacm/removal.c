/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric ends under a running program, and with it the devices: each identifier that is bound
 * to one gets RDMA_CM_EVENT_DEVICE_REMOVAL, after what came before and once, and can be destroyed.
 * Prepared by the first test, which ends the daemon.
 *
 * Ends its fabric.
 */
#include "daemon.h"

#include <rdma/rdma_verbs.h>

#define MANY 50
#define PORT 7500

static struct node bound, unbound, listener, moved, member, silent, quick, awaited, shared;
static struct node joined, asked, asking, vanished;
static struct rdma_cm_id *request; /* got, and not accepted */
static struct rdma_cm_id *sibling; /* on the same channel */
static int other[2]; /* one of them has the descriptor of the channel that is closed */
static struct rdma_cm_id *many[MANY];
static struct rdma_cm_id *endpoint; /* its channel is its own */
static bool told[MANY];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void wait_readable(const struct node *n)
{
	struct pollfd p = { .fd = n->channel->fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_true(p.revents & POLLIN);
}

/* Its outcome lies in the descriptor unless the program gets it. */
static void resolve(struct node *n)
{
	union address host = host_address(2, PORT);

	assert_int_equal(rdma_resolve_addr(n->id, NULL, &host.sa, 1000), 0);
	wait_readable(n);
}

static struct node bound_node(uint16_t port)
{
	struct node n = node_open(RDMA_PS_TCP);

	node_bind(&n, 1, port);
	return n;
}

static void open_shared(void)
{
	union address a = host_address(1, 0);

	shared = (struct node){ .channel = rdma_create_event_channel() };
	assert_non_null(shared.channel);
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal(rdma_create_id(shared.channel, &many[i], &told[i], RDMA_PS_TCP),
		                 0);
		assert_int_equal(rdma_bind_addr(many[i], &a.sa), 0);
	}
}

/* Two identifiers on one channel: the first one is destroyed while events of both lie there. */
static void open_neighbours(void)
{
	union address host = host_address(2, PORT);

	quick = node_open(RDMA_PS_TCP);
	silent = (struct node){ .channel = quick.channel };
	assert_int_equal(rdma_create_id(quick.channel, &silent.id, NULL, RDMA_PS_TCP), 0);
	resolve(&quick);
	assert_int_equal(rdma_resolve_addr(silent.id, NULL, &host.sa, 1000), 0);
}

static void open_endpoint(void)
{
	union address a = host_address(3, PORT);

	assert_int_equal(rdma_create_id(NULL, &endpoint, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(endpoint, &a.sa), 0);
	assert_int_equal(rdma_listen(endpoint, 1), 0);
}

static void open_moved(void)
{
	struct rdma_event_channel *from;

	moved = bound_node(0);
	from = moved.channel;
	assert_non_null(moved.channel = rdma_create_event_channel());
	resolve(&(struct node){ .channel = from, .id = moved.id });
	assert_int_equal(rdma_migrate_id(moved.id, moved.channel), 0);
	rdma_destroy_event_channel(from);
}

/* The event of a join is not in the descriptor: the daemon must be asked for it. */
static void open_joined(void)
{
	union address group = address("239.1.1.2", 0);

	joined = node_open(RDMA_PS_UDP);
	node_bind(&joined, 1, 0);
	assert_int_equal(rdma_join_multicast(joined.id, &group.sa, NULL), 0);
	wait_readable(&joined);
}

/* A listener that has got a request, of which the daemon has not been told yet. */
static void open_asked(void)
{
	struct rdma_conn_param param = { .qp_num = 77 };
	union address a = host_address(1, 0);
	struct rdma_cm_event *e;

	asked = bound_node(PORT + 2);
	assert_int_equal(rdma_listen(asked.id, 4000), 0);
	assert_int_equal(rdma_create_id(asked.channel, &sibling, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(sibling, &a.sa), 0);
	asking = node_open(RDMA_PS_TCP);
	node_resolve(&asking, 1, PORT + 2);
	assert_int_equal(rdma_connect(asking.id, &param), 0);
	e = next_event(&asked);
	assert_event(e, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	request = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

/* Its channel is destroyed before it, and the descriptor is another's. */
static void close_channel_of_vanished(void)
{
	const int fd = vanished.channel->fd;

	rdma_destroy_event_channel(vanished.channel);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
	assert_int_equal(dup2(other[0], fd), fd);
	close(other[0]);
	other[0] = fd;
	for (int i = 0; i < 2; i++)
		assert_int_equal(write(other[i], "x", 1), 1);
}

static void *wait_for_request(void *arg)
{
	struct rdma_cm_id *id;

	(void)arg;
	return rdma_get_request(endpoint, &id) ? (void *)(intptr_t)errno : NULL;
}

CASE(the_fabric_ends)
{
	union address any = address("0.0.0.0", PORT + 1);
	pthread_t waiter;
	void *err;

	bound = bound_node(0);
	unbound = node_open(RDMA_PS_TCP);
	listener = node_open(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(listener.id, &any.sa), 0);
	assert_int_equal(rdma_listen(listener.id, 1), 0);
	open_moved();
	member = node_open(RDMA_PS_UDP);
	node_bind(&member, 1, 0);
	join(&member, "239.1.1.1");
	awaited = bound_node(0);
	open_shared();
	open_neighbours();
	open_endpoint();
	open_joined();
	open_asked();
	vanished = bound_node(0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_request, NULL), 0);
	kill_daemon(bound.channel);
	assert_int_equal(pthread_join(waiter, &err), 0);
	assert_int_equal((intptr_t)err, EIO);
}

static void expect_end(struct node *n)
{
	struct rdma_cm_event *e;

	wait_readable(n);
	assert_fails(rdma_get_cm_event(n->channel, &e), EIO);
	wait_readable(n);
}

static void expect_removal(struct node *n, const struct rdma_cm_id *id)
{
	struct rdma_cm_event *e;

	wait_readable(n);
	e = next_event(n);
	assert_event(e, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_ptr_equal(e->id, id);
	assert_null(e->listen_id);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void end_node(struct node *n)
{
	assert_int_equal(rdma_destroy_id(n->id), 0);
	rdma_destroy_event_channel(n->channel);
}

CASE(who_is_bound_is_told_once)
{
	expect_removal(&bound, bound.id);
	expect_end(&bound);
	assert_fails(rdma_disconnect(bound.id), EIO);
	end_node(&bound);
}

CASE(who_is_bound_to_no_device_is_not_told)
{
	expect_end(&unbound);
	end_node(&unbound);
	expect_end(&listener);
	end_node(&listener);
}

CASE(what_came_before_is_told_before)
{
	expect_event(&moved, RDMA_CM_EVENT_ADDR_RESOLVED);
	expect_removal(&moved, moved.id);
	expect_end(&moved);
	end_node(&moved);
}

CASE(without_blocking_it_is_the_same)
{
	union address group = address("239.1.1.1", 0);

	assert_int_equal(fcntl(member.channel->fd, F_SETFL, O_NONBLOCK), 0);
	expect_removal(&member, member.id);
	expect_end(&member);
	assert_fails(rdma_leave_multicast(member.id, &group.sa), EIO);
	end_node(&member);
}

/* Nobody gets an event of the destroyed identifier, and the neighbour's events stay. */
CASE(who_is_destroyed_takes_its_events_along)
{
	assert_int_equal(rdma_destroy_id(quick.id), 0);
	expect_event(&silent, RDMA_CM_EVENT_ADDR_RESOLVED);
	expect_removal(&silent, silent.id);
	expect_end(&silent);
	end_node(&silent);
}

static void *destroy_awaited(void *arg)
{
	atomic_bool *done = arg;
	int ret = rdma_destroy_id(awaited.id);

	atomic_store(done, true);
	return (void *)(intptr_t)ret;
}

CASE(destroying_waits_for_the_acknowledgement)
{
	struct rdma_cm_event *e = next_event(&awaited);
	atomic_bool done = false;
	pthread_t thread;
	void *ret;

	assert_int_equal(pthread_create(&thread, NULL, destroy_awaited, &done), 0);
	usleep(10000); /* if it does not wait, it has come to its end */
	assert_false(atomic_load(&done));
	assert_event(e, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_null(ret);
	rdma_destroy_event_channel(awaited.channel);
}

static void *get_shared(void *arg)
{
	struct rdma_cm_event *e;

	(void)arg;
	while (!rdma_get_cm_event(shared.channel, &e)) {
		struct rdma_cm_id *id = e->id;

		assert_event(e, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		pthread_mutex_lock(&lock);
		assert_false(*(bool *)id->context);
		*(bool *)id->context = true;
		pthread_mutex_unlock(&lock);
		assert_int_equal(rdma_ack_cm_event(e), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	return (void *)(intptr_t)errno;
}

CASE(two_threads_tell_each_once)
{
	pthread_t thread[2];
	void *err;

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, get_shared, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(thread[i], &err), 0);
		assert_int_equal((intptr_t)err, EIO);
	}
	for (size_t i = 0; i < MANY; i++)
		assert_true(told[i]);
	rdma_destroy_event_channel(shared.channel);
}

CASE(a_synchronous_identifier_goes_as_well)
{
	struct rdma_cm_id *id;

	assert_fails(rdma_get_request(endpoint, &id), EIO);
	assert_int_equal(rdma_destroy_id(endpoint), 0);
}

CASE(what_the_daemon_was_to_be_asked_for_is_lost)
{
	expect_removal(&joined, joined.id);
	expect_end(&joined);
	end_node(&joined);
}

/* In the end the channel has forgotten the listener: it has not to tell of its requests any more.
 */
CASE(who_has_not_accepted_is_not_told)
{
	struct rdma_cm_event *e;

	assert_int_equal(rdma_destroy_id(asked.id), 0);
	e = next_event(&asked);
	assert_event(e, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_ptr_equal(e->id, sibling);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	expect_end(&asked);
	assert_fails(rdma_accept(request, &(struct rdma_conn_param){ .qp_num = 77 }), EIO);
	assert_int_equal(rdma_destroy_id(request), 0);
	assert_int_equal(rdma_destroy_id(sibling), 0);
	rdma_destroy_event_channel(asked.channel);
	end_node(&asking);
}

CASE(a_descriptor_that_is_anothers_is_left_alone)
{
	char byte;

	close_channel_of_vanished();
	assert_int_equal(rdma_destroy_id(vanished.id), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(recv(other[i], &byte, 1, MSG_DONTWAIT), 1);
		close(other[i]);
	}
}
