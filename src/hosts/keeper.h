/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper: a child of the daemon that makes the hosts' namespaces, as making one takes a process
 * there. It ends with the daemon, however that ends: its socket closes, or the kernel kills it.
 */
#ifndef HOSTS_KEEPER_H
#define HOSTS_KEEPER_H

#include <sys/types.h>

#include "hosts/namespaces.h"

struct hosts_plan {
	const char *dir;   /* the fabric's own directory */
	const char *names; /* the hosts' /etc/hosts */
	unsigned n;
	const char *(*name)(void *arg, unsigned host);
	void *arg;
};

struct hosts_keeper {
	pid_t pid;
	int sock; /* hangs up when the keeper ends */
};

/*
 * Starts the keeper and waits for the namespaces of all hosts, which become @ns[0] to @ns[n - 1].
 * The caller has one thread. 0, or -errno with @why, and there is neither keeper nor namespace.
 */
int hosts_keeper_start(struct hosts_keeper *k, const struct hosts_plan *plan,
                       struct hosts_namespaces *ns, char *why, size_t len);

/* Ends it; returns when it is gone. */
void hosts_keeper_stop(struct hosts_keeper *k);

#endif
