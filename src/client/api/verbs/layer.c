/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The layer around the calls of chosen contexts: see layer.h.
 */
#define _GNU_SOURCE /* dladdr() */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/verbs/faults.h"
#include "api/verbs/layer.h"
#include "api/verbs/records.h"
#include "api/verbs/verbs.h"
#include "base/reason.h"
#include "base/util.h"
#include "checked/settings.h"
#include "hca/queue/srq.h"

/* With the lock held. NULL: it is none of the context's, or has gone. */
static struct verbs_layer_qp *find(const struct verbs_layer *l, uint32_t qpn)
{
	struct base_hash_node *node = base_hash_first(&l->qps, qpn);

	while (node &&
	       container_of(node, struct verbs_layer_qp, node)->qp->ex.qp_base.qp_num != qpn)
		node = base_hash_next(node);
	return node ? container_of(node, struct verbs_layer_qp, node) : NULL;
}

static struct verbs_layer_srq *find_srq(const struct verbs_layer *l, const struct ibv_srq *srq)
{
	struct base_hash_node *node = base_hash_first(&l->srqs, (uintptr_t)srq);

	while (node && container_of(node, struct verbs_layer_srq, node)->srq != srq)
		node = base_hash_next(node);
	return node ? container_of(node, struct verbs_layer_srq, node) : NULL;
}

static struct verbs_layer_qp *look_up(struct verbs_layer *l, uint32_t qpn)
{
	struct verbs_layer_qp *q;

	pthread_mutex_lock(&l->lock);
	q = find(l, qpn);
	pthread_mutex_unlock(&l->lock);
	return q;
}

static void carry(struct verbs_layer *l, bool begins)
{
	if (l->watcher)
		l->watcher->carrying(begins);
}

/* A call of the context's own, in which requests may be carried out. */
#define CARRIED(l, call)           \
	({                         \
		int carried_;      \
                                   \
		carry(l, true);    \
		carried_ = (call); \
		carry(l, false);   \
		carried_;          \
	})

/* ---- posting ---- */

static void begin(struct verbs_layer *l, struct hca_record_queue *queue, struct hca_record *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&l->lock);
	verbs_record_begin(l, queue, r);
	pthread_mutex_unlock(&l->lock);
}

static void posted(struct verbs_layer *l, struct hca_record_queue *queue, struct hca_record *r,
                   int error)
{
	if (!r)
		return;
	pthread_mutex_lock(&l->lock);
	verbs_record_posted(l, queue, r, error);
	pthread_mutex_unlock(&l->lock);
}

static void about_to_send(struct verbs_layer *l, const struct hca_record *r)
{
	if (r && r->ah && ((const struct hca_ah *)r->ah)->is_mcast)
		l->watcher->sending(r);
}

/* A call that posts to the queue pair begins, or ends. The program has said which threads use those
 * of a parent domain. */
static void enter(struct verbs_layer *l, struct ibv_qp *qp)
{
	if (l->watcher && hca_pd_is_parent(qp->pd))
		l->watcher->entering(CHECKED_QP, qp);
}

static void leave(struct verbs_layer *l, struct ibv_qp *qp)
{
	if (l->watcher && hca_pd_is_parent(qp->pd))
		l->watcher->leaving(CHECKED_QP, qp);
}

static int send_one(struct verbs_layer *l, struct verbs_layer_qp *q, struct ibv_send_wr *wr,
                    const void *caller)
{
	struct ibv_send_wr one = *wr, *failed;
	struct hca_record *r = NULL;
	int ret;

	one.next = NULL;
	ret = verbs_faults_meet(q->qp->ctx, CONTROL_CALL_POST, q->qp->ex.qp_base.qp_num);
	if (ret)
		return verbs_error("ibv_post_send", ret);
	if (l->watcher)
		r = verbs_record_send(q->qp, &one, caller);
	about_to_send(l, r);
	pthread_mutex_lock(&q->posting);
	begin(l, &q->sends, r);
	ret = CARRIED(l, verbs_post_send(&q->qp->ex.qp_base, &one, &failed));
	posted(l, &q->sends, r, ret);
	pthread_mutex_unlock(&q->posting);
	return ret;
}

/* One by one: a rule may refuse any request of a list. */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct verbs_layer *l = hca_context(qp->context)->layer;
	struct verbs_layer_qp *q = look_up(l, qp->qp_num);
	int ret = 0;

	if (!q)
		return verbs_post_send(qp, wr, bad);
	enter(l, qp);
	for (; wr && !ret; wr = wr->next) {
		ret = send_one(l, q, wr, VERBS_CALLER);
		if (ret)
			*bad = wr;
	}
	leave(l, qp);
	return ret;
}

