/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timers in a pairing heap: a tree of timers whose parents are due before their children. A
 * timer knows the pointer that points at it, so that it can be taken out wherever it is.
 */
#include "base/timer.h"

#include <stddef.h>

void base_timers_init(struct base_timers *timers, const struct base_clock *clock)
{
	*timers = (struct base_timers){ .clock = *clock, .asked_ns = BASE_TIMER_NEVER };
}

/* ---- the heap ---- */

static bool is_before(const struct base_timer *a, const struct base_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

/* Puts @t in front of the list that begins at @head. */
static void link_first(struct base_timer **head, struct base_timer *t)
{
	t->next = *head;
	t->link = head;
	if (t->next)
		t->next->link = &t->next;
	*head = t;
}

static void unlink_timer(struct base_timer *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	t->next = NULL;
}

/* Makes one heap of two; either may be NULL. Their roots are on no list. */
static struct base_timer *meld(struct base_timer *a, struct base_timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (is_before(b, a)) {
		struct base_timer *swap = a;

		a = b;
		b = swap;
	}
	link_first(&a->child, b);
	return a;
}

/* The first heap of a list, which becomes shorter; NULL if the list is empty. */
static struct base_timer *pop(struct base_timer **list)
{
	struct base_timer *t = *list;

	if (t)
		unlink_timer(t);
	return t;
}

/* Makes one heap of a list of them: of each two at first, then of all. */
static struct base_timer *meld_all(struct base_timer *list)
{
	struct base_timer *pairs = NULL, *all = NULL, *pair;

	if (list)
		list->link = &list; /* the parent that pointed here is going */
	while (list) {
		struct base_timer *first = pop(&list), *second = pop(&list);

		link_first(&pairs, meld(first, second));
	}
	while ((pair = pop(&pairs)))
		all = meld(all, pair);
	return all;
}

static void set_root(struct base_timers *timers, struct base_timer *root)
{
	timers->root = root;
	if (root)
		root->link = &timers->root;
}

/* ---- setting ---- */

static void ask_to_wake(struct base_timers *timers)
{
	uint64_t next = base_timers_next(timers);

	if (next >= timers->asked_ns || !timers->clock.wake)
		return;
	timers->asked_ns = next;
	timers->clock.wake(timers->clock.arg, next);
}

void base_timer_set(struct base_timers *timers, struct base_timer *t, uint64_t at_ns,
                    void (*due)(struct base_timer *t))
{
	base_timer_stop(t);
	*t = (struct base_timer){
		.due_ns = at_ns, .due = due, .timers = timers, .serial = timers->serial++
	};
	set_root(timers, meld(timers->root, t));
	ask_to_wake(timers);
}

void base_timer_set_in(struct base_timers *timers, struct base_timer *t, uint64_t ns,
                       void (*due)(struct base_timer *t))
{
	uint64_t now = base_timers_now(timers);

	base_timer_set(timers, t, ns < BASE_TIMER_NEVER - now ? now + ns : BASE_TIMER_NEVER - 1,
	               due);
}

void base_timer_set_beat(struct base_timers *timers, struct base_timer *t, uint64_t period,
                         void (*due)(struct base_timer *t))
{
	uint64_t now = base_timers_now(timers);

	base_timer_set_in(timers, t, period - now % period, due);
}

void base_timer_set_sooner(struct base_timers *timers, struct base_timer *t, uint64_t at_ns,
                           void (*due)(struct base_timer *t))
{
	if (!base_timer_is_set(t) || at_ns < t->due_ns)
		base_timer_set(timers, t, at_ns, due);
}

void base_timer_stop(struct base_timer *t)
{
	struct base_timers *timers = t->timers;
	struct base_timer *children;

	if (!timers)
		return;
	unlink_timer(t);
	children = meld_all(t->child);
	t->child = NULL;
	t->timers = NULL;
	set_root(timers, meld(timers->root, children));
}

/* ---- running ---- */

struct base_timer *base_timers_take(struct base_timers *timers, uint64_t now_ns)
{
	struct base_timer *t = timers->root;

	if (!t || t->due_ns > now_ns)
		return NULL;
	base_timer_stop(t);
	return t;
}

void base_timers_run(struct base_timers *timers)
{
	const uint64_t now = base_timers_now(timers), serial = timers->serial;
	struct base_timer *t;

	while ((t = timers->root) && t->due_ns <= now && t->serial < serial) {
		base_timer_stop(t);
		t->due(t);
		if (base_timers_now(timers) - now >= BASE_TIMERS_TURN_NS)
			break;
	}
	timers->asked_ns = BASE_TIMER_NEVER;
	ask_to_wake(timers);
}
