/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plan of the hosts: which there are, what each is called, and which programs run on them as
 * long as the fabric does. The caller of keeper.h says it; the keeper has a copy, as a forked
 * child.
 */
#ifndef HOSTS_PLAN_H
#define HOSTS_PLAN_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* How a program is started. */
struct hosts_start {
	int status_fd;  /* it writes 'R' there when it is ready */
	int control_fd; /* each packet from there it answers by its status, an object of JSON */
	bool again;     /* it ran before */
};

/* A device of Ethernet that a host gets. */
struct hosts_device {
	unsigned host;
	char name[IFNAMSIZ];
	/* a port of the hosts' own bridge, with these IP addresses, in networks of /16 and /64; or
	 * it shares the machine's device of its name, and has none of them */
	bool bridged;
	unsigned nth; /* of such ports of the host, from 0: each is in networks of its own */
	uint8_t mac[6];
	uint32_t ipv4; /* network order */
	uint8_t ipv6[16];
};

struct hosts_plan {
	const char *dir;   /* the fabric's own directory */
	const char *names; /* the hosts' /etc/hosts */
	unsigned n_hosts, n_programs, n_devices;
	const struct hosts_device *device;
	const char *(*name)(const void *arg, unsigned host);
	unsigned (*host_of)(const void *arg, unsigned program);
	/*
	 * Becomes the program, in a process of its own on its host; returns if that fails, after it
	 * has said why.
	 */
	void (*become)(const void *arg, unsigned program, const struct hosts_start *start);
	const void *arg;
};

#endif
