/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests on a weak fabric: see weak_requests.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/queue/cq.h"
#include "hca/transport/place.h"
#include "hca/transport/weak_clock.h"
#include "hca/transport/weak_requests.h"

/* So many requests are looked at from the oldest one on, as those that a card has under way. */
#define WINDOW 64
/* A longer message waits where the program has it: its bytes are read when they are placed. */
#define MOST_BYTES (256u << 10)
/* A message is placed in so many pieces at most. */
#define PIECES 4

enum step { GATHER, PIECE, PLACE, COMPLETE, DONE };
enum order { SENDS, IS_ANSWERED, IS_LOCAL };

struct request {
	struct hca_weak_due due; /* its next step */
	uint8_t next;            /* enum step: that one */
	uint8_t order;           /* enum order */
	bool has_fence, is_inline, is_atomic;
	bool has_begun; /* an atomic operation: */
	uint64_t old;   /* hca_responder_begin_change() */
	uint8_t early;  /* pieces that were placed ahead, a bit each */
	int failed;     /* an enum ibv_wc_status */
	char *bytes;    /* NULL: there are none, or the message waits in the program's memory */
	uint32_t n;
};

struct hca_weak_queue {
	struct hca_weak_clock clock;
	uint32_t first, known; /* positions that have a struct request: from first, below known */
	uint32_t port;         /* of the responder, while requests are held */
	uint32_t last;         /* in SQD: the position behind those that were posted before */
	bool drains;           /* it is in SQD: those behind wait */
	bool works;            /* requests are carried out just now */
	bool is_noted; /* in this walk: what the first request that cannot go on waits for */
	uint32_t mask;
	struct request at[];
};

/* ---- order ---- */

/* It reads a word, and writes what becomes of that. */
static bool is_atomic(const struct shm_request *r)
{
	const unsigned op = hca_operation(r->opcode);

	return (op & HCA_OP_ATOMIC) && (op & HCA_OP_BACK);
}

static enum order order_of(const struct shm_request *r)
{
	const unsigned op = hca_operation(r->opcode);

	return op & HCA_OP_LOCAL ? IS_LOCAL : op & HCA_OP_ANSWERED ? IS_ANSWERED : SENDS;
}

/* The steps that all requests ahead have behind them. */
struct ahead {
	bool gathered, placed; /* SENDs and WRITEs */
	bool begun, answered; /* READs and atomic operations: at the receiver; at the sender, too */
	bool whole;           /* no atomic operation has read its word, and not written it yet */
	bool completed;
};

/* Whether the step of a READ or an atomic operation is taken at the receiver. */
static bool is_there(const struct request *q, enum step step)
{
	return step == GATHER || (step == PIECE && q->is_atomic);
}

/*
 * The order of operations that the specification wants (volume 1, section 10.8.3.3): a request is
 * carried out at the receiver behind all SENDs and WRITEs ahead of it, and a READ or an atomic
 * operation behind all of those. The result of a READ or an atomic operation may come after later
 * requests are carried out, unless these have a fence. Completions are in order.
 */
static bool may(const struct ahead *a, const struct request *q, enum step step)
{
	if (step == COMPLETE)
		return a->completed;
	if (q->has_fence && !a->answered)
		return false;
	switch (q->order) {
	case SENDS:
		return step == GATHER ? a->gathered : a->placed && a->whole;
	case IS_ANSWERED:
		return is_there(q, step) ? a->placed && a->begun : a->answered;
	default:
		return a->placed;
	}
}

static void go_behind(struct ahead *a, const struct request *q)
{
	const bool is_answered = q->order == IS_ANSWERED;

	if (is_answered) {
		a->begun &= !is_there(q, q->next) && !q->failed;
		a->answered &= q->next > PLACE;
		a->whole &= !q->is_atomic || q->next != PIECE;
	} else {
		a->gathered &= q->next > GATHER;
	}
	if (!is_answered || q->failed)
		a->placed &= q->next > PLACE && !q->failed;
	a->completed &= q->next > COMPLETE;
}

static enum base_weak_step choice_of(const struct request *q)
{
	switch (q->next) {
	case GATHER:
		return q->order == SENDS ? BASE_WEAK_STEP_gather : BASE_WEAK_STEP_place;
	case PIECE:
		return BASE_WEAK_STEP_change;
	case COMPLETE:
		return BASE_WEAK_STEP_complete;
	default:
		return q->order == IS_ANSWERED ? BASE_WEAK_STEP_back : BASE_WEAK_STEP_place;
	}
}

