/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Performance management: its MAD, PortSamplesControl and Result, PortCounters,
 * PortCountersExtended and the optional attributes (InfiniBand specification volume 1,
 * sections 16.1.1, 16.1.3, 16.1.4 and 16.1.4.11). The class has ClassPortInfo (mad.h), too. Data
 * counters count 32-bit words. Fields are in host order. Pure functions.
 */
#ifndef WIRE_PERF_H
#define WIRE_PERF_H

#include "wire/mad.h"

#define PERF_DATA_BYTES      192
#define PERF_PORT_SELECT_ALL 255
#define PERF_DETAILS         16 /* counters of an optional attribute */
#define PERF_SAMPLES         15 /* counters of a sample */
#define PERF_AT_PORT_SELECT  1  /* in the data of all attributes with counters */

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

/* PortSamplesControl: SampleStatus, CounterWidth, the bits of a counter's mask. */
enum {
	PERF_SAMPLE_DONE = 0,
	PERF_SAMPLE_STARTED = 1, /* SampleStart is not over */
	PERF_SAMPLE_RUNNING = 2,
	PERF_SAMPLE_WIDTH_32 = 4,
	PERF_SAMPLE_MANDATORY = 1,
};

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

/* Which counter of an optional attribute is which. */
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

#define LAYOUTS "wire/perf.def"
#include "wire/declare.def"

#endif
