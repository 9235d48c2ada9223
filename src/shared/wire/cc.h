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

enum cc_log_type { CC_LOG_SWITCH = 1, CC_LOG_CA };

#define LAYOUTS "wire/cc.def"
#include "wire/declare.def"

#endif
