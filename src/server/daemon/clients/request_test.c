/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of requests: the roles that are served, and the checks before.
 */
#include <harness.h>

#include "base/util.h"
#include "daemon/clients/request.h"

enum {
	ONE = 10,
	RANGE = 20,
	RANGE_END = 23,
	WITH_FD = 30,
	HELLO = 31,
	OWNERS = 32,
	ABOUT = 33,
	ANY = UINT8_MAX
};

static int count(struct daemon_call *call)
{
	++*(int *)call->module;
	*(uint32_t *)daemon_call_reply(call, sizeof(uint32_t)) = *(const uint32_t *)call->body;
	return 0;
}

/* The client has a thing of the number 7. */
static void *find_seven(const struct daemon_call *call, uint32_t handle)
{
	return handle == 7 ? call->module : NULL;
}

static int count_about(struct daemon_call *call)
{
	++*(int *)call->about;
	return 0;
}

static const struct daemon_request rows[] = {
	{ .type = ONE, .bytes = 4, .who = DAEMON_VERBS | DAEMON_CLI, .serve = count },
	{ .type = RANGE, .last = RANGE_END, .bytes = 4, .who = DAEMON_UMAD, .serve = count },
	{ .type = WITH_FD, .bytes = 4, .n_fds = 1, .who = DAEMON_CLI, .serve = count },
	{ .type = HELLO, .bytes = 4, .who = DAEMON_STRANGER | DAEMON_ANYBODY, .serve = count },
	{ .type = ANY, .bytes = DAEMON_ANY_BYTES, .who = DAEMON_CLI, .serve = count },
	{ .type = OWNERS, .bytes = 4, .is_owners = true, .who = DAEMON_CLI, .serve = count },
	{ .type = ABOUT,
	  .bytes = 8,
	  .about_at = 4,
	  .who = DAEMON_VERBS,
	  .find = find_seven,
	  .serve = count_about },
};

struct fixture {
	struct daemon_requests all;
	struct control_packet request, reply;
	int served;
};

static int serve(struct fixture *f, uint32_t who, uint32_t type, uint32_t bytes)
{
	struct daemon_call call = { .request = &f->request, .reply = &f->reply };

	f->request.header.type = type;
	f->request.header.bytes = bytes;
	f->reply = (struct control_packet){ 0 };
	return daemon_requests_serve(&f->all, who, &call);
}

static struct fixture make(void)
{
	return (struct fixture){ .request.body = { 1, 2, 3, 4 } };
}

static void fill(struct fixture *f)
{
	daemon_requests_add(&f->all, rows, ARRAY_SIZE(rows), &f->served);
}

CASE(the_owners_requests_are_for_the_owner)
{
	struct fixture f = make();

	fill(&f);
	assert_int_equal(serve(&f, DAEMON_CLI | DAEMON_OWNER, OWNERS, 4), 0);
	assert_int_equal(serve(&f, DAEMON_CLI, OWNERS, 4), -EACCES);
	assert_int_equal(serve(&f, DAEMON_VERBS | DAEMON_OWNER, OWNERS, 4), -ENOSYS);
	assert_int_equal(serve(&f, DAEMON_STRANGER | DAEMON_OWNER, OWNERS, 4), -EPROTO);
	assert_int_equal(f.served, 1);
}

CASE(a_request_is_about_what_the_client_has)
{
	struct fixture f = make();
	uint32_t body[2] = { 7, 8 };

	fill(&f);
	memcpy(f.request.body, body, sizeof(body));
	assert_int_equal(serve(&f, DAEMON_VERBS, ABOUT, 8), -EINVAL);
	assert_int_equal(f.served, 0);
	body[1] = 7;
	memcpy(f.request.body, body, sizeof(body));
	assert_int_equal(serve(&f, DAEMON_VERBS, ABOUT, 8), 0);
	assert_int_equal(f.served, 1);
}

