/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of the checker: see locked.h.
 */
#include <pthread.h>

#include "checked/locked.h"
#include "checked/tools.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of this thread. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

/* What the checker reads is no mistake of the program. */
void checked_lock(void)
{
	checked_tools_carry(true);
	pthread_mutex_lock(&lock);
	is_inside = true;
}

bool checked_try_lock(void)
{
	is_inside = !pthread_mutex_trylock(&lock);
	if (is_inside)
		checked_tools_carry(true);
	return is_inside;
}

void checked_unlock(void)
{
	is_inside = false;
	pthread_mutex_unlock(&lock);
	checked_tools_carry(false);
}

bool checked_is_inside(void)
{
	return is_inside;
}
