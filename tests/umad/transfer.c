/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs between hosts: which agent gets which, answers and their absence, buffers, descriptors.
 */
#include "lab.h"

#define ALL_METHODS (LAB_METHOD(LAB_GET) | LAB_METHOD(LAB_SET) | LAB_METHOD(LAB_SEND))

/* Two hosts with an agent each: the client's for answers, the server's for requests. */
struct pair {
	int client, server; /* descriptors */
	int client_agent, server_agent;
	uint16_t server_lid;
};

static struct pair open_pair(void)
{
	struct pair p = { .client = lab_open(1), .server = lab_open(2), .server_lid = lab_lid(2) };

	p.client_agent = lab_agent(p.client, 0);
	p.server_agent = lab_agent(p.server, ALL_METHODS);
	return p;
}

static void request(const struct pair *p, uint64_t tid, int timeout_ms, int retries)
{
	lab_send(p->client, lab_mad(LAB_GET, tid, LAB_MAD),
	         &(struct lab_how){ .agent = p->client_agent,
	                            .lid = p->server_lid,
	                            .timeout_ms = timeout_ms,
	                            .retries = retries });
}

/* Whatever was sent before has arrived, or never will: one more does, and is the next. */
static void expect_nothing_more(const struct pair *p, int agent, uint64_t tid)
{
	void *umad;

	request(p, tid, 0, 0);
	umad = lab_expect(p->server, agent, LAB_MAD);
	assert_int_equal(lab_tid(umad) & UINT32_MAX, tid);
	umad_free(umad);
}

/* ---- requests and answers ---- */

LAB_CASE(a_mad_arrives_as_it_was_sent)
{
	struct pair p = open_pair();
	void *sent = lab_mad(LAB_GET, 5, LAB_MAD), *got;

	request(&p, 5, 0, 0);
	got = lab_expect(p.server, p.server_agent, LAB_MAD);
	assert_memory_equal(lab_data(got) + 16, lab_data(sent) + 16, LAB_MAD - 16);
	assert_memory_equal(lab_data(got), lab_data(sent), 8);
	assert_int_equal(lab_tid(got) & UINT32_MAX, 5);
	umad_free(sent);
	umad_free(got);
}

LAB_CASE(a_mad_brings_its_senders_address)
{
	struct pair p = open_pair();
	void *umad = lab_mad(LAB_GET, 1, LAB_MAD);
	ib_mad_addr_t *addr;

	umad_set_addr(umad, p.server_lid, 1, 0x13, (int)UMAD_QKEY);
	assert_int_equal(umad_send(p.client, p.client_agent, umad, LAB_MAD, 0, 0), 0);
	umad_free(umad);
	umad = lab_expect(p.server, p.server_agent, LAB_MAD);
	addr = umad_get_mad_addr(umad);
	assert_int_equal(addr->sl, 3); /* a packet has four bits for it */
	assert_int_equal(be16toh(addr->lid), lab_lid(1));
	assert_int_equal(be32toh(addr->qpn), 1);
	assert_int_equal(addr->grh_present, 0);
	assert_int_equal(umad_get_pkey(umad), 0);
	umad_free(umad);
}

LAB_CASE(a_grh_goes_along)
{
	struct pair p = open_pair();
	void *umad = lab_mad(LAB_GET, 1, LAB_MAD);
	ib_mad_addr_t grh = { .hop_limit = 1 };
	umad_port_t from, to;

	assert_int_equal(umad_get_port(lab_ca(1), 1, &from), 0);
	assert_int_equal(umad_get_port(lab_ca(2), 1, &to), 0);
	memcpy(grh.gid, &to.gid_prefix, 8);
	memcpy(grh.gid + 8, &to.port_guid, 8);
	umad_set_grh(umad, &grh);
	lab_send(p.client, umad, &(struct lab_how){ p.client_agent, p.server_lid, 0, 0, 0 });
	umad = lab_expect(p.server, p.server_agent, LAB_MAD);
	assert_int_equal(umad_get_mad_addr(umad)->grh_present, 1);
	assert_memory_equal(umad_get_mad_addr(umad)->gid, &from.gid_prefix, 8);
	assert_memory_equal(umad_get_mad_addr(umad)->gid + 8, &from.port_guid, 8);
	umad_free(umad);
	umad_release_port(&from);
	umad_release_port(&to);
}

