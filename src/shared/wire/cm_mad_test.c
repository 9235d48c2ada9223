/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All messages and the header of annex A11, byte by byte against the specification's tables.
 */
#include <harness.h>
#include <infiniband/umad_cm.h>

#include "wire/cm_mad.h"

#define MESSAGE_BYTES (MAD_BYTES - CM_MESSAGE_AT)

CASE(attributes_have_libibumad_s_numbers)
{
	assert_int_equal(CM_ATTR_REQ, UMAD_CM_ATTR_REQ);
	assert_int_equal(CM_ATTR_MRA, UMAD_CM_ATTR_MRA);
	assert_int_equal(CM_ATTR_REJ, UMAD_CM_ATTR_REJ);
	assert_int_equal(CM_ATTR_REP, UMAD_CM_ATTR_REP);
	assert_int_equal(CM_ATTR_RTU, UMAD_CM_ATTR_RTU);
	assert_int_equal(CM_ATTR_DREQ, UMAD_CM_ATTR_DREQ);
	assert_int_equal(CM_ATTR_DREP, UMAD_CM_ATTR_DREP);
	assert_int_equal(CM_ATTR_SIDR_REQ, UMAD_CM_ATTR_SIDR_REQ);
	assert_int_equal(CM_ATTR_SIDR_REP, UMAD_CM_ATTR_SIDR_REP);
	assert_int_equal(CM_MESSAGE_AT, wire_mad_bytes);
}

CASE(a_sidr_req_has_its_fields_in_place)
{
	static const uint8_t want[MESSAGE_BYTES] = { 1,  2,  3,  4,  5,  6,
		                                     0,  0,  7,  8,  9,  10,
		                                     11, 12, 13, 14, 15, [MESSAGE_BYTES - 1] = 16 };
	const struct wire_sidr_req r = { .request_id = 0x01020304,
		                         .pkey = 0x0506,
		                         .service_id = 0x0708090A0B0C0D0E,
		                         .private_data = { 15, [CM_SIDR_REQ_PRIVATE - 1] = 16 } };
	uint8_t got[MESSAGE_BYTES];

	wire_sidr_req_encode(&r, got);
	assert_memory_equal(got, want, sizeof(want));
}

CASE(a_sidr_rep_has_its_fields_in_place)
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

	wire_sidr_rep_encode(&r, got);
	assert_memory_equal(got, want, sizeof(want));
}

CASE(a_rej_has_its_fields_in_place)
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

	wire_cm_rej_encode(&r, got);
	assert_memory_equal(got, want, sizeof(want));
}

static const struct wire_cm_path path = { .local_lid = 0x0102,
	                                  .remote_lid = 0x0304,
	                                  .local_gid = { { 5, [15] = 6 } },
	                                  .remote_gid = { { 7, [15] = 8 } },
	                                  .flow_label = 0xABCDE,
	                                  .rate = 0x3F,
	                                  .traffic_class = 9,
	                                  .hop_limit = 10,
	                                  .sl = 0xB,
	                                  .is_local = 1,
	                                  .ack_timeout = 0x1F };

#define PATH_BYTES \
	1, 2, 3, 4, 5, [19] = 6, [20] = 7, [35] = 8, 0xAB, 0xCD, 0xE0, 0x3F, 9, 10, 0xB8, 0xF8

CASE(a_path_of_a_req_has_its_fields_in_place)
{
	static const uint8_t want[] = { PATH_BYTES };
	uint8_t got[wire_cm_path_bytes];

	assert_int_equal(sizeof(want), sizeof(got));
	wire_cm_path_encode(&path, got);
	assert_memory_equal(got, want, sizeof(want));
}

