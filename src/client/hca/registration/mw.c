/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory windows: see mw.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "hca/memory/keys.h"
#include "hca/queue/qp.h"
#include "hca/registration/mr.h"
#include "hca/registration/mw.h"
#include "shm/key.h"

#define REMOTE                                                                         \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 HCA_ACCESS_FLUSH_GLOBAL)
#define KNOWN (REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED)

/* The entry of the table is of kind HCA_MR_WINDOW, which no request finds by its key. */
struct hca_mw {
	struct ibv_mw mw;
	struct hca_mr entry;
	uint32_t key; /* by which it is bound; 0: it is not */
	uint32_t qpn; /* type 2: of the queue pair that has bound it */
	uint32_t mr;  /* lkey of the region that it is bound to */
};

struct ibv_mw *hca_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, int *error)
{
	struct hca_process *p = hca_context(pd->context)->process;
	struct hca_mw *mw;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		*error = base_because(-EINVAL, "type %d is no type of memory window", (int)type);
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw) {
		*error = -ENOMEM;
		return NULL;
	}
	mw->entry.mr = (struct ibv_mr){ .context = pd->context, .pd = pd };
	mw->entry.kind = HCA_MR_WINDOW;
	mw->entry.own_domain = hca_pd(pd)->domain;
	*error = hca_mr_enter_window(p, &mw->entry);
	if (*error) {
		free(mw);
		return NULL;
	}
	mw->mw = (struct ibv_mw){ .context = pd->context,
		                  .pd = pd,
		                  .rkey = mw->entry.mr.rkey,
		                  .handle = mw->entry.mr.handle,
		                  .type = type };
	hca_pd_use(pd);
	return &mw->mw;
}

/* With the lock of the table held. @wait: somebody may be using the window; the lock is released
 * meanwhile. */
static void unbind(struct hca_process *p, struct hca_mw *mw, bool wait)
{
	uint32_t key = mw->key, users[SHM_KEY_USERS];
	struct hca_mr *mr = key ? hca_mr_find(&p->mrs, mw->mr) : NULL;

	if (!key)
		return;
	mw->key = 0;
	hca_keys_remove(p, key, users);
	if (wait)
		p->wait_for_users(p, users);
	if (mr) /* it is there still: regions that have windows stay */
		mr->windows--;
}

void hca_mw_dealloc(struct ibv_mw *public)
{
	struct hca_process *p = hca_context(public->context)->process;
	struct hca_mw *mw = (struct hca_mw *)public;

	pthread_mutex_lock(&p->mrs.lock);
	unbind(p, mw, true);
	hca_mr_leave_window(p, &mw->entry);
	pthread_mutex_unlock(&p->mrs.lock);
	hca_pd_unuse(public->pd);
	free(mw);
}

int hca_mw_describe(const struct ibv_send_wr *wr, struct shm_request *r)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct ibv_mw *mw = wr->bind_mw.mw;

	if (!mw || (info->length && !info->mr))
		return -EINVAL;
	/* the index is the window's, whatever the request says, as mlx5 has it */
	r->rkey = (mw->rkey & ~0xFFu) | (wr->bind_mw.rkey & 0xFF);
	r->remote_addr = info->addr;
	r->compare_add = info->length;
	r->imm = info->mr ? info->mr->lkey : 0;
	r->access = info->mw_access_flags;
	return 0;
}

