/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time of the agents' traps (fabric/agents/traps.h): those without a TrapRepress are sent
 * again.
 */
#ifndef DAEMON_TRAPS_H
#define DAEMON_TRAPS_H

#include "daemon/core/loop.h"
#include "fabric/model/fabric.h"

struct daemon_traps {
	struct fabric *f;
	struct daemon_loop *loop;
	struct base_timer again;
};

void daemon_traps_init(struct daemon_traps *traps, struct fabric *f, struct daemon_loop *loop);

#endif
