/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holding writes: see hold.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hca/process/direct.h"
#include "hca/process/hold.h"

/* Newer than some headers. */
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif

/* Without the second one pages that are not there could be written. */
#define FEATURES (UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_UNPOPULATED)

/* One that holds the kernel's writes; -1: this process may have none. */
static int open_descriptor(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), device;

	if (fd >= 0 || errno != EPERM)
		return fd;
	device = hca_direct_open(AT_FDCWD, "/dev/userfaultfd", O_RDWR);
	if (device < 0)
		return -1;
	fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
	hca_direct_close(device);
	return fd;
}

static int open_hold(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	int fd = open_descriptor();

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, UFFDIO_API, &api))
		return fd;
	hca_direct_close(fd);
	return -ENOSYS;
}

bool hca_hold_is_possible(void)
{
	int hold = open_hold();

	if (hold < 0)
		return false;
	hca_direct_close(hold);
	return true;
}

static struct uffdio_range range_of(uint64_t from, uint64_t to)
{
	return (struct uffdio_range){ .start = from, .len = to - from };
}

int hca_hold(uint64_t from, uint64_t to)
{
	struct uffdio_register all = { .range = range_of(from, to),
		                       .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect protect = { .range = range_of(from, to),
		                               .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int hold = open_hold(), error;

	if (hold < 0)
		return hold;
	if (!ioctl(hold, UFFDIO_REGISTER, &all) && !ioctl(hold, UFFDIO_WRITEPROTECT, &protect))
		return hold;
	error = errno;
	hca_hold_end(hold);
	return -error;
}

void hca_hold_replaced(int hold, uint64_t from, uint64_t to)
{
	struct uffdio_range range = range_of(from, to);

	ioctl(hold, UFFDIO_WAKE, &range);
}

/* The kernel lets all go on that is still held when nobody has the descriptor any more. */
void hca_hold_end(int hold)
{
	hca_direct_close(hold);
}
