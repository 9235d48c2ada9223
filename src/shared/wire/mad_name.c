/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs by name: see mad_name.h.
 */
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "wire/cm_mad.h"
#include "wire/mad_name.h"
#include "wire/perf.h"
#include "wire/sa.h"
#include "wire/smp.h"

/* ---- names ---- */

struct name {
	uint16_t value;
	const char *text;
};

#define TABLE(t) t, ARRAY_SIZE(t)

/* None is the beginning of one behind it. */
static const struct name classes[] = {
	{ MAD_CLASS_SUBN_ADM, "SubnAdm" },
	{ MAD_CLASS_SUBN_LID, "Subn" },
	{ MAD_CLASS_PERF, "Performance" },
	{ MAD_CLASS_COM_MGT, "ComMgt" },
};

static const struct name methods[] = {
	{ MAD_GET, "Get" },
	{ MAD_SET, "Set" },
	{ MAD_GET_RESP, "GetResp" },
	{ MAD_SEND, "Send" },
	{ MAD_TRAP, "Trap" },
	{ MAD_REPORT, "Report" },
	{ MAD_REPORT_RESP, "ReportResp" },
	{ MAD_TRAP_REPRESS, "TrapRepress" },
};

static const struct name sa_methods[] = {
	{ MAD_GET_TABLE, "GetTable" },
	{ MAD_GET_TABLE_RESP, "GetTableResp" },
	{ MAD_DELETE, "Delete" },
	{ MAD_DELETE_RESP, "DeleteResp" },
	{ MAD_GET_MULTI, "GetMulti" },
	{ MAD_GET_MULTI_RESP, "GetMultiResp" },
	{ MAD_GET_TRACE_TABLE, "GetTraceTable" },
};

static const struct name general_attributes[] = {
	{ MAD_ATTR_CLASS_PORT_INFO, "ClassPortInfo" },
	{ MAD_ATTR_NOTICE, "Notice" },
	{ MAD_ATTR_INFORM_INFO, "InformInfo" },
};

static const struct name smp_attributes[] = {
	{ SMP_ATTR_NODE_DESCRIPTION, "NodeDescription" },
	{ SMP_ATTR_NODE_INFO, "NodeInfo" },
	{ SMP_ATTR_SWITCH_INFO, "SwitchInfo" },
	{ SMP_ATTR_GUID_INFO, "GUIDInfo" },
	{ SMP_ATTR_PORT_INFO, "PortInfo" },
	{ SMP_ATTR_PKEY_TABLE, "P_KeyTable" },
	{ SMP_ATTR_SL_TO_VL, "SLtoVLMappingTable" },
	{ SMP_ATTR_VL_ARBITRATION, "VLArbitrationTable" },
	{ SMP_ATTR_LINEAR_FT, "LinearForwardingTable" },
	{ SMP_ATTR_RANDOM_FT, "RandomForwardingTable" },
	{ SMP_ATTR_MULTICAST_FT, "MulticastForwardingTable" },
	{ 0x001C, "LinkSpeedWidthPairsTable" },
	{ 0x001D, "VendorSpecificMadsTable" },
	{ 0x001E, "HierarchyInfo" },
	{ SMP_ATTR_SM_INFO, "SMInfo" },
	{ SMP_ATTR_VENDOR_DIAG, "VendorDiag" },
	{ SMP_ATTR_LED_INFO, "LedInfo" },
	{ 0x0032, "CableInfo" },
	{ SMP_ATTR_PORT_INFO_EXTENDED, "PortInfoExtended" },
};

