/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for a lock: see lock.h.
 */
#include "base/lock.h"
#include "base/pause.h"

void base_lock_wait(struct base_lock *l)
{
	struct base_pause pause = { 0 };

	do {
		while (atomic_load_explicit(&l->taken, memory_order_relaxed))
			base_pause(&pause);
		/* acquire: pairs with the release in base_unlock() */
	} while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire));
}
