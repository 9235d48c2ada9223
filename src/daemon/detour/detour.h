/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's end of the detour (hca/link/detour.h). Packets that come by it pass the rules of
 * faults, and land: the daemon delivers them, as a sender in a process would, or sends them to the
 * network. It is open while there are rules, or somebody captures. RC and UC queue pairs that were
 * connected meanwhile go on to use it when it is closed.
 *
 * All packets are in one list, in the order in which they came. A queue pair's packets come by its
 * process's socket, and from the daemon itself, which acknowledges, answers and sends again for
 * processes (hca/transport/wire.h). Before one of these is added, that socket is read to its end:
 * what the process has sent before comes first. A packet whose queue pair has gone meanwhile goes
 * on as on a wire: it keeps its flow.
 */
#ifndef DAEMON_DETOUR_H
#define DAEMON_DETOUR_H

#include "daemon/clients/qp.h"
#include "daemon/clients/request.h"
#include "daemon/core/loop.h"
#include "daemon/detour/bad_links.h"
#include "daemon/detour/landing.h"
#include "daemon/detour/late_mads.h"
#include "daemon/detour/rules.h"
#include "daemon/network/wires.h"
#include "daemon/subnet/capture.h"

struct daemon_parcel;

struct daemon_detour {
	struct fabric *f;
	struct daemon_loop *loop;
	struct daemon_self *self;
	struct daemon_wires *times;
	struct daemon_qps *qps;
	struct daemon_captures *captures;
	struct daemon_roce *roce; /* NULL: no port is on Ethernet */
	struct daemon_subnet *subnet;
	struct daemon_rules rules;
	struct daemon_bad_links bad_links;
	struct daemon_late_mads late_mads;
	struct daemon_landing landing;
	struct base_hash ends; /* sockets of processes: struct daemon_detour_end */
	TAILQ_HEAD(daemon_parcels, daemon_parcel) waiting; /* their turn is next */
	/* they come later; the second ones with the next packet of their queue pair */
	struct daemon_parcels held, held_for_next;
	size_t held_bytes;
	unsigned n_waiting;
	struct base_timer turn;
};

/* f, loop, self, times, qps, captures, roce and subnet are set. */
void daemon_detour_init(struct daemon_detour *d, struct daemon_requests *all);
void daemon_detour_stop(struct daemon_detour *d);

#endif
