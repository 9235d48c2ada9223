/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet management packet against libibumad's struct, offsets in the packet, and
 * attribute modifiers.
 */
#include <harness.h>
#include <infiniband/umad_sm.h>

#include "base/util.h"
#include "wire/notice.h"
#include "wire/smp.h"

CASE(the_packet_is_as_in_libibumad)
{
	static const struct wire_smp smp = { .mad = { .mgmt_class = MAD_CLASS_SUBN_DIRECTED,
		                                      .status = 0x001C,
		                                      .transaction_id = 0x1122334455667788 },
		                             .hop_pointer = 3,
		                             .hop_count = 7,
		                             .m_key = 0x8877665544332211,
		                             .dr_slid = 0xFFFF,
		                             .dr_dlid = 0x1234,
		                             .data = { 1, [63] = 2 },
		                             .initial_path = { 0, 3, [63] = 4 },
		                             .return_path = { 0, 5, [63] = 6 } };
	struct umad_smp theirs;

	assert_int_equal(wire_smp_bytes, sizeof(theirs));
	wire_smp_encode(&smp, (uint8_t *)&theirs);
	assert_int_equal(theirs.mgmt_class, UMAD_CLASS_SUBN_DIRECTED_ROUTE);
	assert_int_equal(be16toh(theirs.status), smp.mad.status);
	assert_int_equal(theirs.hop_ptr, smp.hop_pointer);
	assert_int_equal(theirs.hop_cnt, smp.hop_count);
	assert_true(be64toh(theirs.tid) == smp.mad.transaction_id);
	assert_true(be64toh(theirs.mkey) == smp.m_key);
	assert_int_equal(be16toh(theirs.dr_slid), smp.dr_slid);
	assert_int_equal(be16toh(theirs.dr_dlid), smp.dr_dlid);
	assert_memory_equal(theirs.data, smp.data, sizeof(smp.data));
	assert_memory_equal(theirs.initial_path, smp.initial_path, sizeof(smp.initial_path));
	assert_memory_equal(theirs.return_path, smp.return_path, sizeof(smp.return_path));
}

CASE(the_direction_is_no_part_of_the_status)
{
	static const struct wire_smp smp = { .mad = { .status = 0xFFFF }, .direction = 1 };
	struct umad_smp theirs;
	struct wire_smp back;

	wire_smp_encode(&smp, (uint8_t *)&theirs);
	assert_int_equal(be16toh(theirs.status), UMAD_SMP_DIRECTION | 0x7FFF);
	wire_smp_decode((uint8_t *)&theirs, &back);
	assert_int_equal(back.mad.status, 0x7FFF);
	assert_int_equal(back.direction, 1);
	assert_int_equal(SMP_STATUS_DIRECTION, UMAD_SMP_DIRECTION);
}

CASE(what_changes_at_each_hop_is_found_in_the_packet)
{
	assert_int_equal(SMP_AT_STATUS, offsetof(struct umad_smp, status));
	assert_int_equal(SMP_AT_HOP_POINTER, offsetof(struct umad_smp, hop_ptr));
	assert_int_equal(SMP_AT_HOP_COUNT, offsetof(struct umad_smp, hop_cnt));
	assert_int_equal(SMP_AT_DR_SLID, offsetof(struct umad_smp, dr_slid));
	assert_int_equal(SMP_AT_DR_DLID, offsetof(struct umad_smp, dr_dlid));
	assert_int_equal(SMP_AT_DATA, offsetof(struct umad_smp, data));
	assert_int_equal(SMP_AT_INITIAL_PATH, offsetof(struct umad_smp, initial_path));
	assert_int_equal(SMP_AT_RETURN_PATH, offsetof(struct umad_smp, return_path));
}

