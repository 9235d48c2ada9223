/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of states, statuses and operations: see explain.h. Why requests are refused is in
 * explain_post.c, why attributes are in explain_modify.c, why requests complete in error in
 * explain_completion.c.
 */

#include "base/util.h"
#include "hca/process/operation.h"
#include "hca/queue/explain.h"

static const char *name_in(const char *const *names, size_t n, unsigned i)
{
	return i < n && names[i] ? names[i] : "?";
}

const char *hca_state_name(enum ibv_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return name_in(names, ARRAY_SIZE(names), state);
}

#define NAME(value) [value] = #value

const char *hca_status_name(enum ibv_wc_status status)
{
	static const char *const names[] = {
		NAME(IBV_WC_SUCCESS),           NAME(IBV_WC_LOC_LEN_ERR),
		NAME(IBV_WC_LOC_QP_OP_ERR),     NAME(IBV_WC_LOC_PROT_ERR),
		NAME(IBV_WC_WR_FLUSH_ERR),      NAME(IBV_WC_MW_BIND_ERR),
		NAME(IBV_WC_REM_INV_REQ_ERR),   NAME(IBV_WC_REM_ACCESS_ERR),
		NAME(IBV_WC_REM_OP_ERR),        NAME(IBV_WC_RETRY_EXC_ERR),
		NAME(IBV_WC_RNR_RETRY_EXC_ERR), NAME(IBV_WC_FATAL_ERR),
		NAME(IBV_WC_GENERAL_ERR),
	};

	return name_in(names, ARRAY_SIZE(names), status);
}

const char *hca_opcode_name(unsigned opcode)
{
#define OPERATION(opcode, name, completion, calls, carry_out, properties) [opcode] = name,
	static const char *const names[] = {
#include "hca/process/operation.def"
		[IBV_WR_TSO] = "TSO", /* which no transport has */
	};
#undef OPERATION

	return name_in(names, ARRAY_SIZE(names), opcode);
}
