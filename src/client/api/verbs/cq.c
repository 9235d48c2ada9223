/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels and queues. Safe from any thread.
 */
#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "base/reason.h"
#include "hca/queue/channel.h"

#define WC_FLAGS_HERE      ((uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS)
#define CQ_COMP_MASK_KNOWN ((uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
#define CQ_FLAGS_KNOWN     (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct hca_channel *ch;
	int ret = hca_channel_create(hca_context(context), &ch);

	if (!ret && verbs_watcher(context))
		verbs_watcher(context)->made(
		        CHECKED_CHANNEL, &ch->channel,
		        &(struct checked_made){ .context = context, .caller = VERBS_CALLER });
	return ret ? verbs_null(ret) : &ch->channel;
}

/* EBUSY while a CQ uses it. */
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return verbs_result(VERBS_DESTROY(channel->context, CHANNEL, channel,
	                                  hca_channel_destroy((struct hca_channel *)channel)));
}

/* -1 and errno. Blocks unless the descriptor is non-blocking. ibv_get_cq_event(3) */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct hca_cq *got;
	int ret = hca_channel_get_event((struct hca_channel *)channel, &got);

	if (ret)
		return verbs_minus_one(ret);
	*cq = (struct ibv_cq *)&got->cq;
	*cq_context = got->cq.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

static struct ibv_cq *create(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector)
{
	struct hca_cq *cq;
	int ret;

	if (cqe < 1)
		return verbs_null_of(
		        "ibv_create_cq",
		        base_because(-EINVAL, "cqe is %d: a completion queue has 1 or more", cqe));
	if (channel &&
	    !hca_context_shares(hca_context(context), channel->context)) /* as in Linux */
		return verbs_null_of(
		        "ibv_create_cq",
		        base_because(-EBADF, "the completion channel is of another device, or of "
		                             "this one as it was opened elsewhere"));
	ret = hca_cq_create(hca_context(context), (uint32_t)cqe, (struct hca_channel *)channel,
	                    comp_vector, cq_context, &cq);
	return ret ? verbs_null_of("ibv_create_cq", ret) : (struct ibv_cq *)&cq->cq;
}

static bool is_in_thread_domain(const struct ibv_cq_init_attr_ex *attr)
{
	return (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && hca_pd(attr->parent_domain)->td;
}

/* @asked: there may be room for more. @ex: an extended one is as that says; or NULL. */
static void told_of(struct ibv_cq *cq, uint32_t asked, const struct ibv_cq_init_attr_ex *ex,
                    const void *caller)
{
	if (!verbs_watcher(cq->context))
		return;
	verbs_watcher(cq->context)
	        ->made(CHECKED_CQ, cq,
	               &(struct checked_made){
	                       .context = cq->context,
	                       .caller = caller,
	                       .in = cq->channel,
	                       .entries = asked,
	                       .is_extended = ex,
	                       .wc_flags = ex ? ex->wc_flags : 0,
	                       .is_single_threaded = ex && hca_cq(cq)->single_threaded,
	                       .ignores_overrun = ex && hca_cq(cq)->ignores_overrun,
	                       .is_in_thread_domain = ex && is_in_thread_domain(ex) });
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq = create(context, cqe, cq_context, channel, comp_vector);

	if (cq)
		told_of(cq, (uint32_t)cqe, NULL, VERBS_CALLER);
	return cq;
}

static bool is_parent(struct ibv_context *context, struct ibv_pd *pd)
{
	return pd && pd->context == context && hca_pd_is_parent(pd);
}

struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *cq;

	if (attr->comp_mask & ~CQ_COMP_MASK_KNOWN)
		return verbs_null(-EOPNOTSUPP);
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    !is_parent(context, attr->parent_domain))
		return verbs_null(-EINVAL);
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~CQ_FLAGS_KNOWN))
		return verbs_null(-EOPNOTSUPP);
	if (attr->wc_flags & ~WC_FLAGS_HERE)
		return verbs_null(
		        base_because(-EOPNOTSUPP, "wc_flags 0x%llx are not supported",
		                     (unsigned long long)(attr->wc_flags & ~WC_FLAGS_HERE)));
	if (attr->cqe > INT32_MAX || attr->comp_vector > INT32_MAX)
		return verbs_null(-EINVAL);
	cq = create(context, (int)attr->cqe, attr->cq_context, attr->channel,
	            (int)attr->comp_vector);
	if (!cq)
		return NULL;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		hca_cq(cq)->parent_domain = attr->parent_domain;
		hca_pd_use(attr->parent_domain);
	}
	hca_cq_ex_init(hca_cq(cq), attr->wc_flags,
	               attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0);
	verbs_layer_add_cq_ex(hca_cq(cq));
	told_of(cq, attr->cqe, attr, VERBS_CALLER);
	return (struct ibv_cq_ex *)cq;
}

/* EINVAL below what waits in it. */
int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int ret = cqe < 1 ? base_because(-EINVAL, "cqe is %d", cqe)
	                  : hca_cq_resize(hca_cq(cq), (uint32_t)cqe);

	if (!ret && verbs_watcher(cq->context))
		verbs_watcher(cq->context)->resized(cq, (uint32_t)cqe);
	return verbs_result(ret);
}

/* EINVAL: nothing is named, or more than moderation. ibv_modify_cq(3) */
int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return verbs_result(base_because(
		        -EINVAL, "attr_mask is 0x%x: moderation is all that can be modified",
		        attr->attr_mask));
	hca_cq_moderate(hca_cq(cq), attr->moderate.cq_count, attr->moderate.cq_period);
	return 0;
}

/* EBUSY while a QP uses it. Waits until all its events are acknowledged. */
int ibv_destroy_cq(struct ibv_cq *cq)
{
	return verbs_result(verbs_layer_destroy_cq(hca_cq(cq), VERBS_CALLER));
}
