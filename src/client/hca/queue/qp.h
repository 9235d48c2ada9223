/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: what all transports have in common. Thread-safe: each queue pair has locks. Lock
 * order: a QP's send lock, a CQ's lock, a
 * receive queue's lock.
 */
#ifndef HCA_QP_H
#define HCA_QP_H

#include "hca/process/operation.h"
#include "hca/process/weak_due.h"
#include "hca/queue/cq.h"
#include "hca/queue/rq.h"
#include "hca/queue/sender.h"
#include "hca/queue/transport.h"

struct hca_counted;
struct hca_wr_batch;
struct hca_xrcd;

/* Attributes of a connected queue pair, as in struct ibv_qp_attr. */
struct hca_connection {
	uint32_t dest_qpn, rq_psn;
	uint32_t access; /* enum ibv_access_flags */
	uint8_t path_mtu, timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	struct ibv_ah_attr path;
};

struct hca_qp {
	union { /* begins with the public struct ibv_qp */
		struct ibv_qp_ex ex;
		union hca_qp_ex all;
	};
	const struct hca_transport *transport;
	struct hca_context *ctx;
	const struct hca_domain *domain; /* that it is in */
	struct ibv_pd *pd;
	struct hca_cq *send_cq; /* of receives it is rq->cq */
	struct hca_xrcd *xrcd;  /* of an XRC target or shared receive queue; or NULL */
	uint32_t xrc_seq;       /* of an XRC target: of its record, when it was last looked at */
	_Atomic uint8_t state;  /* enum ibv_qp_state */
	uint8_t told_state;     /* the last one that the daemon was told, or will be first */
	struct ibv_qp_cap cap;
	bool signal_all;
	bool push_all;      /* push() is called for all that the send queue completes */
	bool counts_remote; /* what peers do is counted for it */
	uint32_t create_flags;
	uint64_t send_ops_flags;
	/* attributes */
	uint32_t qkey;
	uint16_t pkey_index;
	uint8_t port_num, en_sqd_async_notify;
	struct hca_connection connection;
	/* send queue */
	struct base_lock send_lock;
	_Atomic uintptr_t builder; /* the thread between ibv_wr_start() and ibv_wr_complete(), which
	                              has the lock; 0: nobody, or it is alone */
	struct hca_sender sender;
	uint32_t sq_posted;         /* requests carried out */
	_Atomic uint32_t sq_done;   /* of these, those that have left the send queue */
	uint32_t sq_kept;           /* requests that were posted and wait */
	struct hca_wr_batch *batch; /* ibv_wr_start() and on */
	/* adds the completion of the last request that was carried out: hca_qp_push(), or what a
	 * completion counter needs */
	void (*push)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
	             enum ibv_wc_status status);
	struct hca_counted *counted; /* comp_counter.h; NULL: it has no counters */
	/* receive queue */
	struct hca_rq *rq;
	struct hca_rq own_rq;
	TAILQ_ENTRY(hca_qp) cq_entry;
	TAILQ_ENTRY(hca_qp) srq_entry; /* of the shared receive queue, if it has one */
	struct hca_async_object events;
	/* its requests wait: hca_cq_add_waiting() */
	bool is_waiting; /* it is in its process's list */
	bool goes;       /* it is being destroyed, and not added there any more */
	TAILQ_ENTRY(hca_qp) waiting;
	struct hca_weak_wait weak_wait; /* likewise in its process's list, on a weak fabric */
	uint32_t weak_object;           /* its number in the process, on a weak fabric */
	_Atomic uint32_t in_use; /* polling threads that move it to ERR: it cannot be freed */
};

static inline struct hca_qp *hca_qp(struct ibv_qp *qp)
{
	return (struct hca_qp *)qp;
}

static inline enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

int hca_qp_create(struct hca_context *ctx, const struct ibv_qp_init_attr_ex *attr,
                  struct hca_qp **qp);
/* The same with this transport, whatever the type in @attr. @opened: the number of the XRC target
 * that is to be opened; 0: it is a new one. */
int hca_qp_create_as(struct hca_context *ctx, const struct hca_transport *transport,
                     const struct ibv_qp_init_attr_ex *attr, uint32_t opened, struct hca_qp **qp);
/* Moves one that no program sees to RTR. 0 or -errno. */
int hca_qp_start(struct hca_qp *qp);
int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* The batch of requests that was to tell the daemon of the new state has been sent by now. */
void hca_qp_has_moved(struct hca_qp *qp);
void hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
/* -EBUSY while it is attached to a group. Waits until all its events are acknowledged. */
int hca_qp_destroy(struct hca_qp *qp);

/* Tells the daemon what senders must know of @qp. */
int hca_qp_publish(struct hca_qp *qp);

/* Moves to ERR: both queues flush. @tell: whether to tell the daemon; not if that is gone. False:
 * another thread holds the send lock for long; try again. */
bool hca_qp_enter_error(struct hca_qp *qp, bool tell);

/* Moves to ERR if the peer's process has found a request wrong (shm_connection.error). */
void hca_qp_notice_error(struct hca_qp *qp);

/* A request has failed: moves to ERR. With the send lock held; the transport flushes its requests.
 */
void hca_qp_fail(struct hca_qp *qp);

/* ---- for transports ---- */

/* Whether the state allows posting to the send queue. */
static inline bool hca_qp_can_post(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE ||
	       state == IBV_QPS_ERR;
}

/* Whether the send queue has no room for one more. */
static inline bool hca_qp_sq_is_full(const struct hca_qp *qp)
{
	/* acquire: pairs with the release in poll_local(), cq_poll.c: the room may be used again */
	return qp->sq_posted - atomic_load_explicit(&qp->sq_done, memory_order_acquire) >=
	       qp->cap.max_send_wr;
}

/* Requests that use room in the send queue: carried out, but not completed, or waiting. */
static inline uint32_t hca_qp_sq_used(const struct hca_qp *qp)
{
	return qp->sq_posted + qp->sq_kept -
	       atomic_load_explicit(&qp->sq_done, memory_order_acquire);
}

/* Adds the completion of the last request that was carried out, which the program wants. */
void hca_qp_push(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
                 enum ibv_wc_status status);

/* The request is done. Adds a completion if it failed or if the program asked for one. */
static inline void hca_qp_complete(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
                                   enum ibv_wc_status status)
{
	qp->sq_posted++;
	if ((wr->send_flags & IBV_SEND_SIGNALED) || qp->push_all || status != IBV_WC_SUCCESS)
		qp->push(qp, wr, bytes, status);
}

/* Whether none of the requests in the send queue, which is full, has asked for a completion:
 * cq_vain.c */
bool hca_vain_is_unsignaled(const struct hca_qp *qp);

/* The ibv_wr_ functions of @qp: wr_api.c */
void hca_wr_api_init(struct hca_qp *qp);
void hca_wr_api_fini(struct hca_qp *qp);

/* The requests that the thread has built since ibv_wr_start(), one behind the other, and how many.
 */
const struct ibv_send_wr *hca_wr_list(const struct hca_qp *qp, uint32_t *n);

/* Acquires ->send_lock, unless this thread has it, by ibv_wr_start(). Whether it has acquired it.
 */
bool hca_wr_lock(struct hca_qp *qp);

#endif