CASE(a_req_has_its_fields_in_place)
{
	/* up to the paths */
	static const uint8_t want[] = {
		0x01, 0x02, 0x03, 0x04, 0,    0x05, 0x06, 0x07, /* IDs */
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* service */
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, /* GUID */
		0,    0,    0,    0,    0x31, 0x32, 0x33, 0x34, /* Q_Key */
		0x41, 0x42, 0x43, 0x44,                         /* QPN, responder resources */
		0x51, 0x52, 0x53, 0x54,                         /* EECN, initiator depth */
		0x61, 0x62, 0x63, 0xA5,                         /* remote EECN; 20, 2, 1 */
		0x71, 0x72, 0x73, 0x9E,                         /* PSN; 19, 6 */
		0x80, 0x01, 0x5B, 0xFA,                         /* P_Key; 5, 1, 3; 15, 1, 2 */
	};
	const struct wire_cm_req r = { .local_id = 0x01020304,
		                       .vendor_id = 0x050607,
		                       .service_id = 0x1112131415161718,
		                       .guid = 0x2122232425262728,
		                       .qkey = 0x31323334,
		                       .qpn = 0x414243,
		                       .responder_resources = 0x44,
		                       .eecn = 0x515253,
		                       .initiator_depth = 0x54,
		                       .remote_eecn = 0x616263,
		                       .remote_timeout = 20,
		                       .transport = 2,
		                       .flow_control = 1,
		                       .psn = 0x717273,
		                       .local_timeout = 19,
		                       .retry_count = 6,
		                       .pkey = 0x8001,
		                       .mtu = 5,
		                       .rdc_exists = 1,
		                       .rnr_retry_count = 3,
		                       .cm_retries = 15,
		                       .srq = 1,
		                       .extended = 2,
		                       .primary = path,
		                       .alternate = path,
		                       .private_data = { 1, [CM_REQ_PRIVATE - 1] = 2 } };
	uint8_t got[MESSAGE_BYTES], path_bytes[wire_cm_path_bytes];

	wire_cm_req_encode(&r, got);
	wire_cm_path_encode(&path, path_bytes);
	assert_int_equal(sizeof(want), 52);
	assert_memory_equal(got, want, sizeof(want));
	assert_memory_equal(got + 52, path_bytes, sizeof(path_bytes));
	assert_memory_equal(got + 96, path_bytes, sizeof(path_bytes));
	assert_memory_equal(got + 140, r.private_data, CM_REQ_PRIVATE);
}

CASE(a_rep_has_its_fields_in_place)
{
	static const uint8_t want[MESSAGE_BYTES] = { 1,    2,
		                                     3,    4,
		                                     5,    6,
		                                     7,    8,
		                                     0x11, 0x12,
		                                     0x13, 0x14,
		                                     0x21, 0x22,
		                                     0x23, 0xA1,
		                                     0x31, 0x32,
		                                     0x33, 0xA2,
		                                     0x41, 0x42,
		                                     0x43, 0xA3,
		                                     9,    10,
		                                     0x7D, 0xF0,
		                                     0x51, 0x52,
		                                     0x53, 0x54,
		                                     0x55, 0x56,
		                                     0x57, 0x58,
		                                     11,   [MESSAGE_BYTES - 1] = 12 };
	const struct wire_cm_rep r = { .local_id = 0x01020304,
		                       .remote_id = 0x05060708,
		                       .qkey = 0x11121314,
		                       .qpn = 0x212223,
		                       .eecn = 0x313233,
		                       .psn = 0x414243,
		                       .vendor_id_high = 0xA1,
		                       .vendor_id_middle = 0xA2,
		                       .vendor_id_low = 0xA3,
		                       .responder_resources = 9,
		                       .initiator_depth = 10,
		                       .ack_delay = 15,
		                       .failover = 2,
		                       .flow_control = 1,
		                       .rnr_retry_count = 7,
		                       .srq = 1,
		                       .guid = 0x5152535455565758,
		                       .private_data = { 11, [CM_REP_PRIVATE - 1] = 12 } };
	uint8_t got[MESSAGE_BYTES];

	wire_cm_rep_encode(&r, got);
	assert_memory_equal(got, want, sizeof(want));
}

