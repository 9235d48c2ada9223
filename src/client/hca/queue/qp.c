/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: their completions. See qp.h; qp_create.c makes and destroys them, qp_modify.c moves
 * them.
 */
#include "base/util.h"
#include "hca/queue/qp.h"

/* enum ibv_wc_opcode of a request's completion, by enum ibv_wr_opcode. */
#define OPERATION(opcode, name, completion, calls, carry_out, properties) [opcode] = completion,
static const uint8_t completion_opcodes[] = {
#include "hca/process/operation.def"
};
#undef OPERATION

void hca_qp_push(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
                 enum ibv_wc_status status)
{
	/* the opcode of a request that has waited in shared memory may be anything */
	uint8_t opcode = (unsigned)wr->opcode < ARRAY_SIZE(completion_opcodes)
	                         ? completion_opcodes[wr->opcode]
	                         : IBV_WC_SEND;
	struct hca_cqe *e = hca_cq_push_begin(qp->send_cq);

	if (base_unlikely(!e))
		return;
	/* where it stays: a copy of what has just been written field by field would wait for it */
	*e = (struct hca_cqe){ .wr_id = wr->wr_id,
		               .qp = qp,
		               .sq_after = qp->sq_posted,
		               .byte_len = bytes,
		               .status = (uint8_t)status,
		               .opcode = opcode,
		               .is_first = qp->rq->connected };
	hca_cq_push_end(qp->send_cq, e);
}
