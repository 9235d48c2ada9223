/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of subnet administration's MAD and of MCMemberRecord: see sa.h.
 */
#include "wire/sa.h"

/* clang-format off */

#define THIS struct wire_rmpp
static const struct wire_field rmpp[] = {
	WIRE_INT(0, 8, version),
	WIRE_INT(8, 8, type),
	WIRE_INT(16, 5, resp_time),
	WIRE_INT(21, 3, flags),
	WIRE_INT(24, 8, status),
	WIRE_INT(32, 32, data1),
	WIRE_INT(64, 32, data2),
};
WIRE_LAYOUT_DEFINE(rmpp, rmpp);
#undef THIS

#define THIS struct wire_sa_mad
static const struct wire_field sa_mad[] = {
	WIRE_NESTED(0, mad, mad),
	WIRE_NESTED(192, rmpp, rmpp),
	WIRE_INT(288, 64, sm_key),
	WIRE_INT(352, 16, attribute_offset),
	WIRE_RESERVED(368, 16),
	WIRE_INT(384, 64, component_mask),
	WIRE_BYTES(448, data),
};
WIRE_LAYOUT_DEFINE(sa_mad, sa_mad);
#undef THIS

#define THIS struct wire_mcmember
static const struct wire_field mcmember[] = {
	WIRE_BYTES(0, mgid),
	WIRE_BYTES(128, port_gid),
	WIRE_INT(256, 32, qkey),
	WIRE_INT(288, 16, mlid),
	WIRE_INT(304, 2, mtu_selector),
	WIRE_INT(306, 6, mtu),
	WIRE_INT(312, 8, tclass),
	WIRE_INT(320, 16, pkey),
	WIRE_INT(336, 2, rate_selector),
	WIRE_INT(338, 6, rate),
	WIRE_INT(344, 2, life_selector),
	WIRE_INT(346, 6, life),
	WIRE_INT(352, 4, sl),
	WIRE_INT(356, 20, flow_label),
	WIRE_INT(376, 8, hop_limit),
	WIRE_INT(384, 4, scope),
	WIRE_INT(388, 4, join_state),
	WIRE_INT(392, 1, proxy_join),
	WIRE_RESERVED(393, 55),
};
WIRE_LAYOUT_DEFINE(mcmember, mcmember);
#undef THIS

/* clang-format on */
