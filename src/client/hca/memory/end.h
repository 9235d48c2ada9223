/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a connection, for the thread that carries out requests: a copy of its queue pair's
 * record, its memory, and what its keys give access to, as they were read last. Nothing is looked
 * up as long as the keys stand as they did. Each key has one place in this table; another key with
 * the same place replaces it.
 *
 * Before a key is looked at, the thread says whom it deals with (hca_exchange_begin()).
 */
#ifndef HCA_END_H
#define HCA_END_H

#include "hca/memory/memory.h"
#include "shm/key.h"

/* How many keys of each end are known. */
#define HCA_KNOWN 4

/* A key of an end that was used. */
struct hca_known {
	uint32_t key;
	uint32_t joined;       /* its serial, when this thread became a user of it */
	struct shm_key *at;    /* where it stands; or NULL */
	uint64_t iova, length; /* what it gives access to; 0: nothing that is known */
	char *here;            /* where all of that lies in this process; or NULL */
	uint32_t access;
};

struct hca_end {
	struct shm_qp qp;            /* a copy of its record */
	const _Atomic uint32_t *seq; /* of the record itself */
	struct hca_process *process; /* the thread's */
	struct hca_memory *memory;
	uint32_t user; /* the queue pair in whose name the thread becomes a user of keys */
	bool is_own;   /* it is this process's memory, and is reached by plain accesses */
	bool is_ours;  /* the keys are this process's, however the memory is reached */
	bool is_far;   /* what was looked up last, of another process, is not mapped here */
	struct hca_known known[HCA_KNOWN];
};

/* Prepares @end, whose record and memory are filled in, for a thread of @p that uses keys in the
 * name of @worker. Nothing is known yet. */
static inline void hca_end_prepare(struct hca_end *end, struct hca_process *p, uint32_t qpn,
                                   uint32_t worker)
{
	end->seq = &shm_qp_at(&p->region, SHM_QP_INDEX(qpn))->seq;
	end->process = p;
	end->user = worker & IB_QPN_MASK;
	memset(end->known, 0, sizeof(end->known));
	end->is_far = false;
	end->is_own = end->memory && end->memory->way == HCA_MEMORY_OWN;
	end->is_ours = end->memory && (end->is_own || end->memory->from_outside);
}

/* The place of @key. */
static BASE_HOT struct hca_known *hca_known_of(struct hca_end *end, uint32_t key)
{
	return &end->known[(key >> 8) % HCA_KNOWN]; /* the low 8 bits are the program's */
}

/* Whether @key, as it is known, allows @access to @length bytes from @addr on, and has not changed
 * since. False: it is to be looked up. */
static BASE_HOT bool hca_known_allows(struct hca_end *end, uint32_t key, uint64_t addr,
                                      uint32_t length, uint32_t access)
{
	const struct hca_known *k = hca_known_of(end, key);
	uint64_t offset = addr - k->iova;

	if (base_unlikely(offset >= k->length || k->length - offset < length || k->key != key ||
	                  (k->access & access) != access))
		return false;
	/* acquire: pairs with the release in shm_key_write(): a key that came back has another
	 * serial */
	return base_likely(atomic_load_explicit(&k->at->key, memory_order_acquire) == key &&
	                   atomic_load_explicit(&k->at->serial, memory_order_relaxed) == k->joined);
}

/* Likewise, where it lies in this process; or NULL. */
static BASE_HOT void *hca_known_at(struct hca_end *end, uint32_t key, uint64_t addr,
                                   uint32_t length, uint32_t access)
{
	const struct hca_known *k = hca_known_of(end, key);

	return base_likely(k->here && hca_known_allows(end, key, addr, length, access))
	               ? k->here + (addr - k->iova)
	               : NULL;
}

/* The key gives access to what @reach says. */
static BASE_HOT void hca_known_keep(struct hca_known *k, const struct shm_reach *reach)
{
	k->iova = reach->iova;
	k->length = reach->length;
	k->here = NULL;
	k->access = reach->access;
}

/* Narrows what is known to @length bytes from @offset on, which lie at @here in this process. Does
 * nothing if nothing is known, as of a window that one queue pair alone may use. */
static BASE_HOT void hca_known_place(struct hca_known *k, uint64_t offset, uint64_t length,
                                     char *here)
{
	if (!k->length)
		return;
	k->iova += offset;
	k->length = length;
	k->here = here;
}

#endif
