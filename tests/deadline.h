/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits of tests that end by themselves. A wait has 20 seconds: more under a sanitizer or on a busy
 * machine, and more or fewer where UMBEL_TEST_SECONDS is not 600; five once one was in vain. Only
 * time is counted in which the test could look: while the machine stands still, none passes. It
 * then fails the case, and says what did not come. Any thread may wait; only the first one may
 * fail.
 *
 * A wait that has no such deadline, as a call that blocks, is ended by the case's own (harness.c).
 */
#ifndef TESTS_DEADLINE_H
#define TESTS_DEADLINE_H

#include <stdbool.h>

struct deadline {
	double seen; /* when the test looked last, in seconds; 0: not yet */
	double used; /* of its time */
};

/* For a loop: whether the time is over. Begin with a deadline of zeros. */
bool deadline_is_over(struct deadline *d);

/* The same, and fails the case then. @what: what is awaited, as "a completion". */
#define DEADLINE_LOOK(d, what) deadline_look(d, what, __FILE__, __LINE__)
void deadline_look(struct deadline *d, const char *what, const char *file, int line);

/* Waits until the descriptor can be read, or the time is over: then it is false. */
bool deadline_allows(int fd);

/* The same, and fails the case then. */
#define DEADLINE_AWAIT(fd, what) deadline_await(fd, what, __FILE__, __LINE__)
void deadline_await(int fd, const char *what, const char *file, int line);

/* The factor by which everything may take longer than usual. */
double deadline_scale(void);

#endif
