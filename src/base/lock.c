/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for a lock: see lock.h.
 */
#include <sched.h>

#include "base/lock.h"

#define SPINS 256 /* before the processor is given to somebody else */

void base_lock_wait(struct base_lock *l)
{
	unsigned spins = 0;

	do {
		while (atomic_load_explicit(&l->taken, memory_order_relaxed))
			if (++spins % SPINS)
				base_relax();
			else
				sched_yield();
		/* acquire: pairs with the release in base_unlock() */
	} while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire));
}
