/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of RDMA WRITEs and READs of far memory: see far.h. The checks are those of exchange.c, in
 * the same order; a request that fails here is not told, but carried out alone, and fails there.
 */
#include "hca/transport/far.h"

/* A program may rely on the order of requests: the bytes of one are there before those of the next.
 * Each piece here is copied by itself, so that holds where the processor keeps the order of stores;
 * where it does not, each piece there has to be found by itself, too, which orders them. */
#if defined(__x86_64__) || defined(__i386__)
#define STORES_ARE_IN_ORDER true
#else
#define STORES_ARE_IN_ORDER false
#endif

bool hca_far_begin(struct hca_far *f, struct hca_exchange *x)
{
	const struct hca_end *end = &x->responder.end;
	enum hca_memory_way way;

	f->n_here = f->n_there = 0;
	f->bytes = 0;
	if (f->opcode == IBV_WR_RDMA_READ && !end->qp.connection.max_dest_rd_atomic)
		return false;
	/* acquire: pairs with the release in set_way(), memory.c */
	way = atomic_load_explicit(&end->memory->way, memory_order_acquire);
	return way == HCA_MEMORY_VM || way == HCA_MEMORY_FILE;
}

/* Adds the requester's pieces. */
static bool add_here(struct hca_far *f, struct hca_exchange *x, const struct shm_request *r,
                     const struct shm_entry *entries, struct hca_parts *parts)
{
	const uint32_t access = f->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;

	if (!hca_parts_of_request(&x->requester, r, entries, access, parts) || !parts->here ||
	    parts->has_null || parts->n > HCA_FAR_PIECES - f->n_here)
		return false;
	for (unsigned i = 0; i < parts->n; i++)
		if (parts->iov[i].iov_len)
			f->here[f->n_here++] = parts->iov[i];
	return true;
}

/* Adds the responder's piece. It takes a quarter of a microsecond to find one, so neighbours become
 * one piece. */
static bool add_there(struct hca_far *f, struct hca_exchange *x, const struct shm_request *r,
                      struct hca_parts *parts)
{
	struct iovec *last = f->n_there ? &f->there[f->n_there - 1] : NULL;
	struct iovec *one = parts->iov;

	parts->n = 0;
	parts->has_null = false;
	parts->here = true;
	if (!hca_responder_find(&x->responder, r, r->length, hca_far_access(f), parts) ||
	    parts->here)
		return false;
	if (STORES_ARE_IN_ORDER && last && (char *)last->iov_base + last->iov_len == one->iov_base)
		last->iov_len += one->iov_len;
	else if (f->n_there < HCA_FAR_PIECES)
		f->there[f->n_there++] = *one;
	else
		return false;
	return true;
}

bool hca_far_add(struct hca_far *f, struct hca_exchange *x, const struct shm_request *r,
                 const struct shm_entry *entries)
{
	const unsigned n_here = f->n_here;
	struct hca_parts parts;

	if (r->length > HCA_FAR_BYTES - f->bytes)
		return false;
	if (!add_here(f, x, r, entries, &parts) || !add_there(f, x, r, &parts)) {
		f->n_here = n_here;
		return false;
	}
	f->bytes += r->length;
	return true;
}

uint64_t hca_far_copy(struct hca_far *f, struct hca_exchange *x)
{
	struct hca_span here = { .iov = f->here, .n = f->n_here };
	struct hca_span there = { .memory = x->responder.end.memory,
		                  .iov = f->there,
		                  .n = f->n_there };

	hca_memory_ask_by(there.memory, &x->responder.end.qp);
	return f->opcode == IBV_WR_RDMA_READ ? hca_memory_copy_some(&here, &there, f->bytes)
	                                     : hca_memory_copy_some(&there, &here, f->bytes);
}
