/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connected queue pairs, sending: the caller's thread checks a request and carries it out before
 * ibv_post_send() returns (exchange.h). A request that cannot be carried out now waits, and so do
 * the requests behind it: connected_wait.c. If the queue pair exchanges packets, all requests wait
 * until packets have carried them out (packet_connection.h).
 */
#include <errno.h>

#include "base/util.h"
#include "hca/link/flow.h"
#include "hca/link/payload.h"
#include "hca/process/operation.h"
#include "hca/queue/explain.h"
#include "hca/registration/mw.h"
#include "hca/transport/connected.h"
#include "hca/transport/far.h"
#include "hca/transport/place.h"
#include "hca/transport/packet_connection.h"
#include "hca/transport/weak_requests.h"

/* ---- requests ---- */

/* 0, or -errno: the error in the request itself. *@length: of the message, in bytes. */
static BASE_HOT int check(const struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t *length)
{
	const unsigned op = hca_operation(wr->opcode);

	if (base_unlikely(!(op & HCA_OP_POSTED) ||
	                  ((op & HCA_OP_ANSWERED) && qp->transport->type == IBV_QPT_UC)))
		return -EINVAL;
	if (base_unlikely((uint32_t)wr->num_sge > qp->cap.max_send_sge)) /* negative ones too */
		return -EINVAL;
	*length = hca_message_length(wr);
	if (base_unlikely(*length > HCA_MAX_MESSAGE))
		return -EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) &&
	    base_unlikely(*length > qp->cap.max_inline_data || (op & HCA_OP_BACK)))
		return -EINVAL;
	if (base_likely(!(op & (HCA_OP_BIND | HCA_OP_WORD))))
		return 0;
	if ((op & HCA_OP_BIND) && (!wr->bind_mw.mw || *length))
		return -EINVAL;
	return (op & HCA_OP_WORD) && *length != sizeof(uint64_t) ? -EINVAL : 0;
}

/* Requests that only the ibv_wr_ calls can make: wr_flush() and wr_atomic_write() in wr_api.c. */
static bool is_of_wr_api(const struct ibv_send_wr *wr)
{
	const unsigned op = hca_operation(wr->opcode);

	return op && (!(op & HCA_OP_POSTED) || ((op & HCA_OP_VALUE) && !wr->num_sge));
}

static void describe_rare(const struct ibv_send_wr *wr, struct shm_request *r)
{
	const unsigned op = hca_operation(wr->opcode);

	if (op & HCA_OP_ATOMIC) {
		r->remote_addr = wr->wr.atomic.remote_addr;
		r->rkey = wr->wr.atomic.rkey;
		r->compare_add = wr->wr.atomic.compare_add;
		r->swap = wr->wr.atomic.swap;
	} else if (op & HCA_OP_BIND) {
		hca_mw_describe(wr, r);
	} else {
		r->remote_addr = wr->wr.rdma.remote_addr;
		r->rkey = wr->wr.rdma.rkey;
	}
	if (op & HCA_OP_VALUE) {
		r->swap = wr->wr.atomic.swap; /* the word, if there are no entries */
		r->length = sizeof(uint64_t);
	}
}

static BASE_HOT void describe(const struct ibv_send_wr *wr, uint32_t length, struct shm_request *r)
{
	r->wr_id = wr->wr_id;
	r->imm = wr->imm_data; /* or invalidate_rkey, in the same place */
	r->length = length;
	r->n_entries = (uint16_t)wr->num_sge;
	r->opcode = (uint8_t)wr->opcode;
	r->flags = (uint8_t)wr->send_flags;
	r->srqn = wr->qp_type.xrc.remote_srqn; /* means nothing but to XRC */
	if (base_likely(wr->opcode <=
	                IBV_WR_RDMA_READ)) { /* SENDs have it, too: it means nothing */
		r->remote_addr = wr->wr.rdma.remote_addr;
		r->rkey = wr->wr.rdma.rkey;
	} else {
		describe_rare(wr, r);
	}
}

/* ---- carrying out ---- */

