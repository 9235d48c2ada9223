/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of memory regions, in which they are found by their keys. An lkey is an index and a
 * byte that changes each time the index is used again, so that the key of a region that is gone
 * names nothing. No index is 0, and so no key is.
 *
 * hca_mr_resolve() finds ordinary regions. It returns NULL for two rare kinds, which hca_mr_fault()
 * finds: on-demand regions, whose pages are brought in at each use, and null regions, which read as
 * zeros and discard what is written.
 *
 * Threads that post find regions without a lock; threads that register (mr.h) share a lock.
 */
#ifndef HCA_MR_TABLE_H
#define HCA_MR_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/idtable.h"
#include "shm/connection.h"

struct hca_dm_memory;
struct hca_domain;

#define HCA_MR_CHUNK  1024
#define HCA_MR_CHUNKS 1024

enum hca_mr_kind {
	HCA_MR_ORDINARY,
	HCA_MR_ON_DEMAND, /* IBV_ACCESS_ON_DEMAND */
	HCA_MR_NULL,      /* ibv_alloc_null_mr(3) */
	HCA_MR_WINDOW,    /* no region, but a memory window: mw.c */
};

struct hca_mr {
	struct ibv_mr mr;
	const struct hca_domain *domain; /* that it can be used in; NULL: it is not ordinary */
	const struct hca_domain *own_domain;
	enum hca_mr_kind kind;
	char *start;    /* where it is; NULL is possible: all memory */
	uint32_t index; /* in the table */
	/* An imported one is another handle of the region that it was imported from. */
	struct hca_mr *region;    /* that, or itself; the table has this */
	struct hca_dm_memory *dm; /* in which it lies; or NULL */
	/* of the region itself, under the table's lock: */
	unsigned handles;          /* that the program has not given up */
	unsigned windows;          /* that are bound to it */
	struct hca_object *object; /* in which it lies (object.h); or NULL */
	bool unsettled;            /* that is just being found, or given up */
	bool gone;                 /* it is deregistered */
	/* another region covered its memory before: that has been unmapped since, perhaps, and so
	 * may this be */
	bool is_doubtful;
	uint64_t iova; /* what work requests call the first byte */
	unsigned access;
};

/* Memory that peers can map: object.h. */
struct hca_object {
	unsigned regions; /* that lie there; 0: the place is free, or waits (is_adopted) */
	bool is_adopted;  /* its pages are in the file of adopted memory */
	struct shm_object o;
};

struct hca_mr_table {
	pthread_mutex_t lock;
	struct base_idtable ids;
	uint8_t *key; /* low byte of the next lkey at an index, as far as ids go */
	uint32_t n_keys;
	struct hca_mr *_Atomic *_Atomic chunk[HCA_MR_CHUNKS];
	_Atomic uint32_t changes; /* how often a region came or went */
	uint64_t keys_off;        /* where the keys are published (keys.h); 0: they are not */
	uint32_t serial;          /* of the key that was published last (struct shm_key) */
	uint64_t witness;         /* shm_keys.witness */
	uint64_t guard;           /* shm_keys.guard */
	struct hca_object objects[SHM_OBJECTS];
};

/* Whether a region, with the pages that it begins and ends in, overlaps memory from @from to @to.
 * With the table's lock held. */
bool hca_mr_overlaps(struct hca_mr_table *t, uint64_t from, uint64_t to);

/* With the lock held: the place of @index; NULL: no memory. hca_mr_set() has it be that of @mr, or
 * nobody's. */
struct hca_mr *_Atomic *hca_mr_place(struct hca_mr_table *t, uint32_t index);
void hca_mr_set(struct hca_mr_table *t, struct hca_mr *_Atomic *place, struct hca_mr *mr);

/* With the lock held: what has the index in @key; or NULL. */
struct hca_mr *hca_mr_at(struct hca_mr_table *t, uint32_t key);

/* The region with this key, of any kind, in any domain; or NULL. Without the lock. */
struct hca_mr *hca_mr_find(struct hca_mr_table *t, uint32_t key);

struct shm_reach;

/* Whether @reach, which was found where others can write, is within what the program has registered
 * or bound by the key. Without the lock; the key stands as long as the caller uses it (keys.h). */
