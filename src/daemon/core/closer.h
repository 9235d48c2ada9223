/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closes descriptors that came from clients. One may be the last of a large file in memory: the
 * kernel takes its pages back before close(2) returns, which takes a quarter of a second for a
 * gigabyte. So a thread closes those, and nobody waits for it; it begins with the first one.
 */
#ifndef DAEMON_CLOSER_H
#define DAEMON_CLOSER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* All zero: there is no thread yet. */
struct daemon_closer {
	bool runs;
	pthread_t thread;
	int queue[2];            /* a pipe, of descriptors' numbers */
	_Atomic unsigned closed; /* by the thread, ever */
};

void daemon_closer_close(struct daemon_closer *c, int fd);

/* Waits until all are closed. */
void daemon_closer_fini(struct daemon_closer *c);

#endif