/* UC has no retries: a lost request is lost. */
static BASE_HOT int settle(const struct hca_connected_qp *c, int outcome)
{
	if (base_unlikely(outcome < 0) && c->qp.transport->type == IBV_QPT_UC && !c->wire &&
	    !hca_weak_holds(c)) {
		if (outcome == HCA_WAITS_FOR_RECEIVE)
			HCA_COUNT(c->qp.ctx->process, c->x.responder.end.qp.port, no_receive);
		else
			HCA_COUNT(c->qp.ctx->process, c->qp.sender.port, xmit_discards);
		return IBV_WC_SUCCESS;
	}
	return outcome;
}

void hca_connected_read_own(struct hca_connected_qp *c)
{
	struct shm_qp *own = &c->x.requester.qp;

	shm_qp_read(&c->qp.ctx->process->region, c->qp.sender.qpn, own);
	own->type = (uint8_t)c->qp.transport->type;
	own->connection.domain = c->qp.domain->number;
	own->connection.send_cq = c->qp.send_cq->id;
}

/* Copies the records of both ends again. */
BASE_COLD void hca_connected_renew(struct hca_connected_qp *c)
{
	struct hca_exchange *x = &c->x;
	const struct shm_ring_view ring = x->responder.view;

	hca_connected_read_own(c);
	hca_responder_read(&x->responder, x->requester.qp.connection.dest_qpn);
	hca_exchange_prepare(x);
	/* the next claim may be in another ring */
	atomic_store_explicit(&x->self->taking, SHM_TAKING_NONE, memory_order_relaxed);
	if (c->wire) /* nothing is carried out in memory: path_of() finds none */
		x->responder.end.qp.port = UINT32_MAX;
	hca_weak_renewed(c);
	if (x->responder.view.ring != ring.ring || x->responder.view.claim != ring.claim)
		hca_place_forget(&x->responder);
}

static BASE_HOT bool is_for_another_srq(const struct hca_exchange *x, const struct shm_request *r)
{
	return x->responder.is_xrc && r->srqn != x->responder.srqn;
}

/* The next request names another shared receive queue: messages that were sent to this one are
 * placed. */
static BASE_COLD int leave_srq(struct hca_exchange *x)
{
	hca_exchange_begin(x, x->responder.srqn);
	if (hca_exchange_is_current(x) && hca_exchange_is_there(x))
		return hca_place_sends(&x->responder);
	hca_place_forget(&x->responder);
	return 0;
}

/* The flow to the responder, if it leads to where that is. */
static BASE_HOT struct hca_flow *path_of(struct hca_connected_qp *c)
{
	struct hca_flow *f;

	if (base_unlikely(c->qp.sender.port_is->state != IB_PORT_ACTIVE))
		return NULL;
	f = hca_flow_get(&c->qp.sender, &c->path);
	if (base_unlikely(!f || !f->count || f->dest_port != c->x.responder.end.qp.port))
		return NULL;
	return f;
}

#define LEAST_MTU 256 /* such a message is one packet, whatever the path's */

static BASE_HOT uint32_t packets_of(const struct hca_connected_qp *c, uint32_t length)
{
	const unsigned shift = 7u + c->qp.connection.path_mtu; /* IBV_MTU_256 is 1 */

	return base_likely(length <= LEAST_MTU) ? 1 : ((length - 1) >> shift) + 1;
}

/* Counts a request that brings something back, and that. */
static void count_both_ways(const struct hca_connected_qp *c, struct hca_flow *f,
                            const struct shm_request *r)
{
	const unsigned op = hca_operation(r->opcode);
	const bool is_read = op & HCA_OP_READ;

	hca_flow_count_packets(f, 1, op & HCA_OP_BACK ? 0 : r->length);
	hca_flow_count_back(f, is_read ? packets_of(c, r->length) : 1, is_read ? r->length : 0);
}

/* Counts the packets of a request, and what it brings back, but for acknowledgements. */
static BASE_HOT void count(const struct hca_connected_qp *c, struct hca_flow *f,
                           const struct shm_request *r)
{
	if (base_likely(!(hca_operation(r->opcode) & HCA_OP_ANSWERED)))
		hca_flow_count_packets(f, packets_of(c, r->length), r->length);
	else
		count_both_ways(c, f, r);
}

