/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits of tests that end by themselves: see deadline.h.
 */
#include "deadline.h"
#include "harness.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#define SECONDS 20
#define AGAIN   5 /* once one was in vain: the program has failed */
#define LOOK \
	0.1 /* seconds that one look counts at most: the machine stood still if there were more */

#ifdef __SANITIZE_THREAD__
#define SLOWER 4
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWER 3
#else
#define SLOWER 1
#endif

static bool was_in_vain;

double deadline_scale(void)
{
	const char *seconds = getenv("UMBEL_TEST_SECONDS");

	return (seconds ? strtod(seconds, NULL) / 600 : 1) * SLOWER;
}

bool deadline_is_over(struct deadline *d)
{
	struct timespec t;
	double now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
	if (d->seen > 0)
		d->used += now - d->seen < LOOK ? now - d->seen : LOOK;
	d->seen = now;
	if (d->used <= (was_in_vain ? AGAIN : SECONDS) * deadline_scale())
		return false;
	harness_say_where();
	was_in_vain = true;
	return true;
}

void deadline_look(struct deadline *d, const char *what, const char *file, int line)
{
	if (!deadline_is_over(d))
		return;
	print_error("waited in vain for %s\n", what);
	_fail(file, line);
}

bool deadline_allows(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct deadline d = { 0 };

	while (poll(&p, 1, (int)(LOOK * 1000)) != 1)
		if (deadline_is_over(&d))
			return false;
	return true;
}

void deadline_await(int fd, const char *what, const char *file, int line)
{
	if (deadline_allows(fd))
		return;
	print_error("waited in vain for %s\n", what);
	_fail(file, line);
}
