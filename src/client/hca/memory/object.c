/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding and publishing memory objects: see object.h.
 */
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "base/signals.h"
#include "base/util.h"
#include "hca/memory/adopt.h"
#include "hca/memory/object.h"
#include "hca/process/maps.h"
#include "hca/process/plain.h"
#include "hca/process/process.h"

uint64_t hca_object_space(void)
{
	struct stat s;

	return stat("/proc/self/ns/ipc", &s) ? 0 : s.st_ino;
}

uint32_t hca_object_access(const struct hca_process *p, const struct hca_object *object)
{
	if (!object)
		return 0;
	return SHM_KEY_MAPPABLE | (uint32_t)(object - p->mrs.objects) << SHM_KEY_OBJECT_SHIFT;
}

static bool is_free(const struct hca_object *object)
{
	return !object->regions && !object->is_adopted;
}

/* @adopts: it is to have memory of the file. */
static struct hca_object *find_free(struct hca_process *p, bool adopts)
{
	for (unsigned i = 0; i < SHM_OBJECTS; i++)
		if (is_free(&p->mrs.objects[i]) && !(adopts && hca_adopt_is_spent(i)))
			return &p->mrs.objects[i];
	return NULL;
}

/* Has the processes of peers see the object. */
static void publish(struct hca_process *p, const struct hca_object *object)
{
	struct shm_keys *keys = shm_payload_at(&p->region, p->mrs.keys_off, sizeof(*keys));
	struct shm_object *o = &keys->objects[object - p->mrs.objects];
	uint32_t serial = atomic_load_explicit(&o->serial, memory_order_relaxed);

	o->kind = object->o.kind;
	o->from = object->o.from;
	o->to = object->o.to;
	o->offset = object->o.offset;
	o->space = object->o.space;
	o->id = object->o.id;
	/* release: pairs with the acquire in hca_memory_map() */
	atomic_store_explicit(&o->serial, serial + 1, memory_order_release);
}

static struct hca_object *add(struct hca_process *p, const struct shm_object *o)
{
	struct hca_object *object = find_free(p, false);

	if (!object)
		return NULL;
	object->o = *o;
	object->regions = 1;
	publish(p, object);
	return object;
}

/* ---- System V segments ---- */

/* Whether the identifier names that segment in this IPC namespace: attached again, it is of the
 * same file system. The process may have attached it in another namespace. */
static bool is_named(const struct hca_vma *v)
{
	void *again = shmat((int)v->inode, NULL, SHM_RDONLY);
	struct hca_vma other;
	bool same;

	if (again == (void *)-1)
		return false;
	same = hca_maps_find((uintptr_t)again, &other) && other.device == v->device &&
	       other.inode == v->inode;
	shmdt(again);
	return same;
}

/* Whether @v is of a segment: the kernel names it by its key, and has its identifier as the inode.
 */
static bool is_segment(const struct hca_vma *v)
{
	return v->shared && !strncmp(v->name, "/SYSV", 5) && v->inode <= INT32_MAX;
}

static struct hca_object *find_segment(struct hca_process *p, const struct shm_object *o)
{
	struct hca_object *object;

	for (unsigned i = 0; i < SHM_OBJECTS; i++) {
		object = &p->mrs.objects[i];
		if (object->regions && object->o.kind == SHM_OBJECT_SYSV && object->o.id == o->id &&
		    object->o.from == o->from && object->o.to == o->to &&
		    object->o.offset == o->offset)
			return object;
	}
	return NULL;
}

/* The device of all segments that have ordinary pages; 0: there was no segment to be had. */
static uint64_t ordinary_device(void)
{
	static _Atomic uint64_t known;
	uint64_t device = atomic_load_explicit(&known, memory_order_relaxed);
	struct hca_vma v;
	void *at;
	int id;

	if (device)
		return device;
	id = shmget(IPC_PRIVATE, HCA_PAGE, IPC_CREAT | 0600);
	at = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	if (at == (void *)-1)
		return 0;
	if (hca_maps_find((uintptr_t)at, &v))
		device = v.device;
	shmdt(at);
	atomic_store_explicit(&known, device, memory_order_relaxed);
	return device;
}

