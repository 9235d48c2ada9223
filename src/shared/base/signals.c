/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals and cancellation: see signals.h.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "base/signals.h"

/* Whether it tells of what the thread itself has just done: no call waits meanwhile. */
static bool is_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
	       number == SIGTRAP || number == SIGSYS || number == SIGABRT;
}

bool base_signals_restart(void)
{
	unsigned restarting = 0;
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int n = 1; n < NSIG; n++) {
		struct sigaction act;

		if (is_fault(n) || sigismember(&blocked, n) == 1 || sigaction(n, NULL, &act))
			continue;
		if (act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN)
			continue;
		if (!(act.sa_flags & SA_RESTART))
			return false;
		restarting++;
	}
	return restarting > 0;
}

int base_cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

void base_cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

int base_thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_attr_init(&attr);
	if (stack_bytes)
		pthread_attr_setstacksize(&attr, stack_bytes);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -ret;
}
