/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Device memory: see dm.h.
 */
#include "hca/memory/dm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hca/process/command_file.h"
#include "hca/process/context.h"

#define WORD 4

struct hca_dm_memory {
	LIST_ENTRY(hca_dm_memory) entry; /* of the file, until it is freed */
	struct hca_command_file *file;
	char *bytes;
	size_t length;
	/* under the process's file_lock: */
	uint32_t handle;
	unsigned handles; /* struct hca_dm */
	unsigned users;   /* memory regions */
	bool freed;
};

struct hca_dm {
	struct ibv_dm dm;
	struct hca_dm_memory *memory;
};

static struct hca_dm_memory *memory_of(struct ibv_dm *dm)
{
	return ((struct hca_dm *)dm)->memory;
}

static pthread_mutex_t *lock_of(const struct hca_dm_memory *m)
{
	return &m->file->process->file_lock;
}

/* ---- copies ---- */

static bool is_within(const struct hca_dm_memory *m, uint64_t offset, size_t bytes)
{
	return offset <= m->length && bytes <= m->length - offset;
}

static int check_copy(const struct hca_dm_memory *m, uint64_t offset, size_t bytes)
{
	return is_within(m, offset, bytes) && offset % WORD == 0 && bytes % WORD == 0 ? 0 : EINVAL;
}

static int copy_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t bytes)
{
	int ret = check_copy(memory_of(dm), offset, bytes);

	if (!ret && bytes)
		memcpy(memory_of(dm)->bytes + offset, from, bytes);
	return ret;
}

static int copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t bytes)
{
	int ret = check_copy(memory_of(dm), offset, bytes);

	if (!ret && bytes)
		memcpy(to, memory_of(dm)->bytes + offset, bytes);
	return ret;
}

/* ---- handles ---- */

static struct hca_dm *handle_to(struct hca_context *ctx, struct hca_dm_memory *m)
{
	struct hca_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->dm.context = &ctx->vctx.context;
	dm->dm.memcpy_to_dm = copy_to;
	dm->dm.memcpy_from_dm = copy_from;
	dm->memory = m;
	return dm;
}

/* With the lock held. */
static struct hca_dm_memory *find(struct hca_command_file *f, uint32_t handle)
{
	struct hca_dm_memory *m;

	LIST_FOREACH(m, &f->dms, entry)
	if (m->handle == handle)
		break;
	return m;
}

/* Counts the memory and gives it a handle that no other has. -ENOMEM: there is no room. */
static int enter(struct hca_dm_memory *m)
{
	struct hca_command_file *f = m->file;
	int ret = -ENOMEM;

	pthread_mutex_lock(lock_of(m));
	if (m->length > HCA_DM_BYTES - f->dm_bytes)
		goto out;
	do
		m->handle = hca_command_file_handle(f, f->next_dm++ % HCA_FILE_INDEXES);
	while (find(f, m->handle));
	f->dm_bytes += m->length;
	LIST_INSERT_HEAD(&f->dms, m, entry);
	ret = 0;
out:
	pthread_mutex_unlock(lock_of(m));
	return ret;
}

static void free_memory(struct hca_dm_memory *m)
{
	free(m->bytes);
	free(m);
}

static struct hca_dm_memory *new_memory(struct hca_command_file *file,
                                        const struct ibv_alloc_dm_attr *attr)
{
	size_t alignment = (size_t)1 << attr->log_align_req;
	struct hca_dm_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	if (alignment < sizeof(void *))
		alignment = sizeof(void *);
	if (posix_memalign((void **)&m->bytes, alignment, attr->length)) {
		free(m);
		return NULL;
	}
	memset(m->bytes, 0, attr->length);
	m->file = file;
	m->length = attr->length;
	m->handles = 1;
	return m;
}

static int check_attr(const struct ibv_alloc_dm_attr *attr)
{
	if (attr->comp_mask || !attr->length || attr->log_align_req > HCA_DM_LOG_ALIGN)
		return -EINVAL;
	return attr->length > HCA_DM_BYTES ? -ENOMEM : 0;
}

struct ibv_dm *hca_dm_alloc(struct hca_context *ctx, const struct ibv_alloc_dm_attr *attr,
                            int *error)
{
	struct hca_dm_memory *m;
	struct hca_dm *dm;

	*error = check_attr(attr);
	if (*error)
		return NULL;
	*error = -ENOMEM;
	m = new_memory(ctx->file, attr);
	if (!m)
		return NULL;
	dm = handle_to(ctx, m);
	if (!dm)
		goto err_memory;
	*error = enter(m);
	if (*error)
		goto err_handle;
	dm->dm.handle = m->handle;
	hca_context_count(ctx, 1);
	return &dm->dm;
err_handle:
	free(dm);
err_memory:
	free_memory(m);
	return NULL;
}

struct ibv_dm *hca_dm_import(struct hca_context *ctx, uint32_t handle, int *error)
{
	pthread_mutex_t *lock = &ctx->file->process->file_lock;
	struct hca_dm *dm = NULL;
	struct hca_dm_memory *m;
	uint32_t index;

	*error = hca_command_file_index(ctx->file, handle, &index);
	if (*error)
		return NULL;
	pthread_mutex_lock(lock);
	m = find(ctx->file, handle);
	*error = m ? -ENOMEM : -ENOENT;
	if (m)
		dm = handle_to(ctx, m);
	if (dm)
		m->handles++;
	pthread_mutex_unlock(lock);
	if (!dm)
		return NULL;
	dm->dm.handle = handle;
	hca_context_count(ctx, 1);
	return &dm->dm;
}

void hca_dm_unimport(struct ibv_dm *public)
{
	struct hca_dm *dm = (struct hca_dm *)public;
	struct hca_dm_memory *m = dm->memory;
	pthread_mutex_t *lock = lock_of(m);
	bool last;

	pthread_mutex_lock(lock);
	last = !--m->handles && m->freed;
	pthread_mutex_unlock(lock);
	hca_context_count(hca_context(public->context), -1);
	free(dm);
	if (last)
		free_memory(m);
}

/* Nothing new can be made in it. */
static int retire(struct hca_dm_memory *m)
{
	if (m->freed)
		return -ENOENT;
	if (m->users)
		return -EBUSY;
	m->freed = true;
	LIST_REMOVE(m, entry);
	m->file->dm_bytes -= m->length;
	return 0;
}

int hca_dm_free(struct ibv_dm *dm)
{
	struct hca_dm_memory *m = memory_of(dm);
	int ret;

	pthread_mutex_lock(lock_of(m));
	ret = retire(m);
	pthread_mutex_unlock(lock_of(m));
	if (!ret)
		hca_dm_unimport(dm);
	return ret;
}

/* ---- memory regions ---- */

struct hca_dm_memory *hca_dm_get(struct ibv_dm *dm, uint64_t offset, size_t bytes, char **start)
{
	struct hca_dm_memory *m = memory_of(dm);
	bool there;

	pthread_mutex_lock(lock_of(m));
	there = !m->freed && is_within(m, offset, bytes);
	m->users += there;
	pthread_mutex_unlock(lock_of(m));
	*start = m->bytes + (there ? offset : 0);
	return there ? m : NULL;
}

void hca_dm_put(struct hca_dm_memory *m)
{
	pthread_mutex_lock(lock_of(m));
	m->users--;
	pthread_mutex_unlock(lock_of(m));
}
