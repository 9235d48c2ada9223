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

#include "base/fast.h"
#include "shm/connection.h"
#include "shm/layout.h"
#include "shm/packets.h"

/* Memory is mapped by pieces of so many bytes. */
#define SHM_PIECE_SHIFT 18
#define SHM_PIECE       (1ull << SHM_PIECE_SHIFT)

enum shm_piece_state {
	SHM_PIECE_MAPPED = 1,
	SHM_PIECE_PAYLOAD = 2, /* likewise, and all of it is payload memory */
};

/* The pieces of a part that this process has mapped. Copies of a region share them. */
struct shm_pieces {
	_Atomic int32_t lock; /* the process that maps a piece; 0: none */
	uint64_t n;
	_Atomic uint8_t state[]; /* enum shm_piece_state; 0: not mapped */
};

struct shm_part {
	char *base; /* where the part lies; only its pieces are mapped */
	uint64_t size;
	struct shm_pieces *pieces;
	uint64_t payloads, payloads_end; /* these pieces are payload memory */
	int fd;                          /* -1: no more pieces can be mapped */
	int prot;
};

/*
 * The tables of both parts in the order in which they lie there: T(part, record, name, how many
 * records). A table's NAME_off in struct shm_control, *c, says where it begins. Its NAME in struct
 * shm_region is where record 0 would be, for shm_RECORD_at() alone.
 */
#define SHM_TABLES(T)                                   \
	T(control, hca, hcas, c->n_hcas)                \
	T(control, port, ports, c->n_ports)             \
	T(control, qp, qps, SHM_MAX_QPS)                \
	T(control, srq, srqs, SHM_MAX_SRQS)             \
	T(control, flow, flows, SHM_MAX_FLOWS)          \
	T(data, port_count, port_counts, c->n_ports)    \
	T(data, roce_port, roce_ports, c->n_ports)      \
	T(data, cq_events, cq_events, SHM_MAX_CQS / 64) \
	T(data, wire_busy, wire_busy, SHM_MAX_QPS / 64) \
	T(data, sender, senders, SHM_MAX_QPS)           \
	T(data, connection, connections, SHM_MAX_QPS)   \
	T(data, cq, cqs, SHM_MAX_CQS)                   \
	T(data, flow_count, flow_counts, SHM_MAX_FLOWS) \
	T(data, wire, wires, SHM_MAX_QPS)

struct shm_region {
	struct shm_control *control;
	struct shm_data *data;
	struct {
		struct shm_part control, data;
	} part;
#define SHM_TABLE_MEMBER(part, record, name, n) struct shm_##record *all_##name;
	SHM_TABLES(SHM_TABLE_MEMBER)
};

/* Makes both parts for @n_hcas HCAs with @n_ports ports in all. Returns 0 or -errno. */
int shm_region_create(struct shm_region *r, uint32_t n_hcas, uint32_t n_ports);

/*
 * Finds a place for what the daemon made, the control part read-only. The descriptors stay the
 * caller's; the region has copies of them. Returns 0; -EPROTO: it is no fabric of this version, a
 * table lies outside of its part, or a part could shrink; or -errno of fstat(), fcntl() or mmap().
 */
int shm_region_map(struct shm_region *r, int control_fd, int data_fd);

/* Likewise, for a process that only reads of HCAs and ports: maps these tables, and has no
 * descriptors. */
int shm_region_map_ports(struct shm_region *r, int control_fd, int data_fd);

/* Unmaps both parts, and closes the descriptors. */
void shm_region_unmap(struct shm_region *r);

/* Maps what is not mapped of the @bytes at @off. 0; -ENOMEM: they lie outside of the part, or
 * cannot be mapped (ulimit -v, or this program has mapped something there). Any thread. */
int shm_part_map(const struct shm_part *p, uint64_t off, uint64_t bytes);

/* The slow path of shm_RECORD_at(): maps the record. If that cannot be, it is one of zeros that
 * nobody shares. */
