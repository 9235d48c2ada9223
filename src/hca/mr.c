/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions. Keys are an index and a byte that changes each time the index is
 * used again, so that a key of a region that is gone names nothing. Posting threads
 * look regions up without a lock; registering threads take turns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/hca.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define ACCESS_KNOWN                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define ACCESS_NEEDS_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static int check_access(unsigned access)
{
	if (access & ~(unsigned)ACCESS_KNOWN)
		return -EINVAL;
	if ((access & ACCESS_NEEDS_LOCAL_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return access & IBV_ACCESS_ON_DEMAND ? -EOPNOTSUPP : 0; /* no on-demand paging */
}

/* Whether this kernel knows the @advice (Linux 5.14): tried on memory that is surely there. */
static bool kernel_populates(uintptr_t page, int advice)
{
	char here = 0;

	return !madvise((void *)((uintptr_t)&here & ~(page - 1)), page, advice);
}

/*
 * Touches the pages, as pinning them does: a message then meets no page fault, and
 * memory that is not there, or not writable though it must be, is found now.
 */
static int populate(void *addr, size_t length, unsigned access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1);
	uintptr_t to = base_align_up((uintptr_t)addr + length, page);
	int advice = access & IBV_ACCESS_LOCAL_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if ((uintptr_t)addr + length < (uintptr_t)addr)
		return -EINVAL;
	if (!length || !madvise((void *)from, to - from, advice))
		return 0;
	/* EINVAL: the pages may not be read or written so; or the kernel is an old one */
	if (errno == EAGAIN || (errno == EINVAL && !kernel_populates(page, advice)))
		return 0;
	return -EFAULT;
}

/* The place of @index in the table. */
static struct hca_mr *_Atomic *entry_of(struct hca_mr_table *t, uint32_t index)
{
	struct hca_mr *_Atomic *chunk =
	        atomic_load_explicit(&t->chunk[index / HCA_MR_CHUNK], memory_order_relaxed);

	if (!chunk) {
		chunk = calloc(HCA_MR_CHUNK, sizeof(*chunk));
		if (!chunk)
			return NULL;
		/* release: pairs with the acquire in hca_mr_resolve() */
		atomic_store_explicit(&t->chunk[index / HCA_MR_CHUNK], chunk, memory_order_release);
	}
	return &chunk[index % HCA_MR_CHUNK];
}

/* The changing byte of the key at @index. */
static int next_key(struct hca_mr_table *t, uint32_t index, uint8_t *key)
{
	if (index >= t->n_keys) {
		uint32_t n = t->ids.size;
		uint8_t *p = realloc(t->key, n);

		if (!p)
			return -ENOMEM;
		memset(p + t->n_keys, 1, n - t->n_keys); /* no key is 0 */
		t->key = p;
		t->n_keys = n;
	}
	*key = t->key[index]++;
	return 0;
}

static int publish(struct hca_mr_table *t, struct hca_mr *mr)
{
	struct hca_mr *_Atomic *entry;
	uint32_t index;
	uint8_t key;
	int ret;

	pthread_mutex_lock(&t->lock);
	ret = base_idtable_add(&t->ids, mr, &index);
	if (ret)
		goto out;
	entry = entry_of(t, index);
	ret = entry ? next_key(t, index, &key) : -ENOMEM;
	if (ret) {
		base_idtable_remove(&t->ids, index);
		goto out;
	}
	mr->mr.lkey = mr->mr.rkey = index << 8 | key;
	mr->mr.handle = index;
	/* release: pairs with the acquire in hca_mr_resolve() */
	atomic_store_explicit(entry, mr, memory_order_release);
out:
	pthread_mutex_unlock(&t->lock);
	return ret == -ENOSPC ? -ENOMEM : ret;
}

struct hca_mr *hca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               unsigned access, int *error)
{
	struct hca_mr *mr;

	*error = check_access(access);
	if (!*error)
		*error = populate(addr, length, access);
	if (*error)
		return NULL;
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		*error = -ENOMEM;
		return NULL;
	}
	mr->mr =
	        (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = length };
	mr->iova = iova;
	mr->access = access;
	*error = publish(&hca_context(pd->context)->process->mrs, mr);
	if (*error) {
		free(mr);
		return NULL;
	}
	((struct hca_pd *)pd)->users++;
	return mr;
}

static struct hca_mr *_Atomic *entry_of_mr(struct hca_mr_table *t, const struct hca_mr *mr)
{
	return entry_of(t, mr->mr.handle);
}

int hca_mr_reregister(struct hca_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                      unsigned access)
{
	struct hca_mr_table *t = &hca_context(mr->mr.context)->process->mrs;
	struct hca_mr next = *mr;
	uint8_t key;
	int ret;

	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		next.mr.addr = addr;
		next.mr.length = length;
		next.iova = (uintptr_t)addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		next.mr.pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		next.access = access;
	ret = check_access(next.access);
	if (!ret)
		ret = populate(next.mr.addr, next.mr.length, next.access);
	if (ret)
		return ret;
	pthread_mutex_lock(&t->lock);
	ret = next_key(t, mr->mr.handle, &key);
	if (!ret) {
		atomic_store_explicit(entry_of_mr(t, mr), NULL, memory_order_release);
		next.mr.lkey = next.mr.rkey = mr->mr.handle << 8 | key;
		((struct hca_pd *)mr->mr.pd)->users--;
		((struct hca_pd *)next.mr.pd)->users++;
		*mr = next;
		atomic_store_explicit(entry_of_mr(t, mr), mr, memory_order_release);
	}
	pthread_mutex_unlock(&t->lock);
	return ret;
}

void hca_mr_deregister(struct hca_mr *mr)
{
	struct hca_mr_table *t = &hca_context(mr->mr.context)->process->mrs;

	pthread_mutex_lock(&t->lock);
	atomic_store_explicit(entry_of_mr(t, mr), NULL, memory_order_release);
	base_idtable_remove(&t->ids, mr->mr.handle);
	pthread_mutex_unlock(&t->lock);
	((struct hca_pd *)mr->mr.pd)->users--;
	free(mr);
}
