/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding memory regions, and touching their memory: see mr_table.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/newer_libc.h"
#include "base/reason.h"
#include "base/util.h"
#include "hca/process/maps.h"
#include "hca/process/mr_table.h"
#include "hca/process/plain.h"
#include "shm/key.h"

/* Bytes of a region whose pages stay absent until they are used. */
#define LARGE (1ull << 30)

/* ---- touching memory ---- */

/* Whether this kernel knows the @advice (Linux 5.14): tried on memory that is surely there. */
static bool kernel_populates(uintptr_t page, int advice)
{
	char here = 0;

	return !madvise((void *)((uintptr_t)&here & ~(page - 1)), page, advice);
}

bool hca_mr_has_on_demand(void)
{
	return kernel_populates((uintptr_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_WRITE);
}

/* Whether all is mapped from @from to @to, and may be read, or written to if @write. Where there is
 * no /proc to tell, it is. */
static bool is_mapped(uintptr_t from, uintptr_t to, bool write)
{
	const int prot = write ? PROT_WRITE : PROT_READ;
	struct hca_maps m;
	struct hca_vma v;

	if (!hca_maps_open(&m, "/proc/self/maps"))
		return true;
	while (from < to && hca_maps_next(&m, &v) && v.from <= from) {
		if (v.to <= from)
			continue;
		if (!(v.prot & prot))
			break;
		from = v.to;
	}
	hca_maps_close(&m);
	return from >= to;
}

static int no_memory(const void *addr, size_t length)
{
	return base_because(-EFAULT,
	                    "%zu bytes at %p are not all memory of the program that may be read, "
	                    "and written to with IBV_ACCESS_LOCAL_WRITE",
	                    length, addr);
}

/*
 * Touches the pages, as pinning does. So a message causes no page fault later, and memory that is
 * missing, or not writable though it must be, makes the registration fail. The pages of a large
 * region that nobody has touched yet stay untouched.
 */
int hca_mr_populate(void *addr, size_t length, unsigned access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1);
	uintptr_t to = base_align_up((uintptr_t)addr + length, page);
	int advice = access & IBV_ACCESS_LOCAL_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (length <= LARGE) {
		if (!length || !madvise((void *)from, to - from, advice) || errno == EAGAIN)
			return 0;
		if (kernel_populates(page, advice))
			return no_memory(addr, length);
	}
	/* nor is it touched if the kernel is an old one, or a seccomp filter denies it */
	if (is_mapped(from, to, access & IBV_ACCESS_LOCAL_WRITE))
		return 0;
	return no_memory(addr, length);
}

bool hca_mr_is_there(void *at, size_t length)
{
	return !hca_mr_populate(at, length, IBV_ACCESS_LOCAL_WRITE);
}

/* ---- the table ---- */

struct hca_mr *_Atomic *hca_mr_place(struct hca_mr_table *t, uint32_t index)
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

/* Other threads' knowledge of the table's regions may be wrong then. */
void hca_mr_set(struct hca_mr_table *t, struct hca_mr *_Atomic *place, struct hca_mr *mr)
{
	/* release: pairs with the acquire in hca_mr_resolve() */
	atomic_store_explicit(place, mr, memory_order_release);
	/* release: pairs with the acquire in hca_mr_resolve_known() */
	atomic_fetch_add_explicit(&t->changes, 1, memory_order_release);
}

bool hca_mr_overlaps(struct hca_mr_table *t, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < t->ids.size; i++) {
		const struct hca_mr *mr = base_idtable_get(&t->ids, i);
		uint64_t start, end;

		if (!mr || mr->kind == HCA_MR_WINDOW || mr->kind == HCA_MR_NULL || mr->unsettled)
			continue;
		start = (uintptr_t)mr->start & ~(HCA_PAGE - 1);
		end = (uintptr_t)mr->start + mr->mr.length;
		if (start < to && end > from)
			return true;
	}
	return false;
}

struct hca_mr *hca_mr_at(struct hca_mr_table *t, uint32_t key)
{
	return base_idtable_get(&t->ids, key >> 8);
}

/* The region or window that has the index, as threads find it without the lock. */
static struct hca_mr *look_up(struct hca_mr_table *t, uint32_t index)
{
	struct hca_mr *_Atomic *chunk;

	if (index >= HCA_MR_CHUNK * HCA_MR_CHUNKS)
		return NULL;
	/* acquire: both pair with the releases in hca_mr_place() and hca_mr_set() */
	chunk = atomic_load_explicit(&t->chunk[index / HCA_MR_CHUNK], memory_order_acquire);
	if (!chunk)
		return NULL;
	return atomic_load_explicit(&chunk[index % HCA_MR_CHUNK], memory_order_acquire);
}

struct hca_mr *hca_mr_find(struct hca_mr_table *t, uint32_t key)
{
	struct hca_mr *mr = look_up(t, key >> 8);

