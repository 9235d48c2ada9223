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

/* VendorID, in what is reserved here, tells of extensions that we have none of. */
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
