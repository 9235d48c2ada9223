/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * To the fabric that the environment names: see join.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "control/directory.h"
#include "control/join.h"
#include "control/path.h"

static int join(struct control_client **c, enum control_role role, struct shm_region *region,
                int *host_index)
{
	char path[512], why[CONTROL_WHY_ROOM], name[CONTROL_HOST_ROOM];
	const char *host = control_host_name(name);
	struct control_hello_reply hello;
	int ret, fd[2], dir;

	dir = control_fabric_open(control_fabric_name(), false, why);
	if (dir < 0)
		return dir;
	close(dir); /* it is proven private: the path leads there again */
	ret = control_path(path, sizeof(path), control_fabric_name(), "ctl");
	if (!ret)
		ret = control_connect(c, path, role, host);
	if (ret)
		return ret;
	control_hello(*c, &hello, fd);
	if (host_index)
		*host_index = hello.host_index;
	if (region && role == CONTROL_ROLE_VERBS)
		ret = shm_region_map(region, fd[0], fd[1]);
	else if (region)
		ret = shm_region_map_ports(region, fd[0], fd[1]);
	for (int i = 0; i < 2; i++)
		close(fd[i]);
	if (ret)
		control_close(*c);
	return ret;
}

int control_join(struct control_client **c, enum control_role role, struct shm_region *region,
                 int *host_index)
{
	int cancel_state = base_cancel_off();
	int ret = join(c, role, region, host_index);

	base_cancel_restore(cancel_state);
	return ret;
}

const char *control_refusal(int error, char room[static CONTROL_WHY_ROOM])
{
	if (error == -ENFILE)
		return "its daemon has no descriptors left for this process or user (ulimit -n)";
	if (error != -CONTROL_REFUSED)
		return NULL;
	snprintf(room, CONTROL_WHY_ROOM, "its owner has not named user %u (umbel up --allow-user)",
	         (unsigned)geteuid());
	return room;
}

/* The meaning of a failure to the user, and what helps. */
static const char *advice(int error, char room[static CONTROL_WHY_ROOM])
{
	switch (error) {
	case -ENOMEM:
		return "its shared memory does not fit into this program's address space; raise "
		       "the limit (ulimit -v)";
	case -EMFILE:
		return "too many open files; raise the limit (ulimit -n)";
	case -ETOOMANYREFS:
		return "its user has more descriptors on their way through sockets than its daemon "
		       "may have open (ulimit -n)";
	case -EPROTO:
		return "its daemon is of another version of Umbel; start it again";
	case -EACCES:
		return "it belongs to another user";
	default:
		return control_refusal(error, room);
	}
}

void control_join_explain(int error)
{
	const char *name = control_fabric_name();
	char why[CONTROL_WHY_ROOM], host[CONTROL_HOST_ROOM];
	int dir;

	if (!secure_getenv("UMBEL_FABRIC"))
		return;
	if (error == -EHOSTUNREACH) {
		base_log("no host '%s' in fabric '%s'", control_host_name(host), name);
		return;
	}
	dir = control_fabric_open(name, false, why);
	if (dir >= 0)
		close(dir);
	if (dir == -EPERM || dir == -ELOOP)
		base_log("fabric '%s' is not safe to use: %s", name, why);
	else if (advice(error, why))
		base_log("fabric '%s' cannot be used: %s", name, advice(error, why));
	else
		base_log("fabric '%s' cannot be reached: %s; is it up?", name, strerror(-error));
}