CASE(a_request_is_served_by_its_row)
{
	struct fixture f = make();

	fill(&f);
	assert_int_equal(serve(&f, DAEMON_VERBS, ONE, 4), 0);
	assert_int_equal(f.served, 1);
	assert_int_equal(f.reply.header.bytes, 4);
	assert_memory_equal(f.reply.body, f.request.body, 4);
}

CASE(a_range_is_served_to_its_end)
{
	struct fixture f = make();

	fill(&f);
	for (uint32_t type = RANGE; type <= RANGE_END; type++)
		assert_int_equal(serve(&f, DAEMON_UMAD, type, 4), 0);
	assert_int_equal(f.served, RANGE_END - RANGE + 1);
	assert_int_equal(serve(&f, DAEMON_UMAD, RANGE - 1, 4), -ENOSYS);
	assert_int_equal(serve(&f, DAEMON_UMAD, RANGE_END + 1, 4), -ENOSYS);
}

CASE(other_roles_have_no_such_request)
{
	struct fixture f = make();

	fill(&f);
	assert_int_equal(serve(&f, DAEMON_UMAD, ONE, 4), -ENOSYS);
	assert_int_equal(serve(&f, DAEMON_SYSFS, ONE, 4), -ENOSYS);
	assert_int_equal(f.served, 0);
}

CASE(a_type_beyond_the_table_is_unknown)
{
	struct fixture f = make();

	fill(&f);
	assert_int_equal(serve(&f, DAEMON_CLI, ANY, 100), 0);
	assert_int_equal(serve(&f, DAEMON_CLI, ANY + 1, 4), -ENOSYS);
	assert_int_equal(serve(&f, DAEMON_CLI, ANY + 1 + ONE, 4), -ENOSYS);
	assert_int_equal(serve(&f, DAEMON_CLI, UINT32_MAX, 4), -ENOSYS);
}

CASE(the_length_is_exact)
{
	struct fixture f = make();

	fill(&f);
	assert_int_equal(serve(&f, DAEMON_CLI, ONE, 3), -EPROTO);
	assert_int_equal(serve(&f, DAEMON_CLI, ONE, 5), -EPROTO);
	assert_int_equal(serve(&f, DAEMON_CLI, ONE, 0), -EPROTO);
	assert_int_equal(f.served, 0);
}

CASE(descriptors_must_come_where_they_are_wanted)
{
	struct fixture f = make();

	fill(&f);
	assert_int_equal(serve(&f, DAEMON_CLI, WITH_FD, 4), -EPROTO);
	f.request.n_fds = 2;
	assert_int_equal(serve(&f, DAEMON_CLI, WITH_FD, 4), -EPROTO);
	assert_int_equal(serve(&f, DAEMON_CLI, ONE, 4), 0); /* which wants none */
	f.request.n_fds = 1;
	assert_int_equal(serve(&f, DAEMON_CLI, WITH_FD, 4), 0);
}

CASE(a_stranger_may_say_hello_only)
{
	struct fixture f = make();

	fill(&f);
	assert_int_equal(serve(&f, DAEMON_STRANGER, ONE, 4), -EPROTO);
	assert_int_equal(serve(&f, DAEMON_STRANGER, RANGE_END + 1, 4), -EPROTO);
	assert_int_equal(serve(&f, DAEMON_STRANGER, HELLO, 4), 0);
	assert_int_equal(serve(&f, DAEMON_UMAD, HELLO, 4), 0);
}

CASE(the_reply_has_a_copy_of_a_descriptor)
{
	struct fixture f = make();
	struct daemon_call call = { .reply = &f.reply };

	assert_int_equal(daemon_call_give_copy(&call, -1), -EBADF);
	assert_int_equal(f.reply.n_fds, 0);
	assert_int_equal(daemon_call_give_copy(&call, STDERR_FILENO), 0);
	assert_int_equal(f.reply.n_fds, 1);
	assert_int_not_equal(f.reply.fd[0], STDERR_FILENO);
	control_close_fds(&f.reply);
}
