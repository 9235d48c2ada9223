/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file system whose files are never closed by a process but its own: it does not answer FLUSH.
 * A child offers the daemon such a file, and ends, or stays. Says "offered" and "held", then serves
 * until it is killed. unflushed DIR [stays], in a mount namespace of its own. Ends with 77 where
 * there is no FUSE.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/client.h"
#include "control/path.h"

#define NO_FUSE 77
#define FILE_ID 2

static int device;
static pid_t child;

static void answer(const struct fuse_in_header *in, int error, const void *body, size_t bytes)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + bytes),
		                       .error = -error,
		                       .unique = in->unique };
	const struct iovec iov[] = { { &out, sizeof(out) }, { (void *)body, bytes } };

	if (writev(device, iov, 2) < 0 && errno != ENOENT)
		perror("unflushed: writev");
}

static struct fuse_attr attributes(uint64_t id)
{
	return (struct fuse_attr){ .ino = id,
		                   .nlink = 1,
		                   .size = id == FILE_ID ? 1 << 20 : 0,
		                   .mode = id == FILE_ID ? S_IFREG | 0666 : S_IFDIR | 0777 };
}

static void serve(const struct fuse_in_header *in)
{
	const struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 65536 };
	const struct fuse_entry_out entry = { .nodeid = FILE_ID, .attr = attributes(FILE_ID) };
	const struct fuse_attr_out attr = { .attr = attributes(in->nodeid) };
	const struct fuse_open_out opened = { 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		answer(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(in, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_FLUSH:
		if ((pid_t)in->pid == child)
			answer(in, 0, NULL, 0);
		else
			printf("held\n");
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(in, ENOSYS, NULL, 0);
	}
}

static int offer(const char *dir, bool stays)
{
	const struct control_offer_memory request = { .kind = CONTROL_MEMORY_ADOPTED };
	struct control_client *client;
	char path[512];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ret = fd < 0 ? -errno : control_path(path, sizeof(path), control_fabric_name(), "ctl");
	if (!ret)
		ret = control_connect(&client, path, CONTROL_ROLE_VERBS, NULL);
	if (ret) {
		printf("cannot offer it: %s\n", strerror(-ret));
		return 1;
	}
	/* whatever it says of it */
	control_call(client, &(struct control_call){ .type = CONTROL_OFFER_MEMORY,
	                                             .request = &request,
	                                             .request_bytes = sizeof(request),
	                                             .send_fd = &fd });
	printf("offered\n");
	while (stays)
		pause();
	return 0;
}

int main(int argc, char **argv)
{
	static union {
		struct fuse_in_header header;
		char room[1 << 17];
	} in;
	char options[128];

	setvbuf(stdout, NULL, _IOLBF, 0);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device < 0 || mount("unflushed", argv[1], "fuse", MS_NOSUID | MS_NODEV, options))
		return NO_FUSE;
	child = fork();
	if (!child) {
		/* it must not keep alive what its own end waits for */
		close(device);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(offer(argv[1], argc > 2));
	}
	for (;;) {
		ssize_t n = read(device, &in, sizeof(in));

		if (n >= (ssize_t)sizeof(in.header))
			serve(&in.header);
		else if (n >= 0 || (errno != EINTR && errno != ENOENT))
			return 1;
	}
}
