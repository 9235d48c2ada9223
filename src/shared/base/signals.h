/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals and cancellation as the kernel's device files behave, for calls of ours that stand for
 * one read() of such a file; and threads that have nothing to do with signals.
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * poll() ends with EINTR whatever handler has run; read() of a device file would go on where
 * SA_RESTART is set. This says what read() would have done: go on if each handler that may have
 * run has SA_RESTART. If some have and some have not, false: the program is prepared for EINTR.
 * Handlers of faults do not count: crash reporters have them, and programs that know of none.
 */
bool base_signals_restart(void);

/*
 * Between these two no cancellation acts on the thread. They return, and are given, the
 * cancellation state before. Around system calls that are made with a lock held: the originals
 * make these by ioctl(), which is no cancellation point.
 */
int base_cancel_off(void);
void base_cancel_restore(int state);

/* Starts a thread that runs no signal handler: signals are the others'. @stack_bytes: 0: as usual.
 * 0 or -errno. */
int base_thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg);

#endif
