/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The status of a completion, by name: see status.h.
 */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "wire/status.h"

static const char *const names[WIRE_STATUSES] = {
	"SUCCESS",
	"LOC_LEN_ERR",
	"LOC_QP_OP_ERR",
	"LOC_EEC_OP_ERR",
	"LOC_PROT_ERR",
	"WR_FLUSH_ERR",
	"MW_BIND_ERR",
	"BAD_RESP_ERR",
	"LOC_ACCESS_ERR",
	"REM_INV_REQ_ERR",
	"REM_ACCESS_ERR",
	"REM_OP_ERR",
	"RETRY_EXC_ERR",
	"RNR_RETRY_EXC_ERR",
	"LOC_RDD_VIOL_ERR",
	"REM_INV_RD_REQ_ERR",
	"REM_ABORT_ERR",
	"INV_EECN_ERR",
	"INV_EEC_STATE_ERR",
	"FATAL_ERR",
	"RESP_TIMEOUT_ERR",
	"GENERAL_ERR",
	"TM_ERR",
	"TM_RNDV_INCOMPLETE",
};

const char *wire_status_name(unsigned status)
{
	return status < WIRE_STATUSES ? names[status] : NULL;
}

static bool is_name(const char *text, const char *name)
{
	const size_t n = strlen(text);

	return !strncasecmp(name, text, n) && (!name[n] || (n && !strcmp(name + n, "_ERR")));
}

int wire_status_parse(const char *text)
{
	static const char prefix[] = "IBV_WC_";
	long number;

	if (!base_parse_number(text, 0, WIRE_STATUSES - 1, &number))
		return (int)number;
	if (!strncasecmp(text, prefix, strlen(prefix)))
		text += strlen(prefix);
	for (int i = 0; i < WIRE_STATUSES; i++)
		if (is_name(text, names[i]))
			return i;
	return -1;
}
