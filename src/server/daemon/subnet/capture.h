/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel capture`: MADs for readers that want to see them. Without readers a MAD costs one branch
 * (struct fabric_mad_tap). Each reader has a buffer of its own, and a socket that takes what it has
 * room for after each turn of the loop. When the buffer is full, MADs are counted and not captured:
 * a reader that is slow, stopped or hostile holds up nobody.
 */
#ifndef DAEMON_CAPTURE_H
#define DAEMON_CAPTURE_H

#include <sys/queue.h>

#include "daemon/clients/request.h"
#include "daemon/core/loop.h"
#include "fabric/agents/mads.h"
#include "fabric/forwarding/flow.h"
#include "wire/headers.h"

#define DAEMON_CAPTURES 8 /* at one time */

struct daemon_captures {
	struct fabric *f;
	struct daemon_loop *loop;
	LIST_HEAD(, capture) all;
	unsigned n, n_data; /* n_data: of these, those that see messages of queue pairs */
	/* there are more now, or fewer */
	void (*data_wanted)(void *arg);
	void *data_arg;
};

/* A packet of a queue pair, for captures that want it. @note: its fate; "": it goes on as it
 * should. */
struct daemon_seen_packet {
	const struct fabric_flow *flow; /* by which it goes */
	const struct wire_headers *h;
	const void *payload;
	uint32_t payload_bytes;
	uint32_t class_flow;
	uint8_t hop_limit;
	const struct ib_gid *sgid;
	const char *note;
};
void daemon_captures_packet(struct daemon_captures *c, const struct daemon_seen_packet *seen);

/* Whether somebody may want packets of the flow. */
bool daemon_captures_want_flow(const struct daemon_captures *c, const struct fabric_flow *flow);

/*
 * The queue pairs whose connections captures want: as many as returned, in @qpns; 0: none; or
 * DAEMON_CAPTURES_ALL.
 */
#define DAEMON_CAPTURES_ALL  UINT32_MAX
#define DAEMON_CAPTURES_QPNS (DAEMON_CAPTURES * CONTROL_CAPTURE_MANY)
uint32_t daemon_captures_connections(const struct daemon_captures *c,
                                     uint32_t qpns[static DAEMON_CAPTURES_QPNS]);

/* f and loop are set. */
void daemon_captures_init(struct daemon_captures *c, struct daemon_requests *all);
/* Sends what there is to send. */
void daemon_captures_stop(struct daemon_captures *c);

/* After each turn of the loop: sends what there is room for. */
void daemon_captures_flush(struct daemon_captures *c);

#endif
