/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The common MAD header and ClassPortInfo: see mad.h.
 */
#include "wire/mad.h"

/* clang-format off */

#define THIS struct wire_mad
static const struct wire_field mad[] = {
	WIRE_INT(0, 8, base_version),
	WIRE_INT(8, 8, mgmt_class),
	WIRE_INT(16, 8, class_version),
	WIRE_INT(24, 8, method),
	WIRE_INT(32, 16, status),
	WIRE_INT(48, 16, class_specific),
	WIRE_INT(64, 64, transaction_id),
	WIRE_INT(128, 16, attribute_id),
	WIRE_RESERVED(144, 16),
	WIRE_INT(160, 32, attribute_modifier),
};
WIRE_LAYOUT_DEFINE(mad, mad);
#undef THIS

#define THIS struct wire_class_port_info
static const struct wire_field class_port_info[] = {
	WIRE_INT(0, 8, base_version),
	WIRE_INT(8, 8, class_version),
	WIRE_INT(16, 16, capability_mask),
	WIRE_INT(32, 27, capability_mask2),
	WIRE_INT(59, 5, resp_time_value),
	WIRE_BYTES(64, redirect_gid),
	WIRE_INT(192, 8, redirect_tc),
	WIRE_INT(200, 4, redirect_sl),
	WIRE_INT(204, 20, redirect_fl),
	WIRE_INT(224, 16, redirect_lid),
	WIRE_INT(240, 16, redirect_pkey),
	WIRE_RESERVED(256, 8),
	WIRE_INT(264, 24, redirect_qp),
	WIRE_INT(288, 32, redirect_qkey),
	WIRE_BYTES(320, trap_gid),
	WIRE_INT(448, 8, trap_tc),
	WIRE_INT(456, 4, trap_sl),
	WIRE_INT(460, 20, trap_fl),
	WIRE_INT(480, 16, trap_lid),
	WIRE_INT(496, 16, trap_pkey),
	WIRE_INT(512, 8, trap_hl),
	WIRE_INT(520, 24, trap_qp),
	WIRE_INT(544, 32, trap_qkey),
};
WIRE_LAYOUT_DEFINE(class_port_info, class_port_info);
#undef THIS

/* clang-format on */

uint8_t wire_mad_response_method(uint8_t method)
{
	switch (method) {
	case MAD_GET:
	case MAD_SET:
		return MAD_GET_RESP;
	case MAD_TRAP:
		return MAD_TRAP_REPRESS;
	case MAD_GET_TRACE_TABLE:
		return MAD_GET_TABLE_RESP;
	case MAD_REPORT:
	case MAD_GET_TABLE:
	case MAD_GET_MULTI:
	case MAD_DELETE:
		return method | MAD_METHOD_RESPONSE;
	default:
		return 0;
	}
}
