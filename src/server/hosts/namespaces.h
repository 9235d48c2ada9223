/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The namespaces of a host: network, host name (UTS) and mounts, of which descriptors are all that
 * there is. They are in a user namespace that maps this user alone to itself, unless root makes
 * them. Nothing has a name in the file system, so nothing is left when descriptors and processes
 * are gone.
 *
 * Called by the keeper (keeper.c), which makes them, and by commands, which enter. The calling
 * process has one thread and is changed by it.
 */
#ifndef HOSTS_NAMESPACES_H
#define HOSTS_NAMESPACES_H

#include <stddef.h>

struct hosts_namespaces {
	int net, uts, mnt; /* descriptors */
	int user;          /* the same for all hosts; -1: that of their maker */
};

/* Where hosts are made. */
struct hosts_site {
	int user;     /* as above */
	int template; /* the mounts that all hosts begin with */
};

/*
 * Takes this process to where hosts are made: into a user namespace, and one of mounts that has
 * @names as /etc/hosts. @dir: a directory to mount on for a moment, seen by nobody else. 0, or
 * -errno with
 * @why: what is missing, in words.
 */
int hosts_site_enter(struct hosts_site *site, const char *names, const char *dir, char *why,
                     size_t len);

/* Takes this thread to an empty network, which nobody else has. Devices there are quiet: no address
 * is checked for duplicates, no router asked for. 0, or -errno with @why. */
int hosts_network_new(char *why, size_t len);

/* Writes advice against too few descriptors to @why. -EMFILE. */
int hosts_fail_for_descriptors(char *why, size_t len);

/* Makes the host called @name, in which this process is then. 0, or -errno with @why. */
int hosts_namespaces_make(struct hosts_namespaces *ns, const struct hosts_site *site,
                          const char *name, char *why, size_t len);

/*
 * Takes this process to the host. If that is in a user namespace, the process and what it becomes
 * keep the capabilities that a person has over machines of their own: to configure the network, and
 * to go to other hosts. 0 or -errno.
 */
int hosts_namespaces_enter(const struct hosts_namespaces *ns);

void hosts_namespaces_close(struct hosts_namespaces *ns);

#endif
