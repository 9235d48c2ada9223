/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A responder: the work of the HCA that a connected queue pair's request is addressed to. It knows
 * the request, and the number of the queue pair that sent it; not the requester's record or memory,
 * nor how the bytes come here. That is its caller's business: exchange.c copies them in memory,
 * packet_responder.c takes them out of packets. In three steps:
 *
 *   begin	checks the request against what the queue pair lets in (specification, volume 1,
 *		section 9.7.4), takes the receive that it uses, and says where in memory it goes
 *   place	the caller copies the bytes to those parts, or from them
 *   end	what uses a receive arrives in the ring; or the receive fails, or is given back
 *
 * One thread at a time carries out the requests of one requester. Threads may do so at the same
 * time for different requesters; each has a struct hca_responder of its own.
 */
#ifndef HCA_RESPONDER_H
#define HCA_RESPONDER_H

#include <infiniband/verbs.h>

#include "base/reason.h"
#include "hca/memory/parts.h"
#include "hca/process/operation.h"
#include "hca/queue/cq.h"
#include "hca/queue/srq.h"
#include "shm/ring.h"

/* The outcome of a request: enum ibv_wc_status, or one of these. */
enum {
	HCA_WAITS_FOR_RECEIVE = -1, /* RNR NAK: no receive is posted */
	HCA_WAITS_FOR_PATH = -2,    /* it gets lost: there is no responder, or no way to it */
	HCA_WAITS_FOR_LOCK = -3,    /* another requester is in the middle of an atomic operation */
	HCA_DROPPED = -4,           /* UC: refused, a success for its requester (9.8.2.2.3) */
	HCA_REFUSED = -5,           /* NAK: hca_responder.nak */
};

/* Why a responder refuses: the NAK codes of table 46 of the specification. */
enum hca_nak {
	HCA_NAK_INVALID_REQUEST,
	HCA_NAK_REMOTE_ACCESS,
	HCA_NAK_REMOTE_OPERATION,
	HCA_NAKS,
};

/* The memory that a request named, and may not have. */
struct hca_wanted {
	uint64_t addr, length;
	uint32_t key, access; /* access 0: there is none */
};

struct hca_responder {
	struct hca_process *process; /* the thread's */
	struct hca_end end;          /* the queue pair, and its memory */
	uint32_t requester;          /* the queue pair whose requests these are */
	/*
	 * XRC: the queue pair is a target, and what it receives goes to the shared receive queue
	 * that the request names. Its ring, CQ and memory stand in end then.
	 */
	bool is_xrc, has_srq;
	uint32_t srqn, srq_seq;
	struct shm_ring_view view; /* of the queue pair's ring, where messages arrive */
	/* unless it is XRC's, claims are in its header; a thread that needs a lock to finish a
	 * request marks them (ring.h) */
	struct shm_ring_single single;
	struct shm_sender *self; /* of the one in whose name receives are claimed */
	/* where its receives are: that, or the ring of its shared receive queue */
	struct shm_ring *credits;
	struct shm_srq srq;
	struct shm_ring_view shared;   /* of the latter */
	struct shm_cq *cq;             /* of its receives */
	const _Atomic uint32_t *error; /* shm_connection.error */
	int tells;                     /* not 0: hca_responder_tell() follows each request */
	bool unplaced;                 /* SENDs of the requester may lie unplaced (place.h) */
	uint8_t more;                  /* requests like this one that follow in the list: a hint */
	/* of the two queue pairs, the number of the one that belongs to this thread's process. In
	 * the responder's process, bits above 24 tell its threads apart */
	uint32_t worker;
	/* of the responder's thread: the lock without which it may not finish a request, or NULL */
	_Atomic uint32_t *held;
	/* on a weak fabric: what hca_responder_begin_change() has found for this request, or NULL
	 */
	const uint64_t *begun;
	/* why it refuses the request: HCA_REFUSED */
	enum hca_nak nak;
	const char *why; /* NULL: it may not have what it @wanted */
	struct hca_wanted wanted;
};

/* A receive that a request uses. */
struct hca_receive {
	struct shm_arrival *slot; /* claimed, of the ring */
	uint32_t pos;
	uint32_t credit; /* hca_responder_take(): its position in the ring that has the credits */
	bool is_one;     /* it has one scatter entry, @one; else there are @n at @many */
	unsigned n;
	struct shm_entry one;
	const struct shm_entry *many;
};

