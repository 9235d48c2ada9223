/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A receive queue. Posted requests wait in a FIFO of this process; for each one, the shared ring
 * (shm/ring.h) has a credit, which a sender claims. A thread that polls the CQ consumes arrivals:
 * for each, it uses the oldest request, checks that request's memory regions, copies the message,
 * and completes. The transport decides what is copied where (transport.h).
 *
 * Positions of the ring and requests of the FIFO differ. If a sender dies, the daemon makes the
 * position that it had claimed void. Polling then posts a position anew, and the request stays in
 * the FIFO, so requests are used in the order in which they were posted.
 *
 * A queue pair has its own queue. If its receives are shared (srq.h), messages arrive there all the
 * same. Thread-safe: `lock` protects it; polling also holds the CQ's lock.
 */
#ifndef HCA_RQ_H
#define HCA_RQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/fast.h"
#include "base/lock.h"
#include "hca/process/domain.h"
#include "hca/process/process.h"
#include "shm/connection.h"
#include "shm/ring.h"

struct hca_cq;
struct hca_rq;
struct hca_srq;

struct hca_rwqe {
	uint64_t wr_id;
	uint32_t n_sge;
};

enum hca_rq_mode {
	HCA_RQ_CLOSED,  /* the queue pair is in RESET, or going: nothing may be posted */
	HCA_RQ_OPEN,    /* what is posted is a credit */
	HCA_RQ_WATCHED, /* likewise, and the CQ needs to know how many bytes requests have room for
	                 */
	HCA_RQ_CONNECTED, /* what is posted is a credit that says where a message goes */
	HCA_RQ_FLUSHING,  /* in ERR: what is posted completes in error */
};

/* Why an arrival is not completed. */
enum hca_rq_stops {
	HCA_RQ_FAILED = 1,   /* a receive has failed: the queue pair must go to ERR */
	HCA_RQ_DISCARDS = 2, /* n_discard is not 0 */
};

struct hca_rq {
	/* hca_transport.receive, receive_shared, or what counts them: comp_counter.c */
	int (*receive)(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);
	struct hca_process *process;
	struct hca_cq *cq;
	const struct hca_domain *domain;
	uint32_t qpn; /* of its queue pair */
	struct hca_mr_known
	        known; /* where UD receives went last; of all: whether there are doubts */
	struct base_lock lock;
	struct shm_ring *ring;
	uint8_t ring_shift;
	uint16_t ring_gen;
	uint16_t ready_bit;    /* in the CQ's ready map; SHM_NO_READY_BIT: each poll looks at it */
	_Atomic uint8_t mode;  /* enum hca_rq_mode */
	_Atomic uint8_t stops; /* enum hca_rq_stops */
	/* written with the CQ's lock held: */
	uint8_t announced;    /* messages that the last arrival's sender sends next, in one list */
	uint32_t flushes_due; /* its part of the CQ's */
	uint32_t list_end;    /* a position that polls have waited for: is_behind() in cq_poll.c */
	_Atomic uint32_t posted;   /* ring positions; written under the lock */
	_Atomic uint32_t consumed; /* likewise */
	uint32_t n_discard;        /* so many of the next positions hold what came before a reset */
	uint64_t flushed_ns;       /* when it began to flush, or was reset */
	uint32_t n_void;           /* void positions that were consumed and must be posted anew */
	uint32_t max_wr, max_sge;
	/* HCA_RQ_WATCHED: the least room of a posted request below capacity_upto */
	uint32_t least_capacity, capacity_upto;
	struct hca_pd_block memory; /* of the two below */
	struct hca_rwqe *rwqe;      /* FIFO of posted requests */
	struct ibv_sge *rsge;       /* max_sge + 1 for each */
	uint32_t rwqe_mask;
	_Atomic uint32_t rwqe_head, rwqe_tail;
	_Atomic uint32_t aside;     /* completions that were set aside: comp_counter.h */
	struct hca_rq *next_of_bit; /* in the CQ's chain of that ready bit */
	/*
	 * Of connected queue pairs: the thread that carries out a request looks up where the
	 * receive is, so a position of the ring and its request have the same number.
	 */
	struct hca_qp *connected;
	/* its receives were posted: requests of its peer may wait for them */
	void (*help)(struct hca_qp *qp);
	struct shm_connection *connection;
	struct shm_entry *entries; /* max_sge for each position */
	struct hca_srq *srq;       /* where its receives come from: all positions are credits */
};

