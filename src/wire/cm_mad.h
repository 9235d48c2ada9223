/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Communication management as data (InfiniBand specification volume 1, sections 12.6 and
 * 12.11): the messages by which a service ID becomes a queue pair number, and the REJ that
 * who wants a connection gets; and what rdma_cm puts into their private data to carry IP
 * addresses (annex A11). Each message follows the common header and fills its MAD. Fields are
 * host order; IP addresses are bytes, as on the wire. Pure functions.
 */
#ifndef WIRE_CM_MAD_H
#define WIRE_CM_MAD_H

#include "wire/mad.h"

#define MAD_VERSION_COM_MGT 2
#define CM_MESSAGE_AT       24 /* of the MAD */

/* AttributeID (section 12.6); all go by MAD_SEND. */
enum cm_attr {
	CM_ATTR_REQ = 0x0010,
	CM_ATTR_REJ = 0x0012,
	CM_ATTR_SIDR_REQ = 0x0017,
	CM_ATTR_SIDR_REP = 0x0018,
};

#define CM_SIDR_REQ_PRIVATE 216
#define CM_SIDR_REP_PRIVATE 136

/* SIDR_REQ (section 12.11.1): which queue pair serves this? */
struct wire_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[CM_SIDR_REQ_PRIVATE];
};
WIRE_LAYOUT(sidr_req, 232);

/* Status of a SIDR_REP. */
enum cm_sidr_status { CM_SIDR_VALID, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECT };

/* SIDR_REP (section 12.11.2): this one. */
struct wire_sidr_rep {
	uint32_t request_id;
	uint8_t status; /* enum cm_sidr_status, and others */
	uint8_t info_length;
	uint32_t qpn;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[72];
	uint8_t private_data[CM_SIDR_REP_PRIVATE];
};
WIRE_LAYOUT(sidr_rep, 232);

/* REJ (section 12.6.7): no connection. */
#define CM_REJECTED_REQ           0 /* MessageRejected */
#define CM_REJ_INVALID_SERVICE_ID 8

struct wire_cm_rej {
	uint32_t local_id, remote_id; /* communication IDs; 0: none */
	uint8_t message_rejected;     /* 2 bits */
	uint8_t info_length;          /* 7 bits */
	uint16_t reason;
	uint8_t info[72];
	uint8_t private_data[148];
};
WIRE_LAYOUT(cm_rej, 232);

/* What precedes the program's private data in a request for a service of an IP port space. */
#define CM_IP_VERSION 0

struct wire_cm_ip {
	uint8_t version;    /* major and minor: CM_IP_VERSION */
	uint8_t ip_version; /* 4 bits: 4 or 6 */
	uint16_t src_port;
	uint8_t src[16], dst[16]; /* IPv4: the last four bytes, the rest 0 */
};
WIRE_LAYOUT(cm_ip, 36);

#endif