bool hca_object_is_huge(const struct hca_vma *v)
{
	const uint64_t device = ordinary_device();

	return device ? v->device != device : hca_maps_has_flag(v->from, "ht");
}

static struct hca_object *get_segment(struct hca_process *p, uint64_t from, uint64_t to)
{
	struct hca_object *object;
	struct shm_object o = { .kind = SHM_OBJECT_SYSV };
	struct hca_vma v;

	if (!hca_maps_find(from, &v) || v.to < to || !is_segment(&v))
		return NULL;
	o.from = v.from;
	o.to = v.to;
	o.offset = v.offset;
	o.id = (uint32_t)v.inode;
	o.space = hca_object_space();
	object = find_segment(p, &o);
	if (object)
		object->regions++;
	else if (is_named(&v) && !hca_object_is_huge(&v))
		object = add(p, &o);
	return object;
}

/* ---- adopted memory ---- */

/* The adopted object that all of the memory lies in. */
static struct hca_object *find_adopted(struct hca_process *p, uint64_t from, uint64_t to)
{
	struct hca_object *object;

	for (unsigned i = 0; i < SHM_OBJECTS; i++) {
		object = &p->mrs.objects[i];
		if (object->is_adopted && from >= object->o.from && to <= object->o.to)
			return object;
	}
	return NULL;
}

static struct hca_object *adopt(struct hca_process *p, uint64_t from, uint64_t to)
{
	struct hca_object *object = find_free(p, true);
	unsigned slot;

	if (!object)
		return NULL;
	slot = (unsigned)(object - p->mrs.objects);
	if (!hca_adopt(p, slot, from, to))
		return NULL;
	object->o = (struct shm_object){ .kind = SHM_OBJECT_ADOPTED,
		                         .from = from,
		                         .to = to,
		                         .offset = hca_adopt_offset(slot, from) };
	object->regions = 1;
	object->is_adopted = true;
	publish(p, object);
	return object;
}

static struct hca_object *get_adopted(struct hca_process *p, uint64_t from, uint64_t to)
{
	struct hca_object *object = find_adopted(p, from, to);

	if (!object)
		return NULL;
	/* the program may have mapped something else there */
	if (!hca_adopt_is_there((unsigned)(object - p->mrs.objects), from, to))
		return NULL;
	object->regions++;
	return object;
}

/* ---- all ---- */

static struct hca_object *find(struct hca_process *p, const void *start, size_t length)
{
	uint64_t from = (uintptr_t)start, to = from + length;
	uint64_t first = base_align_up(from, HCA_PAGE), last = to & ~(HCA_PAGE - 1);
	struct hca_object *object = NULL;

	if (first < last)
		object = get_adopted(p, first, last);
	if (object)
		return object;
	if (hca_plain_is_shared(from & ~(HCA_PAGE - 1)))
		return get_segment(p, from, to);
	return first < last ? adopt(p, first, last) : NULL;
}

/* Whether adopted memory could be given back, as far as regions go. */
static bool is_waiting(struct hca_process *p, const struct hca_object *object)
{
	return object->is_adopted && !object->regions &&
	       !hca_mr_overlaps(&p->mrs, object->o.from, object->o.to);
}

static void settle(struct hca_process *p)
{
	bool is_alone = false, asked = false;

	for (unsigned i = 0; i < SHM_OBJECTS && hca_adopt_any(); i++) {
		struct hca_object *object = &p->mrs.objects[i];

		if (!is_waiting(p, object))
			continue;
		if (!asked && hca_plain_pinned())
			return;
		is_alone = asked ? is_alone : hca_plain_alone();
		asked = true;
		object->is_adopted = !hca_adopt_end(i, is_alone);
	}
}

void hca_object_settle(struct hca_process *p)
{
	int cancel_state = base_cancel_off();

	settle(p);
	base_cancel_restore(cancel_state);
}

struct hca_object *hca_object_get(struct hca_process *p, const void *start, size_t length)
{
	struct hca_object *object = NULL;
	int cancel_state = base_cancel_off();

	settle(p);
	if (length)
		object = find(p, start, length);
	base_cancel_restore(cancel_state);
	return object;
}

void hca_object_put(struct hca_process *p, struct hca_object *object)
{
	object->regions--;
	hca_object_settle(p);
}
