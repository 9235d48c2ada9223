/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet administrator's work for programs that talk to it themselves: requests longer than a
 * MAD, and reports to subscribers.
 * Nothing leaks.
 */
#include <infiniband/umad_sa.h>

#include "lab.h"

#define SA_CLASS   3
#define NOTICE     0x0002
#define INFORM     0x0003
#define REPORT     0x06
#define REPORT_R   0x86
#define RMPP_AT    24
#define ATTR_AT    16
#define STATUS_AT  4
#define SM_KEY_AT  36
#define OFFSET_AT  44
#define MASK_AT    48
#define DATA_AT    56
#define GIDS_AT    24 /* in a MultiPathRecord */
#define SGID_COUNT 15
#define DGID_COUNT 16
#define TRAP_AT    4 /* in a Notice */
#define GID_AT     16
#define GIDS       20
#define PATH_BYTES 64
#define MOST_PATHS 127 /* that NumbPath can ask for */

static int open_sa(int host, int *agent)
{
	const struct umad_reg_attr attr = { .mgmt_class = SA_CLASS,
		                            .mgmt_class_version = UMAD_SA_CLASS_VERSION,
		                            .method_mask = { LAB_METHOD(REPORT), 0 },
		                            .rmpp_version = UMAD_RMPP_VERSION };
	int fd = lab_open(host), err;

	*agent = lab_register(fd, &attr, &err);
	assert_int_equal(err, 0);
	return fd;
}

