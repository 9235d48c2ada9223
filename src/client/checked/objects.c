/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of the program: see objects.h.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "checked/objects.h"
#include "checked/places.h"

static struct {
	struct base_hash by_address, by_key, by_number;
	uint32_t n[CHECKED_N_KINDS];
	struct checked_ranges memory;   /* of regions */
	_Atomic uint64_t lowest, above; /* all of that lies between */
} all;

const char *checked_kind_name(enum checked_kind kind)
{
#define NAME(id, text) [CHECKED_##id] = (text),
	static const char *const name[] = { CHECKED_KINDS(NAME) };
#undef NAME

	return name[kind];
}

static void describe_qp(struct checked_object *o, const struct checked_made *how)
{
	const struct checked_object *domain = checked_object_find(CHECKED_PD, how->in);

	o->is_in_thread_domain = domain && domain->is_in_thread_domain;
	o->qpn = ((const struct ibv_qp *)o->object)->qp_num;
	o->srq = how->qp->srq;
	o->send_cq = how->qp->send_cq;
	o->recv_cq = how->qp->recv_cq;
	o->max_recv_wr = how->qp->cap.max_recv_wr;
}

static void describe(struct checked_object *o, const struct checked_made *how)
{
	o->place = checked_place(how->caller);
	o->in = how->in;
	o->entries = how->ignores_overrun ? UINT32_MAX : how->entries;
	o->is_single_threaded = how->is_single_threaded;
	o->is_in_thread_domain = how->is_in_thread_domain;
	if (how->ah)
		o->ah = *how->ah;
	o->mbps = how->mbps;
	o->is_group = how->is_group;
	if (how->qp)
		describe_qp(o, how);
}

struct checked_object *checked_object_add(enum checked_kind kind, void *object,
                                          const struct checked_made *how)
{
	struct checked_object *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->kind = kind;
	o->object = object;
	describe(o, how);
	if (base_hash_add(&all.by_address, &o->node, (uintptr_t)object)) {
		free(o);
		return NULL;
	}
	all.n[kind]++;
	if (kind == CHECKED_MR)
		checked_region_change(o, object, how);
	if (kind == CHECKED_QP)
		o->is_numbered = !base_hash_add(&all.by_number, &o->by_key, o->qpn);
	return o;
}

struct checked_object *checked_object_find(enum checked_kind kind, const void *object)
{
	struct checked_object *o;

	BASE_HASH_FOREACH(o, &all.by_address, (uintptr_t)object, node)
		if (o->object == object && o->kind == kind)
			return o;
	return NULL;
}

static void forget_key(struct checked_object *o)
{
	if (o->lkey)
		base_hash_remove(&all.by_key, &o->by_key);
	o->lkey = 0;
}

static void forget_memory(struct checked_object *o)
{
	if (o->range.to)
		checked_ranges_remove(&all.memory, &o->range);
	if (!all.memory.root)
		all.above = 0;
	o->range.to = 0;
	free(o->moved);
	o->moved = NULL;
	o->n_moved = 0;
}

/* Null regions, device memory and all of the address space have no addresses of their own. */
static void note_memory(struct checked_object *o)
{
	if (!o->start || !o->length || o->length > UINT64_MAX - o->start)
		return;
	o->range.from = o->start;
	o->range.to = o->start + o->length;
	if (!all.memory.root || o->range.from < all.lowest)
		all.lowest = o->range.from;
	if (!all.memory.root || o->range.to > all.above)
		all.above = o->range.to;
	checked_ranges_add(&all.memory, &o->range);
}

bool checked_regions_near(uint64_t from, uint64_t to)
{
	return from < atomic_load_explicit(&all.above, memory_order_relaxed) &&
	       to > atomic_load_explicit(&all.lowest, memory_order_relaxed);
}

void checked_object_remove(struct checked_object *o)
{
	forget_key(o);
	forget_memory(o);
	base_hash_remove(&all.by_address, &o->node);
	if (o->is_numbered)
		base_hash_remove(&all.by_number, &o->by_key);
	all.n[o->kind]--;
	o->is_gone = true;
	if (!o->uses)
		free(o);
}

