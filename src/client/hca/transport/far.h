/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Far memory is memory of the responder's to which only system calls lead (memory.h). Each takes a
 * microsecond or more, whatever it copies. So RDMA WRITEs, or READs, that follow each other in a
 * list are carried out together: the keys of each are looked up, what it copies is added to what
 * those before it copy, and then all of that is copied in order, by one call.
 *
 * Where the copy fails, all requests before that are done, and nothing of those behind it is.
 */
#ifndef HCA_FAR_H
#define HCA_FAR_H

#include "hca/transport/exchange.h"

/* Others wait for copies that were begun: a thread that deregisters memory, for example. */
#define HCA_FAR_BYTES  (128u << 10)
#define HCA_FAR_PIECES 128

struct hca_far {
	enum ibv_wr_opcode opcode; /* of all of them: IBV_WR_RDMA_WRITE or _READ */
	unsigned n_here, n_there;
	uint64_t bytes;
	struct iovec here[HCA_FAR_PIECES];  /* of the requester, mapped in this process */
	struct iovec there[HCA_FAR_PIECES]; /* at the responder's addresses */
};

/* The access that the responder must allow. */
static inline uint32_t hca_far_access(const struct hca_far *f)
{
	return f->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

/* Begins with no request. False: the responder's memory is not reached by system calls, or it has
 * no resource for READs. */
bool hca_far_begin(struct hca_far *f, struct hca_exchange *x);

/* Adds the request @r, as hca_exchange() takes it, of at least one byte. False: it is to be carried
 * out alone, or fails, or there is no room. */
bool hca_far_add(struct hca_far *f, struct hca_exchange *x, const struct shm_request *r,
                 const struct shm_entry *entries);

/* Copies. Returns how many bytes were, before one that could not be. */
uint64_t hca_far_copy(struct hca_far *f, struct hca_exchange *x);

#endif
