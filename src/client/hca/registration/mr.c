/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions: see mr.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/signals.h"
#include "base/valgrind.h"
#include "hca/memory/dm.h"
#include "hca/memory/keys.h"
#include "hca/process/command_file.h"
#include "hca/process/context.h"
#include "hca/process/domain.h"
#include "hca/process/newer_verbs.h"
#include "hca/queue/cq.h"
#include "hca/registration/mr.h"
#include "shm/key.h"

#define ACCESS_KNOWN                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE |     \
	 HCA_ACCESS_FLUSH_GLOBAL)
#define ACCESS_NEEDS_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* Regions that a new region is compared with. */
#define MOST_LOOKED_AT 1024

static int check_access(unsigned access)
{
	if (access & ~(unsigned)ACCESS_KNOWN)
		return base_because(-EINVAL, "access flags 0x%x are not supported",
		                    access & ~(unsigned)ACCESS_KNOWN);
	if ((access & ACCESS_NEEDS_LOCAL_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return base_because(-EINVAL, "remote write and atomic access need "
		                             "IBV_ACCESS_LOCAL_WRITE, too");
	if ((access & IBV_ACCESS_ON_DEMAND) && !hca_mr_has_on_demand())
		return base_because(-EOPNOTSUPP, "IBV_ACCESS_ON_DEMAND needs Linux 5.14");
	return 0;
}

/* A range may not wrap round; and, as for Linux, it lies in a page at least: one of no bytes does
 * so unless it is where a page begins. */
static int check_range(const void *addr, size_t length)
{
	if ((uintptr_t)addr + length < (uintptr_t)addr)
		return base_because(-EINVAL, "%zu bytes at %p go beyond all memory", length, addr);
	if (!length && (uintptr_t)addr % (uintptr_t)sysconf(_SC_PAGESIZE) == 0)
		return base_because(-EINVAL, "no bytes at %p, where a page begins, are in no page",
		                    addr);
	return 0;
}

/* The changing byte of the key at @index. */
static int next_key(struct hca_mr_table *t, uint32_t index, uint8_t *key)
{
	if (index >= t->n_keys) {
		uint32_t n = t->ids.size;
		uint8_t *p = realloc(t->key, n);

		if (!p)
			return -ENOMEM;
		memset(p + t->n_keys, 0, n - t->n_keys);
		t->key = p;
		t->n_keys = n;
	}
	*key = t->key[index]++;
	return 0;
}

/* Whether another region has its memory, if there are not too many to look at. */
static bool has_company(struct hca_mr_table *t, const struct hca_mr *mr)
{
	const uint64_t from = (uintptr_t)mr->start;

	return t->ids.used <= MOST_LOOKED_AT && hca_mr_overlaps(t, from, from + mr->mr.length);
}

/* The memory object in which the region lies, if peers' processes will see its key. */
static void find_object(struct hca_process *p, struct hca_mr *mr)
{
	if (!p->mrs.keys_off || mr->kind != HCA_MR_ORDINARY || mr->dm ||
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return;
	mr->unsettled = true;
	mr->object = hca_object_get(p, mr->start, mr->mr.length);
	mr->is_doubtful = !mr->object && has_company(&p->mrs, mr);
	mr->unsettled = false;
}

static void leave_object(struct hca_process *p, struct hca_mr *mr)
{
	struct hca_object *object = mr->object;

	mr->object = NULL;
	mr->unsettled = true;
	if (object)
		hca_object_put(p, object);
	else
		hca_object_settle(p);
	mr->unsettled = false;
}

/* Whether another region, but one of all memory, has some of its memory. */
static bool is_shared(struct hca_mr_table *t, const struct hca_mr *mr)
{
	for (uint32_t i = 0; i < t->ids.size; i++) {
		const struct hca_mr *other = base_idtable_get(&t->ids, i);

		if (other && other != mr && !other->gone && other->kind != HCA_MR_WINDOW &&
		    other->start && other->start < mr->start + mr->mr.length &&
		    other->start + other->mr.length > mr->start)
			return true;
	}
	return false;
}

/* A card reads and writes the memory unseen by tools that look for races; so may we, by any thread
 * of the program, while it is registered. With the lock held. */
static void tell_race_checkers(struct hca_mr_table *t, const struct hca_mr *mr, bool is_there)
{
	/* not all of memory: that would be the end of all races */
	if (base_valgrind_runs() && mr->kind != HCA_MR_NULL && mr->start &&
	    (is_there || !is_shared(t, mr)))
		base_valgrind_ignore(mr->start, mr->mr.length, is_there);
}

/* Publishes the key of @mr to the processes of peers (keys.h). With the lock held. */
static int publish_key(struct hca_process *p, struct hca_mr *mr)
{
	struct shm_reach reach;
	int ret;

	if (mr->kind == HCA_MR_WINDOW)
		return 0; /* it has no key before it is bound */
	reach = (struct shm_reach){ .iova = mr->iova,
		                    .length = mr->mr.length,
		                    .start = (uintptr_t)mr->start,
		                    .access = mr->access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE,
		                    .domain = mr->own_domain->number };

	if (mr->kind == HCA_MR_NULL)
		reach.access |= SHM_KEY_NULL;
	find_object(p, mr);
	reach.access |= hca_object_access(p, mr->object);
	ret = hca_keys_put(p, mr->mr.lkey, &reach);
	if (ret)
		leave_object(p, mr);
	else
		tell_race_checkers(&p->mrs, mr, true);
	return ret;
}

/* Calls a function that takes the locks of CQs. A thread that has such a lock may want that of the
 * table, which is released meanwhile. Without peers nobody does, and it is kept, as keys may be
 * about to be opened. */
static void without_lock(struct hca_process *p, void (*call)(struct hca_process *))
{
	const bool has_peers = p->mrs.keys_off;

	if (has_peers)
		pthread_mutex_unlock(&p->mrs.lock);
	call(p);
	if (has_peers)
		pthread_mutex_lock(&p->mrs.lock);
}

/* Nobody finds @mr or its key any more, or uses it; messages that have come lie there. With the
 * lock held, which is released meanwhile. */
static void hide(struct hca_process *p, struct hca_mr *mr)
{
	struct hca_mr_table *t = &p->mrs;
	uint32_t users[SHM_KEY_USERS];

	hca_keys_remove(p, mr->mr.lkey, users);
	if (p->wait_for_users)
		p->wait_for_users(p, users);
	without_lock(p, hca_cqs_take);
	hca_mr_set(t, hca_mr_place(t, mr->index), NULL);
	without_lock(p, hca_cqs_wait);
	leave_object(p, mr);
	tell_race_checkers(t, mr, false);
}

/* 0 or -ENOMEM: no region lies in an object then. */
static int publish_all(struct hca_process *p)
{
	struct hca_mr *mr;
	int ret = 0;
	uint32_t n;

	for (n = 0; n < p->mrs.ids.size && !ret; n++) {
		mr = base_idtable_get(&p->mrs.ids, n);
		if (mr)
			ret = publish_key(p, mr);
	}
	while (ret && n--) { /* the next time all of them are published again */
		mr = base_idtable_get(&p->mrs.ids, n);
		if (mr && mr->object)
			leave_object(p, mr);
	}
	return ret;
}

int hca_mr_publish_keys(struct hca_process *p, hca_wait_for_users *wait)
{
	int ret = 0;

	pthread_mutex_lock(&p->mrs.lock);
	if (p->mrs.keys_off)
		goto out;
	p->wait_for_users = wait;
	ret = hca_keys_open(p);
	if (!ret)
		ret = publish_all(p);
	if (ret)
		p->mrs.keys_off = 0;
out:
	pthread_mutex_unlock(&p->mrs.lock);
	return ret;
}

static int publish(struct hca_process *p, struct hca_mr *mr)
{
	struct hca_mr_table *t = &p->mrs;
	struct hca_mr *_Atomic *entry;
	uint32_t index;
	uint8_t key;
	int ret;

	pthread_mutex_lock(&t->lock);
	ret = base_idtable_add(&t->ids, mr, &index);
	if (ret)
		goto out;
	entry = hca_mr_place(t, index);
	ret = entry ? next_key(t, index, &key) : -ENOMEM;
	if (ret)
		goto err_index;
	mr->mr.lkey = mr->mr.rkey = index << 8 | key;
	ret = publish_key(p, mr);
	if (ret)
		goto err_index;
	mr->mr.handle = hca_command_file_handle(hca_context(mr->mr.context)->file, index);
	mr->index = index;
	mr->region = mr;
	mr->handles = 1;
	hca_mr_set(t, entry, mr);
	goto out;
err_index:
	base_idtable_remove(&t->ids, index);
out:
	pthread_mutex_unlock(&t->lock);
	return ret == -ENOSPC ? -ENOMEM : ret;
}

int hca_mr_enter_window(struct hca_process *p, struct hca_mr *entry)
{
	return publish(p, entry);
}

void hca_mr_leave_window(struct hca_process *p, struct hca_mr *entry)
{
	hca_mr_set(&p->mrs, hca_mr_place(&p->mrs, entry->index), NULL);
	base_idtable_remove(&p->mrs.ids, entry->index);
}

/* Whether a region may be registered so. Its memory is touched (hca_mr_populate()). */
static int check(void *addr, size_t length, unsigned access)
{
	int ret = check_access(access);

	if (!ret)
		ret = check_range(addr, length);
	if (!ret && !(access & IBV_ACCESS_ON_DEMAND))
		ret = hca_mr_populate(addr, length, access);
	return ret;
}

static enum hca_mr_kind kind_for(unsigned access)
{
	return access & IBV_ACCESS_ON_DEMAND ? HCA_MR_ON_DEMAND : HCA_MR_ORDINARY;
}

static void set_kind(struct hca_mr *mr, enum hca_mr_kind kind)
{
	mr->kind = kind;
	mr->own_domain = hca_pd(mr->mr.pd)->domain;
	mr->domain = kind == HCA_MR_ORDINARY ? mr->own_domain : NULL;
}

/* Gives @mr its key. Returns @mr; NULL: *@error, and @mr is freed. */
static struct hca_mr *enter(struct hca_mr *mr, int *error)
{
	int cancel_state = base_cancel_off(); /* system calls with the lock held */

	*error = publish(hca_context(mr->mr.context)->process, mr);
	base_cancel_restore(cancel_state);
	if (*error) {
		free(mr);
		return NULL;
	}
	hca_pd_use(mr->mr.pd);
	return mr;
}

struct hca_mr *hca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               unsigned access, int *error)
{
	struct hca_mr *mr;

	*error = check(addr, length, access);
	if (*error)
		return NULL;
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		*error = -ENOMEM;
		return NULL;
	}
	mr->mr =
	        (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = length };
	mr->iova = iova;
	mr->start = addr;
	mr->access = access;
	set_kind(mr, kind_for(access));
	return enter(mr, error);
}

struct hca_mr *hca_mr_alloc_null(struct ibv_pd *pd, int *error)
{
	struct hca_mr *mr = calloc(1, sizeof(*mr));

	if (!mr) {
		*error = -ENOMEM;
		return NULL;
	}
	mr->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .length = SIZE_MAX };
	mr->access = IBV_ACCESS_LOCAL_WRITE;
	set_kind(mr, HCA_MR_NULL);
	mr = enter(mr, error);
	if (mr)
		mr->mr.rkey = 0; /* nobody else can use it */
	return mr;
}

