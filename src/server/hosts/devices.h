/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ethernet of hosts: devices that are ports of a bridge, which snoops IGMP and MLD as a switch of a
 * data centre does, and devices that share one of the machine's. The bridge is in a network of its
 * own, so its name and those of its ports are in nobody's way. Called by the keeper, which
 * holds that network: bridge and devices end with it.
 */
#ifndef HOSTS_DEVICES_H
#define HOSTS_DEVICES_H

#include "hosts/namespaces.h"
#include "hosts/plan.h"

/*
 * Makes the devices of @plan on the hosts @ns. When it returns, the bridge forwards groups to their
 * members only. *@net, which the caller sets to -1 before: a descriptor of the bridge's network, to
 * be kept open. 0, or -errno with @why.
 */
int hosts_devices_make(const struct hosts_plan *plan, const struct hosts_namespaces *ns, int *net,
                       char *why, size_t len);

#endif
