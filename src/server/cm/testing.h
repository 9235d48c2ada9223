/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the unit tests of this folder: a fabric of four hosts with a subnet administrator
 * (testing_sa.h), clients of it without a socket, and the requests that a process would send.
 * MADs arrive when a request has been served and when testing_settle() is called; the clock
 * stands unless testing_pass() moves it. Each test program includes it once. Calls that must
 * work stop the test if they do not.
 */
#ifndef CM_TESTING_H
#define CM_TESTING_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cm/cm.h"
#include "cm/state.h"
#include "cm/testing_sa.h"
#include "fabric/plan/build.h"

struct testing_datagram {
	STAILQ_ENTRY(testing_datagram) entry;
	size_t bytes;
	struct control_cm_got got;
};

struct cm_outbox {
	struct testing *t;
	STAILQ_HEAD(, testing_datagram) sent; /* not taken */
	unsigned n_sent;
	bool full;   /* for all but bytes */
	bool closed; /* the process's end */
};

struct testing_mad {
	STAILQ_ENTRY(testing_mad) entry;
	struct fabric_port *port; /* where it was sent from */
	struct fabric_mad mad;
};

struct testing {
	struct fabric *f;
	struct cm *cm;
	struct testing_sa sa;
	STAILQ_HEAD(, testing_mad) mads; /* sent and not arrived */
	unsigned n_sent;                 /* MADs, ever */
	unsigned loses_cm;               /* so many of the next MADs between ports */
	struct fabric_mad last_cm;       /* of them */
	unsigned boxes;                  /* open */
	struct cm_outbox *last_box;
	unsigned memories; /* that processes have */
	bool no_memory;    /* for more */
	struct base_timers timers;
	uint64_t now_ms;
};

#define UNUSED           __attribute__((unused))
#define TESTING_TID_HIGH 2

/* ---- the daemon's part ---- */

static int box_open(void *arg, struct cm_outbox **box, int *process_fd)
{
	struct testing *t = arg;

	*box = calloc(1, sizeof(**box));
	(*box)->t = t;
	STAILQ_INIT(&(*box)->sent);
	t->boxes++;
	t->last_box = *box;
	*process_fd = -1;
	return 0;
}

static void box_add(struct cm_outbox *box, const void *data, size_t bytes)
{
	struct testing_datagram *d = calloc(1, sizeof(*d));

	assert_true(bytes <= sizeof(d->got));
	d->bytes = bytes;
	memcpy(&d->got, data, bytes);
	STAILQ_INSERT_TAIL(&box->sent, d, entry);
	box->n_sent++;
}

static int box_send(struct cm_outbox *box, const void *data, size_t bytes)
{
	if (box->full)
		return -ENOBUFS;
	box_add(box, data, bytes);
	return 0;
}

static void box_ring(struct cm_outbox *box, uint8_t byte)
{
	box_add(box, &byte, sizeof(byte));
}

static unsigned box_waiting(const struct cm_outbox *box)
{
	return box->n_sent;
}

static bool box_closed(const struct cm_outbox *box)
{
	return box->closed;
}

/* The oldest datagram, to be freed; NULL: there is none. */
static struct testing_datagram *box_take(struct cm_outbox *box)
{
	struct testing_datagram *d = STAILQ_FIRST(&box->sent);

	if (!d)
		return NULL;
	STAILQ_REMOVE_HEAD(&box->sent, entry);
	box->n_sent--;
	return d;
}

static void box_close(struct cm_outbox *box)
{
	struct testing_datagram *d;

	while ((d = box_take(box)))
		free(d);
	box->t->boxes--;
	free(box);
}

static uint64_t clock_now(void *arg)
{
	return ((struct testing *)arg)->now_ms * CM_NS_PER_MS;
}

static void clock_init(struct testing *t)
{
	base_timers_init(&t->timers, &(struct base_clock){ .now_ns = clock_now, .arg = t });
}

