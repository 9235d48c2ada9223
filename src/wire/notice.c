/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of Notice, its details and InformInfo: see notice.h.
 */
#include "wire/notice.h"

/* clang-format off */

#define THIS struct wire_notice
static const struct wire_field notice[] = {
	WIRE_INT(0, 1, is_generic),
	WIRE_INT(1, 7, type),
	WIRE_INT(8, 24, producer_type),
	WIRE_INT(32, 16, trap_number),
	WIRE_INT(48, 16, issuer_lid),
	WIRE_INT(64, 1, toggle),
	WIRE_INT(65, 15, count),
	WIRE_BYTES(80, details),
	WIRE_BYTES(512, issuer_gid),
};
WIRE_LAYOUT_DEFINE(notice, notice);

const struct wire_layout wire_smp_notice_layout = {
	.name = "smp_notice",
	.field = notice,
	.n_fields = ARRAY_SIZE(notice) - 1, /* no issuer_gid */
	.bytes = wire_smp_notice_bytes,
	.host_bytes = sizeof(THIS),
};
#undef THIS

#define THIS struct wire_trap_gid
static const struct wire_field trap_gid[] = {
	WIRE_RESERVED(0, 48),
	WIRE_BYTES(48, gid),
	WIRE_RESERVED(176, 256),
};
WIRE_LAYOUT_DEFINE(trap_gid, trap_gid);
#undef THIS

#define THIS struct wire_trap_link_state
static const struct wire_field trap_link_state[] = {
	WIRE_INT(0, 16, lid),
	WIRE_RESERVED(16, 416),
};
WIRE_LAYOUT_DEFINE(trap_link_state, trap_link_state);
#undef THIS

#define THIS struct wire_trap_local_changes
static const struct wire_field trap_local_changes[] = {
	WIRE_RESERVED(0, 16),
	WIRE_INT(16, 16, lid),
	WIRE_RESERVED(32, 15),
	WIRE_INT(47, 1, other_local_changes),
	WIRE_INT(48, 32, capability_mask),
	WIRE_RESERVED(80, 10),
	WIRE_INT(90, 6, change_flags),
	WIRE_INT(96, 16, capability_mask2),
	WIRE_RESERVED(112, 320),
};
WIRE_LAYOUT_DEFINE(trap_local_changes, trap_local_changes);
#undef THIS

#define THIS struct wire_trap_bad_mkey
static const struct wire_field trap_bad_mkey[] = {
	WIRE_RESERVED(0, 16),
	WIRE_INT(16, 16, lid),
	WIRE_INT(32, 16, dr_slid),
	WIRE_INT(48, 8, method),
	WIRE_RESERVED(56, 8),
	WIRE_INT(64, 16, attribute_id),
	WIRE_INT(80, 32, attribute_modifier),
	WIRE_INT(112, 64, m_key),
	WIRE_RESERVED(176, 8),
	WIRE_INT(184, 1, dr_notice),
	WIRE_INT(185, 1, dr_path_truncated),
	WIRE_INT(186, 6, dr_hop_count),
	WIRE_BYTES(192, dr_return_path),
};
WIRE_LAYOUT_DEFINE(trap_bad_mkey, trap_bad_mkey);
#undef THIS

#define THIS struct wire_trap_bad_key
static const struct wire_field trap_bad_key[] = {
	WIRE_RESERVED(0, 16),
	WIRE_INT(16, 16, lid1),
	WIRE_INT(32, 16, lid2),
	WIRE_INT(48, 32, key),
	WIRE_INT(80, 4, sl),
	WIRE_RESERVED(84, 4),
	WIRE_INT(88, 24, qp1),
	WIRE_RESERVED(112, 8),
	WIRE_INT(120, 24, qp2),
	WIRE_BYTES(144, gid1),
	WIRE_BYTES(272, gid2),
	WIRE_RESERVED(400, 32),
};
WIRE_LAYOUT_DEFINE(trap_bad_key, trap_bad_key);
#undef THIS

#define THIS struct wire_trap_bad_switch_pkey
static const struct wire_field trap_bad_switch_pkey[] = {
	WIRE_INT(0, 16, data_valid),
	WIRE_INT(16, 16, lid1),
	WIRE_INT(32, 16, lid2),
	WIRE_INT(48, 16, pkey),
	WIRE_INT(64, 4, sl),
	WIRE_RESERVED(68, 4),
	WIRE_INT(72, 24, qp1),
	WIRE_RESERVED(96, 8),
	WIRE_INT(104, 24, qp2),
	WIRE_BYTES(128, gid1),
	WIRE_BYTES(256, gid2),
	WIRE_INT(384, 16, switch_lid),
	WIRE_INT(400, 8, port),
	WIRE_RESERVED(408, 24),
};
WIRE_LAYOUT_DEFINE(trap_bad_switch_pkey, trap_bad_switch_pkey);
#undef THIS

#define THIS struct wire_inform_info
static const struct wire_field inform_info[] = {
	WIRE_BYTES(0, gid),
	WIRE_INT(128, 16, lid_range_begin),
	WIRE_INT(144, 16, lid_range_end),
	WIRE_RESERVED(160, 16),
	WIRE_INT(176, 8, is_generic),
	WIRE_INT(184, 8, subscribe),
	WIRE_INT(192, 16, type),
	WIRE_INT(208, 16, trap_number),
	WIRE_INT(224, 24, qpn),
	WIRE_RESERVED(248, 3),
	WIRE_INT(251, 5, resp_time_value),
	WIRE_RESERVED(256, 8),
	WIRE_INT(264, 24, producer_type),
};
WIRE_LAYOUT_DEFINE(inform_info, inform_info);
#undef THIS

/* clang-format on */
