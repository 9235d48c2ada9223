/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a capture wants of what a fabric carries, as who asked for it has said. For capture.c.
 */
#ifndef DAEMON_CAPTURE_FILTER_H
#define DAEMON_CAPTURE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "control/message.h"
#include "fabric/agents/mads.h"
#include "fabric/forwarding/flow.h"

struct daemon_capture_filter {
	const struct fabric *f;
	const struct fabric_node **node; /* NULL: all */
	unsigned n_nodes;
	unsigned port; /* 0: all */
	bool data;     /* packets of queue pairs */
	uint64_t classes[4];
};

/* 0; -ENOENT, -ERANGE: as for the request; -ENOMEM. */
int daemon_capture_filter_init(struct daemon_capture_filter *w, const struct fabric *f,
                               const struct control_capture *req);
void daemon_capture_filter_fini(struct daemon_capture_filter *w);

bool daemon_capture_filter_mad(const struct daemon_capture_filter *w,
                               const struct fabric_mad_seen *seen);

/* A packet of a queue pair, by its flow. */
bool daemon_capture_filter_packet(const struct daemon_capture_filter *w,
                                  const struct fabric_flow *flow);

#endif
