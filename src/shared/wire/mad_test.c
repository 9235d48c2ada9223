/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The common header and ClassPortInfo against libibumad's structs, the numbers against its
 * enumerations, and the response methods.
 */
#include <harness.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_types.h>

#include "base/util.h"
#include "wire/mad.h"

CASE(the_header_is_as_in_libibumad)
{
	static const struct wire_mad mad = { .base_version = MAD_BASE_VERSION,
		                             .mgmt_class = MAD_CLASS_SUBN_ADM,
		                             .class_version = MAD_VERSION_SUBN_ADM,
		                             .method = MAD_GET_TABLE,
		                             .status = 0x1234,
		                             .class_specific = 0x5678,
		                             .transaction_id = 0x123456789ABCDEF0,
		                             .attribute_id = MAD_ATTR_INFORM_INFO,
		                             .attribute_modifier = 0xFEDCBA98 };
	struct umad_hdr theirs;

	assert_int_equal(wire_mad_bytes, sizeof(theirs));
	wire_mad_encode(&mad, (uint8_t *)&theirs);
	assert_int_equal(theirs.base_version, UMAD_BASE_VERSION);
	assert_int_equal(theirs.mgmt_class, UMAD_CLASS_SUBN_ADM);
	assert_int_equal(theirs.class_version, UMAD_SA_CLASS_VERSION);
	assert_int_equal(theirs.method, UMAD_SA_METHOD_GET_TABLE);
	assert_int_equal(be16toh(theirs.status), mad.status);
	assert_int_equal(be16toh(theirs.class_specific), mad.class_specific);
	assert_true(be64toh(theirs.tid) == mad.transaction_id);
	assert_int_equal(be16toh(theirs.attr_id), UMAD_ATTR_INFORM_INFO);
	assert_int_equal(be32toh(theirs.attr_mod), mad.attribute_modifier);
	assert_int_equal(theirs.resv, 0);
}

CASE(class_port_info_is_as_in_libibumad)
{
	static const struct wire_class_port_info info = { .capability_mask = CLASS_CAP_MASK2,
		                                          .capability_mask2 = 0x7654321,
		                                          .resp_time_value = 0x12,
		                                          .redirect_lid = 0x1234,
		                                          .trap_hl = 0x56,
		                                          .trap_qp = 0x789ABC,
		                                          .trap_qkey = 0x80010000 };
	struct umad_class_port_info theirs;

	assert_int_equal(wire_class_port_info_bytes, sizeof(theirs));
	wire_class_port_info_encode(&info, (uint8_t *)&theirs);
	assert_int_equal(be16toh(theirs.cap_mask), info.capability_mask);
	assert_int_equal(umad_class_cap_mask2(&theirs), info.capability_mask2);
	assert_int_equal(umad_class_resp_time(&theirs), info.resp_time_value);
	assert_int_equal(be16toh(theirs.redir_lid), info.redirect_lid);
	assert_int_equal(be32toh(theirs.trap_hl_qp), 0x56789ABC);
	assert_int_equal(be32toh(theirs.trap_qkey), info.trap_qkey);
}

