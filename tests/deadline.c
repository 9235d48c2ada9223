/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits of tests that end by themselves: see deadline.h.
 */
#define _DEFAULT_SOURCE /* getloadavg() */
#include "harness.h"
#include "deadline.h"

#define SECONDS 20
#define AGAIN   5 /* once one was in vain: the program has failed */
#define BUSIEST 6 /* a busy machine has so many times that at most */
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

/* How many programs want to run for each processor: where they are many, all takes longer. */
static double load(void)
{
	const double processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
	double l;

	if (getloadavg(&l, 1) != 1 || l < processors)
		return 1;
	return l < BUSIEST * processors ? l / processors : BUSIEST;
}

bool deadline_is_over(struct deadline *d)
{
	double now, most = (was_in_vain ? AGAIN : SECONDS) * deadline_scale();
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
	if (d->seen > 0)
		d->used += now - d->seen < LOOK ? now - d->seen : LOOK;
	d->seen = now;
	if (d->used <= most || d->used <= most * load())
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
