/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports at which clients can be: which one a name of ibsim's means, and what such a port says
 * of itself. Blocks for as long as a daemon needs for an answer. Not thread-safe.
 */
#ifndef IBSIM_NODE_H
#define IBSIM_NODE_H

#include <stdint.h>

#include "wire/smp.h"

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

/* Asks the port for an attribute of subnet management. 0 or -errno. */
int ibsim_node_ask(const struct ibsim_place *at, uint16_t attribute, uint32_t modifier,
                   uint8_t data[static SMP_DATA_BYTES]);

#endif