void hca_connected_count(struct hca_connected_qp *c, const struct shm_request *r)
{
	struct hca_flow *f;

	if (hca_operation(r->opcode) & HCA_OP_LOCAL)
		return;
	if (c->wire && hca_connected_detours(c->shm))
		return; /* the daemon counts its packets */
	f = hca_flow_get(&c->qp.sender, &c->path);
	if (f)
		count(c, f, r);
}

static BASE_HOT int carry_out(struct hca_connected_qp *c, const struct shm_request *r,
                              const struct shm_entry *entries)
{
	struct hca_exchange *x = &c->x;
	struct hca_flow *f;
	int outcome;

	if (base_unlikely(hca_operation(r->opcode) & HCA_OP_LOCAL)) {
		hca_connected_leave(c); /* it waits for threads that deal with a peer */
		return hca_mw_carry_out(&c->qp, r);
	}
	if (base_unlikely(x->responder.unplaced && is_for_another_srq(x, r) && leave_srq(x)))
		return HCA_WAITS_FOR_PATH;
	/* first: a process that resets or destroys the responder waits for the requesters that it
	 * sees here; a request that hardly takes time may be followed by more */
	hca_exchange_begin(x, base_unlikely(x->responder.is_xrc) ? r->srqn
	                                                         : c->qp.connection.dest_qpn);
	if (base_unlikely(is_for_another_srq(x, r) || !hca_exchange_is_current(x))) {
		x->responder.srqn = r->srqn;
		hca_connected_renew(c);
	}
	f = path_of(c);
	if (base_likely(f)) {
		outcome = hca_exchange(x, r, entries);
	} else {
		outcome = hca_exchange_check_local(x, r, entries);
		outcome = outcome ? outcome : HCA_WAITS_FOR_PATH;
	}
	if (base_unlikely(r->length > HCA_CONNECTED_SHORT))
		hca_exchange_end(x);
	if (base_likely(outcome == IBV_WC_SUCCESS && !hca_connected_waits(c)))
		count(c, f, r);
	if (base_unlikely(c->qp.sender.unfinished))
		hca_sender_finish(&c->qp.sender);
	return settle(c, outcome);
}

int hca_connected_carry_out(struct hca_connected_qp *c, const struct shm_request *r,
                            const struct shm_entry *entries)
{
	return carry_out(c, r, entries);
}

/* ---- posting ---- */

static BASE_COLD int post_kept(struct hca_connected_qp *c, const struct shm_request *r,
                               const struct ibv_sge *sge)
{
	hca_connected_keep(c, r, sge);
	if (!c->wire) /* else as soon as all of the list are there */
		hca_connected_go_on(c);
	return 0;
}

static bool is_full(const struct hca_qp *qp)
{
	return hca_qp_sq_used(qp) >= qp->cap.max_send_wr;
}

/* It completes in error. */
static BASE_COLD void complete_failed(struct hca_connected_qp *c, const struct ibv_send_wr *wr,
                                      enum ibv_wc_status status)
{
	hca_qp_complete(&c->qp, wr, (uint32_t)hca_message_length(wr), status);
	hca_explain_failed_send(&c->qp, wr, status);
	if (hca_qp_state(&c->qp) == IBV_QPS_RTS)
		hca_connected_fail(c);
}

static BASE_HOT int post_one(struct hca_connected_qp *c, const struct ibv_send_wr *wr, bool checked)
{
	uint64_t length = checked ? hca_message_length(wr) : 0;
	enum ibv_qp_state state = hca_qp_state(&c->qp);
	struct shm_request r;
	int outcome = is_full(&c->qp) ? -ENOMEM : checked ? 0 : check(&c->qp, wr, &length);

	if (base_unlikely(outcome))
		return outcome;
	describe(wr, (uint32_t)length, &r);
	if (base_unlikely(hca_connected_waits(c) || state == IBV_QPS_SQD))
		return post_kept(c, &r, wr->sg_list);
	outcome = IBV_WC_WR_FLUSH_ERR;
	if (base_likely(state == IBV_QPS_RTS))
		outcome = carry_out(c, &r, (const struct shm_entry *)wr->sg_list);
	if (base_unlikely(outcome < 0))
		return post_kept(c, &r, wr->sg_list);
	if (base_likely(!outcome))
		hca_qp_complete(&c->qp, wr, r.length, IBV_WC_SUCCESS);
	else
		complete_failed(c, wr, (enum ibv_wc_status)outcome);
	return 0;
}