/* Where receives are posted to: a queue pair or a shared receive queue. The other one is NULL. */
struct target {
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct hca_record_queue *queue;
	pthread_mutex_t *posting;
};

static int receive_one(struct verbs_layer *l, const struct target *t, struct ibv_recv_wr *wr,
                       const void *caller)
{
	struct ibv_context *context = t->qp ? t->qp->context : t->srq->context;
	struct ibv_recv_wr one = *wr, *failed;
	struct hca_record *r = NULL;
	int ret;

	one.next = NULL;
	ret = verbs_faults_meet(hca_context(context), CONTROL_CALL_RECEIVE,
	                        t->qp ? t->qp->qp_num : 0);
	if (ret)
		return verbs_error(t->qp ? "ibv_post_recv" : "ibv_post_srq_recv", ret);
	/* completions of XRC name targets, which have no layer: nobody would see the record's end
	 */
	if (l->watcher && (t->qp || !hca_srq(t->srq)->xrc))
		r = verbs_record_receive(t->qp, t->srq, &one, caller);
	pthread_mutex_lock(t->posting);
	begin(l, t->queue, r);
	ret = CARRIED(l, t->qp ? verbs_post_recv(t->qp, &one, &failed)
	                       : verbs_post_srq_recv(t->srq, &one, &failed));
	posted(l, t->queue, r, ret);
	pthread_mutex_unlock(t->posting);
	return ret;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct verbs_layer *l = hca_context(qp->context)->layer;
	struct verbs_layer_qp *q = look_up(l, qp->qp_num);
	int ret = 0;

	if (!q)
		return verbs_post_recv(qp, wr, bad);
	enter(l, qp);
	for (; wr && !ret; wr = wr->next) {
		ret = receive_one(l,
		                  &(struct target){ qp, NULL, &q->receives, &q->posting_receives },
		                  wr, VERBS_CALLER);
		if (ret)
			*bad = wr;
	}
	leave(l, qp);
	return ret;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct verbs_layer *l = hca_context(srq->context)->layer;
	struct verbs_layer_srq *s;
	int ret = 0;

	pthread_mutex_lock(&l->lock);
	s = find_srq(l, srq);
	pthread_mutex_unlock(&l->lock);
	if (!s)
		return verbs_post_srq_recv(srq, wr, bad);
	for (; wr && !ret; wr = wr->next) {
		ret = receive_one(l, &(struct target){ NULL, srq, &s->receives, &s->posting }, wr,
		                  VERBS_CALLER);
		if (ret)
			*bad = wr;
	}
	return ret;
}

/* The thread has the send lock since ibv_wr_start(): no other one posts meanwhile. */
static int complete_list(struct verbs_layer *l, struct verbs_layer_qp *q, const void *caller)
{
	const struct ibv_send_wr *wr;
	uint32_t n = 0, kept = 0;
	struct hca_record **r;
	int ret;

	wr = l->watcher ? hca_wr_list(q->qp, &n) : NULL;
	r = n ? calloc(n, sizeof(struct hca_record *)) : NULL;
	for (uint32_t i = 0; r && i < n; i++) {
		r[kept] = verbs_record_send(q->qp, &wr[i], caller);
		about_to_send(l, r[kept]);
		begin(l, &q->sends, r[kept]);
		kept += r[kept] != NULL;
	}
	ret = CARRIED(l, q->wr_complete(&q->qp->ex));
	while (kept)
		posted(l, &q->sends, r[--kept], ret);
	free(r);
	return ret;
}

/* All requests since ibv_wr_start() count as one request for rules of faults. */
static int wr_complete(struct ibv_qp_ex *ex)
{
	struct hca_context *ctx = hca_context(ex->qp_base.context);
	int ret = verbs_faults_meet(ctx, CONTROL_CALL_POST, ex->qp_base.qp_num);

	if (ret) {
		ret = verbs_error("ibv_wr_complete", ret);
		ex->wr_abort(ex);
		return ret;
	}
	enter(ctx->layer, &ex->qp_base);
	ret = complete_list(ctx->layer, look_up(ctx->layer, ex->qp_base.qp_num), VERBS_CALLER);
	leave(ctx->layer, &ex->qp_base);
	return ret;
}

/* ---- completions ---- */

static void record_completion(struct verbs_layer *l, struct verbs_layer_qp *q,
                              const struct ibv_wc *wc)
{
	struct verbs_layer_srq *s;

	if (!(wc->opcode & IBV_WC_RECV)) {
		verbs_record_end(l, &q->sends, wc);
		return;
	}
	s = q->qp->ex.qp_base.srq ? find_srq(l, q->qp->ex.qp_base.srq) : NULL;
	verbs_record_end(l, s ? &s->receives : &q->receives, wc);
}