LAB_CASE(an_answer_finds_back)
{
	struct pair p = open_pair();
	void *umad;

	request(&p, 77, LAB_SECONDS * 1000, 0);
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, LAB_MAD));
	umad = lab_expect(p.client, p.client_agent, LAB_MAD);
	assert_int_equal(lab_data(umad)[3], LAB_GET | LAB_RESPONSE);
	assert_int_equal(lab_tid(umad) & UINT32_MAX, 77);
	umad_free(umad);
}

LAB_CASE(answers_go_to_the_agent_that_asked)
{
	struct pair p = open_pair();
	int second = lab_agent(p.client, 0);
	void *umad;

	request(&p, 1, LAB_SECONDS * 1000, 0);
	p.client_agent = second;
	request(&p, 1, LAB_SECONDS * 1000, 0);
	umad = lab_expect(p.server, p.server_agent, LAB_MAD);
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, LAB_MAD));
	umad_free(lab_expect(p.client, second, LAB_MAD));
	lab_respond(p.server, p.server_agent, umad);
	umad_free(lab_expect(p.client, 0, LAB_MAD));
}

LAB_CASE(a_second_answer_is_dropped)
{
	struct pair p = open_pair();
	void *got, *again;

	request(&p, 1, LAB_SECONDS * 1000, 0);
	got = lab_expect(p.server, p.server_agent, LAB_MAD);
	again = lab_mad(LAB_GET | LAB_RESPONSE, lab_tid(got), LAB_MAD);
	lab_respond(p.server, p.server_agent, got);
	lab_send(p.server, again, &(struct lab_how){ p.server_agent, lab_lid(1), 0, 0, 0 });
	umad_free(lab_expect(p.client, p.client_agent, LAB_MAD));
	request(&p, 2, LAB_SECONDS * 1000, 0);
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, LAB_MAD));
	got = lab_expect(p.client, p.client_agent, LAB_MAD);
	assert_int_equal(lab_tid(got) & UINT32_MAX, 2);
	umad_free(got);
}

LAB_CASE(a_request_without_timeout_gets_no_answer)
{
	struct pair p = open_pair();
	void *got;

	request(&p, 1, 0, 0);
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, LAB_MAD));
	request(&p, 2, LAB_SECONDS * 1000, 0);
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, LAB_MAD));
	got = lab_expect(p.client, p.client_agent, LAB_MAD);
	assert_int_equal(lab_tid(got) & UINT32_MAX, 2);
	umad_free(got);
}

LAB_CASE(the_upper_half_of_a_transaction_id_is_the_agents)
{
	struct pair p = open_pair();
	uint64_t first, second;
	void *umad;

	request(&p, 0x1234567800000001, 0, 0);
	umad = lab_expect(p.server, p.server_agent, LAB_MAD);
	first = lab_tid(umad);
	umad_free(umad);
	p.client_agent = lab_agent(p.client, 0);
	request(&p, 0x1234567800000001, 0, 0);
	umad = lab_expect(p.server, p.server_agent, LAB_MAD);
	second = lab_tid(umad);
	umad_free(umad);
	assert_int_equal(first & UINT32_MAX, 1);
	assert_int_equal(second & UINT32_MAX, 1);
	assert_true(first >> 32 != second >> 32);
}

LAB_CASE(a_request_that_is_under_way_already_comes_back)
{
	struct pair p = open_pair();
	int agent, bytes;
	void *umad;

	request(&p, 1, LAB_SECONDS * 1000, 0);
	request(&p, 1, LAB_SECONDS * 1000, 0);
	umad = lab_receive(p.client, &agent, &bytes);
	assert_int_equal(umad_status(umad), EINVAL);
	umad_free(umad);
	umad_free(lab_expect(p.server, p.server_agent, LAB_MAD));
	expect_nothing_more(&p, p.server_agent, 9);
}

