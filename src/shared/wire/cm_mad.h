/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of communication management (InfiniBand specification volume 1, sections 12.6 and
 * 12.11): those that make, refuse and end connections; SIDR, which resolves a service ID to a queue
 * pair number; and the IP addresses that rdma_cm puts into their private data (annex A11). Each
 * message follows the common header and fills its MAD. Fields are in host order; GIDs and IP
 * addresses are bytes, as in packets. Pure functions.
 */
#ifndef WIRE_CM_MAD_H
#define WIRE_CM_MAD_H

#include "wire/ib.h"
#include "wire/mad.h"

#define MAD_VERSION_COM_MGT 2
#define CM_MESSAGE_AT       wire_mad_bytes /* the message's offset in the MAD */
#define CM_MESSAGE_BYTES    (MAD_BYTES - CM_MESSAGE_AT)
#define CM_IP_VERSION       0

/* AttributeID (section 12.6); their method is MAD_SEND. */
enum cm_attr {
	CM_ATTR_REQ = 0x0010,
	CM_ATTR_MRA = 0x0011,
	CM_ATTR_REJ = 0x0012,
	CM_ATTR_REP = 0x0013,
	CM_ATTR_RTU = 0x0014,
	CM_ATTR_DREQ = 0x0015,
	CM_ATTR_DREP = 0x0016,
	CM_ATTR_SIDR_REQ = 0x0017,
	CM_ATTR_SIDR_REP = 0x0018,
};

/* Status of a SIDR_REP. */
enum cm_sidr_status { CM_SIDR_VALID, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECT };

/* TransportServiceType of a REQ. */
enum cm_transport { CM_TRANSPORT_RC, CM_TRANSPORT_UC, CM_TRANSPORT_RD, CM_TRANSPORT_EXTENDED };

#define CM_EXTENDED_XRC 1 /* ExtendedTransportType */

/* Of a REJ and a MRA: the message that it is about. */
enum cm_message { CM_MESSAGE_REQ, CM_MESSAGE_REP, CM_MESSAGE_OTHER };

/* Reasons of a REJ (section 12.6.7.2), of which rdma_cm uses these. */
enum cm_reason {
	CM_REJ_TIMEOUT = 4,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_STALE_CONNECTION = 10,
	CM_REJ_INVALID_GID = 13,
	CM_REJ_CONSUMER_DEFINED = 28,
	CM_REJ_VENDOR_OPTION = 35,
};

/* Bytes of private data in each message, and of a REJ's other information. */
#define CM_SIDR_REQ_PRIVATE 216
#define CM_SIDR_REP_PRIVATE 136
#define CM_REQ_PRIVATE      92
#define CM_MRA_PRIVATE      222
#define CM_REJ_PRIVATE      148
#define CM_REJ_INFO         72
#define CM_REP_PRIVATE      196
#define CM_RTU_PRIVATE      224
#define CM_DREQ_PRIVATE     220

#define LAYOUTS "wire/cm_mad.def"
#include "wire/declare.def"

#endif
