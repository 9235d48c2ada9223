/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traps of the subnet management agents (InfiniBand specification volume 1, section 14.2.5.1). A
 * trap is a Notice to the subnet manager that the node's PortInfo names. It is sent again, no
 * sooner than PortInfo:SubnetTimeOut, until the subnet manager responds with TrapRepress. A port
 * that knows no subnet manager sends no traps.
 *
 * A port has one unanswered trap of each kind. An event that happens meanwhile changes its Notice
 * and is sent after TrapRepress: an event of links or capabilities at once, a bad key, which any
 * program can cause at any rate, not before the timeout.
 *
 * Only the daemon uses this; not thread-safe. Callers have changed the fabric before they send the
 * trap, as the subnet manager may look at once. Time comes from struct fabric_clock (mads.h);
 * without one, each trap is sent once.
 */
#ifndef FABRIC_TRAPS_H
#define FABRIC_TRAPS_H

#include "fabric/agents/mads.h"

/* 128: a port of the switch @sw has gone down or come back. If @sw is an HCA, it sends nothing. */
void fabric_trap_link_state(struct fabric *f, struct fabric_node *sw);

/*
 * 144: @p, an HCA's port or a switch's port 0, has changed: its CapabilityMask (@flags: 0), or what
 * @flags, LOCAL_CHANGE_X, name.
 */
void fabric_trap_local_changes(struct fabric *f, struct fabric_port *p, unsigned flags);

/* 256: the request @mad, which arrived at @at, had the wrong M_Key. */
void fabric_trap_bad_m_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);

/*
 * 257: the MAD @mad, which arrived at the end port @at, had the wrong P_Key @pkey. Counts it too.
 */
void fabric_trap_bad_p_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad,
                           uint16_t pkey);

/* A packet that a switch blocks. */
struct fabric_trap_packet {
	uint16_t slid, dlid, pkey;
	uint32_t src_qpn;
	const struct fabric_mad *mad; /* the packet, if it is a MAD; or NULL */
};

/* 259: the switch's port @at has blocked @packet (PortInfo:PartitionEnforcement...). */
void fabric_trap_switch_p_key(struct fabric *f, struct fabric_port *at,
                              const struct fabric_trap_packet *packet);

/*
 * 257 and 258: reports the packets with bad keys that programs have received since the last call.
 * Programs only count them in shared memory and wake nobody; so the daemon calls this after each
 * turn of its loop and whenever the counters are read. Costs one load if there are none.
 */
void fabric_traps_notice_keys(struct fabric *f);

/* Sends the traps again whose timeout is over at @now_ns, and asks for the next call (wake()). */
void fabric_traps_run(struct fabric *f, uint64_t now_ns);

/* Whether the SubnTrapRepress @mad, which arrived at @at, responds to a trap of that port. */
bool fabric_trap_is_awaited(struct fabric *f, const struct fabric_port *at,
                            const struct fabric_mad *mad);

/* Ends that trap. */
void fabric_trap_repressed(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);

/* Frees all traps, at the end of the fabric. */
void fabric_traps_free(struct fabric *f);

#endif
