/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of congestion control: see cc.h.
 */
#include "wire/cc.h"

/* clang-format off */

#define THIS struct wire_cc_mad
static const struct wire_field cc_mad[] = {
	WIRE_NESTED(0, mad, mad),
	WIRE_INT(192, 64, cc_key),
	WIRE_BYTES(256, data),
};
WIRE_LAYOUT_DEFINE(cc_mad, cc_mad);
#undef THIS

#define THIS struct wire_cc_info
static const struct wire_field cc_info[] = {
	WIRE_INT(0, 16, congestion_info),
	WIRE_INT(16, 8, control_table_cap),
};
WIRE_LAYOUT_DEFINE(cc_info, cc_info);
#undef THIS

#define THIS struct wire_cc_key_info
static const struct wire_field cc_key_info[] = {
	WIRE_INT(0, 64, key),
	WIRE_INT(64, 1, protect_bit),
	WIRE_RESERVED(65, 15),
	WIRE_INT(80, 16, lease_period),
	WIRE_INT(96, 16, violations),
};
WIRE_LAYOUT_DEFINE(cc_key_info, cc_key_info);
#undef THIS

#define THIS struct wire_cc_log_switch
static const struct wire_field cc_log_switch[] = {
	WIRE_INT(0, 8, type),
	WIRE_INT(8, 8, flags),
	WIRE_INT(16, 16, events),
	WIRE_INT(32, 32, timestamp),
};
WIRE_LAYOUT_DEFINE(cc_log_switch, cc_log_switch);
#undef THIS

#define THIS struct wire_cc_log_ca
static const struct wire_field cc_log_ca[] = {
	WIRE_INT(0, 8, type),
	WIRE_INT(8, 8, flags),
	WIRE_INT(16, 16, events),
	WIRE_INT(32, 16, event_map),
	WIRE_RESERVED(48, 16),
	WIRE_INT(64, 32, timestamp),
};
WIRE_LAYOUT_DEFINE(cc_log_ca, cc_log_ca);
#undef THIS

#define THIS struct wire_cc_timestamp
static const struct wire_field cc_timestamp[] = {
	WIRE_INT(0, 32, timestamp),
};
WIRE_LAYOUT_DEFINE(cc_timestamp, cc_timestamp);
#undef THIS

/* clang-format on */
