/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Preloaded into a program: a kernel that does not cut UDP messages into datagrams for the device,
 * as older ones do not for devices that leave checksums to it. EIO, as they say.
 */
#include "posix.h"

#include <netinet/udp.h>

ssize_t sendmsg(int fd, const struct msghdr *m, int flags);
int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags);

static bool is_piece(const struct msghdr *m)
{
	struct msghdr copy = *m;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_SEGMENT)
			return true;
	return false;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t (*next)(int, const struct msghdr *, int) =
	        (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");

	if (!is_piece(m))
		return next(fd, m, flags);
	errno = EIO;
	return -1;
}

/* Up to the first that is one. */
__attribute__((visibility("default"))) int sendmmsg(int fd, struct mmsghdr *m, unsigned int n,
                                                    int flags)
{
	int (*next)(int, struct mmsghdr *, unsigned int, int) =
	        (int (*)(int, struct mmsghdr *, unsigned int, int))dlsym(RTLD_NEXT, "sendmmsg");
	unsigned good = 0;

	while (good < n && !is_piece(&m[good].msg_hdr))
		good++;
	if (good || !n)
		return next(fd, m, good, flags);
	errno = EIO;
	return -1;
}
