/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's end of the detour (hca/link/detour.h). Packets that come by it pass the rules of
 * faults, and land: the daemon delivers them, as a sender in a process would, or sends them to the
 * network. It is open while there are rules, or somebody captures; datagrams that reach a
 * router take it as well (daemon/router/router.h). RC and UC queue pairs that were
 * connected meanwhile go on to use it when it is closed.
 *
 * All packets are in one list, in the order in which they came. A queue pair's packets come by its
 * process's socket, and from the daemon itself, which acknowledges, answers and sends again for
 * processes (hca/transport/packet_connection.h). Before one of these is added, that socket is read
 * to its end: what the process has sent before comes first. A packet whose queue pair has gone
 * meanwhile goes on as on a wire: it keeps its flow.
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
#include "daemon/detour/weak_events.h"
#include "daemon/network/packet_timers.h"
#include "daemon/subnet/capture.h"

struct daemon_parcel;

/* A packet that has come to routers' ports, and is to leave the subnet. */
struct daemon_leaving {
	const struct fabric_flow *flow;
	const struct control_detour *packet;
	const void *payload;
	const struct ib_gid *sgid;
	bool is_foreign;    /* it has come in from another subnet */
	const uint8_t *cut; /* as daemon_land()'s */
};

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
	struct daemon_weak_events weak_events;
	struct daemon_landing landing;
	struct base_hash ends; /* sockets of processes: struct daemon_detour_end */
	TAILQ_HEAD(daemon_parcels, daemon_parcel) waiting; /* their turn is next */
	/* they come later; the second ones with the next packet of their queue pair */
	struct daemon_parcels held, held_for_next;
	size_t held_bytes;
	unsigned n_waiting;
	struct base_timer turn;
	bool is_held_back; /* no socket is read */
	/* A packet of a flow that reaches routers has landed. NULL: there are none. */
	void (*leave)(void *arg, const struct daemon_leaving *leaving);
	void *leave_arg;
};

/* f, loop, self, times, qps, captures, roce and subnet are set. */
void daemon_detour_init(struct daemon_detour *d, struct daemon_requests *all);
void daemon_detour_stop(struct daemon_detour *d);

/* Has packets land from now on, whether there are rules or not. 0 or -errno. */
int daemon_detour_prepare(struct daemon_detour *d);

/* A packet comes in from another subnet, where @sgid is: it goes on by @flow, behind those that
 * wait. */
void daemon_detour_bring(struct daemon_detour *d, struct fabric_flow *flow,
                         const struct control_detour *packet, const void *payload,
                         const struct ib_gid *sgid);

/* Whether so many wait that no more are to come. */
bool daemon_detour_is_full(const struct daemon_detour *d);

/* Whether processes are to wait with what they send. */
void daemon_detour_hold_back(struct daemon_detour *d, bool is);

#endif
