/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the specification's tables of SIDR_REQ, SIDR_REP and REJ, and annex A11's header, have
 * their fields: compared byte by byte.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include <infiniband/umad_cm.h>

#include "wire/cm_mad.h"

#define MESSAGE_BYTES (MAD_BYTES - CM_MESSAGE_AT)

static void attributes_have_libibumad_s_numbers(void **state)
{
	(void)state;
	assert_int_equal(CM_ATTR_REQ, UMAD_CM_ATTR_REQ);
	assert_int_equal(CM_ATTR_REJ, UMAD_CM_ATTR_REJ);
	assert_int_equal(CM_ATTR_SIDR_REQ, UMAD_CM_ATTR_SIDR_REQ);
	assert_int_equal(CM_ATTR_SIDR_REP, UMAD_CM_ATTR_SIDR_REP);
	assert_int_equal(CM_MESSAGE_AT, wire_mad_bytes);
}

static void a_sidr_req_has_its_fields_in_place(void **state)
{
	static const uint8_t want[MESSAGE_BYTES] = { 1,  2,  3,  4,  5,  6,
		                                     0,  0,  7,  8,  9,  10,
		                                     11, 12, 13, 14, 15, [MESSAGE_BYTES - 1] = 16 };
	const struct wire_sidr_req r = { .request_id = 0x01020304,
		                         .pkey = 0x0506,
		                         .service_id = 0x0708090A0B0C0D0E,
		                         .private_data = { 15, [CM_SIDR_REQ_PRIVATE - 1] = 16 } };
	uint8_t got[MESSAGE_BYTES];

	(void)state;
	wire_sidr_req_encode(&r, got);
	assert_memory_equal(got, want, sizeof(want));
}

static void a_sidr_rep_has_its_fields_in_place(void **state)
{
	static const uint8_t want[MESSAGE_BYTES] = {
		1, 2, 3, 4, 5, 6, 0,  0,  7,  8,  9,  0,         1,         2,
		3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, [95] = 15, [96] = 16, [MESSAGE_BYTES - 1] = 17
	};
	const struct wire_sidr_rep r = { .request_id = 0x01020304,
		                         .status = 5,
		                         .info_length = 6,
		                         .qpn = 0x070809,
		                         .service_id = 0x0102030405060708,
		                         .qkey = 0x0A0B0C0D,
		                         .info = { 14, [71] = 15 },
		                         .private_data = { 16, [CM_SIDR_REP_PRIVATE - 1] = 17 } };
	uint8_t got[MESSAGE_BYTES];

	(void)state;
	wire_sidr_rep_encode(&r, got);
	assert_memory_equal(got, want, sizeof(want));
}

static void a_rej_has_its_fields_in_place(void **state)
{
	static const uint8_t want[MESSAGE_BYTES] = {
		1,    2,         3, 4,  5,  6,         7,         8,
		0x80, 0x7F << 1, 9, 10, 11, [83] = 12, [84] = 13, [MESSAGE_BYTES - 1] = 14
	};
	const struct wire_cm_rej r = { .local_id = 0x01020304,
		                       .remote_id = 0x05060708,
		                       .message_rejected = 2,
		                       .info_length = 0x7F,
		                       .reason = 0x090A,
		                       .info = { 11, [71] = 12 },
		                       .private_data = { 13, [147] = 14 } };
	uint8_t got[MESSAGE_BYTES];

	(void)state;
	wire_cm_rej_encode(&r, got);
	assert_memory_equal(got, want, sizeof(want));
}

static void ip_addresses_precede_the_private_data(void **state)
{
	static const uint8_t want[] = {
		0, 0x40, 0x80, 0x01, [16] = 10, 0, 0, 1, [32] = 10, 0, 0, 2
	};
	const struct wire_cm_ip ip = { .version = CM_IP_VERSION,
		                       .ip_version = 4,
		                       .src_port = 0x8001,
		                       .src = { [12] = 10, 0, 0, 1 },
		                       .dst = { [12] = 10, 0, 0, 2 } };
	uint8_t got[wire_cm_ip_bytes];

	(void)state;
	assert_int_equal(sizeof(want), wire_cm_ip_bytes);
	wire_cm_ip_encode(&ip, got);
	assert_memory_equal(got, want, sizeof(want));
}

/* What rdma_rxe of Linux 6.1 has sent, as captured: the private data's zeros are left out. */
static void the_kernel_s_messages_are_read(void **state)
{
	static const uint8_t request[MESSAGE_BYTES] = {
		0xEA, 0x78, 0x09, 0x89, 0xFF, 0xFF, 0,          0, 0, 0,  0,          0, 1, 0x11,
		0x1C, 0x06, 0x00, 0x40, 0xE2, 0xDB, [32] = 192, 0, 2, 12, [48] = 192, 0, 2, 11
	};
	static const uint8_t answer[MESSAGE_BYTES] = {
		0xEA, 0x78, 0x09, 0x89, 0, 0,    0,    0,    0, 0,    0x1E, 0,
		0,    0,    0,    0,    1, 0x11, 0x1C, 0x06, 1, 0x23, 0x45, 0x67
	};
	static const uint8_t dst[4] = { 192, 0, 2, 11 };
	struct wire_sidr_req req;
	struct wire_sidr_rep rep;
	struct wire_cm_ip ip;

	(void)state;
	wire_sidr_req_decode(request, &req);
	assert_int_equal(req.request_id, 0xEA780989);
	assert_int_equal(req.pkey, 0xFFFF);
	assert_int_equal(req.service_id, 0x01111C06); /* UDP's port space, port 7174 */
	wire_cm_ip_decode(req.private_data, &ip);
	assert_int_equal(ip.version, CM_IP_VERSION);
	assert_int_equal(ip.ip_version, 4);
	assert_int_equal(ip.src_port, 0xE2DB);
	assert_memory_equal(ip.dst + 12, dst, sizeof(dst));
	wire_sidr_rep_decode(answer, &rep);
	assert_int_equal(rep.request_id, 0xEA780989);
	assert_int_equal(rep.status, CM_SIDR_VALID);
	assert_int_equal(rep.qpn, 0x1E);
	assert_int_equal(rep.service_id, 0x01111C06);
	assert_int_equal(rep.qkey, IB_QKEY_RDMACM_UDP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_have_libibumad_s_numbers),
		cmocka_unit_test(a_sidr_req_has_its_fields_in_place),
		cmocka_unit_test(a_sidr_rep_has_its_fields_in_place),
		cmocka_unit_test(a_rej_has_its_fields_in_place),
		cmocka_unit_test(ip_addresses_precede_the_private_data),
		cmocka_unit_test(the_kernel_s_messages_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