bool hca_mr_reaches(struct hca_mr_table *t, uint32_t key, const struct shm_reach *reach);

/* Whether the kernel can do what on-demand regions need (Linux 5.14). */
bool hca_mr_has_on_demand(void);

/* ibv_advise_mr(3), of one entry, and its errors, negative. */
int hca_mr_advise(struct hca_mr_table *mrs, const struct hca_domain *domain,
                  enum ibv_advise_mr_advice advice, const struct ibv_sge *sge);

/* Nothing is to be written to a null region. */
#define HCA_MR_DISCARD ((void *)-1)
/* The longest entry that can read a null region: no message is longer. */
#define HCA_MR_ZEROS 4096

/*
 * Called when hca_mr_resolve() has returned NULL. The address of @sge in a region that is not
 * ordinary, or HCA_MR_DISCARD; NULL: no such region either. Slow: it may ask the kernel.
 */
void *hca_mr_fault(struct hca_mr_table *mrs, const struct hca_domain *domain,
                   const struct ibv_sge *sge, unsigned access);

/* Whether hca_mr_fault() would find a region, if the memory is there: it is not looked at. */
bool hca_mr_is_special(struct hca_mr_table *mrs, const struct hca_domain *domain,
                       const struct ibv_sge *sge, unsigned access);

/* The address of @sge, if an ordinary region in @domain allows @access there; else NULL. */
static inline void *hca_mr_resolve(struct hca_mr_table *mrs, const struct hca_domain *domain,
                                   const struct ibv_sge *sge, unsigned access)
{
	uint32_t index = sge->lkey >> 8;
	struct hca_mr *_Atomic *chunk;
	struct hca_mr *mr;

	if (index >= HCA_MR_CHUNK * HCA_MR_CHUNKS)
		return NULL;
	/* acquire: pairs with the releases in mr_table.c */
	chunk = atomic_load_explicit(&mrs->chunk[index / HCA_MR_CHUNK], memory_order_acquire);
	if (!chunk)
		return NULL;
	mr = atomic_load_explicit(&chunk[index % HCA_MR_CHUNK], memory_order_acquire);
	if (!mr || mr->mr.lkey != sge->lkey || mr->domain != domain ||
	    (mr->access & access) != access)
		return NULL;
	if (sge->addr < mr->iova || sge->addr - mr->iova > mr->mr.length ||
	    mr->mr.length - (sge->addr - mr->iova) < sge->length)
		return NULL;
	return mr->start + (sge->addr - mr->iova);
}

/* The region that was found last, for a caller that looks for the same access in the same domain
 * each time. All zero: none. */
struct hca_mr_known {
	uint32_t lkey;
	uint32_t changes; /* of the table, when it was found */
	uint64_t iova, length;
	char *start;
	bool doubts; /* memory of regions may have been unmapped: none is known */
};

/* Touches the memory, as registering it does. 0, or -EFAULT: it is not all there, or may not be
 * written to though @access says so. A system call. */
int hca_mr_populate(void *addr, size_t length, unsigned access);

/* Whether the memory is there, and may be written to. A system call. */
bool hca_mr_is_there(void *at, size_t length);

/* hca_mr_resolve(); if it finds the region of @known, it is known from now on. */
void *hca_mr_resolve_anew(struct hca_mr_table *mrs, struct hca_mr_known *known,
                          const struct hca_domain *domain, const struct ibv_sge *sge,
                          unsigned access);

/* hca_mr_resolve(), which need not look into the table for the region that it found before. */
static inline void *hca_mr_resolve_known(struct hca_mr_table *mrs, struct hca_mr_known *known,
                                         const struct hca_domain *domain, const struct ibv_sge *sge,
                                         unsigned access)
{
	uint64_t offset = sge->addr - known->iova;

	/* acquire: pairs with the release in hca_mr_set() */
	if (__builtin_expect(sge->lkey != known->lkey || offset > known->length ||
	                             known->length - offset < sge->length ||
	                             atomic_load_explicit(&mrs->changes, memory_order_acquire) !=
	                                     known->changes,
	                     0))
		return hca_mr_resolve_anew(mrs, known, domain, sge, access);
	return known->start + offset;
}

#endif
