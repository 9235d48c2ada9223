/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests: a file system with one file, "file", which some threads cannot close: it does not
 * answer their FLUSH.
 */
#ifndef TESTS_ADVERSARY_UNANSWERED_H
#define TESTS_ADVERSARY_UNANSWERED_H

#include "posix.h"

#include <linux/fuse.h>
#include <sys/mount.h>

#define UNANSWERED_FILE 2

/* Mounts it at @dir, in a mount namespace of the caller's own. Its device; -1: there is no FUSE. */
static inline int unanswered_mount(const char *dir)
{
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device < 0 || mount("unanswered", dir, "fuse", MS_NOSUID | MS_NODEV, options))
		return -1;
	return device;
}

static inline void unanswered_answer(int device, const struct fuse_in_header *in, int error,
                                     const void *body, size_t bytes)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + bytes),
		                       .error = -error,
		                       .unique = in->unique };
	const struct iovec iov[] = { { &out, sizeof(out) }, { (void *)body, bytes } };

	if (writev(device, iov, 2) < 0 && errno != ENOENT)
		perror("writev");
}

static inline struct fuse_attr unanswered_attributes(uint64_t id)
{
	return (struct fuse_attr){ .ino = id,
		                   .nlink = 1,
		                   .size = id == UNANSWERED_FILE ? 1 << 20 : 0,
		                   .mode = id == UNANSWERED_FILE ? S_IFREG | 0666
		                                                 : S_IFDIR | 0777 };
}

static inline void unanswered_serve_one(int device, const struct fuse_in_header *in,
                                        bool (*holds)(pid_t tid))
{
	const struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 65536 };
	const struct fuse_entry_out entry = { .nodeid = UNANSWERED_FILE,
		                              .attr = unanswered_attributes(UNANSWERED_FILE) };
	const struct fuse_attr_out attr = { .attr = unanswered_attributes(in->nodeid) };
	const struct fuse_open_out opened = { 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		unanswered_answer(device, in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		unanswered_answer(device, in, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		unanswered_answer(device, in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		unanswered_answer(device, in, 0, &opened, sizeof(opened));
		break;
	case FUSE_FLUSH:
		if (!holds((pid_t)in->pid))
			unanswered_answer(device, in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		unanswered_answer(device, in, ENOSYS, NULL, 0);
	}
}

/* Serves until it is killed. holds(): a thread closes the file; true: it must wait. 1: it cannot.
 */
static inline int unanswered_serve(int device, bool (*holds)(pid_t tid))
{
	static union {
		struct fuse_in_header header;
		char room[1 << 17];
	} in;

	for (;;) {
		ssize_t n = read(device, &in, sizeof(in));

		if (n >= (ssize_t)sizeof(in.header))
			unanswered_serve_one(device, &in.header, holds);
		else if (n >= 0 || (errno != EINTR && errno != ENOENT))
			return 1;
	}
}

#endif
