/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of performance management: see perf.h.
 */
#include "wire/perf.h"

/* clang-format off */

#define THIS struct wire_perf_mad
static const struct wire_field perf_mad[] = {
	WIRE_NESTED(0, mad, mad),
	WIRE_RESERVED(192, 320),
	WIRE_BYTES(512, data),
};
WIRE_LAYOUT_DEFINE(perf_mad, perf_mad);
#undef THIS

#define THIS struct wire_port_counters
static const struct wire_field port_counters[] = {
	WIRE_RESERVED(0, 8),
	WIRE_INT(8, 8, port_select),
	WIRE_INT(16, 16, counter_select),
	WIRE_INT(32, 16, symbol_errors),
	WIRE_INT(48, 8, link_error_recovery),
	WIRE_INT(56, 8, link_downed),
	WIRE_INT(64, 16, rcv_errors),
	WIRE_INT(80, 16, rcv_remote_physical_errors),
	WIRE_INT(96, 16, rcv_switch_relay_errors),
	WIRE_INT(112, 16, xmit_discards),
	WIRE_INT(128, 8, xmit_constraint_errors),
	WIRE_INT(136, 8, rcv_constraint_errors),
	WIRE_INT(144, 8, counter_select2),
	WIRE_INT(152, 4, local_link_integrity_errors),
	WIRE_INT(156, 4, excessive_buffer_overrun_errors),
	WIRE_INT(160, 16, qp1_dropped),
	WIRE_INT(176, 16, vl15_dropped),
	WIRE_INT(192, 32, xmit_data),
	WIRE_INT(224, 32, rcv_data),
	WIRE_INT(256, 32, xmit_packets),
	WIRE_INT(288, 32, rcv_packets),
	WIRE_INT(320, 32, xmit_wait),
};
WIRE_LAYOUT_DEFINE(port_counters, port_counters);
#undef THIS

#define THIS struct wire_port_counters_extended
static const struct wire_field port_counters_extended[] = {
	WIRE_RESERVED(0, 8),
	WIRE_INT(8, 8, port_select),
	WIRE_INT(16, 16, counter_select),
	WIRE_INT(32, 32, counter_select2),
	WIRE_INT(64, 64, xmit_data),
	WIRE_INT(128, 64, rcv_data),
	WIRE_INT(192, 64, xmit_packets),
	WIRE_INT(256, 64, rcv_packets),
	WIRE_INT(320, 64, unicast_xmit_packets),
	WIRE_INT(384, 64, unicast_rcv_packets),
	WIRE_INT(448, 64, multicast_xmit_packets),
	WIRE_INT(512, 64, multicast_rcv_packets),
	WIRE_INT(576, 64, symbol_errors),
	WIRE_INT(640, 64, link_error_recovery),
	WIRE_INT(704, 64, link_downed),
	WIRE_INT(768, 64, rcv_errors),
	WIRE_INT(832, 64, rcv_remote_physical_errors),
	WIRE_INT(896, 64, rcv_switch_relay_errors),
	WIRE_INT(960, 64, xmit_discards),
	WIRE_INT(1024, 64, xmit_constraint_errors),
	WIRE_INT(1088, 64, rcv_constraint_errors),
	WIRE_INT(1152, 64, local_link_integrity_errors),
	WIRE_INT(1216, 64, excessive_buffer_overrun_errors),
	WIRE_INT(1280, 64, vl15_dropped),
	WIRE_INT(1344, 64, xmit_wait),
	WIRE_INT(1408, 64, qp1_dropped),
};
WIRE_LAYOUT_DEFINE(port_counters_extended, port_counters_extended);
#undef THIS

#define THIS struct wire_perf_details
#define DETAILS(bits)                     \
	WIRE_INT(0, 8, op_code),          \
	WIRE_INT(8, 8, port_select),      \
	WIRE_INT(16, 16, counter_select), \
	WIRE_ARRAY(32, bits, counter)
static const struct wire_field perf_details_2[] = { DETAILS(2) };
static const struct wire_field perf_details_16[] = { DETAILS(16) };
static const struct wire_field perf_details_32[] = { DETAILS(32) };
WIRE_LAYOUT_DEFINE(perf_details_2, perf_details_2);
WIRE_LAYOUT_DEFINE(perf_details_16, perf_details_16);
WIRE_LAYOUT_DEFINE(perf_details_32, perf_details_32);
#undef DETAILS
#undef THIS

/* clang-format on */