CASE(short_messages_have_their_fields_in_place)
{
	static const uint8_t want_rtu[MESSAGE_BYTES] = { 1, 2, 3, 4, 5,
		                                         6, 7, 8, 9, [MESSAGE_BYTES - 1] = 10 };
	static const uint8_t want_mra[MESSAGE_BYTES] = { 1,    2,    3, 4,
		                                         5,    6,    7, 8,
		                                         0x40, 0xC0, 9, [MESSAGE_BYTES - 1] = 10 };
	static const uint8_t want_dreq[MESSAGE_BYTES] = {
		1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0, 9, [MESSAGE_BYTES - 1] = 10
	};
	const struct wire_cm_rtu rtu = { .local_id = 0x01020304,
		                         .remote_id = 0x05060708,
		                         .private_data = { 9, [CM_RTU_PRIVATE - 1] = 10 } };
	const struct wire_cm_mra mra = { .local_id = 0x01020304,
		                         .remote_id = 0x05060708,
		                         .message = CM_MESSAGE_REP,
		                         .timeout = 24,
		                         .private_data = { 9, [CM_MRA_PRIVATE - 1] = 10 } };
	const struct wire_cm_dreq dreq = { .local_id = 0x01020304,
		                           .remote_id = 0x05060708,
		                           .remote_qpn = 0x111213,
		                           .private_data = { 9, [CM_DREQ_PRIVATE - 1] = 10 } };
	uint8_t got[MESSAGE_BYTES];

	wire_cm_rtu_encode(&rtu, got);
	assert_memory_equal(got, want_rtu, sizeof(got));
	wire_cm_mra_encode(&mra, got);
	assert_memory_equal(got, want_mra, sizeof(got));
	wire_cm_dreq_encode(&dreq, got);
	assert_memory_equal(got, want_dreq, sizeof(got));
}

CASE(ip_addresses_precede_the_private_data)
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

	assert_int_equal(sizeof(want), wire_cm_ip_bytes);
	wire_cm_ip_encode(&ip, got);
	assert_memory_equal(got, want, sizeof(want));
}

/* A capture of what rdma_rxe of Linux 6.1 sent, without the zeros of the private data. */
CASE(the_kernel_s_messages_are_read)
{
	static const uint8_t request[MESSAGE_BYTES] = {
		0xEA, 0x78, 0x09, 0x89, 0xFF, 0xFF, 0,          0, 0, 0,  0,          0, 1, 0x11,
		0x1C, 0x06, 0x00, 0x40, 0xE2, 0xDB, [32] = 192, 0, 2, 12, [48] = 192, 0, 2, 11
	};
	static const uint8_t response[MESSAGE_BYTES] = {
		0xEA, 0x78, 0x09, 0x89, 0, 0,    0,    0,    0, 0,    0x1E, 0,
		0,    0,    0,    0,    1, 0x11, 0x1C, 0x06, 1, 0x23, 0x45, 0x67
	};
	static const uint8_t dst[4] = { 192, 0, 2, 11 };
	struct wire_sidr_req req;
	struct wire_sidr_rep rep;
	struct wire_cm_ip ip;

	wire_sidr_req_decode(request, &req);
	assert_int_equal(req.request_id, 0xEA780989);
	assert_int_equal(req.pkey, 0xFFFF);
	assert_int_equal(req.service_id, 0x01111C06); /* UDP's port space, port 7174 */
	wire_cm_ip_decode(req.private_data, &ip);
	assert_int_equal(ip.version, CM_IP_VERSION);
	assert_int_equal(ip.ip_version, 4);
	assert_int_equal(ip.src_port, 0xE2DB);
	assert_memory_equal(ip.dst + 12, dst, sizeof(dst));
	wire_sidr_rep_decode(response, &rep);
	assert_int_equal(rep.request_id, 0xEA780989);
	assert_int_equal(rep.status, CM_SIDR_VALID);
	assert_int_equal(rep.qpn, 0x1E);
	assert_int_equal(rep.service_id, 0x01111C06);
	assert_int_equal(rep.qkey, IB_QKEY_RDMACM_UDP);
}
