/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What hosts are to be: which there are, what each is called, and which programs run on them as
 * long as the fabric does. The caller of keeper.h says it; the keeper has a copy, as a forked
 * child.
 */
#ifndef HOSTS_PLAN_H
#define HOSTS_PLAN_H

struct hosts_plan {
	const char *dir;   /* the fabric's own directory */
	const char *names; /* the hosts' /etc/hosts */
	unsigned n_hosts, n_programs;
	const char *(*name)(const void *arg, unsigned host);
	unsigned (*host_of)(const void *arg, unsigned program);
	/*
	 * Becomes the program, in a process of its own on its host; returns if that fails, after it
	 * has said why. The program writes 'R' to @status_fd when it is ready. For each packet from
	 * @control_fd, whatever is in it, it sends one with its status, an object of JSON.
	 */
	void (*become)(const void *arg, unsigned program, int status_fd, int control_fd);
	/* The program is ready: called in the keeper, on the network of its host. */
	void (*ready)(const void *arg, unsigned program);
	const void *arg;
};

#endif
