/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Eventfds that the daemon shares with processes. A process may fill or drain one at any instant,
 * and change its O_NONBLOCK flag, so that a plain read() or write() could block the daemon for
 * ever. These functions never block for longer than a few milliseconds. The daemon's one thread
 * only: the bound on writing is an interval timer, whose SIGALRM interrupts the write().
 */
#ifndef BASE_EVENTFD_H
#define BASE_EVENTFD_H

#include <stdbool.h>

/* Prepares the process: SIGALRM does nothing but interrupt. Once, before the others. */
void base_eventfd_init(void);

/* Adds 1. False if the eventfd is full: then a thread that waits on it is awake. */
bool base_eventfd_add(int fd);

/* Reads it. False if it was zero. */
bool base_eventfd_drain(int fd);

#endif
