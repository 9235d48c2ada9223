/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's priority: that it has its turn soon though programs keep all processors. Linux 6.18
 * runs two tasks that wake each other and call sched_yield() for seconds, and nobody of another
 * session beside them, whatever the nice values: only a real-time task.
 *
 * Where it may (CAP_SYS_NICE or RLIMIT_RTPRIO), the loop's thread runs by SCHED_RR, at the lowest
 * priority of that. Clients can give it much to do, and others need the processor: when it has
 * worked for DAEMON_PRIORITY_WORK_NS it runs like all others for DAEMON_PRIORITY_REST_NS, so it has
 * at most a fifth of a processor before all others. Another thread takes the priority and gives it
 * back: the loop's own may not run meanwhile. Children and other threads never have it.
 */
#ifndef DAEMON_PRIORITY_H
#define DAEMON_PRIORITY_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DAEMON_PRIORITY_WORK_NS 5000000u
#define DAEMON_PRIORITY_REST_NS 20000000u

/* All zero: it was not started, or may not be had. Then the functions do nothing. */
struct daemon_priority {
	bool may;                  /* have it */
	_Atomic bool has;          /* it, or will be given it at once; false: it is used up */
	pid_t tid;                 /* of the loop's thread */
	_Atomic uint64_t since_ns; /* it works, or has the priority */
	uint64_t worked_ns;        /* with the priority, until @since_ns */
	pthread_t giver;           /* the thread that takes the priority and gives it back */
	sem_t is_used_up;          /* for that thread */
	_Atomic bool ends;         /* that thread does */
};

/* By the loop's thread, as the functions below. A process that was made nice stays so. One with
 * RLIMIT_RTTIME, too: the kernel ends it if it works for so long, and rests do not count. */
void daemon_priority_start(struct daemon_priority *p);
void daemon_priority_stop(struct daemon_priority *p);

/* It has slept, and begins to work. */
void daemon_priority_begin(struct daemon_priority *p);

/* Counts as work of @ns what it has just done for programs that can do it without priority. */
void daemon_priority_spend(struct daemon_priority *p, uint64_t ns);

/* It has done some work, and may sleep. */
void daemon_priority_note(struct daemon_priority *p);

#endif
