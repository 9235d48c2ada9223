/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was in a piece of the program's memory, so that it can be told later whether that has
 * changed: a copy of a short one, sums of the pages of a long one. If the memory is gone, that
 * cannot be told, and nothing else happens. With the lock of the checker held.
 */
#ifndef CHECKED_CONTENTS_H
#define CHECKED_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

struct checked_contents; /* to be freed by free() */

/* At the beginning, and in a child of fork(). */
void checked_contents_start(void);

/* NULL: the memory cannot be read, or there is none to keep this. */
struct checked_contents *checked_contents_of(uint64_t at, uint32_t bytes);

/* Whether the memory has changed: then bytes @from to @to, of which not all need to differ. Of a
 * short one bytes before *@from, as it is given, do not count. */
bool checked_contents_changed(const struct checked_contents *c, uint64_t at, uint32_t bytes,
                              uint32_t *from, uint32_t *to);

#endif
