/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting until the program has acknowledged the events of an object that it destroys. A program
 * that never does waits for ever: after a second it is told what it waits for, once, by the log.
 */
#ifndef BASE_ACK_WAIT_H
#define BASE_ACK_WAIT_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log.h"

struct base_ack_wait {
	enum base_log_part part;
	const char *call;        /* that waits */
	const char *acknowledge; /* the call that is missing */
	int missing;             /* events; negative: so many were acknowledged that did not come */
	bool told;
	/* is told, too, that @of waits; or NULL */
	void (*hear)(const void *of, const char *text);
	const void *of;
};

/* Waits as pthread_cond_wait() does, also of those that begin a cancellation point. The mutex is
 * free while the program is told. */
void base_ack_wait(struct base_ack_wait *w, pthread_cond_t *cond, pthread_mutex_t *mutex);

#endif