/* Inline data is read when it is posted. If there are pieces, they come when the request may. */
static void set_next(struct hca_connected_qp *c, struct request *q, enum step step)
{
	q->next = step;
	if ((step == PIECE && !q->has_begun) || step == DONE ||
	    (step == GATHER && (q->order == IS_LOCAL || q->is_inline)))
		hca_weak_set_now(&c->weak->clock, &q->due);
	else
		hca_weak_set(&c->weak->clock, &q->due, choice_of(q));
}

/* ---- bytes ---- */

static bool hold(struct hca_connected_qp *c, struct request *q, uint32_t n)
{
	if (!n || n > MOST_BYTES || !hca_weak_hold(c->weak->clock.all, n))
		return false;
	q->bytes = malloc(n);
	q->n = n;
	if (!q->bytes)
		hca_weak_release(c->weak->clock.all, n);
	return q->bytes;
}

static void let_go(struct hca_connected_qp *c, struct request *q)
{
	if (!q->bytes)
		return;
	free(q->bytes);
	q->bytes = NULL;
	hca_weak_release(c->weak->clock.all, q->n);
}

/* The request, or a part of it, with its bytes in our memory in place of the program's. */
static struct shm_request part_of(const struct shm_request *r, const struct request *q,
                                  uint32_t from, uint32_t length, struct shm_entry *e)
{
	struct shm_request part = *r;

	*e = (struct shm_entry){ .addr = (uintptr_t)q->bytes + from, .length = length };
	part.flags |= IBV_SEND_INLINE;
	part.n_entries = 1;
	part.length = length;
	part.remote_addr += from;
	return part;
}

/* Where piece @i of four begins. They meet at words. */
static uint32_t begin_of(const struct request *q, unsigned i)
{
	return i == PIECES ? q->n : (uint32_t)((uint64_t)q->n * i / PIECES) & ~7u;
}

/* ---- steps: what becomes of the request, as of hca_exchange() ---- */

/* A thread that deregisters memory of the program waits meanwhile. */
static void say_busy(struct hca_connected_qp *c)
{
	hca_exchange_begin(&c->x, c->qp.connection.dest_qpn);
}

static int read_own(struct hca_connected_qp *c, const struct shm_request *r,
                    const struct shm_entry *e, struct request *q)
{
	struct hca_exchange *x = &c->x;
	struct hca_parts from, to;

	if (!hold(c, q, r->length))
		return IBV_WC_SUCCESS;
	say_busy(c);
	hca_parts_here(&to, q->bytes, r->length);
	if (hca_parts_of_request(&x->requester, r, e, 0, &from) &&
	    !hca_parts_copy(&x->requester, &to, &x->requester, &from, r->length))
		return IBV_WC_SUCCESS;
	let_go(c, q);
	return IBV_WC_LOC_PROT_ERR;
}

/* Whether the responder is there, as it was last. */
static bool is_settled(struct hca_connected_qp *c)
{
	say_busy(c);
	return !c->x.responder.tells && hca_exchange_is_there(&c->x) &&
	       hca_exchange_is_current(&c->x);
}

/* A long READ goes to the program's memory at once. */
static int read_remote(struct hca_connected_qp *c, const struct shm_request *r,
                       const struct shm_entry *e, struct request *q)
{
	struct shm_request part;
	struct shm_entry entry;
	int ret;

	if (!hold(c, q, r->length))
		return hca_connected_carry_out(c, r, e);
	part = part_of(r, q, 0, r->length, &entry);
	ret = hca_connected_carry_out(c, &part, &entry);
	if (ret)
		let_go(c, q);
	return ret;
}

/* What has begun when there was no way, say, begins anew. */
static int change(struct hca_connected_qp *c, const struct shm_request *r,
                  const struct shm_entry *e, struct request *q)
{
	int ret;

	c->x.responder.begun = q->has_begun ? &q->old : NULL;
	ret = read_remote(c, r, e, q);
	c->x.responder.begun = NULL;
	q->has_begun = false;
	return ret;
}

/* Reads the word, behind the SENDs ahead. False: change() reads it. */
static bool begin_change(struct hca_connected_qp *c, const struct shm_request *r, struct request *q)
{
	struct hca_responder *t = &c->x.responder;

	return is_settled(c) && (!t->unplaced || !hca_place_sends(t)) &&
	       hca_responder_begin_change(t, r, &q->old);
}

