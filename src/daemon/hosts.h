/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hosts that are hosts: each has a network of its own, a host name, and names of the others
 * (--ipoib). They are namespaces, of which the daemon keeps the descriptors; `umbel exec` asks for
 * those of its host and enters.
 */
#ifndef DAEMON_HOSTS_H
#define DAEMON_HOSTS_H

#include <stdbool.h>

#include "daemon/request.h"
#include "fabric/fabric.h"
#include "hosts/keeper.h"

struct daemon_hosts {
	struct fabric *f;
	struct hosts_keeper keeper;
	struct hosts_namespaces *of; /* by host; NULL: hosts are none */
};

/* Adds its requests to the table. */
void daemon_hosts_init(struct daemon_hosts *hosts, struct fabric *f, struct daemon_requests *all);

/* Makes the hosts' namespaces; @dir: the fabric's directory. Before anybody is served, as it takes
 * a millisecond a host. 0, or -errno with @why. */
int daemon_hosts_make(struct daemon_hosts *hosts, const char *dir, char *why, size_t len);

void daemon_hosts_fini(struct daemon_hosts *hosts);

#endif