static void mad_send(void *arg, struct fabric_port *port, const struct fabric_mad *mad)
{
	struct testing_mad *m = malloc(sizeof(*m));
	struct testing *t = arg;

	*m = (struct testing_mad){ .port = port, .mad = *mad };
	STAILQ_INSERT_TAIL(&t->mads, m, entry);
	t->n_sent++;
}

/* Counts the memories that processes have. */
static void *memory_get(void *arg, uint32_t bytes, uint64_t *off)
{
	struct testing *t = arg;
	void *p = t->no_memory ? NULL : calloc(1, bytes);

	*off = (uintptr_t)p;
	t->memories += p != NULL;
	return p;
}

static void memory_put(void *arg, uint64_t off)
{
	((struct testing *)arg)->memories--;
	free((void *)(uintptr_t)off);
}

/* ---- MADs and time ---- */

/* The port that has @lid, if what is sent there arrives. */
static struct fabric_port *port_at(const struct testing *t, uint16_t lid)
{
	for (unsigned i = 0; i < t->f->n_hca_ports; i++)
		if (t->f->hca_port[i]->lid == lid && t->f->hca_port[i]->state == IB_PORT_ACTIVE)
			return t->f->hca_port[i];
	return NULL;
}

static void deliver_cm(struct testing *t, struct fabric_port *to, const struct fabric_mad *mad)
{
	t->last_cm = *mad;
	if (t->loses_cm)
		t->loses_cm--;
	else
		cm_mad_input(t->cm, to, mad);
}

static void deliver(struct testing *t, struct testing_mad *m)
{
	struct fabric_port *to = port_at(t, m->mad.dlid);
	struct fabric_mad response;

	assert_int_equal(m->mad.slid, m->port->lid);
	assert_int_equal(m->mad.src_qpn, 1);
	assert_int_equal(m->mad.dest_qpn, 1);
	assert_int_equal(m->mad.qkey, IB_QKEY_GSI);
	if (m->port->state != IB_PORT_ACTIVE || !to)
		return;
	if (m->mad.data[1] != MAD_CLASS_SUBN_ADM)
		deliver_cm(t, to, &m->mad);
	else if (m->mad.dlid == TESTING_SA_LID &&
	         testing_sa_input(&t->sa, m->port, &m->mad, &response))
		assert_true(cm_mad_input(t->cm, m->port, &response));
}

/* All that was sent has arrived, and all that came of it. */
static void testing_settle(struct testing *t)
{
	struct testing_mad *m;

	while ((m = STAILQ_FIRST(&t->mads))) {
		STAILQ_REMOVE_HEAD(&t->mads, entry);
		deliver(t, m);
		free(m);
	}
}

/* The responses that the SA has kept arrive. It keeps no more. */
static UNUSED void testing_release(struct testing *t)
{
	struct testing_sa_kept *k;

	t->sa.keeps = false;
	while ((k = STAILQ_FIRST(&t->sa.kept))) {
		STAILQ_REMOVE_HEAD(&t->sa.kept, entry);
		assert_true(cm_mad_input(t->cm, k->port, &k->response));
		free(k);
	}
	testing_settle(t);
}

/* When something is due next, in ms; at @end at the latest. */
static uint64_t next_due(const struct testing *t, uint64_t end)
{
	uint64_t next = base_timers_next(&t->timers) / CM_NS_PER_MS;

	return next < end ? next : end;
}

/* So much time passes; work that is due is done at its time. */
static UNUSED void testing_pass(struct testing *t, uint64_t ms)
{
	const uint64_t end = t->now_ms + ms;

	while (t->now_ms < end) {
		t->now_ms = next_due(t, end);
		base_timers_run(&t->timers);
		testing_settle(t);
	}
}

/* ---- the fabric ---- */