	return mr && mr->kind != HCA_MR_WINDOW && mr->mr.lkey == key ? mr : NULL;
}

bool hca_mr_reaches(struct hca_mr_table *t, uint32_t key, const struct shm_reach *reach)
{
	const unsigned writes =
	        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const struct hca_mr *mr = look_up(t, key >> 8);
	uint64_t offset;

	if (!mr || (mr->kind != HCA_MR_WINDOW && mr->mr.lkey != key))
		return false;
	if ((reach->access & writes) && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	offset = reach->start - (uintptr_t)mr->start;
	return reach->start >= (uintptr_t)mr->start && offset <= mr->mr.length &&
	       reach->length <= mr->mr.length - offset;
}

/* A region is known when it is found for the second time in a row: a program that uses many in turn
 * pays only the comparison. */
void *hca_mr_resolve_anew(struct hca_mr_table *mrs, struct hca_mr_known *known,
                          const struct hca_domain *domain, const struct ibv_sge *sge,
                          unsigned access)
{
	/* acquire: before the look into the table */
	uint32_t changes = atomic_load_explicit(&mrs->changes, memory_order_acquire);
	const struct hca_mr *mr;
	void *at;

	if (known->doubts)
		return NULL;
	at = hca_mr_resolve(mrs, domain, sge, access);
	if (known->lkey != sge->lkey) {
		*known = (struct hca_mr_known){ .lkey = sge->lkey };
		return at;
	}
	mr = at ? hca_mr_find(mrs, sge->lkey) : NULL;
	if (mr && mr->iova + mr->mr.length >= mr->iova) /* offsets do not wrap */
		*known = (struct hca_mr_known){ .lkey = sge->lkey,
			                        .changes = changes,
			                        .iova = mr->iova,
			                        .length = mr->mr.length,
			                        .start = mr->start };
	return at;
}

/* ---- regions that are not ordinary ---- */

/* Where the entry lies in the region; NULL: not within it. */
static void *address_in(const struct hca_mr *mr, const struct ibv_sge *sge)
{
	uint64_t offset = sge->addr - mr->iova;

	if (sge->addr < mr->iova || offset > mr->mr.length || mr->mr.length - offset < sge->length)
		return NULL;
	return (void *)((uintptr_t)mr->start + offset);
}

static void *null_memory(const struct ibv_sge *sge, unsigned access)
{
	static const char zeros[HCA_MR_ZEROS];

	if (access & IBV_ACCESS_LOCAL_WRITE)
		return HCA_MR_DISCARD;
	return sge->length <= sizeof(zeros) ? (void *)(uintptr_t)zeros : NULL;
}

/* The region of another kind with the entry's key, if it allows @access in @domain. */
static const struct hca_mr *find_special(struct hca_mr_table *mrs, const struct hca_domain *domain,
                                         const struct ibv_sge *sge, unsigned access)
{
	const struct hca_mr *mr = hca_mr_find(mrs, sge->lkey);

	return mr && mr->kind != HCA_MR_ORDINARY && mr->own_domain == domain &&
	                       (mr->access & access) == access
	               ? mr
	               : NULL;
}

bool hca_mr_is_special(struct hca_mr_table *mrs, const struct hca_domain *domain,
                       const struct ibv_sge *sge, unsigned access)
{
	const struct hca_mr *mr = find_special(mrs, domain, sge, access);

	return mr && (mr->kind == HCA_MR_NULL || address_in(mr, sge));
}

void *hca_mr_fault(struct hca_mr_table *mrs, const struct hca_domain *domain,
                   const struct ibv_sge *sge, unsigned access)
{
	const struct hca_mr *mr = find_special(mrs, domain, sge, access);
	void *addr;

	if (!mr)
		return NULL;
	if (mr->kind == HCA_MR_NULL)
		return null_memory(sge, access);
	addr = address_in(mr, sge);
	return addr && !hca_mr_populate(addr, sge->length, access) ? addr : NULL;
}

int hca_mr_advise(struct hca_mr_table *mrs, const struct hca_domain *domain,
                  enum ibv_advise_mr_advice advice, const struct ibv_sge *sge)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct hca_mr *mr = hca_mr_find(mrs, sge->lkey);
	void *addr;

	if (!mr)
		return -ENOENT;
	if (mr->own_domain != domain)
		return -EPERM;
	if (mr->kind != HCA_MR_ON_DEMAND)
		return base_because(-ENOTSUP, "the region is not on-demand");
	if (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return -EPERM;
	addr = address_in(mr, sge);
	if (!addr)
		return -EFAULT;
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return 0; /* what is present needs no translation here */
	return hca_mr_populate(addr, sge->length, write ? IBV_ACCESS_LOCAL_WRITE : 0);
}
