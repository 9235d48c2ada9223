/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: how they are made, and what those do who deliver to their queue pairs. See
 * cq.h; cq_members.c has their queue pairs and completions, cq_poll.c polls, cq_waiting.c goes on
 * with requests that wait, cq_event.c fires events.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/ack_wait.h"
#include "base/reason.h"
#include "base/util.h"
#include "hca/process/domain.h"
#include "hca/process/hearer.h"
#include "hca/process/link.h"
#include "hca/queue/cq.h"

/* The smallest CQ. */
#define LEAST_CQE 16

/* ---- life ---- */

/* Opens the network link of the port, if it has one: polling has it make progress. Before the first
 * CQ nothing polls. */
static int open_network(struct hca_context *ctx)
{
	struct shm_port port;
	int ret = 0;

	if (hca_port(ctx, 1, &port))
		return 0;
	pthread_mutex_lock(&ctx->lock);
	if (!ctx->network)
		ret = hca_network_open(ctx->process, port.link_layer, ctx->hca, ctx->handle,
		                       &ctx->network);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

uint32_t hca_cq_size(const struct hca_process *p, uint32_t asked)
{
	const struct shm_settings *s = &p->region.control->settings;

	if (asked > s->max_cqe)
		return 0;
	if (asked && asked < LEAST_CQE && !s->exact_sizes)
		asked = LEAST_CQE;
	return hca_queue_size(p, asked, s->max_cqe);
}

static uint32_t places(uint32_t cqe)
{
	return 1u << base_log2_up(cqe);
}

struct hca_cqe *hca_cq_alloc_ring(uint32_t cqe)
{
	return calloc(places(cqe), sizeof(struct hca_cqe));
}

void hca_cq_use_ring(struct hca_cq *cq, struct hca_cqe *ring, uint32_t cqe)
{
	cq->ring = ring;
	cq->ring_size = cqe;
	cq->ring_mask = places(cqe) - 1;
	cq->head = cq->tail = 0;
}

/* Gives a queue that the daemon has made as @id what the program sees of it. */
static void init(struct hca_cq *cq, struct hca_context *ctx, uint32_t id, void *cq_context)
{
	cq->ctx = ctx;
	cq->network = ctx->network;
	cq->id = id;
	cq->shm = shm_cq_at(&ctx->process->region, id);
	atomic_store_explicit(&cq->shm->cqe, cq->ring_size, memory_order_relaxed);
	TAILQ_INIT(&cq->users);
	LIST_INIT(&cq->shared);
	hca_async_object_init(&cq->events, HCA_ASYNC_CQ, &cq->cq);
	cq->cq.context = &ctx->vctx.context;
	cq->cq.cq_context = cq_context;
	cq->cq.handle = id;
	cq->cq.cqe = (int)cq->ring_size;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	hca_vain_begin(cq);
}

/* Others find it from now on. */
static void enter(struct hca_cq *cq)
{
	struct hca_process *p = cq->ctx->process;

	base_lock(&p->cqs_lock);
	LIST_INSERT_HEAD(&p->cqs, cq, process_entry);
	base_unlock(&p->cqs_lock);
	hca_async_enter(&cq->ctx->async, &cq->events, cq->id);
	hca_context_count(cq->ctx, 1);
}

int hca_cq_create(struct hca_context *ctx, uint32_t cqe, struct hca_channel *ch, int vector,
                  void *cq_context, struct hca_cq **out)
{
	struct control_create_cq req = { .hca_handle = ctx->handle,
		                         .cqe = hca_cq_size(ctx->process, cqe) };
	struct control_create_cq_reply rep;
	struct hca_cq *cq;
	int ret;

	if (!req.cqe)
		return base_because(-EINVAL, "cqe is %u: 1 to %u (max_cqe) are possible", cqe,
		                    ctx->process->region.control->settings.max_cqe);
	if (vector < 0 || vector >= ctx->vctx.context.num_comp_vectors)
		return base_because(-EINVAL, "comp_vector is %d: there are %d", vector,
		                    ctx->vctx.context.num_comp_vectors);
	ret = open_network(ctx);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	ret = -ENOMEM;
	cq->ch = ch;
	hca_cq_use_ring(cq, hca_cq_alloc_ring(req.cqe), req.cqe);
	if (!cq->ring)
		goto err_free;
	ret = control_ask(ctx->process->control, CONTROL_CREATE_CQ, &req, &rep);
	if (ret)
		goto err_ring;
	init(cq, ctx, rep.cq, cq_context);
	ret = ch ? hca_cq_enter_channel(cq) : 0;
	if (ret)
		goto err_made;
	enter(cq);
	*out = cq;
	return 0;
err_made:
	hca_request(ctx->process, CONTROL_DESTROY_CQ, &(struct control_handle){ rep.cq },
	            sizeof(struct control_handle));
	pthread_mutex_destroy(&cq->cq.mutex);
	pthread_cond_destroy(&cq->cq.cond);
err_ring:
	free(cq->ring);
err_free:
	free(cq);
	return ret;
}

/* Waits until the program has acknowledged all events that it got. */
static void wait_acked(struct hca_cq *cq)
{
	const struct hca_hearer *h = cq->ctx->process->hearer;
	struct base_ack_wait w = { .part = BASE_LOG_PART_verbs,
		                   .call = "ibv_destroy_cq",
		                   .of = cq };

	pthread_mutex_lock(&cq->cq.mutex);
	for (;;) {
		w.missing = (int)(cq->comp_events_got - cq->cq.comp_events_completed);
		w.acknowledge = w.missing ? "ibv_ack_cq_events" : "ibv_ack_async_event";
		if (h)
			w.hear = w.missing ? h->events_kept : h->async_events_kept;
		if (!w.missing)
			w.missing = (int)(cq->events.n_got - cq->cq.async_events_completed);
		if (!w.missing)
			break;
		base_ack_wait(&w, &cq->cq.cond, &cq->cq.mutex);
	}
	pthread_mutex_unlock(&cq->cq.mutex);
}

int hca_cq_end(struct hca_cq *cq)
{
	struct hca_context *ctx = cq->ctx;

	if (cq->n_users)
		return base_because(-EBUSY, "queue pairs still use it: destroy them first");
	if (cq->ch)
		hca_cq_leave_channel(cq);
	base_lock(&ctx->process->cqs_lock);
	LIST_REMOVE(cq, process_entry);
	base_unlock(&ctx->process->cqs_lock);
	/* when it is done the daemon fires no event any more, either */
	hca_async_end(&ctx->async, cq->events.source, CONTROL_DESTROY_CQ, cq->id, NULL);
	hca_async_leave(&ctx->async, &cq->events);
	hca_context_count(ctx, -1);
	wait_acked(cq);
	if (cq->ch)
		hca_cq_take_events_along(cq);
	if (cq->parent_domain)
		hca_pd_unuse(cq->parent_domain);
	pthread_mutex_destroy(&cq->cq.mutex);
	pthread_cond_destroy(&cq->cq.cond);
	free(cq->ready);
	free(cq->ring);
	cq->ended = true;
	return 0;
}

int hca_cq_destroy(struct hca_cq *cq)
{
	const int ret = hca_cq_end(cq);

	if (!ret)
		free(cq);
	return ret;
}

void hca_cqs_wait(struct hca_process *p)
{
	struct hca_cq *cq;

	base_lock(&p->cqs_lock);
	LIST_FOREACH(cq, &p->cqs, process_entry)
	{
		/* a thread that polls later sees all that this thread wrote before it came here */
		base_lock(&cq->lock);
		base_unlock(&cq->lock);
	}
	base_unlock(&p->cqs_lock);
}

/* ---- completions ---- */

void hca_cq_overrun(struct hca_process *p, uint32_t id, struct shm_cq *shm)
{
	struct control_raise_event req = { .type = IBV_EVENT_CQ_ERR, .element = id };

	if (atomic_exchange_explicit(&shm->overrun, 1, memory_order_acq_rel))
		return;
	base_log_warning(verbs,
	                 "completion queue %u overruns: more requests complete there than it has "
	                 "room for (cqe)",
	                 id);
	hca_request(p, CONTROL_RAISE_EVENT, &req, sizeof(req));
}

BASE_COLD void hca_cq_set_ready(struct shm_cq *shm, uint16_t ready_bit)
{
	if (ready_bit >= SHM_CQ_READY_BITS)
		return;
	/* seq_cst: before the look whether the CQ is armed; pairs with hca_cq_arm() */
	atomic_fetch_or_explicit(&shm->ready[ready_bit / 64], 1ull << (ready_bit % 64),
	                         memory_order_seq_cst);
	base_fence_behind_seq_cst();
}

BASE_COLD void hca_cq_note_arrival(struct hca_process *p, struct shm_cq *shm, uint32_t flags,
                                   struct shm_arrival *slot)
{
	if (flags & SHM_QP_STAMPS) {
		slot->flags |= SHM_ARRIVAL_STAMPED;
		*shm_arrival_time(slot) = base_now_ns();
	}
	if ((flags & SHM_QP_COUNT_ARRIVALS) &&
	    (int32_t)(atomic_fetch_add_explicit(&shm->arrived, 1, memory_order_relaxed) + 1 -
	              atomic_load_explicit(&shm->limit, memory_order_relaxed)) > 0)
		hca_cq_overrun(p, shm_cq_number(&p->region, shm), shm);
}
