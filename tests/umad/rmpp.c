/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of several segments: whole ones for agents that leave RMPP to the system, single
 * segments for those that do not.
 */
#include "lab.h"

#define RMPP_AT    24
#define RMPP_TYPE  1 /* bytes of its header */
#define RMPP_FLAGS 2
#define DATA       1
#define ACK        2
#define ACTIVE     1
#define BIG        100000
#define SEGMENT    (LAB_MAD - LAB_DATA_AT)

struct pair {
	int client, server;
	int client_agent, server_agent;
	uint16_t client_lid, server_lid;
};

static struct pair open_pair(void)
{
	struct pair p = { .client = lab_open(1),
		          .server = lab_open(2),
		          .client_lid = lab_lid(1),
		          .server_lid = lab_lid(2) };

	p.client_agent = lab_rmpp_agent(p.client, 0);
	p.server_agent = lab_rmpp_agent(p.server, LAB_METHOD(LAB_GET) | LAB_METHOD(LAB_SEND));
	return p;
}

/* A message with its RMPP header. */
static void *message(uint8_t method, uint64_t tid, size_t bytes)
{
	void *umad = lab_mad(method, tid, bytes);
	uint8_t *rmpp = lab_data(umad) + RMPP_AT;

	rmpp[0] = UMAD_RMPP_VERSION;
	rmpp[RMPP_TYPE] = DATA;
	rmpp[RMPP_FLAGS] = ACTIVE;
	return umad;
}

static void expect_message(void *umad, size_t bytes)
{
	void *expected = lab_mad(0, 0, bytes);

	assert_memory_equal(lab_data(umad) + LAB_DATA_AT, lab_data(expected) + LAB_DATA_AT,
	                    bytes - LAB_DATA_AT);
	umad_free(expected);
}

static void send_to_server(const struct pair *p, size_t bytes)
{
	lab_send(p->client, message(LAB_SEND, 1, bytes),
	         &(struct lab_how){
	                 .agent = p->client_agent, .lid = p->server_lid, .bytes = bytes });
}

/* The answer to the request that the server gets next. */
static void answer_with(const struct pair *p, size_t bytes)
{
	void *umad = lab_expect(p->server, p->server_agent, LAB_MAD);
	uint64_t tid = lab_tid(umad);

	umad_free(umad);
	lab_send(p->server, message(LAB_GET | LAB_RESPONSE, tid, bytes),
	         &(struct lab_how){
	                 .agent = p->server_agent, .lid = p->client_lid, .bytes = bytes });
}

static void request(const struct pair *p, int timeout_ms)
{
	static uint32_t tid;

	lab_send(p->client, lab_mad(LAB_GET, ++tid, LAB_MAD),
	         &(struct lab_how){ .agent = p->client_agent,
	                            .lid = p->server_lid,
	                            .timeout_ms = timeout_ms });
}

LAB_CASE(a_long_answer_arrives_whole)
{
	struct pair p = open_pair();
	void *umad;

	request(&p, LAB_SECONDS * 1000);
	answer_with(&p, BIG);
	umad = lab_expect(p.client, p.client_agent, BIG);
	expect_message(umad, BIG);
	assert_int_equal(lab_data(umad)[3], LAB_GET | LAB_RESPONSE);
	umad_free(umad);
}

LAB_CASE(messages_of_all_lengths_arrive_whole)
{
	static const size_t lengths[] = { LAB_DATA_AT,
		                          LAB_DATA_AT + 1,
		                          LAB_MAD - 1,
		                          LAB_MAD,
		                          LAB_MAD + 1,
		                          LAB_DATA_AT + 2 * SEGMENT,
		                          LAB_DATA_AT + 2 * SEGMENT + 1,
		                          LAB_DATA_AT + 65 * SEGMENT,
		                          16384 - 64,
		                          16384 - 63,
		                          LAB_MAX_MAD };
	struct pair p = open_pair();

	for (size_t i = 0; i < LAB_COUNT(lengths); i++) {
		void *umad;

		lab_send(p.client, message(LAB_SEND, i, lengths[i]),
		         &(struct lab_how){ .agent = p.client_agent,
		                            .lid = p.server_lid,
		                            .bytes = lengths[i] });
		umad = lab_expect(p.server, p.server_agent, (int)lengths[i]);
		expect_message(umad, lengths[i]);
		umad_free(umad);
	}
}

