/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages of the shared memory's data part: see pages.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/clients/pages.h"
#include "daemon/core/chores.h"

#define AT_ONCE     (256ull << 10) /* bytes */
#define NS_PER_UNIT 100

uint64_t daemon_pages_next(const struct shm_region *r, uint64_t off)
{
	off_t data = lseek(r->part.data.fd, (off_t)off, SEEK_DATA);

	return data < 0 ? UINT64_MAX : (uint64_t)data;
}

/* The time that this thread has had a processor. */
static uint64_t work_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t daemon_pages_free(const struct shm_region *r, uint64_t off, uint64_t bytes,
                           uint32_t *budget)
{
	const uint64_t n = bytes < AT_ONCE ? bytes : AT_ONCE;
	uint64_t before = work_ns();

	if (fallocate(r->part.data.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
	              (off_t)n))
		base_log_warning(shm, "cannot free %llu bytes of shared memory",
		                 (unsigned long long)n);
	/* measured: the kernel looks at each process that has the memory mapped */
	daemon_chore_spend(budget, (uint32_t)((work_ns() - before) / NS_PER_UNIT));
	return n;
}
