/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections for clients: see pair.h.
 */
#include <errno.h>
#include <sys/socket.h>

#include "daemon/core/loop.h"
#include "daemon/core/pair.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* An older kernel does not know it, and has it on. */
static void take_descriptors(int end, int on)
{
	setsockopt(end, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
}

int daemon_pair(struct daemon_loop *loop, int type, int end[2])
{
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, end) < 0)
		return -errno;
	take_descriptors(end[0], 0);
	daemon_loop_note_end(loop, end[0]);
	return 0;
}

void daemon_pair_take_descriptors(int end)
{
	take_descriptors(end, 1);
}
