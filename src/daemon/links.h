/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return on command. Three steps each time: the fabric changes,
 * the embedded subnet manager sweeps if it is the master, and whoever uses the ports is told. The
 * reply to the command comes after all three.
 */
#ifndef DAEMON_LINKS_H
#define DAEMON_LINKS_H

#include "daemon/mads.h"
#include "daemon/ports.h"
#include "daemon/request.h"
#include "daemon/subnet.h"

struct daemon_links {
	struct fabric *f;
	struct daemon_ports *ports;
	struct daemon_subnet *subnet;
	struct daemon_mads *mads;
};

/* Adds the requests to the table; @links is filled in. */
void daemon_links_init(struct daemon_links *links, struct daemon_requests *all);

/* The fabric has changed: the second and the third step. 0, -ENOSPC, -ENOMEM. */
int daemon_links_follow(struct daemon_links *links);

#endif
