/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Extents of shared memory: see extent.h. Ranges are numbered by their first unit.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "shm/extent.h"

#define NONE UINT32_MAX

/* A range, free or in use. Only the entry of its first unit has a meaning. */
struct shm_extent_range {
	uint32_t units;
	uint32_t before; /* the range that ends where this one begins; NONE: this is the first */
	uint32_t next, prev; /* of a free one: in its list */
	bool free;
};

void shm_extents_init(struct shm_extents *e, uint64_t unit, uint64_t from, uint64_t bytes)
{
	memset(e, 0, sizeof(*e));
	e->unit = unit;
	e->from = from;
	e->n_units = (uint32_t)(bytes / unit);
	memset(e->first, 0xFF, sizeof(e->first)); /* NONE */
}

void shm_extents_fini(struct shm_extents *e)
{
	free(e->range);
	memset(e, 0, sizeof(*e));
}

/* ---- lists by size ---- */

struct class
{
	unsigned order, split;
};

/* The list that a range of @units is in. Those of less than SHM_EXTENT_SPLITS have a list each. */
static struct class class_of(uint32_t units)
{
	unsigned order = 31 - (unsigned)__builtin_clz(units), shift;

	if (units < SHM_EXTENT_SPLITS)
		return (struct class){ .order = 0, .split = units };
	shift = order - 4;
	return (struct class){ .order = order - 3, .split = (units >> shift) % SHM_EXTENT_SPLITS };
}

/* The smallest size of a list that is not below @units. */
static uint64_t round_up(uint64_t units)
{
	unsigned order = 63 - (unsigned)__builtin_clzll(units);

	return units < SHM_EXTENT_SPLITS ? units : base_align_up(units, 1ull << (order - 4));
}

static void list_add(struct shm_extents *e, uint32_t i)
{
	struct class c = class_of(e->range[i].units);
	uint32_t *first = &e->first[c.order][c.split];

	e->range[i].free = true;
	e->range[i].prev = NONE;
	e->range[i].next = *first;
	if (*first != NONE)
		e->range[*first].prev = i;
	*first = i;
	e->orders |= 1u << c.order;
	e->splits[c.order] |= (uint16_t)(1u << c.split);
}

static void list_remove(struct shm_extents *e, uint32_t i)
{
	struct shm_extent_range *r = &e->range[i];
	struct class c = class_of(r->units);

	r->free = false;
	if (r->next != NONE)
		e->range[r->next].prev = r->prev;
	if (r->prev != NONE) {
		e->range[r->prev].next = r->next;
		return;
	}
	e->first[c.order][c.split] = r->next;
	if (r->next != NONE)
		return;
	e->splits[c.order] &= (uint16_t) ~(1u << c.split);
	if (!e->splits[c.order])
		e->orders &= ~(1u << c.order);
}

/* A free range of at least @units, which is the smallest size of a list; or NONE. */
static uint32_t find(const struct shm_extents *e, uint32_t units)
{
	struct class c = class_of(units);
	uint32_t splits = e->splits[c.order] & (~0u << c.split), orders;

	if (!splits) {
		orders = e->orders & (~0u << c.order << 1);
		if (!orders)
			return NONE;
		c.order = (unsigned)__builtin_ctz(orders);
		splits = e->splits[c.order];
	}
	return e->first[c.order][__builtin_ctz(splits)];
}

/* ---- ranges ---- */

static int start(struct shm_extents *e)
{
	/* zero pages: only entries that are written use memory */
	e->range = calloc(e->n_units, sizeof(*e->range));
	if (!e->range)
		return -1;
	e->range[0] = (struct shm_extent_range){ .units = e->n_units, .before = NONE };
	list_add(e, 0);
	return 0;
}

/* Makes range @i, which is in no list, @units long. Returns the range of what is left, or NONE. */
static uint32_t split(struct shm_extents *e, uint32_t i, uint32_t units)
{
	uint32_t rest = i + units, after = i + e->range[i].units;

	if (rest == after)
		return NONE;
	e->range[rest] = (struct shm_extent_range){ .units = after - rest, .before = i };
	e->range[i].units = units;
	if (after < e->n_units)
		e->range[after].before = rest;
	return rest;
}

/* Makes one range of @i and the one behind it. Neither is in a list. */
static void merge(struct shm_extents *e, uint32_t i)
{
	uint32_t after = i + e->range[i].units;

	if (e->walk == after)
		e->walk = i;
	e->range[i].units += e->range[after].units;
	after = i + e->range[i].units;
	if (after < e->n_units)
		e->range[after].before = i;
}

uint64_t shm_extent_get(struct shm_extents *e, uint64_t bytes)
{
	uint64_t units;
	uint32_t i, rest;

	if (!bytes || bytes > e->n_units * e->unit || (!e->range && start(e)))
		return 0;
	units = round_up((bytes + e->unit - 1) / e->unit);
	if (units > e->n_units)
		units = (bytes + e->unit - 1) / e->unit; /* nearly all there is */
	i = find(e, (uint32_t)units);
	if (i == NONE || e->range[i].units < units)
		return 0;
	list_remove(e, i);
	rest = split(e, i, (uint32_t)units);
	if (rest != NONE)
		list_add(e, rest);
	e->in_use += units * e->unit;
	return e->from + i * e->unit;
}

static uint32_t range_at(const struct shm_extents *e, uint64_t off)
{
	return (uint32_t)((off - e->from) / e->unit);
}

uint64_t shm_extent_bytes(const struct shm_extents *e, uint64_t off)
{
	return e->range[range_at(e, off)].units * e->unit;
}

void shm_extent_split(struct shm_extents *e, uint64_t off, uint64_t bytes)
{
	split(e, range_at(e, off), (uint32_t)(bytes / e->unit));
}

void shm_extent_put(struct shm_extents *e, uint64_t off)
{
	uint32_t i = range_at(e, off), after = i + e->range[i].units, before = e->range[i].before;

	e->in_use -= e->range[i].units * e->unit;
	if (after < e->n_units && e->range[after].free) {
		list_remove(e, after);
		merge(e, i);
	}
	if (before != NONE && e->range[before].free) {
		list_remove(e, before);
		merge(e, before);
		i = before;
	}
	list_add(e, i);
}

void shm_extent_walk_begin(struct shm_extents *e)
{
	e->walk = e->range || !start(e) ? 0 : e->n_units;
}

bool shm_extent_walk(const struct shm_extents *e, struct shm_extent_range_at *range)
{
	const struct shm_extent_range *r = e->range + e->walk;

	if (e->walk >= e->n_units)
		return false;
	*range = (struct shm_extent_range_at){ .from = e->from + e->walk * e->unit,
		                               .to = e->from + (e->walk + r->units) * e->unit,
		                               .free = r->free };
	return true;
}

void shm_extent_walk_on(struct shm_extents *e)
{
	e->walk += e->range[e->walk].units;
}