static const struct name sa_attributes[] = {
	{ SA_ATTR_NODE, "NodeRecord" },
	{ SA_ATTR_PORT_INFO, "PortInfoRecord" },
	{ SA_ATTR_SL_TO_VL, "SLtoVLMappingTableRecord" },
	{ SA_ATTR_SWITCH_INFO, "SwitchInfoRecord" },
	{ SA_ATTR_LINEAR_FT, "LinearForwardingTableRecord" },
	{ SA_ATTR_RANDOM_FT, "RandomForwardingTableRecord" },
	{ SA_ATTR_MULTICAST_FT, "MulticastForwardingTableRecord" },
	{ SA_ATTR_SM_INFO, "SMInfoRecord" },
	{ 0x0019, "LinkSpeedWidthPairsTableRecord" },
	{ SA_ATTR_LINK, "LinkRecord" },
	{ SA_ATTR_GUID_INFO, "GUIDInfoRecord" },
	{ SA_ATTR_SERVICE, "ServiceRecord" },
	{ SA_ATTR_PKEY_TABLE, "P_KeyTableRecord" },
	{ SA_ATTR_PATH, "PathRecord" },
	{ SA_ATTR_VL_ARBITRATION, "VLArbitrationTableRecord" },
	{ SA_ATTR_MCMEMBER, "MCMemberRecord" },
	{ SA_ATTR_TRACE, "TraceRecord" },
	{ SA_ATTR_MULTIPATH, "MultiPathRecord" },
	{ SA_ATTR_SERVICE_ASSOCIATION, "ServiceAssociationRecord" },
	{ 0x003C, "HierarchyInfoRecord" },
	{ 0x003D, "CableInfoRecord" },
	{ 0x003E, "PortInfoExtendedRecord" },
	{ SA_ATTR_INFORM_INFO_RECORD, "InformInfoRecord" },
};

static const struct name perf_attributes[] = {
	{ PERF_ATTR_PORT_SAMPLES_CONTROL, "PortSamplesControl" },
	{ PERF_ATTR_PORT_SAMPLES_RESULT, "PortSamplesResult" },
	{ PERF_ATTR_PORT_COUNTERS, "PortCounters" },
	{ PERF_ATTR_RCV_ERROR_DETAILS, "PortRcvErrorDetails" },
	{ PERF_ATTR_XMIT_DISCARD_DETAILS, "PortXmitDiscardDetails" },
	{ PERF_ATTR_OP_RCV_COUNTERS, "PortOpRcvCounters" },
	{ PERF_ATTR_FLOW_CTL_COUNTERS, "PortFlowCtlCounters" },
	{ PERF_ATTR_VL_OP_PACKETS, "PortVLOpPackets" },
	{ PERF_ATTR_VL_OP_DATA, "PortVLOpData" },
	{ PERF_ATTR_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, "PortVLXmitFlowCtlUpdateErrors" },
	{ PERF_ATTR_VL_XMIT_WAIT_COUNTERS, "PortVLXmitWaitCounters" },
	{ PERF_ATTR_PORT_COUNTERS_EXTENDED, "PortCountersExtended" },
	{ PERF_ATTR_SW_PORT_VL_CONGESTION, "SwPortVLCongestion" },
	{ PERF_ATTR_RCV_CON_CTRL, "PortRcvConCtrl" },
	{ PERF_ATTR_SL_RCV_FECN, "PortSLRcvFECN" },
	{ PERF_ATTR_SL_RCV_BECN, "PortSLRcvBECN" },
	{ PERF_ATTR_XMIT_CON_CTRL, "PortXmitConCtrl" },
	{ PERF_ATTR_VL_XMIT_TIME_CONG, "PortVLXmitTimeCong" },
	{ PERF_ATTR_XMIT_DATA_SL, "PortXmitDataSL" },
	{ PERF_ATTR_RCV_DATA_SL, "PortRcvDataSL" },
};

static const struct name cm_attributes[] = {
	{ CM_ATTR_REQ, "REQ" },           { CM_ATTR_MRA, "MRA" },
	{ CM_ATTR_REJ, "REJ" },           { CM_ATTR_REP, "REP" },
	{ CM_ATTR_RTU, "RTU" },           { CM_ATTR_DREQ, "DREQ" },
	{ CM_ATTR_DREP, "DREP" },         { CM_ATTR_SIDR_REQ, "SIDR_REQ" },
	{ CM_ATTR_SIDR_REP, "SIDR_REP" },
};