/* ---- no answer ---- */

LAB_CASE(a_request_that_is_not_answered_comes_back)
{
	struct pair p = open_pair();
	int agent, bytes;
	void *umad;

	request(&p, 3, 20, 0);
	umad = lab_receive(p.client, &agent, &bytes);
	assert_int_equal(umad_status(umad), ETIMEDOUT);
	assert_int_equal(agent, p.client_agent);
	assert_int_equal(bytes, 24);
	assert_int_equal(lab_data(umad)[3], LAB_GET);
	assert_int_equal(lab_tid(umad) & UINT32_MAX, 3);
	umad_free(umad);
}

LAB_CASE(a_request_is_sent_as_often_as_is_said)
{
	struct pair p = open_pair();
	int agent, bytes;
	void *umad;

	request(&p, 3, 20, 2);
	umad = lab_receive(p.client, &agent, &bytes);
	assert_int_equal(umad_status(umad), ETIMEDOUT);
	umad_free(umad);
	for (int i = 0; i < 3; i++) {
		umad = lab_expect(p.server, p.server_agent, LAB_MAD);
		assert_int_equal(lab_tid(umad) & UINT32_MAX, 3);
		umad_free(umad);
	}
	expect_nothing_more(&p, p.server_agent, 9);
}

LAB_CASE(an_answer_to_the_second_try_ends_it)
{
	struct pair p = open_pair();

	request(&p, 3, 50, 1000);
	umad_free(lab_expect(p.server, p.server_agent, LAB_MAD));
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, LAB_MAD));
	umad_free(lab_expect(p.client, p.client_agent, LAB_MAD));
}

LAB_CASE(a_lid_that_nobody_has_does_not_answer)
{
	struct pair p = open_pair();
	int agent, bytes;
	void *umad;

	p.server_lid = LAB_NOBODY;
	request(&p, 3, 1, 1);
	umad = lab_receive(p.client, &agent, &bytes);
	assert_int_equal(umad_status(umad), ETIMEDOUT);
	umad_free(umad);
}

LAB_CASE(many_requests_come_back_each_in_its_time)
{
	enum { MANY = 500 };
	struct pair p = open_pair();
	bool seen[MANY] = { false };
	int agent, bytes;

	p.server_lid = LAB_NOBODY;
	for (int i = 0; i < MANY; i++)
		request(&p, (uint64_t)i, 1 + i % 50, i % 3);
	for (int i = 0; i < MANY; i++) {
		void *umad = lab_receive(p.client, &agent, &bytes);
		uint32_t tid = (uint32_t)lab_tid(umad);

		assert_int_equal(umad_status(umad), ETIMEDOUT);
		assert_in_range(tid, 0, MANY - 1);
		assert_false(seen[tid]);
		seen[tid] = true;
		umad_free(umad);
	}
}

LAB_CASE(the_requests_of_an_agent_that_goes_do_not_come_back)
{
	struct pair p = open_pair();
	int second = lab_agent(p.client, 0), agent, bytes;
	void *umad;

	p.server_lid = LAB_NOBODY;
	request(&p, 1, 100, 0);
	assert_int_equal(umad_unregister(p.client, p.client_agent), 0);
	p.client_agent = second;
	request(&p, 2, 200, 0);
	umad = lab_receive(p.client, &agent, &bytes);
	if ((lab_tid(umad) & UINT32_MAX) == 1) { /* its time was over before the agent's */
		umad_free(umad);
		umad = lab_receive(p.client, &agent, &bytes);
	}
	assert_int_equal(lab_tid(umad) & UINT32_MAX, 2);
	umad_free(umad);
	assert_int_equal(umad_poll(p.client, 0), -ETIMEDOUT);
}

LAB_CASE(what_was_sent_before_the_agent_goes_arrives)
{
	struct pair p = open_pair();

	request(&p, 1, 0, 0);
	assert_int_equal(umad_unregister(p.client, p.client_agent), 0);
	umad_free(lab_expect(p.server, p.server_agent, LAB_MAD));
}

