/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of communication management: see cm_mad.h.
 */
#include "wire/cm_mad.h"

/* clang-format off */

#define THIS struct wire_sidr_req
static const struct wire_field sidr_req[] = {
	WIRE_INT(0, 32, request_id),
	WIRE_INT(32, 16, pkey),
	WIRE_RESERVED(48, 16),
	WIRE_INT(64, 64, service_id),
	WIRE_BYTES(128, private_data),
};
WIRE_LAYOUT_DEFINE(sidr_req, sidr_req);
#undef THIS

/* VendorID, reserved here, is for extensions that we do not have. */
#define THIS struct wire_sidr_rep
static const struct wire_field sidr_rep[] = {
	WIRE_INT(0, 32, request_id),
	WIRE_INT(32, 8, status),
	WIRE_INT(40, 8, info_length),
	WIRE_RESERVED(48, 16),
	WIRE_INT(64, 24, qpn),
	WIRE_RESERVED(88, 8),
	WIRE_INT(96, 64, service_id),
	WIRE_INT(160, 32, qkey),
	WIRE_BYTES(192, info),
	WIRE_BYTES(768, private_data),
};
WIRE_LAYOUT_DEFINE(sidr_rep, sidr_rep);
#undef THIS

#define THIS struct wire_cm_path
static const struct wire_field cm_path[] = {
	WIRE_INT(0, 16, local_lid),
	WIRE_INT(16, 16, remote_lid),
	WIRE_BYTES(32, local_gid),
	WIRE_BYTES(160, remote_gid),
	WIRE_INT(288, 20, flow_label),
	WIRE_RESERVED(308, 6),
	WIRE_INT(314, 6, rate),
	WIRE_INT(320, 8, traffic_class),
	WIRE_INT(328, 8, hop_limit),
	WIRE_INT(336, 4, sl),
	WIRE_INT(340, 1, is_local),
	WIRE_RESERVED(341, 3),
	WIRE_INT(344, 5, ack_timeout),
	WIRE_RESERVED(349, 3),
};
WIRE_LAYOUT_DEFINE(cm_path, cm_path);
#undef THIS

#define THIS struct wire_cm_req
static const struct wire_field cm_req[] = {
	WIRE_INT(0, 32, local_id),
	WIRE_RESERVED(32, 8),
	WIRE_INT(40, 24, vendor_id),
	WIRE_INT(64, 64, service_id),
	WIRE_INT(128, 64, guid),
	WIRE_RESERVED(192, 32),
	WIRE_INT(224, 32, qkey),
	WIRE_INT(256, 24, qpn),
	WIRE_INT(280, 8, responder_resources),
	WIRE_INT(288, 24, eecn),
	WIRE_INT(312, 8, initiator_depth),
	WIRE_INT(320, 24, remote_eecn),
	WIRE_INT(344, 5, remote_timeout),
	WIRE_INT(349, 2, transport),
	WIRE_INT(351, 1, flow_control),
	WIRE_INT(352, 24, psn),
	WIRE_INT(376, 5, local_timeout),
	WIRE_INT(381, 3, retry_count),
	WIRE_INT(384, 16, pkey),
	WIRE_INT(400, 4, mtu),
	WIRE_INT(404, 1, rdc_exists),
	WIRE_INT(405, 3, rnr_retry_count),
	WIRE_INT(408, 4, cm_retries),
	WIRE_INT(412, 1, srq),
	WIRE_INT(413, 3, extended),
	WIRE_NESTED(416, primary, cm_path),
	WIRE_NESTED(768, alternate, cm_path),
	WIRE_BYTES(1120, private_data),
};
WIRE_LAYOUT_DEFINE(cm_req, cm_req);
#undef THIS

#define THIS struct wire_cm_mra
static const struct wire_field cm_mra[] = {
	WIRE_INT(0, 32, local_id),
	WIRE_INT(32, 32, remote_id),
	WIRE_INT(64, 2, message),
	WIRE_RESERVED(66, 6),
	WIRE_INT(72, 5, timeout),
	WIRE_RESERVED(77, 3),
	WIRE_BYTES(80, private_data),
};
WIRE_LAYOUT_DEFINE(cm_mra, cm_mra);
#undef THIS

/* In the last byte of three words, reserved in the specification, is the VendorID of extensions. */
#define THIS struct wire_cm_rep
static const struct wire_field cm_rep[] = {
	WIRE_INT(0, 32, local_id),
	WIRE_INT(32, 32, remote_id),
	WIRE_INT(64, 32, qkey),
	WIRE_INT(96, 24, qpn),
	WIRE_INT(120, 8, vendor_id[0]),
	WIRE_INT(128, 24, eecn),
	WIRE_INT(152, 8, vendor_id[1]),
	WIRE_INT(160, 24, psn),
	WIRE_INT(184, 8, vendor_id[2]),
	WIRE_INT(192, 8, responder_resources),
	WIRE_INT(200, 8, initiator_depth),
	WIRE_INT(208, 5, ack_delay),
	WIRE_INT(213, 2, failover),
	WIRE_INT(215, 1, flow_control),
	WIRE_INT(216, 3, rnr_retry_count),
	WIRE_INT(219, 1, srq),
	WIRE_RESERVED(220, 4),
	WIRE_INT(224, 64, guid),
	WIRE_BYTES(288, private_data),
};
WIRE_LAYOUT_DEFINE(cm_rep, cm_rep);
#undef THIS

#define THIS struct wire_cm_rtu
static const struct wire_field cm_rtu[] = {
	WIRE_INT(0, 32, local_id),
	WIRE_INT(32, 32, remote_id),
	WIRE_BYTES(64, private_data),
};
WIRE_LAYOUT_DEFINE(cm_rtu, cm_rtu);
#undef THIS

#define THIS struct wire_cm_dreq
static const struct wire_field cm_dreq[] = {
	WIRE_INT(0, 32, local_id),
	WIRE_INT(32, 32, remote_id),
	WIRE_INT(64, 24, remote_qpn),
	WIRE_RESERVED(88, 8),
	WIRE_BYTES(96, private_data),
};
WIRE_LAYOUT_DEFINE(cm_dreq, cm_dreq);
#undef THIS

#define THIS struct wire_cm_rej
static const struct wire_field cm_rej[] = {
	WIRE_INT(0, 32, local_id),
	WIRE_INT(32, 32, remote_id),
	WIRE_INT(64, 2, message_rejected),
	WIRE_RESERVED(66, 6),
	WIRE_INT(72, 7, info_length),
	WIRE_RESERVED(79, 1),
	WIRE_INT(80, 16, reason),
	WIRE_BYTES(96, info),
	WIRE_BYTES(672, private_data),
};
WIRE_LAYOUT_DEFINE(cm_rej, cm_rej);
#undef THIS

#define THIS struct wire_cm_ip
static const struct wire_field cm_ip[] = {
	WIRE_INT(0, 8, version),
	WIRE_INT(8, 4, ip_version),
	WIRE_RESERVED(12, 4),
	WIRE_INT(16, 16, src_port),
	WIRE_BYTES(32, src),
	WIRE_BYTES(160, dst),
};
WIRE_LAYOUT_DEFINE(cm_ip, cm_ip);
#undef THIS

/* clang-format on */
