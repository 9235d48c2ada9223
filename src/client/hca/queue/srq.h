/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues. Queue pairs that have one take their receives there.
 *
 * Its ring in shared memory (shm/ring.h) has credits only. The thread that carries out a request
 * claims one, which names a receive; the arrival in the queue pair's own ring names it again. So
 * completions are polled where each queue pair's are, in their order, and receives come back in any
 * order.
 *
 * Thread-safe: `lock` protects all below it.
 */
#ifndef HCA_SRQ_H
#define HCA_SRQ_H

#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "base/lock.h"
#include "hca/process/context.h"
#include "shm/ring.h"

struct hca_qp;
struct shm_entry;

struct hca_srq_receive {
	uint64_t wr_id;
	uint32_t n_sge;
	uint32_t next_free;         /* 1 + its number; 0: the last */
	uint32_t use;               /* which credit of its it has (shm_receive()): that in */
	struct shm_arrival *credit; /* at */
	uint32_t position;
	bool in_use;  /* it was posted, and its completion was not polled */
	bool is_left; /* a sender holds its credit in a ring that is not used any more */
	bool is_back; /* the message that had taken it does not come: it is to have a credit */
	bool is_late; /* there was no room in the ring when it was posted: it is to have one, too */
};

struct hca_srq {
	struct ibv_srq srq; /* public */
	struct hca_context *ctx;
	const struct hca_domain *domain;
	uint32_t index;
	struct hca_async_object events;
	uint32_t max_wr, max_sge;
	uint32_t room;   /* receives that there is memory for: max_wr or more */
	uint32_t n_used; /* of these: posted, and not polled */
	uint32_t n_due;  /* how often one of them says that it is left, back or late */
	bool has_void;   /* positions of the ring may be void, whose receives are to have others */
	struct shm_ring *ring;
	struct shm_entry *entries; /* in shared memory: max_sge for each receive */
	uint8_t ring_shift;
	uint16_t ring_gen;
	struct base_lock lock;
	uint32_t posted, consumed; /* positions of the ring */
	uint32_t awaited;          /* that a post has waited for already */
	uint32_t first_free;       /* as next_free */
	struct hca_srq_receive *receive;
	struct hca_qp *xrc;    /* an XRC one is its receive queue, and has none of these: */
	struct ibv_sge *sge;   /* max_sge for each receive */
	uint32_t *at_position; /* the receive that a position of the ring stands for, or none */
	TAILQ_HEAD(, hca_qp) qps;
	_Atomic bool must_help; /* receives came back: hca_srq_help_if_due() */
};

static inline bool hca_srq_must_help(struct hca_srq *srq)
{
	return __builtin_expect(atomic_load_explicit(&srq->must_help, memory_order_relaxed), 0);
}

static inline struct hca_srq *hca_srq(struct ibv_srq *srq)
{
	return (struct hca_srq *)srq;
}

/* Maps the memory of the ring that the daemon has made, and of @max_wr receives. 0 or -ENOMEM. */
int hca_srq_map(const struct hca_srq *srq, uint32_t max_wr,
                const struct control_create_srq_reply *made);

/* Has the queue post to that ring, which is empty and mapped. */
void hca_srq_use_ring(struct hca_srq *srq, const struct control_create_srq_reply *made);

/* The room of a queue for which @asked receives are asked. */
uint32_t hca_srq_size(const struct hca_context *ctx, uint32_t asked);

/* -EINVAL: limits; -ENOMEM. *@attr becomes what there is. */
int hca_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct hca_srq **out);
/* One of XRC: @init has its XRC domain and CQ, too. Its number is that of xrc. */
int hca_srq_create_xrc(struct ibv_pd *pd, struct ibv_srq_init_attr_ex *init, struct hca_srq **out);
/* -EBUSY: a queue pair uses it. Waits until all its events are acknowledged. */
int hca_srq_destroy(struct hca_srq *srq);
/* ibv_modify_srq(3): the size and the limit. -EINVAL: more than the device has, fewer than are
 * posted, a limit above the size, or the size of an XRC one; -ENOMEM. Waits for a sender that is
 * stopped while it takes a receive, for a second at most. */
int hca_srq_modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask);
void hca_srq_query(struct hca_srq *srq, struct ibv_srq_attr *attr);
/* Not of an XRC one, whose receives are those of its queue pair (xrc). If a sender holds the oldest
 * position of a ring that is full behind it, waits for that one, once for each position and for a
 * second at most; so do polls of the queue's messages meanwhile. */
int hca_srq_post(struct hca_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* A queue pair that receives by it. */
void hca_srq_add_qp(struct hca_srq *srq, struct hca_qp *qp);
void hca_srq_remove_qp(struct hca_srq *srq, struct hca_qp *qp);
/* Receives were posted: requests of peers of its queue pairs that wait for some are gone on with.
 */
void hca_srq_help(struct hca_srq *srq);
/* It has another size: completion queues may be too small now. */
void hca_srq_has_size(struct hca_srq *srq);
void hca_srq_help_if_due(struct hca_srq *srq);

/* Receives wait for room in the ring: polls of its queue pairs' completion queues try again. */
void hca_srq_watch(struct hca_srq *srq);
/* Posts those for which there is room by now. Whether some still wait. Requests may be to be gone
 * on with: hca_srq_must_help(). */
bool hca_srq_retry(struct hca_srq *srq);

/* Takes @receive (shm_receive()), which an arrival names: copies its entries, unless @sge is NULL.
 * False: there is none such. Receives may come back by that: if hca_srq_must_help(),
 * hca_srq_help_if_due() must follow. */
bool hca_srq_take(struct hca_srq *srq, uint32_t receive, uint64_t *wr_id, struct ibv_sge *sge,
                  uint32_t *n_sge);

/* Of hca_srq_check_limit(), if there is a limit. */
void hca_srq_compare_limit(struct hca_process *p, struct shm_ring *ring, uint32_t index,
                           uint32_t next, uint32_t limit);

/* Has the event sent if fewer credits than the limit are left of @ring, which is that of shared
 * receive queue @index: those from position @next on. Of any process. */
static inline void hca_srq_check_limit(struct hca_process *p, struct shm_ring *ring, uint32_t index,
                                       uint32_t next)
{
	/* acquire: with the limit come the credits that were posted before it was set */
	uint32_t limit = atomic_load_explicit(&ring->limit, memory_order_acquire);

	if (__builtin_expect(limit != 0, 0))
		hca_srq_compare_limit(p, ring, index, next, limit);
}

/*
 * A message did not come that had taken @receive, or SHM_NO_RECEIVE, as far as its sender has said:
 * another one can have it, and what a dead sender had of the ring. True: requests wait for that,
 * and hca_srq_help_if_due() must follow.
 */
bool hca_srq_return(struct hca_srq *srq, uint32_t receive);

/* Takes the oldest receive, as a sender with queue pair index @writer would. False: there is none.
 */
bool hca_srq_take_next(struct hca_srq *srq, uint16_t writer, uint64_t *wr_id, struct ibv_sge *sge,
                       uint32_t *n_sge);

#endif
