/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels: their descriptor, the order of events, acknowledgement, migration,
 * fork, lack of memory.
 */
#include "common.h"

#include <sys/epoll.h>

/* Of this thread: there is no memory. */
static _Thread_local bool no_memory;

/* The libraries' malloc() too. The sanitizers' own start calls it. */
__attribute__((visibility("default"), no_sanitize("thread", "address", "undefined"))) void *
malloc(size_t bytes)
{
	static void *(*real)(size_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "malloc");
	if (!no_memory)
		return real(bytes);
	errno = ENOMEM;
	return NULL;
}

static void resolve(struct node *n, unsigned host)
{
	union address a = host_address(host, 1);

	assert_int_equal(rdma_resolve_addr(n->id, NULL, &a.sa, 1000), 0);
}

static void set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

CASE(an_empty_nonblocking_channel_says_eagain)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct rdma_cm_event *e;

	set_nonblocking(n.channel->fd);
	assert_fails(rdma_get_cm_event(n.channel, &e), EAGAIN);
	resolve(&n, 2);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_fails(rdma_get_cm_event(n.channel, &e), EAGAIN);
}

CASE(the_descriptor_polls_readable_while_there_are_events)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct pollfd p = { .fd = n.channel->fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 0), 0);
	resolve(&n, 2);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(p.revents, POLLIN);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(poll(&p, 1, 0), 0);
}

CASE(epoll_takes_the_descriptor)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct epoll_event want = { .events = EPOLLIN | EPOLLET }, got;
	int ep = epoll_create1(0);

	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, n.channel->fd, &want), 0);
	assert_int_equal(epoll_wait(ep, &got, 1, 0), 0);
	resolve(&n, 2);
	assert_int_equal(epoll_wait(ep, &got, 1, -1), 1);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	close(ep);
}

static void *get_in_thread(void *arg)
{
	return next_event(arg);
}

CASE(a_blocked_thread_gets_the_event_of_another)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	pthread_t thread;
	void *e;

	assert_int_equal(pthread_create(&thread, NULL, get_in_thread, &n), 0);
	resolve(&n, 2);
	assert_int_equal(pthread_join(thread, &e), 0);
	assert_event((struct rdma_cm_event *)e, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

CASE(events_of_several_identifiers_come_in_order)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct rdma_cm_id *id[5];
	struct rdma_cm_event *e;
	union address a = host_address(2, 1);

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
}

CASE(destroying_an_identifier_takes_its_events_back)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct rdma_cm_id *other;
	union address a = host_address(2, 1);
	struct rdma_cm_event *e;

	assert_int_equal(rdma_create_id(n.channel, &other, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(other, NULL, &a.sa, 1000), 0);
	resolve(&n, 2);
	assert_int_equal(rdma_destroy_id(other), 0);
	e = next_event(&n);
	assert_ptr_equal(e->id, n.id);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_no_event(&n);
}

static bool is_readable(const struct rdma_event_channel *ch)
{
	return poll(&(struct pollfd){ .fd = ch->fd, .events = POLLIN }, 1, 0) == 1;
}

CASE(what_is_left_after_others_are_destroyed_comes_in_order)
{
	enum { IDS = 7 };
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct rdma_event_channel *other = rdma_create_event_channel(), *ch = n.channel;
	union address a = host_address(2, 1);
	struct rdma_cm_id *id[IDS];
	struct rdma_cm_event *e;

	for (int i = 0; i < IDS; i++) {
		assert_int_equal(rdma_create_id(ch, &id[i], NULL, RDMA_PS_UDP), 0);
		assert_int_equal(rdma_resolve_addr(id[i], NULL, &a.sa, 1000), 0);
	}
	assert_int_equal(rdma_destroy_id(id[3]), 0);
	assert_int_equal(rdma_destroy_id(id[1]), 0); /* one that was come across */
	assert_int_equal(rdma_migrate_id(id[2], other), 0);
	assert_int_equal(rdma_migrate_id(id[5], other), 0);
	assert_int_equal(rdma_destroy_id(id[6]), 0); /* the last one */
	for (int i = 0; i < IDS; i += 4) {
		assert_true(is_readable(ch));
		assert_int_equal(rdma_get_cm_event(ch, &e), 0);
		assert_ptr_equal(e->id, id[i]);
		assert_int_equal(rdma_ack_cm_event(e), 0);
	}
	assert_false(is_readable(ch));
	for (int i = 2; i < IDS; i += 3) {
		assert_true(is_readable(other));
		assert_int_equal(rdma_get_cm_event(other, &e), 0);
		assert_ptr_equal(e->id, id[i]);
		assert_int_equal(rdma_ack_cm_event(e), 0);
	}
	assert_false(is_readable(other));
	for (int i = 0; i < IDS; i++)
		if (i != 1 && i != 3 && i != 6)
			assert_int_equal(rdma_destroy_id(id[i]), 0);
	rdma_destroy_event_channel(other);
}