/* Its scatter entries; they are checked. */
static inline const struct shm_entry *hca_receive_entries(const struct hca_receive *rcv)
{
	return base_likely(rcv->is_one) ? &rcv->one : rcv->many;
}

/* Copies the record of queue pair @qpn, or of XRC's shared receive queue @t->srqn as far as that
 * stands for it, and gets their memory. */
void hca_responder_read(struct hca_responder *t, uint32_t qpn);

/* Prepares for requests of @requester, whose receives are claimed in the name of @claimant, a queue
 * pair of this fabric; end.qp, end.memory, held and worker are filled in. */
void hca_responder_prepare(struct hca_responder *t, uint32_t requester, uint32_t claimant);

/* Whether it has found no error. */
static BASE_HOT bool hca_responder_is_well(const struct hca_responder *t)
{
	return base_likely(!atomic_load_explicit(t->error, memory_order_relaxed));
}

/* ---- refusing ---- */

/* Whether its queue pair still exists. When a process ends, its keys go, too: then nobody tells the
 * requester that they do not allow its request. */
bool hca_responder_is_there(const struct hca_responder *t);

/* Notes why. Returns HCA_REFUSED. */
int hca_responder_refuse(struct hca_responder *t, enum hca_nak nak, const char *why);

/* Why it has refused, in words; perhaps in @text: explain_access.c. */
const char *hca_responder_explain(const struct hca_responder *t, char text[static BASE_REASON_MAX]);

/* Logs that, for a requester that will not hear why. */
void hca_responder_log(const struct hca_responder *t);

/*
 * The requester is told that: moves the queue pair to ERR, with its event. Returns the status of
 * the request, or HCA_DROPPED.
 */
int hca_responder_fail(struct hca_responder *t);

/* The outcome of a failed copy to or from its memory: hca_memory_copy()'s @error. */
int hca_responder_copy_failed(struct hca_responder *t, int error);

/* ---- receives ---- */

/* Whether this thread may still finish the request: a requester takes the lock from a thread of its
 * peer that was stopped. */
static BASE_HOT bool hca_responder_is_ours(const struct hca_responder *t)
{
	if (base_likely(!t->held))
		return true;
	/* the copy before the look: a thread that takes the lock, by an acquire in try_lock(), goes
	 * on to use its buffers for other things */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(t->held, memory_order_relaxed) == t->worker;
}

/* The rare part of hca_responder_take(): why there is none; or there is one by now, 0. */
int hca_responder_without_receive(struct hca_responder *t, struct hca_receive *out);

/* Fills in the entries of the receive that @slot stands for, one of a credit. They are checked: the
 * receiver's process may have written anything. @many_off: where they are if there are several. */
static BASE_HOT void hca_responder_read_credit(struct hca_responder *t,
                                               const struct shm_arrival *slot, uint64_t many_off,
                                               uint32_t max_sge, struct hca_receive *out)
{
	out->one = (struct shm_entry){ .addr = slot->receive.addr,
		                       .length = slot->receive.length,
		                       .lkey = slot->receive.lkey };
	out->is_one = slot->operation == 1;
	out->n = 1;
	atomic_signal_fence(memory_order_acq_rel); /* what is checked is what is used */
	if (base_likely(out->is_one))
		return;
	out->n = out->one.length;
	out->one.addr = many_off; /* for the thread that places the message later */
	out->many = shm_payload_at(&t->process->region, many_off, max_sge * sizeof(out->one));
	if (out->n > max_sge || out->n > HCA_MAX_SGE || !out->many)
		out->n = 0;
}

/* The receive in @slot, claimed at @pos, stays what it was: the request is not carried out. Returns
 * HCA_WAITS_FOR_PATH. */
int hca_responder_give_back(struct hca_responder *t, struct shm_arrival *slot, uint32_t pos);

/* Claims the oldest credit of the queue pair's ring. */
static BASE_HOT struct shm_arrival *hca_responder_claim(struct hca_responder *t, uint32_t *pos)
{
	return base_unlikely(t->is_xrc) ? shm_ring_claim(&t->view, pos)
	                                : shm_ring_claim_single(&t->view, &t->single, pos);
}

/* Whether credits are left, as far as hints tell. */
static BASE_HOT bool hca_responder_has_credits(const struct shm_ring *ring)
{
	uint32_t tail = atomic_load_explicit((_Atomic uint32_t *)&ring->tail, memory_order_relaxed);
	uint32_t seen =
	        atomic_load_explicit((_Atomic uint32_t *)&ring->posted_seen, memory_order_relaxed);

	if (base_likely((int32_t)(seen - tail) > 0))
		return true; /* the line of posted is its owner's */
	return (int32_t)(atomic_load_explicit((_Atomic uint32_t *)&ring->posted,
	                                      memory_order_acquire) -
	                 tail) > 0;
}

