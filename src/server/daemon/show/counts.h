/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns for what collects the counters of ports (fabric/forwarding/collect.h).
 */
#ifndef DAEMON_COUNTS_H
#define DAEMON_COUNTS_H

#include "daemon/core/loop.h"
#include "fabric/model/fabric.h"

struct daemon_counts {
	struct fabric *f;
	struct daemon_loop *loop;
	struct base_timer turn;
};

void daemon_counts_init(struct daemon_counts *counts, struct fabric *f, struct daemon_loop *loop);

#endif