/* ---- several at once ---- */

/* How many of the @n requests directly after @wr go to the same shared receive queue. */
static BASE_COLD uint8_t count_more_xrc(const struct ibv_send_wr *wr, uint8_t n)
{
	const struct ibv_send_wr *next = wr->next;
	uint8_t i = 0;

	for (; i < n && next->qp_type.xrc.remote_srqn == wr->qp_type.xrc.remote_srqn; i++)
		next = next->next;
	return i;
}

/* How many requests directly after @wr are like it, and for the same receiver. */
static uint8_t count_more(const struct hca_exchange *x, const struct ibv_send_wr *wr)
{
	const struct ibv_send_wr *next = wr->next;
	uint8_t n = 0;

	for (; n < UINT8_MAX && next && next->opcode == wr->opcode; n++)
		next = next->next;
	return base_unlikely(x->responder.is_xrc) ? count_more_xrc(wr, n) : n;
}

/* Tells the exchange of the request what follows. */
static BASE_HOT void look_ahead(struct hca_exchange *x, const struct ibv_send_wr *wr)
{
	x->in_list = x->responder.more;
	if (base_likely(x->in_list))
		x->responder.more--;
	else if (wr->next)
		x->responder.more = count_more(x, wr);
}

/* Whether several requests may follow one look at the path: none waits, none can name another
 * shared receive queue, and nobody is to be told of each. */
static BASE_HOT bool is_settled(const struct hca_connected_qp *c)
{
	return base_likely(hca_qp_state(&c->qp) == IBV_QPS_RTS && !hca_connected_waits(c) &&
	                   !c->x.responder.is_xrc && !c->x.responder.tells);
}

/* Begins with several requests: their flow; or NULL, they are to be carried out one by one. */
static BASE_HOT struct hca_flow *begin_several(struct hca_connected_qp *c)
{
	if (base_unlikely(!is_settled(c)))
		return NULL;
	hca_exchange_begin(&c->x, c->qp.connection.dest_qpn);
	return hca_exchange_ends_are_current(&c->x) && hca_exchange_is_there(&c->x) ? path_of(c)
	                                                                            : NULL;
}

/* ---- SENDs that fit into an arrival ---- */

/* So many are carried out before somebody looks for the flow again. */
#define SENDS 8

static BASE_HOT bool is_plain_send(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;
}

/* Describes such a SEND whose memory is known. Returns where its bytes are: the entries of inline
 * data, or *@one. NULL: it is another request, or malformed, or something is to be looked up. */
static BASE_HOT const struct shm_entry *find_send(struct hca_connected_qp *c,
                                                  const struct ibv_send_wr *wr,
                                                  struct shm_request *r, struct shm_entry *one)
{
	uint64_t length;

	if (base_unlikely(!is_plain_send(wr) || (uint32_t)wr->num_sge > c->qp.cap.max_send_sge))
		return NULL; /* the entries may be no memory */
	length = hca_message_length(wr);
	if (base_unlikely(length > SHM_INLINE))
		return NULL;
	*r = (struct shm_request){ .opcode = (uint8_t)wr->opcode,
		                   .flags = (uint8_t)wr->send_flags,
		                   .length = (uint32_t)length,
		                   .imm = wr->imm_data,
		                   .n_entries = (uint16_t)wr->num_sge };
	if (wr->send_flags & IBV_SEND_INLINE)
		return base_likely(length <= c->qp.cap.max_inline_data)
		               ? (const struct shm_entry *)wr->sg_list
		               : NULL;
	if (base_unlikely(wr->num_sge != 1))
		return NULL;
	one->length = r->length;
	one->addr = (uintptr_t)hca_known_at(&c->x.requester, wr->sg_list->lkey, wr->sg_list->addr,
	                                    one->length, 0);
	return one->addr ? one : NULL;
}