static const struct {
	uint8_t mgmt_class;
	const struct name *table;
	size_t n;
} attributes[] = {
	{ MAD_CLASS_SUBN_LID, TABLE(smp_attributes) },
	{ MAD_CLASS_SUBN_ADM, TABLE(sa_attributes) },
	{ MAD_CLASS_PERF, TABLE(perf_attributes) },
	{ MAD_CLASS_COM_MGT, TABLE(cm_attributes) },
};

/* Both classes of subnet management have the same methods and attributes. */
static uint8_t general_class(uint8_t mgmt_class)
{
	return mgmt_class == MAD_CLASS_SUBN_DIRECTED ? MAD_CLASS_SUBN_LID : mgmt_class;
}

static const char *find_value(uint16_t value, const struct name *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].value == value)
			return table[i].text;
	return NULL;
}

const char *wire_mad_method_name(uint8_t mgmt_class, uint8_t method)
{
	const char *text = NULL;

	if (mgmt_class == MAD_CLASS_SUBN_ADM)
		text = find_value(method, TABLE(sa_methods));
	return text ? text : find_value(method, TABLE(methods));
}

const char *wire_mad_attribute_name(uint8_t mgmt_class, uint16_t attribute)
{
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		if (attributes[i].mgmt_class == general_class(mgmt_class))
			return find_value(attribute, attributes[i].table, attributes[i].n);
	return NULL;
}

/* ---- kinds ---- */

/* The value of the name that the first @bytes of @text are; 0: of none. */
static uint16_t find_text(const char *text, size_t bytes, const struct name *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(table[i].text) == bytes && !strncasecmp(table[i].text, text, bytes))
			return table[i].value;
	return 0;
}

static uint16_t find_method(uint8_t mgmt_class, const char *text, size_t bytes)
{
	uint16_t method = find_text(text, bytes, TABLE(methods));

	if (!method && mgmt_class == MAD_CLASS_SUBN_ADM)
		method = find_text(text, bytes, TABLE(sa_methods));
	return method;
}

static uint16_t find_attribute(uint8_t mgmt_class, const char *text, size_t bytes)
{
	uint16_t attribute = find_text(text, bytes, TABLE(general_attributes));

	for (size_t i = 0; i < ARRAY_SIZE(attributes) && !attribute; i++)
		if (attributes[i].mgmt_class == mgmt_class)
			attribute = find_text(text, bytes, attributes[i].table, attributes[i].n);
	return attribute;
}

/* The attribute in brackets at the end of a name. */
static bool parse_attribute(const char *text, struct wire_mad_kind *kind)
{
	const size_t bytes = strcspn(text, ")");

	if (*text != '(' || !bytes || strcmp(text + bytes, ")") != 0)
		return false;
	kind->attribute = find_attribute(kind->mgmt_class, text + 1, bytes - 1);
	return kind->attribute;
}

/* The rest of the name, behind the class. */
static bool parse_rest(const char *text, struct wire_mad_kind *kind)
{
	const size_t bytes = strcspn(text, "(");

	if (bytes)
		kind->method = (uint8_t)find_method(kind->mgmt_class, text, bytes);
	if (bytes && !kind->method)
		return false;
	return !text[bytes] || parse_attribute(text + bytes, kind);
}

bool wire_mad_kind_parse(const char *text, struct wire_mad_kind *kind)
{
	*kind = (struct wire_mad_kind){ .attribute = find_text(text, strlen(text),
		                                               TABLE(cm_attributes)) };
	if (kind->attribute)
		kind->mgmt_class = MAD_CLASS_COM_MGT;
	if (kind->attribute || !strcmp(text, "*"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		const size_t bytes = strlen(classes[i].text);

		if (strncasecmp(text, classes[i].text, bytes) != 0)
			continue;
		kind->mgmt_class = (uint8_t)classes[i].value;
		return parse_rest(text + bytes, kind);
	}
	return false;
}

bool wire_mad_is(const struct wire_mad_kind *kind, const uint8_t *mad)
{
	struct wire_mad h;

	wire_mad_decode(mad, &h);
	return (!kind->mgmt_class || kind->mgmt_class == general_class(h.mgmt_class)) &&
	       (!kind->method || kind->method == h.method) &&
	       (!kind->attribute || kind->attribute == h.attribute_id);
}
