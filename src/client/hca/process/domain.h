/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains. A program holds handles, each a struct ibv_pd. Several handles may name one
 * domain: a parent domain names the domain of the PD from which it was made, an imported PD that of
 * the handle from which it was imported. A queue pair can use a key or an address handle of the
 * same domain, by whatever handle each was made.
 *
 * A parent domain has its own thread domain and allocators (ibv_alloc_parent_domain(3)). Queue
 * pairs in a thread domain lock all the same: an uncontended lock costs little.
 *
 * Thread-safe, but no thread may use a handle while another deallocates it.
 */
#ifndef HCA_DOMAIN_H
#define HCA_DOMAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "base/hash.h"

struct hca_command_file;
struct hca_context;

struct hca_domain {
	struct base_hash_node node; /* of the file, while it is not deallocated */
	struct hca_command_file *file;
	uint32_t handle;
	uint32_t number;        /* of its own in the process */
	uint32_t hca_handle;    /* by which the daemon knows the HCA that it was made with */
	_Atomic uint32_t users; /* objects that were made in it, with whatever handle */
	/* under the process's file_lock: */
	unsigned handles; /* struct hca_pd that are no parent domains */
	bool listed;
};

struct hca_td {
	struct ibv_td td;
	_Atomic uint32_t users; /* parent domains */
};

struct hca_pd {
	struct ibv_pd pd;
	struct hca_domain *domain;
	_Atomic uint32_t
	        users; /* objects that were made with it, and 1 until the program gives it up */
	/* a parent domain has these: */
	struct hca_pd *base; /* from which it was made; NULL: this is no parent domain */
	struct hca_td *td;   /* or NULL */
	struct ibv_parent_domain_init_attr attr;
};

static inline struct hca_pd *hca_pd(struct ibv_pd *pd)
{
	return (struct hca_pd *)pd;
}

/* Frees a handle that has no users. */
void hca_pd_free(struct hca_pd *pd);

/* Counts an object that was made in @pd; hca_pd_unuse(): that was destroyed. */
static inline void hca_pd_use(struct ibv_pd *pd)
{
	atomic_fetch_add_explicit(&hca_pd(pd)->users, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&hca_pd(pd)->domain->users, 1, memory_order_relaxed);
}

static inline void hca_pd_unuse(struct ibv_pd *pd)
{
	atomic_fetch_sub_explicit(&hca_pd(pd)->domain->users, 1, memory_order_relaxed);
	/* acq_rel: the thread that frees the PD sees all that other threads did with it */
	if (atomic_fetch_sub_explicit(&hca_pd(pd)->users, 1, memory_order_acq_rel) == 1)
		hca_pd_free(hca_pd(pd));
}

/* A new domain. NULL: *@error. */
struct ibv_pd *hca_pd_alloc(struct hca_context *ctx, int *error);
/* Of a parent domain too. -EBUSY: objects are in it, or a parent domain was made of it; -ENOENT: it
 * was deallocated by another handle. */
int hca_pd_dealloc(struct ibv_pd *pd);

/* Another handle of a domain of @ctx's file. NULL: *@error. -ENOENT: there is no such domain. */
struct ibv_pd *hca_pd_import(struct hca_context *ctx, uint32_t handle, int *error);
/* Gives up a handle, but not the domain. */
void hca_pd_unimport(struct ibv_pd *pd);

/* NULL: *@error. -EINVAL: @attr's PD is missing, or it or the thread domain is of another device;
 * -EOPNOTSUPP: an unknown attribute. */
struct ibv_pd *hca_pd_alloc_parent(struct hca_context *ctx,
                                   const struct ibv_parent_domain_init_attr *attr, int *error);

static inline bool hca_pd_is_parent(struct ibv_pd *pd)
{
	return hca_pd(pd)->base;
}

struct ibv_td *hca_td_alloc(struct hca_context *ctx, int *error);
/* -EBUSY: a parent domain has it. */
int hca_td_dealloc(struct ibv_td *td);

/* The use of a block of memory; a program's allocator is told, as the resource type. */
enum hca_pd_memory {
	HCA_PD_RECEIVE_QUEUE = 1,
};

struct hca_pd_block {
	void *memory;         /* NULL: there is none */
	struct hca_pd *owner; /* whose allocator it is from; NULL: it is from the heap */
};

/* Zeroed memory for queues: from @pd's allocator, or from the heap if @pd has none or its allocator
 * says so. 0 or -ENOMEM. */
int hca_pd_block_get(struct ibv_pd *pd, size_t bytes, enum hca_pd_memory type,
                     struct hca_pd_block *block);
void hca_pd_block_put(struct hca_pd_block *block, enum hca_pd_memory type);

#endif
