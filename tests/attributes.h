/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Structs of libibverbs that tests fill in alike, in a line each.
 */
#ifndef TESTS_ATTRIBUTES_H
#define TESTS_ATTRIBUTES_H

#include <infiniband/verbs.h>

/* Of a queue pair whose requests and receives complete in one queue and have one piece each. */
static inline struct ibv_qp_init_attr init_of(enum ibv_qp_type type, struct ibv_cq *cq,
                                              uint32_t requests, uint32_t receives)
{
	return (struct ibv_qp_init_attr){ .qp_type = type,
		                          .send_cq = cq,
		                          .recv_cq = cq,
		                          .cap = { requests, receives, 1, 1, 0 } };
}

/* A request of one piece of memory. */
static inline struct ibv_send_wr request_of(struct ibv_sge *sge, enum ibv_wr_opcode opcode,
                                            unsigned flags)
{
	return (struct ibv_send_wr){
		.sg_list = sge, .num_sge = 1, .opcode = opcode, .send_flags = flags
	};
}

#endif
