/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper: a child of the daemon that makes the hosts' namespaces, as making one takes a process
 * there, and that runs the hosts' own programs. It ends with the daemon, however that ends: its
 * socket closes, or the kernel kills it.
 */
#ifndef HOSTS_KEEPER_H
#define HOSTS_KEEPER_H

#include <sys/types.h>

#include "hosts/namespaces.h"
#include "hosts/plan.h"

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

/* Has it start the programs. hosts_keeper_ready() will tell when they are. */
int hosts_keeper_run(const struct hosts_keeper *k);

/*
 * Reads what has come by ->sock, when it is readable. 1 and *@failed: the programs are ready now,
 * all but so many, which have ended; 0: nothing; -errno: the keeper has ended.
 */
int hosts_keeper_ready(const struct hosts_keeper *k, unsigned *failed);

/* Has it write the status of the programs to the socket @fd, as JSON: an array of what they tell,
 * with "host" and "pid". Does not wait. 0; -EBUSY: it does not listen. */
int hosts_keeper_show(const struct hosts_keeper *k, int fd);

/* Ends it; returns when it is gone. */
void hosts_keeper_stop(struct hosts_keeper *k);

#endif
