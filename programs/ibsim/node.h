/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports at which clients can be: the port that a name of ibsim's means, and such a port's
 * description. The port is asked by libibverbs and /sys, not by MADs, which an M_Key could keep
 * from it. Not thread-safe.
 */
#ifndef IBSIM_NODE_H
#define IBSIM_NODE_H

#include "wire/sm_attr.h"

struct ibsim_place {
	char device[64];
	int port;
};

/*
 * Where a client is that has said SIM_HOST=@name; NULL or "": at the first HCA. A name is a host's,
 * an HCA's as Umbel has it or as its description has it, or a GUID's ("H-0002c90300000010"). The
 * port is the HCA's first one with a link, or else its first. 0; -ENOENT: no HCA has that name;
 * -ENODEV: there is no fabric.
 */
int ibsim_node_find(const char *name, struct ibsim_place *at);

/* NodeInfo of the HCA, as programs see it. 0 or -errno. */
int ibsim_node_info(const struct ibsim_place *at, struct wire_node_info *info);

/* Likewise PortInfo of that HCA's @port, 0: of the place's: addresses, states, widths and speeds in
 * use, capabilities; other fields are 0. -EINVAL: there is no such port. */
int ibsim_node_port(const struct ibsim_place *at, int port, struct wire_port_info *info);

/* The first block of the port's P_Keys. */
int ibsim_node_pkeys(const struct ibsim_place *at, struct wire_pkey_table *table);

/* Whether the port has subnet management. 0; -EOPNOTSUPP: it is one of Ethernet; -errno. */
int ibsim_node_check(const struct ibsim_place *at);

#endif