/* Events of joins wait in the daemon, the others in the descriptor. */
CASE(a_join_that_is_left_takes_its_event_along)
{
	struct node CLOSED joins = node_open(RDMA_PS_UDP);
	union address own = host_address(1, 0), nobody = host_address(250, 1),
	              group = address("239.1.1.1", 0);
	struct rdma_cm_id *gone, *stays;
	struct rdma_cm_event *e;

	assert_int_equal(rdma_bind_addr(joins.id, &own.sa), 0);
	assert_int_equal(rdma_create_id(joins.channel, &gone, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_create_id(joins.channel, &stays, NULL, RDMA_PS_UDP), 0);
	for (int left = 0; left < 2; left++) {
		assert_int_equal(rdma_join_multicast(joins.id, &group.sa, NULL), 0);
		poll(&(struct pollfd){ .fd = joins.channel->fd, .events = POLLIN }, 1, -1);
		assert_int_equal(rdma_resolve_addr(gone, NULL, &nobody.sa, 1000), 0);
		assert_int_equal(rdma_resolve_addr(stays, NULL, &nobody.sa, 1000), 0);
		assert_int_equal(rdma_destroy_id(gone), 0);
		assert_int_equal(rdma_create_id(joins.channel, &gone, NULL, RDMA_PS_UDP), 0);
		if (left) {
			assert_int_equal(rdma_leave_multicast(joins.id, &group.sa), 0);
		} else {
			e = next_event(&joins);
			assert_event(e, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
			assert_int_equal(rdma_ack_cm_event(e), 0);
			assert_int_equal(rdma_leave_multicast(joins.id, &group.sa), 0);
		}
		e = next_event(&joins);
		assert_event(e, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
		assert_ptr_equal(e->id, stays);
		assert_int_equal(rdma_ack_cm_event(e), 0);
		assert_no_event(&joins);
	}
	assert_int_equal(rdma_destroy_id(gone), 0);
	assert_int_equal(rdma_destroy_id(stays), 0);
}

/* ---- without memory ---- */

enum { RESOLVERS = 5 };

/* So many identifiers, each with an event that nobody is there. */
static void resolvers_open(struct rdma_event_channel *ch, struct rdma_cm_id *id[RESOLVERS])
{
	union address nobody = host_address(250, 1);

	for (int i = 0; i < RESOLVERS; i++) {
		assert_int_equal(rdma_create_id(ch, &id[i], NULL, RDMA_PS_UDP), 0);
		assert_int_equal(rdma_resolve_addr(id[i], NULL, &nobody.sa, 1000), 0);
	}
}

/* The next event is that of @id, which is destroyed. */
static void resolver_ends(struct node *n, struct rdma_cm_id *id)
{
	struct rdma_cm_event *e = next_event(n);

	assert_ptr_equal(e->id, id);
	assert_event(e, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

CASE(what_there_is_no_memory_for_is_not_lost)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP), to = node_open(RDMA_PS_UDP);
	struct rdma_cm_id *id[RESOLVERS];

	resolvers_open(n.channel, id);
	no_memory = true;
	assert_int_equal(rdma_destroy_id(id[4]), 0); /* behind the others */
	assert_int_equal(rdma_migrate_id(id[2], to.channel), 0);
	no_memory = false;
	resolver_ends(&to, id[2]);
	assert_no_event(&to);
	resolver_ends(&n, id[3]); /* 0 and 1 were sent again */
	resolver_ends(&n, id[0]);
	resolver_ends(&n, id[1]);
	assert_no_event(&n);
}

CASE(a_join_is_left_without_memory)
{
	struct node CLOSED joins = node_open(RDMA_PS_UDP);
	union address own = host_address(1, 0), group = address("239.1.1.1", 0),
	              second = address("239.1.1.2", 0);
	struct rdma_cm_id *id[RESOLVERS];
	struct rdma_cm_event *e;

	assert_int_equal(rdma_bind_addr(joins.id, &own.sa), 0);
	resolvers_open(joins.channel, id);
	assert_int_equal(rdma_join_multicast(joins.id, &group.sa, NULL), 0);
	assert_int_equal(rdma_join_multicast(joins.id, &second.sa, NULL), 0);
	no_memory = true;
	assert_int_equal(rdma_destroy_id(id[4]), 0);
	assert_int_equal(rdma_leave_multicast(joins.id, &group.sa), 0);
	no_memory = false;
	for (unsigned i = 0; i < 5; i++) {
		e = next_event(&joins);
		if (e->id == joins.id)
			assert_event(e, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		else
			assert_event(e, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
		assert_int_equal(rdma_ack_cm_event(e), 0);
	}
	assert_no_event(&joins);
	for (int i = 0; i < 4; i++)
		assert_int_equal(rdma_destroy_id(id[i]), 0);
	assert_int_equal(rdma_leave_multicast(joins.id, &second.sa), 0);
}

/* ---- random steps ---- */

#define CHANNELS 3
#define IDS      12

struct walk {
	struct rdma_event_channel *ch[CHANNELS];
	struct rdma_cm_id *id[IDS];
	unsigned channel_of[IDS], waiting[IDS]; /* events */
	unsigned seed;
	bool hungry; /* sometimes there is no memory */
};

static unsigned any(struct walk *w, unsigned n)
{
	return (unsigned)rand_r(&w->seed) % n;
}

static void renew(struct walk *w, unsigned i)
{
	w->channel_of[i] = any(w, CHANNELS);
	w->waiting[i] = 0;
	assert_int_equal(rdma_create_id(w->ch[w->channel_of[i]], &w->id[i], NULL, RDMA_PS_UDP), 0);
}

/* To where nobody is: an error each time, and the identifier is as before. */
static void fail_to_resolve(struct walk *w, unsigned i)
{
	union address a = host_address(250, 1);

	assert_int_equal(rdma_resolve_addr(w->id[i], NULL, &a.sa, 1000), 0);
	w->waiting[i]++;
}

static void get_one(struct walk *w, unsigned c)
{
	struct rdma_cm_event *e;
	unsigned all = 0, i;

	for (i = 0; i < IDS; i++)
		all += w->channel_of[i] == c ? w->waiting[i] : 0;
	if (all || !w->hungry) /* else there may be a datagram too many */
		assert_int_equal(is_readable(w->ch[c]), all > 0);
	if (!all) {
		assert_fails(rdma_get_cm_event(w->ch[c], &e), EAGAIN);
		return;
	}
	assert_int_equal(rdma_get_cm_event(w->ch[c], &e), 0);
	for (i = 0; i < IDS && e->id != w->id[i]; i++)
		;
	assert_true(i < IDS && w->channel_of[i] == c && w->waiting[i]);
	assert_int_equal(e->event, RDMA_CM_EVENT_ADDR_ERROR);
	w->waiting[i]--;
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void migrate(struct walk *w, unsigned i)
{
	w->channel_of[i] = any(w, CHANNELS);
	no_memory = w->hungry && any(w, 2);
	assert_int_equal(rdma_migrate_id(w->id[i], w->ch[w->channel_of[i]]), 0);
	no_memory = false;
}

static void destroy(struct walk *w, unsigned i)
{
	no_memory = w->hungry && any(w, 2);
	assert_int_equal(rdma_destroy_id(w->id[i]), 0);
	no_memory = false;
}

static void take_step(struct walk *w)
{
	unsigned i = any(w, IDS), what = any(w, 16);

	if (what < 7) {
		fail_to_resolve(w, i);
	} else if (what < 14) {
		get_one(w, any(w, CHANNELS));
	} else if (what < 15) {
		migrate(w, i);
	} else {
		destroy(w, i);
		renew(w, i);
	}
}

static void walk(struct walk *w)
{
	for (unsigned c = 0; c < CHANNELS; c++) {
		assert_non_null(w->ch[c] = rdma_create_event_channel());
		set_nonblocking(w->ch[c]->fd);
	}
	for (unsigned i = 0; i < IDS; i++)
		renew(w, i);
	for (int step = 0; step < 20000; step++)
		take_step(w);
	for (unsigned i = 0; i < IDS; i++) {
		destroy(w, i);
		w->waiting[i] = 0;
	}
	for (unsigned c = 0; c < CHANNELS; c++) {
		get_one(w, c);
		rdma_destroy_event_channel(w->ch[c]);
	}
}

CASE(channels_have_the_events_that_nobody_has_got)
{
	walk(&(struct walk){ .seed = 1 });
}

CASE(they_do_though_memory_lacks)
{
	walk(&(struct walk){ .seed = 1, .hungry = true });
}

static void *destroy_in_thread(void *arg)
{
	return (void *)(intptr_t)rdma_destroy_id(arg);
}

CASE(destroying_waits_until_events_are_acknowledged)
{
	struct node n = node_open(RDMA_PS_UDP);
	struct rdma_cm_event *e;
	pthread_t thread;
	void *result;

	resolve(&n, 2);
	e = next_event(&n);
	assert_int_equal(pthread_create(&thread, NULL, destroy_in_thread, n.id), 0);
	assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	rdma_destroy_event_channel(n.channel);
}

CASE(migrating_takes_waiting_events_along)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct rdma_event_channel *old = n.channel;

	resolve(&n, 2);
	n.channel = rdma_create_event_channel();
	assert_int_equal(rdma_migrate_id(n.id, n.channel), 0);
	assert_ptr_equal(n.id->channel, n.channel);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(poll(&(struct pollfd){ .fd = old->fd, .events = POLLIN }, 1, 0), 0);
	rdma_destroy_event_channel(old);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

CASE(migrating_to_no_channel_makes_it_synchronous)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union address a = host_address(2, 1);

	assert_int_equal(rdma_migrate_id(n.id, NULL), 0);
	assert_ptr_not_equal(n.id->channel, n.channel);
	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	assert_event(n.id->event, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_fails(rdma_migrate_id(n.id, NULL), EINVAL);
	assert_int_equal(rdma_migrate_id(n.id, n.channel), 0);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
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

CASE(threads_may_share_a_channel)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	pthread_t thread[4], getter;

	assert_int_equal(pthread_create(&getter, NULL, drain, &n), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, n.channel), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	resolve(&n, 2);
	assert_int_equal(pthread_join(getter, NULL), 0);
	assert_no_event(&n);
}

CASE(a_child_has_a_session_of_its_own)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	pid_t child = fork();

	if (!child) {
		struct node m = node_open(RDMA_PS_UDP);

		resolve(&m, 2);
		expect_event(&m, RDMA_CM_EVENT_ADDR_RESOLVED);
		node_close(&m);
		_exit(0);
	}
	harness_expect_success(child);
	resolve(&n, 2);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
}

CASE(bad_arguments_are_refused)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	assert_fails(rdma_get_cm_event(ch, NULL), EINVAL);
	assert_fails(rdma_get_cm_event(NULL, &e), EINVAL);
	assert_fails(rdma_ack_cm_event(NULL), EINVAL);
	assert_fails(rdma_create_id(ch, NULL, NULL, RDMA_PS_UDP), EINVAL);
	assert_fails(rdma_create_id(ch, &id, NULL, 0x1234), EINVAL);
	assert_fails(rdma_create_id(ch, &id, NULL, (enum rdma_port_space)0x10111), EINVAL);
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(NULL);
}

CASE(every_event_has_its_name)
{
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
	                    "RDMA_CM_EVENT_ADDR_RESOLVED");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
	                    "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str(16), "RDMA_CM_EVENT_ADDRINFO_RESOLVED");
	assert_string_equal(rdma_event_str(17), "RDMA_CM_EVENT_ADDRINFO_ERROR");
	assert_string_equal(rdma_event_str(18), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}
