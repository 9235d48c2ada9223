/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hosts that are hosts: each has a network of its own, a host name, and names of the others
 * (--ipoib, --roce-hosts). They are namespaces, of which the daemon keeps the descriptors; `umbel
 * exec` asks for those of its host and enters.
 */
#ifndef DAEMON_HOSTS_H
#define DAEMON_HOSTS_H

#include <stdbool.h>

#include "daemon/clients/request.h"
#include "daemon/core/daemon.h"
#include "daemon/core/loop.h"
#include "fabric/model/fabric.h"
#include "hosts/keeper.h"

struct daemon_hosts {
	struct fabric *f;
	struct daemon_loop *loop;
	const struct daemon_options *options;
	const struct hosts_device *device; /* of Ethernet, which they get */
	unsigned n_devices;
	unsigned *port_num; /* of each HCA port among those of its host, from 1 */
	struct hosts_keeper keeper;
	struct hosts_namespaces *of; /* by host; NULL: hosts are none */
	struct daemon_source source; /* the keeper speaks */
	void (*ready)(void *arg, int error);
	void *arg;
};

/* Adds its requests to the table. */
void daemon_hosts_init(struct daemon_hosts *hosts, struct daemon_requests *all);

/* Makes the hosts' namespaces; @dir: the fabric's directory. Before anybody is served, as it takes
 * a millisecond a host. 0, or -errno with @why. */
int daemon_hosts_make(struct daemon_hosts *hosts, const char *dir, char *why, size_t len);

/* Has the hosts' interfaces made, by programs that the daemon has to serve. Calls ->ready when they
 * are there, with 0, or -EIO: the log says why not. 0 or -errno. */
int daemon_hosts_start(struct daemon_hosts *hosts);

/* The status of the interfaces, as JSON: *@fd is a socket from which it comes. 0; -EBUSY: the
 * keeper does not answer; -errno. */
int daemon_hosts_show(const struct daemon_hosts *hosts, int *fd);

/* Ends the programs on the hosts. */
void daemon_hosts_stop(struct daemon_hosts *hosts);

#endif
