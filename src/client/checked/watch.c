/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The watcher of a checked program (watcher.h): takes the lock of the checker, and passes on what
 * libibverbs tells. Rules about queues and whole objects are checked here.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/util.h"
#include "checked/contents.h"
#include "checked/gone.h"
#include "checked/groups.h"
#include "checked/locked.h"
#include "checked/moves.h"
#include "checked/needs.h"
#include "checked/objects.h"
#include "checked/places.h"
#include "checked/report.h"
#include "checked/requests.h"
#include "checked/settings.h"
#include "checked/tools.h"

static checked_ask *ask;
static bool sees_moves;

static void begin(checked_ask *how, checked_lost *lost)
{
	ask = how;
	sees_moves = checked_sees_moves();
	checked_report_process();
	checked_requests_start(lost);
}

/* ---- requests ---- */

static bool is_to_group(const struct hca_record *r, struct checked_question *q)
{
	LOCKED;

	if (!checked_group_of_send(r, q))
		return false;
	checked_group_is_known(q);
	return true;
}

static void sending(const struct hca_record *r)
{
	struct checked_question q;

	if (!is_to_group(r, &q))
		return;
	if (!q.is_answered)
		q.is_answered = ask(&q.of, q.mlid, q.pkey_index, &q.m);

	LOCKED;

	checked_group_sent(r, &q);
}

/* Of an object of a thread domain: the call that begins meets no other one. */
static void enter(struct checked_object *o)
{
	const bool is_shared = o->polls && !pthread_equal(o->poller, pthread_self());
	struct checked_report report = { .rule = CHECKED_RULE_DOMAIN_SHARED,
		                         .at = { { "created", o->place }, { .is = "used" } } };

	if (is_shared && o->is_single_threaded)
		report.rule = CHECKED_RULE_CQ_THREADS;
	if (is_shared) {
		report.at[1].place = checked_place(NULL);
		checked_report(&report, "another thread is in a call that uses the %s",
		               checked_kind_name(o->kind));
	}
	o->polls++;
	o->poller = pthread_self();
}

static void entering(enum checked_kind kind, const void *object)
{
	LOCKED;
	struct checked_object *o = checked_object_find(kind, object);

	if (o && (o->is_single_threaded || o->is_in_thread_domain))
		enter(o);
}

static void leaving(enum checked_kind kind, const void *object)
{
	LOCKED;
	struct checked_object *o = checked_object_find(kind, object);

	if (o && o->polls)
		o->polls--;
}

static void posting(struct hca_record *r)
{
	LOCKED;

	checked_needs_request(r);
	checked_request_begin(r);
}

static void ended(struct hca_record *r, const struct ibv_wc *wc)
{
	LOCKED;

	checked_request_complete(r, wc);
}

static void dropped(struct hca_record *r)
{
	LOCKED;

	checked_request_forget(r);
}

/* Without the lock, as other threads may carry out requests meanwhile. */
static void carrying(bool begins)
{
	checked_tools_carry(begins);
}

/* ---- completion queues ---- */

static void resized(struct ibv_cq *cq, uint32_t entries)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_CQ, cq);

	if (o && o->entries != UINT32_MAX)
		o->entries = entries;
}

/* A report of an object that goes. */
static struct checked_report report_end(enum checked_rule rule, const struct checked_object *o,
                                        const void *caller)
{
	return (struct checked_report){ .rule = rule,
		                        .at = { { "created", o->place },
		                                { "destroyed", checked_place(caller), true } } };
}

/* ---- queue pairs ---- */

static void queue_pair_ends(const struct checked_object *o, const void *caller)
{
	const struct ibv_qp *qp = o->object;
	struct checked_report report;

	if (!o->signaled || o->is_failed || qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
		return;
	report = report_end(CHECKED_RULE_QP_BUSY, o, caller);
	checked_report(&report, "QP 0x%06x has %" PRIu32 " send%s whose completion was not polled",
	               qp->qp_num, o->signaled, o->signaled == 1 ? "" : "s");
}

static void modified(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_QP, qp);

	checked_needs_modified(qp, o ? o->port : 0, attr, mask);
	if (!o)
		return;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		o->is_failed = o->has_posted = false;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		checked_requests_let_go(qp, NULL);
	if ((mask & IBV_QP_PORT) && attr->port_num > 1 && attr->port_num != o->port)
		checked_groups_moved(qp);
	if (mask & IBV_QP_PORT)
		o->port = attr->port_num;
	if (mask & IBV_QP_PKEY_INDEX)
		o->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_QKEY)
		o->qkey = attr->qkey;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		o->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_DEST_QPN) {
		o->remote_qpn = attr->dest_qp_num;
		o->peer = PEER_UNKNOWN;
	}
}

