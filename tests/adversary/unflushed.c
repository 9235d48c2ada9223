/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file system whose files are never closed by a process but its own: it does not answer FLUSH.
 * A child offers the daemon such a file, and ends, or stays. Says "offered" and "held", then serves
 * until it is killed. unflushed DIR [stays], in a mount namespace of its own. Ends with 77 where
 * there is no FUSE.
 */
#include "adversary/unanswered.h"
#include "control/client.h"
#include "control/path.h"

#define NO_FUSE 77

static pid_t child;

static bool holds(pid_t tid)
{
	if (tid != child)
		printf("held\n");
	return tid != child;
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
	int device;

	setvbuf(stdout, NULL, _IOLBF, 0);
	device = unanswered_mount(argv[1]);
	if (device < 0)
		return NO_FUSE;
	child = fork();
	if (!child) {
		/* it must not keep alive what its own end waits for */
		close(device);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(offer(argv[1], argc > 2));
	}
	return unanswered_serve(device, holds);
}
