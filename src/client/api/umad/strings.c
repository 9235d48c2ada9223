/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of classes, methods, attributes and statuses (umad_class_str(3)). The texts are those
 * of Debian's libibumad, slips of the pen included: programs print and compare them, and
 * tests/umad/strings.c holds the two libraries against each other. Constant tables; any
 * thread, any time.
 */
#include <endian.h>
#include <infiniband/umad_cm.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_str.h>
#include <infiniband/umad_types.h>

#include "base/util.h"
#include "wire/mad_name.h"

#define UNKNOWN        "<unknown>"
#define UNKNOWN_METHOD "<unknown" /* so it is */

struct name {
	unsigned value;
	const char *text;
};

#define TABLE(t) t, ARRAY_SIZE(t)

static const struct name classes[] = {
	{ UMAD_CLASS_SUBN_LID_ROUTED, "Subn" },
	{ UMAD_CLASS_SUBN_DIRECTED_ROUTE, "Subn" },
	{ UMAD_CLASS_SUBN_ADM, "SubnAdm" },
	{ UMAD_CLASS_PERF_MGMT, "Perf" },
	{ UMAD_CLASS_BM, "BM" },
	{ UMAD_CLASS_DEVICE_MGMT, "DevMgt" },
	{ UMAD_CLASS_CM, "ComMgt" },
	{ UMAD_CLASS_SNMP, "SNMP" },
	{ UMAD_CLASS_DEVICE_ADM, "DevAdm" },
	{ UMAD_CLASS_BOOT_MGMT, "BootMgt" },
	{ UMAD_CLASS_BIS, "BIS" },
	{ UMAD_CLASS_CONG_MGMT, "CongestionManagment" },
};

static const struct name statuses[] = {
	{ UMAD_STATUS_BAD_VERSION, "Bad Version" },
	{ UMAD_STATUS_METHOD_NOT_SUPPORTED, "Method not supported" },
	{ UMAD_STATUS_ATTR_NOT_SUPPORTED, "Method/Attribute combo not supported" },
	{ UMAD_STATUS_INVALID_ATTR_VALUE, "Invalid attribute/modifier field" },
};

static const struct name sa_statuses[] = {
	{ UMAD_SA_STATUS_SUCCESS, "Success" },
	{ UMAD_SA_STATUS_NO_RESOURCES, "No Resources" },
	{ UMAD_SA_STATUS_REQ_INVALID, "Request Invalid" },
	{ UMAD_SA_STATUS_NO_RECORDS, "No Records" },
	{ UMAD_SA_STATUS_TOO_MANY_RECORDS, "Too Many Records" },
	{ UMAD_SA_STATUS_INVALID_GID, "Invalid GID" },
	{ UMAD_SA_STATUS_INSUF_COMPS, "Insufficient Components" },
	{ UMAD_SA_STATUS_REQ_DENIED, "Request Denied" },
	{ UMAD_SA_STATUS_PRI_SUGGESTED, "Priority Suggested" },
};

static const struct name attributes[] = {
	{ UMAD_ATTR_CLASS_PORT_INFO, "Class Port Info" },
	{ UMAD_ATTR_NOTICE, "Notice" },
	{ UMAD_ATTR_INFORM_INFO, "Inform Info" },
};

static const struct name cm_attributes[] = {
	{ UMAD_CM_ATTR_REQ, "ConnectRequest" },
	{ UMAD_CM_ATTR_MRA, "MsgRcptAck" },
	{ UMAD_CM_ATTR_REJ, "ConnectReject" },
	{ UMAD_CM_ATTR_REP, "ConnectReply" },
	{ UMAD_CM_ATTR_RTU, "ReadyToUse" },
	{ UMAD_CM_ATTR_DREQ, "DisconnectRequest" },
	{ UMAD_CM_ATTR_DREP, "DisconnectReply" },
	{ UMAD_CM_ATTR_SIDR_REQ, "ServiceIDResReq" },
	{ UMAD_CM_ATTR_SIDR_REP, "ServiceIDResReqResp" },
	{ UMAD_CM_ATTR_LAP, "LoadAlternatePath" },
	{ UMAD_CM_ATTR_APR, "AlternatePathResponse" },
	{ UMAD_CM_ATTR_SAP, "SuggestAlternatePath" },
	{ UMAD_CM_ATTR_SPR, "SuggestPathResponse" },
};

/* NULL: not in the table. */
static const char *find(unsigned value, const struct name *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].value == value)
			return table[i].text;
	return NULL;
}

const char *umad_class_str(uint8_t mgmt_class)
{
	const char *text = find(mgmt_class, TABLE(classes));

	if (text)
		return text;
	if ((mgmt_class >= UMAD_CLASS_VENDOR_RANGE1_START &&
	     mgmt_class <= UMAD_CLASS_VENDOR_RANGE1_END) ||
	    (mgmt_class >= UMAD_CLASS_VENDOR_RANGE2_START &&
	     mgmt_class <= UMAD_CLASS_VENDOR_RANGE2_END))
		return "Vendor";
	if (mgmt_class >= UMAD_CLASS_APPLICATION_START && mgmt_class <= UMAD_CLASS_APPLICATION_END)
		return "Application";
	return UNKNOWN;
}

const char *umad_method_str(uint8_t mgmt_class, uint8_t method)
{
	const char *text = wire_mad_method_name(mgmt_class, method);

	return text ? text : UNKNOWN_METHOD;
}

const char *umad_common_mad_status_str(__be16 be_status)
{
	uint16_t status = be16toh(be_status);
	const char *text;

	if (status & UMAD_STATUS_BUSY)
		return "Busy";
	if (status & UMAD_STATUS_REDIRECT)
		return "Redirection required";
	text = find(status & UMAD_STATUS_INVALID_FIELD_MASK, TABLE(statuses));
	return text ? text : "Success";
}

const char *umad_sa_mad_status_str(__be16 status)
{
	const char *text =
	        find((be16toh(status) & UMAD_STATUS_CLASS_MASK) >> 8, TABLE(sa_statuses));

	return text ? text : "Undefined Error";
}

const char *umad_attribute_str(uint8_t mgmt_class, __be16 be_attr_id)
{
	unsigned id = be16toh(be_attr_id);
	const char *text = find(id, TABLE(attributes));

	if (mgmt_class == UMAD_CLASS_SUBN_ADM && id == UMAD_SA_ATTR_GUID_INFO_REC)
		return "GuidInfoRecord";
	if (!text && mgmt_class == UMAD_CLASS_CM)
		text = find(id, TABLE(cm_attributes));
	else if (!text && mgmt_class != UMAD_CLASS_PERF_MGMT)
		text = wire_mad_attribute_name(mgmt_class, (uint16_t)id);
	return text ? text : UNKNOWN;
}
