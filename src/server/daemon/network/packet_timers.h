/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The times of connections whose requests become packets (hca/transport/packet_connection.h): a
 * timeout, an RNR NAK's delay, responses that are yet to be sent. Processes that poll see to them;
 * the daemon does for those that do not. It looks at the queue pairs whose bits are set (struct
 * shm_wire_busy), each millisecond while there are any.
 */
#ifndef DAEMON_PACKET_TIMERS_H
#define DAEMON_PACKET_TIMERS_H

#include "base/timer.h"
#include "fabric/model/fabric.h"
#include "hca/link/packet_receiver.h"

struct daemon_wires {
	struct fabric *f;
	struct base_timers *timers;
	struct base_timer timer;
	uint32_t next; /* index of the queue pair that it looks at first */
	/* by port index: the wires of packets that come in there from the network; NULL: none do */
	struct hca_wires **of_port;
	struct hca_wires *detour; /* the wires on the detour; NULL: there are none yet */
};

/* 0 or -ENOMEM. */
int daemon_wires_init(struct daemon_wires *wires, struct fabric *f, struct base_timers *timers);
void daemon_wires_fini(struct daemon_wires *wires);

/* A process has called: begins to look, unless it does already. */
void daemon_wires_begin(struct daemon_wires *wires);

#endif