/* A completion was polled. No rule and no watcher sees one that is made up. */
static void meet(struct hca_cq *cq, struct ibv_wc *wc)
{
	struct verbs_layer *l = cq->ctx->layer;
	struct verbs_layer_qp *q;

	if (wc->opcode & HCA_CQE_MADE) {
		wc->opcode = (enum ibv_wc_opcode)(wc->opcode & ~HCA_CQE_MADE);
		return;
	}
	pthread_mutex_lock(&l->lock);
	q = find(l, wc->qp_num);
	if (q && l->meets_faults && wc->status == IBV_WC_SUCCESS)
		verbs_faults_complete(cq, q, wc);
	if (q && l->watcher)
		record_completion(l, q, wc);
	pthread_mutex_unlock(&l->lock);
}

/* The watcher of polls: of queues whose program has said which threads use them. */
static const struct checked_watcher *watcher_of_polls(const struct hca_cq *cq)
{
	return cq->single_threaded || cq->parent_domain ? cq->ctx->layer->watcher : NULL;
}

/* It was destroyed: the watcher is told. */
static bool is_ended(struct hca_cq *cq, const void *caller)
{
	if (base_unlikely(cq->ended))
		cq->ctx->layer->watcher->used_ended(CHECKED_CQ, cq, caller);
	return cq->ended;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	const struct checked_watcher *w = watcher_of_polls(hca_cq(cq));

	if (is_ended(hca_cq(cq), VERBS_CALLER))
		return -1;
	if (w)
		w->entering(CHECKED_CQ, cq);
	n = CARRIED(hca_context(cq->context)->layer, verbs_poll_cq(cq, n, wc));
	for (int i = 0; i < n; i++)
		meet(hca_cq(cq), &wc[i]);
	if (w)
		w->leaving(CHECKED_CQ, cq);
	return n;
}

static int polled(struct ibv_cq_ex *ex, int ret)
{
	struct hca_cq *cq = (struct hca_cq *)ex;

	if (!ret) {
		meet(cq, &cq->wc);
		ex->status = cq->wc.status;
	}
	if (watcher_of_polls(cq))
		watcher_of_polls(cq)->leaving(CHECKED_CQ, cq);
	return ret;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	const struct checked_watcher *w = watcher_of_polls((struct hca_cq *)cq);
	struct verbs_layer *l = hca_context(cq->context)->layer;

	if (is_ended((struct hca_cq *)cq, VERBS_CALLER))
		return EINVAL;
	if (w)
		w->entering(CHECKED_CQ, cq);
	return polled(cq, CARRIED(l, l->start_poll(cq, attr)));
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct verbs_layer *l = hca_context(cq->context)->layer;

	return polled(cq, CARRIED(l, l->next_poll(cq)));
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	if (is_ended(hca_cq(cq), VERBS_CALLER))
		return EINVAL;
	return CARRIED(hca_context(cq->context)->layer, verbs_req_notify_cq(cq, solicited_only));
}

void verbs_layer_add_cq_ex(struct hca_cq *cq)
{
	struct verbs_layer *l = cq->ctx->layer;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	if (!l->start_poll) {
		l->start_poll = cq->cq.start_poll;
		l->next_poll = cq->cq.next_poll;
	}
	pthread_mutex_unlock(&l->lock);
	cq->cq.start_poll = start_poll;
	cq->cq.next_poll = next_poll;
}

