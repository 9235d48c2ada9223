/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranges that may overlap: see ranges.h.
 */
#include <stddef.h>

#include "checked/ranges.h"

static void update(struct checked_range *r)
{
	r->furthest = r->to;
	if (r->left && r->left->furthest > r->furthest)
		r->furthest = r->left->furthest;
	if (r->right && r->right->furthest > r->furthest)
		r->furthest = r->right->furthest;
}

/* The pointer that points at @r. */
static struct checked_range **link_of(struct checked_ranges *all, struct checked_range *r)
{
	if (!r->parent)
		return &all->root;
	return r->parent->left == r ? &r->parent->left : &r->parent->right;
}

/* Has @child, which is below @r, change places with it. */
static void rotate(struct checked_ranges *all, struct checked_range *r, struct checked_range *child)
{
	const int is_left = r->left == child;
	struct checked_range *middle = is_left ? child->right : child->left;

	*link_of(all, r) = child;
	child->parent = r->parent;
	r->parent = child;
	if (is_left) {
		r->left = middle;
		child->right = r;
	} else {
		r->right = middle;
		child->left = r;
	}
	if (middle)
		middle->parent = r;
	update(r);
	update(child);
}

static uint32_t draw(struct checked_ranges *all)
{
	all->seed = all->seed * 1664525 + 1013904223;
	return all->seed >> 1;
}

void checked_ranges_add(struct checked_ranges *all, struct checked_range *r)
{
	struct checked_range **link = &all->root, *parent = NULL;

	while (*link) {
		parent = *link;
		link = r->from < parent->from ? &parent->left : &parent->right;
	}
	*link = r;
	r->parent = parent;
	r->left = r->right = NULL;
	r->priority = draw(all);
	update(r);
	while (r->parent && r->parent->priority < r->priority)
		rotate(all, r->parent, r);
	for (; parent; parent = parent->parent)
		update(parent);
	for (parent = r->parent; parent; parent = parent->parent)
		update(parent);
}

void checked_ranges_remove(struct checked_ranges *all, struct checked_range *r)
{
	struct checked_range *parent;

	while (r->left || r->right) {
		if (!r->right || (r->left && r->left->priority > r->right->priority))
			rotate(all, r, r->left);
		else
			rotate(all, r, r->right);
	}
	*link_of(all, r) = NULL;
	for (parent = r->parent; parent; parent = parent->parent)
		update(parent);
}

/* The first one at or below @r. */
static struct checked_range *first_below(struct checked_range *r, uint64_t from, uint64_t to)
{
	while (r && r->furthest > from) {
		if (r->left && r->left->furthest > from)
			r = r->left;
		else if (r->from < to && r->to > from)
			return r;
		else if (r->from >= to)
			return NULL;
		else
			r = r->right;
	}
	return NULL;
}

struct checked_range *checked_ranges_first(const struct checked_ranges *all, uint64_t from,
                                           uint64_t to)
{
	return first_below(all->root, from, to);
}

struct checked_range *checked_ranges_next(const struct checked_range *r, uint64_t from, uint64_t to)
{
	struct checked_range *next = first_below(r->right, from, to);
	const struct checked_range *below;

	while (!next && r->parent) {
		below = r;
		r = r->parent;
		if (below == r->right)
			continue;
		if (r->from >= to)
			return NULL;
		if (r->to > from)
			return (struct checked_range *)r;
		next = first_below(r->right, from, to);
	}
	return next;
}
