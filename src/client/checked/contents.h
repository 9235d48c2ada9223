/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A note of the contents of a piece of the program's memory, by which a later look sees whether
 * they have changed. A short piece is copied; of a long one the note has a sum of each page. If the
 * memory is gone, the later look finds no change. The callers hold the lock of the checker.
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
