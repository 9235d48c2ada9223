/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers and memory that the daemon reserves for queue pairs to come. Clients that speak its
 * protocol name what is not theirs, twice, or for something else; and whatever lies reserved, all
 * numbers can be had, to the last one.
 */
#include "verbs/lab.h"

#include "daemon_lab.h"
#include "shm/region.h"
#include "attributes.h"

#define MANY    40 /* queue pairs, after which the library has some reserved */
#define LEFT    1000
#define RECEIVE 1

struct client {
	struct control_client *control;
	struct shm_region region;
	uint32_t hca, cq;
};

static int ask(struct client *c, enum control_type type, const void *req, uint32_t bytes)
{
	return control_request(c->control, type, req, bytes);
}

static void close_client(void *arg)
{
	struct client *c = arg;

	shm_region_unmap(&c->region);
	control_close(c->control);
	free(c);
}

static struct client *client(void)
{
	struct client *c = calloc(1, sizeof(*c));
	struct control_create_cq create = { .cqe = 1 };
	struct control_create_cq_reply cq;
	int fd;

	assert_non_null(c);
	c->control = daemon_client(CONTROL_ROLE_VERBS);
	close(daemon_map(c->control, &c->region));
	lab_undo(close_client, c);
	c->hca = create.hca_handle = daemon_open_hca(c->control, 2, &fd);
	close(fd);
	assert_int_equal(control_ask(c->control, CONTROL_CREATE_CQ, &create, &cq), 0);
	c->cq = cq.cq;
	return c;
}

static void client_ends(struct client *c)
{
	lab_forget(c);
	close_client(c);
}

/* ---- requests ---- */

static int try_reserve(struct client *c, const struct control_qp_shape *shape, uint32_t n,
                       struct control_reserve_qps_reply *reply)
{
	struct control_reserve_qps req = { .shape = *shape, .n = n };

	return control_ask(c->control, CONTROL_RESERVE_QPS, &req, reply);
}

/* For UD queue pairs of so many receives. */
static struct control_reserve_qps_reply reserve(struct client *c, uint32_t receives, uint32_t n)
{
	const struct control_qp_shape shape = { .max_recv_wr = receives };
	struct control_reserve_qps_reply reply;

	assert_int_equal(try_reserve(c, &shape, n, &reply), 0);
	return reply;
}

static struct control_create_qp ud(const struct client *c, uint32_t receives, uint32_t reserved)
{
	return (struct control_create_qp){ .hca_handle = c->hca,
		                           .cq = c->cq,
		                           .max_recv_wr = receives,
		                           .ready_bit = SHM_NO_READY_BIT,
		                           .type = IBV_QPT_UD,
		                           .reserved = reserved };
}

static int create(struct client *c, const struct control_create_qp *req, uint32_t *qpn)
{
	struct control_create_qp_reply reply;
	int ret;

	do
		ret = control_ask(c->control, CONTROL_CREATE_QP, req, &reply);
	while (ret == -EAGAIN);
	if (!ret && qpn)
		*qpn = reply.qpn;
	return ret;
}

static int create_by(struct client *c, uint32_t receives, uint32_t reserved)
{
	const struct control_create_qp req = ud(c, receives, reserved);

	return create(c, &req, NULL);
}

static int modify(struct client *c, uint32_t qpn)
{
	const struct control_modify_qp req = { .qpn = qpn, .port_num = 1, .receives = 1 };

	return ask(c, CONTROL_MODIFY_QP, &req, sizeof(req));
}

static int destroy(struct client *c, uint32_t qpn)
{
	const struct control_handle req = { .handle = qpn };
	struct control_destroy_reply reply;

	return control_ask(c->control, CONTROL_DESTROY_QP, &req, &reply);
}

/* Takes it as the library does before it posts the request. */
static bool take(const struct client *c, const struct control_reserved_qp *reserved)
{
	uint64_t ticket = reserved->ticket;

	return atomic_compare_exchange_strong(
	        &shm_sender_at(&c->region, SHM_QP_INDEX(reserved->qp.qpn))->ticket, &ticket, 0);
}

/* ---- no queue pairs ---- */

static int at_rest(void **state);

