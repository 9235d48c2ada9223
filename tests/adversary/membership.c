/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client that asks the daemon of memberships as the checker of its programs does, of devices,
 * ports and groups that are not there, and without end: it is answered, learns nothing of others'
 * devices, and neither costs the daemon memory nor its neighbours time.
 */
#include "verbs/lab.h"

#include "daemon_lab.h"

#define MANY 5000 /* questions */

struct client {
	struct control_client *control;
	uint32_t hca;
};

static void close_client(void *arg)
{
	struct client *c = arg;

	control_close(c->control);
	free(c);
}

/* @hca: from 0. */
static struct client *client(uint32_t hca)
{
	struct client *c = calloc(1, sizeof(*c));
	struct shm_region region;
	int fd;

	assert_non_null(c);
	c->control = daemon_client(CONTROL_ROLE_VERBS);
	close(daemon_map(c->control, &region));
	shm_region_unmap(&region);
	lab_undo(close_client, c);
	c->hca = daemon_open_hca(c->control, hca, &fd);
	close(fd);
	return c;
}

static int query(struct client *c, const struct control_query_membership *req,
                 struct control_query_membership_reply *reply)
{
	return control_ask(c->control, CONTROL_QUERY_MEMBERSHIP, req, reply);
}

LAB_CASE(what_is_not_there_is_refused)
{
	struct client *c = client(0), *other = client(1);
	struct control_query_membership_reply reply;
	const struct {
		uint32_t hca;
		uint8_t port;
		int expect;
	} cases[] = {
		{ c->hca, 1, 0 },
		{ c->hca, 0, -EINVAL },
		{ c->hca, 2, -EINVAL },
		{ c->hca, 255, -EINVAL },
		{ c->hca + 1, 1, -EINVAL },
		{ UINT32_MAX, 1, -EINVAL },
		{ c->hca + 4096, 1, -EINVAL },
	};

	for (size_t i = 0; EACH_ROW(i, cases); i++) {
		const struct control_query_membership req = { .hca_handle = cases[i].hca,
			                                      .port_num = cases[i].port };

		assert_int_equal(query(c, &req, &reply), cases[i].expect);
	}
	assert_int_equal(
	        query(other,
	              &(struct control_query_membership){ .hca_handle = other->hca, .port_num = 1 },
	              &reply),
	        0);
}

LAB_CASE(a_request_of_another_length_is_refused)
{
	struct client *c = client(0);
	const struct {
		struct control_query_membership req;
		uint32_t more;
	} req = { .req = { .hca_handle = c->hca, .port_num = 1 } };
	const uint32_t bytes[] = { 0, 4, sizeof(req.req) - 1, sizeof(req.req) + 4 };

	for (size_t i = 0; EACH_ROW(i, bytes); i++)
		assert_int_equal(
		        control_request(c->control, CONTROL_QUERY_MEMBERSHIP, &req, bytes[i]),
		        -EPROTO);
}

/* None of them is known afterwards, and another client's request is served in between. */
LAB_CASE(questions_of_groups_leave_nothing)
{
	struct lab_group *group = lab_join(2, "239.1.2.3");
	struct client *c = client(0), *neighbour = client(1);
	const struct control_query_membership own = { .hca_handle = neighbour->hca,
		                                      .port_num = 1,
		                                      .mlid = group->mlid };
	struct control_query_membership req = { .hca_handle = c->hca, .port_num = 1 };
	struct control_query_membership_reply reply;
	const uint64_t groups = lab_status("groups");

	for (uint32_t i = 0; i < MANY; i++) {
		req.mgid = (struct ib_gid){ .raw = { 0xFF, 0x12 } };
		memcpy(req.mgid.raw + 12, &i, sizeof(i));
		req.mlid = (uint16_t)(i * 977);
		assert_int_equal(query(c, &req, &reply), 0);
		assert_true(reply.is_known && !reply.join_state && !reply.has_record);
	}
	assert_int_equal(lab_status("groups"), groups);
	req = own;
	memcpy(req.mgid.raw, group->mgid.raw, sizeof(req.mgid));
	assert_int_equal(query(neighbour, &req, &reply), 0);
	assert_true(reply.join_state && reply.has_record && reply.mlid == group->mlid);
	req.hca_handle = c->hca;
	assert_int_equal(query(c, &req, &reply), 0);
	assert_true(!reply.join_state);
}
