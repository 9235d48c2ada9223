/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection, parent and thread domains: see domain.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "base/util.h"
#include "hca/process/command_file.h"
#include "hca/process/context.h"
#include "hca/process/domain.h"

#define PARENT_MASK_KNOWN \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
#define QUEUE_ALIGNMENT 4096 /* what programs' allocators are asked for */

static bool in_use(const _Atomic uint32_t *users)
{
	return atomic_load_explicit(users, memory_order_relaxed);
}

/* ---- protection domains ---- */

static pthread_mutex_t *lock_of(const struct hca_domain *d)
{
	return &d->file->process->file_lock;
}

/* The daemon shows it. With file_lock held, so that it hears of both in their order. */
static void tell(const struct hca_domain *d, enum control_type type)
{
	const struct control_pd req = { .hca_handle = d->hca_handle, .domain = d->number };

	hca_post(d->file->process, type, &req, sizeof(req));
}

static uint64_t hash_of(uint32_t handle)
{
	return base_hash_of(&handle, sizeof(handle), 0);
}

/* With file_lock held. NULL: no memory. */
static struct hca_domain *new_domain(struct hca_context *ctx, uint32_t handle)
{
	struct hca_command_file *file = ctx->file;
	struct hca_domain *d = calloc(1, sizeof(*d));

	if (!d || base_hash_add(&file->domains, &d->node, hash_of(handle))) {
		free(d);
		return NULL;
	}
	d->file = file;
	d->handle = handle;
	d->number = ++file->process->n_domains;
	d->listed = true;
	d->hca_handle = ctx->handle;
	tell(d, CONTROL_ALLOC_PD);
	return d;
}

/* With file_lock held. The domain of this handle, as this process knows it; NULL: no memory. */
static struct hca_domain *get_domain(struct hca_context *ctx, uint32_t handle)
{
	struct hca_domain *d;

	BASE_HASH_FOREACH(d, &ctx->file->domains, hash_of(handle), node)
		if (d->handle == handle)
			return d;
	return new_domain(ctx, handle);
}

static void unlist(struct hca_domain *d)
{
	if (!d->listed)
		return;
	base_hash_remove(&d->file->domains, &d->node);
	d->listed = false;
	tell(d, CONTROL_FREE_PD);
}

/* A struct hca_pd of the domain that has this handle. */
static struct ibv_pd *handle_to(struct hca_context *ctx, uint32_t handle, int *error)
{
	pthread_mutex_t *lock = &ctx->process->file_lock;
	struct hca_pd *pd = calloc(1, sizeof(*pd));

	*error = -ENOMEM;
	if (!pd)
		return NULL;
	pthread_mutex_lock(lock);
	pd->domain = get_domain(ctx, handle);
	if (pd->domain)
		pd->domain->handles++;
	pthread_mutex_unlock(lock);
	if (!pd->domain) {
		free(pd);
		return NULL;
	}
	pd->users = 1;
	pd->pd.context = &ctx->vctx.context;
	pd->pd.handle = handle;
	hca_context_count(ctx, 1);
	*error = 0;
	return &pd->pd;
}

struct ibv_pd *hca_pd_alloc(struct hca_context *ctx, int *error)
{
	struct ibv_pd *pd;
	uint32_t handle;

	*error =
	        hca_process_gone(ctx->process) ? -EIO : hca_command_file_add_pd(ctx->file, &handle);
	if (*error == -ENOSPC)
		*error = -ENOMEM;
	if (*error)
		return NULL;
	pd = handle_to(ctx, handle, error);
	if (!pd)
		hca_command_file_remove_pd(ctx->file, handle);
	return pd;
}

struct ibv_pd *hca_pd_import(struct hca_context *ctx, uint32_t handle, int *error)
{
	*error = hca_command_file_has_pd(ctx->file, handle) ? 0 : -ENOENT;
	return *error ? NULL : handle_to(ctx, handle, error);
}

/* A handle of the domain has gone. */
static void put_domain(struct hca_domain *d)
{
	pthread_mutex_t *lock = lock_of(d);
	bool last;

	pthread_mutex_lock(lock);
	last = !--d->handles;
	if (last)
		unlist(d);
	pthread_mutex_unlock(lock);
	if (last)
		free(d);
}

void hca_pd_free(struct hca_pd *pd)
{
	struct hca_context *ctx = hca_context(pd->pd.context);

	if (pd->td)
		atomic_fetch_sub_explicit(&pd->td->users, 1, memory_order_relaxed);
	if (pd->base)
		hca_pd_unuse(&pd->base->pd);
	else
		put_domain(pd->domain);
	hca_context_count(ctx, -1);
	free(pd);
}

