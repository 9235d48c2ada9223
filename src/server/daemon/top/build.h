/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric as the options of the daemon say: hosts, switches and links (fabric/plan/shape.h), and
 * HCAs of network devices.
 */
#ifndef DAEMON_BUILD_H
#define DAEMON_BUILD_H

#include "daemon/network/roce.h"
#include "fabric/plan/shape.h"

struct daemon_build {
	const struct fabric_shape *shape;
	const struct shm_settings *settings;
	struct daemon_roce *roce; /* the devices that it is of; NULL: none */
};

/* Makes the fabric. 0, or -errno with @why or without; *@f is the caller's to free even so if it is
 * not NULL. */
int daemon_build_fabric(struct fabric **f, const struct daemon_build *b, char *why, size_t len);

#endif
