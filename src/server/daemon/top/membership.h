/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A request of checked programs: whether a port is a member of a multicast group, and the group's
 * record.
 */
#ifndef DAEMON_MEMBERSHIP_H
#define DAEMON_MEMBERSHIP_H

#include "daemon/clients/objects.h"
#include "daemon/clients/request.h"
#include "daemon/subnet/subnet.h"

struct daemon_membership {
	struct fabric *f;
	struct daemon_objects *objects;
	const struct daemon_subnet *subnet;
	const struct cm *cm;
};

/* Adds the request to the table; @m is filled in. */
void daemon_membership_init(struct daemon_membership *m, struct daemon_requests *all);

#endif