LAB_CASE(a_long_request_gets_its_answer)
{
	struct pair p = open_pair();
	void *umad;

	lab_send(p.client, message(LAB_GET, 1, BIG),
	         &(struct lab_how){ .agent = p.client_agent,
	                            .lid = p.server_lid,
	                            .bytes = BIG,
	                            .timeout_ms = LAB_SECONDS * 1000 });
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, BIG));
	umad = lab_expect(p.client, p.client_agent, LAB_MAD);
	umad_free(umad);
}

LAB_CASE(a_long_request_that_is_not_answered_comes_back)
{
	struct pair p = open_pair();
	int agent, bytes;
	void *umad;

	lab_send(p.client, message(LAB_GET, 1, BIG),
	         &(struct lab_how){ .agent = p.client_agent,
	                            .lid = p.server_lid,
	                            .bytes = BIG,
	                            .timeout_ms = 20 });
	umad = lab_receive(p.client, &agent, &bytes);
	assert_int_equal(umad_status(umad), ETIMEDOUT);
	assert_int_equal(bytes, 24);
	umad_free(umad);
}

LAB_CASE(of_the_rmpp_header_only_that_it_is_active_counts)
{
	struct pair p = open_pair();
	void *umad = message(LAB_SEND, 1, BIG);

	lab_data(umad)[RMPP_AT] = lab_data(umad)[RMPP_AT + RMPP_TYPE] = 0; /* as osmtest has it */
	lab_send(p.client, umad,
	         &(struct lab_how){ .agent = p.client_agent, .lid = p.server_lid, .bytes = BIG });
	umad = lab_expect(p.server, p.server_agent, BIG);
	expect_message(umad, BIG);
	umad_free(umad);
}

LAB_CASE(several_messages_at_once_do_not_mix)
{
	enum { MANY = 20 };
	struct pair p = open_pair();
	bool seen[MANY] = { false };

	for (int i = 0; i < MANY; i++)
		lab_send(p.client, message(LAB_SEND, (uint64_t)i, 1000 + (size_t)i),
		         &(struct lab_how){ .agent = p.client_agent,
		                            .lid = p.server_lid,
		                            .bytes = 1000 + (size_t)i });
	for (int i = 0; i < MANY; i++) {
		int agent, bytes;
		void *umad = lab_receive(p.server, &agent, &bytes);
		uint32_t tid = (uint32_t)lab_tid(umad);

		assert_in_range(tid, 0, MANY - 1);
		assert_false(seen[tid]);
		seen[tid] = true;
		assert_int_equal(bytes, 1000 + tid);
		expect_message(umad, (size_t)bytes);
		umad_free(umad);
	}
}

LAB_CASE(thousands_of_long_answers_arrive)
{
	struct pair p = open_pair();

	for (int i = 0; i < 5000; i++) {
		request(&p, LAB_SECONDS * 1000);
		answer_with(&p, 300);
		umad_free(lab_expect(p.client, p.client_agent, 300));
	}
}

LAB_CASE(too_little_room_says_how_much_is_needed)
{
	static const size_t lengths[] = { 1000, BIG };
	struct pair p = open_pair();
	void *umad = umad_alloc(1, umad_size() + BIG);

	for (size_t i = 0; i < LAB_COUNT(lengths); i++) {
		int bytes = LAB_MAD;

		lab_send(p.client, message(LAB_SEND, i, lengths[i]),
		         &(struct lab_how){ .agent = p.client_agent,
		                            .lid = p.server_lid,
		                            .bytes = lengths[i] });
		assert_fails(umad_recv(p.server, umad, &bytes, LAB_SECONDS * 1000), ENOSPC);
		assert_int_equal(bytes, lengths[i]);
		assert_memory_equal(lab_data(umad) + 12, (&(uint32_t){ htobe32((uint32_t)i) }), 4);
		assert_int_equal(umad_recv(p.server, umad, &bytes, 0), p.server_agent);
		assert_int_equal(bytes, lengths[i]);
		expect_message(umad, lengths[i]);
	}
	umad_free(umad);
}

