/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet management packet: see smp.h.
 */
#include "wire/smp.h"

/* clang-format off */

#define THIS struct wire_smp
static const struct wire_field smp[] = {
	WIRE_INT(0, 8, mad.base_version),
	WIRE_INT(8, 8, mad.mgmt_class),
	WIRE_INT(16, 8, mad.class_version),
	WIRE_INT(24, 8, mad.method),
	WIRE_INT(32, 1, direction),
	WIRE_INT(33, 15, mad.status),
	WIRE_INT(48, 8, hop_pointer),
	WIRE_INT(56, 8, hop_count),
	WIRE_INT(64, 64, mad.transaction_id),
	WIRE_INT(128, 16, mad.attribute_id),
	WIRE_RESERVED(144, 16),
	WIRE_INT(160, 32, mad.attribute_modifier),
	WIRE_INT(192, 64, m_key),
	WIRE_INT(256, 16, dr_slid),
	WIRE_INT(272, 16, dr_dlid),
	WIRE_RESERVED(288, 224),
	WIRE_BYTES(512, data),
	WIRE_BYTES(1024, initial_path),
	WIRE_BYTES(1536, return_path),
};
WIRE_LAYOUT_DEFINE(smp, smp);
#undef THIS

/* clang-format on */
