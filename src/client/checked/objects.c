/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of the program: see objects.h.
 */
#include <stdlib.h>

#include "base/util.h"
#include "checked/objects.h"
#include "checked/places.h"

static struct {
	struct base_hash by_address, by_key;
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
	o->entries = how->entries;
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
	if (kind == CHECKED_MR)
		checked_region_change(o, object, how->iova);
	return o;
}

struct checked_object *checked_object_find(enum checked_kind kind, const void *object)
{
	struct base_hash_node *n = base_hash_first(&all.by_address, (uintptr_t)object);

	for (; n; n = base_hash_next(n)) {
		struct checked_object *o = container_of(n, struct checked_object, node);

		if (o->object == object && o->kind == kind)
			return o;
	}
	return NULL;
}

static void forget_key(struct checked_object *o)
{
	if (o->lkey)
		base_hash_remove(&all.by_key, &o->by_key);
	o->lkey = 0;
}

void checked_object_remove(struct checked_object *o)
{
	forget_key(o);
	base_hash_remove(&all.by_address, &o->node);
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

void checked_region_change(struct checked_object *o, const struct ibv_mr *mr, uint64_t iova)
{
	forget_key(o);
	o->start = (uintptr_t)mr->addr;
	o->length = mr->length;
	o->iova = iova;
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

struct checked_object *checked_object_of_qpn(uint32_t qpn)
{
	for (struct base_hash_node *i = base_hash_walk(&all.by_address, NULL); i;
	     i = base_hash_walk(&all.by_address, i)) {
		struct checked_object *o = container_of(i, struct checked_object, node);

		if (o->kind == CHECKED_QP && o->qpn == qpn)
			return o;
	}
	return NULL;
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
	all.by_key = (struct base_hash){ 0 };
}