CASE_WITH(what_lies_reserved_is_no_queue_pair, NULL, at_rest)
{
	struct client *c = client();
	uint64_t rings = lab_status("ring_bytes"), payloads = lab_status("payload_bytes");
	struct control_reserve_qps_reply r = reserve(c, 64, 16);
	struct control_get_memory memory = { .qpn = r.of[3].qp.qpn };
	struct control_attach attach = { .qpn = memory.qpn, .mlid = 0xC000 };
	struct control_get_flow flow = { .qpn = memory.qpn, .dlid = 1 };
	struct control_get_payload payload = { .qpn = memory.qpn, .bytes = 4096 };
	struct control_raise_event event = { IBV_EVENT_SQ_DRAINED, memory.qpn };
	struct shm_qp record;

	memset(&attach.mgid, 0xFF, sizeof(attach.mgid));
	assert_int_equal(r.n, 16);
	assert_int_equal(lab_status("qps"), 0);
	assert_int_equal(lab_status("ring_bytes"), rings);
	assert_int_equal(lab_status("payload_bytes"), payloads);
	assert_int_equal(modify(c, memory.qpn), -EINVAL);
	assert_int_equal(destroy(c, memory.qpn), -EINVAL);
	assert_int_equal(ask(c, CONTROL_ATTACH, &attach, sizeof(attach)), -EINVAL);
	assert_int_equal(ask(c, CONTROL_GET_FLOW, &flow, sizeof(flow)), -EINVAL);
	assert_int_equal(ask(c, CONTROL_GET_PAYLOAD, &payload, sizeof(payload)), -EINVAL);
	assert_int_equal(ask(c, CONTROL_RAISE_EVENT, &event, sizeof(event)), -EINVAL);
	assert_int_equal(ask(c, CONTROL_GET_MEMORY, &memory, sizeof(memory)), -ENOENT);
	shm_qp_read(&c->region, memory.qpn, &record);
	assert_int_equal(record.flags, 0);
	assert_int_equal(create_by(c, 64, memory.qpn), 0);
	assert_int_equal(lab_status("qps"), 1);
	assert_true(lab_status("ring_bytes") > rings);
}

CASE_WITH(so_many_as_are_good_for_a_client_are_reserved, NULL, at_rest)
{
	struct client *c = client();

	assert_int_equal(reserve(c, 1, 0).n, 0);
	assert_int_equal(reserve(c, 1, UINT32_MAX).n, CONTROL_MAX_RESERVED);
	assert_in_range(reserve(c, 4096, UINT32_MAX).n, 1, 4);
	assert_int_equal(reserve(c, 16384, UINT32_MAX).n, 0);
}

CASE_WITH(what_is_wrong_is_not_reserved, NULL, at_rest)
{
	static const struct control_qp_shape wrong[] = {
		{ .max_recv_wr = UINT32_MAX },
		{ .max_recv_wr = 1, .request_bytes = 128, .max_recv_sge = 1 }, /* it has no keys */
		{ .max_recv_wr = 1, .request_bytes = UINT32_MAX - 63 },
	};
	struct control_reserve_qps_reply r;
	struct client *c = client();

	for (size_t i = 0; i < LAB_ARRAY(wrong); i++)
		assert_int_equal(try_reserve(c, &wrong[i], 4, &r), -EINVAL);
}

/* ---- what is named ---- */

CASE_WITH(what_lies_reserved_serves_once, NULL, at_rest)
{
	struct client *c = client();
	struct control_reserve_qps_reply r = reserve(c, 8, 2);
	uint32_t qpn = r.of[0].qp.qpn;

	assert_int_equal(create_by(c, 8, qpn), 0);
	assert_int_equal(create_by(c, 8, qpn), -EINVAL);
	assert_int_equal(modify(c, qpn), 0);
	assert_int_equal(destroy(c, qpn), 0);
	assert_int_equal(create_by(c, 8, qpn), -EINVAL);
	assert_int_equal(create_by(c, 8, r.of[1].qp.qpn), 0);
	assert_int_equal(lab_status("qps"), 1);
}

CASE_WITH(what_lies_reserved_serves_its_owner_alone, NULL, at_rest)
{
	struct client *c = client(), *other = client();
	struct control_reserve_qps_reply r = reserve(c, 8, 2);

	assert_int_equal(create_by(other, 8, r.of[0].qp.qpn), -EINVAL);
	assert_int_equal(create_by(c, 8, r.of[0].qp.qpn), 0);
	assert_int_equal(create_by(other, 8, r.of[0].qp.qpn), -EINVAL);
	for (uint32_t special = 0; special < 3; special++)
		assert_int_equal(create_by(c, 8, special << 16 | 1), -EINVAL);
	assert_int_equal(create_by(c, 8, UINT32_MAX), -EINVAL);
}

