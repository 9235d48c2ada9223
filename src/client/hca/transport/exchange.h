/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An exchange is one request between two connected queue pairs on this fabric. The thread that
 * carries it out does what the HCAs of both ends would do: it checks the request against the
 * requester's regions, has the responder (responder.h) check whether it allows the request, copies
 * the data, and uses the responder's receive. After that nothing is left to do: the data is in the
 * responder's memory, and an arrival in its ring.
 *
 * The thread is the requester's while it posts, or the responder's when it goes on with requests
 * that waited for it. At least one of the two ends is in its own process.
 */
#ifndef HCA_EXCHANGE_H
#define HCA_EXCHANGE_H

#include "hca/transport/responder.h"

struct hca_sender;

struct hca_exchange {
	struct hca_process *process;
	struct hca_end requester;
	struct hca_responder responder;
	struct hca_sender *sender; /* of the requester, if the thread is the requester's */
	/* of this thread: other processes read there with which queue pair it works, @target */
	struct shm_sender *self;
	uint32_t target; /* the number of that queue pair; 0: none */
	/* in the bits above 24: the number of this exchange, which differs from that of the last
	 * one */
	uint32_t turn;
	bool in_list;  /* the request before this one in the list was like it */
	bool is_match; /* the responder listens to the requester, as their records say */
	/* not 0: the path MTUs differ, and requests longer than this would have packets that the
	 * other end does not accept */
	uint32_t longest;
};

/* Whether the responder expects the PSN that the requester begins with; UC resynchronizes. */
bool hca_exchange_psns_match(const struct hca_exchange *x);

/* Whether the responder's path, by which it acknowledges, leads to the requester's port. True
 * also on Ethernet, where the port is not known, and over UC, which has no acknowledgements. */
bool hca_exchange_leads_back(const struct hca_exchange *x);

/* Prepares @x, whose records are filled in, for exchanges. */
void hca_exchange_prepare(struct hca_exchange *x);

/*
 * Carries out the request: @r, and its scatter entries, or its inline data as entries that need no
 * key. Returns the result of the request. Unless it waits, only its completion is left to do.
 */
int hca_exchange(struct hca_exchange *x, const struct shm_request *r,
                 const struct shm_entry *entries);

/* Whether the requester's own keys allow what @r does with its memory: IBV_WC_SUCCESS or the error.
 * This is checked first, so a request that would be lost fails by it, too. */
int hca_exchange_check_local(struct hca_exchange *x, const struct shm_request *r,
                             const struct shm_entry *entries);

/* Publishes the peer that this thread works with, before the thread looks at any of the peer's
 * memory. One call is enough for several requests. */
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

/* The thread has finished its work with the peer. */
static BASE_HOT void hca_exchange_end(struct hca_exchange *x)
{
	x->target = 0;
	/* release: all work comes before "works with no peer" */
	atomic_store_explicit(&x->self->target_qpn, 0, memory_order_release);
}

/* Whether the responder is there, and has found no error. */
static BASE_HOT bool hca_exchange_is_there(const struct hca_exchange *x)
{
	return base_likely(x->is_match && hca_responder_is_well(&x->responder));
}

/* As hca_exchange_is_current() of a responder that is none of XRC. */
static BASE_HOT bool hca_exchange_ends_are_current(const struct hca_exchange *x)
{
	const struct hca_end *to = &x->responder.end;

	/* acquire: both pair with the release in shm_write_end() */
	return base_likely(atomic_load_explicit(to->seq, memory_order_acquire) == to->qp.seq &&
	                   atomic_load_explicit(x->requester.seq, memory_order_acquire) ==
	                           x->requester.qp.seq);
}

/* Whether the records of both ends have not changed since they were copied. */
static BASE_HOT bool hca_exchange_is_current(const struct hca_exchange *x)
{
	const struct hca_responder *to = &x->responder;

	/* acquire: as above */
	return hca_exchange_ends_are_current(x) &&
	       (base_likely(!to->is_xrc) ||
	        atomic_load_explicit(
	                (_Atomic uint32_t *)&shm_qp_at(&x->process->region, SHM_QP_INDEX(to->srqn))
	                        ->seq,
	                memory_order_acquire) == to->srq_seq);
}

/* Whether the responder has not changed since this thread's last request. A process that changes
 * the record waits for this thread, but not forever if this one is stopped. */