static void put16(uint8_t *at, unsigned v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static void *request(uint8_t method, uint16_t attribute, uint64_t mask, size_t bytes)
{
	void *umad = umad_alloc(1, umad_size() + DATA_AT + bytes);
	uint8_t *d;

	assert_non_null(umad);
	d = lab_data(umad);
	d[0] = UMAD_BASE_VERSION;
	d[1] = SA_CLASS;
	d[2] = UMAD_SA_CLASS_VERSION;
	d[3] = method;
	d[15] = 77; /* transaction */
	put16(d + ATTR_AT, attribute);
	mask = htobe64(mask);
	memcpy(d + MASK_AT, &mask, sizeof(mask));
	return umad;
}

static uint16_t sa_lid(void)
{
	umad_port_t port;
	uint16_t lid;

	assert_int_equal(umad_get_port(lab_ca(2), 1, &port), 0);
	lid = (uint16_t)port.sm_lid;
	umad_release_port(&port);
	return lid;
}

/* Sends it, and frees it; the answer, with status 0. */
static void *ask(int fd, int agent, void *umad, size_t bytes, int *answer_bytes)
{
	const struct lab_how how = {
		.agent = agent, .lid = sa_lid(), .bytes = DATA_AT + bytes, .timeout_ms = 5000
	};
	int from;

	lab_send(fd, umad, &how);
	umad = lab_receive(fd, &from, answer_bytes);
	assert_int_equal(from, agent);
	assert_int_equal(umad_status(umad), 0);
	assert_int_equal(get16(lab_data(umad) + STATUS_AT), 0);
	return umad;
}

static void gid_of(int host, uint8_t *gid)
{
	umad_port_t port;

	assert_int_equal(umad_get_port(lab_ca(host), 1, &port), 0);
	memcpy(gid, &port.gid_prefix, 8);
	memcpy(gid + 8, &port.port_guid, 8);
	umad_release_port(&port);
}

LAB_CASE(a_request_of_several_segments_is_answered)
{
	const size_t bytes = GIDS_AT + 2 * GIDS * 16;
	void *umad = request(UMAD_SA_METHOD_GET_MULTI, UMAD_SA_ATTR_MULTI_PATH_REC,
	                     1ull << 19 | 1ull << 20, bytes);
	uint8_t *record = lab_data(umad) + DATA_AT, *rmpp = lab_data(umad) + RMPP_AT;
	int agent, got, fd = open_sa(2, &agent);

	rmpp[0] = UMAD_RMPP_VERSION;
	rmpp[1] = 1; /* data */
	rmpp[2] = 1; /* active */
	record[SGID_COUNT] = record[DGID_COUNT] = GIDS;
	for (int i = 0; i < 2 * GIDS; i++)
		gid_of(1 + i % 4, record + GIDS_AT + i * 16);
	umad = ask(fd, agent, umad, bytes, &got);
	assert_int_equal(lab_data(umad)[3], UMAD_SA_METHOD_GET_MULTI_RESP);
	assert_int_equal(get16(lab_data(umad) + OFFSET_AT), PATH_BYTES / 8);
	assert_int_equal(got, DATA_AT + MOST_PATHS * PATH_BYTES);
	umad_free(umad);
}

/* To every trap, from everybody; @sm_key: as a trusted program. */
static void subscribe(int fd, int agent, uint8_t sm_key)
{
	void *umad = request(UMAD_METHOD_SET, INFORM, 0, 200);
	uint8_t *info = lab_data(umad) + DATA_AT;
	int got;

	lab_data(umad)[SM_KEY_AT + 7] = sm_key;

	put16(info + 16, 0xFFFF);   /* LIDRangeBegin */
	info[22] = 1;               /* IsGeneric */
	info[23] = 1;               /* Subscribe */
	put16(info + 24, 0xFFFF);   /* Type */
	put16(info + 26, 0xFFFF);   /* TrapNumber */
	memset(info + 33, 0xFF, 3); /* ProducerType */
	umad_free(ask(fd, agent, umad, 200, &got));
}

/* Host 3 joins the group, or leaves it. */
static void member(int fd, int agent, uint8_t method, const uint8_t *mgid)
{
	void *umad = request(method, UMAD_SA_ATTR_MCMEMBER_REC, 0x130C7, 200);
	uint8_t *record = lab_data(umad) + DATA_AT;
	int got;

	memcpy(record, mgid, 16);
	gid_of(3, record + 16);
	put16(record + 40, 0xFFFF); /* P_Key */
	record[48] = 1;             /* JoinState: full member */
	umad_free(ask(fd, agent, umad, 200, &got));
}

/* The next report, of @gid. The report is answered, so that it need not come again. */
static void expect_report(int fd, int agent, unsigned trap, const uint8_t *gid)
{
	int from, bytes;
	void *umad = lab_receive(fd, &from, &bytes);
	uint8_t *d = lab_data(umad);

	assert_int_equal(from, agent);
	assert_int_equal(d[3], REPORT);
	assert_int_equal(get16(d + ATTR_AT), NOTICE);
	assert_int_equal(get16(d + DATA_AT + TRAP_AT), trap);
	if (gid)
		assert_memory_equal(d + DATA_AT + GID_AT, gid, 16);
	d[3] = REPORT_R;
	lab_send(fd, umad, &(struct lab_how){ .agent = agent, .lid = sa_lid() });
}

LAB_CASE(who_subscribed_is_told_of_groups)
{
	const uint8_t mgid[16] = { 0xFF, 0x12, 0xA0, 0x1C, 0xFE, 0x80, [15] = 0x42 };
	int agent, fd = open_sa(2, &agent);
	int other_agent, other = open_sa(3, &other_agent);

	subscribe(fd, agent, 0);
	member(other, other_agent, UMAD_METHOD_SET, mgid);
	expect_report(fd, agent, 66, mgid);
	member(other, other_agent, UMAD_SA_METHOD_DELETE, mgid);
	expect_report(fd, agent, 67, mgid);
}

/* A program joins, and is over. */
static void join_and_close(const uint8_t *mgid)
{
	int fd = umad_open_port(lab_ca(3), 1);
	int agent = umad_register(fd, SA_CLASS, UMAD_SA_CLASS_VERSION, UMAD_RMPP_VERSION, NULL);

	assert_true(agent >= 0);
	member(fd, agent, UMAD_METHOD_SET, mgid);
	assert_int_equal(umad_close_port(fd), 0);
}

/* The port stays a member. So another program may leave for the port, but not while the first
 * program is there: when umad_close_port() has returned, it is not. */
LAB_CASE(who_closes_its_port_leaves_its_groups_to_others)
{
	const uint8_t mgid[16] = { 0xFF, 0x12, 0xA0, 0x1C, 0xFE, 0x80, [15] = 0x43 };
	int agent, fd = open_sa(3, &agent);

	for (int i = 0; i < 500; i++) {
		join_and_close(mgid);
		member(fd, agent, UMAD_SA_METHOD_DELETE, mgid);
	}
}

/* ---- keys ---- */

#define PORT_INFO   0x0015
#define SMP_KEY_AT  24
#define SMP_DATA_AT 64
#define STATE_AT    (SMP_DATA_AT + 33) /* of PortInfo: PortState, and the physical one */
#define PROTECT_AT  (SMP_DATA_AT + 34) /* its high two bits */
#define KEY         0x77

/* A request about PortInfo of host 4, with this M_Key; to be freed. NULL: it gets no answer. */
static void *ask_port(int fd, int agent, uint8_t method, uint8_t m_key, const uint8_t *data)
{
	void *umad = umad_alloc(1, umad_size() + LAB_MAD);
	uint8_t *d;
	int from, bytes;

	assert_non_null(umad);
	d = lab_data(umad);
	memcpy(d, (uint8_t[]){ UMAD_BASE_VERSION, UMAD_CLASS_SUBN_LID_ROUTED, 1, method }, 4);
	put16(d + ATTR_AT, PORT_INFO);
	d[15] = 1;
	d[SMP_KEY_AT + 7] = m_key;
	if (data)
		memcpy(d + SMP_DATA_AT, data, 64);
	umad_set_addr(umad, lab_lid(4), 0, 0, 0);
	assert_int_equal(umad_send(fd, agent, umad, LAB_MAD, 50, 0), 0);
	umad_free(umad);
	umad = lab_receive(fd, &from, &bytes);
	assert_int_equal(from, agent);
	if (!umad_status(umad))
		return umad;
	umad_free(umad);
	return NULL;
}

/* Gives host 4 this M_Key, which it has @old of, and protection of level 2. */
static void set_key(int fd, int agent, uint8_t old, uint8_t m_key)
{
	uint8_t data[64];
	void *umad = ask_port(fd, agent, UMAD_METHOD_GET, old, NULL);

	assert_non_null(umad);
	memcpy(data, lab_data(umad) + SMP_DATA_AT, sizeof(data));
	umad_free(umad);
	memset(data, 0, 8);
	data[7] = m_key;
	data[STATE_AT - SMP_DATA_AT - 1] &= 0xF0; /* PortState, and behind it the physical one: */
	data[STATE_AT - SMP_DATA_AT] &= 0x0F;     /* no change */
	data[PROTECT_AT - SMP_DATA_AT] = (uint8_t)((data[PROTECT_AT - SMP_DATA_AT] & 0x3F) | 0x80);
	assert_non_null(umad = ask_port(fd, agent, UMAD_METHOD_SET, old, data));
	assert_int_equal(get16(lab_data(umad) + STATUS_AT), 0);
	umad_free(umad);
}

LAB_CASE(who_is_trusted_is_told_of_wrong_keys)
{
	const struct umad_reg_attr attr = { .mgmt_class = UMAD_CLASS_SUBN_LID_ROUTED,
		                            .mgmt_class_version = 1 };
	int agent, fd = open_sa(2, &agent);
	int err, smp = lab_open(3), smp_agent = lab_register(smp, &attr, &err);

	assert_int_equal(err, 0);
	subscribe(fd, agent, 1);
	set_key(smp, smp_agent, 0, KEY);
	assert_null(ask_port(smp, smp_agent, UMAD_METHOD_GET, KEY + 1, NULL));
	expect_report(fd, agent, 256, NULL);
	set_key(smp, smp_agent, KEY, 0);
}
