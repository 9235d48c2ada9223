/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compiled forwarding. A flow is what one queue pair sends to one destination; its
 * record in shared memory lists whom that reaches, by the tables of the switches
 * and the attachments of the HCAs. When these change, the flows that they concern
 * are walked again, and senders see by the record's sequence number that their copy
 * is old.
 *
 * A flow also remembers the links it crosses, so that what its sender counted can
 * be added to the counters of all ports along the path when somebody asks.
 *
 * The manager's; not thread-safe.
 */
#ifndef FABRIC_FLOW_H
#define FABRIC_FLOW_H

#include <sys/queue.h>

#include "base/hash.h"
#include "base/idtable.h"
#include "fabric/fabric.h"
#include "shm/extent.h"

struct fabric_flow_key {
	uint32_t qpn; /* of the sender */
	uint16_t dlid;
	uint8_t path_bits;
	bool is_global;
	struct ib_gid dgid; /* zero if not global */
};

struct fabric_spread;

/* How far its packets get on their first link, into the subnet. */
enum fabric_flow_start {
	FABRIC_FLOW_CUT,    /* the link carries nothing */
	FABRIC_FLOW_BARRED, /* the switch's port holds their partition back */
	FABRIC_FLOW_IN,
};

struct fabric_flow {
	uint32_t id; /* index of its record */
	struct fabric_flow_key key;
	struct fabric_port *from;
	struct fabric_spread *spread; /* spread.h: whom it reaches and how */
	LIST_ENTRY(fabric_flow) of_spread;
	enum fabric_flow_start start; /* when its record was written */
	uint64_t packets, bytes;      /* counted and passed on to the ports so far */
};

struct fabric_flows {
	struct base_idtable ids;
	struct base_hash by_gid, by_lid, by_key; /* struct fabric_spread */
	struct shm_extents lists;
	uint32_t *list; /* where a list is put together */
	uint32_t n_list, list_room;
};

void fabric_flow_init(struct fabric *f);
void fabric_flow_fini(struct fabric *f);

/* A flow from @from. 0, -ENOSPC or -ENOMEM. */
int fabric_flow_add(struct fabric *f, struct fabric_port *from, const struct fabric_flow_key *key,
                    struct fabric_flow **flow);
void fabric_flow_remove(struct fabric *f, struct fabric_flow *flow);

/*
 * The flows to @mgid have one receiver more, or less, behind a port that they reach or do not
 * reach. Attaching a QP walks nothing again: groups of thousands come together so.
 */
void fabric_flow_attached(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn);
void fabric_flow_detached(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn);

/* The P_Key of the queue pair that sends on it is another: walks it again. */
void fabric_flow_pkey_changed(struct fabric *f, struct fabric_flow *flow);

/* Walks the flows again that go to this MGID, to this LID, or all. */
void fabric_flow_group_changed(struct fabric *f, const struct ib_gid *mgid);
void fabric_flow_lid_changed(struct fabric *f, uint16_t lid);
void fabric_flow_all_changed(struct fabric *f);

/*
 * The row of @mlid in the switch of @out has gained @out, or lost it, and @out leads to an HCA.
 * Walks nothing again: a group of thousands comes together so.
 */
void fabric_flow_edge_changed(struct fabric *f, struct fabric_port *out, uint16_t mlid);

/* Walks those again that cross a link which carries no more. */
void fabric_flow_links_down(struct fabric *f);

/* Brings the port counters up to date with what senders have counted. */
void fabric_flow_collect(struct fabric *f);

#endif
