/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the operations of connected queue pairs have in common, by enum ibv_wr_opcode, and the
 * limits of requests. Constant data, safe from any thread.
 */
#ifndef HCA_OPERATION_H
#define HCA_OPERATION_H

#include "hca/newer_verbs.h"

#define HCA_MAX_INLINE    1024
#define HCA_MAX_MESSAGE   (1u << 31) /* bytes, of connected queue pairs */
#define HCA_MAX_SGE       256
#define HCA_MAX_RD_ATOMIC 16

enum hca_operation {
	HCA_OP_POSTED = 1 << 0, /* ibv_post_send() has it: a flush cannot be said by it */
	HCA_OP_NOT_UC = 1 << 1,
	HCA_OP_BACK = 1 << 2, /* brings data back: its entries are written to, and never inline */
	HCA_OP_WORD = 1 << 3, /* of 8 bytes, always */
	HCA_OP_BIND = 1 << 4, /* has a window, and no message */
	HCA_OP_IMM = 1 << 5,  /* its completion says imm_data, or the key that it invalidates */
};

/* The properties of @opcode, enum hca_operation; 0: there is no such operation. */
static inline unsigned hca_operation(unsigned opcode)
{
	static const uint8_t table[] = {
		[IBV_WR_SEND] = HCA_OP_POSTED,
		[IBV_WR_SEND_WITH_IMM] = HCA_OP_POSTED | HCA_OP_IMM,
		[IBV_WR_SEND_WITH_INV] = HCA_OP_POSTED | HCA_OP_IMM,
		[IBV_WR_RDMA_WRITE] = HCA_OP_POSTED,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = HCA_OP_POSTED | HCA_OP_IMM,
		[IBV_WR_RDMA_READ] = HCA_OP_POSTED | HCA_OP_NOT_UC | HCA_OP_BACK,
		[IBV_WR_ATOMIC_CMP_AND_SWP] =
		        HCA_OP_POSTED | HCA_OP_NOT_UC | HCA_OP_BACK | HCA_OP_WORD,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] =
		        HCA_OP_POSTED | HCA_OP_NOT_UC | HCA_OP_BACK | HCA_OP_WORD,
		[HCA_WR_ATOMIC_WRITE] = HCA_OP_POSTED | HCA_OP_NOT_UC | HCA_OP_WORD,
		[HCA_WR_FLUSH] = HCA_OP_NOT_UC,
		[IBV_WR_LOCAL_INV] = HCA_OP_POSTED,
		[IBV_WR_BIND_MW] = HCA_OP_POSTED | HCA_OP_BIND,
	};

	return opcode < sizeof(table) ? table[opcode] : 0;
}

#endif
