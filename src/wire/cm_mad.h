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
#define CM_MESSAGE_AT       24 /* the message's offset in the MAD */

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

#define CM_SIDR_REQ_PRIVATE 216
#define CM_SIDR_REP_PRIVATE 136

/* SIDR_REQ (section 12.11.1): asks for the queue pair of a service. */
struct wire_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[CM_SIDR_REQ_PRIVATE];
};
WIRE_LAYOUT(sidr_req, 232);

/* Status of a SIDR_REP. */
enum cm_sidr_status { CM_SIDR_VALID, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECT };

/* SIDR_REP (section 12.11.2): the response. */
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

/* A path as a REQ has it, seen from who sends the REQ. */
struct wire_cm_path {
	uint16_t local_lid, remote_lid;
	struct ib_gid local_gid, remote_gid;
	uint32_t flow_label; /* 20 bits */
	uint8_t rate;        /* 6 bits */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;          /* 4 bits */
	uint8_t is_local;    /* 1 bit: within the subnet */
	uint8_t ack_timeout; /* 5 bits: 4.096 us << it */
};
WIRE_LAYOUT(cm_path, 44);

/* TransportServiceType of a REQ. */
enum cm_transport { CM_TRANSPORT_RC, CM_TRANSPORT_UC, CM_TRANSPORT_RD, CM_TRANSPORT_EXTENDED };

#define CM_EXTENDED_XRC 1 /* ExtendedTransportType */

#define CM_REQ_PRIVATE 92

/* REQ (section 12.6.5): asks for a connection. */
struct wire_cm_req {
	uint32_t local_id;  /* communication ID */
	uint32_t vendor_id; /* 24 bits; of the enhancement that AttributeModifier has the options of
	                     */
	uint64_t service_id;
	uint64_t guid; /* of the node that asks */
	uint32_t qkey;
	uint32_t qpn; /* 24 bits */
	uint8_t responder_resources;
	uint32_t eecn; /* 24 bits */
	uint8_t initiator_depth;
	uint32_t remote_eecn;   /* 24 bits */
	uint8_t remote_timeout; /* 5 bits: for the response, 4.096 us << it */
	uint8_t transport;      /* 2 bits: enum cm_transport */
	uint8_t flow_control;   /* 1 bit */
	uint32_t psn;           /* 24 bits */
	uint8_t local_timeout;  /* 5 bits: for the RTU */
	uint8_t retry_count;    /* 3 bits */
	uint16_t pkey;
	uint8_t mtu;             /* 4 bits: enum ibv_mtu */
	uint8_t rdc_exists;      /* 1 bit */
	uint8_t rnr_retry_count; /* 3 bits */
	uint8_t cm_retries;      /* 4 bits */
	uint8_t srq;             /* 1 bit */
	uint8_t extended;        /* 3 bits */
	struct wire_cm_path primary, alternate;
	uint8_t private_data[CM_REQ_PRIVATE];
};
WIRE_LAYOUT(cm_req, 232);

/* Of a REJ and a MRA: the message that it is about. */
enum cm_message { CM_MESSAGE_REQ, CM_MESSAGE_REP, CM_MESSAGE_OTHER };

#define CM_MRA_PRIVATE 222

/* MRA (section 12.6.6): the response will take longer. */
struct wire_cm_mra {
	uint32_t local_id, remote_id;
	uint8_t message; /* 2 bits: enum cm_message */
	uint8_t timeout; /* 5 bits: 4.096 us << it */
	uint8_t private_data[CM_MRA_PRIVATE];
};
WIRE_LAYOUT(cm_mra, 232);

/* Reasons of a REJ (section 12.6.7.2), of which rdma_cm uses these. */
enum cm_reason {
	CM_REJ_TIMEOUT = 4,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_STALE_CONNECTION = 10,
	CM_REJ_INVALID_GID = 13,
	CM_REJ_CONSUMER_DEFINED = 28,
	CM_REJ_VENDOR_OPTION = 35,
};

#define CM_REJ_PRIVATE 148
#define CM_REJ_INFO    72

/* REJ (section 12.6.7): refuses a connection. */
struct wire_cm_rej {
	uint32_t local_id, remote_id; /* communication IDs; 0: none */
	uint8_t message_rejected;     /* 2 bits: enum cm_message */
	uint8_t info_length;          /* 7 bits */
	uint16_t reason;
	uint8_t info[CM_REJ_INFO];
	uint8_t private_data[CM_REJ_PRIVATE];
};
WIRE_LAYOUT(cm_rej, 232);

#define CM_REP_PRIVATE 196

/* REP (section 12.6.8): accepts a connection. */
struct wire_cm_rep {
	uint32_t local_id, remote_id;
	uint32_t qkey;
	uint32_t qpn;         /* 24 bits */
	uint32_t eecn;        /* 24 bits */
	uint32_t psn;         /* 24 bits */
	uint8_t vendor_id[3]; /* as a REQ's, the highest byte first */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t ack_delay;       /* 5 bits: 4.096 us << it */
	uint8_t failover;        /* 2 bits */
	uint8_t flow_control;    /* 1 bit */
	uint8_t rnr_retry_count; /* 3 bits */
	uint8_t srq;             /* 1 bit */
	uint64_t guid;           /* of the node that accepts */
	uint8_t private_data[CM_REP_PRIVATE];
};
WIRE_LAYOUT(cm_rep, 232);

#define CM_RTU_PRIVATE 224

/* RTU (section 12.6.9): the connection can be used. And DREP (12.6.11), which has the same fields:
 * it has ended. */
struct wire_cm_rtu {
	uint32_t local_id, remote_id;
	uint8_t private_data[CM_RTU_PRIVATE];
};
WIRE_LAYOUT(cm_rtu, 232);

#define CM_DREQ_PRIVATE 220

/* DREQ (section 12.6.10): ends a connection. */
struct wire_cm_dreq {
	uint32_t local_id, remote_id;
	uint32_t remote_qpn; /* 24 bits */
	uint8_t private_data[CM_DREQ_PRIVATE];
};
WIRE_LAYOUT(cm_dreq, 232);

/* The header before the program's private data in a request for a service of an IP port space. */
#define CM_IP_VERSION 0

struct wire_cm_ip {
	uint8_t version;    /* major and minor: CM_IP_VERSION */
	uint8_t ip_version; /* 4 bits: 4 or 6 */
	uint16_t src_port;
	uint8_t src[16], dst[16]; /* IPv4: the last four bytes, the rest 0 */
};
WIRE_LAYOUT(cm_ip, 36);

#endif