/* However many: the daemon receives up to eight at a time, and the end behind them. */
LAB_CASE(what_was_sent_before_the_port_is_closed_arrives)
{
	struct pair p = open_pair();

	for (uint32_t n = 1; n <= 24; n++) {
		int fd = umad_open_port(lab_ca(3), 1), agent = lab_agent(fd, 0);

		for (uint32_t i = 0; i < n; i++)
			lab_send(fd, lab_mad(LAB_SEND, i, LAB_MAD),
			         &(struct lab_how){ agent, p.server_lid, 0, 0, 0 });
		umad_close_port(fd);
		for (uint32_t i = 0; i < n; i++) {
			void *umad = lab_expect(p.server, p.server_agent, LAB_MAD);

			assert_int_equal(lab_tid(umad) & UINT32_MAX, i);
			umad_free(umad);
		}
	}
	assert_int_equal(umad_poll(p.server, 0), -ETIMEDOUT);
}

/* ---- who gets a request ---- */

LAB_CASE(methods_go_to_their_agents)
{
	struct pair p = open_pair();
	int traps = lab_agent(p.server, LAB_METHOD(LAB_TRAP));

	lab_send(p.client, lab_mad(LAB_TRAP, 1, LAB_MAD),
	         &(struct lab_how){ p.client_agent, p.server_lid, 0, 0, 0 });
	umad_free(lab_expect(p.server, traps, LAB_MAD));
	request(&p, 2, 0, 0);
	umad_free(lab_expect(p.server, p.server_agent, LAB_MAD));
}

LAB_CASE(a_port_gets_what_its_agents_are_registered_for)
{
	struct pair p = open_pair();
	int other = lab_open(2), agent = lab_agent(other, LAB_METHOD(LAB_TRAP));

	lab_send(p.client, lab_mad(LAB_TRAP, 1, LAB_MAD),
	         &(struct lab_how){ p.client_agent, p.server_lid, 0, 0, 0 });
	umad_free(lab_expect(other, agent, LAB_MAD));
	expect_nothing_more(&p, p.server_agent, 2);
}

LAB_CASE(what_nobody_registered_for_is_dropped)
{
	struct pair p = open_pair();
	static const struct {
		int at;
		uint8_t value;
	} change[] = { { 0, 2 }, { 1, LAB_CLASS + 1 }, { 2, 2 }, { 3, LAB_TRAP }, { 39, 1 } };

	for (size_t i = 0; i < LAB_COUNT(change); i++) {
		void *umad = lab_mad(LAB_GET, 1, LAB_MAD);

		lab_data(umad)[change[i].at] = change[i].value;
		lab_send(p.client, umad,
		         &(struct lab_how){ p.client_agent, p.server_lid, 0, 0, 0 });
		expect_nothing_more(&p, p.server_agent, 2 + i);
	}
}

LAB_CASE(what_is_for_another_queue_pair_is_dropped)
{
	struct pair p = open_pair();
	static const int qpn[] = { 0, 2, 0xFFFFFF };

	for (size_t i = 0; i < LAB_COUNT(qpn); i++) {
		void *umad = lab_mad(LAB_GET, 1, LAB_MAD);

		umad_set_addr(umad, p.server_lid, qpn[i], 0, (int)UMAD_QKEY);
		assert_int_equal(umad_send(p.client, p.client_agent, umad, LAB_MAD, 0, 0), 0);
		umad_free(umad);
		expect_nothing_more(&p, p.server_agent, 2 + i);
	}
}

LAB_CASE(a_host_reaches_itself)
{
	struct pair p = open_pair();

	lab_send(p.server, lab_mad(LAB_GET, 1, LAB_MAD),
	         &(struct lab_how){ p.server_agent, p.server_lid, 0, LAB_SECONDS * 1000, 0 });
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, LAB_MAD));
	umad_free(lab_expect(p.server, p.server_agent, LAB_MAD));
}

/* ---- subnet management packets ---- */

#define GET_NODE_INFO 0x0011

