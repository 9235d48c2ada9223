/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages of the shared memory's data part: which were written, and giving them back to the system.
 * Then they read as zero.
 */
#ifndef DAEMON_PAGES_H
#define DAEMON_PAGES_H

#include <stdint.h>

#include "shm/region.h"

#define DAEMON_PAGE 4096

/* Units of work (chores.h). */
#define DAEMON_PAGES_SEEK 16 /* of daemon_pages_next() */

/* Where the next page is that was written, from @off on; UINT64_MAX: there is none. */
uint64_t daemon_pages_next(const struct shm_region *r, uint64_t off);

/* Gives back as many of the @bytes from @off on as one may at a time. Returns their bytes, and
 * spends what it took. */
uint64_t daemon_pages_free(const struct shm_region *r, uint64_t off, uint64_t bytes,
                           uint32_t *budget);

#endif
