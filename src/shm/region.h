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

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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
	struct shm_wire *wires; /* by port */
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
	uint64_t from = r->control->payloads_off, size = r->control->payloads_size;

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

/* A consistent copy of a port's record; of one that is down, if the manager died at it. */
void shm_port_read(const struct shm_region *r, uint32_t port, struct shm_port *copy);

/* Brackets a rewrite of an entry: seq is odd in between. The manager only. */
static inline void shm_write_begin(_Atomic uint32_t *seq)
{
	atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* odd seq before the new fields */
}

static inline void shm_write_end(_Atomic uint32_t *seq)
{
	/* release: pairs with the acquire in shm_read_begin() */
	atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1,
	                      memory_order_release);
}

/* What shm_read_begin() does when the entry is just being rewritten. */
bool shm_read_wait(const struct shm_region *r, const _Atomic uint32_t *seq, uint32_t *start);

/*
 * Begins to read an entry; shm_read_retry() says whether it has to be read again. False: the
 * manager died while it rewrote the entry, which is none any more.
 */
static inline bool shm_read_begin(const struct shm_region *r, const _Atomic uint32_t *seq,
                                  uint32_t *start)
{
	/* acquire: pairs with the release in shm_write_end() */
	*start = atomic_load_explicit((_Atomic uint32_t *)seq, memory_order_acquire);
	return __builtin_expect(!(*start & 1), 1) || shm_read_wait(r, seq, start);
}

static inline int shm_read_retry(const _Atomic uint32_t *seq, uint32_t start)
{
	atomic_thread_fence(memory_order_acquire); /* the fields before the second look at seq */
	return atomic_load_explicit((_Atomic uint32_t *)seq, memory_order_relaxed) != start;
}

/* A consistent copy of a queue pair's record, one of no QP if the manager died over it. On the
 * sender's fast path: inline. */
static inline void shm_qp_read(const struct shm_region *r, uint32_t qpn, struct shm_qp *copy)
{
	const struct shm_qp *q = &r->qps[SHM_QP_INDEX(qpn)];
	uint32_t seq;
	bool alive;

	do {
		alive = shm_read_begin(r, &q->seq, &seq);
		memcpy((void *)copy, q, sizeof(*copy));
	} while (alive && shm_read_retry(&q->seq, seq));
	if (!alive)
		copy->qpn = copy->flags = 0;
}

#endif
