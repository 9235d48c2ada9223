/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects and memory of requests: see requests.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "checked/contents.h"
#include "checked/gone.h"
#include "checked/peers.h"
#include "checked/places.h"
#include "checked/ranges.h"
#include "checked/report.h"
#include "checked/requests.h"
#include "checked/tools.h"
#include "hca/process/newer_verbs.h"

/* A range of memory that a request uses. */
struct used {
	struct checked_range range;
	struct checked_lent lent;
	uint32_t before; /* bytes of the request in front of these */
	const struct request *by;
	struct checked_object *region;
	/* of what is sent, or of the last bytes of a receive; NULL: it may change, or is not known
	 */
	struct checked_contents *contents;
	bool is_written; /* by the card */
};

struct request {
	const struct hca_record *record;
	uint32_t place;
	struct checked_object *handle, *cq, *qp; /* NULL: not known */
	struct checked_lent of_peer;
	uint32_t n;
	struct used used[];
};

/* Ranges of outstanding requests: memory[0] for reads of the card, memory[1] for its writes. Many
 * requests may read the same bytes: each of them looks at the others no more than once. */
static struct checked_ranges memory[2];
static bool has_overlaps; /* there were some: of receives nobody knows who has written */

#define TAIL 256 /* bytes at the end of a receive's memory that are compared */
static checked_lost *lost_at;

const char *checked_request_name(const struct hca_record *r)
{
#define OPCODE(name) [name] = #name
	static const char *const names[] = {
		OPCODE(IBV_WR_RDMA_WRITE),
		OPCODE(IBV_WR_RDMA_WRITE_WITH_IMM),
		OPCODE(IBV_WR_SEND),
		OPCODE(IBV_WR_SEND_WITH_IMM),
		OPCODE(IBV_WR_RDMA_READ),
		OPCODE(IBV_WR_ATOMIC_CMP_AND_SWP),
		OPCODE(IBV_WR_ATOMIC_FETCH_AND_ADD),
		OPCODE(IBV_WR_LOCAL_INV),
		OPCODE(IBV_WR_BIND_MW),
		OPCODE(IBV_WR_SEND_WITH_INV),
		[HCA_WR_FLUSH] = "FLUSH",
		[HCA_WR_ATOMIC_WRITE] = "IBV_WR_ATOMIC_WRITE",
	};
#undef OPCODE

	if (r->is_receive)
		return "receive";
	return r->opcode < ARRAY_SIZE(names) && names[r->opcode] ? names[r->opcode] : "request";
}

/* ---- memory ---- */

