/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of the checker: see locked.h.
 */
#include <pthread.h>
#include <time.h>

#include "base/signals.h"
#include "checked/locked.h"
#include "checked/report.h"
#include "checked/tools.h"

#define PATIENCE_NS 200000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of this thread. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

static __thread int cancel_state __attribute__((tls_model("initial-exec")));

/* A thread that is cancelled would keep the lock: no system call is a cancellation point meanwhile.
 * Memory that the checker reads is not reported as a mistake of the program. */
static void begin(int state)
{
	cancel_state = state;
	checked_tools_carry(true);
}

void checked_lock(void)
{
	const int state = base_cancel_off();

	/* from here on a signal handler of this thread does not wait for it */
	is_inside = true;
	pthread_mutex_lock(&lock);
	begin(state);
}

bool checked_lock_soon(void)
{
	const int state = base_cancel_off();
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += PATIENCE_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	is_inside = true;
	is_inside = !pthread_mutex_timedlock(&lock, &until);
	if (is_inside)
		begin(state);
	else
		base_cancel_restore(state);
	return is_inside;
}

bool checked_try_lock(void)
{
	const int state = base_cancel_off();

	is_inside = !pthread_mutex_trylock(&lock);
	if (is_inside)
		begin(state);
	else
		base_cancel_restore(state);
	return is_inside;
}

/* A report waits for locks of others, so the checker's lock is free meanwhile. A signal handler
 * waits for neither. */
void checked_unlock(void)
{
	const int state = cancel_state;
	struct checked_words *w;

	while ((w = checked_report_take())) {
		pthread_mutex_unlock(&lock);
		checked_report_tell(w);
		pthread_mutex_lock(&lock);
		checked_report_told(w);
	}
	checked_tools_carry(false);
	pthread_mutex_unlock(&lock);
	is_inside = false;
	base_cancel_restore(state);
}

bool checked_is_inside(void)
{
	return is_inside;
}