/* Whether the window may be bound to the region so (section 10.6.7.2). */
static bool may_bind(const struct hca_qp *qp, const struct hca_mw *mw, const struct hca_mr *mr,
                     const struct shm_request *r)
{
	uint64_t offset;

	if (!mr || mr->gone || !(mr->access & IBV_ACCESS_MW_BIND) || mr->own_domain != qp->domain ||
	    mw->entry.own_domain != qp->domain || (r->access & ~(unsigned)KNOWN) ||
	    (mr->access & IBV_ACCESS_ZERO_BASED))
		return false;
	if ((r->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	offset = r->remote_addr - mr->iova;
	return r->remote_addr >= mr->iova && offset <= mr->mr.length &&
	       r->compare_add <= mr->mr.length - offset;
}

/* With the lock of the table held. */
static int bind_window(struct hca_qp *qp, const struct shm_request *r)
{
	struct hca_process *p = qp->ctx->process;
	struct hca_mr *entry = hca_mr_at(&p->mrs, r->rkey), *mr = hca_mr_find(&p->mrs, r->imm);
	struct hca_mw *mw;
	struct shm_reach reach;

	if (!entry || entry->kind != HCA_MR_WINDOW)
		return IBV_WC_MW_BIND_ERR;
	mw = (struct hca_mw *)((char *)entry - offsetof(struct hca_mw, entry));
	if (mw->key && mw->mw.type == IBV_MW_TYPE_2)
		return IBV_WC_MW_BIND_ERR; /* it is to be invalidated first */
	if (r->compare_add && !may_bind(qp, mw, mr, r))
		return IBV_WC_MW_BIND_ERR;
	unbind(p, mw, true);
	if (!r->compare_add)
		return IBV_WC_SUCCESS; /* bound to nothing */
	/* another thread may have been faster, or the window may be gone */
	mr = hca_mr_find(&p->mrs, r->imm);
	if (hca_mr_at(&p->mrs, r->rkey) != entry || mw->key || !may_bind(qp, mw, mr, r))
		return IBV_WC_MW_BIND_ERR;
	reach = (struct shm_reach){ .iova = r->access & IBV_ACCESS_ZERO_BASED ? 0 : r->remote_addr,
		                    .length = r->compare_add,
		                    .start = (uintptr_t)mr->start + (r->remote_addr - mr->iova),
		                    .access = (r->access & REMOTE) | SHM_KEY_WINDOW |
		                              hca_object_access(p, mr->object),
		                    .domain = mr->own_domain->number,
		                    .qpn = mw->mw.type == IBV_MW_TYPE_2 ? qp->sender.qpn : 0 };
	/* as hca_mr_reaches() looks at it */
	entry->start = (char *)(uintptr_t)reach.start;
	entry->mr.length = reach.length;
	entry->access = mr->access;
	if (hca_keys_put(p, r->rkey, &reach))
		return IBV_WC_MW_BIND_ERR;
	mw->key = r->rkey;
	mw->qpn = reach.qpn;
	mw->mr = r->imm;
	mr->windows++;
	return IBV_WC_SUCCESS;
}

/* A window of type 2 that this queue pair has bound. A peer may have invalidated it already. */
static int invalidate(struct hca_qp *qp, const struct shm_request *r)
{
	struct hca_process *p = qp->ctx->process;
	struct hca_mr *entry = hca_mr_at(&p->mrs, r->imm);
	struct hca_mw *mw;

	if (!entry || entry->kind != HCA_MR_WINDOW)
		return IBV_WC_LOC_PROT_ERR;
	mw = (struct hca_mw *)((char *)entry - offsetof(struct hca_mw, entry));
	if (mw->key != r->imm || mw->qpn != qp->sender.qpn)
		return IBV_WC_LOC_PROT_ERR;
	unbind(p, mw, true);
	return IBV_WC_SUCCESS;
}

int hca_mw_carry_out(struct hca_qp *qp, const struct shm_request *r)
{
	struct hca_mr_table *t = &qp->ctx->process->mrs;
	int status;

	pthread_mutex_lock(&t->lock);
	status = r->opcode == IBV_WR_BIND_MW ? bind_window(qp, r) : invalidate(qp, r);
	pthread_mutex_unlock(&t->lock);
	return status;
}

void hca_mw_invalidated(struct hca_process *p, uint32_t key)
{
	struct hca_mr *entry;
	struct hca_mw *mw;

	pthread_mutex_lock(&p->mrs.lock);
	entry = hca_mr_at(&p->mrs, key);
	if (entry && entry->kind == HCA_MR_WINDOW) {
		mw = (struct hca_mw *)((char *)entry - offsetof(struct hca_mw, entry));
		/* none but the queue pair's peer could use it, whose requests before are done */
		if (mw->key == key)
			unbind(p, mw, false);
	}
	pthread_mutex_unlock(&p->mrs.lock);
}

int hca_mw_bind_1(struct ibv_mw *mw, const struct ibv_mw_bind *bind, struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &bind->bind_info;

	if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return base_because(-EINVAL, "windows of type 1 do not begin at 0");
	*wr = (struct ibv_send_wr){
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = *info }
	};
	return 0;
}
