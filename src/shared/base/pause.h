/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between two looks of a loop that waits for another thread or process. Most waits are over within
 * a microsecond, so the first looks follow each other at once. Then the other one may need this
 * processor, and the loop sleeps between looks.
 *
 * No loop waits by sched_yield(): two tasks that wake each other and yield keep their processor for
 * seconds under Linux 6.18, while the daemon and other programs of another session do not run
 * (tools/check-static.sh refuses it). It also gives nothing to a thread of lower priority, which
 * may have what a real-time thread waits for.
 *
 * No cancellation point; errno stays as it is; a signal's handler may call it.
 */
#ifndef BASE_PAUSE_H
#define BASE_PAUSE_H

#include <stdbool.h>

#include "base/fast.h"

/* One look in so many sleeps: 10 us, then twice as long each time, up to 1 ms. */
#define BASE_PAUSE_LOOKS   256
#define BASE_PAUSE_MIN_NS  10000
#define BASE_PAUSE_MOST_NS 1000000

/* One wait: zeroed before it begins. A caller that gives up counts @looks. */
struct base_pause {
	unsigned looks;
};

/* Sleeps at once: for a look that takes microseconds itself, as a system call does. */
BASE_COLD void base_pause_sleep(struct base_pause *p);

/* Returns whether it has slept: then whatever takes longer to find out may be looked at, too. */
static inline bool base_pause(struct base_pause *p)
{
	if (base_likely((p->looks + 1) % BASE_PAUSE_LOOKS)) {
		p->looks++;
		base_relax();
		return false;
	}
	base_pause_sleep(p);
	return true;
}

#endif