static int gather(struct hca_connected_qp *c, const struct shm_request *r,
                  const struct shm_entry *e, struct request *q)
{
	const unsigned op = hca_operation(r->opcode);

	if (q->is_atomic) {
		q->has_begun = begin_change(c, r, q);
		return IBV_WC_SUCCESS;
	}
	if (op & HCA_OP_BACK)
		return read_remote(c, r, e, q);
	if ((op & HCA_OP_LOCAL) || order_of(r) == IS_ANSWERED)
		return IBV_WC_SUCCESS;
	return read_own(c, r, e, q);
}

/* Writes a piece of what was read to where the program wants it. */
static int write_back(struct hca_connected_qp *c, const struct shm_request *r,
                      const struct shm_entry *e, struct request *q, uint32_t from, uint32_t length)
{
	struct hca_exchange *x = &c->x;
	struct hca_parts whole, piece = { .here = true }, source;

	say_busy(c);
	if (!hca_parts_of_request(&x->requester, r, e, IBV_ACCESS_LOCAL_WRITE, &whole))
		return IBV_WC_LOC_PROT_ERR;
	piece.has_null = whole.has_null;
	piece.here = whole.here;
	for (unsigned i = 0, at = 0; i < whole.n && at < from + length; i++) {
		const struct iovec *v = &whole.iov[i];
		const uint32_t begin = at < from ? from - at : 0;
		const bool is_null = v->iov_base == HCA_MEMORY_NULL; /* wherever it begins */

		if (begin < v->iov_len)
			piece.iov[piece.n++] =
			        (struct iovec){ (char *)v->iov_base + (is_null ? 0 : begin),
				                v->iov_len - begin };
		at += (unsigned)v->iov_len;
	}
	hca_parts_here(&source, q->bytes + from, length);
	return hca_parts_copy(&x->requester, &piece, &x->requester, &source, length)
	               ? IBV_WC_LOC_PROT_ERR
	               : IBV_WC_SUCCESS;
}

static int put_piece(struct hca_connected_qp *c, const struct shm_request *r,
                     const struct shm_entry *e, struct request *q, unsigned i)
{
	const uint32_t from = begin_of(q, i), length = begin_of(q, i + 1) - from;
	struct shm_request part;
	struct shm_entry entry;

	if (!length)
		return IBV_WC_SUCCESS;
	if (order_of(r) == IS_ANSWERED)
		return write_back(c, r, e, q, from, length);
	part = part_of(r, q, from, length, &entry);
	part.opcode = IBV_WR_RDMA_WRITE;
	return hca_connected_carry_out(c, &part, &entry);
}

/* Whether a WRITE may be placed in pieces. The responder refuses it, and counts it, as a whole. */
static bool may_be_cut(struct hca_connected_qp *c, const struct shm_request *r)
{
	struct hca_parts whole;

	hca_parts_here(&whole, NULL, 0);
	whole.n = 0;
	return is_settled(c) &&
	       hca_responder_find(&c->x.responder, r, r->length, IBV_ACCESS_REMOTE_WRITE, &whole);
}

static bool has_pieces(struct hca_connected_qp *c, const struct shm_request *r,
                       const struct request *q)
{
	const unsigned op = hca_operation(r->opcode);

	return q->bytes && q->n >= 2 * sizeof(uint64_t) &&
	       ((op & HCA_OP_READ) || ((op & HCA_OP_WRITE) && may_be_cut(c, r)));
}

/* Those of @mask. Which come first is what was chosen: a card promises no order. */
static int put_pieces(struct hca_connected_qp *c, const struct shm_request *r,
                      const struct shm_entry *e, struct request *q, unsigned mask)
{
	int ret = IBV_WC_SUCCESS;

	for (unsigned i = 0; i < PIECES && !ret; i++)
		if (mask >> i & 1)
			ret = put_piece(c, r, e, q, i);
	return ret;
}

static int place_some(struct hca_connected_qp *c, const struct shm_request *r,
                      const struct shm_entry *e, struct request *q)
{
	const uint8_t mask = has_pieces(c, r, q)
	                             ? hca_weak_choose(c->weak->clock.all, c->qp.weak_object,
	                                               q->due.number, BASE_WEAK_STEP_pieces)
	                             : 0;
	const int ret = mask ? put_pieces(c, r, e, q, mask) : IBV_WC_SUCCESS;

	if (!ret)
		q->early = mask;
	return ret;
}