static void *directed(const uint8_t *path, uint8_t hops)
{
	void *umad = lab_mad(LAB_GET, 1, LAB_MAD);
	uint8_t *d = lab_data(umad);

	memset(d + 4, 0, 4);
	memset(d + 24, 0, LAB_MAD - 24);
	d[1] = UMAD_CLASS_SUBN_DIRECTED_ROUTE;
	d[7] = hops;
	d[17] = GET_NODE_INFO;
	d[32] = d[33] = d[34] = d[35] = 0xFF;
	memcpy(d + 128, path, hops + 1u);
	umad_set_addr(umad, 0xFFFF, 0, 0, 0);
	return umad;
}

static int smi_agent(int fd)
{
	const struct umad_reg_attr attr = { .mgmt_class = UMAD_CLASS_SUBN_DIRECTED_ROUTE,
		                            .mgmt_class_version = 1 };
	int err, agent = lab_register(fd, &attr, &err);

	assert_int_equal(err, 0);
	return agent;
}

static uint8_t node_type_at(const uint8_t *path, uint8_t hops)
{
	int fd = lab_open(1), agent = smi_agent(fd);
	void *umad = directed(path, hops);
	uint8_t type;

	assert_int_equal(umad_send(fd, agent, umad, LAB_MAD, LAB_SECONDS * 1000, 0), 0);
	umad_free(umad);
	umad = lab_expect(fd, agent, LAB_MAD);
	type = lab_data(umad)[64 + 2];
	umad_free(umad);
	return type;
}

LAB_CASE(no_hops_lead_to_the_own_port)
{
	assert_int_equal(node_type_at((const uint8_t[]){ 0 }, 0), 1);
}

LAB_CASE(a_hop_leads_to_the_switch)
{
	assert_int_equal(node_type_at((const uint8_t[]){ 0, 1 }, 1), 2);
}

LAB_CASE(two_hops_lead_to_another_host)
{
	assert_int_equal(node_type_at((const uint8_t[]){ 0, 1, 2 }, 2), 1);
}

LAB_CASE(a_route_that_begins_elsewhere_is_refused)
{
	int fd = lab_open(1), agent = smi_agent(fd);
	void *umad = directed((const uint8_t[]){ 0, 2 }, 1);

	errno = 0;
	assert_int_equal(umad_send(fd, agent, umad, LAB_MAD, 10, 0), -EIO);
	assert_int_equal(errno, EINVAL);
	umad_free(umad);
}

LAB_CASE(a_route_to_nowhere_times_out)
{
	int fd = lab_open(1), agent = smi_agent(fd), got, bytes;
	void *umad = directed((const uint8_t[]){ 0, 1, 250 }, 2);

	assert_int_equal(umad_send(fd, agent, umad, LAB_MAD, 1, 0), 0);
	umad_free(umad);
	umad = lab_receive(fd, &got, &bytes);
	assert_int_equal(umad_status(umad), ETIMEDOUT);
	umad_free(umad);
}

/* ---- buffers and descriptors ---- */

LAB_CASE(too_little_room_leaves_the_mad_where_it_is)
{
	struct pair p = open_pair();
	void *umad = umad_alloc(1, umad_size() + LAB_MAD);
	int bytes = LAB_MAD - 1;

	request(&p, 1, 0, 0);
	assert_fails(umad_recv(p.server, umad, &bytes, LAB_SECONDS * 1000), EINVAL);
	umad_free(umad);
	umad_free(lab_expect(p.server, p.server_agent, LAB_MAD));
}

LAB_CASE(nothing_there_is_not_waited_for)
{
	struct pair p = open_pair();
	void *umad = umad_alloc(1, umad_size() + LAB_MAD);
	int bytes = LAB_MAD;

	assert_fails(umad_recv(p.server, umad, &bytes, 0), EWOULDBLOCK);
	assert_fails(umad_recv(p.server, umad, &bytes, 1), ETIMEDOUT);
	assert_fails(umad_recv(p.server, NULL, &bytes, 0), EINVAL);
	assert_fails(umad_recv(p.server, umad, NULL, 0), EINVAL);
	umad_free(umad);
}

