/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How identifiers end while their events are on the way: nobody hears of what he has destroyed, a
 * channel is readable only while there is an event to get, and the daemon is not waited for where
 * nothing hangs on it.
 */
#include "daemon.h"

#include "base/util.h"

#define PORT   7400
#define N      64 /* at once */
#define ROUNDS 3000
#define MANY   200 /* numbers of identifiers come round */

static int setup(void **state)
{
	(void)state;
	post_much();
	return 0;
}

/* For a queue pair that has no other connection; there is none. */
static struct rdma_conn_param next_param(void)
{
	static _Atomic uint32_t qp_num;

	return (struct rdma_conn_param){ .retry_count = 7,
		                         .rnr_retry_count = 7,
		                         .qp_num = 0x1000 + qp_num++ };
}

static bool is_readable(const struct rdma_event_channel *ch)
{
	return poll(&(struct pollfd){ .fd = ch->fd, .events = POLLIN }, 1, 0) == 1;
}

static void set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

/* ---- a server, in a thread of its own: it accepts, and disconnects soon ---- */

struct server {
	struct node listener;
	pthread_t thread;
	unsigned seed;
};

static void serve_established(struct server *s, struct rdma_cm_id *id)
{
	if (rand_r(&s->seed) % 4 == 0)
		usleep((useconds_t)rand_r(&s->seed) % 200);
	assert_int_equal(rdma_disconnect(id), 0);
}

/* Returns whether the one that ends it has come. */
static bool serve_one(struct server *s)
{
	struct rdma_conn_param param = next_param();
	struct rdma_cm_event *e = next_event(&s->listener);
	enum rdma_cm_event_type type = e->event;
	struct rdma_cm_id *id = e->id;
	bool last = type == RDMA_CM_EVENT_CONNECT_REQUEST && e->param.conn.private_data_len &&
	            *(const uint8_t *)e->param.conn.private_data == 1;

	assert_int_equal(rdma_ack_cm_event(e), 0);
	if (last)
		assert_int_equal(rdma_reject(id, NULL, 0), 0);
	else if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		rdma_accept(id, &param); /* the client may have gone */
	else if (type == RDMA_CM_EVENT_ESTABLISHED)
		serve_established(s, id);
	if (last || type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_REJECTED ||
	    type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_UNREACHABLE)
		assert_int_equal(rdma_destroy_id(id), 0);
	return last;
}

static void *serve(void *arg)
{
	while (!serve_one(arg))
		;
	return NULL;
}

