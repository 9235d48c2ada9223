/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of a process, as another process reaches it. A thread that carries out a request
 * copies between its own process's memory and that of the other queue pair's process:
 *
 *   HCA_MEMORY_OWN	both are one process: it just copies
 *   HCA_MEMORY_VM	process_vm_readv(2) and process_vm_writev(2): one system call, one copy
 *   HCA_MEMORY_FILE	by a descriptor of the process's memory, where the other way is forbidden or
 *			the process is in another PID namespace: two copies
 *
 * Which one it is, is tried once for each process.
 */
#ifndef HCA_MEMORY_H
#define HCA_MEMORY_H

#include <string.h>
#include <sys/uio.h>

#include "base/fast.h"
#include "hca/process.h"

enum hca_memory_way { HCA_MEMORY_NONE, HCA_MEMORY_OWN, HCA_MEMORY_VM, HCA_MEMORY_FILE };

/* A part of another process's adopted memory (adopt.h), which this process has mapped. */
struct hca_mapping {
	LIST_ENTRY(hca_mapping) entry;
	uint64_t from, to; /* its addresses in that process */
	char *here;
};

struct hca_memory {
	struct base_hash_node node; /* of the process, by client */
	unsigned refs;
	enum hca_memory_way way;
	uint64_t keys_off;
	uint32_t client;
	pid_t pid;
	int fd;
	int adopted_fd; /* -1: not asked for yet; -2: there is none that we may map */
	LIST_HEAD(, hca_mapping) mappings;
	unsigned n_mappings;
};

/* The memory of the process of queue pair @q; hca_memory_put() gives it up. NULL: no memory left.
 * Its way is HCA_MEMORY_NONE if it cannot be reached. */
struct hca_memory *hca_memory_get(struct hca_process *p, const struct shm_qp *q);
void hca_memory_put(struct hca_process *p, struct hca_memory *m);

/* The mapping of memory from @from to @to, adopted by the process of queue pair @qpn, whose memory
 * is @m. It lasts as long as @m. NULL: it cannot be mapped, and is reached as other memory. */
const struct hca_mapping *hca_memory_map(struct hca_process *p, struct hca_memory *m, uint32_t qpn,
                                         uint64_t from, uint64_t to);

/* The address of a part that is in a null region (ibv_alloc_null_mr(3)): it reads as zeros, and
 * discards what is written. No memory is there. */
#define HCA_MEMORY_NULL ((void *)-1)

/* Parts of a process's memory, one after the other. */
struct hca_span {
	const struct hca_memory *memory;
	struct iovec *iov;
	unsigned n;
};

/* Copies @length bytes within what this process has mapped, after all that it copied before: a
 * program may look at its memory. The places may overlap. */
static BASE_HOT void hca_memory_copy_here(void *to, const void *from, size_t length)
{
	atomic_thread_fence(memory_order_acq_rel);
	/* bytes by themselves are not copied as if they overlapped */
	if (base_likely(length - sizeof(uint32_t) <= BASE_COPY_SHORT - sizeof(uint32_t)))
		base_copy_short(to, from, length);
	else
		memmove(to, from, length);
}

/*
 * Copies @length bytes, as many as each span has. One of the two lies in this process. It changes
 * the spans. 0; -EFAULT: something is not there; -ESRCH: the process is gone.
 */
int hca_memory_copy(struct hca_span *to, struct hca_span *from, uint64_t length);

#endif
