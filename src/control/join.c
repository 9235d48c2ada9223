/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * To the fabric that the environment names: see join.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "control/join.h"
#include "control/path.h"

int control_join(struct control_client **c, enum control_role role, struct shm_region *region,
                 int *host_index)
{
	const char *host = getenv("UMBEL_HOST");
	struct control_hello_reply hello;
	char path[512];
	int ret, fd[2];

	ret = control_path(path, sizeof(path), control_fabric_name(), "ctl");
	if (!ret)
		ret = control_connect(c, path, role, host && *host ? host : NULL);
	if (ret)
		return ret;
	control_hello(*c, &hello, fd);
	if (host_index)
		*host_index = hello.host_index;
	if (region)
		ret = shm_region_map(region, fd[0], fd[1]);
	for (int i = 0; i < 2; i++)
		close(fd[i]);
	if (ret)
		control_close(*c);
	return ret;
}

void control_join_explain(int error)
{
	const char *name = control_fabric_name();

	if (!getenv("UMBEL_FABRIC"))
		return;
	if (error == -EHOSTUNREACH)
		base_log("no host '%s' in fabric '%s'", getenv("UMBEL_HOST"), name);
	else
		base_log("fabric '%s' cannot be reached: %s; is it up?", name, strerror(-error));
}
