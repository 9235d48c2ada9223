/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An exchange is one request between two connected queue pairs on this fabric. The thread that
 * carries it out does what the HCAs of both ends would do: it checks the request against the
 * requester's regions, and against what the responder lets in, copies the data, and uses the
 * responder's receive. When it is done, so is everything: the data is in the responder's memory,
 * and an arrival in its ring.
 *
 * The thread is the requester's while it posts, or the responder's when it goes on with requests
 * that waited for it. At least one of the two ends is in its own process.
 */
#ifndef HCA_EXCHANGE_H
#define HCA_EXCHANGE_H

#include "hca/memory.h"
#include "shm/key.h"
#include "shm/ring.h"

struct hca_sender;

/* How many keys of each end are known. */
#define HCA_KNOWN 4

/* A key of an end that was used: see known.h. */
struct hca_known {
	uint32_t key;
	uint32_t joined;       /* its serial, when this thread became a user of it */
	struct shm_key *at;    /* where it stands; or NULL */
	uint64_t iova, length; /* what it gives access to; 0: nothing that is known */
	char *here;            /* where all of that lies in this process; or NULL */
	uint32_t access;
};

/* What a queue pair of an exchange is, for the thread that carries it out. */
struct hca_end {
	struct shm_qp qp;            /* a copy of its record */
	const _Atomic uint32_t *seq; /* of the record itself */
	struct hca_memory *memory;
	bool is_own; /* it is this process's memory */
	struct hca_known known[HCA_KNOWN];
};

struct hca_exchange {
	struct hca_process *process;
	struct hca_end requester, responder;
	struct hca_sender *sender; /* of the requester, if the thread is the requester's */
	/* the record in which the thread says whom it is dealing with, and whom that is; or 0 */
	struct shm_sender *self;
	uint32_t target;
	/* number of the end, requester or responder, that is in this process. Bits above 24 tell
	 * threads of the responder apart */
	uint32_t worker;
	/* above 24 bits: a number of this exchange, by which it differs from the one before */
	uint32_t turn;
	/* of the responder's thread: the lock that it needs while it finishes a request, or NULL */
	_Atomic uint32_t *held;
	/*
	 * XRC: the responder is a target, and what it receives goes to the shared receive queue
	 * that the request names. Its ring, CQ and memory stand in responder then.
	 */
	bool is_xrc, has_srq;
	uint32_t srqn, srq_seq;
	struct shm_ring_view view; /* of the responder's ring, where messages arrive */
	/* where its receives are: that, or the ring of its shared receive queue */
	struct shm_ring *credits;
	struct shm_srq srq;
	struct shm_cq *cq; /* of its receives */
	uint8_t more;      /* requests like this one that follow in the list: a hint */
	bool in_list;      /* the one before it was like it */
	bool is_match;     /* the responder listens to the requester, as their records say */
	bool unplaced;     /* SENDs of the requester may lie unplaced (place.h) */
	const _Atomic uint32_t *error; /* of the responder: shm_connection.error */
	int tells; /* not 0: the responder is to know what was done: it is in RTR, or it counts */
};

/* What becomes of a request: enum ibv_wc_status, or one of these. */
enum {
	HCA_WAITS_FOR_RECEIVE = -1, /* RNR: no receive is posted */
	HCA_WAITS_FOR_PATH = -2,    /* it gets lost: there is no responder, or no way to it */
	HCA_WAITS_FOR_LOCK = -3,    /* another requester is in the middle of an atomic operation */
};

/* Prepares @x, whose records are filled in, for exchanges. */
void hca_exchange_prepare(struct hca_exchange *x);

/*
 * Carries out the request: @r, and its scatter entries, or its inline data as entries that need no
 * key. Returns what becomes of it. Unless it waits, nothing is left to do but its completion.
 */
int hca_exchange(struct hca_exchange *x, const struct shm_request *r,
                 const struct shm_entry *entries);

/* Whether the requester may have its own memory so as @r says: IBV_WC_SUCCESS or the error. This is
 * looked at first, so a request that gets lost fails by it, too. */
int hca_exchange_check_local(struct hca_exchange *x, const struct shm_request *r,
                             const struct shm_entry *entries);

/* Says whom this thread deals with, before it looks at anything of theirs. It may do so once for
 * several requests. */
static BASE_HOT void hca_exchange_begin(struct hca_exchange *x, uint32_t qpn)
{
	if (base_likely(x->target == qpn))
		return;
	x->target = qpn;
	x->turn += IB_QPN_MASK + 1;
	/* seq_cst: before the look at keys; pairs with hca_connections_wait() */
	atomic_store_explicit(&x->self->target_qpn, qpn | x->turn, memory_order_seq_cst);
	base_fence_behind_seq_cst();
}

/* All that was done is done. */
static BASE_HOT void hca_exchange_end(struct hca_exchange *x)
{
	x->target = 0;
	/* release: all that was done comes before "deals with nobody" */
	atomic_store_explicit(&x->self->target_qpn, 0, memory_order_release);
}

/* Whether the responder is there, and has found no error. */
static BASE_HOT bool hca_exchange_is_there(const struct hca_exchange *x)
{
	return base_likely(x->is_match && !atomic_load_explicit(x->error, memory_order_relaxed));
}

/* Whether the records of both ends have not changed since they were copied. */
static BASE_HOT bool hca_exchange_is_current(const struct hca_exchange *x)
{
	/* acquire: all pair with the release in shm_write_end() */
	return base_likely(atomic_load_explicit(x->responder.seq, memory_order_acquire) ==
	                           x->responder.qp.seq &&
	                   atomic_load_explicit(x->requester.seq, memory_order_acquire) ==
	                           x->requester.qp.seq) &&
	       (base_likely(!x->is_xrc) ||
	        atomic_load_explicit(
	                (_Atomic uint32_t *)&x->process->region.qps[SHM_QP_INDEX(x->srqn)].seq,
	                memory_order_acquire) == x->srq_seq);
}

#endif
