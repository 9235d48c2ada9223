/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Virtual lanes (InfiniBand specification volume 1, sections 7.6 and 14.2.5.8 to 9). A link has up
 * to eight data lanes; the port where a packet leaves a node chooses one by the packet's service
 * level and the port that it came in by. A table says which; lane 15 means that the packet is
 * dropped, as does a lane that the port does not use (PortInfo:OperationalVLs). Until a subnet
 * manager writes the table, SL n uses lane n modulo the number of lanes.
 *
 * No packet ever waits for a lane: it crosses its links when it is posted. So the arbitration
 * tables, which choose between packets that wait, are kept and have nothing to decide.
 *
 * Most ports never need any of this: its memory is allocated when a table is written, or when
 * packets with an SL other than 0 cross the link.
 *
 * Only the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_LANES_H
#define FABRIC_LANES_H

#include "fabric/model/fabric.h"
#include "wire/sm_attr.h"

#define FABRIC_LANES     8
#define FABRIC_LANE_NONE 15 /* packets are dropped */
#define FABRIC_ARB_CAP   64 /* entries of each arbitration table */

struct fabric_lanes {
	uint8_t (*map)[IB_SLS];  /* by the number of the port in; NULL: never written */
	struct wire_vl_arb *arb; /* VL_ARB_PARTS; NULL: never written */
	/* what of the port's counts is of SLs other than 0, and of lanes other than 0 */
	struct fabric_lane_counts {
		uint64_t xmit_bytes[IB_SLS], recv_bytes[IB_SLS];
		uint64_t recv_ud_packets[FABRIC_LANES], recv_ud_bytes[FABRIC_LANES];
	} counts;
};

/* How many lanes the port uses. */
unsigned fabric_lanes_used(const struct fabric_port *p);

/* The lane of packets with @sl out of @out that came into its node by port number @in; an HCA's own
 * packets: 0. FABRIC_LANE_NONE: they are dropped. */
uint8_t fabric_lane_of(const struct fabric_port *out, unsigned in, uint8_t sl);

/* The port's lanes, made if there are none yet; NULL: there is no memory. fabric_lanes_free() */
struct fabric_lanes *fabric_lanes_get(struct fabric_port *p);
void fabric_lanes_free(struct fabric_port *p);

/* SLtoVLMappingTable of packets from port number @in. Writing returns 0 or -ENOMEM. */
void fabric_lanes_map_read(const struct fabric_port *out, unsigned in, struct wire_sl_to_vl *map);
int fabric_lanes_map_write(struct fabric_port *out, unsigned in, const struct wire_sl_to_vl *map);

/* A part of the arbitration tables, from 0. Writing returns 0 or -ENOMEM. */
void fabric_lanes_arb_read(const struct fabric_port *p, unsigned part, struct wire_vl_arb *arb);
int fabric_lanes_arb_write(struct fabric_port *p, unsigned part, const struct wire_vl_arb *arb);

#endif
