/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Performance management: its MAD, PortCounters and PortCountersExtended (InfiniBand
 * specification volume 1, sections 16.1.1, 16.1.3.5 and 16.1.4.11). The class has
 * ClassPortInfo (mad.h), too. Data counters count 32-bit words. Fields are in host order. Pure
 * functions.
 */
#ifndef WIRE_PERF_H
#define WIRE_PERF_H

#include "wire/mad.h"

#define PERF_DATA_BYTES      192
#define PERF_PORT_SELECT_ALL 255
#define PERF_AT_PORT_SELECT  1 /* in the data of all attributes with counters */

struct wire_perf_mad {
	struct wire_mad mad;
	uint8_t data[PERF_DATA_BYTES];
};
WIRE_LAYOUT(perf_mad, MAD_BYTES);

enum perf_attr {
	PERF_ATTR_PORT_SAMPLES_CONTROL = 0x0010,
	PERF_ATTR_PORT_SAMPLES_RESULT = 0x0011,
	PERF_ATTR_PORT_COUNTERS = 0x0012,
	PERF_ATTR_RCV_ERROR_DETAILS = 0x0015,
	PERF_ATTR_XMIT_DISCARD_DETAILS = 0x0016,
	PERF_ATTR_OP_RCV_COUNTERS = 0x0017,
	PERF_ATTR_FLOW_CTL_COUNTERS = 0x0018,
	PERF_ATTR_VL_OP_PACKETS = 0x0019,
	PERF_ATTR_VL_OP_DATA = 0x001A,
	PERF_ATTR_VL_XMIT_FLOW_CTL_UPDATE_ERRORS = 0x001B,
	PERF_ATTR_VL_XMIT_WAIT_COUNTERS = 0x001C,
	PERF_ATTR_PORT_COUNTERS_EXTENDED = 0x001D,
	PERF_ATTR_SW_PORT_VL_CONGESTION = 0x0030,
	PERF_ATTR_RCV_CON_CTRL = 0x0031,
	PERF_ATTR_SL_RCV_FECN = 0x0032,
	PERF_ATTR_SL_RCV_BECN = 0x0033,
	PERF_ATTR_XMIT_CON_CTRL = 0x0034,
	PERF_ATTR_VL_XMIT_TIME_CONG = 0x0035,
	PERF_ATTR_XMIT_DATA_SL = 0x0036,
	PERF_ATTR_RCV_DATA_SL = 0x0037,
};

/* ClassPortInfo:CapabilityMask and CapabilityMask2 of this class. */
enum {
	PERF_CAP_ALL_PORT_SELECT = 1 << 8,
	PERF_CAP_EXTENDED_WIDTH = 1 << 9,          /* all of PortCountersExtended */
	PERF_CAP_EXTENDED_WIDTH_NO_IETF = 1 << 10, /* without unicast and multicast packets */
	PERF_CAP_XMIT_WAIT = 1 << 12,
	PERF_CAP_QP1_DROPPED = 1 << 15,
	PERF_CAP2_EXTENDED_ERRORS = 1 << 1, /* error counters in PortCountersExtended */
};

/* PortCounters: counters stop at their largest value. */
struct wire_port_counters {
	uint8_t port_select;
	uint16_t counter_select; /* Set: the counters to write, PERF_SELECT_X */
	uint16_t symbol_errors;
	uint8_t link_error_recovery, link_downed;
	uint16_t rcv_errors, rcv_remote_physical_errors, rcv_switch_relay_errors, xmit_discards;
	uint8_t xmit_constraint_errors, rcv_constraint_errors;
	uint8_t counter_select2;                                              /* PERF_SELECT2_X */
	uint8_t local_link_integrity_errors, excessive_buffer_overrun_errors; /* 4 bits each */
	uint16_t qp1_dropped, vl15_dropped;
	uint32_t xmit_data, rcv_data, xmit_packets, rcv_packets, xmit_wait;
};
WIRE_LAYOUT(port_counters, 44);