/* A queue pair comes, or goes, that takes its receives from a shared queue. */
static void count_user(const struct checked_object *qp, int change)
{
	struct checked_object *srq = qp->kind == CHECKED_QP && qp->srq
	                                     ? checked_object_find(CHECKED_SRQ, qp->srq)
	                                     : NULL;

	if (!srq)
		return;
	srq->users += (uint32_t)change;
	if (!srq->users)
		checked_requests_let_go(NULL, srq->object);
}

/* ---- objects ---- */

/* As a request names it. */
static uint64_t name_of(enum checked_kind kind, const void *object)
{
	return kind == CHECKED_MR ? ((const struct ibv_mr *)object)->lkey : (uintptr_t)object;
}

static void forget(struct checked_object *o)
{
	count_user(o, -1);
	checked_gone_add(o->kind, o->kind == CHECKED_MR ? o->lkey : (uintptr_t)o->object, o->place,
	                 o->ends);
	checked_object_remove(o);
}

/* Another thread may be about to say that the object was destroyed that has had the place before.
 */
static void made(enum checked_kind kind, void *object, const struct checked_made *how)
{
	struct checked_object *o;

	if (kind == CHECKED_CONTEXT)
		checked_tools_library((const void *)(uintptr_t)how->context->ops.post_send);

	LOCKED;

	o = checked_object_find(kind, object);

	if (o)
		forget(o);
	o = checked_object_add(kind, object, how);
	checked_needs_object(kind, how);

	if (o)
		count_user(o, 1);
	checked_gone_back(kind, name_of(kind, object));
	if (kind == CHECKED_MR && !sees_moves)
		checked_say("memory that is unmapped, moved or freed: " CHECKED_LIBRARY
		            " is not preloaded, or a sanitizer stands before it");
}

static bool next_group(const struct ibv_context *context, struct checked_question *q)
{
	LOCKED;

	return checked_group_next(context, q);
}

/* NULL: of all contexts. */
static void groups_end(const struct ibv_context *context)
{
	struct checked_question q;

	while (next_group(context, &q)) {
		q.is_answered = ask(&q.of, q.mlid, q.pkey_index, &q.m);

		LOCKED;

		checked_group_ends(&q);
	}
}

static void destroying(enum checked_kind kind, void *object, const void *caller)
{
	struct checked_object *o;

	if (kind == CHECKED_CONTEXT)
		groups_end(object);

	LOCKED;

	o = checked_object_find(kind, object);
	if (!o)
		return;
	o->ends = caller;
	o->is_ending = true;
	switch (kind) {
	case CHECKED_MR:
		checked_region_ends(o, caller);
		break;
	case CHECKED_AH:
		checked_handle_ends(o, caller);
		break;
	case CHECKED_QP:
		queue_pair_ends(o, caller);
		checked_receives_end(o);
		break;
	default:
		break;
	}
}

/* Writes the users that an object still has, in words. *@place: where one of them was made. */
static void list_users(const struct checked_object *o, char *text, size_t bytes, uint32_t *place)
{
	size_t n = 0;
	uint32_t count = o->kind == CHECKED_QP ? checked_groups_of(o->object, place) : 0;

	*text = 0;
	if (count)
		snprintf(text, bytes, "it is attached to %" PRIu32 " group%s", count,
		         count == 1 ? "" : "s");
	for (unsigned kind = 0; kind < CHECKED_N_KINDS; kind++) {
		count = checked_objects_on((enum checked_kind)kind, o->object, place);
		if (count && n < bytes)
			n += (size_t)snprintf(text + n, bytes - n, "%s%" PRIu32 " %s%s",
			                      n ? ", " : "there is still ", count,
			                      checked_kind_name((enum checked_kind)kind),
			                      count == 1 ? "" : "s");
	}
}

