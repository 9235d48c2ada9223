/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of the checker, which holds for all that it knows. A thread that has it may call
 * functions that the checker stands before, as free(3): these ask first.
 */
#ifndef CHECKED_LOCKED_H
#define CHECKED_LOCKED_H

#include <stdbool.h>

void checked_lock(void);
void checked_unlock(void);
bool checked_try_lock(void);
/* Gives up after some time: the caller may have a lock of an allocator, for which the thread waits
 * that has this one. */
bool checked_lock_soon(void);

/* Whether this thread has it. */
bool checked_is_inside(void);

static inline void checked_leave_block(const int *unused)
{
	(void)unused;
	checked_unlock();
}

static inline int checked_enter_block(void)
{
	checked_lock();
	return 0;
}

/* Holds the lock, which the thread has, until the block ends. */
#define HELD __attribute__((cleanup(checked_leave_block), unused)) int held_ = 0

/* Holds the lock until the block ends. */
#define LOCKED \
	__attribute__((cleanup(checked_leave_block), unused)) int held_ = checked_enter_block()

#endif
