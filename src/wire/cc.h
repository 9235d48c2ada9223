/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Congestion control: its MAD and its attributes (InfiniBand specification volume 1, annex A10).
 * The class has ClassPortInfo (mad.h), too. Settings are kept as the bytes that they are in
 * packets: no link is ever congested here, so nobody reads them but managers. Fields are in host
 * order. Pure functions.
 */
#ifndef WIRE_CC_H
#define WIRE_CC_H

#include "wire/mad.h"

#define MAD_CLASS_CC    0x21
#define MAD_VERSION_CC  2
#define CC_LOG_BYTES    224 /* data of CongestionLog, which begins where that of others has none */
#define CC_DATA_BYTES   192
#define CC_AT_DATA      32 /* where it begins in wire_cc_mad.data */
#define CC_PORT_BLOCK   48 /* SwitchPortCongestionSetting: ports of a block */
#define CC_PORT_BYTES   4
#define CC_TABLE_BLOCK  64 /* CongestionControlTable: entries of a block */
#define CC_TABLE_BYTES  (4 + 2 * CC_TABLE_BLOCK)
#define CC_TIMESTAMP_NS 1024

struct wire_cc_mad {
	struct wire_mad mad;
	uint64_t cc_key;
	uint8_t data[CC_LOG_BYTES];
};
WIRE_LAYOUT(cc_mad, MAD_BYTES);

enum cc_attr {
	CC_ATTR_INFO = 0x0011,
	CC_ATTR_KEY_INFO = 0x0012,
	CC_ATTR_LOG = 0x0013,
	CC_ATTR_SWITCH_SETTING = 0x0014,
	CC_ATTR_SWITCH_PORT_SETTING = 0x0015,
	CC_ATTR_CA_SETTING = 0x0016,
	CC_ATTR_CONTROL_TABLE = 0x0017,
	CC_ATTR_TIMESTAMP = 0x0018,
};

/* CongestionInfo. */
struct wire_cc_info {
	uint16_t congestion_info;
	uint8_t control_table_cap; /* blocks of CongestionControlTable */
};
WIRE_LAYOUT(cc_info, 3);

/* CongestionKeyInfo. */
struct wire_cc_key_info {
	uint64_t key;
	uint8_t protect_bit;
	uint16_t lease_period; /* s; 0: for ever */
	uint16_t violations;
};
WIRE_LAYOUT(cc_key_info, 14);

enum cc_log_type { CC_LOG_SWITCH = 1, CC_LOG_CA };

/* CongestionLog of a switch, and of a CA, without events. */
struct wire_cc_log_switch {
	uint8_t type; /* enum cc_log_type */
	uint8_t flags;
	uint16_t events;
	uint32_t timestamp;
};
WIRE_LAYOUT(cc_log_switch, 8);

struct wire_cc_log_ca {
	uint8_t type; /* enum cc_log_type */
	uint8_t flags;
	uint16_t events, event_map;
	uint32_t timestamp;
};
WIRE_LAYOUT(cc_log_ca, 12);

/* TimeStamp, in units of CC_TIMESTAMP_NS. */
struct wire_cc_timestamp {
	uint32_t timestamp;
};
WIRE_LAYOUT(cc_timestamp, 4);

#endif
