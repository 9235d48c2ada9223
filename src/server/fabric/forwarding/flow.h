/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compiled forwarding. A flow is what one queue pair sends to one destination. Its record in
 * shared memory lists the queue pairs that its packets reach, by the tables of the switches and
 * the attachments of the HCAs. When these change, the daemon compiles the affected flows again:
 * it walks the tables and rewrites the records. A record's sequence number tells senders that
 * their copy is old.
 *
 * A flow also knows the links that its packets cross, so that what its sender counted can be
 * added to the counters of all ports along the path (collect.h).
 *
 * Only the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_FLOW_H
#define FABRIC_FLOW_H

#include "fabric/model/flow_state.h"

void fabric_flow_init(struct fabric *f);
void fabric_flow_fini(struct fabric *f);

/*
 * Adds a flow from @from and compiles it. Returns 0 and *@flow, which fabric_flow_remove() frees,
 * or the arrival of its last packet after that; -ENOSPC: there is no free record; -ENOMEM.
 */
int fabric_flow_add(struct fabric *f, struct fabric_port *from, const struct fabric_flow_key *key,
                    struct fabric_flow **flow);
void fabric_flow_remove(struct fabric *f, struct fabric_flow *flow);

/* The flow with this number, or NULL: there is none, or its sender has given it up. */
struct fabric_flow *fabric_flow_find(const struct fabric *f, uint32_t id);

/* A packet of the flow is under way, and has landed or got lost. Until then the flow stays, also if
 * its sender gives it up. */
void fabric_flow_depart(struct fabric_flow *flow);
void fabric_flow_arrive(struct fabric *f, struct fabric_flow *flow);

/*
 * @qpn was attached to @mgid, or detached: adds it to the flows to that group that reach its
 * port, or removes it. Walks no tables, so that groups of thousands can form quickly.
 */
void fabric_flow_attached(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn);
void fabric_flow_detached(struct fabric *f, const struct ib_gid *mgid, uint32_t qpn);

/* Adds what was sent to the group since the last count to the counters of ports. @at_once: for one
 * of many that go at once, so only the first time in a turn of the loop. */
void fabric_flow_count_group(struct fabric *f, const struct ib_gid *mgid, bool at_once);

/* The packets that were sent to the group by paths that there are, as far as they were counted. */
struct fabric_flow_sent {
	uint64_t packets, bytes;
};
struct fabric_flow_sent fabric_flow_group_sent(const struct fabric *f, const struct ib_gid *mgid);

/*
 * A queue pair that is gone was attached to @mgid. Flows to that group list it until
 * fabric_flow_prune(), which removes all that are gone from a flow's list at once. It does some of
 * that, until *@budget is used up (fabric_flows.work); true: all is done.
 */
void fabric_flow_dropped(struct fabric *f, const struct ib_gid *mgid);
bool fabric_flow_prune(struct fabric *f, uint32_t *budget);

/*
 * The lanes out of @out have changed, by its table or its OperationalVLs (lanes.h): packets that
 * leave there have their new lane from now on, or are dropped once flows have followed (below).
 * Looks at the flows that leave there only, as a subnet manager writes a table for each pair of a
 * switch's ports. The first time that a switch's table is written, flows part that enter there by
 * different ports and shared a path.
 */
void fabric_flow_lanes_changed(struct fabric *f, struct fabric_port *out);

/* The P_Key of the sending queue pair has changed: compiles the flow again. */
void fabric_flow_pkey_changed(struct fabric *f, struct fabric_flow *flow);

/* Other flows go by the daemon now (fabric_flows.detour): their records say so. */
void fabric_flow_detour_changed(struct fabric *f);

/* Compiles the flows again that go to this LID; or all. */
void fabric_flow_lid_changed(struct fabric *f, uint16_t lid);
void fabric_flow_all_changed(struct fabric *f);

/*
 * @out, which leads to an HCA, was added to the row of @mlid in its switch, or removed: adds the
 * receivers behind it to the flows through that switch, or removes them. Walks no tables, so that
 * groups of thousands can form quickly. @since: fabric_flows.compiled before the row was written:
 * flows that were compiled after that have followed all of the row.
 */
void fabric_flow_edge_changed(struct fabric *f, struct fabric_port *out, uint16_t mlid,
                              uint64_t since);

/*
 * Changes that flows follow in slices, as thousands may cross one link, or go to one LID: they go
 * on as they were until fabric_flow_follow() compiles them, which does some until it is done or
 * *@budget is 0. @cost_of_work: of a unit of fabric_flows.work. True: all are done.
 *
 * fabric_flow_note_link(): the link of @p carries packets, or no longer does. _note_lid(): the
 * tables of a LID have changed. _mark_lid() is the same, and so cheap that a subnet manager may
 * write thousands of entries in a row: it looks for no flows. _mark_all(): all are to be compiled
 * again.
 */
void fabric_flow_note_link(struct fabric *f, struct fabric_port *p);
void fabric_flow_note_lid(struct fabric *f, uint16_t lid);
void fabric_flow_mark_lid(struct fabric *f, uint16_t lid);
void fabric_flow_mark_all(struct fabric *f);
/* Sets LinearFDBTop of the switch, and marks the LIDs that are forwarded now, or no longer. */
void fabric_flow_set_lft_top(struct fabric *f, struct fabric_node *sw, uint16_t top);
/* Likewise what SwitchInfo says of multicast. */
struct fabric_mcast_info {
	uint16_t top;                 /* fabric_mft_set_top() */
	uint8_t primary, not_primary; /* default ports */
};
void fabric_flow_set_mcast(struct fabric *f, struct fabric_node *sw,
                           const struct fabric_mcast_info *to);
bool fabric_flow_follow(struct fabric *f, uint32_t *budget, uint32_t cost_of_work);
void fabric_flow_follow_all(struct fabric *f);

#endif