static bool writes(const struct hca_record *r)
{
	return r->is_receive || r->opcode == IBV_WR_RDMA_READ ||
	       r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static struct used *used_of(struct checked_range *r)
{
	return r ? container_of(r, struct used, range) : NULL;
}

/* The ranges that have a byte in common with this one: first ranges that are read, then ranges that
 * are written. NULL: no more. */
static struct used *first_used(uint64_t from, uint64_t to)
{
	struct checked_range *r = checked_ranges_first(&memory[0], from, to);

	return used_of(r ? r : checked_ranges_first(&memory[1], from, to));
}

static struct used *next_used(const struct used *u, uint64_t from, uint64_t to)
{
	struct checked_range *r = checked_ranges_next(&u->range, from, to);

	if (!r && !u->is_written)
		r = checked_ranges_first(&memory[1], from, to);
	return used_of(r);
}

static const char *done_by(const struct hca_record *r)
{
	return r->is_receive ? "received" : "sent";
}

static void report_overlap(const struct used *now, const struct used *before)
{
	const struct hca_record *r = now->by->record, *other = before->by->record;
	const struct checked_report report = { .rule = CHECKED_RULE_OVERLAP,
		                               .at = { { "first", before->by->place },
		                                       { "second", now->by->place, true } } };

	checked_report(&report,
	               "the %s with wr_id %" PRIu64 " has the %" PRIu64 " bytes at 0x%" PRIx64
	               ", of which the %s with wr_id %" PRIu64 ", posted before, uses some",
	               checked_request_name(r), r->wr_id, now->range.to - now->range.from,
	               now->range.from, checked_request_name(other), other->wr_id);
}

/* Whether there is one: of two that only read there is none. */
static bool look_for_overlaps(const struct used *u)
{
	const uint64_t from = u->range.from, to = u->range.to;
	const struct used *other = u->is_written
	                                   ? first_used(from, to)
	                                   : used_of(checked_ranges_first(&memory[1], from, to));

	if (other) {
		has_overlaps = true;
		report_overlap(u, other);
	}
	return other;
}

/* Of memory that two requests use at once, the tools are told nothing: which of them may be seen is
 * chance. */
static void lend(struct used *u)
{
	const struct hca_record *r = u->by->record;

	u->lent = (struct checked_lent){ .from = u->range.from,
		                         .to = u->range.to,
		                         .is_written = u->is_written,
		                         .place = u->by->place,
		                         .queue = r->srq ? (uintptr_t)r->srq
		                                         : (uintptr_t)r->qp + r->is_receive };
	checked_tools_lend(&u->lent);
}

/* There is no object of the name that the request gives: if there was one, the request comes behind
 * the end of that. */
static void look_for_gone(const struct request *q, enum checked_kind kind, uint64_t name)
{
	const struct hca_record *r = q->record;
	const struct checked_gone *gone = checked_gone_find(kind, name);
	const struct checked_report report = {
		.rule = kind == CHECKED_MR ? CHECKED_RULE_KEY_GONE : CHECKED_RULE_AH_GONE,
		.at = { { "destroyed", gone ? gone->end : 0 }, { "posted", q->place, true } }
	};

	if (gone)
		checked_report(&report,
		               "the %s with wr_id %" PRIu64 " names the %s 0x%" PRIx64
		               ", %s before",
		               checked_request_name(r), r->wr_id,
		               kind == CHECKED_MR ? "local key" : "handle at", name,
		               kind == CHECKED_MR ? "whose region was deregistered"
		                                  : "which was destroyed");
}

static uint32_t tail_of(const struct used *u)
{
	const uint64_t bytes = u->range.to - u->range.from;

	return (uint32_t)(bytes < TAIL ? bytes : TAIL);
}

static void use(struct request *q, const struct ibv_sge *sge, uint32_t before)
{
	struct checked_object *region = sge->length ? checked_region_find(sge->lkey) : NULL;
	struct used *u = &q->used[q->n];
	bool overlaps;

	*u = (struct used){
		.by = q, .before = before, .region = region, .is_written = writes(q->record)
	};
	if (!region && sge->length)
		look_for_gone(q, CHECKED_MR, sge->lkey);
	if (!region || !checked_region_place(region, sge, &u->range.from))
		return;
	u->range.to = u->range.from + sge->length;
	checked_moves_check(q->record, q->place, region, u->range.from, u->range.to);
	overlaps = look_for_overlaps(u);
	checked_ranges_add(&memory[u->is_written], &u->range);
	checked_object_use(region);
	if (!u->is_written)
		u->contents = checked_contents_of(u->range.from, sge->length);
	else if (q->record->is_receive && !has_overlaps)
		u->contents = checked_contents_of(u->range.to - tail_of(u), tail_of(u));
	if (!overlaps)
		lend(u);
	q->n++;
}

/* Protocols on UD wait for the answers of their peers, and signal now and then only. */
static bool is_unsignaled_datagram(const struct hca_record *r)
{
	return r->ah && !r->is_signaled;
}

#define BYTES_NAME 48

/* "byte 7", "bytes 7 to 9". @to: behind the last one. */
static const char *name_bytes(char text[BYTES_NAME], uint32_t from, uint32_t to)
{
	if (to == from + 1)
		snprintf(text, BYTES_NAME, "byte %" PRIu32, from);
	else
		snprintf(text, BYTES_NAME, "bytes %" PRIu32 " to %" PRIu32, from, to - 1);
	return text;
}

static void compare(const struct request *q, const struct used *u)
{
	const struct hca_record *r = q->record;
	struct checked_report report = { .rule = is_unsignaled_datagram(r)
		                                         ? CHECKED_RULE_DATAGRAM_CHANGED
		                                         : CHECKED_RULE_SEND_CHANGED,
		                         .at = { { "posted", q->place }, { .is = "found" } },
		                         .record = r };
	const uint32_t bytes = (uint32_t)(u->range.to - u->range.from);
	uint32_t from = 0, to;
	char text[BYTES_NAME];

	if (!u->contents ||
	    !checked_contents_changed(u->contents, u->range.from, bytes, &from, &to))
		return;
	report.at[1].place = checked_place(NULL);
	checked_report(&report,
	               "%s of the %" PRIu32 " at 0x%" PRIx64
	               " changed after the post of the %s with wr_id %" PRIu64 " on QP 0x%06x",
	               name_bytes(text, from, to), bytes, u->range.from, checked_request_name(r),
	               r->wr_id, r->qp->qp_num);
}

static bool may_peers_write(const struct used *u)
{
	const uint64_t from = u->range.from, to = u->range.to;
	const struct checked_object *o = checked_region_first(from, to);

	while (o && !o->is_remote)
		o = checked_region_next(o, from, to);
	return o;
}

/* A receive in whose first @done bytes a message was written: the others are as they were. */
static void compare_tail(const struct request *q, const struct used *u, uint32_t done)
{
	const struct hca_record *r = q->record;
	struct checked_report report = { .rule = CHECKED_RULE_RECEIVE_CHANGED,
		                         .at = { { "posted", q->place }, { .is = "found" } },
		                         .record = r };
	const uint32_t bytes = (uint32_t)(u->range.to - u->range.from), tail = tail_of(u);
	uint32_t from = done > bytes - tail ? done - (bytes - tail) : 0, to;
	char text[BYTES_NAME];

	if (!u->contents || done >= bytes || has_overlaps ||
	    !checked_contents_changed(u->contents, u->range.to - tail, tail, &from, &to) ||
	    may_peers_write(u))
		return;
	report.at[1].place = checked_place(NULL);
	checked_report(&report,
	               "%s of the %" PRIu32 " at 0x%" PRIx64
	               " changed after the post of the receive with wr_id %" PRIu64
	               ", whose message has the first %" PRIu32,
	               name_bytes(text, bytes - tail + from, bytes - tail + to), bytes,
	               u->range.from, r->wr_id, done);
}

/* ---- completion queues ---- */

/* Looked at when another request comes or completes: one that is just being posted may be refused.
 */
static void judge_room(const struct request *q)
{
	const struct checked_report report = { .rule = CHECKED_RULE_CQ_SMALL,
		                               .at = { { "created", q->cq ? q->cq->place : 0 },
		                                       { "posted", q->place } } };

	if (q->cq && q->cq->due > q->cq->entries)
		checked_report(&report,
		               "the queue was created for %" PRIu32 " completions, and %" PRIu32
		               " requests that complete there are outstanding, such as this %s",
		               q->cq->entries, q->cq->due, checked_request_name(q->record));
}

static void expect_completion(const struct request *q)
{
	const struct hca_record *r = q->record;

	if (q->qp && !r->is_receive && r->is_signaled)
		q->qp->signaled++;
	judge_room(q);
	if (q->cq && r->is_signaled)
		q->cq->due++;
}

/* ---- receives ---- */

/* Lengths of UD messages that the program has sent, and of receives that it has posted. */
#define LENGTHS 64
static struct length {
	uint32_t bytes, place; /* bytes: 0: there is none */
} sent[LENGTHS], posted[LENGTHS];

/* Of the lengths that share an entry, the newest is known. */
static void note_length(const struct request *q)
{
	const struct hca_record *r = q->record;
	const struct length now = { r->bytes, q->place };
	const unsigned at = r->bytes / 8 % LENGTHS;
	const struct length other = r->is_receive ? sent[at] : posted[at];
	const struct checked_report report = {
		.rule = CHECKED_RULE_RECEIVE_EXACT,
		.at = { { "posted", r->is_receive ? now.place : other.place },
		        { "sent", r->is_receive ? other.place : now.place } }
	};

	if (!r->qp || r->qp->qp_type != IBV_QPT_UD || !r->bytes)
		return;
	(r->is_receive ? posted : sent)[at] = now;
	if (other.bytes == r->bytes)
		checked_report(&report, "both have %" PRIu32 " bytes: a receive needs %" PRIu32,
		               r->bytes, r->bytes + (uint32_t)sizeof(struct ibv_grh));
}

/* A completion that failed, and tells of a receive. */
static void judge_receive(const struct request *q, const struct ibv_wc *wc)
{
	const struct hca_record *r = q->record;
	struct checked_report report = { .rule = CHECKED_RULE_RECEIVE_SMALL,
		                         .at = { { "posted", q->place }, { .is = "polled" } },
		                         .record = r };

	if (!r->is_receive || wc->status != IBV_WC_LOC_LEN_ERR)
		return;
	report.at[1].place = checked_place(NULL);
	checked_report(
	        &report, "the receive with wr_id %" PRIu64 " has room for %" PRIu32 " bytes%s",
	        r->wr_id, r->bytes,
	        q->qp && r->qp->qp_type == IBV_QPT_UD ? ", of which the GRH takes the first 40"
	                                              : "");
}

/* A datagram queue has no receive posted. It is not told of messages that find none, but its port
 * counts these messages: those since the last receive was posted. @is: what the program does now.
 * How many the port has counted. */
static uint64_t judge_empty(const struct checked_object *qp, const char *is)
{
	const struct ibv_qp *of = qp->object;
	const uint64_t lost = lost_at && qp->port ? lost_at(of->context, qp->port) : 0;
	struct checked_report report = { .rule = CHECKED_RULE_RECEIVES_OUT,
		                         .at = { { "created", qp->place }, { .is = is } } };

	if (!qp->receives && qp->has_posted && lost > qp->lost && of->state != IBV_QPS_ERR) {
		report.at[1].place = checked_place(NULL);
		checked_report(&report,
		               "QP 0x%06x had none of %" PRIu32
		               " receives posted that it has room for, and its port has lost "
		               "%" PRIu64 " message%s meanwhile that met no receive",
		               qp->qpn, qp->max_recv_wr, lost - qp->lost,
		               lost - qp->lost == 1 ? "" : "s");
	}
	return lost;
}

static bool is_datagram_queue(const struct checked_object *qp)
{
	return qp && !qp->srq && ((const struct ibv_qp *)qp->object)->qp_type == IBV_QPT_UD;
}

void checked_receives_end(const struct checked_object *qp)
{
	if (is_datagram_queue(qp))
		judge_empty(qp, "destroyed");
}

static void count_receive(struct checked_object *qp)
{
	if (is_datagram_queue(qp))
		qp->lost = judge_empty(qp, "posted");
	qp->has_posted = true;
	qp->receives++;
}

/* A send that failed, as its peer had no receive. */
static void judge_peer(const struct request *q)
{
	const struct hca_record *r = q->record;
	const struct checked_object *peer = q->qp ? checked_object_of_qpn(q->qp->remote_qpn) : NULL;
	const struct checked_report report = { .rule = CHECKED_RULE_RECEIVES_OUT,
		                               .at = { { "posted", q->place },
		                                       { peer ? "peer made" : "",
		                                         peer ? peer->place : 0 } },
		                               .record = r };

	if (peer)
		checked_report(&report,
		               "its peer, QP 0x%06x, has %" PRIu32
		               " receives posted, and room for %" PRIu32,
		               q->qp->remote_qpn, peer->receives, peer->max_recv_wr);
	else
		checked_report(&report, "QP 0x%06x, the peer of QP 0x%06x, is another program's",
		               q->qp ? q->qp->remote_qpn : 0, r->qp->qp_num);
}

/* ---- from the beginning to the end ---- */

static struct checked_object *used_object(enum checked_kind kind, const void *object)
{
	return object ? checked_object_use(checked_object_find(kind, object)) : NULL;
}

void checked_requests_start(checked_lost *lost)
{
	lost_at = lost;
}

void checked_request_begin(struct hca_record *r)
{
	struct request *q = calloc(1, sizeof(*q) + r->n * sizeof(struct used));
	uint32_t before = 0;

	r->watched = q;
	if (!q)
		return;
	q->record = r;
	q->place = checked_place(r->caller);
	q->cq = used_object(CHECKED_CQ, r->cq);
	q->qp = used_object(CHECKED_QP, r->qp);
	q->handle = used_object(CHECKED_AH, r->ah);
	if (r->ah && !q->handle)
		look_for_gone(q, CHECKED_AH, (uintptr_t)r->ah);
	for (uint32_t i = 0; i < r->n && !r->is_inline; i++) {
		use(q, &r->sge[i], before);
		before += r->sge[i].length;
	}
	if (q->qp && r->is_receive)
		count_receive(q->qp);
	note_length(q);
	checked_peer_lend(&q->of_peer, r, q->qp, q->place);
	if (!r->is_receive)
		checked_tools_sends();
	expect_completion(q);
}

/* The program has the memory again, in whose first @bytes the card has written. */
static void take_back(struct request *q, uint32_t bytes)
{
	checked_tools_return(&q->of_peer, bytes);
	for (uint32_t i = 0; i < q->n; i++) {
		const uint32_t before = q->used[i].before;

		checked_tools_return(&q->used[i].lent, bytes > before ? bytes - before : 0);
	}
}

void checked_request_forget(struct hca_record *r)
{
	struct request *q = r->watched;

	if (!q)
		return;
	take_back(q, 0);
	for (uint32_t i = 0; i < q->n; i++) {
		checked_ranges_remove(&memory[q->used[i].is_written], &q->used[i].range);
		checked_object_leave(q->used[i].region);
		free(q->used[i].contents);
	}
	if (q->cq && r->is_signaled)
		q->cq->due--;
	if (q->qp && !r->is_receive && r->is_signaled)
		q->qp->signaled--;
	if (q->qp && r->is_receive)
		q->qp->receives--;
	checked_object_leave(q->cq);
	checked_object_leave(q->qp);
	checked_object_leave(q->handle);
	free(q);
}

void checked_requests_let_go(const struct ibv_qp *qp, const struct ibv_srq *srq)
{
	struct used *u = checked_tools_any() ? first_used(0, UINT64_MAX) : NULL;

	for (; u; u = next_used(u, 0, UINT64_MAX)) {
		if (u->by->record->srq ? u->by->record->srq == srq : u->by->record->qp == qp)
			checked_tools_return(&u->lent, 0);
	}
}

/* Its queue pair is in ERR, or of UD in SQE, and lets go of what is posted. */
static void fail(struct request *q, const struct ibv_wc *wc)
{
	judge_receive(q, wc);
	if (wc->status == IBV_WC_RNR_RETRY_EXC_ERR)
		judge_peer(q);
	if (!q->qp)
		return;
	if (!q->qp->is_failed)
		checked_requests_let_go(q->record->qp, NULL);
	q->qp->is_failed = true;
}

/* The first 40 bytes of a datagram have a GRH, or anything (InfiniBand volume 1, 11.4.1.2). */
static void undefine_grh(const struct request *q, const struct ibv_wc *wc)
{
	const uint32_t grh = sizeof(struct ibv_grh);

	if (!q->record->qp || q->record->qp->qp_type != IBV_QPT_UD || (wc->wc_flags & IBV_WC_GRH))
		return;
	for (uint32_t i = 0; i < q->n && q->used[i].before < grh; i++) {
		const struct used *u = &q->used[i];
		const uint64_t bytes = u->range.to - u->range.from, rest = grh - u->before;

		checked_tools_undefine(u->range.from, (uint32_t)(bytes < rest ? bytes : rest));
	}
}

/* How many bytes of its memory the card has written. ->byte_len may be those of a peer's WRITE. */
static uint32_t written(const struct hca_record *r, const struct ibv_wc *wc)
{
	if (!r->is_receive)
		return UINT32_MAX;
	return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : wc->byte_len;
}

/* Whether its queue pair still works on the request. In ERR and RESET it has let go of all, and
 * while it is being destroyed its state may be gone. */
static bool is_at_work(const struct request *q)
{
	const struct hca_record *r = q->record;

	if (r->srq) {
		const struct checked_object *srq = checked_object_find(CHECKED_SRQ, r->srq);

		return srq && srq->users;
	}
	if (q->qp && (q->qp->is_failed || q->qp->is_ending || q->qp->is_gone))
		return false;
	return r->qp->state != IBV_QPS_ERR && r->qp->state != IBV_QPS_RESET;
}

static void succeed(struct request *q, const struct ibv_wc *wc)
{
	const uint32_t done = written(q->record, wc);

	for (uint32_t i = 0; i < q->n && is_at_work(q); i++) {
		const uint32_t before = q->used[i].before;

		if (!q->record->is_receive)
			compare(q, &q->used[i]);
		else
			compare_tail(q, &q->used[i], done > before ? done - before : 0);
	}
	take_back(q, done);
	/* READs and atomic operations bring news of other threads, too */
	if (writes(q->record))
		checked_tools_received();
	if (q->record->is_receive)
		undefine_grh(q, wc);
}

void checked_request_complete(struct hca_record *r, const struct ibv_wc *wc)
{
	struct request *q = r->watched;

	if (q)
		judge_room(q);
	if (q && (!wc || wc->status == IBV_WC_SUCCESS))
		succeed(q, wc);
	else if (q)
		fail(q, wc);
	checked_request_forget(r);
}

void checked_requests_forget(void)
{
	struct used *u = first_used(0, UINT64_MAX);

	for (; u; u = next_used(u, 0, UINT64_MAX))
		checked_tools_return(&u->lent, 0);
	memory[0] = memory[1] = (struct checked_ranges){ 0 };
}

/* ---- what they use goes ---- */

/* A report of a request that loses what it uses. @how: what happens to that. */
static struct checked_report report_loss(enum checked_rule rule, const struct used *u,
                                         const char *how, const void *caller)
{
	return (struct checked_report){
		.rule = is_unsignaled_datagram(u->by->record) ? CHECKED_RULE_DATAGRAM_CHANGED
		                                              : rule,
		.at = { { "posted", u->by->place }, { how, checked_place(caller), true } },
		.record = u->by->record
	};
}

void checked_region_ends(const struct checked_object *region, const void *caller)
{
	const uint64_t from = region->start, to = region->start + region->length;
	const struct used *u = region->uses ? first_used(from, to) : NULL;
	struct checked_report report;

	while (u && (u->region != region || !is_at_work(u->by)))
		u = next_used(u, from, to);
	if (!u)
		return;
	report = report_loss(CHECKED_RULE_DEREGISTERED, u, "ended", caller);
	checked_report(&report,
	               "the region of %" PRIu64 " bytes at 0x%" PRIx64 " (lkey 0x%" PRIx32
	               ") is used by %" PRIu32
	               " range%s of requests: the first is the %s with wr_id %" PRIu64
	               "; what is %s there meets no region",
	               region->length, region->start, region->lkey, region->uses,
	               region->uses == 1 ? "" : "s", checked_request_name(report.record),
	               report.record->wr_id, done_by(report.record));
}

void checked_handle_ends(const struct checked_object *handle, const void *caller)
{
	const struct checked_report report = {
		.rule = CHECKED_RULE_AH_IN_USE,
		.at = { { "created", handle->place },
		        { "destroyed", handle->uses ? checked_place(caller) : 0, true } }
	};

	if (handle->uses)
		checked_report(&report, "%" PRIu32 " send%s by the handle %s not completed",
		               handle->uses, handle->uses == 1 ? "" : "s",
		               handle->uses == 1 ? "has" : "have");
}

void checked_memory_goes(const struct checked_move *m)
{
	const struct used *u = first_used(m->from, m->to);
	struct checked_report report;

	while (u && !is_at_work(u->by))
		u = next_used(u, m->from, m->to);
	if (!u)
		return;
	report = report_loss(CHECKED_RULE_MEMORY_GONE, u, m->how, m->caller);
	checked_report(&report,
	               "the %" PRIu64 " bytes at 0x%" PRIx64 " were %s: the %s with wr_id %" PRIu64
	               " has the %" PRIu64 " at 0x%" PRIx64 ", and is outstanding",
	               m->to - m->from, m->from, m->how, checked_request_name(report.record),
	               report.record->wr_id, u->range.to - u->range.from, u->range.from);
}
