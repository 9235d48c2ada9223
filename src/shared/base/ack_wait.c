/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for acknowledgements: see ack_wait.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/ack_wait.h"

static void tell(struct base_ack_wait *w)
{
	const int n = abs(w->missing);
	char text[256];

	w->told = true;
	if (w->missing < 0)
		snprintf(text, sizeof(text),
		         "%s() waits: %d event%s more than came %s acknowledged: %s() is called "
		         "once for each",
		         w->call, n, n == 1 ? "" : "s", n == 1 ? "was" : "were", w->acknowledge);
	else
		snprintf(text, sizeof(text),
		         "%s() waits until %d event%s acknowledged: %s() for each event that the "
		         "program got",
		         w->call, n, n == 1 ? " is" : "s are", w->acknowledge);
	if (base_log_level_of[w->part] >= BASE_LOG_WARNING)
		base_log_write(w->part, BASE_LOG_WARNING, "%s", text);
	if (w->hear)
		w->hear(w->of, text);
}

void base_ack_wait(struct base_ack_wait *w, pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct timespec until;

	if (w->told || (!w->hear && base_log_level_of[w->part] < BASE_LOG_WARNING)) {
		pthread_cond_wait(cond, mutex);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT)
		return;
	pthread_mutex_unlock(mutex);
	tell(w);
	pthread_mutex_lock(mutex);
}