int verbs_layer_destroy_cq(struct hca_cq *cq, const void *caller)
{
	struct verbs_layer *l = cq->ctx->layer;
	struct hca_cq **kept;
	int ret;

	if (!l || !l->watcher)
		return hca_cq_destroy(cq);
	l->watcher->destroying(CHECKED_CQ, cq, caller);
	ret = hca_cq_end(cq);
	l->watcher->destroyed(CHECKED_CQ, cq, -ret);
	if (ret)
		return ret;
	pthread_mutex_lock(&l->lock);
	kept = &l->ended[l->n_ended++ % VERBS_LAYER_ENDED];
	free(*kept);
	*kept = cq;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* ---- queue pairs ---- */

static void told_of(struct hca_qp *qp, const struct ibv_qp_cap *asked, const void *caller)
{
	struct ibv_qp *q = &qp->ex.qp_base;
	const struct ibv_qp_init_attr init = { .qp_context = q->qp_context,
		                               .send_cq = q->send_cq,
		                               .recv_cq = q->recv_cq,
		                               .srq = q->srq,
		                               .cap = qp->cap,
		                               .qp_type = q->qp_type,
		                               .sq_sig_all = qp->signal_all };

	verbs_watcher(q->context)
	        ->made(CHECKED_QP, q,
	               &(struct checked_made){ .context = q->context,
	                                       .caller = caller,
	                                       .in = q->pd,
	                                       .is_extended = qp->send_ops_flags,
	                                       .qp = &init,
	                                       .asked = asked });
}

static void free_layer_qp(struct verbs_layer_qp *q)
{
	pthread_mutex_destroy(&q->posting);
	pthread_mutex_destroy(&q->posting_receives);
	free(q);
}

int verbs_layer_add_qp(struct hca_qp *qp, const struct ibv_qp_cap *asked, const void *caller)
{
	struct verbs_layer *l = qp->ctx->layer;
	struct verbs_layer_qp *q;
	int ret;

	if (!l)
		return 0;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->qp = qp;
	q->wr_complete = qp->ex.wr_complete;
	q->maker.ex.qp_base.qp_num = qp->ex.qp_base.qp_num;
	pthread_mutex_init(&q->posting, NULL);
	pthread_mutex_init(&q->posting_receives, NULL);
	TAILQ_INIT(&q->sends.all);
	TAILQ_INIT(&q->receives.all);
	pthread_mutex_lock(&l->lock);
	ret = base_hash_add(&l->qps, &q->node, qp->ex.qp_base.qp_num);
	pthread_mutex_unlock(&l->lock);
	if (ret) {
		free_layer_qp(q);
		return ret;
	}
	if (q->wr_complete)
		qp->ex.wr_complete = wr_complete;
	if (l->watcher)
		told_of(qp, asked, caller);
	return 0;
}

static void drop_all(struct verbs_layer *l, struct verbs_layer_qp *q)
{
	pthread_mutex_lock(&l->lock);
	verbs_record_drop_all(l, &q->sends);
	verbs_record_drop_all(l, &q->receives);
	pthread_mutex_unlock(&l->lock);
}

/* The queue pair is not found meanwhile, as a new one may get its number once it has gone. Made-up
 * completions stay in the CQ until then, and refer to @q. */
static int destroy(struct verbs_layer *l, struct verbs_layer_qp *q)
{
	int ret;

	pthread_mutex_lock(&l->lock);
	base_hash_remove(&l->qps, &q->node);
	if (q->wr_complete)
		q->qp->ex.wr_complete = q->wr_complete;
	pthread_mutex_unlock(&l->lock);
	ret = hca_qp_destroy(q->qp);
	if (!ret) {
		drop_all(l, q);
		free_layer_qp(q);
		return 0;
	}
	pthread_mutex_lock(&l->lock);
	base_hash_add(&l->qps, &q->node,
	              q->qp->ex.qp_base.qp_num); /* there is room: it was there */
	if (q->wr_complete)
		q->qp->ex.wr_complete = wr_complete;
	pthread_mutex_unlock(&l->lock);
	return ret;
}

int verbs_layer_destroy_qp(struct hca_qp *qp, const void *caller)
{
	struct verbs_layer *l = qp->ctx->layer;
	struct verbs_layer_qp *q = l ? look_up(l, qp->ex.qp_base.qp_num) : NULL;
	const struct checked_watcher *w = q ? l->watcher : NULL;
	int ret;

	if (w)
		w->destroying(CHECKED_QP, &qp->ex.qp_base, caller);
	ret = q ? destroy(l, q) : hca_qp_destroy(qp);
	if (w)
		w->destroyed(CHECKED_QP, &qp->ex.qp_base, -ret);
	return ret;
}

void verbs_layer_modified(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct verbs_layer *l = qp->ctx->layer;
	struct verbs_layer_qp *q = l && l->watcher ? look_up(l, qp->ex.qp_base.qp_num) : NULL;

	if (!q)
		return;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		drop_all(l, q);
	l->watcher->modified(&qp->ex.qp_base, attr, mask);
}

/* ---- shared receive queues ---- */

int verbs_layer_add_srq(struct ibv_srq *srq, struct ibv_pd *pd, const struct ibv_srq_attr *asked,
                        const void *caller)
{
	struct verbs_layer *l = hca_context(srq->context)->layer;
	struct verbs_layer_srq *s;
	int ret;

	if (!l)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->srq = srq;
	pthread_mutex_init(&s->posting, NULL);
	TAILQ_INIT(&s->receives.all);
	pthread_mutex_lock(&l->lock);
	ret = base_hash_add(&l->srqs, &s->node, (uintptr_t)srq);
	pthread_mutex_unlock(&l->lock);
	if (ret) {
		pthread_mutex_destroy(&s->posting);
		free(s);
		return ret;
	}
	if (l->watcher)
		l->watcher->made(CHECKED_SRQ, srq,
		                 &(struct checked_made){ .context = srq->context,
		                                         .caller = caller,
		                                         .in = pd,
		                                         .entries = asked->max_wr,
		                                         .sges = asked->max_sge });
	return 0;
}

static void forget_srq(struct verbs_layer *l, struct verbs_layer_srq *s)
{
	pthread_mutex_lock(&l->lock);
	base_hash_remove(&l->srqs, &s->node);
	verbs_record_drop_all(l, &s->receives);
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_destroy(&s->posting);
	free(s);
}

/* No queue pair uses it when it is destroyed, so no completion of it comes any more. */
int verbs_layer_destroy_srq(struct ibv_srq *srq, const void *caller)
{
	struct verbs_layer *l = hca_context(srq->context)->layer;
	struct verbs_layer_srq *s = NULL;
	int ret;

	if (l) {
		pthread_mutex_lock(&l->lock);
		s = find_srq(l, srq);
		pthread_mutex_unlock(&l->lock);
	}
	if (s && l->watcher)
		l->watcher->destroying(CHECKED_SRQ, srq, caller);
	ret = hca_srq_destroy(hca_srq(srq));
	if (s && l->watcher)
		l->watcher->destroyed(CHECKED_SRQ, srq, -ret);
	if (s && !ret)
		forget_srq(l, s);
	return ret;
}

/* ---- contexts ---- */

/* The watcher's library, which is beside ours, or was preloaded. */
static const struct checked_watcher *load_watcher(void)
{
	const struct checked_watcher *w;
	char path[PATH_MAX];
	Dl_info self;
	void *library;

	if (!dladdr((void *)load_watcher, &self) || !strrchr(self.dli_fname, '/') ||
	    snprintf(path, sizeof(path), "%.*s/" CHECKED_LIBRARY,
	             (int)(strrchr(self.dli_fname, '/') - self.dli_fname),
	             self.dli_fname) >= (int)sizeof(path))
		return NULL;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	w = library ? dlsym(library, CHECKED_WATCHER) : NULL;
	if (w && w->version == CHECKED_VERSION) {
		w->begin(verbs_ask_membership, verbs_lost_messages);
		return w;
	}
	base_log("this program is not checked: %s", library ? path : dlerror());
	return NULL;
}

static struct {
	pthread_mutex_t lock;
	const struct checked_watcher *watcher; /* or NULL */
	bool looked;                           /* for it */
	bool fork_is_safe;
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct checked_watcher *find_watcher(void)
{
	pthread_mutex_lock(&process.lock);
	if (!process.looked)
		process.watcher = load_watcher();
	if (!process.looked && process.watcher && process.fork_is_safe)
		process.watcher->fork_is_safe();
	process.looked = true;
	pthread_mutex_unlock(&process.lock);
	return process.watcher;
}

static bool is_wanted(const struct hca_context *ctx)
{
	const char *variable = secure_getenv(CHECKED_VARIABLE);

	return (variable && *variable) || ctx->process->region.control->settings.checked;
}

void verbs_layer_fork_is_safe(void)
{
	pthread_mutex_lock(&process.lock);
	process.fork_is_safe = true;
	if (process.watcher)
		process.watcher->fork_is_safe();
	pthread_mutex_unlock(&process.lock);
}

int verbs_layer_open(struct hca_context *ctx)
{
	struct ibv_context_ops *ops = &ctx->vctx.context.ops;
	const struct checked_watcher *watcher = is_wanted(ctx) ? find_watcher() : NULL;
	const bool meets_faults = verbs_faults_wanted(ctx);

	if (!meets_faults && !watcher)
		return 0;
	ctx->layer = calloc(1, sizeof(*ctx->layer));
	if (!ctx->layer)
		return -ENOMEM;
	pthread_mutex_init(&ctx->layer->lock, NULL);
	ctx->layer->meets_faults = meets_faults;
	ctx->layer->watcher = watcher;
	if (watcher) {
		ctx->process->is_watched = true;
		ctx->process->hearer = &watcher->hearer;
	}
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
	return 0;
}

void verbs_layer_close(struct hca_context *ctx)
{
	if (!ctx->layer)
		return;
	pthread_mutex_destroy(&ctx->layer->lock);
	base_hash_fini(&ctx->layer->qps);
	base_hash_fini(&ctx->layer->srqs);
	for (unsigned i = 0; i < VERBS_LAYER_ENDED; i++)
		free(ctx->layer->ended[i]);
	free(ctx->layer);
}
