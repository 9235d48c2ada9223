/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traps of the subnet management agents (InfiniBand specification volume 1, section
 * 14.2.5.1): each is a Notice, sent to the subnet manager that the node's PortInfo names,
 * and again, no sooner than PortInfo:SubnetTimeOut, until that answers TrapRepress. To who
 * knows no subnet manager, nothing is sent.
 *
 * Of a kind a port has one trap under way. What happens meanwhile changes what that says,
 * and is told when the subnet manager has answered: of links and capabilities at once, of
 * bad keys, which anybody may send in any number, not before the time is over.
 *
 * The manager's; not thread-safe. What the fabric is when they are called is what the
 * subnet manager finds. Time comes from struct fabric_clock (mads.h); where there is none,
 * each trap is sent once.
 */
#ifndef FABRIC_TRAPS_H
#define FABRIC_TRAPS_H

#include "fabric/mads.h"

/* 128: a port of the switch @sw has gone down or come back. Of an HCA: nothing. */
void fabric_trap_link_state(struct fabric *f, struct fabric_node *sw);

/*
 * 144: of @p, an HCA's port or a switch's port 0, the CapabilityMask has changed (@flags: 0), or
 * what @flags say, LOCAL_CHANGE_X.
 */
void fabric_trap_local_changes(struct fabric *f, struct fabric_port *p, unsigned flags);

/* 256: the request @mad, which arrived at @at, had the wrong M_Key. */
void fabric_trap_bad_m_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);

/* 257: the MAD @mad, which arrived at the end port @at, has the P_Key @pkey. Counts it too. */
void fabric_trap_bad_p_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad,
                           uint16_t pkey);

/* What is known of a packet that a switch holds back. */
struct fabric_trap_packet {
	uint16_t slid, dlid, pkey;
	uint32_t src_qpn;
	const struct fabric_mad *mad; /* or NULL: then nothing else */
};

/* 259: the port @at of a switch holds it back, by PortInfo's PartitionEnforcement. */
void fabric_trap_switch_p_key(struct fabric *f, struct fabric_port *at,
                              const struct fabric_trap_packet *packet);

/*
 * 257 and 258: tells of the packets with bad keys that programs have got since the last call.
 * They only count them, in shared memory: so that they need not wait, this is called after each
 * turn of the manager's loop and whenever the counters are read. Costs next to nothing if there
 * are none.
 */
void fabric_traps_notice_keys(struct fabric *f);

/* Sends again what has waited long enough at @now_ns, and asks to be called again in time. */
void fabric_traps_run(struct fabric *f, uint64_t now_ns);

/* Whether the SubnTrapRepress @mad, which arrived at @at, answers a trap of that port. */
bool fabric_trap_is_awaited(struct fabric *f, const struct fabric_port *at,
                            const struct fabric_mad *mad);

/* That trap is answered. */
void fabric_trap_repressed(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);

void fabric_traps_free(struct fabric *f);

#endif