static BASE_HOT bool hca_responder_is_moving(const struct hca_responder *t)
{
	/* acquire: pairs with the release in end_move(), srq.c: credits came before it was 0 */
	return atomic_load_explicit(&t->credits->moving, memory_order_acquire);
}

/*
 * Takes a receive of the shared receive queue, for a message that will arrive in the queue pair's
 * own ring. Before the credit is used up, the slot there says which receive that is, or the
 * sender's record does: if the message does not come, the owner finds a void slot with that number
 * (undo_slot() in qp_undo.c), and has its receive back. 0,
 * HCA_WAITS_FOR_RECEIVE: there is none; or HCA_WAITS_FOR_PATH: credits are being moved.
 */
static BASE_HOT int hca_responder_try_shared(struct hca_responder *t, struct hca_receive *out)
{
	const struct shm_srq *s = &t->srq;
	const struct shm_ring_view *v = &t->shared;
	struct shm_arrival *credit;
	uint32_t pos, receive;
	uint64_t many_off;

	/* while the queue moves to another ring, withdrawn credits still look usable: each try to
	 * claim one would waste a position */
	if (base_unlikely(hca_responder_is_moving(t)))
		return HCA_WAITS_FOR_PATH;
	if (base_unlikely(!hca_responder_has_credits(t->credits)))
		return HCA_WAITS_FOR_RECEIVE;
	out->slot = hca_responder_claim(t, &out->pos);
	if (base_unlikely(!out->slot))
		return HCA_WAITS_FOR_RECEIVE;
	credit = shm_ring_claim(v, &pos);
	if (base_unlikely(!credit)) {
		hca_responder_give_back(t, out->slot, out->pos);
		return HCA_WAITS_FOR_RECEIVE;
	}
	out->credit = pos;
	many_off = s->entries_off +
	           (uint64_t)shm_receive_number(credit->imm) * s->max_sge * sizeof(out->one);
	hca_responder_read_credit(t, credit, many_off, s->max_sge, out);
	receive = credit->imm;
	if (base_unlikely(t->single.marks))
		out->slot->class_flow = receive;
	else
		atomic_store_explicit(&t->self->taking, (uint64_t)receive << 32 | out->pos,
		                      memory_order_relaxed);
	shm_ring_publish(v, credit, pos);
	out->slot->class_flow = receive; /* behind it, which would wait for this store */
	shm_ring_prefetch_at(v, pos + SHM_RING_LIST_AHEAD - 1, false);
	hca_srq_check_limit(t->process, t->credits, t->end.qp.connection.srq - 1, pos + 1);
	return 0;
}

/* Begins to fetch the memory of the receive at @pos, whose slot has been fetched, for a message of
 * @length bytes. It may be another receive by now: nothing is decided by what the slot says. */
static BASE_HOT void hca_responder_prefetch_memory(struct hca_responder *t, uint32_t pos,
                                                   uint32_t length)
{
	const struct shm_ring_view *v = t->end.qp.connection.srq ? &t->shared : &t->view;
	struct shm_arrival *slot = shm_ring_at(v, pos);
	const struct hca_known *k;
	uint64_t offset;
	uint32_t lkey;
	const char *to;

	if (base_unlikely(!length || !shm_ring_has(v, pos)))
		return;
	lkey = atomic_load_explicit((_Atomic uint32_t *)&slot->receive.lkey, memory_order_relaxed);
	k = hca_known_of(&t->end, lkey);
	offset = atomic_load_explicit((_Atomic uint64_t *)&slot->receive.addr,
	                              memory_order_relaxed) -
	         k->iova;
	if (base_unlikely(!k->here || offset >= k->length))
		return;
	to = k->here + offset;
	base_prefetch_write(to);
	base_prefetch_write((const void *)((uintptr_t)to + length - 1));
}

/* Begins to fetch the slot that the next message will arrive in, by what is known of the ring; with
 * its second line if the last ones lie there. */
static BASE_HOT void hca_responder_prefetch(const struct hca_responder *t)
{
	if (base_likely(t->view.ring))
		shm_ring_prefetch(&t->view, t->unplaced);
}

