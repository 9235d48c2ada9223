/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues. A CQ consists of a ring of completions made in this process (sends, flushes)
 * and of the receive queues that complete here. ibv_poll_cq() itself looks at their rings: at one
 * of them always, at the others when their bit in the shared ready map is set.
 *
 * Overrun: arrivals that the program does not poll wait in receive rings, which cannot overflow. On
 * hardware a CQ that is too small fails. To fail likewise, senders count arrivals to those CQs that
 * could overflow.
 *
 * Arming sets a word in shared memory. The sender that completes something resets it and adds one
 * event to the channel's eventfd.
 *
 * Thread-safe: one thread polls at a time, by the CQ's lock.
 */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/fast.h"
#include "base/lock.h"
#include "hca/process/context.h"

struct hca_rq;
struct hca_srq;

/* Of an opcode: the completion is made up. The functions that poll for a program take the flag
 * away. */
#define HCA_CQE_MADE 0x40

/* A completion of a send that waits in the process. */
struct hca_cqe {
	uint64_t wr_id;
	struct hca_qp *qp;
	uint64_t ns;       /* when it completed, if the CQ stamps */
	uint32_t sq_after; /* the work requests below this are done with */
	uint32_t byte_len;
	uint8_t status; /* enum ibv_wc_status */
	uint8_t opcode; /* enum ibv_wc_opcode */
	bool is_first;  /* of a connected queue pair: polled before messages that wait */
};

#define HCA_CQ_WATCHED 8

/*
 * Receive queues that a CQ looks at only when their bit in the shared ready map is set. Once a bit
 * was set, the CQ watches it for a while: it leaves the bit set and looks at its queues in every
 * poll, so senders need not set the bit for every message.
 */
struct hca_ready {
	struct hca_rq *by_bit[SHM_CQ_READY_BITS]; /* chains */
	unsigned n, next_bit;
	unsigned since_map; /* completions since one looked at the map */
	unsigned map_next;  /* where the search for set bits goes on */
	unsigned n_watched, next_victim;
	struct {
		uint16_t bit;
		uint16_t idle; /* looks that found nothing, one after the other */
	} watched[HCA_CQ_WATCHED];
	uint64_t is_watched[SHM_CQ_READY_BITS / 64];
};

/* A shared receive queue some of whose queue pairs receive by a CQ. Each receive completes once,
 * whichever of them has it. */
struct hca_cq_shared {
	LIST_ENTRY(hca_cq_shared) entry;
	struct hca_srq *srq;
	unsigned n_qps;
	uint32_t capacity; /* the room of the queue */
};

/* Whether it is polled in vain: cq_vain.c. Under its lock. */
struct hca_vain {
	bool is_watched; /* it has given nothing yet, and nothing was told: each poll attends */
	bool was_polled;
	uint32_t polls;     /* looks that were in vain since then */
	uint64_t looked_ns; /* at the queue pairs, the last time: each poll would be too often */
	uint32_t requests;  /* its queue pairs had posted so many then */
	uint64_t since_ns;
};