struct checked_object *checked_object_use(struct checked_object *o)
{
	if (o)
		o->uses++;
	return o;
}

void checked_object_leave(struct checked_object *o)
{
	if (o && !--o->uses && o->is_gone)
		free(o);
}

void checked_region_change(struct checked_object *o, const struct ibv_mr *mr,
                           const struct checked_made *how)
{
	forget_key(o);
	forget_memory(o);
	o->start = (uintptr_t)mr->addr;
	o->length = mr->length;
	o->iova = how->iova;
	o->is_on_demand = how->access & IBV_ACCESS_ON_DEMAND;
	o->is_remote = how->access &
	               (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	note_memory(o);
	if (!base_hash_add(&all.by_key, &o->by_key, mr->lkey))
		o->lkey = mr->lkey;
}

struct checked_object *checked_region_find(uint32_t lkey)
{
	struct base_hash_node *n = base_hash_first(&all.by_key, lkey);

	while (n && container_of(n, struct checked_object, by_key)->lkey != lkey)
		n = base_hash_next(n);
	return n ? container_of(n, struct checked_object, by_key) : NULL;
}

bool checked_region_place(const struct checked_object *region, const struct ibv_sge *sge,
                          uint64_t *from)
{
	const uint64_t at = sge->addr - region->iova;

	if (sge->addr < region->iova || at > region->length || sge->length > region->length - at)
		return false;
	*from = region->start + at;
	return true;
}

static bool depends(const struct checked_object *o, const void *on)
{
	return o->in == on || o->srq == on || o->send_cq == on || o->recv_cq == on;
}

uint32_t checked_objects_on(enum checked_kind kind, const void *object, uint32_t *place)
{
	uint32_t n = 0;

	for (struct base_hash_node *i = base_hash_walk(&all.by_address, NULL); i;
	     i = base_hash_walk(&all.by_address, i)) {
		const struct checked_object *o = container_of(i, struct checked_object, node);

		if (o->kind != kind || !depends(o, object))
			continue;
		*place = o->place;
		n++;
	}
	return n;
}

static struct checked_object *queue_pair_of(struct base_hash_node *n, uint32_t qpn)
{
	while (n && container_of(n, struct checked_object, by_key)->qpn != qpn)
		n = base_hash_next(n);
	return n ? container_of(n, struct checked_object, by_key) : NULL;
}

struct checked_object *checked_object_of_qpn(uint32_t qpn)
{
	return queue_pair_of(base_hash_first(&all.by_number, qpn), qpn);
}

static struct checked_object *region_of(struct checked_range *r)
{
	return r ? container_of(r, struct checked_object, range) : NULL;
}

struct checked_object *checked_region_first(uint64_t from, uint64_t to)
{
	return region_of(checked_ranges_first(&all.memory, from, to));
}

struct checked_object *checked_region_next(const struct checked_object *o, uint64_t from,
                                           uint64_t to)
{
	return region_of(checked_ranges_next(&o->range, from, to));
}

struct checked_object *checked_queue_pair_find(uint32_t qpn, uint32_t remote_qpn)
{
	struct checked_object *o = checked_object_of_qpn(qpn);

	while (o && o->remote_qpn != remote_qpn)
		o = queue_pair_of(base_hash_next(&o->by_key), qpn);
	return o;
}

uint32_t checked_objects_count(enum checked_kind kind)
{
	return all.n[kind];
}

uint32_t checked_objects_left(enum checked_kind kind, uint32_t *place)
{
	uint32_t n = 0;

	for (struct base_hash_node *i = base_hash_walk(&all.by_address, NULL); i;
	     i = base_hash_walk(&all.by_address, i)) {
		const struct checked_object *o = container_of(i, struct checked_object, node);

		if (o->kind != kind)
			continue;
		*place = o->place;
		n++;
	}
	return n;
}

void checked_objects_forget(void)
{
	all.by_address = (struct base_hash){ 0 };
	all.by_key = all.by_number = (struct base_hash){ 0 };
	memset(all.n, 0, sizeof(all.n));
	all.memory = (struct checked_ranges){ 0 };
	all.above = 0;
}
