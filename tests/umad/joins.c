/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_cm asks the subnet administrator by MADs, whatever program the administrator is: here it is
 * the test, with an agent at the subnet manager's port, on host 1, that takes the requests of host
 * 2 before the embedded one sees them.
 */
#include "lab.h"

#include <infiniband/umad_sa_mcm.h>
#include <rdma/rdma_cma.h>

#include "deadline.h"

#define SA_GET       0x01
#define SA_SET       0x02
#define SA_DELETE    0x15
#define ATTR_PATH    0x35
#define ATTR_MEMBER  0x38
#define NO_RESOURCES 0x0100
#define BUSY         0x0001
#define MLID         0xC123
#define GROUP        "239.7.7.7"
#define PATH_DLID_AT 40
#define TRIES        10

struct sa {
	int fd, agent;
};

struct joiner {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

static struct sa sa_open(void)
{
	struct umad_reg_attr attr = { .mgmt_class = UMAD_CLASS_SUBN_ADM,
		                      .mgmt_class_version = UMAD_SA_CLASS_VERSION,
		                      .method_mask = { LAB_METHOD(SA_GET) | LAB_METHOD(SA_SET) |
		                                       LAB_METHOD(SA_DELETE) } };
	struct sa sa = { .fd = lab_open(1) };
	int err;

	sa.agent = lab_register(sa.fd, &attr, &err);
	assert_int_equal(err, 0);
	return sa;
}

/* The next request, which is that. */
static void *sa_expect(const struct sa *sa, uint8_t method, uint16_t attribute)
{
	void *umad = lab_expect(sa->fd, sa->agent, LAB_MAD);
	const struct umad_sa_packet *p = (void *)lab_data(umad);

	assert_int_equal(p->mad_hdr.method, method);
	assert_int_equal(be16toh(p->mad_hdr.attr_id), attribute);
	assert_int_equal(be16toh(umad_get_mad_addr(umad)->lid), lab_lid(2));
	assert_int_equal(be32toh(umad_get_mad_addr(umad)->qpn), 1);
	return umad;
}

static struct umad_sa_mcmember_record *member(void *umad)
{
	return (void *)((struct umad_sa_packet *)lab_data(umad))->data;
}

static void sa_answer(const struct sa *sa, void *umad, uint16_t status)
{
	struct umad_sa_packet *p = (void *)lab_data(umad);

	p->mad_hdr.status = htobe16(status);
	if (p->mad_hdr.method == SA_SET)
		p->mad_hdr.method = SA_GET; /* they are answered alike */
	lab_respond(sa->fd, sa->agent, umad);
}

/* Lets the port in. */
static void sa_let_in(const struct sa *sa)
{
	void *umad = sa_expect(sa, SA_SET, ATTR_MEMBER);

	member(umad)->mlid = htobe16(MLID);
	sa_answer(sa, umad, 0);
}

/* ---- host 2 ---- */

static struct joiner joiner_open(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct joiner j = { .channel = rdma_create_event_channel() };

	assert_non_null(j.channel);
	assert_int_equal(rdma_create_id(j.channel, &j.id, NULL, RDMA_PS_UDP), 0);
	inet_pton(AF_INET, "10.0.0.2", &addr.sin_addr);
	assert_int_equal(rdma_bind_addr(j.id, (struct sockaddr *)&addr), 0);
	return j;
}

static void joiner_close(struct joiner *j)
{
	assert_int_equal(rdma_destroy_id(j->id), 0);
	rdma_destroy_event_channel(j->channel);
}

static struct sockaddr_in group_address(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	inet_pton(AF_INET, GROUP, &addr.sin_addr);
	return addr;
}

static void join(struct joiner *j)
{
	struct sockaddr_in addr = group_address();

	assert_int_equal(rdma_join_multicast(j->id, (struct sockaddr *)&addr, NULL), 0);
}

static void leave(struct joiner *j)
{
	struct sockaddr_in addr = group_address();

	assert_int_equal(rdma_leave_multicast(j->id, (struct sockaddr *)&addr), 0);
}

static void assert_no_event(const struct joiner *j)
{
	struct pollfd p = { .fd = j->channel->fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 0), 0);
}

/* The next event; the MLID of a join. */
static uint16_t expect_event(struct joiner *j, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e;
	uint16_t dlid;

	DEADLINE_AWAIT(j->channel->fd, rdma_event_str(type));
	assert_int_equal(rdma_get_cm_event(j->channel, &e), 0);
	assert_string_equal(rdma_event_str(e->event), rdma_event_str(type));
	assert_int_equal(e->status, status);
	dlid = e->param.ud.ah_attr.dlid;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	return dlid;
}

/* ---- joins ---- */