/* Looks once more, as hca_responder_without_receive(). */
static BASE_HOT int hca_responder_take_late(struct hca_responder *t, struct hca_receive *out)
{
	struct hca_receive late; /* not *out, which then need not be in memory */
	int ret = hca_responder_without_receive(t, &late);

	if (!ret)
		*out = late;
	return ret;
}

/* Takes the oldest receive. 0, HCA_WAITS_FOR_RECEIVE, or HCA_WAITS_FOR_PATH: not now. */
static BASE_HOT int hca_responder_take(struct hca_responder *t, struct hca_receive *out)
{
	const struct shm_qp *q = &t->end.qp;
	const struct shm_qp_connection *c = &q->connection;
	uint64_t index;

	if (c->srq) {
		int ret = hca_responder_try_shared(t, out);

		return base_unlikely(ret == HCA_WAITS_FOR_RECEIVE) ? hca_responder_take_late(t, out)
		                                                   : ret;
	}
	out->slot = hca_responder_claim(t, &out->pos);
	if (base_unlikely(!out->slot))
		return hca_responder_take_late(t, out);
	out->credit = out->pos;
	index = (uint64_t)(out->pos & ((1u << q->ring_shift) - 1)) * c->max_recv_sge;
	hca_responder_read_credit(t, out->slot, c->entries_off + index * sizeof(out->one),
	                          c->max_recv_sge, out);
	if (base_unlikely(t->is_xrc))
		out->slot->class_flow = q->qpn; /* the completion says which target received it */
	return 0;
}

/* Fills in what all arrivals have. */
static BASE_HOT void hca_responder_fill(const struct hca_responder *t, const struct shm_request *r,
                                        struct shm_arrival *slot, enum shm_operation operation)
{
	slot->src_qpn = t->requester;
	slot->length = r->length;
	slot->imm = 0;
	slot->flags = r->flags & IBV_SEND_SOLICITED ? SHM_ARRIVAL_SOLICITED : 0;
	if (hca_operation(r->opcode) & HCA_OP_IMM) {
		slot->imm = r->imm;
		slot->flags |= SHM_ARRIVAL_IMM;
	}
	slot->more = t->more;
	slot->operation = (uint8_t)operation;
	slot->status = IBV_WC_SUCCESS;
}

/* The arrival in @slot, claimed at @pos, can be polled. Returns IBV_WC_SUCCESS, or what
 * hca_responder_give_back() does. */
static BASE_HOT int hca_responder_publish(struct hca_responder *t, struct shm_arrival *slot,
                                          uint32_t pos)
{
	const struct shm_qp *q = &t->end.qp;
	bool solicited = (slot->flags & SHM_ARRIVAL_SOLICITED) || slot->status;

	if (base_unlikely(!hca_responder_is_ours(t)))
		return hca_responder_give_back(t, slot, pos);
	if (base_unlikely(q->flags & (SHM_QP_STAMPS | SHM_QP_COUNT_ARRIVALS)))
		hca_cq_note_arrival(t->process, t->cq, q->flags, slot);
	if (base_likely(!t->is_xrc)) {
		shm_ring_publish_single(&t->view, &t->single, slot, pos);
	} else {
		shm_ring_publish(&t->view, slot, pos);
		/* behind the barrier; pairs with hca_srq_modify() */
		hca_srq_check_limit(t->process, t->view.ring, SHM_XRC_SRQ | t->srqn, pos + 1);
	}
	hca_cq_announce(t->cq, q->ready_bit);
	hca_cq_notify(t->process, t->cq, solicited);
	return IBV_WC_SUCCESS;
}

/* The receive fails with @status. Returns the status of the request, or HCA_DROPPED. */
int hca_responder_fail_receive(struct hca_responder *t, const struct shm_request *r,
                               struct shm_arrival *slot, uint32_t pos, enum ibv_wc_status status);

static BASE_HOT uint64_t hca_receive_bytes(const struct hca_receive *rcv)
{
	uint64_t bytes = 0;

	if (base_likely(rcv->is_one))
		return rcv->one.length;
	for (unsigned i = 0; i < rcv->n; i++)
		bytes += rcv->many[i].length;
	return bytes;
}

/* ---- SEND ---- */

/* Whether the key that a SEND with Invalidate names can be invalidated so. */
int hca_responder_check_key(struct hca_responder *t, uint32_t key);
/* Has it name nothing. */
void hca_responder_invalidate(struct hca_responder *t, uint32_t key, struct shm_arrival *slot);

