/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The detour: packets that go by the daemon, where faults are applied to them and captures see
 * them. Else the daemon is not in the way of packets; flows make the detour only while it is open,
 * or if they reach a router to another subnet, as their records say (SHM_FLOW_DETOUR). Datagrams
 * make it from the next one on. RC and UC queue pairs that are connected meanwhile exchange packets
 * (hca/transport/packet_connection.h), as with other machines, and do so until they are reset;
 * those that were connected before do not. Of connections with other machines the daemon sends the
 * packets to the network, if there are rules.
 *
 * Packets reach the daemon by a socket of each process, in the order in which they are sent. There
 * they take their time: a process that sends more waits.
 *
 * Thread-safe.
 */
#ifndef HCA_DETOUR_H
#define HCA_DETOUR_H

#include <stdbool.h>

#include "control/detour.h"
#include "hca/process/process.h"

/* Sends a packet. False: it is lost, as the daemon is gone or stopped, or there is no descriptor.
 */
bool hca_detour_send(struct hca_process *p, const struct control_detour *packet,
                     const void *payload);

/* Whether packets wait in this process's socket, and the daemon has taken none off any socket since
 * @since_ns: it is held up, or stopped. So they are late, and not lost. */
bool hca_detour_is_held_up(const struct hca_process *p, uint64_t since_ns);

/* Has the daemon look at the times of connections. */
void hca_detour_call(struct hca_process *p);

#endif