CASE(the_numbers_are_as_in_libibumad)
{
	static const struct {
		unsigned ours, theirs;
	} row[] = {
		{ SMP_ATTR_NODE_DESCRIPTION, UMAD_SM_ATTR_NODE_DESC },
		{ SMP_ATTR_NODE_INFO, UMAD_SM_ATTR_NODE_INFO },
		{ SMP_ATTR_SWITCH_INFO, UMAD_SM_ATTR_SWITCH_INFO },
		{ SMP_ATTR_GUID_INFO, UMAD_SM_ATTR_GUID_INFO },
		{ SMP_ATTR_PORT_INFO, UMAD_SM_ATTR_PORT_INFO },
		{ SMP_ATTR_PKEY_TABLE, UMAD_SM_ATTR_PKEY_TABLE },
		{ SMP_ATTR_SL_TO_VL, UMAD_SM_ATTR_SLVL_TABLE },
		{ SMP_ATTR_VL_ARBITRATION, UMAD_SM_ATTR_VL_ARB_TABLE },
		{ SMP_ATTR_LINEAR_FT, UMAD_SM_ATTR_LINEAR_FT },
		{ SMP_ATTR_RANDOM_FT, UMAD_SM_ATTR_RANDOM_FT },
		{ SMP_ATTR_MULTICAST_FT, UMAD_SM_ATTR_MCAST_FT },
		{ SMP_ATTR_SM_INFO, UMAD_SM_ATTR_SM_INFO },
		{ SMP_ATTR_VENDOR_DIAG, UMAD_SM_ATTR_VENDOR_DIAG },
		{ SMP_ATTR_LED_INFO, UMAD_SM_ATTR_LED_INFO },
		{ SMP_ATTR_PORT_INFO_EXTENDED, UMAD_SM_ATTR_PORT_INFO_EXT },
		{ TRAP_GID_IN_SERVICE, UMAD_SM_GID_IN_SERVICE_TRAP },
		{ TRAP_GID_OUT_OF_SERVICE, UMAD_SM_GID_OUT_OF_SERVICE_TRAP },
		{ TRAP_MGID_CREATED, UMAD_SM_MGID_CREATED_TRAP },
		{ TRAP_MGID_DELETED, UMAD_SM_MGID_DESTROYED_TRAP },
		{ TRAP_LINK_STATE_CHANGED, UMAD_SM_LINK_STATE_CHANGED_TRAP },
		{ TRAP_LOCAL_CHANGES, UMAD_SM_LOCAL_CHANGES_TRAP },
		{ TRAP_BAD_MKEY, UMAD_SM_BAD_MKEY_TRAP },
		{ TRAP_BAD_PKEY, UMAD_SM_BAD_PKEY_TRAP },
		{ TRAP_BAD_QKEY, UMAD_SM_BAD_QKEY_TRAP },
		{ TRAP_BAD_SWITCH_PKEY, UMAD_SM_BAD_SWITCH_PKEY_TRAP },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++)
		assert_int_equal(row[i].ours, row[i].theirs);
}

CASE(modifiers_hold_two_numbers)
{
	assert_int_equal(smp_pkey_modifier(0x12, 0x3456), 0x00123456);
	assert_int_equal(smp_pkey_port(0x00123456), 0x12);
	assert_int_equal(smp_pkey_block(0x00123456), 0x3456);
	assert_int_equal(smp_sl_to_vl_modifier(0x12, 0x34), 0x1234);
	assert_int_equal(smp_sl_to_vl_in_port(0x1234), 0x12);
	assert_int_equal(smp_sl_to_vl_out_port(0x1234), 0x34);
	assert_int_equal(smp_vl_arb_modifier(3, 0x12), 0x00030012);
	assert_int_equal(smp_vl_arb_part(0x00030012), 3);
	assert_int_equal(smp_vl_arb_port(0x00030012), 0x12);
	assert_int_equal(smp_mft_modifier(0xA, 0x123), 0xA0000123);
	assert_int_equal(smp_mft_position(0xA0000123), 0xA);
	assert_int_equal(smp_mft_block(0xA0000123), 0x123);
}