static BASE_HOT bool hca_exchange_stays(const struct hca_exchange *x)
{
	const struct hca_responder *to = &x->responder;

	/* acquire: pairs with the release in shm_write_end() */
	return base_likely(atomic_load_explicit(to->end.seq, memory_order_acquire) ==
	                   to->end.qp.seq) &&
	       hca_responder_is_well(to);
}

/* ---- SENDs that fit into an arrival: of at most SHM_INLINE bytes ---- */

/* In a list, the slot of a message is prefetched so many messages ahead, and the memory of its
 * receive, which the slot names, so many. */
#define HCA_EXCHANGE_AHEAD        6
#define HCA_EXCHANGE_MEMORY_AHEAD 4

/* Copies the message, whose bytes are at the entries' addresses in this process. */
static BASE_HOT void hca_exchange_gather(const struct shm_entry *e, uint32_t n, uint8_t *to)
{
	while (n--) {
		base_copy_short(to, (const void *)(uintptr_t)e->addr, e->length);
		to += e++->length;
	}
}

/* Where a message of @length bytes goes that may be copied at once: its place in the receive's
 * memory, which lies in this process; or NULL. */
static BASE_HOT void *hca_exchange_place_of(struct hca_responder *t, const struct hca_receive *rcv,
                                            uint32_t length)
{
	if (base_unlikely(!rcv->is_one || t->unplaced))
		return NULL;
	return hca_known_at(&t->end, rcv->one.lkey, rcv->one.addr, length, IBV_ACCESS_LOCAL_WRITE);
}

/* Begins to fetch where the next messages will arrive, which go where this one went: to their
 * receives, or to the arrivals' second lines. */
static BASE_HOT void hca_exchange_fetch_ahead(struct hca_exchange *x, const struct hca_receive *rcv,
                                              uint32_t length)
{
	struct hca_responder *t = &x->responder;
	/* of a shared receive queue fewer slots are fetched */
	const bool many = t->more >= HCA_EXCHANGE_MEMORY_AHEAD && !t->end.qp.connection.srq;

	/* unplaced: this one lies in the arrival, and so may the next ones */
	if (t->more)
		shm_ring_prefetch_list(&t->view, rcv->pos + 1, t->more, x->in_list,
		                       HCA_EXCHANGE_AHEAD, t->unplaced);
	else
		shm_ring_prefetch_next(&t->view, SHM_RING_LIST_AHEAD - 1, t->unplaced);
	if (base_likely(!t->unplaced))
		hca_responder_prefetch_memory(
		        t, rcv->credit + (many ? HCA_EXCHANGE_MEMORY_AHEAD : 1), length);
}

/* The rest of hca_exchange_send_short(), if the message does not go to one place that is known. */
int hca_exchange_send_taken(struct hca_exchange *x, const struct shm_request *r,
                            const struct shm_entry *entries, const struct hca_receive *rcv);

/* As hca_exchange(), for a SEND whose bytes are at the entries' addresses in this process: the
 * requester may send them. The caller knows that the responder is current and there, that it is
 * none of XRC, and that nobody is told. */
static BASE_HOT int hca_exchange_send_short(struct hca_exchange *x, const struct shm_request *r,
                                            const struct shm_entry *entries)
{
	struct hca_receive rcv;
	int ret = hca_responder_take(&x->responder, &rcv);
	void *to;

	if (base_unlikely(ret))
		return ret;
	to = hca_exchange_place_of(&x->responder, &rcv, r->length);
	if (base_unlikely(!to || rcv.one.length < r->length)) {
		/* copies: otherwise both would have to be in memory from the beginning. All that
		 * such a request has is this */
		const struct shm_request kept = { .opcode = r->opcode,
			                          .flags = r->flags,
			                          .length = r->length,
			                          .imm = r->imm,
			                          .n_entries = r->n_entries };
		const struct hca_receive taken = rcv;

		return hca_exchange_send_taken(x, &kept, entries, &taken);
	}
	atomic_thread_fence(memory_order_acq_rel); /* as hca_memory_copy_here() */
	hca_exchange_gather(entries, r->n_entries, to);
	hca_responder_fill(&x->responder, r, rcv.slot, SHM_OPERATION_PLACED);
	ret = hca_responder_publish(&x->responder, rcv.slot, rcv.pos);
	hca_exchange_fetch_ahead(x, &rcv, r->length);
	return ret;
}

#endif
