/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two parts of the shared memory, mapped. The daemon makes them; every other process maps them.
 * Access is typed: by index, or by a checked offset.
 *
 * The daemon calls shm_region_create() once; any thread may use the accessors. extent.h allocates
 * memory within the parts. Only shm_read_begin() may wait, for a write of the daemon to end.
 */
#ifndef SHM_REGION_H
#define SHM_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shm/connection.h"
#include "shm/layout.h"
#include "shm/wire.h"

struct shm_region {
	struct shm_control *control;
	struct shm_data *data;
	size_t control_size, data_size;
	int control_fd, data_fd; /* -1: not the daemon, which alone keeps the descriptors */
	struct shm_hca *hcas;
	struct shm_port *ports;
	struct shm_qp *qps;
	struct shm_srq *srqs;
	struct shm_flow *flows;
	struct shm_sender *senders;
	struct shm_connection *connections; /* by queue pair index, as the senders */
	struct shm_wire *wires;             /* likewise */
	struct shm_wire_busy *wire_busy;    /* SHM_MAX_QPS / 64 */
	struct shm_cq *cqs;
	struct shm_cq_events *cq_events; /* SHM_MAX_CQS / 64 */
	struct shm_flow_count *flow_counts;
	struct shm_port_count *port_counts;
	struct shm_roce_port *roce_ports; /* by port */
};

/* Makes and maps both parts for @n_hcas HCAs with @n_ports ports in all. Returns 0 or -errno. */
int shm_region_create(struct shm_region *r, uint32_t n_hcas, uint32_t n_ports);

/*
 * Maps what the daemon made, the control part read-only. The descriptors stay the caller's. Returns
 * 0; -EPROTO: it is no fabric of this version, a table lies outside of its part, or a part could
 * shrink; or -errno of fstat() or mmap().
 */
int shm_region_map(struct shm_region *r, int control_fd, int data_fd);

/* Unmaps both parts, and closes the daemon's descriptors. */
void shm_region_unmap(struct shm_region *r);

/* A record of a table, by its number, which is one of the table's. */
#define SHM_TABLE_AT(record, name)                                                       \
	static inline struct shm_##record *shm_##record##_at(const struct shm_region *r, \
	                                                     uint32_t i)                 \
	{                                                                                \
		return &r->name[i];                                                      \
	}
SHM_TABLE_AT(hca, hcas)
SHM_TABLE_AT(port, ports)
SHM_TABLE_AT(qp, qps)
SHM_TABLE_AT(srq, srqs)
SHM_TABLE_AT(flow, flows)
SHM_TABLE_AT(sender, senders)
SHM_TABLE_AT(connection, connections)
SHM_TABLE_AT(wire, wires)
SHM_TABLE_AT(wire_busy, wire_busy)
SHM_TABLE_AT(cq, cqs)
SHM_TABLE_AT(cq_events, cq_events)
SHM_TABLE_AT(flow_count, flow_counts)
SHM_TABLE_AT(port_count, port_counts)
SHM_TABLE_AT(roce_port, roce_ports)

/* The address of @off in the data part, which the caller has checked. */
static inline void *shm_data_at(const struct shm_region *r, uint64_t off)
{
	return (char *)r->data + off;
}

/* The address of @off, if all @bytes there lie in the payload area; else NULL. */
static inline void *shm_payload_at(const struct shm_region *r, uint64_t off, uint32_t bytes)
{
	uint64_t from = r->control->payloads_off, size = r->control->payloads_size;

	if (off < from || off - from > size || size - (off - from) < bytes)
		return NULL;
	return shm_data_at(r, off);
}

/* One more event of a completion queue. Its channel returns events in the order in which they came.
 */
static inline void shm_cq_add_event(const struct shm_region *r, uint32_t cq, uint64_t now)
{
	struct shm_cq *c = &r->cqs[cq];

	if (!atomic_load_explicit(&c->notified, memory_order_relaxed))
		atomic_store_explicit(&c->notified_ns, now, memory_order_relaxed);
	/* release part: pairs with the acquire in is_notified(); seq_cst: before the bit */
	atomic_fetch_add_explicit(&c->notified, 1, memory_order_seq_cst);
	shm_cq_events_set(r->cq_events, cq);
}

/* Of its word `waking`: how many are about to fire its event. */
static inline uint32_t shm_cq_wakers(uint32_t waking)
{
	return waking & UINT16_MAX;
}

/* This thread, which has counted itself when the word was @counted, is not any more; unless it was
 * forgotten meanwhile. */
static inline void shm_cq_waker_ends(struct shm_cq *c, uint32_t counted)
{
	uint32_t now = atomic_load_explicit(&c->waking, memory_order_relaxed);

	/* release: pairs with the acquire in hca_cq_await_wakers() */
	while (now >> 16 == counted >> 16 &&
	       !atomic_compare_exchange_weak_explicit(&c->waking, &now, now - 1,
	                                              memory_order_release, memory_order_relaxed))
		;
}

/* For the daemon: one of them may have died. The living are forgotten as well, whose units come
 * late then: who reads one too many reads on. */
static inline void shm_cq_forget_wakers(struct shm_cq *c)
{
	uint32_t now = atomic_load_explicit(&c->waking, memory_order_relaxed);

	while (shm_cq_wakers(now) &&
	       !atomic_compare_exchange_weak_explicit(&c->waking, &now, (now | UINT16_MAX) + 1,
	                                              memory_order_relaxed, memory_order_relaxed))
		;
}

/* Nonzero once the daemon has died or has stopped. */
static inline int shm_daemon_gone(const struct shm_region *r)
{
	/* relaxed: a hint; callers read it again and again */
	return atomic_load_explicit(&r->control->daemon_futex, memory_order_relaxed) &
	               0x40000000u /* FUTEX_OWNER_DIED */
	       || atomic_load_explicit(&r->control->daemon_stopped, memory_order_relaxed);
}

/* Makes a consistent copy of a port's record; its state is DOWN if the daemon died writing it. */
void shm_port_read(const struct shm_region *r, uint32_t port, struct shm_port *copy);

/* The daemon rewrites an entry between these two calls; seq is odd meanwhile. */
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

/* The slow path of shm_read_begin(): waits until the daemon has rewritten the entry. */
bool shm_read_wait(const struct shm_region *r, const _Atomic uint32_t *seq, uint32_t *start);

/*
 * Begins to read an entry; waits while the daemon rewrites it. After the reads, shm_read_retry()
 * says whether they must be repeated. False: the daemon died while it wrote; the entry is invalid.
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

/* Makes a consistent copy of a shared receive queue's record. */
void shm_srq_read(const struct shm_region *r, uint32_t srq, struct shm_srq *copy);

/*
 * Makes a consistent copy of a queue pair's record; qpn and flags are 0 if the daemon died writing
 * it. On the sender's fast path: inline.
 */
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
