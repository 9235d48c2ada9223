/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pointers that may lead nowhere: see pointer.h.
 */
#define _GNU_SOURCE
#include "sysfs/pointer.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u /* the smallest that there is */

/* The kernel compares the word at an address before anything else; it does not wait. */
static bool page_can_be_read(uintptr_t address)
{
	const struct timespec none = { 0 };
	const uint32_t unlikely = ~0u;

	return !syscall(SYS_futex, address & ~(sizeof(uint32_t) - 1), FUTEX_WAIT_PRIVATE, unlikely,
	                &none, NULL, 0) ||
	       errno != EFAULT;
}

bool sysfs_is_path(const char *s)
{
	int error = errno;
	bool ends = false;

	for (size_t n = 0; !ends && n < PATH_MAX && page_can_be_read((uintptr_t)(s + n));) {
		size_t room = PAGE - ((uintptr_t)(s + n) & (PAGE - 1));

		ends = memchr(s + n, '\0', room);
		n += room;
	}
	errno = error;
	return ends && strlen(s) < PATH_MAX;
}

bool sysfs_is_writable(void *p, size_t bytes)
{
	int error = errno;
	long n = syscall(SYS_getrandom, p, bytes, GRND_NONBLOCK);
	/* so few it writes at once; less are those before a page that is not there */
	bool can = n < 0 ? errno != EFAULT : (size_t)n == bytes;

	errno = error;
	return can;
}