static int place(struct hca_connected_qp *c, const struct shm_request *r, const struct shm_entry *e,
                 struct request *q)
{
	struct shm_request part;
	struct shm_entry entry;

	if (hca_operation(r->opcode) & HCA_OP_BACK)
		return q->bytes ? put_pieces(c, r, e, q, ~q->early) : IBV_WC_SUCCESS;
	if (q->early && r->opcode == IBV_WR_RDMA_WRITE)
		return put_pieces(c, r, e, q, ~q->early);
	if (!q->bytes)
		return hca_connected_carry_out(c, r, e);
	part = part_of(r, q, 0, r->length, &entry);
	return hca_connected_carry_out(c, &part, &entry);
}

/* ---- a request ---- */

static int take_step(struct hca_connected_qp *c, const struct shm_request *r,
                     const struct shm_entry *e, struct request *q)
{
	switch (q->next) {
	case GATHER:
		return gather(c, r, e, q);
	case PIECE:
		return q->is_atomic ? change(c, r, e, q) : place_some(c, r, e, q);
	case PLACE:
		return place(c, r, e, q);
	default:
		return IBV_WC_SUCCESS;
	}
}

/* Whether the request waits for something that its peer, or the network, does. */
static bool must_wait(struct hca_connected_qp *c, uint32_t position, int outcome)
{
	if (outcome >= 0)
		return false;
	if (outcome == HCA_WAITS_FOR_RECEIVE && !hca_connected_park(&c->x))
		return true;
	if (!c->weak->is_noted)
		hca_connected_note_wait(c, position, outcome);
	c->weak->is_noted = true;
	return true;
}

/* ibv_get_cq_event(3): there may be an event, and no completion. */
static void ring_too_often(struct hca_connected_qp *c, const struct request *q)
{
	struct shm_cq *cq = c->qp.send_cq->shm;
	const uint32_t arm = atomic_load_explicit(&cq->arm, memory_order_seq_cst);

	if (arm != SHM_CQ_IDLE && hca_weak_choose(c->weak->clock.all, c->qp.weak_object,
	                                          q->due.number, BASE_WEAK_STEP_event))
		hca_cq_fire(c->qp.ctx->process, cq, arm);
}

/* Takes the next step of the request at @position. Whether it did. */
static bool step(struct hca_connected_qp *c, uint32_t position, struct request *q)
{
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;
	int outcome = IBV_WC_LOC_QP_OP_ERR;

	if (q->next == COMPLETE) {
		q->next = DONE;
		ring_too_often(c, q);
		return hca_connected_settle(c->shm, position, q->failed);
	}
	if (hca_connected_take(&c->x.requester, position, &r, entries))
		outcome = take_step(c, &r, entries, q);
	if (must_wait(c, position, outcome))
		return false;
	c->waits_since_ns = 0;
	q->failed = outcome;
	set_next(c, q, outcome ? COMPLETE : q->next + 1u);
	return true;
}

/* Takes all steps that can be taken. Whether there were any. *@soon: the one that could be if the
 * clock went on, if it is the first such. */
static bool advance(struct hca_connected_qp *c, uint32_t position, const struct ahead *a,
                    const struct hca_weak_due **soon)
{
	struct request *q = &c->weak->at[position & c->weak->mask];
	bool any = false;

	while (q->next != DONE && may(a, q, q->next)) {
		if (!hca_weak_is_due(&c->weak->clock, &q->due)) {
			*soon = hca_weak_first(*soon, &q->due);
			break;
		}
		if (!step(c, position, q))
			break;
		any = true;
	}
	return any;
}

/* ---- the queue ---- */

/* Requests below the head have ended; new ones were posted. */
static void look_at_queue(struct hca_connected_qp *c)
{
	struct hca_weak_queue *w = c->weak;
	const uint32_t head = hca_connected_load(&c->shm->head);
	const uint32_t tail = w->drains ? w->last : c->completed + c->qp.sq_kept;
	struct request *q;

	for (; w->first != head && w->first != w->known; w->first++)
		let_go(c, &w->at[w->first & w->mask]);
	if (w->first != head)
		w->first = w->known = head;
	for (; w->known != tail; w->known++) {
		const struct shm_request *r = hca_connected_request_at(c, w->known);

		q = &w->at[w->known & w->mask];
		*q = (struct request){ .due.number = w->clock.posted++,
			               .order = (uint8_t)order_of(r),
			               .is_atomic = is_atomic(r),
			               .has_fence = r->flags & IBV_SEND_FENCE,
			               .is_inline = r->flags & IBV_SEND_INLINE };
		set_next(c, q, GATHER);
	}
}