/* PortCounters:CounterSelect and CounterSelect2. */
enum {
	PERF_SELECT_SYMBOL_ERRORS = 1 << 0,
	PERF_SELECT_LINK_ERROR_RECOVERY = 1 << 1,
	PERF_SELECT_LINK_DOWNED = 1 << 2,
	PERF_SELECT_RCV_ERRORS = 1 << 3,
	PERF_SELECT_RCV_REMOTE_PHYSICAL_ERRORS = 1 << 4,
	PERF_SELECT_RCV_SWITCH_RELAY_ERRORS = 1 << 5,
	PERF_SELECT_XMIT_DISCARDS = 1 << 6,
	PERF_SELECT_XMIT_CONSTRAINT_ERRORS = 1 << 7,
	PERF_SELECT_RCV_CONSTRAINT_ERRORS = 1 << 8,
	PERF_SELECT_LOCAL_LINK_INTEGRITY_ERRORS = 1 << 9,
	PERF_SELECT_EXCESSIVE_BUFFER_OVERRUN_ERRORS = 1 << 10,
	PERF_SELECT_VL15_DROPPED = 1 << 11,
	PERF_SELECT_XMIT_DATA = 1 << 12,
	PERF_SELECT_RCV_DATA = 1 << 13,
	PERF_SELECT_XMIT_PACKETS = 1 << 14,
	PERF_SELECT_RCV_PACKETS = 1 << 15,
	PERF_SELECT2_XMIT_WAIT = 1 << 0,
};

/*
 * The optional attributes (sections 16.1.4.1 to 16.1.4.10 and annex A10): up to sixteen counters of
 * one width, which stop at their largest value: one for each VL or SL, or as struct perf_counter
 * has them. There is a layout for each width.
 */
#define PERF_DETAILS 16

struct wire_perf_details {
	uint8_t op_code; /* of the packets that PERF_ATTR_OP_RCV_COUNTERS and _VL_OP_X count */
	uint8_t port_select;
	uint16_t counter_select; /* Set: a bit for each counter */
	uint32_t counter[PERF_DETAILS];
};
WIRE_LAYOUT_OF(perf_details_2, perf_details, 8);
WIRE_LAYOUT_OF(perf_details_16, perf_details, 36);
WIRE_LAYOUT_OF(perf_details_32, perf_details, 68);

/* Which counter is which, by attribute. */
enum perf_counter {
	PERF_RCV_LOCAL_PHYSICAL = 0,
	PERF_RCV_MALFORMED,
	PERF_RCV_BUFFER_OVERRUN,
	PERF_RCV_DLID_MAPPING,
	PERF_RCV_VL_MAPPING,
	PERF_RCV_LOOPING,
	PERF_XMIT_INACTIVE = 0,
	PERF_XMIT_NEIGHBOR_MTU,
	PERF_XMIT_SW_LIFETIME,
	PERF_XMIT_SW_HOQ_LIFETIME,
	PERF_OP_RCV_PACKETS = 0,
	PERF_OP_RCV_DATA,
};

/* PortCountersExtended: counters wrap. */
struct wire_port_counters_extended {
	uint8_t port_select;
	uint16_t counter_select; /* PERF_EXT_SELECT_X */
	uint32_t counter_select2;
	uint64_t xmit_data, rcv_data, xmit_packets, rcv_packets;
	uint64_t unicast_xmit_packets, unicast_rcv_packets;
	uint64_t multicast_xmit_packets, multicast_rcv_packets;
	/* only with PERF_CAP2_EXTENDED_ERRORS */
	uint64_t symbol_errors, link_error_recovery, link_downed;
	uint64_t rcv_errors, rcv_remote_physical_errors, rcv_switch_relay_errors, xmit_discards;
	uint64_t xmit_constraint_errors, rcv_constraint_errors;
	uint64_t local_link_integrity_errors, excessive_buffer_overrun_errors;
	uint64_t vl15_dropped, xmit_wait, qp1_dropped;
};
WIRE_LAYOUT(port_counters_extended, 184);

/* PortCountersExtended:CounterSelect. */
enum {
	PERF_EXT_SELECT_XMIT_DATA = 1 << 0,
	PERF_EXT_SELECT_RCV_DATA = 1 << 1,
	PERF_EXT_SELECT_XMIT_PACKETS = 1 << 2,
	PERF_EXT_SELECT_RCV_PACKETS = 1 << 3,
	PERF_EXT_SELECT_UNICAST_XMIT_PACKETS = 1 << 4,
	PERF_EXT_SELECT_UNICAST_RCV_PACKETS = 1 << 5,
	PERF_EXT_SELECT_MULTICAST_XMIT_PACKETS = 1 << 6,
	PERF_EXT_SELECT_MULTICAST_RCV_PACKETS = 1 << 7,
};

#endif
