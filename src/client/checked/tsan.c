/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The card as a thread for ThreadSanitizer: see tools.h. A fiber has the accesses of a queue, in
 * the order of its requests. Behind an access it lets go of the request, which is acquired when the
 * completion is polled: that orders what the fiber did before, and not what is posted later. There
 * may be more queues than fibers, as ThreadSanitizer has room for some thousand threads: then a few
 * queues share one, and some races are not seen. No race is seen where there is none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "checked/places.h"
#include "checked/tools.h"

#define FIBERS  64
#define NO_SYNC 1 /* a switch orders nothing */

static struct {
	void *(*create)(unsigned flags);
	void *(*current)(void);
	void (*to)(void *fiber, unsigned flags);
	void (*name)(void *fiber, const char *name);
	void (*acquire)(void *at), (*release)(void *at);
	void (*read)(void *at, unsigned long bytes), (*write)(void *at, unsigned long bytes);
	void (*enter)(void *caller), (*leave)(void);
	void *card[FIBERS];
	bool runs;
	char messages; /* its address stands for all that are under way */
} tsan;

bool checked_tsan_start(void)
{
	tsan.create = dlsym(RTLD_DEFAULT, "__tsan_create_fiber");
	tsan.current = dlsym(RTLD_DEFAULT, "__tsan_get_current_fiber");
	tsan.to = dlsym(RTLD_DEFAULT, "__tsan_switch_to_fiber");
	tsan.name = dlsym(RTLD_DEFAULT, "__tsan_set_fiber_name");
	tsan.acquire = dlsym(RTLD_DEFAULT, "__tsan_acquire");
	tsan.release = dlsym(RTLD_DEFAULT, "__tsan_release");
	tsan.read = dlsym(RTLD_DEFAULT, "__tsan_read_range");
	tsan.write = dlsym(RTLD_DEFAULT, "__tsan_write_range");
	tsan.enter = dlsym(RTLD_DEFAULT, "__tsan_func_entry");
	tsan.leave = dlsym(RTLD_DEFAULT, "__tsan_func_exit");
	tsan.runs = tsan.create && tsan.current && tsan.to && tsan.name && tsan.acquire &&
	            tsan.release && tsan.read && tsan.write && tsan.enter && tsan.leave;
	return tsan.runs;
}

bool checked_tsan_runs(void)
{
	return tsan.runs;
}

static void *card_of(const struct checked_lent *l)
{
	void **card = &tsan.card[(l->queue / 64 + l->queue % 64) % FIBERS];

	if (!*card) {
		*card = tsan.create(0);
		tsan.name(*card, "the card");
	}
	return *card;
}

static inline void *memory(const struct checked_lent *l)
{
	return (void *)(uintptr_t)l->from;
}

/* In reports these functions stand for cards, above the call that posted the request. The names are
 * for suppressions, too. */
void umbel_the_card(const struct checked_lent *l);
void umbel_the_peers_card(const struct checked_lent *l);

__attribute__((noinline)) void umbel_the_card(const struct checked_lent *l)
{
	(l->is_written ? tsan.write : tsan.read)(memory(l), l->to - l->from);
	__asm__ volatile(""); /* else it would be left before */
}

__attribute__((noinline)) void umbel_the_peers_card(const struct checked_lent *l)
{
	(l->is_written ? tsan.write : tsan.read)(memory(l), l->to - l->from);
	__asm__ volatile("" : : "r"(l)); /* or be one with the other */
}

static void access_by_card(struct checked_lent *l)
{
	void *const *stack;
	const unsigned n = checked_place_stack(l->place, &stack);

	for (unsigned i = n; i > 0; i--)
		tsan.enter(stack[i - 1]);
	if (l->is_peers)
		umbel_the_peers_card(l);
	else
		umbel_the_card(l);
	for (unsigned i = 0; i < n; i++)
		tsan.leave();
}

void checked_tsan_lend(struct checked_lent *l)
{
	void *self, *card;

	if (!tsan.runs)
		return;
	self = tsan.current();
	card = card_of(l);
	tsan.release(l);
	tsan.to(card, NO_SYNC);
	tsan.acquire(l);
	access_by_card(l);
	tsan.release(l);
	if (l->is_peers)
		tsan.release(&tsan.messages);
	tsan.to(self, NO_SYNC);
	l->is_declared = true;
}

void checked_tsan_return(struct checked_lent *l)
{
	if (l->is_declared)
		tsan.acquire(l);
	l->is_declared = false;
}

void checked_tsan_sends(void)
{
	if (tsan.runs)
		tsan.release(&tsan.messages);
}

void checked_tsan_received(void)
{
	if (tsan.runs)
		tsan.acquire(&tsan.messages);
}