/* The program gives up its handle. */
static void give_up(struct hca_pd *pd)
{
	/* acq_rel: as in hca_pd_unuse() */
	if (atomic_fetch_sub_explicit(&pd->users, 1, memory_order_acq_rel) == 1)
		hca_pd_free(pd);
}

#define PD_IS_USED \
	"regions, address handles, queue pairs, windows or parent domains are still in it"

/* Nothing new is made in the domain, by whatever handle. */
static int retire(struct hca_domain *d)
{
	int ret;

	if (in_use(&d->users))
		return base_because(-EBUSY, PD_IS_USED);
	/* the process that gets the handle next must not find this domain by it */
	pthread_mutex_lock(lock_of(d));
	ret = hca_command_file_remove_pd(d->file, d->handle);
	if (!ret)
		unlist(d);
	pthread_mutex_unlock(lock_of(d));
	return ret;
}

int hca_pd_dealloc(struct ibv_pd *public)
{
	struct hca_pd *pd = hca_pd(public);
	int ret;

	if (atomic_load_explicit(&pd->users, memory_order_relaxed) > 1)
		return base_because(-EBUSY, PD_IS_USED);
	ret = pd->base ? 0 : retire(pd->domain);
	if (ret)
		return ret;
	give_up(pd);
	return 0;
}

void hca_pd_unimport(struct ibv_pd *pd)
{
	give_up(hca_pd(pd));
}

/* ---- parent domains ---- */

static int check_parent(struct hca_context *ctx, const struct ibv_parent_domain_init_attr *attr)
{
	if (attr->comp_mask & ~(uint32_t)PARENT_MASK_KNOWN)
		return -EOPNOTSUPP;
	if (!attr->pd || attr->pd->context != &ctx->vctx.context || hca_pd_is_parent(attr->pd))
		return -EINVAL;
	if (attr->td && attr->td->context != &ctx->vctx.context)
		return -EINVAL;
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return -EINVAL;
	return 0;
}

struct ibv_pd *hca_pd_alloc_parent(struct hca_context *ctx,
                                   const struct ibv_parent_domain_init_attr *attr, int *error)
{
	struct hca_pd *pd;

	*error = check_parent(ctx, attr);
	if (*error)
		return NULL;
	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		*error = -ENOMEM;
		return NULL;
	}
	pd->pd.context = &ctx->vctx.context;
	pd->pd.handle = attr->pd->handle;
	pd->base = hca_pd(attr->pd);
	pd->domain = pd->base->domain;
	pd->users = 1;
	pd->td = (struct hca_td *)attr->td;
	pd->attr = *attr;
	if (!(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
		pd->attr.pd_context = NULL;
	hca_pd_use(attr->pd);
	if (pd->td)
		atomic_fetch_add_explicit(&pd->td->users, 1, memory_order_relaxed);
	hca_context_count(ctx, 1);
	return &pd->pd;
}

int hca_pd_block_get(struct ibv_pd *public, size_t bytes, enum hca_pd_memory type,
                     struct hca_pd_block *block)
{
	struct hca_pd *pd = hca_pd(public);
	void *memory = IBV_ALLOCATOR_USE_DEFAULT;

	if (pd->attr.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS)
		memory = pd->attr.alloc(public, pd->attr.pd_context, bytes, QUEUE_ALIGNMENT, type);
	block->owner = memory == IBV_ALLOCATOR_USE_DEFAULT ? NULL : pd;
	block->memory = block->owner ? memory : calloc(1, bytes);
	return block->memory ? 0 : -ENOMEM;
}

void hca_pd_block_put(struct hca_pd_block *block, enum hca_pd_memory type)
{
	struct hca_pd *pd = block->owner;

	if (!pd)
		free(block->memory);
	else if (block->memory)
		pd->attr.free(&pd->pd, pd->attr.pd_context, block->memory, type);
	block->memory = NULL;
}

/* ---- thread domains ---- */

struct ibv_td *hca_td_alloc(struct hca_context *ctx, int *error)
{
	struct hca_td *td = calloc(1, sizeof(*td));

	*error = td ? 0 : -ENOMEM;
	if (!td)
		return NULL;
	td->td.context = &ctx->vctx.context;
	hca_context_count(ctx, 1);
	return &td->td;
}

int hca_td_dealloc(struct ibv_td *public)
{
	struct hca_td *td = (struct hca_td *)public;

	if (in_use(&td->users))
		return base_because(-EBUSY, "a parent domain has it");
	hca_context_count(hca_context(public->context), -1);
	free(td);
	return 0;
}