struct hca_cq {
	struct ibv_cq_ex cq; /* the public struct ibv_cq is its beginning */
	struct hca_context *ctx;
	struct hca_link *network; /* the context's, if its port is an Ethernet one; or NULL */
	struct hca_channel *ch;
	struct ibv_pd *parent_domain; /* ibv_create_cq_ex() was told one; or NULL */
	uint32_t id;
	struct shm_cq *shm;
	struct base_lock lock;
	/* completions made in this process */
	struct hca_cqe *ring;
	uint32_t ring_size, ring_mask, head, tail;
	/* receive queues that complete here */
	struct hca_rq *direct;   /* the one that every poll looks at; or NULL */
	struct hca_ready *ready; /* the others, allocated at need */
	struct hca_rq *behind;   /* one that has caught up with a list; or NULL: is_behind() */
	LIST_HEAD(, hca_cq_shared) shared;
	uint32_t capacity_used; /* completions that its queues may have outstanding */
	uint32_t arrivals_polled;
	/* receives that are not counted as arrivals: that completed in error as their queue pair
	 * had, and those of UD with a shared queue */
	uint32_t uncounted_polled;
	/* if it counts arrivals: receives of its queue pairs in error that are yet to be polled */
	uint32_t flushes_due;
	/* completions are numbered from 0: one more than the number of the completion that the last
	 * event was for, or the next one will be for */
	uint32_t told;
	_Atomic uint32_t armings; /* counts in steps of 1 << SHM_CQ_ARM_BITS */
	unsigned first;           /* completions polled before their turn, one after the other */
	unsigned turn, turn_used; /* the source whose turn it is, and how many completions it has
	                             had in that turn (cq_poll.c) */
	bool counts_arrivals;     /* more than cqe may arrive: arrivals are counted against it */
	bool gone_seen;           /* the daemon is gone, so its QPs flush */
	bool failed;              /* a receive has failed, or requests wait: attend() */
	bool hurries;             /* this poll waits for nobody: is_behind() */
	_Atomic uint32_t found;   /* polls that found something, of an Ethernet port */
	LIST_ENTRY(hca_cq) process_entry;
	TAILQ_ENTRY(hca_cq) channel_entry;
	struct base_hash_node due_node;
	TAILQ_HEAD(, hca_qp) users; /* QPs that receive here */
	unsigned n_users;           /* QPs that send or receive here */
	uint32_t comp_events_got;
	struct hca_async_object events;
	struct hca_vain vain;
	bool ignores_overrun; /* completions are lost, and the CQ goes on */
	/* ibv_start_poll() and on */
	bool ended;           /* hca_cq_end() */
	bool single_threaded; /* the program sees to it that one thread polls at a time */
	bool stamps;          /* completions have timestamps */
	struct base_lock ex_lock;
	uint64_t arrived_ns;      /* when the last polled completion completed; 0: unknown */
	uint64_t completed_ns;    /* when the completion that is being read completed */
	uint64_t wallclock_at_ns; /* what to add to completed_ns for nanoseconds since 1970 */
	struct ibv_wc wc;
};

static inline struct hca_cq *hca_cq(struct ibv_cq *cq)
{
	return (struct hca_cq *)cq;
}

/* Completion @n of those made in this process. */
static inline struct hca_cqe *hca_cq_at(const struct hca_cq *cq, uint32_t n)
{
	return &cq->ring[n & cq->ring_mask];
}

/* How many words of the ready map have bits that are used. */
static inline unsigned hca_ready_words(const struct hca_ready *r)
{
	unsigned bits = r->next_bit < SHM_CQ_READY_BITS ? r->next_bit : SHM_CQ_READY_BITS;

	return (bits + 63) / 64;
}

/* The number of the next completion to be polled. */
static inline uint32_t hca_cq_next_number(const struct hca_cq *cq)
{
	return cq->head + cq->arrivals_polled + cq->uncounted_polled;
}

/* Sets the number of arrivals at which the CQ overruns. Called when one of its terms has changed.
 */
static inline void hca_cq_set_limit(struct hca_cq *cq)
{
	uint32_t local = cq->tail - cq->head + cq->flushes_due;

	if (cq->counts_arrivals)
		atomic_store_explicit(&cq->shm->limit, cq->arrivals_polled + cq->ring_size - local,
		                      memory_order_relaxed);
}

/* The size of a CQ for which @asked completions are asked; 0: there is none such. Programs of
 * hardware get by with CQs that are a little small, as there the smallest ones are larger. */
uint32_t hca_cq_size(const struct hca_process *p, uint32_t asked);

/* A ring for @cqe completions: a power of two of places, as head and tail go round. NULL: no
 * memory. hca_cq_use_ring() has an empty queue use it. */
struct hca_cqe *hca_cq_alloc_ring(uint32_t cqe);
void hca_cq_use_ring(struct hca_cq *cq, struct hca_cqe *ring, uint32_t cqe);

int hca_cq_create(struct hca_context *ctx, uint32_t cqe, struct hca_channel *ch, int vector,
                  void *cq_context, struct hca_cq **cq);
int hca_cq_resize(struct hca_cq *cq, uint32_t cqe);
/* -EBUSY: a QP uses it. Waits until all its events are acknowledged. */
int hca_cq_destroy(struct hca_cq *cq);
/* Likewise, but its memory stays, for calls of the program after the end; to be freed by free(). */
int hca_cq_end(struct hca_cq *cq);