/* Carries one out as hca_exchange_send_short(). */
static BASE_HOT int send_short(struct hca_connected_qp *c, const struct ibv_send_wr *wr,
                               const struct shm_request *r, const struct shm_entry *e)
{
	const uint8_t more = c->x.responder.more;
	int outcome;

	look_ahead(&c->x, wr);
	outcome = hca_exchange_send_short(&c->x, r, e);
	if (base_unlikely(outcome < 0))
		c->x.responder.more = more; /* keeping it looks ahead again */
	return outcome;
}

/* Carries out the first requests of the list, if they are such, and moves *@wr behind them. False:
 * the one at *@wr goes another way. */
static BASE_HOT bool post_sends(struct hca_connected_qp *c, const struct ibv_send_wr **wr)
{
	struct hca_flow *f = begin_several(c);
	const struct ibv_send_wr *at = *wr;
	uint32_t n = 0, bytes = 0;
	int most, outcome = IBV_WC_SUCCESS;

	if (base_unlikely(!f))
		return false;
	most = base_min((int)(c->qp.cap.max_send_wr - hca_qp_sq_used(&c->qp)), SENDS);
	for (; (int)n < most && at && (!n || hca_exchange_stays(&c->x)); n++, at = at->next) {
		struct shm_request r;
		struct shm_entry one;
		const struct shm_entry *e = find_send(c, at, &r, &one);

		if (base_unlikely(!e))
			break;
		outcome = send_short(c, at, &r, e);
		if (base_unlikely(outcome))
			break;
		bytes += r.length;
		hca_qp_complete(&c->qp, at, r.length, IBV_WC_SUCCESS);
	}
	hca_flow_count_packets(f, n, bytes); /* each is one packet */
	if (base_unlikely(outcome > 0)) {
		complete_failed(c, at, (enum ibv_wc_status)outcome);
		at = at->next;
	}
	*wr = at;
	return !at || n == SENDS;
}

/* ---- RDMA WRITEs, and READs, of memory that was used before ---- */

/* So many are looked at before they are carried out: the lines that they go to, except the first
 * one's, are fetched meanwhile from the processors that have them. */
#define COPIES 8

struct copy {
	char *to;
	const char *from;
	uint32_t length;
};

/* Where the memory of the requester is that such a request names; or NULL. */
static BASE_HOT char *find_own(struct hca_connected_qp *c, const struct ibv_send_wr *wr,
                               bool is_read)
{
	const struct ibv_sge *e = wr->sg_list;

	if (!(wr->send_flags & IBV_SEND_INLINE))
		return hca_known_at(&c->x.requester, e->lkey, e->addr, e->length,
		                    is_read ? IBV_ACCESS_LOCAL_WRITE : 0);
	return base_likely(!is_read && e->length <= c->qp.cap.max_inline_data)
	               ? (char *)(uintptr_t)e->addr
	               : NULL;
}

/* Where the request's bytes go, and from where. False: it is no short one of one piece, or
 * something is to be looked up. */