/* Does the part of a subnet manager. */
static void activate(struct testing *t)
{
	for (unsigned i = 0; i < t->f->n_hca_ports; i++) {
		struct fabric_port *p = t->f->hca_port[i];

		p->lid = (uint16_t)(TESTING_SA_LID + i);
		p->sm_lid = TESTING_SA_LID;
		p->state = IB_PORT_ACTIVE;
		fabric_port_publish(t->f, p);
		cm_port_active(t->cm, p);
	}
}

/* A fabric of that plan, which is freed. @ops: what the test has of its own. */
static int testing_begin(void **state, struct fabric_plan *plan, struct cm_ops ops)
{
	struct testing *t = calloc(1, sizeof(*t));
	struct shm_settings settings;

	ops.outbox_open = box_open;
	ops.outbox_send = box_send;
	ops.outbox_ring = box_ring;
	ops.outbox_waiting = box_waiting;
	ops.outbox_closed = box_closed;
	ops.outbox_close = box_close;
	ops.mad_send = mad_send;
	ops.memory_get = memory_get;
	ops.memory_put = memory_put;
	ops.arg = t;
	ops.timers = &t->timers;
	clock_init(t);
	STAILQ_INIT(&t->mads);
	fabric_settings_default(&settings);
	if (fabric_new(&t->f, plan, &settings) || cm_new(&t->cm, t->f, &ops))
		return -1;
	fabric_plan_fini(plan);
	testing_sa_init(&t->sa, t->f);
	*state = t;
	return 0;
}

static UNUSED int testing_setup(void **state)
{
	struct fabric_plan plan;

	fabric_plan_init(&plan);
	if (fabric_plan_tree(&plan, 4) ||
	    testing_begin(state, &plan, (struct cm_ops){ .tid_high = TESTING_TID_HIGH }))
		return -1;
	activate(*state);
	testing_settle(*state);
	return 0;
}

/* Waits until all work that is done in slices is done. */
static void testing_do_slices(struct testing *t)
{
	testing_settle(t);
	while (base_timers_next(&t->timers) <= clock_now(t)) {
		base_timers_run(&t->timers);
		testing_settle(t);
	}
}

/* Nothing is left of what clients did. */
static void testing_assert_clean(struct testing *t)
{
	testing_do_slices(t);
	assert_int_equal(t->boxes, 0);
	assert_int_equal(t->memories, 0);
	assert_int_equal(t->cm->bindings.n, 0);
	assert_int_equal(t->cm->groups.n, 0);
	assert_int_equal(t->cm->memberships.n, 0);
	assert_int_equal(t->cm->requests.n, 0);
	assert_int_equal(t->cm->transactions.n, 0);
	assert_int_equal(t->cm->asking.n, 0);
	assert_int_equal(t->cm->asked.n, 0);
	assert_int_equal(t->cm->conns.n, 0);
	assert_int_equal(t->cm->conn_peers.n, 0);
	assert_int_equal(t->cm->conn_qpns.n, 0);
	assert_true(base_timers_next(&t->timers) == BASE_TIMER_NEVER);
	for (unsigned i = 0; i < t->f->n_hca_ports; i++)
		assert_true(TAILQ_EMPTY(&t->cm->port[i].groups));
	assert_true(LIST_EMPTY(&t->sa.groups));
}

/* Though something may be on its way. */
static UNUSED int testing_end(void **state)
{
	struct testing *t = *state;
	struct testing_mad *m;

	cm_free(t->cm);
	while ((m = STAILQ_FIRST(&t->mads))) {
		STAILQ_REMOVE_HEAD(&t->mads, entry);
		free(m);
	}
	testing_sa_fini(&t->sa);
	fabric_free(t->f);
	free(t);
	return 0;
}

static int testing_teardown(void **state)
{
	testing_assert_clean(*state);
	return testing_end(state);
}

/* ---- requests ---- */

