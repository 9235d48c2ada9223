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
 * What the program has protected against itself (mprotect(2)) is reached by the descriptor, too.
 *
 * A peer on another machine chooses the moment of what it writes and reads, so this process may
 * have protected or unmapped that memory of its own. Then it reaches itself as it reaches another
 * process (hca_memory_get_from_outside()): what is not there is an error, and no signal.
 *
 * Which one it is, is tried once for each process, and again if the process forbids the first later
 * (PR_SET_DUMPABLE), or its first thread ends (pthread_exit(3)).
 *
 * Either way reaches the address space in which the keys were published, or none. A process that
 * calls exec() gets another address space, and another process may get its PID. The descriptor
 * belongs to the address space. The system calls take a PID, but carry out a whole list of pieces
 * in one address space, in order, up to the first that is not there: so each list begins with the
 * guard (shm_keys.guard), which no other address space has.
 */
#ifndef HCA_MEMORY_H
#define HCA_MEMORY_H

#include <string.h>
#include <sys/uio.h>

#include "base/fast.h"
#include "hca/process/process.h"
#include "shm/connection.h"

enum hca_memory_way {
	HCA_MEMORY_NONE,
	HCA_MEMORY_OWN,
	HCA_MEMORY_VM,
	HCA_MEMORY_FILE,
	HCA_MEMORY_GONE, /* the process had ended before it was tried */
};

/* A memory object of another process (object.h), which this process has mapped. */
struct hca_mapping {
	LIST_ENTRY(hca_mapping) entry;
	struct shm_object of;    /* a copy, but for the serial */
	uint32_t index;          /* of that, in the process's table */
	_Atomic uint32_t serial; /* that it had last */
	uint64_t from, to;       /* its addresses in that process; both 0: it cannot be mapped */
	char *here;
	size_t attached; /* bytes, of a segment; it begins of.offset before here */
};

struct hca_memory {
	struct base_hash_node node; /* of the process, by client */
	unsigned refs;
	bool known;        /* its way was found */
	bool from_outside; /* this process's own memory, reached as another process's */
	_Atomic enum hca_memory_way way;
	struct hca_process *process; /* this one */
	struct shm_keys *keys;
	uint64_t keys_off, witness;
	uint64_t guard;
	uint32_t client;
	_Atomic uint32_t qpn; /* a queue pair of its, by which the daemon is asked for it */
	pid_t pid;
	int fd;         /* of all of it; negative: there is none yet */
	int adopted_fd; /* -1: not asked for yet; -2: there is none that we may map */
	struct hca_mapping *_Atomic mapped[SHM_OBJECTS]; /* as it was mapped last */
	LIST_HEAD(hca_mappings, hca_mapping) mappings;
	struct hca_mappings retired; /* nothing of the other process's is there any more */
	unsigned n_mappings, n_retired;
};

/* The memory of the process of queue pair @q; hca_memory_put() gives it up. NULL: no memory left.
 * Its way is HCA_MEMORY_NONE if it cannot be reached, HCA_MEMORY_GONE if it has ended. */
struct hca_memory *hca_memory_get(struct hca_process *p, const struct shm_qp *q);
/* The same; this process's own memory is reached as other processes reach it, unless nothing but a
 * plain access leads there. */
struct hca_memory *hca_memory_get_from_outside(struct hca_process *p, const struct shm_qp *q);
void hca_memory_put(struct hca_process *p, struct hca_memory *m);

/* It is reached by queue pair @q, which is there: the queue pair by which it was reached before may
 * be gone. With XRC it may be the memory of another process than the target's. */
static inline void hca_memory_ask_by(struct hca_memory *m, const struct shm_qp *q)
{
	if (m && m->client == q->client &&
	    atomic_load_explicit(&m->qpn, memory_order_relaxed) != q->qpn)
		atomic_store_explicit(&m->qpn, q->qpn, memory_order_relaxed);
}

/* The mapping of that process's memory object @index, of whose memory the caller is using a key. It
 * lasts as long as @m. NULL: it cannot be mapped, and is reached as other memory. */
const struct hca_mapping *hca_memory_map(struct hca_memory *m, uint32_t index);

/* The address of a part that is in a null region (ibv_alloc_null_mr(3)): it reads as zeros, and
 * discards what is written. No memory is there. */
#define HCA_MEMORY_NULL ((void *)-1)

/* Parts of a process's memory, one after the other. */
struct hca_span {
	struct hca_memory *memory;
	struct iovec *iov;
	unsigned n;
};

/* Less than 4 bytes. memmove() may write them twice. */
static inline void hca_memory_copy_few(void *to, const void *from, size_t length)
{
	const uint8_t *f = (const uint8_t *)from;
	uint8_t byte[3], *t = (uint8_t *)to;

	for (size_t i = 0; i < length; i++)
		byte[i] = f[i];
	for (size_t i = 0; i < length; i++)
		((volatile uint8_t *)t)[i] = byte[i];
}

/* More than BASE_COPY_SHORT bytes. memmove() may write the last ones before others. */
static BASE_HOT void hca_memory_copy_long(void *to, const void *from, size_t length)
{
	const size_t before = length - BASE_COPY_SHORT;
	char last[BASE_COPY_SHORT]; /* they may be where it writes */

	memcpy(last, (const char *)from + before, sizeof(last));
	memmove(to, from, before);
	atomic_thread_fence(memory_order_release);
	base_copy_short((char *)to + before, last, sizeof(last));
}

/* Copies @length bytes within what this process has mapped, after all that it copied before: a
 * program may look at its memory, and wait for the last byte to change, which comes last. The
 * places may overlap. */
static BASE_HOT void hca_memory_copy_here(void *to, const void *from, size_t length)
{
	atomic_thread_fence(memory_order_acq_rel);
	/* bytes by themselves are not copied as if they overlapped */
	if (base_likely(length - sizeof(uint32_t) <= BASE_COPY_SHORT - sizeof(uint32_t)))
		base_copy_short(to, from, length);
	else if (length > BASE_COPY_SHORT)
		hca_memory_copy_long(to, from, length);
	else
		hca_memory_copy_few(to, from, length);
}

/*
 * Copies @length bytes, as many as each span has. One of the two lies in this process. It changes
 * the spans. 0; -EFAULT: something is not there; -ESRCH: the process is gone, or cannot be reached
 * before this one has a free descriptor.
 */
int hca_memory_copy(struct hca_span *to, struct hca_span *from, uint64_t length);

/* The same, in order, up to the first byte that cannot be copied. Returns how many were; none
 * behind them is written. */
uint64_t hca_memory_copy_some(struct hca_span *to, struct hca_span *from, uint64_t length);

#endif
