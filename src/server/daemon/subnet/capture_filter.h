/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The choice of a capture: the MADs and packets of the fabric that its reader has asked for. For
 * capture.c.
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
	bool no_mads;
	uint64_t classes[4];
	/* of packets; none: all */
	unsigned n_groups, n_qps;
	struct ib_gid group[CONTROL_CAPTURE_GROUPS];
	struct daemon_capture_qp {
		unsigned host; /* its number */
		uint32_t qpn;
	} qp[CONTROL_CAPTURE_MANY];
};

/* 0; -ENOENT, -ERANGE, -ESRCH: as for the request; -EINVAL: it is none; -ENOMEM. */
int daemon_capture_filter_init(struct daemon_capture_filter *w, const struct fabric *f,
                               const struct control_capture *req);
void daemon_capture_filter_fini(struct daemon_capture_filter *w);

bool daemon_capture_filter_mad(const struct daemon_capture_filter *w,
                               const struct fabric_mad_seen *seen);

/* A packet of a queue pair, by its flow and the queue pair that it is for. */
bool daemon_capture_filter_packet(const struct daemon_capture_filter *w,
                                  const struct fabric_flow *flow, uint32_t dest_qpn);

/* Whether there may be such packets in the flow, for any receiver. */
bool daemon_capture_filter_flow(const struct daemon_capture_filter *w,
                                const struct fabric_flow *flow);

#endif