static BASE_HOT bool find_copy(struct hca_connected_qp *c, const struct ibv_send_wr *wr,
                               bool is_read, struct copy *copy)
{
	const struct ibv_sge *e = wr->sg_list;
	char *own, *remote;

	if (base_unlikely(wr->opcode != (is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE) ||
	                  wr->num_sge != 1 || e->length - 1 >= HCA_CONNECTED_SHORT))
		return false;
	copy->length = e->length;
	remote =
	        hca_known_at(&c->x.responder.end, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
	                     e->length, is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
	own = find_own(c, wr, is_read);
	copy->to = is_read ? own : remote;
	copy->from = is_read ? remote : own;
	return base_likely(own && remote);
}

/* How many requests at the head of the list are such, as far as there is room for them. */
static BASE_HOT unsigned find_copies(struct hca_connected_qp *c, const struct ibv_send_wr *wr,
                                     bool is_read, struct copy *copy)
{
	unsigned n = 0;

	for (uint32_t used = hca_qp_sq_used(&c->qp);
	     wr && n < COPIES && used + n < c->qp.cap.max_send_wr; wr = wr->next, n++) {
		if (base_unlikely(!find_copy(c, wr, is_read, &copy[n])))
			break;
		if (n && is_read)
			__builtin_prefetch(copy[n].from);
		else if (n)
			base_prefetch_write(copy[n].to);
	}
	return n;
}

/* Whether the responder lets in what asks for @access, at once. */
static BASE_HOT bool lets_in(const struct hca_responder *t, unsigned access)
{
	return base_likely(!t->unplaced && (t->end.qp.connection.access & access));
}

/* The same for such requests: READs want a resource of the responder's, and UC has no READs. */
static BASE_HOT bool lets_copy(const struct hca_connected_qp *c, bool is_read)
{
	const struct hca_responder *t = &c->x.responder;

	if (!is_read)
		return lets_in(t, IBV_ACCESS_REMOTE_WRITE);
	return lets_in(t, IBV_ACCESS_REMOTE_READ) && t->end.qp.connection.max_dest_rd_atomic &&
	       c->qp.transport->type != IBV_QPT_UC;
}

/* Carries out the first requests of the list, if they are such, and moves *@wr behind them. Whether
 * there were any. */
static BASE_HOT bool post_copies(struct hca_connected_qp *c, const struct ibv_send_wr **wr,
                                 bool is_read)
{
	const struct ibv_send_wr *at = *wr;
	uint32_t packets = 0, bytes = 0;
	struct copy copy[COPIES];
	struct hca_flow *f = begin_several(c);
	unsigned i, n;

	n = base_likely(f && lets_copy(c, is_read)) ? find_copies(c, at, is_read, copy) : 0;
	if (base_unlikely(!n))
		return false;
	i = 0;
	do {
		hca_memory_copy_here(copy[i].to, copy[i].from, copy[i].length);
		packets += packets_of(c, copy[i].length);
		bytes += copy[i].length;
		hca_qp_complete(&c->qp, at, copy[i].length, IBV_WC_SUCCESS);
		at = at->next;
	} while (++i < n);
	*wr = at;
	hca_flow_count_packets(f, is_read ? n : packets, is_read ? 0 : bytes);
	if (is_read)
		hca_flow_count_back(f, packets, bytes);
	c->x.responder.more = 0; /* it was counted before these were taken out */
	return true;
}

/* A function of its own: SENDs and WRITEs do not pay for it. */
static __attribute__((noinline)) bool post_reads(struct hca_connected_qp *c,
                                                 const struct ibv_send_wr **wr)
{
	return post_copies(c, wr, true);
}

/* ---- lists of RDMA WRITEs, or READs, of far memory ---- */

/* How many requests at the head of the list are like the first one, and right, and what they copy
 * is in @far. */
static unsigned find_far(struct hca_connected_qp *c, const struct ibv_send_wr *wr,
                         struct hca_far *far)
{
	const uint32_t room = c->qp.cap.max_send_wr - hca_qp_sq_used(&c->qp);
	struct shm_request r;
	uint64_t length;
	unsigned n = 0;

	for (; wr && wr->opcode == far->opcode && n < room; wr = wr->next, n++) {
		if (check(&c->qp, wr, &length) || length - 1 >= HCA_FAR_BYTES)
			break;
		describe(wr, (uint32_t)length, &r);
		if (!hca_far_add(far, &c->x, &r, (const struct shm_entry *)wr->sg_list))
			break;
	}
	return n;
}

/* Completes those of the first @n requests whose bytes are among the first @bytes. */
static void complete_far(struct hca_connected_qp *c, struct hca_flow *f,
                         const struct ibv_send_wr **wr, unsigned n, uint64_t bytes)
{
	for (; n && hca_message_length(*wr) <= bytes; n--) {
		struct shm_request r = { .opcode = (uint8_t)(*wr)->opcode,
			                 .length = (uint32_t)hca_message_length(*wr) };

		bytes -= r.length;
		count(c, f, &r);
		hca_qp_complete(&c->qp, *wr, r.length, IBV_WC_SUCCESS);
		*wr = (*wr)->next;
	}
}

/*
 * Carries out the first requests of the list, if they are such, and moves *@wr behind them. Whether
 * there were any. The first one that fails stays in the list: alone it fails by itself, and those
 * behind it are flushed.
 */
static __attribute__((noinline)) bool post_far_list(struct hca_connected_qp *c,
                                                    const struct ibv_send_wr **wr)
{
	const struct ibv_send_wr *first = *wr;
	struct hca_far far; /* large: what is used of it is set */
	struct hca_flow *f;
	unsigned n;

	far.opcode = first->opcode;
	f = begin_several(c);
	n = f && lets_in(&c->x.responder, hca_far_access(&far)) && hca_far_begin(&far, &c->x)
	            ? find_far(c, first, &far)
	            : 0;
	if (!n)
		return false;
	complete_far(c, f, wr, n, hca_far_copy(&far, &c->x));
	c->x.responder.more = 0; /* it was counted before these were taken out */
	if (far.bytes > HCA_CONNECTED_SHORT)
		hca_exchange_end(&c->x);
	return *wr != first;
}

/* The same, if the list looks as if it began with such. */
static BASE_COLD bool post_far(struct hca_connected_qp *c, const struct ibv_send_wr **wr)
{
	const struct ibv_send_wr *next = (*wr)->next;

	return ((*wr)->opcode == IBV_WR_RDMA_WRITE || (*wr)->opcode == IBV_WR_RDMA_READ) && next &&
	       next->opcode == (*wr)->opcode && post_far_list(c, wr);
}

/* ---- all ---- */

/* 0, or -errno: what is wrong with the request at *@wr. */
static BASE_HOT int post_list(struct hca_qp *qp, const struct ibv_send_wr **wr, bool checked)
{
	struct hca_connected_qp *c = hca_connected(qp);
	int ret = hca_qp_can_post(hca_qp_state(qp)) ? 0 : -EINVAL;

	/* where the first message arrives: its receiver may be looking there all the time. Not for
	 * RDMA, which uses no receive: its peer would lose the line for nothing */
	if (base_likely(*wr != NULL) && is_plain_send(*wr))
		hca_responder_prefetch(&c->x.responder);
	if (!ret && hca_process_gone(qp->sender.process))
		ret = -EIO;
	if (base_unlikely(hca_connected_load(&c->shm->error)) && !ret)
		hca_connected_notice_error(c);
	while (!ret && *wr) {
		if ((*wr)->opcode == IBV_WR_RDMA_WRITE && post_copies(c, wr, false))
			continue;
		if (is_plain_send(*wr) && post_sends(c, wr))
			continue;
		if ((*wr)->opcode == IBV_WR_RDMA_READ && post_reads(c, wr))
			continue;
		if (base_unlikely(c->x.responder.end.is_far) && post_far(c, wr))
			continue;
		look_ahead(&c->x, *wr);
		ret = post_one(c, *wr, checked);
		if (base_likely(!ret))
			*wr = (*wr)->next;
	}
	c->x.responder.more = 0;
	hca_connected_leave(c);
	if (base_unlikely(c->wire) && hca_connected_waits(c)) {
		hca_connected_go_on(c);
		hca_wire_look_at_network(c);
	}
	return ret;
}

/* ---- for the transports' tables ---- */

int hca_connected_check(const struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length;

	if (is_of_wr_api(wr)) /* the queue pair has the operation, or ibv_wr_ would have failed */
		return wr->num_sge ? -EINVAL : 0;
	return check(qp, wr, &length);
}

int hca_connected_post_checked(struct hca_qp *qp, const struct ibv_send_wr **wr)
{
	return post_list(qp, wr, true);
}

int hca_connected_post(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ibv_send_wr *at = wr;
	int ret;

	base_lock(&qp->send_lock);
	ret = post_list(qp, &at, false);
	base_unlock(&qp->send_lock);
	if (base_unlikely(ret)) {
		*bad = (struct ibv_send_wr *)at;
		hca_explain_send(qp, at, ret);
	}
	return ret;
}