LAB_CASE(poll_tells_of_a_mad)
{
	struct pair p = open_pair();
	struct pollfd pfd = { .fd = umad_get_fd(p.server), .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, 0), 0);
	request(&p, 1, 0, 0);
	assert_int_equal(poll(&pfd, 1, LAB_SECONDS * 1000), 1);
	assert_int_equal(umad_poll(p.server, 0), 0);
	umad_free(lab_expect(p.server, p.server_agent, LAB_MAD));
	assert_int_equal(poll(&pfd, 1, 0), 0);
}

LAB_CASE(read_and_write_do_as_on_the_device)
{
	struct pair p = open_pair();
	void *umad = lab_mad(LAB_GET, 1, LAB_MAD);
	struct pollfd pfd = { .fd = p.server, .events = POLLIN };
	struct ib_user_mad *mad = umad;

	umad_set_addr(umad, p.server_lid, 1, 0, (int)UMAD_QKEY);
	mad->agent_id = (uint32_t)p.client_agent;
	assert_int_equal(write(p.client, umad, umad_size() + LAB_MAD), umad_size() + LAB_MAD);
	memset(umad, 0, umad_size() + LAB_MAD);
	assert_int_equal(poll(&pfd, 1, LAB_SECONDS * 1000), 1);
	assert_int_equal(read(p.server, umad, umad_size() + LAB_MAD), umad_size() + LAB_MAD);
	assert_int_equal(mad->agent_id, p.server_agent);
	assert_int_equal(mad->length, umad_size() + LAB_MAD);
	assert_int_equal(read(p.server, umad, umad_size() + LAB_MAD), -1);
	assert_int_equal(errno, EAGAIN);
	umad_free(umad);
}

LAB_CASE(bad_sends_are_refused)
{
	struct pair p = open_pair();
	void *umad = lab_mad(LAB_GET, 1, 1024);

	umad_set_addr(umad, p.server_lid, 1, 0, (int)UMAD_QKEY);
#define assert_send_fails(fd, agent, length, err)                                 \
	do {                                                                      \
		errno = 0;                                                        \
		assert_int_equal(umad_send(fd, agent, umad, length, 0, 0), -EIO); \
		assert_int_equal(errno, err);                                     \
	} while (0)
	assert_send_fails(p.client, p.client_agent, 35, EINVAL);
	assert_send_fails(p.client, p.client_agent, -1, EINVAL);
	assert_send_fails(p.client, p.client_agent, 257, EINVAL);
	assert_send_fails(p.client, p.client_agent + 1, LAB_MAD, EIO);
	assert_send_fails(p.client, UMAD_CA_MAX_AGENTS, LAB_MAD, EINVAL);
	assert_send_fails(p.client, -1, LAB_MAD, EINVAL);
	assert_send_fails(-1, p.client_agent, LAB_MAD, EBADF);
	umad_free(umad);
	expect_nothing_more(&p, p.server_agent, 2);
}

LAB_CASE(a_short_mad_arrives_filled_up)
{
	struct pair p = open_pair();
	void *umad;

	lab_send(p.client, lab_mad(LAB_GET, 1, 64),
	         &(struct lab_how){ p.client_agent, p.server_lid, 64, 0, 0 });
	umad = lab_expect(p.server, p.server_agent, LAB_MAD);
	for (int i = 64; i < LAB_MAD; i++)
		assert_int_equal(lab_data(umad)[i], 0);
	umad_free(umad);
}

LAB_CASE(a_child_uses_the_port_that_it_inherits)
{
	struct pair p = open_pair();
	pid_t pid = fork();
	int status;

	if (!pid) {
		request(&p, 4, 0, 0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	umad_free(lab_expect(p.server, p.server_agent, LAB_MAD));
}

LAB_CASE(a_full_queue_keeps_order)
{
	enum { MANY = 5000 };
	struct pair p = open_pair();

	for (int i = 0; i < MANY; i++)
		request(&p, (uint64_t)i, 0, 0);
	for (int i = 0; i < MANY; i++) {
		void *umad = lab_expect(p.server, p.server_agent, LAB_MAD);

		assert_int_equal(lab_tid(umad) & UINT32_MAX, i);
		umad_free(umad);
	}
}