CASE(the_numbers_are_as_in_libibumad)
{
	static const struct {
		unsigned ours, theirs;
	} row[] = {
		{ MAD_CLASS_SUBN_LID, UMAD_CLASS_SUBN_LID_ROUTED },
		{ MAD_CLASS_SUBN_DIRECTED, UMAD_CLASS_SUBN_DIRECTED_ROUTE },
		{ MAD_CLASS_PERF, UMAD_CLASS_PERF_MGMT },
		{ MAD_CLASS_DEV_MGT, UMAD_CLASS_DEVICE_MGMT },
		{ MAD_CLASS_COM_MGT, UMAD_CLASS_CM },
		{ MAD_CLASS_SNMP, UMAD_CLASS_SNMP },
		{ MAD_CLASS_BM, UMAD_CLASS_BM },
		{ MAD_CLASS_VENDOR_FIRST, UMAD_CLASS_VENDOR_RANGE1_START },
		{ MAD_CLASS_VENDOR_LAST, UMAD_CLASS_VENDOR_RANGE1_END },
		{ MAD_CLASS_DEV_ADM, UMAD_CLASS_DEVICE_ADM },
		{ MAD_CLASS_BIS, UMAD_CLASS_BIS },
		{ MAD_CLASS_VENDOR2_FIRST, UMAD_CLASS_VENDOR_RANGE2_START },
		{ MAD_CLASS_VENDOR2_LAST, UMAD_CLASS_VENDOR_RANGE2_END },
		{ MAD_GET, UMAD_METHOD_GET },
		{ MAD_SET, UMAD_METHOD_SET },
		{ MAD_SEND, UMAD_METHOD_SEND },
		{ MAD_TRAP, UMAD_METHOD_TRAP },
		{ MAD_REPORT, UMAD_METHOD_REPORT },
		{ MAD_TRAP_REPRESS, UMAD_METHOD_TRAP_REPRESS },
		{ MAD_METHOD_RESPONSE, UMAD_METHOD_RESP_MASK },
		{ MAD_GET_RESP, UMAD_METHOD_GET_RESP },
		{ MAD_REPORT_RESP, UMAD_METHOD_REPORT_RESP },
		{ MAD_GET_TRACE_TABLE, UMAD_SA_METHOD_GET_TRACE_TABLE },
		{ MAD_STATUS_BUSY, UMAD_STATUS_BUSY },
		{ MAD_STATUS_REDIRECT, UMAD_STATUS_REDIRECT },
		{ MAD_STATUS_BAD_VERSION, UMAD_STATUS_BAD_VERSION },
		{ MAD_STATUS_BAD_METHOD, UMAD_STATUS_METHOD_NOT_SUPPORTED },
		{ MAD_STATUS_BAD_METHOD_ATTRIBUTE, UMAD_STATUS_ATTR_NOT_SUPPORTED },
		{ MAD_STATUS_BAD_FIELD, UMAD_STATUS_INVALID_ATTR_VALUE },
		{ MAD_STATUS_CODE_MASK, UMAD_STATUS_INVALID_FIELD_MASK },
		{ MAD_STATUS_CLASS_MASK, UMAD_STATUS_CLASS_MASK },
		{ MAD_ATTR_CLASS_PORT_INFO, UMAD_ATTR_CLASS_PORT_INFO },
		{ MAD_ATTR_NOTICE, UMAD_ATTR_NOTICE },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++)
		assert_int_equal(row[i].ours, row[i].theirs);
}

CASE(each_request_method_has_its_response_method)
{
	static const struct {
		uint8_t request, response;
	} row[] = {
		{ MAD_GET, UMAD_METHOD_GET_RESP },
		{ MAD_SET, UMAD_METHOD_GET_RESP },
		{ MAD_TRAP, UMAD_METHOD_TRAP_REPRESS },
		{ MAD_REPORT, UMAD_METHOD_REPORT_RESP },
		{ MAD_GET_TABLE, UMAD_SA_METHOD_GET_TABLE_RESP },
		{ MAD_GET_TRACE_TABLE, UMAD_SA_METHOD_GET_TABLE_RESP },
		{ MAD_GET_MULTI, UMAD_SA_METHOD_GET_MULTI_RESP },
		{ MAD_DELETE, UMAD_SA_METHOD_DELETE_RESP },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++)
		assert_int_equal(wire_mad_response_method(row[i].request), row[i].response);
}

CASE(a_method_that_is_no_request_has_no_response)
{
	assert_int_equal(wire_mad_response_method(MAD_SEND), 0);
	assert_int_equal(wire_mad_response_method(MAD_TRAP_REPRESS), 0);
	for (unsigned method = MAD_METHOD_RESPONSE; method < 256; method++)
		assert_int_equal(wire_mad_response_method(method), 0);
}