/* Has @mr be what @next says, with this key. With the lock held, which is released meanwhile. */
static int become(struct hca_mr *mr, struct hca_mr *next, uint8_t key)
{
	struct hca_process *p = hca_context(mr->mr.context)->process;
	int ret;

	mr->gone = true; /* nobody is to use it anew */
	hide(p, mr);
	/* it was without the lock for a time: others may have a handle now */
	next->handles = mr->handles;
	next->windows = mr->windows;
	next->object = NULL;
	next->mr.lkey = next->mr.rkey = mr->index << 8 | key;
	hca_pd_unuse(mr->mr.pd);
	hca_pd_use(next->mr.pd);
	*mr = *next;
	ret = publish_key(p, mr);
	hca_mr_set(&p->mrs, hca_mr_place(&p->mrs, mr->index), mr);
	return ret;
}

int hca_mr_reregister(struct hca_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                      unsigned access)
{
	struct hca_mr_table *t = &hca_context(mr->mr.context)->process->mrs;
	const bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct hca_mr next = *mr;
	int ret, cancel_state;
	uint8_t key;

	if (mr->dm)
		return -EINVAL;
	if (moves) {
		next.mr.addr = next.start = addr;
		next.mr.length = length;
		next.iova = (uintptr_t)addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		next.mr.pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		next.access = access;
	set_kind(&next, kind_for(next.access));
	ret = check(next.mr.addr, next.mr.length, next.access);
	if (ret)
		return ret;
	cancel_state = base_cancel_off(); /* system calls with the lock held */
	pthread_mutex_lock(&t->lock);
	/* a peer that has the key of a region that stays where it is may go on using it, as on
	 * hardware */
	key = (uint8_t)mr->mr.lkey;
	if (mr->windows)
		ret = base_because(-EBUSY, "memory windows are bound to it"); /* and give access */
	else if (moves)
		ret = next_key(t, mr->index, &key);
	if (!ret)
		ret = become(mr, &next, key);
	pthread_mutex_unlock(&t->lock);
	base_cancel_restore(cancel_state);
	return ret;
}

/* The program gives up a handle: frees it, and the region with the last one. With the lock held. */
static void give_up(struct hca_mr *mr)
{
	struct hca_mr *region = mr->region;
	bool last = !--region->handles && region->gone;

	if (mr != region)
		free(mr);
	if (last)
		free(region);
}

/* Makes @region impossible to find. With the lock held. */
static void retire(struct hca_mr_table *t, struct hca_mr *region)
{
	struct hca_process *p = hca_context(region->mr.context)->process;

	region->gone = true;
	hide(p, region);
	base_idtable_remove(&t->ids, region->index);
	if (region->dm)
		hca_dm_put(region->dm);
	hca_pd_unuse(region->mr.pd);
}

int hca_mr_deregister(struct hca_mr *mr)
{
	struct hca_mr_table *t = &hca_context(mr->mr.context)->process->mrs;
	int cancel_state = base_cancel_off(); /* system calls with the lock held */
	int ret = 0;

	pthread_mutex_lock(&t->lock);
	if (mr->region->gone) {
		ret = base_because(-ENOENT, "it was deregistered by another handle");
	} else if (mr->region->windows) {
		ret = base_because(-EBUSY, "memory windows are bound to it");
	} else {
		retire(t, mr->region);
		give_up(mr);
	}
	pthread_mutex_unlock(&t->lock);
	base_cancel_restore(cancel_state);
	return ret;
}

/* ---- device memory and import ---- */

struct hca_mr *hca_mr_register_dm(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
                                  size_t length, unsigned access, int *error)
{
	struct hca_dm_memory *memory;
	struct hca_mr *mr;
	char *start;

	*error = access & IBV_ACCESS_ZERO_BASED ? check_access(access) : -EINVAL;
	if (!*error && hca_context(dm->context)->file != hca_context(pd->context)->file)
		*error = -EINVAL;
	if (*error)
		return NULL;
	*error = -EINVAL;
	memory = access & IBV_ACCESS_ON_DEMAND ? NULL : hca_dm_get(dm, offset, length, &start);
	if (!memory)
		return NULL;
	*error = -ENOMEM;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		goto err_memory;
	mr->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .length = length };
	mr->access = access;
	mr->start = start;
	mr->dm = memory;
	set_kind(mr, HCA_MR_ORDINARY);
	mr = enter(mr, error);
	if (mr)
		return mr;
err_memory:
	hca_dm_put(memory);
	return NULL;
}