static void server_open(struct server *s)
{
	*s = (struct server){ .listener = node_open(RDMA_PS_TCP), .seed = 1 };
	node_bind(&s->listener, 2, PORT);
	assert_int_equal(rdma_listen(s->listener.id, 0), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_close(struct server *s)
{
	struct node n = node_open(RDMA_PS_TCP);
	struct rdma_conn_param param = next_param();
	struct rdma_cm_event *e;

	param.private_data = "\1";
	param.private_data_len = 1;
	node_resolve(&n, 2, PORT);
	assert_int_equal(rdma_connect(n.id, &param), 0);
	e = next_event(&n);
	assert_event(e, RDMA_CM_EVENT_REJECTED, 28);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	node_close(&n);
	node_close(&s->listener);
}

/* ---- clients of it, on one channel that does not block ---- */

struct clients {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id[N];
	enum rdma_cm_event_type last[N]; /* what was got of it last; -1: nothing */
	uint64_t disconnected_us[N];
	unsigned n_timewaits;
	unsigned seed;
};

static unsigned any(struct clients *c, unsigned n)
{
	return (unsigned)rand_r(&c->seed) % n;
}

static void begin(struct clients *c, unsigned i)
{
	union address a = host_address(2, PORT);

	c->last[i] = (enum rdma_cm_event_type) - 1;
	assert_int_equal(rdma_create_id(c->channel, &c->id[i], NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(c->id[i], NULL, &a.sa, 1000), 0);
}

/* Whether an event of @type may be the next one. */
static bool may_follow(enum rdma_cm_event_type last, enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return last == (enum rdma_cm_event_type) - 1;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return last == RDMA_CM_EVENT_ADDR_RESOLVED;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return last == RDMA_CM_EVENT_ROUTE_RESOLVED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return last == RDMA_CM_EVENT_CONNECT_RESPONSE;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return last == RDMA_CM_EVENT_DISCONNECTED;
	default:
		return false;
	}
}

static void go_on(struct clients *c, unsigned i)
{
	struct rdma_conn_param param = next_param();

	switch (c->last[i]) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		assert_int_equal(rdma_resolve_route(c->id[i], 1000), 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		assert_int_equal(rdma_connect(c->id[i], &param), 0);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		assert_int_equal(rdma_establish(c->id[i]), 0);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		c->disconnected_us[i] = base_now_ns() / 1000;
		assert_int_equal(rdma_disconnect(c->id[i]), 0);
		break;
	default:
		c->n_timewaits++;
		break;
	}
}

/* False: there is none. Each event must be of an identifier that is there, and be the next one of
 * that identifier. */
static bool get_one(struct clients *c)
{
	const bool readable = is_readable(c->channel);
	struct rdma_cm_event *e;
	unsigned i;

	if (rdma_get_cm_event(c->channel, &e)) {
		assert_int_equal(errno, EAGAIN);
		assert_false(readable);
		return false;
	}
	for (i = 0; i < N && c->id[i] != e->id; i++)
		;
	if (i == N || !may_follow(c->last[i], e->event))
		fail_msg("an event of what is gone: %s", rdma_event_str(e->event));
	assert_int_equal(e->status, 0);
	c->last[i] = e->event;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	go_on(c, i);
	return true;
}

static void clients_open(struct clients *c)
{
	*c = (struct clients){ .channel = rdma_create_event_channel(), .seed = 1 };
	assert_non_null(c->channel);
	set_nonblocking(c->channel->fd);
	for (unsigned i = 0; i < N; i++)
		begin(c, i);
}

static void destroy(struct clients *c, unsigned i)
{
	assert_int_equal(rdma_destroy_id(c->id[i]), 0);
	c->id[i] = NULL;
}

static void clients_close(struct clients *c)
{
	for (unsigned i = 0; i < N; i++)
		if (c->id[i])
			destroy(c, i);
	assert_false(is_readable(c->channel));
	rdma_destroy_event_channel(c->channel);
}

CASE_WITH(what_is_destroyed_at_any_time_is_heard_of_no_more, NULL, leave_daemon_running)
{
	struct server s;
	struct clients c;

	server_open(&s);
	clients_open(&c);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned i = any(&c, N);

		for (unsigned n = any(&c, 8); n && get_one(&c); n--)
			;
		destroy(&c, i);
		begin(&c, i);
		if (any(&c, 8) == 0)
			usleep((useconds_t)any(&c, 300));
	}
	clients_close(&c);
	server_close(&s);
}

static void pause_until(uint64_t us)
{
	while (base_now_ns() / 1000 < us)
		;
}

static bool all_are(const struct clients *c, enum rdma_cm_event_type type)
{
	for (unsigned i = 0; i < N; i++)
		if (c->last[i] != type)
			return false;
	return true;
}

/* A TIMEWAIT_EXIT comes by itself: it is just sent when its identifier is destroyed, before or
 * after. Nothing that was not got may be there then. */
static void destroy_about(struct clients *c, unsigned i, uint64_t us)
{
	pause_until(us + any(c, 1000) - 500);
	destroy(c, i);
	get_one(c);
}

CASE_WITH(a_timewait_that_ends_meanwhile_is_not_heard_of, NULL, leave_daemon_running)
{
	struct server s;
	struct clients c;
	uint64_t timewait_us = 0;

	server_open(&s);
	clients_open(&c);
	while (!all_are(&c, RDMA_CM_EVENT_DISCONNECTED) && !c.n_timewaits)
		get_one(&c);
	while (!c.n_timewaits)
		get_one(&c);
	for (unsigned i = 0; i < N; i++)
		if (c.last[i] == RDMA_CM_EVENT_TIMEWAIT_EXIT)
			timewait_us = base_now_ns() / 1000 - c.disconnected_us[i];
	for (unsigned i = 0; i < N; i++)
		if (c.last[i] == RDMA_CM_EVENT_DISCONNECTED)
			destroy_about(&c, i, c.disconnected_us[i] + timewait_us);
	clients_close(&c);
	server_close(&s);
}

/* ---- who waits, and who does not ---- */

static struct rdma_cm_id *resolved(struct rdma_event_channel *channel)
{
	union address a = host_address(2, PORT);
	struct node n = { .channel = channel };

	assert_int_equal(rdma_create_id(channel, &n.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	return n.id;
}

CASE_WITH(destroying_does_not_wait, NULL, leave_daemon_running)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id[2] = { resolved(channel), resolved(channel) };
	struct node CLOSED n = { .channel = channel };

	stop_daemon(channel);
	assert_int_equal(rdma_resolve_route(id[0], 1000), 0);
	assert_int_equal(rdma_destroy_id(id[0]), 0);
	assert_int_equal(rdma_destroy_id(id[1]), 0);
	continue_daemon();
	n.id = resolved(channel); /* by now the daemon has done all that */
	assert_no_event(&n);
}

CASE_WITH(an_event_that_is_there_is_withdrawn, NULL, leave_daemon_running)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);

	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	while (!is_readable(channel))
		;
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_false(is_readable(channel));
	rdma_destroy_event_channel(channel);
}

