/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the unit tests of this folder: a fabric of four hosts, clients of it without a
 * socket, and the requests that a process would send. Each test program includes it
 * once. Calls that must work stop the test if they do not.
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
#include "cm/state.h"
#include "fabric/plan.h"

struct cm_outbox {
	struct testing *t;
	unsigned bytes; /* sent, not taken */
};

struct testing {
	struct fabric *f;
	struct sm *sm;
	struct sa *sa;
	struct cm *cm;
	unsigned boxes; /* open */
	struct cm_outbox *last_box;
	unsigned woken_in; /* ms; what was last asked for */
};

#define UNUSED __attribute__((unused))

/* ---- the daemon's part ---- */

static int box_open(void *arg, struct cm_outbox **box, int *process_fd)
{
	struct testing *t = arg;

	*box = calloc(1, sizeof(**box));
	(*box)->t = t;
	t->boxes++;
	t->last_box = *box;
	*process_fd = -1;
	return 0;
}

static void box_send(struct cm_outbox *box, const void *data, size_t bytes)
{
	(void)data;
	box->bytes += (unsigned)bytes;
}

static void box_close(struct cm_outbox *box)
{
	box->t->boxes--;
	free(box);
}

static void box_wake(void *arg, unsigned ms)
{
	((struct testing *)arg)->woken_in = ms;
}

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

static int testing_setup(void **state)
{
	struct testing *t = calloc(1, sizeof(*t));
	struct shm_settings settings;
	struct fabric_plan plan;
	const struct sm_ops sm_ops = { .wake = no_wake };
	const struct cm_ops cm_ops = { .outbox_open = box_open,
		                       .outbox_send = box_send,
		                       .outbox_close = box_close,
		                       .wake = box_wake,
		                       .arg = t };

	fabric_settings_default(&settings);
	fabric_plan_init(&plan);
	if (fabric_plan_tree(&plan, 4) || fabric_new(&t->f, &plan, &settings))
		return -1;
	fabric_plan_fini(&plan);
	if (sm_new(&t->sm, t->f, &sm_ops) || sm_sweep(t->sm) || sa_new(&t->sa, t->f, t->sm) ||
	    cm_new(&t->cm, t->f, t->sa, &cm_ops))
		return -1;
	*state = t;
	return 0;
}

/* Nothing is left of what clients did. */
static void testing_assert_clean(const struct testing *t)
{
	assert_int_equal(t->boxes, 0);
	assert_int_equal(t->cm->bindings.n, 0);
	assert_int_equal(t->cm->groups.n, 0);
	assert_true(LIST_EMPTY(&t->cm->waiting));
	assert_int_equal(t->sa->groups.n, 1); /* the broadcast group */
}

static int testing_teardown(void **state)
{
	struct testing *t = *state;

	testing_assert_clean(t);
	cm_free(t->cm);
	sa_free(t->sa);
	sm_free(t->sm);
	fabric_free(t->f);
	free(t);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, testing_setup, testing_teardown)

/* ---- requests ---- */

static int testing_request(struct cm_client *c, uint32_t type, const void *request, uint32_t bytes,
                           void *reply)
{
	struct control_packet in = { .header = { .type = type, .bytes = bytes } };
	struct control_packet out = { 0 };
	int ret;

	if (bytes)
		memcpy(in.body, request, bytes);
	ret = cm_request(c->cm, c, &in, &out);
	if (!ret && reply)
		memcpy(reply, out.body, out.header.bytes);
	return ret;
}

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
	struct control_cm_channel reply;

	assert_int_equal(testing_request(c, CONTROL_CM_CREATE_CHANNEL, NULL, 0, &reply), 0);
	return reply.channel;
}

/* An identifier on a channel of its own; its uid is @uid. */
static UNUSED uint32_t testing_id(struct cm_client *c, uint16_t ps, uint64_t uid)
{
	struct control_cm_create_id request = { .uid = uid, .ps = ps };
	struct control_cm_id reply;

	request.channel = testing_channel(c);
	assert_int_equal(REQUEST(c, CREATE_ID, request, &reply), 0);
	return reply.id;
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
	struct control_cm_id request = { .id = id };
	struct control_cm_events_reply reply;

	assert_int_equal(REQUEST(c, DESTROY_ID, request, &reply), 0);
	return reply;
}

/* The next event of the channel that @id is on. 0 or -EAGAIN. */
static UNUSED int testing_event(struct cm_client *c, uint32_t id, struct control_cm_event *e)
{
	const struct cm_id *p = base_idtable_get(&c->ids, id);
	struct control_cm_channel request;

	assert_non_null(p);
	request.channel = p->channel->handle;
	return REQUEST(c, GET_EVENT, request, e);
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

#endif