/* Waits until no thread polls any more that had begun before: it may be copying to a region that it
 * has found. Not with the lock of a CQ held. */
void hca_cqs_wait(struct hca_process *p);

/* Takes what has arrived from all rings, while its memory can be found (hca_counted_take()). Not
 * with the lock of a CQ held. */
void hca_cqs_take(struct hca_process *p);

/* ibv_poll_cq(): how many, or negative: the CQ is in error. */
int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc);
void hca_cq_arm(struct hca_cq *cq, bool solicited_only);

/* Whether there is a completion to poll of a message that was solicited, or one that failed. Takes
 * the lock. */
bool hca_cq_holds_solicited(struct hca_cq *cq);
/* It is being armed: whether there is a completion to poll beside the one that the last event was
 * for. Takes the lock. */
bool hca_cq_has_news(struct hca_cq *cq);

/* Polling has found less than there is, or nothing: a message may be there that its sender is
 * placing. If an event was for it, the program that polls waits for the next event; but while the
 * CQ is armed that event is yet to come. With the lock held. */
void hca_cq_found_less(struct hca_cq *cq);

/* ibv_modify_cq(): once @count completions have come that it is armed for, or @us microseconds
 * after the first of them, it fires its event. 0: not by that; both: each completion does. */
void hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t us);

/* Does all that a poll does besides giving completions, for a program that reads counters instead.
 * @receives: that queue pair's receives are counted, too (comp_counter.h); or NULL. */
void hca_cq_progress(struct hca_cq *cq, struct hca_qp *receives);

/* The next poll does what polling leaves to do: queue pairs that fail, receives that wait. */
void hca_cq_attend(struct hca_cq *cq);

/* The queue is new, or a queue pair of it moves to RTS: whether it is polled in vain is looked at.
 */
void hca_vain_begin(struct hca_cq *cq);
/* A poll has given @n completions. */
void hca_vain_polled(struct hca_cq *cq, int n);

/* Goes on with requests that wait, of at most @most QPs, each of which has its turn. One whose send
 * lock is held is tried again by the next poll. */
void hca_cq_serve_waiting(struct hca_process *p, unsigned most);
/* The same of those that are due, by the thread of a weak fabric (process/weak_due.h). In how many
 * ns the next one is due; UINT64_MAX: none waits. */
uint64_t hca_cq_serve_due(struct hca_process *p);
/* The same of all, when @cq has been armed, as the program may sleep now: waits for threads that
 * post, or the daemon fires the event a while later. */
void hca_cq_serve_armed(const struct hca_cq *cq);

/* Waits for those who are about to fire its event, unless one is stopped. The daemon forgets the
 * dead. @began: of base_now_ns(), when this began for all CQs. */
void hca_cq_await_wakers(const struct hca_cq *cq, uint64_t began);

/* It is new, and belongs to a channel (ch). 0 or -ENOMEM. */
int hca_cq_enter_channel(struct hca_cq *cq);
/* The CQ is being destroyed: no further event of it is got, nor fired, except by threads that have
 * begun to. */
void hca_cq_leave_channel(struct hca_cq *cq);
/* Then its events that nobody has got leave the channel, too. */
void hca_cq_take_events_along(struct hca_cq *cq);

/* Adds a completion of this process: where it is to be written. NULL: the CQ is overrun. With its
 * lock held from then on; _end() releases it, and fires the event if the CQ is armed. */
struct hca_cqe *hca_cq_push_begin(struct hca_cq *cq);
void hca_cq_push_end(struct hca_cq *cq, struct hca_cqe *e);
/* Both, for one that is written elsewhere. */
void hca_cq_push(struct hca_cq *cq, const struct hca_cqe *cqe);

/* Adds one that nothing has room for: the CQ counts exactly what it holds from now on. */
void hca_cq_push_surplus(struct hca_cq *cq, const struct hca_cqe *cqe);

/* hca_cq_notify() of a CQ that is armed; @arm: the value of its word. */
void hca_cq_wake(struct hca_process *p, struct shm_cq *shm, uint32_t arm, bool solicited);