/* And it is used up, or it would lie there for ever: its ticket has been taken. */
CASE_WITH(what_lies_reserved_serves_nothing_else, NULL, at_rest)
{
	struct client *c = client(), *other = client();
	struct control_create_qp req;

	for (unsigned kind = 0; kind < 6; kind++) {
		struct control_reserve_qps_reply r = reserve(c, 8, 1);

		assert_true(take(c, &r.of[0]));
		req = ud(c, 8, r.of[0].qp.qpn);
		if (kind == 0)
			req.max_recv_wr = 7; /* the ring is as large */
		else if (kind == 1)
			req.max_send_wr = 1;
		else if (kind == 2)
			req.request_bytes = 64;
		else if (kind == 3)
			req.cq = other->cq;
		else if (kind == 4)
			req.type = IBV_QPT_RC;
		else
			req.hca_handle = other->hca;
		assert_int_equal(create(c, &req, NULL), -EINVAL);
		req = ud(c, 8, r.of[0].qp.qpn);
		assert_int_equal(create(c, &req, NULL), -EINVAL);
		assert_int_equal(shm_qp_at(&c->region, SHM_QP_INDEX(req.reserved))->qpn, 0);
	}
	assert_int_equal(lab_status("qps"), 0);
}

CASE_WITH(nobody_waits_for_a_queue_pair_that_is_reserved, NULL, at_rest)
{
	struct client *c = client();
	struct control_reserve_qps_reply r = reserve(c, 8, 4);

	for (unsigned i = 0; i < 4; i++) {
		struct control_create_qp req = ud(c, 8, r.of[i].qp.qpn);

		assert_true(take(c, &r.of[i]));
		assert_int_equal(control_post(c->control, CONTROL_CREATE_QP, &req, sizeof(req)), 0);
		assert_int_equal(modify(c, req.reserved), 0);
	}
	assert_int_equal(lab_status("qps"), 4);
}

/* ---- taken back ---- */

CASE_WITH(a_client_that_wants_ever_others_loses_the_oldest, NULL, at_rest)
{
	struct client *c = client();
	struct control_reserve_qps_reply first = reserve(c, 1, 16), r;

	assert_true(take(c, &first.of[1]));
	for (uint32_t receives = 2; receives <= 32; receives *= 2)
		r = reserve(c, receives, 16);
	assert_int_equal(r.n, 16);
	assert_false(take(c, &first.of[0]));
	assert_int_equal(create_by(c, 1, first.of[0].qp.qpn), -EINVAL);
	/* what the client has taken stays */
	assert_int_equal(create_by(c, 1, first.of[1].qp.qpn), 0);
	assert_true(take(c, &r.of[0]));
	assert_int_equal(create_by(c, 32, r.of[0].qp.qpn), 0);
}

/* Makes @n queue pairs, for which there are numbers. */
static void fill(struct client *c, uint32_t n)
{
	const struct control_create_qp req = ud(c, RECEIVE, 0);
	uint64_t before = lab_status("qps");

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(control_post(c->control, CONTROL_CREATE_QP, &req, sizeof(req)), 0);
	lab_await_status("qps", before + n);
}

/* Makes queue pairs until there are no more numbers. Returns how many. */
static uint32_t exhaust(struct client *c, uint32_t most)
{
	const struct control_create_qp req = ud(c, RECEIVE, 0);
	uint32_t n = 0;
	int ret = 0;

	while (n < most && !(ret = create(c, &req, NULL)))
		n++;
	assert_int_equal(ret, n < most ? -ENOMEM : 0);
	return n;
}

static uint32_t all_numbers(void)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(lab_open(1), &attr), 0);
	return (uint32_t)attr.max_qp;
}

CASE_WITH(none_is_reserved_while_numbers_are_scarce, NULL, at_rest)
{
	struct client *c = client(), *hog = client();
	uint32_t n = all_numbers();

	fill(hog, n / 2);
	assert_int_equal(reserve(c, 1, 4).n, 4);
	fill(hog, n / 3);
	assert_int_equal(reserve(c, 1, 4).n, 0);
}

