/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of connected mode as time passes (programs/ipoib/connections.h), by a clock that the
 * test sets: connections that nobody uses end, and a connection that cannot be made is tried ever
 * later.
 */
#include <harness.h>

#include "verbs/lab.h"

#include "base/util.h"
#include "ipoib/connections.h"

#define SECOND       1000000000ull
#define PATIENCE     (2 * SECOND)   /* to connect */
#define IDLE         (600 * SECOND) /* unused for so long, a connection ends */
#define LONGEST_WAIT 32             /* seconds, from a failure to the next try */
#define FAILURES     7
#define BYTES        1000
#define QKEY         0x0B1B

struct end {
	struct ipoib_port port;
	struct ipoib_link *link;
	struct base_timers timers;
	struct ipoib_budget budget;
	struct ipoib_connections table;
	unsigned received;  /* by connections */
	unsigned datagrams; /* that should have gone by them */
};

static uint64_t now_ns = SECOND;

static uint64_t clock_now(void *arg)
{
	(void)arg;
	return now_ns;
}

/* ---- ends ---- */

static struct ipoib_address address_of(const struct end *e)
{
	return (struct ipoib_address){ .gid = e->port.gid, .qpn = ipoib_link_qpn(e->link) };
}

static enum ipoib_connection_use use(struct end *e, const struct ipoib_address *to)
{
	struct ipoib_packet p = { .data = ipoib_link_slot(e->link),
		                  .bytes = BYTES,
		                  .type = IPOIB_TYPE_IPV4 };
	enum ipoib_connection_use use;
	struct ipoib_connection *c = NULL;

	assert_non_null(p.data);
	memset(p.data, 0, BYTES);
	use = ipoib_connections_use(&e->table, to, &p, &c);
	if (use == IPOIB_BY_CONNECTION)
		assert_true(ipoib_connections_send(&e->table, c, &p));
	return use;
}

static enum ipoib_connection_use send_to(struct end *e, const struct end *to)
{
	const struct ipoib_address address = address_of(to);

	return use(e, &address);
}

/* A packet that has waited. */
static void send_held(void *arg, const struct ipoib_address *to, const struct ipoib_packet *p)
{
	struct end *e = arg;

	assert_int_equal(p->bytes, BYTES);
	e->datagrams += use(e, to) == IPOIB_BY_DATAGRAM;
}

static void close_end(void *object)
{
	struct end *e = object;

	ipoib_connections_close(&e->table);
	ipoib_link_close(e->link);
	free(e);
}

/* The connections' part of an interface of that host. */
static struct end *open_end(int host)
{
	static const struct base_clock clock = { .now_ns = clock_now };
	struct ipoib_link_options options = { .context = lab_open(host), .port = 1, .qkey = QKEY };
	struct end *e = calloc(1, sizeof(*e));
	struct ibv_port_attr attr;
	union ibv_gid gid;

	assert_non_null(e);
	assert_int_equal(ibv_query_port(options.context, 1, &attr), 0);
	assert_int_equal(ibv_query_gid(options.context, 1, 0, &gid), 0);
	memcpy(e->port.gid.raw, gid.raw, sizeof(gid.raw));
	e->port.lid = attr.lid;
	e->port.pkey = IB_PKEY_DEFAULT;
	e->budget.max_bytes = 1 << 20;
	base_timers_init(&e->timers, &clock);
	assert_int_equal(ipoib_link_open(&e->link, &options), 0);
	e->table = (struct ipoib_connections){ .link = e->link,
		                               .port = &e->port,
		                               .timers = &e->timers,
		                               .budget = &e->budget,
		                               .send = send_held,
		                               .arg = e };
	assert_int_equal(ipoib_connections_open(&e->table), 0);
	lab_undo(close_end, e);
	return e;
}

/* Does what an interface's loop does, but for what is due: tests say when it is. */
static void move(struct end *e)
{
	struct ipoib_rc_received got[IPOIB_RC_POLL_MAX];
	int n;

	ipoib_connections_dispatch(&e->table);
	n = ipoib_rc_poll(e->table.rc, got);
	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		assert_false(got[i].failed);
		e->received += ipoib_connections_received(&e->table, got[i].qpn) != NULL;
	}
	ipoib_rc_repost(e->table.rc);
	ipoib_connections_sent(&e->table);
}

