/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A lock for short sections within one process: spins a little, then sleeps between
 * looks (pause.h). Free while the process has a single thread. Never in shared memory:
 * a lock that a dead process can hold is no lock.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/fast.h"

#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#else
/* of the C library that the program runs with, if that is newer than the one it was built with */
extern char __libc_single_threaded __attribute__((weak));
#endif

struct base_lock {
	atomic_uint taken;
};

/* Whether it is known that nobody is there to lock out. */
static inline bool base_is_alone(void)
{
#if !__GLIBC_PREREQ(2, 32)
	if (!&__libc_single_threaded)
		return false;
#endif
	return __libc_single_threaded;
}

/* base_lock() of a lock that somebody holds. */
BASE_COLD void base_lock_wait(struct base_lock *l);

static inline void base_lock(struct base_lock *l)
{
	if (base_is_alone()) /* nobody to lock out, and nobody comes while we hold it */
		return;
	/* acquire: pairs with the release in base_unlock() */
	if (base_unlikely(atomic_exchange_explicit(&l->taken, 1, memory_order_acquire)))
		base_lock_wait(l);
}

/* Whether it was free; then it is the caller's. */
static inline bool base_trylock(struct base_lock *l)
{
	/* acquire: as in base_lock() */
	return base_is_alone() || !atomic_exchange_explicit(&l->taken, 1, memory_order_acquire);
}

static inline void base_unlock(struct base_lock *l)
{
	atomic_store_explicit(&l->taken, 0, memory_order_release);
}

#endif