/* The daemon has yet to hear of the ends of those whose numbers are given again. */
CASE_WITH(numbers_are_given_again_in_order, NULL, leave_daemon_running)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id[8];
	struct node n;

	for (unsigned round = 0; round < MANY; round++) {
		for (unsigned i = 0; i < 8; i++)
			id[i] = resolved(channel);
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(rdma_resolve_route(id[i], 1000), 0);
			assert_int_equal(rdma_destroy_id(id[i]), 0);
			assert_int_equal(rdma_create_id(channel, &id[i], NULL, RDMA_PS_TCP), 0);
		}
		assert_false(is_readable(channel));
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(rdma_destroy_id(id[i]), 0);
	}
	n = (struct node){ .channel = channel, .id = resolved(channel) };
	assert_no_event(&n);
	node_close(&n);
}

/* Whether destroying it waits until the daemon has done it. */
static bool is_waited_for(const struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	volatile bool *continues =
	        mmap(NULL, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	bool waited;

	assert_ptr_not_equal(continues, MAP_FAILED);
	stop_daemon(channel);
	child = continue_daemon_soon(continues);
	assert_int_equal(rdma_destroy_id(id), 0);
	waited = *continues;
	assert_int_equal(waitpid(child, NULL, 0), child);
	munmap((void *)continues, sizeof(bool));
	return waited;
}

/* Another process may have it from when rdma_destroy_id() returns. */
CASE_WITH(a_port_is_free_once_its_identifier_is_destroyed, NULL, leave_daemon_running)
{
	union address from = host_address(1, PORT), to = host_address(2, PORT);
	struct node n = node_open(RDMA_PS_TCP);

	node_bind(&n, 2, PORT);
	assert_true(is_waited_for(n.channel, n.id));
	assert_int_equal(rdma_create_id(n.channel, &n.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_listen(n.id, 0), 0);
	assert_true(is_waited_for(n.channel, n.id));
	assert_int_equal(rdma_create_id(n.channel, &n.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(n.id, &from.sa, &to.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_true(is_waited_for(n.channel, n.id));
	assert_false(is_waited_for(n.channel, resolved(n.channel)));
	rdma_destroy_event_channel(n.channel);
}

CASE_WITH(a_child_destroys_nothing_of_its_parent_s, NULL, leave_daemon_running)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);
	union address a = host_address(2, PORT);
	pid_t child;

	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		rdma_create_event_channel(); /* so that the child has memory of its own */
		_exit(rdma_destroy_id(n.id) && errno == EINVAL ? 0 : 1);
	}
	harness_expect_success(child);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* ---- two threads ---- */

static void *get_all(void *arg)
{
	struct node *n = arg;

	for (;;) {
		struct rdma_cm_event *e = next_event(n);
		const bool last = e->id == n->id;

		assert_int_equal(e->event, RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_int_equal(rdma_ack_cm_event(e), 0);
		if (last)
			return NULL;
	}
}

/* One waits for events, the other one destroys identifiers, whose events it may just get. */
CASE_WITH(another_thread_may_wait_meanwhile, NULL, leave_daemon_running)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);
	union address a = host_address(2, PORT);
	struct rdma_cm_id *id;
	unsigned seed = 1;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, get_all, &n), 0);
	for (unsigned i = 0; i < 4 * MANY; i++) {
		assert_int_equal(rdma_create_id(n.channel, &id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, &a.sa, 1000), 0);
		if (rand_r(&seed) % 2)
			usleep((useconds_t)rand_r(&seed) % 100);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_no_event(&n);
}

int main(void)
{
	return harness_run(setup, NULL);
}