LAB_CASE(a_message_to_nobody_comes_back)
{
	struct pair p = open_pair();
	int agent, bytes;
	void *umad;

	/* two seconds for an ACK, and none comes */
	p.server_lid = LAB_NOBODY;
	send_to_server(&p, BIG);
	umad = lab_receive(p.client, &agent, &bytes);
	assert_int_equal(umad_status(umad), ETIMEDOUT);
	umad_free(umad);
}

LAB_CASE(an_agent_with_an_rmpp_of_its_own_gets_segments)
{
	const struct umad_reg_attr attr = { .mgmt_class = LAB_CLASS,
		                            .mgmt_class_version = 1,
		                            .flags = UMAD_USER_RMPP,
		                            .method_mask = { LAB_METHOD(LAB_SEND), 0 },
		                            .oui = LAB_OUI,
		                            .rmpp_version = UMAD_RMPP_VERSION };
	int client = lab_open(1), server = lab_open(2), err, agent;
	void *umad;

	agent = lab_register(server, &attr, &err);
	assert_int_equal(err, 0);
	lab_send(client, message(LAB_SEND, 1, 1000),
	         &(struct lab_how){
	                 .agent = lab_rmpp_agent(client, 0), .lid = lab_lid(2), .bytes = 1000 });
	umad = lab_expect(server, agent, LAB_MAD);
	assert_int_equal(lab_data(umad)[RMPP_AT + RMPP_TYPE], DATA);
	assert_int_equal(lab_data(umad)[RMPP_AT + RMPP_FLAGS] & 7, ACTIVE | 2);
	/* its ACK is its own affair: the window of the whole message */
	lab_data(umad)[RMPP_AT + RMPP_TYPE] = ACK;
	lab_data(umad)[RMPP_AT + RMPP_FLAGS] = ACTIVE;
	memcpy(lab_data(umad) + RMPP_AT + 4, &(uint32_t){ htobe32(1) }, 4);
	memcpy(lab_data(umad) + RMPP_AT + 8, &(uint32_t){ htobe32(64) }, 4);
	lab_respond(server, agent, umad);
	for (int i = 2; i <= 5; i++) {
		umad = lab_expect(server, agent, LAB_MAD);
		assert_int_equal(lab_data(umad)[RMPP_AT + 7], i);
		umad_free(umad);
	}
}

LAB_CASE(a_long_mad_without_rmpp_is_refused)
{
	struct pair p = open_pair();
	void *umad = lab_mad(LAB_SEND, 1, 1000);

	umad_set_addr(umad, p.server_lid, 1, 0, (int)UMAD_QKEY);
	errno = 0;
	assert_int_equal(umad_send(p.client, p.client_agent, umad, 1000, 0, 0), -EIO);
	assert_int_equal(errno, EINVAL);
	umad_free(umad);
}

LAB_CASE(a_long_mad_is_an_error_where_files_are_limited)
{
	struct pair p = open_pair();
	void *umad = message(LAB_SEND, 1, BIG);
	struct rlimit before, none;

	umad_set_addr(umad, p.server_lid, 1, 0, (int)UMAD_QKEY);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	errno = 0;
	assert_int_equal(umad_send(p.client, p.client_agent, umad, BIG, 0, 0), -EIO);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	umad_free(umad);
	send_to_server(&p, BIG);
	umad_free(lab_expect(p.server, p.server_agent, BIG));
}

LAB_CASE(a_single_mad_needs_no_rmpp)
{
	struct pair p = open_pair();

	request(&p, LAB_SECONDS * 1000);
	lab_respond(p.server, p.server_agent, lab_expect(p.server, p.server_agent, LAB_MAD));
	umad_free(lab_expect(p.client, p.client_agent, LAB_MAD));
}
