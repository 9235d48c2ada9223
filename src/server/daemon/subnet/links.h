/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return on command. Three steps each time: the fabric changes,
 * the embedded subnet manager sweeps if it is the master, and the users of the ports are told. The
 * reply to the command comes after all three. On large fabrics a sweep is done in slices, and
 * others are served in between; but another command that changes the subnet waits until it is done.
 */
#ifndef DAEMON_LINKS_H
#define DAEMON_LINKS_H

#include "daemon/clients/request.h"
#include "daemon/subnet/subnet.h"

struct daemon_links {
	struct fabric *f;
	struct daemon_subnet *subnet;
};

/* Adds the requests to the table; @links is filled in. */
void daemon_links_init(struct daemon_links *links, struct daemon_requests *all);

#endif
