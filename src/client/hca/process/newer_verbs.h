/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Definitions of newer headers of libibverbs, which the oldest that Umbel is built with lack:
 * atomic writes (rdma-core 44, but not all that belongs to them) and flushes (45), InfiniBand
 * specification volume 1, annex A19. The numbers are part of the binary interface. Constant data,
 * safe from any thread.
 */
#ifndef HCA_NEWER_VERBS_H
#define HCA_NEWER_VERBS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

enum {
	/* enum ibv_wr_opcode */
	HCA_WR_FLUSH = 14,
	HCA_WR_ATOMIC_WRITE = 15,
	/* enum ibv_wc_opcode */
	HCA_WC_FLUSH = 8,
	HCA_WC_ATOMIC_WRITE = 9,
	/* enum ibv_access_flags */
	HCA_ACCESS_FLUSH_GLOBAL = 1 << 8,
	HCA_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	/* enum ibv_placement_type: what ibv_wr_flush() asks for */
	HCA_FLUSH_GLOBAL = 1 << 0,
	HCA_FLUSH_PERSISTENT = 1 << 1,
	/* enum ibv_selectivity_level: the bytes that are named, or all of their region */
	HCA_FLUSH_RANGE = 0,
	HCA_FLUSH_MR = 1,
	/* enum ibv_qp_create_send_ops_flags */
	HCA_QP_EX_WITH_FLUSH = 1 << 11,
	HCA_QP_EX_WITH_ATOMIC_WRITE = 1 << 12,
	/* enum ibv_odp_transport_cap_bits */
	HCA_ODP_SUPPORT_FLUSH = 1 << 6,
	HCA_ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,
};

/* A placement type and a selectivity level in one word: struct shm_request.swap. */
static inline uint64_t hca_flush_what(uint8_t type, uint8_t level)
{
	return (uint64_t)level << 8 | type;
}

static inline uint8_t hca_flush_type(uint64_t what)
{
	return (uint8_t)what;
}

static inline uint8_t hca_flush_level(uint64_t what)
{
	return (uint8_t)(what >> 8);
}

/* Whether these are a placement type and a selectivity level of the specification. */
static inline bool hca_flush_is_known(uint8_t type, uint8_t level)
{
	return type && !(type & ~(HCA_FLUSH_GLOBAL | HCA_FLUSH_PERSISTENT)) &&
	       level <= HCA_FLUSH_MR;
}

/* struct ibv_qp_ex, to its end in all headers that there are. A program does not see the members
 * behind the end that it knows. */
union hca_qp_ex {
	struct ibv_qp_ex ex;
	struct {
		char before[offsetof(struct ibv_qp_ex, wr_abort) + 2 * sizeof(void *)];
		void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
		                 size_t length, uint8_t type, uint8_t level);
	} newer;
};
static_assert(sizeof(union hca_qp_ex) == offsetof(struct ibv_qp_ex, wr_abort) + 3 * sizeof(void *),
              "ABI");

#endif