/* Allocates memory for @max_wr requests of @max_sge, by @pd's allocator if it has one. 0 or
 * -ENOMEM. */
int hca_rq_init(struct hca_rq *rq, struct ibv_pd *pd, uint32_t max_wr, uint32_t max_sge);
void hca_rq_fini(struct hca_rq *rq);

/* Posts a list. -EINVAL, -ENOMEM, -EIO: *@bad is the request that was not posted. */
int hca_rq_post(struct hca_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * The CQ is armed for solicited messages: lowers its limit (fails_above of struct shm_cq) to the
 * bytes that a message with its GRH may have without failing a receive that is posted here, now or
 * later. With the CQ's lock held.
 */
void hca_rq_watch_capacity(struct hca_rq *rq);

/* Of a queue pair with a shared receive queue: makes all positions credits. With the CQ's lock
 * held, or before anybody knows the queue. */
void hca_rq_refill(struct hca_rq *rq);
/* The same with its own lock held, too. */
void hca_rq_refill_locked(struct hca_rq *rq);

/* How many completions wait in it, and how many messages have arrived. Those that were set aside
 * count as both. With the CQ's lock held. */
uint32_t hca_rq_waiting(struct hca_rq *rq);
uint32_t hca_rq_arrived(struct hca_rq *rq);

/* In ERR: how many of its requests are to complete in error. Those of messages that have come, or
 * are coming, are not. With the CQ's lock held. */
uint32_t hca_rq_flushes(struct hca_rq *rq);

/* ERR: nothing more is accepted, and what is posted completes in error. */
void hca_rq_flush(struct hca_rq *rq);
/* RESET: nothing more is accepted, and what is posted is forgotten. */
void hca_rq_reset(struct hca_rq *rq);
/* The ring is not ours any more: there is nothing to poll, and nothing may be posted. */
void hca_rq_close(struct hca_rq *rq);

static inline uint32_t hca_rq_load(const _Atomic uint32_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static inline enum hca_rq_mode hca_rq_mode(const struct hca_rq *rq)
{
	return (enum hca_rq_mode)atomic_load_explicit(&rq->mode, memory_order_relaxed);
}

static inline void hca_rq_set_mode(struct hca_rq *rq, enum hca_rq_mode mode)
{
	atomic_store_explicit(&rq->mode, (uint8_t)mode, memory_order_relaxed);
}

static inline unsigned hca_rq_stops(const struct hca_rq *rq)
{
	return atomic_load_explicit(&rq->stops, memory_order_relaxed);
}

static inline void hca_rq_fail(struct hca_rq *rq)
{
	atomic_fetch_or_explicit(&rq->stops, HCA_RQ_FAILED, memory_order_relaxed);
}

static inline bool hca_rq_is_flushing(const struct hca_rq *rq)
{
	return hca_rq_mode(rq) == HCA_RQ_FLUSHING;
}

/* Whether its ring has something to poll. A few loads, without the lock. */
static inline bool hca_rq_has_arrived(struct hca_rq *rq)
{
	uint32_t consumed = hca_rq_load(&rq->consumed);

	if (consumed != hca_rq_load(&rq->posted))
		return shm_ring_peek(rq->ring, rq->ring_shift, consumed) != SHM_SLOT_CLOSED ||
		       hca_rq_is_flushing(rq);
	return hca_rq_is_flushing(rq) && hca_rq_load(&rq->rwqe_head) != hca_rq_load(&rq->rwqe_tail);
}

/* Whether polling would find something. */
static inline bool hca_rq_pending(struct hca_rq *rq)
{
	return hca_rq_has_arrived(rq) || hca_rq_load(&rq->aside);
}

/* How much polling would find: 0, 1, or 2 for more. */
static inline unsigned hca_rq_count_pending(struct hca_rq *rq)
{
	uint32_t next = hca_rq_load(&rq->consumed) + 1;

	if (!hca_rq_pending(rq))
		return 0;
	return hca_rq_is_flushing(rq) || hca_rq_load(&rq->aside) ||
	                       (next != hca_rq_load(&rq->posted) &&
	                        shm_ring_peek(rq->ring, rq->ring_shift, next) != SHM_SLOT_CLOSED)
	               ? 2
	               : 1;
}

/* Whether one of the messages that wait was solicited, or has more than @room bytes with its GRH
 * and so fails a receive, or something is flushed. With the CQ's lock held. */
bool hca_rq_has_solicited(struct hca_rq *rq, uint32_t room);

/* Whether the peer's process has found one of its requests wrong, and polling is to move the queue
 * pair to ERR: once all has been polled that came before. */
static inline bool hca_rq_is_refused(const struct hca_rq *rq)
{
	uint32_t error;

	if (!rq->connection)
		return false;
	/* acquire: what arrived before the error was seen is completed first */
	error = atomic_load_explicit((_Atomic uint32_t *)&rq->connection->error,
	                             memory_order_acquire);
	return base_unlikely(error) && error != SHM_ERROR_ENDED &&
	       hca_rq_mode(rq) == HCA_RQ_CONNECTED;
}

/* ---- for transports ---- */

/* Removes the oldest request. *@sge: its entries. */
static inline struct hca_rwqe *hca_rq_next(struct hca_rq *rq, const struct ibv_sge **sge)
{
	uint32_t head = hca_rq_load(&rq->rwqe_head), i = head & rq->rwqe_mask;

	atomic_store_explicit(&rq->rwqe_head, head + 1, memory_order_relaxed);
	*sge = &rq->rsge[i * rq->max_sge];
	return &rq->rwqe[i];
}

/* The outcome of an arrival. */
enum hca_rq_outcome {
	HCA_RQ_LATER = -1, /* its sender is placing it: it is as if it had not come yet */
	HCA_RQ_DROPPED = 0,
	HCA_RQ_DONE = 1,
};

/* Consumes the arrival in @slot: uses the oldest request and fills in @wc. It is dropped if there
 * is none: UD with a shared receive queue. */
typedef enum hca_rq_outcome hca_rq_complete(struct hca_rq *rq, struct shm_arrival *slot,
                                            struct ibv_wc *wc);

/* Of a connected queue pair: takes an arrival that is yet to be placed, in order to consume it.
 * False: its sender is placing it. */
bool hca_rq_take(struct hca_rq *rq, struct shm_arrival *slot);

/* Parts of hca_rq_poll() that are rarely needed. */
bool hca_rq_pass(struct hca_rq *rq, uint32_t pos);
void hca_rq_repost(struct hca_rq *rq);
int hca_rq_poll_flushed(struct hca_rq *rq, uint32_t pos, int n, struct ibv_wc *wc);
void hca_rq_prefetch(struct hca_rq *rq, uint32_t pos);
bool hca_rq_discard(struct hca_rq *rq, uint32_t pos);

/* hca_rq_poll() with the queue's lock held, too. */
static BASE_HOT int hca_rq_poll_locked(struct hca_rq *rq, int n, struct ibv_wc *wc,
                                       uint32_t *arrivals, hca_rq_complete *complete)
{
	uint32_t pos, posted;
	int done = 0;

	posted = hca_rq_load(&rq->posted);
	for (pos = hca_rq_load(&rq->consumed); pos != posted && done < n; pos++) {
		struct shm_arrival *a = shm_ring_slot(rq->ring, rq->ring_shift, pos);
		enum hca_rq_outcome outcome;

		if (base_unlikely(shm_slot_peek(a, pos) != SHM_SLOT_DONE)) {
			if (hca_rq_pass(rq, pos))
				continue;
			break;
		}
		if (base_unlikely(hca_rq_stops(rq))) {
			if (!hca_rq_discard(rq, pos))
				break;
			++*arrivals;
			continue;
		}
		if (a->flags & SHM_ARRIVAL_PAYLOAD)
			hca_rq_prefetch(rq, pos + 1);
		outcome = complete(rq, a, wc + done);
		if (base_unlikely(outcome == HCA_RQ_LATER))
			break;
		++*arrivals;
		done += outcome;
		shm_ring_take_line(a);
	}
	if (pos != hca_rq_load(&rq->consumed)) {
		atomic_store_explicit(&rq->consumed, pos, memory_order_relaxed);
		shm_ring_consume(rq->ring, pos);
	}
	if (base_unlikely(rq->n_void))
		hca_rq_repost(rq);
	if (base_unlikely(hca_rq_is_flushing(rq)))
		done += hca_rq_poll_flushed(rq, pos, n - done, wc + done);
	return done;
}

/*
 * Polls up to @n completions. Adds the number of arrivals that it consumed to @arrivals. With the
 * CQ's lock held. Inline, so that the compiler makes one function of it for each transport.
 */
static BASE_HOT int hca_rq_poll(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals,
                                hca_rq_complete *complete)
{
	int done;

	base_lock(&rq->lock);
	done = hca_rq_poll_locked(rq, n, wc, arrivals, complete);
	base_unlock(&rq->lock);
	return done;
}

#endif