static void refused_as_used(const struct checked_object *o)
{
	struct checked_report report = { .rule = CHECKED_RULE_DESTROY_ORDER,
		                         .at = { { .is = "" },
		                                 { "destroyed", checked_place(NULL) } } };
	char text[256];

	if (checked_report_is_old(&report))
		return;
	list_users(o, text, sizeof(text), &report.at[0].place);
	if (report.at[0].place)
		report.at[0].is = "left";
	checked_report(&report, "the %s was not destroyed (EBUSY): %s", checked_kind_name(o->kind),
	               *text ? text : "something uses it");
}

static void destroyed(enum checked_kind kind, void *object, int error)
{
	LOCKED;
	struct checked_object *o = checked_object_find(kind, object);

	if (!o || !o->is_ending)
		return;
	o->is_ending = false;
	if (error == EBUSY)
		refused_as_used(o);
	if (!error)
		forget(o);
}

static void used_ended(enum checked_kind kind, void *object, const void *caller)
{
	LOCKED;
	const struct checked_gone *gone = checked_gone_find(kind, (uintptr_t)object);
	const struct checked_report report = { .rule = CHECKED_RULE_CQ_GONE,
		                               .at = { { "destroyed", gone ? gone->end : 0 },
		                                       { "used", checked_place(caller), true } } };

	checked_report(&report, "the %s at %p was destroyed before", checked_kind_name(kind),
	               object);
}

static void registering_anew(struct ibv_mr *mr, const void *caller)
{
	destroying(CHECKED_MR, mr, caller);
}

static void registered_anew(struct ibv_mr *mr, const struct checked_made *how)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_MR, mr);

	if (!o)
		return;
	o->is_ending = false;
	if (o->lkey != mr->lkey)
		checked_gone_add(CHECKED_MR, o->lkey, o->place, how->caller);
	checked_gone_back(CHECKED_MR, mr->lkey);
	checked_region_change(o, mr, how);
}

/* ---- groups ---- */

static bool is_attachment(const struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid,
                          struct checked_question *q)
{
	LOCKED;

	return checked_group_of_attached(qp, gid, lid, q);
}

static void attached(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid, int error)
{
	struct checked_question q;

	if (error || !is_attachment(qp, gid, lid, &q))
		return;
	q.is_answered = ask(&q.of, q.mlid, q.pkey_index, &q.m);

	LOCKED;

	checked_group_attached(qp, &q);
}

static void detached(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid, int error)
{
	struct checked_question q;

	if (error || !is_attachment(qp, gid, lid, &q))
		return;
	q.is_answered = ask(&q.of, q.mlid, q.pkey_index, &q.m);

	LOCKED;

	checked_group_detached(qp, &q);
}

static void joined(const struct checked_group_key *of, bool sends_only)
{
	LOCKED;

	checked_group_joined(of, sends_only);
}

static void left(const struct checked_group_key *of)
{
	LOCKED;

	checked_group_left(of);
}

/* ---- asynchronous events ---- */

static void async_event(void)
{
	LOCKED;

	checked_groups_changed();
}

/* ---- what libibverbs finds by itself ---- */

static void hear_in_vain(const struct ibv_cq *cq, const char *text)
{
	LOCKED;
	const struct checked_object *o = cq ? checked_object_find(CHECKED_CQ, cq) : NULL;
	const struct checked_report report = { .rule = CHECKED_RULE_IN_VAIN,
		                               .at = { { o ? "created" : "", o ? o->place : 0 },
		                                       { "waits", checked_place(NULL), true } } };

	checked_report(&report, "%s", text);
}

static void hear_never_signaled(const char *text)
{
	LOCKED;
	const struct checked_report report = { .rule = CHECKED_RULE_UNSIGNALED,
		                               .at = { { "posted", checked_place(NULL), true },
		                                       { .is = "" } } };

	checked_report(&report, "%s", text);
}

