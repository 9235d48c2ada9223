/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two parts of the shared memory, mapped: made by the manager, mapped by every
 * other process. Typed access by index or by checked offset.
 *
 * shm_region_create() runs once in the manager; the accessors are safe from any
 * thread. Nothing here allocates: extents are handed out by extent.h.
 */
#ifndef SHM_REGION_H
#define SHM_REGION_H

#include <stddef.h>

#include "shm/layout.h"

struct shm_region {
	struct shm_control *control;
	struct shm_data *data;
	size_t control_size, data_size;
	int control_fd, data_fd; /* -1 where the mapping outlives the descriptor */
	struct shm_hca *hcas;
	struct shm_port *ports;
	struct shm_qp *qps;
	struct shm_flow *flows;
	struct shm_sender *senders;
	struct shm_cq *cqs;
	struct shm_flow_count *flow_counts;
	struct shm_port_count *port_counts;
};

/* Makes and maps both parts for so many HCAs and ports. 0 or -errno. */
int shm_region_create(struct shm_region *r, uint32_t n_hcas, uint32_t n_ports);

/* Maps what the manager made; control read-only. Keeps no descriptor. 0, -EPROTO if it is
 * not a fabric of this version, or -errno of mmap. */
int shm_region_map(struct shm_region *r, int control_fd, int data_fd);

void shm_region_unmap(struct shm_region *r);

static inline void *shm_data_at(const struct shm_region *r, uint64_t off)
{
	return (char *)r->data + off;
}

/* The @bytes at @off if they lie in the payload area, else NULL. */
static inline void *shm_payload_at(const struct shm_region *r, uint64_t off, uint32_t bytes)
{
	uint64_t from = r->data->payloads_off, size = r->data->payloads_size;

	if (off < from || off - from > size || size - (off - from) < bytes)
		return NULL;
	return shm_data_at(r, off);
}

/* Nonzero once the manager has died or has stopped. */
static inline int shm_manager_gone(const struct shm_region *r)
{
	/* relaxed: a hint that is looked at again and again */
	return atomic_load_explicit(&r->control->manager_futex, memory_order_relaxed) &
	               0x40000000u /* FUTEX_OWNER_DIED */
	       || atomic_load_explicit(&r->control->manager_stopped, memory_order_relaxed);
}

/* Consistent copies of what the manager rewrites in place. */
void shm_port_read(const struct shm_region *r, uint32_t port, struct shm_port *copy);
void shm_qp_read(const struct shm_region *r, uint32_t qpn, struct shm_qp *copy);

/* Brackets a rewrite of an entry: seq is odd in between. The manager only. */
static inline void shm_write_begin(_Atomic uint32_t *seq)
{
	atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* odd seq before the new fields */
}

static inline void shm_write_end(_Atomic uint32_t *seq)
{
	/* release: pairs with the acquire load of seq in shm_read_begin() */
	atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1,
	                      memory_order_release);
}

static inline uint32_t shm_read_begin(const _Atomic uint32_t *seq)
{
	uint32_t s;

	while ((s = atomic_load_explicit((_Atomic uint32_t *)seq, memory_order_acquire)) & 1)
		__builtin_ia32_pause();
	return s;
}

static inline int shm_read_retry(const _Atomic uint32_t *seq, uint32_t start)
{
	atomic_thread_fence(memory_order_acquire); /* the fields before the second look at seq */
	return atomic_load_explicit((_Atomic uint32_t *)seq, memory_order_relaxed) != start;
}

#endif