/* A handle of the region that has this index. With the lock held. */
static struct hca_mr *handle_to(struct hca_mr_table *t, uint32_t index, struct ibv_pd *pd,
                                int *error)
{
	struct hca_mr *mr, *region = base_idtable_get(&t->ids, index);

	*error = -ENOENT;
	if (!region || region->gone || region->kind == HCA_MR_WINDOW ||
	    hca_context(region->mr.context)->file != hca_context(pd->context)->file)
		return NULL;
	*error = -EINVAL;
	if (region->own_domain != hca_pd(pd)->domain)
		return NULL;
	mr = calloc(1, sizeof(*mr));
	*error = mr ? 0 : -ENOMEM;
	if (!mr)
		return NULL;
	mr->mr = region->mr;
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->mr.addr = NULL;
	mr->region = region;
	region->handles++;
	return mr;
}

struct hca_mr *hca_mr_import(struct ibv_pd *pd, uint32_t handle, int *error)
{
	struct hca_mr_table *t = &hca_context(pd->context)->process->mrs;
	struct hca_mr *mr;
	uint32_t index;

	*error = hca_command_file_index(hca_context(pd->context)->file, handle, &index);
	if (*error)
		return NULL;
	pthread_mutex_lock(&t->lock);
	mr = handle_to(t, index, pd, error);
	pthread_mutex_unlock(&t->lock);
	return mr;
}

void hca_mr_unimport(struct hca_mr *mr)
{
	struct hca_mr_table *t = &hca_context(mr->mr.context)->process->mrs;

	pthread_mutex_lock(&t->lock);
	give_up(mr);
	pthread_mutex_unlock(&t->lock);
}
