/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of the checker: see locked.h.
 */
#include <pthread.h>

#include "base/signals.h"
#include "checked/locked.h"
#include "checked/tools.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of this thread. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));
static __thread int cancel_state __attribute__((tls_model("initial-exec")));

/* System calls with the lock held are no cancellation points, and what the checker reads is no
 * mistake of the program. */
void checked_lock(void)
{
	const int state = base_cancel_off();

	checked_tools_carry(true);
	pthread_mutex_lock(&lock);
	cancel_state = state;
	is_inside = true;
}

bool checked_try_lock(void)
{
	const int state = base_cancel_off();

	is_inside = !pthread_mutex_trylock(&lock);
	if (!is_inside) {
		base_cancel_restore(state);
		return false;
	}
	checked_tools_carry(true);
	cancel_state = state;
	return true;
}

void checked_unlock(void)
{
	const int state = cancel_state;

	is_inside = false;
	pthread_mutex_unlock(&lock);
	checked_tools_carry(false);
	base_cancel_restore(state);
}

bool checked_is_inside(void)
{
	return is_inside;
}
