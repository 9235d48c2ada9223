/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of the machine's processors are a host's: each host has so many, in turn, by the affinity
 * of its programs (sched_setaffinity(2)). It takes no privilege, and leaves nothing behind.
 */
#ifndef HOSTS_PROCESSORS_H
#define HOSTS_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* @n processors of @all, both of @bytes, for host number @host; all, if there are no more.
 * Neighbours share none as long as there are enough. */
void hosts_processors_pick(const cpu_set_t *all, size_t bytes, unsigned host, unsigned n,
                           cpu_set_t *own);

/* Limits this process, and whatever it starts, to @n processors for host number @host; 0: to none.
 * @was_on_host: it may be limited already, to those of another one. 0 or -errno. */
int hosts_processors_limit(unsigned host, unsigned n, bool was_on_host);

#endif