LAB_CASE(a_join_is_a_set_and_a_leave_is_a_delete)
{
	struct sa sa = sa_open();
	struct joiner j = joiner_open();
	char text[INET6_ADDRSTRLEN];
	umad_port_t port;
	void *umad;

	assert_int_equal(umad_get_port(lab_ca(2), 1, &port), 0);
	join(&j);
	umad = sa_expect(&sa, SA_SET, ATTR_MEMBER);
	inet_ntop(AF_INET6, member(umad)->mgid, text, sizeof(text));
	assert_string_equal(text, "ff12:4001:ffff::f07:707");
	assert_memory_equal(member(umad)->portgid, &port.gid_prefix, 8);
	assert_memory_equal(member(umad)->portgid + 8, &port.port_guid, 8);
	assert_int_equal(member(umad)->scope_state & 0xF, UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER);
	assert_no_event(&j);
	member(umad)->mlid = htobe16(MLID);
	sa_answer(&sa, umad, 0);
	assert_int_equal(expect_event(&j, RDMA_CM_EVENT_MULTICAST_JOIN, 0), MLID);
	leave(&j);
	umad = sa_expect(&sa, SA_DELETE, ATTR_MEMBER);
	assert_int_equal(member(umad)->scope_state & 0xF, UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER);
	sa_answer(&sa, umad, 0);
	joiner_close(&j);
	umad_release_port(&port);
}

LAB_CASE(what_the_sa_refuses_is_an_event)
{
	struct sa sa = sa_open();
	struct joiner j = joiner_open();

	join(&j);
	sa_answer(&sa, sa_expect(&sa, SA_SET, ATTR_MEMBER), NO_RESOURCES);
	expect_event(&j, RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL);
	joiner_close(&j);
}

LAB_CASE(a_busy_sa_is_asked_again)
{
	struct sa sa = sa_open();
	struct joiner j = joiner_open();

	join(&j);
	sa_answer(&sa, sa_expect(&sa, SA_SET, ATTR_MEMBER), BUSY);
	sa_let_in(&sa);
	assert_int_equal(expect_event(&j, RDMA_CM_EVENT_MULTICAST_JOIN, 0), MLID);
	joiner_close(&j);
	sa_answer(&sa, sa_expect(&sa, SA_DELETE, ATTR_MEMBER), 0);
}

LAB_CASE(an_sa_that_does_not_answer_is_an_event)
{
	struct sa sa = sa_open();
	struct joiner j = joiner_open();

	join(&j);
	for (int i = 0; i < TRIES; i++)
		umad_free(sa_expect(&sa, SA_SET, ATTR_MEMBER));
	expect_event(&j, RDMA_CM_EVENT_MULTICAST_ERROR, -ETIMEDOUT);
	/* it may have let the port in, and only its answer was lost */
	sa_answer(&sa, sa_expect(&sa, SA_DELETE, ATTR_MEMBER), 0);
	joiner_close(&j);
}

LAB_CASE(who_leaves_before_the_answer_is_taken_out_after_it)
{
	struct sa sa = sa_open();
	struct joiner j = joiner_open();
	void *umad;

	join(&j);
	umad = sa_expect(&sa, SA_SET, ATTR_MEMBER);
	leave(&j);
	sa_answer(&sa, umad, 0);
	sa_answer(&sa, sa_expect(&sa, SA_DELETE, ATTR_MEMBER), 0);
	assert_no_event(&j);
	joiner_close(&j);
}

LAB_CASE(a_process_that_is_killed_is_taken_out)
{
	struct sa sa = sa_open();
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		struct joiner j = joiner_open();
		struct rdma_cm_event *e;

		join(&j);
		for (;;)
			rdma_get_cm_event(j.channel, &e);
	}
	sa_let_in(&sa);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	sa_answer(&sa, sa_expect(&sa, SA_DELETE, ATTR_MEMBER), 0);
}

LAB_CASE(the_embedded_sa_serves_when_nobody_else_does)
{
	struct joiner j = joiner_open();

	join(&j);
	assert_in_range(expect_event(&j, RDMA_CM_EVENT_MULTICAST_JOIN, 0), 0xC000, 0xFFFE);
	joiner_close(&j);
}

/* ---- routes ---- */

static void resolve_route(struct joiner *j, int timeout_ms)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(7174) };

	inet_pton(AF_INET, "10.0.0.3", &addr.sin_addr);
	assert_int_equal(rdma_resolve_addr(j->id, NULL, (struct sockaddr *)&addr, 1000), 0);
	expect_event(j, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(j->id, timeout_ms), 0);
}

LAB_CASE(a_route_is_the_path_that_the_sa_gives)
{
	struct sa sa = sa_open();
	struct joiner j = joiner_open();
	struct umad_sa_packet *p;
	void *umad;

	resolve_route(&j, 1000);
	umad = sa_expect(&sa, SA_GET, ATTR_PATH);
	p = (void *)lab_data(umad);
	memcpy(p->data + PATH_DLID_AT, &(uint16_t){ htobe16(77) }, 2);
	sa_answer(&sa, umad, 0);
	expect_event(&j, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(be16toh(j.id->route.path_rec->dlid), 77);
	joiner_close(&j);
}

LAB_CASE(a_route_that_the_sa_does_not_know_is_an_error)
{
	struct sa sa = sa_open();
	struct joiner j = joiner_open();

	resolve_route(&j, 1000);
	sa_answer(&sa, sa_expect(&sa, SA_GET, ATTR_PATH), NO_RESOURCES);
	expect_event(&j, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	joiner_close(&j);
}

LAB_CASE(a_route_is_waited_for_as_long_as_the_program_says)
{
	struct sa sa = sa_open();
	struct joiner j = joiner_open();

	resolve_route(&j, 50);
	for (int i = 0; i < TRIES; i++)
		umad_free(sa_expect(&sa, SA_GET, ATTR_PATH));
	expect_event(&j, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	joiner_close(&j);
}
