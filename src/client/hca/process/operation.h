/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The operations of connected queue pairs, and the limits of requests. An operation is a row of
 * operation.def, from which these tables are made, and exchange.c's. Constant data, safe from any
 * thread.
 */
#ifndef HCA_OPERATION_H
#define HCA_OPERATION_H

#include "base/fast.h"
#include "hca/process/newer_verbs.h"

#define HCA_MAX_INLINE    1024
#define HCA_MAX_MESSAGE   (1u << 31) /* bytes, of connected queue pairs */
#define HCA_MAX_SGE       256
#define HCA_MAX_RD_ATOMIC 16

enum hca_operation {
	HCA_OP_POSTED = 1 << 0, /* ibv_post_send() has it: a flush cannot be said by it */
	HCA_OP_SEND = 1 << 1,
	HCA_OP_WRITE = 1 << 2,
	HCA_OP_READ = 1 << 3,
	/* it has a response of its own, for which the responder needs a resource; not UC's */
	HCA_OP_ANSWERED = 1 << 4,
	HCA_OP_BACK = 1 << 5,   /* brings data back: its entries are written to, and never inline */
	HCA_OP_WORD = 1 << 6,   /* of 8 bytes, always */
	HCA_OP_VALUE = 1 << 7,  /* its 8 bytes may be in the request itself, by the ibv_wr_ calls */
	HCA_OP_ATOMIC = 1 << 8, /* wr.atomic says what it wants, not wr.rdma */
	HCA_OP_IMM = 1 << 9,    /* its completion says imm_data, or the key that it invalidates */
	HCA_OP_LOCAL = 1 << 10, /* the requester carries it out by itself */
	HCA_OP_BIND = 1 << 11,  /* has a window, and no message */
};

/* The properties of @opcode, enum hca_operation; 0: there is no such operation. */
static inline unsigned hca_operation(unsigned opcode)
{
#define OPERATION(opcode, name, completion, calls, carry_out, properties) [opcode] = properties,
	static const uint16_t table[] = {
#include "hca/process/operation.def"
	};
#undef OPERATION

	return opcode < sizeof(table) / sizeof(table[0]) ? table[opcode] : 0;
}

/* The ibv_wr_ calls that have it: enum ibv_qp_create_send_ops_flags. @opcode has a row in
 * operation.def, else this reads beyond the table. */
static inline uint64_t hca_operation_calls(unsigned opcode)
{
#define OPERATION(opcode, name, completion, calls, carry_out, properties) [opcode] = calls,
	static const uint64_t table[] = {
#include "hca/process/operation.def"
	};
#undef OPERATION

	return table[opcode];
}

/* The bytes that the entries have together. */
static inline uint64_t hca_sge_bytes(const struct ibv_sge *sge, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += sge[i].length;
	return bytes;
}

/* Of a message; none if num_sge is negative. */
static BASE_HOT uint64_t hca_message_length(const struct ibv_send_wr *wr)
{
	if (base_likely(wr->num_sge == 1))
		return wr->sg_list->length;
	return wr->num_sge > 0 ? hca_sge_bytes(wr->sg_list, (uint32_t)wr->num_sge) : 0;
}

#endif
