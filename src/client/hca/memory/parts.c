/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looking up the keys of an end: see parts.h.
 */
#include <infiniband/verbs.h>

#include "hca/memory/parts.h"

static bool is_within(uint64_t at, uint64_t length, uint64_t from, uint64_t to)
{
	return at >= from && at <= to && length <= to - at;
}

static BASE_COLD void join_key(const struct hca_end *end, struct hca_known *k)
{
	k->joined = shm_key_join(k->at, end->user);
	k->length = 0; /* it was that of another serial */
}

bool hca_parts_read_key(struct hca_end *end, uint32_t key, struct shm_reach *reach)
{
	struct hca_known *k = hca_known_of(end, key);

	if (base_unlikely(k->key != key || !k->at)) {
		k->key = key;
		k->joined = 0;
		k->length = 0;
		k->at = shm_key_at(&end->process->region, end->qp.connection.keys_off, key);
	}
	/* a process that has just become a user of the key reads it again */
	for (int tries = 0; tries < 2 && shm_key_read_at(k->at, key, reach); tries++) {
		if (base_likely(atomic_load_explicit(&k->at->serial, memory_order_relaxed) ==
		                k->joined))
			return true;
		join_key(end, k);
	}
	return false;
}

/* Where this process has mapped memory of @end, @length bytes from @at on, which @reach gives
 * access to, that is the key @k; NULL: nowhere. */
static void *mapped_at(const struct hca_end *end, struct hca_known *k,
                       const struct shm_reach *reach, uint64_t at, uint64_t length)
{
	uint64_t from = reach->start, to = reach->start + reach->length;
	const struct hca_mapping *m;

	if (!(reach->access & SHM_KEY_MAPPABLE) || !end->memory)
		return NULL;
	m = hca_memory_map(end->memory, shm_key_object(reach->access));
	/* the other process wrote these: none may wrap */
	if (!m || !is_within(at, length, m->from, m->to))
		return NULL;
	from = from > m->from ? from : m->from;
	to = to < m->to ? to : m->to;
	if (is_within(at, length, from, to))
		hca_known_place(k, from - reach->start, to - from, m->here + (from - m->from));
	return m->here + (at - m->from);
}

/* The address of that memory for this process, if parts->here, which becomes false if it has none;
 * or else for the other one. */
static void *place_at(const struct hca_end *end, struct hca_known *k, const struct shm_reach *reach,
                      uint64_t at, uint64_t length, struct hca_parts *parts)
{
	void *here;

	if (end->is_own) {
		if (base_unlikely(reach->access & IBV_ACCESS_ON_DEMAND))
			parts->here = false; /* nobody knows whether its pages are there */
		else
			hca_known_place(k, 0, reach->length, (char *)(uintptr_t)reach->start);
		return (void *)(uintptr_t)at;
	}
	if (!parts->here)
		return (void *)(uintptr_t)at;
	here = mapped_at(end, k, reach, at, length);
	parts->here = here;
	return here ? here : (void *)(uintptr_t)at;
}

bool hca_parts_is_sound(const struct hca_end *end, uint32_t key, const struct shm_reach *reach)
{
	return !end->is_ours || base_likely(hca_mr_reaches(&end->process->mrs, key, reach));
}

void hca_parts_add(struct hca_end *end, uint32_t key, const struct shm_reach *reach, uint64_t at,
                   uint32_t length, struct hca_parts *parts)
{
	parts->iov[parts->n++] =
	        (struct iovec){ place_at(end, hca_known_of(end, key), reach, at, length, parts),
		                length };
	end->is_far = !end->is_own && !parts->here;
}

/* Reads which memory the entry's key gives access to: *@reach, and *@at, where the entry begins in
 * that memory, unless it is a null region's. False: @end may not have the first @length bytes of it
 * so. */
static bool read_entry(struct hca_end *end, const struct shm_entry *e, uint32_t length,
                       uint32_t access, struct shm_reach *reach, uint64_t *at)
{
	if (base_unlikely(!hca_parts_read_key(end, e->lkey, reach) ||
	                  reach->domain != end->qp.connection.domain ||
	                  (reach->access & access) != access || reach->qpn))
		return false;
	if (base_unlikely(reach->access & SHM_KEY_NULL))
		return true;
	if (base_unlikely(!hca_parts_is_sound(end, e->lkey, reach)))
		return false;
	hca_known_keep(hca_known_of(end, e->lkey), reach);
	return base_likely(shm_reach_addr(reach, e->addr, length, at));
}

/* Other processes may write to the entry meanwhile, so it is read once. */
static struct shm_entry copy_entry(const volatile struct shm_entry *e)
{
	return (struct shm_entry){ .addr = e->addr, .length = e->length, .lkey = e->lkey };
}

bool hca_parts_look_up(struct hca_end *end, const struct shm_entry *entry, uint32_t length,
                       uint32_t access, struct hca_parts *parts)
{
	const struct shm_entry e = copy_entry(entry);
	struct shm_reach reach;
	uint64_t at;

	if (base_unlikely(e.length < length || !read_entry(end, &e, length, access, &reach, &at)))
		return false;
	if (base_unlikely(reach.access & SHM_KEY_NULL)) {
		parts->has_null = true;
		parts->iov[parts->n++] = (struct iovec){ HCA_MEMORY_NULL, length };
		return true;
	}
	hca_parts_add(end, e.lkey, &reach, at, length, parts);
	return true;
}