void *shm_record_map(const struct shm_part *p, void *record, uint64_t bytes);

/* The state of the piece that has the byte at @off of the part. */
static inline uint8_t shm_piece_state(const struct shm_part *p, uint64_t off)
{
	/* acquire: pairs with the release in map_pieces(); once mapped it stays so */
	return atomic_load_explicit(&p->pieces->state[off >> SHM_PIECE_SHIFT],
	                            memory_order_acquire);
}

/*
 * A record of a table, by its number, which is one of the table's. The tables of HCAs and ports are
 * mapped as a whole: all processes read there, at each message.
 */
#define SHM_TABLE_AT(of, record, name, n)                                                \
	static inline struct shm_##record *shm_##record##_at(const struct shm_region *r, \
	                                                     uint32_t i)                 \
	{                                                                                \
		struct shm_##record *at = &r->all_##name[i];                             \
		const struct shm_part *p = &r->part.of;                                  \
		uint64_t off = (uint64_t)((char *)at - p->base);                         \
                                                                                         \
		if (offsetof(struct shm_region, all_##name) <=                           \
		    offsetof(struct shm_region, all_ports))                              \
			return at;                                                       \
		/* of powers of two none lies in two pieces */                           \
		if (base_likely(shm_piece_state(p, off) &&                               \
		                (!(sizeof(*at) & (sizeof(*at) - 1)) ||                   \
		                 shm_piece_state(p, off + sizeof(*at) - 1))))            \
			return at;                                                       \
		return shm_record_map(p, at, sizeof(*at));                               \
	}
SHM_TABLES(SHM_TABLE_AT)

/* The address of @off in the data part, which the caller has checked, and mapped if it is not the
 * start. */
static inline void *shm_data_at(const struct shm_region *r, uint64_t off)
{
	return (char *)r->data + off;
}

/* Maps the @bytes at @off in the data part. NULL: they cannot be. */
static inline void *shm_data_map(const struct shm_region *r, uint64_t off, uint64_t bytes)
{
	return shm_part_map(&r->part.data, off, bytes) ? NULL : shm_data_at(r, off);
}

/* The slow path of shm_payload_at(). */
void *shm_payload_map(const struct shm_region *r, uint64_t off, uint32_t bytes);

/* The address of @off, if all @bytes there lie in the payload area, and can be mapped; else NULL.
 */
static inline void *shm_payload_at(const struct shm_region *r, uint64_t off, uint32_t bytes)
{
	if (base_likely(off < r->part.data.size &&
	                shm_piece_state(&r->part.data, off) == SHM_PIECE_PAYLOAD &&
	                (off & (SHM_PIECE - 1)) + bytes <= SHM_PIECE))
		return shm_data_at(r, off);
	return shm_payload_map(r, off, bytes);
}

/* The number of a completion queue. */
static inline uint32_t shm_cq_number(const struct shm_region *r, const struct shm_cq *cq)
{
	return (uint32_t)(cq - r->all_cqs);
}

/* One more event of a completion queue. Its channel returns events in the order in which they came.
 */
static inline void shm_cq_add_event(const struct shm_region *r, uint32_t cq, uint64_t now)
{
	struct shm_cq *c = shm_cq_at(r, cq);

	if (!atomic_load_explicit(&c->notified, memory_order_relaxed))
		atomic_store_explicit(&c->notified_ns, now, memory_order_relaxed);
	/* release part: pairs with the acquire in is_notified(); seq_cst: before the bit */
	atomic_fetch_add_explicit(&c->notified, 1, memory_order_seq_cst);
	shm_cq_events_set(shm_cq_events_at(r, cq / 64), cq);
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

/* For the daemon: one of them may have died. The living are forgotten as well, and their units come
 * late then: a thread that reads one too many reads on. */
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
	const struct shm_qp *q = shm_qp_at(r, SHM_QP_INDEX(qpn));
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