/* There is one completion more: fires the CQ's event if it is armed for that, and moderation lets
 * it.
 * @solicited: solicited, or failed. */
static inline void hca_cq_notify(struct hca_process *p, struct shm_cq *shm, bool solicited)
{
	/* seq_cst: after the completion could be seen; pairs with hca_cq_arm() */
	uint32_t arm = atomic_load_explicit(&shm->arm, memory_order_seq_cst);

	if (base_unlikely(arm != SHM_CQ_IDLE))
		hca_cq_wake(p, shm, arm, solicited);
}

/* Fires the CQ's event if it is armed at all: there may be any number of completions to poll. */
void hca_cq_alert(struct hca_process *p, struct shm_cq *shm);

/* The same if it is armed as it was when its word was @arm, not SHM_CQ_IDLE. */
void hca_cq_fire(struct hca_process *p, struct shm_cq *shm, uint32_t arm);

/* hca_cq_wake() for a packet that has arrived. */
void hca_cq_wake_arrival(struct hca_process *p, struct shm_cq *shm, uint32_t arm,
                         const struct shm_arrival *a);

/* Fires the CQ's event if it is armed for the packet: for all packets, or for solicited ones and
 * those that fail the receive that they use (ibv_req_notify_cq(3)). */
static inline void hca_cq_notify_arrival(struct hca_process *p, struct shm_cq *shm,
                                         const struct shm_arrival *a)
{
	/* seq_cst: after the arrival could be seen; pairs with hca_cq_arm() */
	uint32_t arm = atomic_load_explicit(&shm->arm, memory_order_seq_cst);

	if (base_unlikely(arm != SHM_CQ_IDLE))
		hca_cq_wake_arrival(p, shm, arm, a);
}

/* ---- for delivering to a queue pair that receives by the CQ ---- */

/* The ring with bit @ready_bit may have arrivals now, or void positions; SHM_NO_READY_BIT: nothing
 * has to be done. */
void hca_cq_set_ready(struct shm_cq *shm, uint16_t ready_bit);

/* The same for an arrival that is published: mostly the bit is set already. */
static inline void hca_cq_announce(struct shm_cq *shm, uint16_t ready_bit)
{
	uint64_t bit = 1ull << (ready_bit % 64), word;

	if (ready_bit >= SHM_CQ_READY_BITS)
		return;
	word = atomic_load_explicit(&shm->ready[ready_bit / 64], memory_order_relaxed);
	if (base_unlikely(!(word & bit)))
		hca_cq_set_ready(shm, ready_bit);
}

/* Notes for the CQs that need them, before the arrival in @slot can be seen: its time, and a count.
 * @flags: enum shm_qp_flags of the queue pair. */
void hca_cq_note_arrival(struct hca_process *p, struct shm_cq *shm, uint32_t flags,
                         struct shm_arrival *slot);

/* Tells the CQ that @rq has flushed requests to complete. Not with the CQ's lock held. */
void hca_cq_kick(struct hca_cq *cq, struct hca_rq *rq);

/* Adds a QP that completes here, and removes it. @receives: its receives do; else its sends. */
int hca_cq_add_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity);
void hca_cq_remove_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity);

/* @srq, of which a queue pair may receive here, has another size, or a queue pair more. */
void hca_cq_fit_shared(struct hca_cq *cq, struct hca_srq *srq);

/* A request of @qp, which sends here, was posted and waits: polling any queue of the process goes
 * on with it. */
void hca_cq_add_waiting(struct hca_cq *cq, struct hca_qp *qp);

/* @qp is being destroyed: none of its requests is gone on with. */
void hca_cq_remove_waiting(struct hca_process *p, struct hca_qp *qp);

/* Drops the completions of @qp that wait, and subtracts the arrivals that its receive queue
 * dropped. */
void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp);

/* Puts the CQ into error and tells the program so, once. */
void hca_cq_overrun(struct hca_process *p, uint32_t id, struct shm_cq *shm);

/* ibv_start_poll() and on, of @cq, with flags of ibv_create_cq_ex(): cq_ex.c */
void hca_cq_ex_init(struct hca_cq *cq, uint64_t wc_flags, uint32_t flags);

#endif