/* The call that destroys the object waits. */
static void report_kept(enum checked_rule rule, const void *object, const char *text)
{
	static const enum checked_kind kinds[] = { CHECKED_CQ, CHECKED_QP, CHECKED_SRQ };
	const struct checked_object *o = NULL;
	struct checked_report report;

	for (unsigned i = 0; !o && i < ARRAY_SIZE(kinds); i++)
		o = checked_object_find(kinds[i], object);
	if (!o)
		return;
	report = report_end(rule, o, o->ends);
	checked_report(&report, "%s", text);
}

static void hear_events_kept(const void *object, const char *text)
{
	LOCKED;

	report_kept(CHECKED_RULE_CQ_EVENTS, object, text);
}

static void hear_async_events_kept(const void *object, const char *text)
{
	LOCKED;

	report_kept(CHECKED_RULE_ASYNC_EVENTS, object, text);
}

/* ---- what it needs ---- */

static void needs(enum checked_need need, uint64_t n)
{
	LOCKED;

	checked_needs(need, n);
}

static void look_at_gids(void)
{
	LOCKED;

	checked_looked_at_gids();
}

static void look_at_ports(void)
{
	LOCKED;

	checked_looked_at_ports();
}

/* ---- the process ---- */

static void fork_is_safe(void)
{
	LOCKED;

	checked_fork_is_safe();
}

/* Not if a handler of a signal forks, which has interrupted the thread with the lock. */
static __thread bool has_locked __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
	has_locked = !checked_is_inside();
	if (!has_locked)
		return;
	checked_lock();
	checked_forks();
}

static void in_parent(void)
{
	if (has_locked)
		checked_unlock();
}

static void in_child(void)
{
	checked_contents_start();
	checked_groups_forget();
	checked_objects_forget();
	checked_requests_forget();
	checked_reports_forget();
	in_parent();
}

static __attribute__((constructor)) void start(void)
{
	checked_contents_start();
	checked_places_start();
	checked_report_start();
	checked_needs_start();
	checked_tools_start();
	pthread_atfork(before_fork, in_parent, in_child);
}

static bool is_told(void)
{
	LOCKED;

	return checked_report_is_told();
}

/* Another thread's report is on its way: the process stays that long. */
static void wait_for_reports(void)
{
	for (unsigned i = 0; i < 2000 && is_told(); i++)
		usleep(1000);
}

/* Contexts are left to the end by nearly all programs, and no library leaks by them. */
static __attribute__((destructor)) void end(void)
{
	struct checked_report report = { .rule = CHECKED_RULE_LEFT };
	char text[256] = "";
	size_t n = 0;

	/* a handler of a signal calls exit() */
	if (checked_is_inside() || checked_place_is_interrupted())
		return;
	wait_for_reports();
	groups_end(NULL);

	LOCKED;

	for (unsigned kind = CHECKED_PD; kind < CHECKED_N_KINDS; kind++) {
		uint32_t place = 0, left = checked_objects_left((enum checked_kind)kind, &place);

		if (!left)
			continue;
		n += (size_t)snprintf(
		        text + n, sizeof(text) - n, "%s%" PRIu32 " %s%s", n ? ", " : "", left,
		        checked_kind_name((enum checked_kind)kind), left == 1 ? "" : "s");
		report.at[0].is = "created";
		report.at[0].place = place;
	}
	report.at[1].is = "";
	if (n)
		checked_report(&report, "%s: one of the last named was made here", text);
}

const struct checked_watcher umbel_checked_watcher = {
	.version = CHECKED_VERSION,
	.hearer = { .in_vain = hear_in_vain,
	            .events_kept = hear_events_kept,
	            .async_events_kept = hear_async_events_kept,
	            .never_signaled = hear_never_signaled },
	.begin = begin,
	.sending = sending,
	.entering = entering,
	.leaving = leaving,
	.posting = posting,
	.ended = ended,
	.dropped = dropped,
	.carrying = carrying,
	.resized = resized,
	.made = made,
	.destroying = destroying,
	.destroyed = destroyed,
	.used_ended = used_ended,
	.registering_anew = registering_anew,
	.registered_anew = registered_anew,
	.modified = modified,
	.attached = attached,
	.detached = detached,
	.joined = joined,
	.left = left,
	.needs = needs,
	.looked_at_gids = look_at_gids,
	.looked_at_ports = look_at_ports,
	.async_event = async_event,
	.fork_is_safe = fork_is_safe,
};
