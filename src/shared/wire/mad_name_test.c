/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cmocka.h needs those before it */
#include <harness.h>

#include "base/util.h"
#include "wire/cm_mad.h"
#include "wire/mad_name.h"
#include "wire/perf.h"
#include "wire/sa.h"
#include "wire/smp.h"

/* Whether a MAD with this header is of the kind with that name. */
static bool is(const char *name, uint8_t mgmt_class, uint8_t method, uint16_t attribute)
{
	const struct wire_mad h = { .base_version = MAD_BASE_VERSION,
		                    .mgmt_class = mgmt_class,
		                    .method = method,
		                    .attribute_id = attribute };
	uint8_t mad[MAD_BYTES] = { 0 };
	struct wire_mad_kind kind;

	assert_true(wire_mad_kind_parse(name, &kind));
	wire_mad_encode(&h, mad);
	return wire_mad_is(&kind, mad);
}

CASE(a_whole_name_is_class_method_and_attribute)
{
	static const char name[] = "SubnAdmSet(MCMemberRecord)";

	assert_true(is(name, MAD_CLASS_SUBN_ADM, MAD_SET, SA_ATTR_MCMEMBER));
	assert_false(is(name, MAD_CLASS_SUBN_ADM, MAD_GET, SA_ATTR_MCMEMBER));
	assert_false(is(name, MAD_CLASS_SUBN_ADM, MAD_SET, SA_ATTR_PATH));
	assert_false(is(name, MAD_CLASS_SUBN_LID, MAD_SET, SA_ATTR_MCMEMBER));
	assert_true(is("PerformanceGetResp(PortCounters)", MAD_CLASS_PERF, MAD_GET_RESP,
	               PERF_ATTR_PORT_COUNTERS));
	assert_true(is("subnadmgettableresp(noderecord)", MAD_CLASS_SUBN_ADM, MAD_GET_TABLE_RESP,
	               SA_ATTR_NODE));
	assert_true(is("SubnAdmReport(Notice)", MAD_CLASS_SUBN_ADM, MAD_REPORT, MAD_ATTR_NOTICE));
}

CASE(the_beginning_of_a_name_is_many)
{
	assert_true(is("SubnAdmSet", MAD_CLASS_SUBN_ADM, MAD_SET, SA_ATTR_SERVICE));
	assert_false(is("SubnAdmSet", MAD_CLASS_SUBN_ADM, MAD_DELETE, SA_ATTR_SERVICE));
	assert_true(is("SubnAdm", MAD_CLASS_SUBN_ADM, MAD_GET_MULTI, SA_ATTR_MULTIPATH));
	assert_false(is("Subn", MAD_CLASS_SUBN_ADM, MAD_GET, SA_ATTR_PATH));
	assert_true(is("SubnAdm(PathRecord)", MAD_CLASS_SUBN_ADM, MAD_GET_RESP, SA_ATTR_PATH));
	assert_true(is("*", MAD_CLASS_DEV_MGT, MAD_GET, 0x4711));
}

CASE(both_classes_of_subnet_management_are_subn)
{
	assert_true(is("SubnGet(NodeInfo)", MAD_CLASS_SUBN_LID, MAD_GET, SMP_ATTR_NODE_INFO));
	assert_true(is("SubnGet(NodeInfo)", MAD_CLASS_SUBN_DIRECTED, MAD_GET, SMP_ATTR_NODE_INFO));
	assert_string_equal(wire_mad_attribute_name(MAD_CLASS_SUBN_DIRECTED, SMP_ATTR_PORT_INFO),
	                    "PortInfo");
}

CASE(messages_of_connections_have_names_of_their_own)
{
	assert_true(is("REQ", MAD_CLASS_COM_MGT, MAD_SEND, CM_ATTR_REQ));
	assert_false(is("REQ", MAD_CLASS_COM_MGT, MAD_SEND, CM_ATTR_DREQ));
	assert_false(is("REQ", MAD_CLASS_SUBN_LID, MAD_SEND, CM_ATTR_REQ));
	assert_true(is("sidr_rep", MAD_CLASS_COM_MGT, MAD_SEND, CM_ATTR_SIDR_REP));
	assert_true(is("ComMgt", MAD_CLASS_COM_MGT, MAD_SEND, CM_ATTR_RTU));
	assert_true(is("ComMgtSend(RTU)", MAD_CLASS_COM_MGT, MAD_SEND, CM_ATTR_RTU));
}

CASE(what_is_no_name_is_refused)
{
	static const char *const wrong[] = {
		"",
		"REQS",
		"RE",
		"SubnAdmSets",
		"SubnAdmSet(",
		"SubnAdm()",
		"SubnAdmSet)",
		"SubnGetX",
		"SubnGet(PathRecord)",
		"SubnAdm(PathRecord) ",
		"**",
		"(REQ)",
		"SubnSet((",
		"PerformanceGetTable",
		"Subn Get(NodeInfo)",
	};
	struct wire_mad_kind kind;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (wire_mad_kind_parse(wrong[i], &kind))
			fail_msg("'%s' is taken for a name", wrong[i]);
}

CASE(names_are_found_again)
{
	static const uint8_t all[] = { MAD_CLASS_SUBN_LID, MAD_CLASS_SUBN_ADM, MAD_CLASS_PERF };
	char text[80];
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		for (unsigned id = 4; id <= UINT16_MAX; id++) {
			const char *name = wire_mad_attribute_name(all[i], (uint16_t)id);

			if (!name)
				continue;
			snprintf(text, sizeof(text), "%sGet(%s)",
			         i == 0   ? "Subn"
			         : i == 1 ? "SubnAdm"
			                  : "Performance",
			         name);
			assert_true(is(text, all[i], MAD_GET, (uint16_t)id));
			n++;
		}
	assert_true(n > 40);
}