/* Begins a SEND: IBV_WC_SUCCESS and its receive, or what becomes of it. */
static BASE_HOT int hca_responder_begin_send(struct hca_responder *t, const struct shm_request *r,
                                             struct hca_receive *rcv)
{
	int ret = base_unlikely(r->opcode == IBV_WR_SEND_WITH_INV)
	                  ? hca_responder_check_key(t, r->imm)
	                  : IBV_WC_SUCCESS;

	if (base_likely(!ret))
		ret = hca_responder_take(t, rcv);
	if (base_unlikely(ret))
		return ret;
	if (base_unlikely(hca_receive_bytes(rcv) < r->length))
		return hca_responder_fail_receive(t, r, rcv->slot, rcv->pos, IBV_WC_LOC_LEN_ERR);
	return IBV_WC_SUCCESS;
}

/* Ends it: its bytes are where they belong, and the arrival is filled in. */
static BASE_HOT int hca_responder_end_send(struct hca_responder *t, const struct shm_request *r,
                                           struct shm_arrival *slot, uint32_t pos)
{
	if (base_unlikely(r->opcode == IBV_WR_SEND_WITH_INV))
		hca_responder_invalidate(t, r->imm, slot);
	return hca_responder_publish(t, slot, pos);
}

/* ---- RDMA WRITE, READ and atomics ---- */

/* Adds the memory that the request's key gives access to; false: it gives none, and nothing is
 * refused yet. */
bool hca_responder_find(struct hca_responder *t, const struct shm_request *r, uint32_t length,
                        uint32_t access, struct hca_parts *parts);
/* The rare half of hca_responder_begin_rdma(): the key is looked up. */
int hca_responder_look_up(struct hca_responder *t, const struct shm_request *r, uint32_t length,
                          uint32_t access, struct hca_parts *parts);
int hca_responder_refuse_operation(struct hca_responder *t);

/* Begins a request for @length bytes of memory: IBV_WC_SUCCESS and where they are, or how it is
 * refused. */
static BASE_HOT int hca_responder_begin_rdma(struct hca_responder *t, const struct shm_request *r,
                                             uint32_t length, uint32_t access,
                                             struct hca_parts *parts)
{
	void *here;

	if (base_unlikely(!(t->end.qp.connection.access & access)))
		return hca_responder_refuse_operation(t);
	parts->n = 0;
	parts->has_null = false;
	parts->here = true;
	if (!length) /* the key means nothing: o9-33 */
		return IBV_WC_SUCCESS;
	here = hca_known_at(&t->end, r->rkey, r->remote_addr, length, access);
	if (base_unlikely(!here))
		return hca_responder_look_up(t, r, length, access, parts);
	parts->iov[parts->n++] = (struct iovec){ here, length };
	return IBV_WC_SUCCESS;
}

/* Likewise for those that need a resource of the responder's (max_dest_rd_atomic). */
int hca_responder_begin_read(struct hca_responder *t, const struct shm_request *r,
                             struct hca_parts *parts);
/* And for one word of 8 bytes. */
int hca_responder_begin_word(struct hca_responder *t, const struct shm_request *r, uint32_t access,
                             struct hca_parts *word);

/*
 * Begins an atomic operation, on a weak fabric: *@old is what its word is. With @t->begun set to
 * that, hca_responder_change() acts on that later, if no other atomic operation has come in
 * between; a processor's store or a WRITE is lost then (volume 1, section 9.4.5). Nobody waits for
 * it, and it has no effect if it goes no further. False: it cannot begin now.
 */
bool hca_responder_begin_change(struct hca_responder *t, const struct shm_request *r,
                                uint64_t *old);
/* An atomic operation on the word: *@old is what it was. HCA_WAITS_FOR_LOCK: not now. */
int hca_responder_change(struct hca_responder *t, const struct shm_request *r,
                         struct hca_parts *word, uint64_t *old);
/* Writes @value at once, so that nobody sees a part of it. */
int hca_responder_store(struct hca_responder *t, struct hca_parts *word, uint64_t value);
/* FLUSH: annex A19. */
int hca_responder_flush(struct hca_responder *t, const struct shm_request *r);

/* ---- all ---- */

/* Called after a request if @t->tells; @outcome is what became of it. The first message may
 * establish the connection; READs and WRITEs are counted. */
void hca_responder_tell(struct hca_responder *t, const struct shm_request *r, int outcome);

#endif
