/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parts of an end's memory: where that lies which scatter and gather entries name, once the end's
 * keys have been looked at.
 */
#ifndef HCA_PARTS_H
#define HCA_PARTS_H

#include <infiniband/verbs.h>

#include "hca/memory/end.h"
#include "hca/process/operation.h"

struct hca_parts {
	struct iovec iov[HCA_MAX_SGE];
	unsigned n;
	bool has_null; /* one of them is HCA_MEMORY_NULL */
	bool here;     /* the addresses are this process's: its own, or where it has mapped them */
};

/* Reads which memory @key gives access to: *@reach. The first time it joins the key
 * (shm_key_join()), so that the key's owner knows who uses it. False: the key names nothing. */
bool hca_parts_read_key(struct hca_end *end, uint32_t key, struct shm_reach *reach);

/* Whether the regions of the end's process agree with @reach: other processes can write to the
 * memory that its keys lie in. */
bool hca_parts_is_sound(const struct hca_end *end, uint32_t key, const struct shm_reach *reach);

/*
 * Adds @length bytes from @at on, which @key gives access to as @reach says. The part lies in this
 * process if parts->here, which becomes false if it does not.
 */
void hca_parts_add(struct hca_end *end, uint32_t key, const struct shm_reach *reach, uint64_t at,
                   uint32_t length, struct hca_parts *parts);

/* The first @length bytes of the entry are added, once its key is looked up. False: the end may not
 * have them so. */
bool hca_parts_look_up(struct hca_end *end, const struct shm_entry *entry, uint32_t length,
                       uint32_t access, struct hca_parts *parts);

/* Adds the first @length bytes of the entry. False: the end may not have them so. The bytes behind
 * them are not looked at: a receive may reach beyond its region. */
static BASE_HOT bool hca_parts_add_entry(struct hca_end *end, const struct shm_entry *e,
                                         uint32_t length, uint32_t access, struct hca_parts *parts)
{
	void *here = hca_known_at(end, e->lkey, e->addr, length, access);

	if (base_unlikely(!here || !parts->here))
		return hca_parts_look_up(end, e, length, access, parts);
	parts->iov[parts->n++] = (struct iovec){ here, length };
	return true;
}

/* The first @length bytes of @n entries; entries behind them do not matter. False: the end may not
 * have them so. */
static BASE_HOT bool hca_parts_add_entries(struct hca_end *end, const struct shm_entry *e,
                                           unsigned n, uint32_t length, uint32_t access,
                                           struct hca_parts *parts)
{
	parts->n = 0;
	parts->has_null = false;
	for (unsigned i = 0; i < n && length; i++) {
		uint32_t part = e[i].length < length ? e[i].length : length;

		if (part && !hca_parts_add_entry(end, &e[i], part, access, parts))
			return false;
		length -= part;
	}
	return true;
}

/* The same, at addresses of one kind: in this process if all of it is mapped here. */
static BASE_HOT bool hca_parts_find(struct hca_end *end, const struct shm_entry *e, unsigned n,
                                    uint32_t length, uint32_t access, struct hca_parts *parts)
{
	parts->here = true;
	if (!hca_parts_add_entries(end, e, n, length, access, parts))
		return false;
	/* an address of each kind could be among them */
	return base_likely(parts->here || parts->n == 1) ||
	       hca_parts_add_entries(end, e, n, length, access, parts);
}

/* The memory of a requester that its request @r names: its scatter entries @e, or its inline data,
 * which lies in this process, as entries that need no key. False: it may not have it so. */
static BASE_HOT bool hca_parts_of_request(struct hca_end *end, const struct shm_request *r,
                                          const struct shm_entry *e, uint32_t access,
                                          struct hca_parts *parts)
{
	if (!(r->flags & IBV_SEND_INLINE))
		return hca_parts_find(end, e, r->n_entries, r->length, access, parts);
	parts->has_null = false;
	parts->here = true;
	parts->n = r->n_entries;
	for (unsigned i = 0; i < r->n_entries; i++)
		parts->iov[i] = (struct iovec){ (void *)(uintptr_t)e[i].addr, e[i].length };
	return true;
}

static inline struct hca_span hca_parts_span(const struct hca_end *end, struct hca_parts *parts)
{
	if (!parts->here)
		hca_memory_ask_by(end->memory, &end->qp);
	return (struct hca_span){ .memory = parts->here ? NULL : end->memory,
		                  .iov = parts->iov,
		                  .n = parts->n };
}

/* @length bytes of this thread's own. */
static BASE_HOT void hca_parts_here(struct hca_parts *parts, void *at, uint32_t length)
{
	parts->iov[0] = (struct iovec){ at, length };
	parts->n = 1;
	parts->has_null = false;
	parts->here = true;
}

/* Whether it is one piece of this process. Its length is looked at: entries that others wrote may
 * name less than the request does. */
static BASE_HOT bool hca_parts_is_one_here(const struct hca_parts *parts, uint32_t length)
{
	return base_likely(parts->here && parts->n == 1 && !parts->has_null &&
	                   parts->iov[0].iov_len >= length);
}

/* Copies @length bytes between two ends. 0 or as hca_memory_copy(). */
static BASE_HOT int hca_parts_copy(const struct hca_end *to_end, struct hca_parts *to,
                                   const struct hca_end *from_end, struct hca_parts *from,
                                   uint32_t length)
{
	struct hca_span target, source;

	if (hca_parts_is_one_here(to, length) && hca_parts_is_one_here(from, length)) {
		hca_memory_copy_here(to->iov[0].iov_base, from->iov[0].iov_base, length);
		return 0;
	}
	target = hca_parts_span(to_end, to);
	source = hca_parts_span(from_end, from);
	return hca_memory_copy(&target, &source, length);
}

#endif
