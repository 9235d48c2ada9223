/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The watcher of a checked program (watcher.h): takes the lock of the checker, and passes on what
 * libibverbs tells. What is about queues and objects as a whole is checked here.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "checked/contents.h"
#include "checked/objects.h"
#include "checked/places.h"
#include "checked/report.h"
#include "checked/requests.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Holds the lock until the block ends. */
static void unlock(pthread_mutex_t **l)
{
	pthread_mutex_unlock(*l);
}

static pthread_mutex_t *lock_it(void)
{
	pthread_mutex_lock(&lock);
	return &lock;
}

#define LOCKED __attribute__((cleanup(unlock), unused)) pthread_mutex_t *held_ = lock_it()

/* ---- requests ---- */

static void posting(struct hca_record *r)
{
	LOCKED;

	checked_request_begin(r);
}

static void refused(struct hca_record *r, int error)
{
	LOCKED;

	(void)error;
	checked_request_forget(r);
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

static void full(struct hca_record *r, uint32_t n, uint32_t room)
{
	LOCKED;

	checked_request_full(r, n, room);
}

/* ---- completion queues ---- */

static void polling(struct ibv_cq *cq, const void *caller)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_CQ, cq);
	struct checked_report report = { .rule = CHECKED_RULE_CQ_THREADS };

	if (!o)
		return;
	if (o->is_single_threaded && o->polls && !pthread_equal(o->poller, pthread_self())) {
		report.at[0].is = "created";
		report.at[0].place = o->place;
		report.at[1].is = "polled";
		report.at[1].place = checked_place(caller);
		checked_report(&report, "another thread is in a poll of the queue");
	}
	o->polls++;
	o->poller = pthread_self();
}

static void polled(struct ibv_cq *cq, int n)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_CQ, cq);

	(void)n;
	if (o && o->polls)
		o->polls--;
}

static void armed(struct ibv_cq *cq)
{
	(void)cq;
}

static void event(struct ibv_cq *cq)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_CQ, cq);

	if (o)
		o->events++;
}

static void acknowledged(struct ibv_cq *cq, unsigned n)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_CQ, cq);

	if (o)
		o->acknowledged += n;
}

static void queue_ends(const struct checked_object *o, const void *caller)
{
	const struct checked_report report = { .rule = CHECKED_RULE_CQ_EVENTS,
		                               .at = { { "created", o->place },
		                                       { "destroyed", checked_place(caller) } } };

	if (o->events != o->acknowledged)
		checked_report(&report,
		               "%" PRIu32 " events were read, and %" PRIu32 " of them acknowledged",
		               o->events, o->acknowledged);
}

/* ---- queue pairs ---- */

static void queue_pair_ends(const struct checked_object *o, const void *caller)
{
	const struct ibv_qp *qp = o->object;
	const struct checked_report report = { .rule = CHECKED_RULE_QP_BUSY,
		                               .at = { { "created", o->place },
		                                       { "destroyed", checked_place(caller) } } };

	if (o->signaled && !o->is_failed && qp->state != IBV_QPS_ERR && qp->state != IBV_QPS_RESET)
		checked_report(&report,
		               "QP 0x%06x has %" PRIu32
		               " sends whose completion was not polled, in state %d",
		               qp->qp_num, o->signaled, qp->state);
}

static void modified(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_QP, qp);

	if (o && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		o->is_failed = false;
}

/* A queue pair comes, or goes, that takes its receives from a shared queue. */
static void count_user(const struct checked_object *qp, int change)
{
	struct checked_object *srq = qp->kind == CHECKED_QP && qp->srq
	                                     ? checked_object_find(CHECKED_SRQ, qp->srq)
	                                     : NULL;

	if (srq)
		srq->users += (uint32_t)change;
}

/* ---- objects ---- */

static void made(enum checked_kind kind, void *object, const struct checked_made *how)
{
	LOCKED;
	struct checked_object *o = checked_object_add(kind, object, how);

	if (o)
		count_user(o, 1);
}

static void destroying(enum checked_kind kind, void *object, const void *caller)
{
	LOCKED;
	const struct checked_object *o = checked_object_find(kind, object);

	if (!o)
		return;
	switch (kind) {
	case CHECKED_MR:
		checked_region_ends(o, caller);
		break;
	case CHECKED_AH:
		checked_handle_ends(o, caller);
		break;
	case CHECKED_CQ:
		queue_ends(o, caller);
		break;
	case CHECKED_QP:
		queue_pair_ends(o, caller);
		break;
	default:
		break;
	}
}

static void destroyed(enum checked_kind kind, void *object, int error)
{
	LOCKED;
	struct checked_object *o = checked_object_find(kind, object);

	if (!o || error)
		return;
	count_user(o, -1);
	checked_object_remove(o);
}

static void registering_anew(struct ibv_mr *mr, const void *caller)
{
	destroying(CHECKED_MR, mr, caller);
}

static void registered_anew(struct ibv_mr *mr, const struct checked_made *how)
{
	LOCKED;
	struct checked_object *o = checked_object_find(CHECKED_MR, mr);

	if (o)
		checked_region_change(o, mr, how->iova);
}

/* ---- groups ---- */

static void attached(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid, int error,
                     const void *caller)
{
	(void)qp;
	(void)gid;
	(void)lid;
	(void)error;
	(void)caller;
}

/* ---- the process ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	checked_contents_start();
	checked_objects_forget();
	checked_requests_forget();
	pthread_mutex_unlock(&lock);
}

static __attribute__((constructor)) void start(void)
{
	checked_contents_start();
	checked_places_start();
	checked_report_start();
	pthread_atfork(before_fork, in_parent, in_child);
}

/* Contexts are left to the end by nearly all programs, and no library leaks by them. */
static __attribute__((destructor)) void end(void)
{
	struct checked_report report = { .rule = CHECKED_RULE_LEFT };
	char text[256] = "";
	size_t n = 0;
	LOCKED;

	for (unsigned kind = CHECKED_PD; kind < CHECKED_N_KINDS; kind++) {
		uint32_t place = 0, left = checked_objects_left((enum checked_kind)kind, &place);

		if (!left)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%" PRIu32 " of kind %s",
		                      n ? ", " : "", left,
		                      checked_kind_name((enum checked_kind)kind));
		report.at[0].is = "created";
		report.at[0].place = place;
	}
	report.at[1].is = "";
	if (n)
		checked_report(&report, "%s; one of the last kind was made here", text);
}

const struct checked_watcher umbel_checked_watcher = {
	.version = CHECKED_VERSION,
	.posting = posting,
	.refused = refused,
	.ended = ended,
	.dropped = dropped,
	.full = full,
	.polling = polling,
	.polled = polled,
	.armed = armed,
	.event = event,
	.acknowledged = acknowledged,
	.made = made,
	.destroying = destroying,
	.destroyed = destroyed,
	.registering_anew = registering_anew,
	.registered_anew = registered_anew,
	.modified = modified,
	.attached = attached,
	.detached = attached,
};