/* Until it is so, with both ends at work. */
#define MOVE_UNTIL(condition, one, other)                                      \
	for (uint64_t began = base_now_ns(); !(condition); poll(NULL, 0, 1)) { \
		assert_true(base_now_ns() - began < LAB_SECONDS * SECOND);     \
		move(one);                                                     \
		move(other);                                                   \
	}

static const struct ipoib_connection *connection(const struct end *e, const struct end *to)
{
	const struct ipoib_address address = address_of(to);

	return ipoib_connections_find(&e->table, &address.gid, address.qpn);
}

static bool is_in_state(const struct end *e, const struct end *to,
                        enum ipoib_connection_state state)
{
	const struct ipoib_connection *c = connection(e, to);

	return c && c->state == state;
}

/* One packet gets there by a connection, which is made if there is none. */
static void reach(struct end *e, struct end *to)
{
	unsigned before = to->received;

	assert_int_not_equal(send_to(e, to), IPOIB_BY_DATAGRAM);
	MOVE_UNTIL(to->received == before + 1, e, to);
	assert_true(is_in_state(e, to, IPOIB_CONNECTED));
}

static void pass(struct end *e, uint64_t ns)
{
	now_ns += ns;
	base_timers_run(&e->timers);
}

/* ---- tests ---- */

LAB_CASE(who_sends_ends_what_it_has_not_used_for_long)
{
	struct end *h1 = open_end(1), *h2 = open_end(2), *h3 = open_end(3);

	reach(h1, h2);
	reach(h1, h3);
	pass(h1, IDLE - 1);
	assert_int_equal(h1->table.n_outgoing, 2);
	reach(h1, h2);
	pass(h1, 60 * SECOND);
	assert_null(connection(h1, h3));
	assert_true(is_in_state(h1, h2, IPOIB_CONNECTED));
	MOVE_UNTIL(!h3->table.n_incoming, h1, h3);
	assert_int_equal(h2->table.n_incoming, 1);

	reach(h1, h3); /* by another one */
	assert_int_equal(h1->table.made, 3);
	assert_int_equal(h1->table.failed + h3->table.failed, 0);
}

LAB_CASE(who_receives_does_so_too)
{
	struct end *h1 = open_end(1), *h2 = open_end(2);

	reach(h1, h2);
	pass(h2, IDLE - 1);
	assert_int_equal(h2->table.n_incoming, 1);
	reach(h1, h2);
	pass(h2, IDLE - 1);
	assert_int_equal(h2->table.n_incoming, 1);
	pass(h2, 60 * SECOND);
	assert_int_equal(h2->table.n_incoming, 0);
	MOVE_UNTIL(!h1->table.n_outgoing, h1, h2);
	assert_int_equal(h1->table.failed + h2->table.failed, 0);
}

/* The end that is asked does nothing: a REQ is on its way, nobody responds. */
static void fail_to_connect(struct end *e, const struct end *to)
{
	unsigned before = e->datagrams;

	assert_int_equal(send_to(e, to), IPOIB_BY_NOTHING);
	MOVE_UNTIL(connection(e, to)->qp, e, e);
	pass(e, PATIENCE - 1);
	assert_true(is_in_state(e, to, IPOIB_CONNECTING));
	pass(e, 1);
	assert_true(is_in_state(e, to, IPOIB_FAILED));
	assert_int_equal(e->datagrams, before + 1);
}

LAB_CASE(what_fails_is_tried_ever_later)
{
	struct end *h1 = open_end(1), *h2 = open_end(2);
	unsigned wait = 1;

	for (unsigned i = 1; i <= FAILURES; i++) {
		fail_to_connect(h1, h2);
		assert_int_equal(connection(h1, h2)->failures, i);
		pass(h1, wait * SECOND - 1);
		assert_int_equal(send_to(h1, h2), IPOIB_BY_DATAGRAM);
		pass(h1, 1);
		wait = wait < LONGEST_WAIT ? 2 * wait : LONGEST_WAIT;
	}
	reach(h1, h2);
	MOVE_UNTIL(!connection(h1, h2)->failures, h1, h2);
}
