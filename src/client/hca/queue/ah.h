/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address handles, each of one process. An address handle is checked when it is made, so that
 * posting need not check it. An SL loses the bits that its link has not, as by mlx5. The daemon
 * learns of its destination when a queue pair first sends there (flow.h). Thread-safe.
 */
#ifndef HCA_AH_H
#define HCA_AH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "hca/process/context.h"

/* A destination. A queue pair has one flow for each, which all address handles to it share. */
struct hca_dest {
	uint64_t gid[2]; /* zero without GRH */
	uint32_t lid;
	uint8_t port_num, path_bits, is_global, sl;
};

struct hca_ah {
	struct ibv_ah ah;
	STAILQ_ENTRY(hca_ah) free;
	struct hca_context *ctx;
	struct hca_dest dest;
	struct hca_flow
	        *_Atomic flow;     /* a hint: the flow of the sender that used the handle last */
	_Atomic uint64_t flow_use; /* that flow's `use` then (flow.h) */
	const struct hca_domain *domain; /* that it is in */
	uint32_t class_flow;             /* traffic class << 20 | flow label */
	uint8_t sl, hop_limit, sgid_index;
	uint8_t arrival_flags; /* enum shm_arrival_flags, of all messages by it */
	bool is_mcast;
	uint32_t alive;  /* HCA_AH_ALIVE */
	uint64_t serial; /* which no other handle of the process has or had; 0: a copy,
	                  * filled, or destroyed */
};

#define HCA_AH_ALIVE 0x414c4956

/* -ETIMEDOUT: nobody has the destination's address on Ethernet, after a second; -ENETUNREACH and
 * the like; else as what was asked for is wrong. */
struct hca_ah *hca_ah_create(struct hca_context *ctx, struct ibv_pd *pd,
                             const struct ibv_ah_attr *attr, int *error);
/* Waits likewise, before a connected queue pair gets these attributes. 0, also if they are wrong;
 * or -errno. */
int hca_ah_await(struct hca_context *ctx, const struct ibv_ah_attr *attr);
/* Makes @ah, memory of the caller's that is all zero or was such a handle, one for a connected
 * queue pair, until hca_ah_release(). @attr->sl becomes the one that packets have. -EINVAL: as for
 * hca_ah_create(), or the destination is a group. */
int hca_ah_fill(struct hca_ah *ah, struct hca_context *ctx, struct ibv_ah_attr *attr);

/* -EINVAL: it was destroyed before. */
int hca_ah_destroy(struct hca_ah *ah);

/* Nothing is sent any more by @ah, which is filled, a copy, or neither. Others may still read it.
 */
void hca_ah_release(struct hca_ah *ah);

/* Copies the destination of @from to @to, which no list contains, until hca_ah_release(). */
void hca_ah_copy(struct hca_ah *to, const struct hca_ah *from);

/* The attributes of a handle by which to reply to a message that was received. */
int hca_ah_init_from_wc(struct hca_context *ctx, unsigned port_num, const struct ibv_wc *wc,
                        const struct ibv_grh *grh, struct ibv_ah_attr *attr);

#endif