static int testing_serve(struct cm_client *c, const struct control_header *header,
                         const void *request, void *reply)
{
	struct control_packet in = { .header = *header }, out = { 0 };
	int ret;

	if (header->bytes)
		memcpy(in.body, request, header->bytes);
	ret = cm_request(c->cm, c, &in, &out);
	testing_settle(c->cm->ops.arg);
	if (!ret && reply)
		memcpy(reply, out.body, out.header.bytes);
	return ret;
}

static int testing_request(struct cm_client *c, uint32_t type, const void *request, uint32_t bytes,
                           void *reply)
{
	const struct control_header header = { .type = type, .serial = 1, .bytes = bytes };

	return testing_serve(c, &header, request, reply);
}

/* One that nobody waits for. */
static UNUSED int testing_post(struct cm_client *c, uint32_t type, const void *request,
                               uint32_t bytes)
{
	const struct control_header header = { .type = type, .bytes = bytes };

	return testing_serve(c, &header, request, NULL);
}

#define POST(client, type, request) \
	testing_post(client, CONTROL_CM_##type, &(request), sizeof(request))
#define REQUEST(client, type, request, reply) \
	testing_request(client, CONTROL_CM_##type, &(request), sizeof(request), reply)

static UNUSED struct cm_client *testing_client(struct testing *t, int host)
{
	struct cm_client *c;

	assert_int_equal(cm_client_new(t->cm, host, &c), 0);
	return c;
}

static UNUSED uint32_t testing_channel(struct cm_client *c)
{
	struct control_cm_channel_reply reply;

	assert_int_equal(testing_request(c, CONTROL_CM_CREATE_CHANNEL, NULL, 0, &reply), 0);
	return reply.channel;
}

/* The identifier that the request describes, which has no number yet. */
static UNUSED uint32_t testing_new_id(struct cm_client *c, struct control_cm_create_id *request)
{
	for (request->id = 0; cm_id_at(c, request->id); request->id++)
		;
	assert_int_equal(REQUEST(c, CREATE_ID, *request, NULL), 0);
	return request->id;
}

/* An identifier on a channel of its own; its uid is @uid. */
static UNUSED uint32_t testing_id(struct cm_client *c, uint16_t ps, uint64_t uid)
{
	struct control_cm_create_id request = { .uid = uid,
		                                .channel = testing_channel(c),
		                                .ps = ps };

	return testing_new_id(c, &request);
}

static UNUSED union control_cm_addr testing_addr(const char *text, uint16_t port)
{
	union control_cm_addr a = { 0 };

	if (inet_pton(AF_INET, text, &a.in.sin_addr) == 1) {
		a.in.sin_family = AF_INET;
		a.in.sin_port = htons(port);
		return a;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
	a.in6.sin6_family = AF_INET6;
	a.in6.sin6_port = htons(port);
	return a;
}

static UNUSED int testing_bind(struct cm_client *c, uint32_t id, const char *addr, uint16_t port)
{
	struct control_cm_bind_addr request = { .id = id, .addr = testing_addr(addr, port) };
	struct control_cm_id_reply reply;

	return REQUEST(c, BIND_ADDR, request, &reply);
}

static UNUSED int testing_resolve(struct cm_client *c, uint32_t id, const char *dst, uint16_t port)
{
	struct control_cm_resolve_addr request = { .id = id, .dst = testing_addr(dst, port) };

	return REQUEST(c, RESOLVE_ADDR, request, NULL);
}

static UNUSED struct control_cm_id_reply testing_query(struct cm_client *c, uint32_t id)
{
	struct control_cm_id request = { .id = id };
	struct control_cm_id_reply reply;

	assert_int_equal(REQUEST(c, QUERY_ID, request, &reply), 0);
	return reply;
}

static UNUSED int testing_set_int(struct cm_client *c, uint32_t id, int name, int value)
{
	struct control_cm_set_option request = {
		.id = id, .level = RDMA_OPTION_ID, .name = name, .bytes = sizeof(value)
	};

	memcpy(request.value, &value, sizeof(value));
	return REQUEST(c, SET_OPTION, request, NULL);
}

static UNUSED int testing_listen(struct cm_client *c, uint32_t id, int backlog)
{
	struct control_cm_listen request = { .id = id, .backlog = backlog };
	struct control_cm_id_reply reply;

	return REQUEST(c, LISTEN, request, &reply);
}

static UNUSED struct control_cm_events_reply testing_destroy(struct cm_client *c, uint32_t id)
{
	const struct cm_id *p = cm_id_at(c, id);
	struct control_cm_read request = { .id = id, .requests = p ? p->n_requests_read : 0 };
	struct control_cm_events_reply reply;

	assert_int_equal(REQUEST(c, DESTROY_ID, request, &reply), 0);
	return reply;
}

/* The next event of the channel that @id is on; an ASK without an event is one that was withdrawn.
 * 0 or -EAGAIN. */
static UNUSED int testing_event(struct cm_client *c, uint32_t id, struct control_cm_event *e)
{
	const struct cm_id *p = cm_id_at(c, id);
	struct control_cm_channel request;
	struct testing_datagram *d;
	struct control_cm_got got;
	int ret = -EAGAIN;

	assert_non_null(p);
	request.channel = p->channel->handle;
	while (ret == -EAGAIN && (d = box_take(p->channel->box))) {
		got = d->got;
		ret = d->bytes == sizeof(got) ? 0 : REQUEST(c, GET_EVENT, request, &got);
		free(d);
	}
	if (ret)
		return ret;
	*e = got.event;
	if (e->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct control_cm_read read = { .id = id, .requests = p->n_requests_read + 1 };

		assert_int_equal(e->uid, p->uid);
		assert_int_equal(REQUEST(c, READ, read, NULL), 0);
	}
	return 0;
}

/* ... which must be of @type. */
static UNUSED struct control_cm_event testing_expect(struct cm_client *c, uint32_t id,
                                                     enum rdma_cm_event_type type, int status)
{
	struct control_cm_event e;

	assert_int_equal(testing_event(c, id, &e), 0);
	assert_int_equal(e.type, type);
	assert_int_equal(e.status, status);
	return e;
}

/* ---- joins ---- */

#define TESTING_JOIN_UID 99

/* An identifier bound to the address of its client's host. */
static UNUSED uint32_t testing_bound_id(struct cm_client *c, uint16_t ps)
{
	uint32_t id = testing_id(c, ps, 1);
	char addr[] = "10.0.0.x";

	addr[7] = (char)('1' + c->host);
	assert_int_equal(testing_bind(c, id, addr, 0), 0);
	return id;
}

static UNUSED int testing_join_flags(struct cm_client *c, uint32_t id,
                                     const union control_cm_addr *addr, uint32_t flags,
                                     uint32_t *join)
{
	struct control_cm_join request = {
		.uid = TESTING_JOIN_UID, .id = id, .flags = flags, .addr = *addr
	};
	struct control_cm_handle reply;
	int ret = REQUEST(c, JOIN, request, &reply);

	if (!ret && join)
		*join = reply.join;
	return ret;
}

static UNUSED int testing_join(struct cm_client *c, uint32_t id, const char *group,
                               uint32_t *handle)
{
	union control_cm_addr addr = testing_addr(group, 0);

	return testing_join_flags(c, id, &addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, handle);
}

static UNUSED struct control_cm_event testing_joined(struct cm_client *c, uint32_t id,
                                                     const char *group)
{
	assert_int_equal(testing_join(c, id, group, NULL), 0);
	return testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
}

static UNUSED int testing_leave(struct cm_client *c, uint32_t handle)
{
	struct control_cm_handle request = { .join = handle };
	struct control_cm_events_reply reply;

	return REQUEST(c, LEAVE, request, &reply);
}

/* The one group that the SA has beside the broadcast group; NULL: none. */
static UNUSED struct testing_group *testing_group(struct testing *t)
{
	testing_settle(t);
	return LIST_FIRST(&t->sa.groups);
}

#endif