/* Of the living and of the dead; but not what a client is making a queue pair of. */
CASE_WITH(all_numbers_can_be_had_though_some_lie_reserved, NULL, at_rest)
{
	struct client *c = client(), *dead = client(), *hog = client();
	struct control_reserve_qps_reply r = reserve(c, RECEIVE, 16);
	uint32_t n = all_numbers();

	assert_int_equal(reserve(c, 64, 16).n, 16);
	assert_int_equal(reserve(dead, RECEIVE, 16).n, 16);
	client_ends(dead);
	assert_true(take(c, &r.of[0]));
	assert_int_equal(create_by(c, RECEIVE, r.of[0].qp.qpn), 0);
	assert_true(take(c, &r.of[1]));
	fill(hog, n - LEFT);
	assert_int_equal(exhaust(hog, n), LEFT - 2);
	assert_false(take(c, &r.of[2]));
	assert_int_equal(create_by(c, RECEIVE, r.of[2].qp.qpn), -EINVAL);
	assert_int_equal(create_by(c, RECEIVE, r.of[1].qp.qpn), 0);
	assert_int_equal(lab_status("qps"), n);
}

/* ---- the library ---- */

struct maker {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[LEFT + 1];
};

static struct maker *maker(void)
{
	struct maker *m = calloc(1, sizeof(*m));
	struct ibv_context *context = lab_open(1);

	assert_non_null(m);
	lab_undo(free, m);
	m->pd = lab_pd(context);
	m->cq = lab_cq(context, 1, NULL);
	return m;
}

/* Makes up to @most, but keeps those that are there. Returns how many there are then. */
static uint32_t make_qps(struct maker *m, uint32_t from, uint32_t most)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, m->cq, 1, RECEIVE);

	while (from < most && (m->qp[from] = ibv_create_qp(m->pd, &init)))
		from++;
	assert_true(from == most || errno == ENOMEM);
	return from;
}

static void destroy_qps(struct maker *m, uint32_t from, uint32_t to)
{
	while (from < to)
		assert_int_equal(ibv_destroy_qp(m->qp[from++]), 0);
}

CASE_WITH(a_process_that_makes_many_gets_exactly_what_is_left, NULL, at_rest)
{
	struct maker *m = maker();
	struct client *hog = client();
	uint32_t n = all_numbers(), made;

	fill(hog, n - LEFT);
	made = make_qps(m, 0, LEFT + 1);
	assert_int_equal(made, LEFT);
	assert_int_equal(lab_status("qps"), n);
	for (uint32_t i = 0; i < made; i++)
		lab_to_init(m->qp[i], LAB_QKEY);
	destroy_qps(m, 0, made);
}

CASE_WITH(what_it_had_reserved_is_others_and_can_be_had_again, NULL, at_rest)
{
	struct maker *m = maker();
	struct client *hog = client();
	uint32_t n = all_numbers(), qpn[10];

	assert_int_equal(make_qps(m, 0, MANY), MANY);
	for (unsigned i = 0; i < LAB_ARRAY(qpn); i++) {
		const struct control_create_qp req = ud(hog, RECEIVE, 0);

		assert_int_equal(create(hog, &req, &qpn[i]), 0);
	}
	fill(hog, n - LEFT);
	assert_int_equal(exhaust(hog, n), LEFT - MANY - LAB_ARRAY(qpn));
	assert_int_equal(make_qps(m, MANY, MANY + 1), MANY);
	for (unsigned i = 0; i < LAB_ARRAY(qpn); i++)
		assert_int_equal(destroy(hog, qpn[i]), 0);
	assert_int_equal(make_qps(m, MANY, LEFT), MANY + LAB_ARRAY(qpn));
	for (unsigned i = 0; i < MANY + LAB_ARRAY(qpn); i++)
		lab_to_init(m->qp[i], LAB_QKEY);
	destroy_qps(m, 0, MANY + LAB_ARRAY(qpn));
	client_ends(hog);
	lab_await_status("qps", 0);
	assert_int_equal(make_qps(m, 0, LEFT), LEFT);
	destroy_qps(m, 0, LEFT);
}

/* ---- */

static int at_rest(void **state)
{
	int ret = lab_clean_up(state);

	lab_await_status("qps", 0);
	lab_await_status("ring_bytes", 0);
	return ret;
}
