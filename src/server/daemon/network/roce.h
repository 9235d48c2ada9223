/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCE: an HCA of one Ethernet port for each network device that was named, on a host of its own,
 * or on hosts of an InfiniBand fabric. The devices are watched, and the ports follow them:
 * addresses become GIDs, state and MTU the port's. There are no switches, and nobody manages the
 * subnet: the network is not ours to describe.
 *
 * A device is known by its name when we start; from then on by its index, whatever it is called,
 * until it goes; the next device of that name is it again.
 */
#ifndef DAEMON_ROCE_H
#define DAEMON_ROCE_H

#include "control/cm_message.h"
#include "daemon/network/roce_state.h"
#include "hosts/plan.h"

struct fabric_plan;

struct daemon_roce_devices {
	/* with commas between; beside InfiniBand each is followed by @ and the name of its host. A
	 * host alone, after @, gets a port of the hosts' own bridge. NULL: none */
	const char *names;
	unsigned n_hosts; /* more hosts, r1 and so on, with such ports */
	unsigned n_hcas;  /* of each of these; 0: one */
	/* hosts have a network of their own, where devices are made: ports of the bridge, or those
	 * that share the machine's device of that name */
	bool own_networks;
};

/* Looks for the devices, if they are to be there already. 0 and *@r, or -errno with @why. */
int daemon_roce_open(struct daemon_roce **r, const struct daemon_roce_devices *devices, char *why,
                     size_t len);

/* Plans an HCA for each, on its host: a host that is planned already, or a new one. 0, or -errno
 * with @why. */
int daemon_roce_plan(struct daemon_roce *r, struct fabric_plan *plan, char *why, size_t len);

/* The devices to be made on the hosts now: *@n of them. */
const struct hosts_device *daemon_roce_made(const struct daemon_roce *r, unsigned *n);

/* The fabric is built: its ports come to life and follow their devices. 0, or -errno with @why. */
int daemon_roce_start(struct daemon_roce *r, const struct daemon_roce_needs *needs, char *why,
                      size_t len);

/* Ends receiving and sending. */
void daemon_roce_stop(struct daemon_roce *r);

/* The address, without a port number, from which the routes of host @host (index; -1: of whichever
 * @src belongs to) lead to @dst. 0 or -errno. */
int daemon_roce_route(const struct daemon_roce *r, int host, const union control_cm_addr *dst,
                      union control_cm_addr *src);

/* The name of the device that is port @index (in the port table). */
const char *daemon_roce_device(const struct daemon_roce *r, uint32_t index);

#endif
