/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The services of the daemon for rdma_cm (cm/cm.h): outboxes, timers, MADs, shared memory, routes
 * and groups of Ethernet ports. And the requests of librdmacm, which cm/ serves.
 */
#ifndef DAEMON_RDMACM_H
#define DAEMON_RDMACM_H

#include "cm/cm.h"
#include "daemon/clients/client.h"
#include "daemon/clients/memory.h"
#include "daemon/network/roce.h"
#include "daemon/subnet/mads.h"

struct daemon_rdmacm {
	struct fabric *f;
	struct daemon_loop *loop;
	struct daemon_mads *mads;
	struct daemon_memory *memory;
	struct daemon_roce *roce; /* NULL: no port is on Ethernet */
	struct cm *cm;
	struct daemon_ending ending;
};

/* Makes ->cm, has @clients know it, and adds the requests to their table; all else in @r is filled
 * in. 0 or -errno. */
int daemon_rdmacm_init(struct daemon_rdmacm *r, struct daemon_clients *clients);

#endif
