/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of the detour: a packet is delivered to the queue pairs that its flow reaches now.
 */
#ifndef DAEMON_LANDING_H
#define DAEMON_LANDING_H

#include "control/detour.h"
#include "daemon/network/self.h"
#include "hca/link/packet_receiver.h"
#include "hca/queue/sender.h"

/* The two bits of ECN in the traffic class: it met congestion. */
#define DAEMON_ECN_MARKED 3u

struct daemon_roce;
struct fabric_flow;
struct hca_receiver;

/* By what the daemon delivers. */
struct daemon_landing {
	struct fabric *f;
	struct daemon_self *self;
	struct daemon_roce *roce; /* NULL: no port is on Ethernet */
	bool is_ready;            /* the sender is there */
	struct hca_sender sender;
	struct hca_wires wires;  /* connected queue pairs whose packets come */
	struct hca_receiver *to; /* scratch: of a multicast message */
	uint32_t to_room;
};

/* f, self and roce are set. 0 or -errno. */
int daemon_landing_open(struct daemon_landing *l);
void daemon_landing_close(struct daemon_landing *l);

/* A batch of packets is done: acknowledgements and responses leave. Whether some are left. */
bool daemon_landing_finish(struct daemon_landing *l);

/* Delivers a packet of @flow, as its sender in a process would. @cut: the ports that miss it, by
 * index; or NULL. @sgid: its sender's, in another subnet; NULL: it is of this one. Packets that
 * receivers do not take are counted as always; packets that a router takes on do not land. False:
 * it is lost before it can, as it is larger than the path's MTU. */
bool daemon_land(struct daemon_landing *l, const struct fabric_flow *flow,
                 const struct control_detour *packet, const void *payload, const uint8_t *cut,
                 const struct ib_gid *sgid);

#endif