/* While it works, the responder is where it is; else a request that is posted finds no way. */
static void begin_work(struct hca_connected_qp *c)
{
	c->weak->works = true;
	c->x.responder.end.qp.port = c->weak->port;
}

static void end_work(struct hca_connected_qp *c)
{
	c->weak->port = c->x.responder.end.qp.port;
	c->x.responder.end.qp.port = UINT32_MAX;
	c->weak->works = false;
}

/* One walk over the requests that are under way. */
static bool walk(struct hca_connected_qp *c, const struct hca_weak_due **soon)
{
	struct hca_weak_queue *w = c->weak;
	struct ahead a = { true, true, true, true, true, true };
	bool any = false;

	*soon = NULL;
	w->is_noted = false;
	for (uint32_t i = w->first; i != w->known && i - w->first < WINDOW; i++) {
		if (hca_connected_load(&c->shm->failed))
			return false;
		any |= advance(c, i, &a, soon);
		go_behind(&a, &w->at[i & w->mask]);
	}
	return any;
}

void hca_weak_work_off(struct hca_connected_qp *c)
{
	const struct hca_weak_due *soon;

	look_at_queue(c);
	begin_work(c);
	do {
		while (walk(c, &soon))
			look_at_queue(c);
	} while (hca_weak_skip_to(&c->weak->clock, soon));
	end_work(c);
	c->weak->clock.at_once = false;
}

void hca_weak_let_pass(struct hca_connected_qp *c)
{
	c->weak->clock.may_skip = true;
	hca_connected_go_on(c);
	c->weak->clock.may_skip = false;
}

void hca_weak_drain(struct hca_connected_qp *c)
{
	struct hca_weak_queue *w = c->weak;

	if (!w->drains)
		w->last = c->completed + c->qp.sq_kept;
	w->drains = true;
	w->clock.at_once = true;
	hca_weak_work_off(c);
	hca_connected_leave(c);
}

void hca_weak_renewed(struct hca_connected_qp *c)
{
	if (hca_weak_holds(c))
		end_work(c);
}

bool hca_weak_stops_flush(struct hca_connected_qp *c)
{
	struct hca_weak_queue *w = c->weak;
	const uint32_t last = c->completed - 1;

	return w && !hca_weak_is_thread() && hca_qp_state(&c->qp) == IBV_QPS_ERR &&
	       hca_weak_choose(w->clock.all, c->qp.weak_object, w->at[last & w->mask].due.number,
	                       BASE_WEAK_STEP_complete);
}

bool hca_weak_holds(const struct hca_connected_qp *c)
{
	return c->weak && !c->weak->works;
}

/* ---- life ---- */

void hca_weak_open(struct hca_connected_qp *c)
{
	struct hca_process *p = c->qp.ctx->process;
	uint32_t size = 1u << c->x.requester.qp.connection.request_shift;
	struct hca_weak_queue *w;

	if (c->weak)
		c->weak->drains = false;
	if (!p->weak || !hca_weak_has_thread(p->weak) || c->weak || c->wire ||
	    c->x.responder.is_xrc || (c->qp.transport != &hca_rc && c->qp.transport != &hca_uc))
		return;
	w = calloc(1, sizeof(*w) + size * sizeof(w->at[0]));
	if (!w)
		return;
	w->clock.all = p->weak;
	w->clock.qp = &c->qp;
	w->mask = size - 1;
	w->first = w->known = c->completed;
	c->weak = w;
	end_work(c);
	atomic_fetch_or_explicit(&c->shm->chosen, SHM_BY_ITSELF, memory_order_release);
}

void hca_weak_close(struct hca_connected_qp *c)
{
	struct hca_weak_queue *w = c->weak;

	if (!w)
		return;
	for (; w->first != w->known; w->first++)
		let_go(c, &w->at[w->first & w->mask]);
	free(w);
	c->weak = NULL;
}
