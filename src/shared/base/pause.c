/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping between two looks: see pause.h.
 */
#define _GNU_SOURCE /* syscall() */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/pause.h"

#define DOUBLED_MOST 7 /* then it is BASE_PAUSE_MOST_NS */

void base_pause_sleep(struct base_pause *p)
{
	const unsigned slept = p->looks / BASE_PAUSE_LOOKS;
	const struct timespec rest = { .tv_nsec = slept < DOUBLED_MOST ? BASE_PAUSE_MIN_NS << slept
		                                                       : BASE_PAUSE_MOST_NS };
	const int error = errno;

	p->looks = (slept + 1) * BASE_PAUSE_LOOKS;
	/* the C library's functions are cancellation points. A signal may end it early. */
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &rest, NULL);
	errno = error;
}
