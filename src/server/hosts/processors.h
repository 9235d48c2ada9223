/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of the machine's processors are a host's: each host has so many, in turn, by the affinity
 * of its programs (sched_setaffinity(2)). It takes no privilege, and leaves nothing behind.
 */
#ifndef HOSTS_PROCESSORS_H
#define HOSTS_PROCESSORS_H

#include <stdbool.h>

/* @n of those of the @n_all processors that are in @all, for host number @host, in @own; all, if
 * there are no more. Neighbours share none as long as there are enough. */
void hosts_processors_pick(const bool *all, unsigned n_all, unsigned host, unsigned n, bool *own);

/* Limits this process, and whatever it starts, to @n processors for host number @host; 0: to none.
 * @was_on_host: the process may already be limited to the processors of another host. 0 or -errno.
 */
int hosts_processors_limit(unsigned host, unsigned n, bool was_on_host);

#endif
