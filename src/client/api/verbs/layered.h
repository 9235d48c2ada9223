/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The layer's knowledge of a context, and the watchers that it tells (layer.h).
 */
#ifndef API_VERBS_LAYERED_H
#define API_VERBS_LAYERED_H

#include <pthread.h>

#include "base/hash.h"
#include "checked/watcher.h"
#include "hca/queue/cq.h"
#include "hca/queue/qp.h"

/* A queue pair of such a context. */
struct verbs_layer_qp {
	struct base_hash_node node; /* by number */
	struct hca_qp *qp;
	/* requests are carried out as they are recorded; a program that has the send lock, since
	 * ibv_wr_start(), may post receives */
	pthread_mutex_t posting, posting_receives;
	int (*wr_complete)(struct ibv_qp_ex *ex); /* its own */
	struct hca_record_queue sends, receives;
	/* faults.c */
	bool failed;         /* a completion of it was made an error: later ones are flushed */
	struct hca_qp maker; /* whose completions are made up: it has the number, and its send queue
	                        is nobody's */
};

/* A shared receive queue of such a context. */
struct verbs_layer_srq {
	struct base_hash_node node; /* by address */
	struct ibv_srq *srq;
	pthread_mutex_t posting;
	struct hca_record_queue receives;
};

#define VERBS_LAYER_ENDED 64

struct verbs_layer {
	pthread_mutex_t lock;
	/* completion queues that were destroyed last, in a circle, if there is a watcher: a program
	 * may poll one */
	struct hca_cq *ended[VERBS_LAYER_ENDED];
	unsigned n_ended;
	struct base_hash qps, srqs;
	bool meets_faults;
	const struct checked_watcher *watcher; /* or NULL */
	/* what extended completion queues have of their own: all the same. Set with the first one
	 */
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
};

/* The watcher of the context; NULL: it has none. */
static inline const struct checked_watcher *verbs_watcher(struct ibv_context *context)
{
	const struct verbs_layer *l = hca_context(context)->layer;

	return base_unlikely(l) ? l->watcher : NULL;
}

/* membership.c: a watcher's questions. */
checked_ask verbs_ask_membership;
checked_lost verbs_lost_messages;

/* Where the program has called the function in which this stands. */
#define VERBS_CALLER __builtin_return_address(0)

/* For a call that destroys an object: tells the watcher before, and after with the result, 0 or
 * -errno or an errno. */
#define VERBS_DESTROY(context, kind, object, call)                                      \
	({                                                                              \
		const struct checked_watcher *w_ = verbs_watcher(context);              \
		int ret_;                                                               \
		if (w_)                                                                 \
			w_->destroying(CHECKED_##kind, object, VERBS_CALLER);           \
		ret_ = (call);                                                          \
		if (w_)                                                                 \
			w_->destroyed(CHECKED_##kind, object, ret_ < 0 ? -ret_ : ret_); \
		ret_;                                                                   \
	})

#endif
