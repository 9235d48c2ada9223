/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric as the daemon knows it: hosts, HCAs, switches, ports, links, and the forwarding
 * tables that a subnet manager writes into the switches. A packet goes where these tables send
 * it. They are not walked for each packet: flow.h keeps the result of the walk.
 *
 * Only the daemon uses this; not thread-safe. fabric_port_publish() copies what other processes
 * must know of a port into the shared memory.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/weak.h"
#include "base/hash.h"
#include "shm/region.h"
#include "wire/ib.h"

#define FABRIC_NAME       32
#define FABRIC_DEVICE     20  /* a device's name, with a zero byte: UMAD_CA_NAME_LEN */
#define FABRIC_DESC       65  /* a NodeDescription and a zero byte */
#define FABRIC_MAX_PORTS  254 /* of a switch; 255 means "nowhere" in an LFT */
#define FABRIC_LFT_NONE   255
#define FABRIC_MFT_BLOCKS 4 /* 64 ports each */
#define FABRIC_MAX_HOPS   64
#define FABRIC_WORD       16 /* a firmware's version, a board's name */
#define FABRIC_VENDOR_ID  0x02756D
#define FABRIC_DEVICE_ID  1
#define FABRIC_OUI_GUID   0x02756D0000000000ull /* a locally administered prefix */

enum fabric_node_type { FABRIC_HCA, FABRIC_SWITCH };

/* Widths and speeds of links, as in struct ibv_port_attr and PortInfo. */
enum fabric_width {
	FABRIC_WIDTH_1X = 1,
	FABRIC_WIDTH_4X = 2,
	FABRIC_WIDTH_8X = 4,
	FABRIC_WIDTH_12X = 8,
	FABRIC_WIDTH_2X = 16,
};
enum fabric_speed {
	FABRIC_SPEED_SDR = 1,
	FABRIC_SPEED_DDR = 2,
	FABRIC_SPEED_QDR = 4,
	FABRIC_SPEED_FDR10 = 8,
	FABRIC_SPEED_FDR = 16,
	FABRIC_SPEED_EDR = 32,
	FABRIC_SPEED_HDR = 64,
	FABRIC_SPEED_NDR = 128,
};

/* Why a switch drops a packet. */
enum fabric_loss {
	FABRIC_LOST_RELAY,     /* the switch has no route for it */
	FABRIC_LOST_LOOP,      /* the route leads back out of the port that it came in by */
	FABRIC_LOST_DISCARD,   /* the port that it should leave by is not active */
	FABRIC_LOST_XMIT_PKEY, /* the port that it should leave by blocks its partition */
	FABRIC_LOST_RCV_PKEY,  /* the port that it came in by blocks its partition */
	FABRIC_LOST_VL,        /* the port that it should leave by has no lane for it (lanes.h):
	                          counted where it came in, as those without a route are */
	FABRIC_LOSSES,
};

#define FABRIC_COUNTERS 16 /* counters of a port that its PMA reports */

/* An additional GUID of an HCA's port, set by a subnet manager (GUIDInfo). */
struct fabric_alias {
	struct base_hash_node by_guid; /* in the fabric's by_alias unless guid is 0 */
	struct fabric_port *port;
	uint64_t guid;
};

/* The network device of an Ethernet port (ethernet.h). All zero: there is none. */
struct fabric_ethernet {
	uint32_t ifindex;
	uint32_t network; /* devices of other networks are reached by packets only */
	bool up;          /* it carries packets */
	uint16_t round;   /* counts up when the port gets other sockets */
	uint32_t ipv4;    /* its first address, network order; 0: none */
	uint8_t ipv6[16];
	uint8_t mac[6];
	struct ib_gid gid[SHM_GIDS]; /* zero where an entry is empty */
};

/* A link's fault, as of a bad cable. All zero: none. */
struct fabric_link_fault {
	bool down;
	uint8_t widths, speeds; /* that it can still have; 0: all */
};

struct fabric_port {
	struct fabric_node *node;
	struct fabric_port *peer; /* other end of the link; NULL: nothing plugged in */
	uint8_t num;
	uint8_t state; /* enum ib_port_state */
	uint8_t mtu;   /* enum ibv_mtu */
	uint8_t lmc;
	uint8_t width, speed;             /* of the link: enum fabric_width, fabric_speed */
	uint8_t width_built, speed_built; /* the most that it supports; 0: the default */
	bool cut;                         /* link.h: the link was set down */
	struct fabric_link_fault fault;   /* link.h: of the link, at both ends */
	bool disabled;                    /* PortPhysicalState: Disabled; the link stays down */
	bool asleep;    /* PortPhysicalState: Sleep, while DOWN; only a port that polls wakes it */
	uint16_t lid;   /* HCA ports and switch port 0 */
	uint32_t index; /* HCA ports: in the shared port table */
	uint8_t router; /* routers.h: its number there, from 1; 0: it is none */
	uint64_t guid;
	struct base_hash_node by_guid; /* HCA ports */
	struct fabric_alias *alias;    /* by GUID index, [0] unused; NULL: none was ever set */
	struct fabric_port_stats {
		uint64_t xmit_packets, xmit_bytes, recv_packets, recv_bytes;
		uint64_t xmit_mcast, recv_mcast;     /* those of the packets that went to a group */
		uint64_t xmit_headers, recv_headers; /* bytes of headers and CRC */
		uint64_t recv_ud_packets, recv_ud_bytes; /* of datagrams, with headers */
		uint64_t link_downed, link_recovered;    /* from errors, without going down */
		uint64_t damaged;             /* packets that came so, and were dropped: faults */
		uint64_t symbol_errors;       /* beside these */
		uint64_t lost[FABRIC_LOSSES]; /* of a switch's port */
		/* of an HCA's: packets sent to a group that reached no other port; and those that
		 * came while no queue pair was attached */
		uint64_t mcast_unheard, mcast_unattached;
	} stats; /* xmit_bytes and recv_bytes: of payload */
	/* Ethernet: packets from the network, and their bytes, that are in stats */
	struct {
		uint64_t packets, bytes;
	} collected;
	/* the counts when the PMA's counters were last written: they count from here (pma.c) */
	uint64_t zero[FABRIC_COUNTERS], zero_extended[FABRIC_COUNTERS];
	struct fabric_pma_zeros *zero_details; /* pma_details.c: likewise; NULL: never written */
	/* what a subnet manager sets by PortInfo and P_KeyTable: sma.c */
	uint64_t m_key;
	uint16_t m_key_lease;
	uint8_t m_key_protect;
	uint16_t m_key_violations;
	uint16_t p_key_violations; /* of a switch's port 0 */
	uint64_t m_key_lease_ends; /* ns; 0: the lease does not run */
	/* HCA ports: how many of the packets counted in shared memory traps have reported, and how
	 * many there were when the violation counter was last written */
	uint64_t p_key_told, p_key_zero;
	uint64_t q_key_told, q_key_zero;
	uint8_t sm_sl, subnet_timeout;
	/* as a subnet manager set it; only the first line, partition_* and operational_vls have an
	 * effect */
	struct fabric_port_link {
		uint8_t width_enabled, speed_enabled, speed_ext_enabled; /* 0: all supported */
		uint8_t vl_high_limit, vl_stall_count, hoq_life;
		uint8_t local_phy_errors, overrun_errors;
		bool partition_inbound, partition_outbound, raw_inbound, raw_outbound;
		bool sleeps;             /* LinkDownDefaultState: Sleep */
		bool fdr10_off;          /* MlnxExtPortInfo: FDR10 is not enabled */
		uint8_t operational_vls; /* enum vl_cap; 0: all */
	} link;
	uint16_t sm_lid;
	bool has_issm_open;    /* a program says by it that it is a subnet manager */
	uint32_t capabilities; /* the bits of PortInfo:CapabilityMask that may change */
	uint16_t pkey[SHM_PKEYS];
	LIST_HEAD(, fabric_trap) traps;   /* traps.c: of an HCA's port or a switch's port 0 */
	struct fabric_ethernet *ethernet; /* NULL: the link layer is InfiniBand */
	struct fabric_cc *cc;             /* cca.c: end ports; NULL: nobody has asked yet */
	struct fabric_lanes *lanes;       /* lanes.h; NULL: as they are by default */
	/* mcast_path.h: where flows leave by this port, or would if it had a lane for them */
	TAILQ_HEAD(fabric_port_hops, fabric_mcast_path_hop) hops, old_hops;
	TAILQ_HEAD(fabric_port_flows, fabric_flow) flows, old_flows; /* HCA ports: of senders */
	/* old: those that have not followed a change of the port yet */
	TAILQ_ENTRY(fabric_port) of_changed;
	bool is_changed; /* the port is in the list of those with old hops or flows */
	SLIST_ENTRY(fabric_port) of_relinked;
	bool is_relinked; /* the port is in fabric.relinked */
};

/* One multicast LID's row in a switch. */
struct fabric_mft_row {
	uint64_t ports[FABRIC_MFT_BLOCKS];
};

struct fabric_node {
	enum fabric_node_type type;
	char name[FABRIC_NAME];
	char desc[FABRIC_DESC]; /* NodeDescription */
	uint64_t guid, system_guid;
	uint32_t vendor_id, device_id; /* from the plan */
	bool enhanced_port0;           /* switches */
	bool is_router;                /* HCAs: NodeInfo says router */
	unsigned n_ports;
	struct fabric_port *port; /* [0] is a switch's own port 0; an HCA's begin at [1] */
	uint32_t hca;             /* HCAs: index in the shared HCA table */
	uint32_t index;           /* switches: numbered from 0 */
	uint8_t *lft;             /* switches: out port by LID; FABRIC_LFT_NONE: no route */
	uint32_t lft_size;
	uint32_t lft_end; /* from this LID on packets are discarded: the table ends, or its top */
	struct fabric_mft_row *mft; /* switches: by MLID - 0xC000 */
	uint32_t mft_size;
	uint32_t mft_end;          /* rows from here on do not count: the table ends, or its top */
	uint32_t mark;             /* switches: the last walk that visited it */
	uint16_t lft_top, mft_top; /* switches: SwitchInfo, sma.c */
	uint8_t mcast_primary, mcast_not_primary; /* likewise; FABRIC_LFT_NONE: none */
	uint8_t life_time, state_change;
	bool dead;                          /* switches: link.h */
	struct fabric_pma_samples *samples; /* pma_samples.c; NULL: never asked for */
	/* switches: the way of packets depends on the port that they come in by, as lanes are
	 * mapped (SLtoVLMappingTable) or there are default multicast ports; flows follow */
	bool parts_ports;
	LIST_HEAD(, fabric_mcast_path) entering; /* switches: paths that begin here */
};

struct fabric_host {
	char name[FABRIC_NAME];
	uint32_t n_programs; /* that have opened its HCAs so far */
};

struct fabric_attach;
struct fabric_lanes;
struct fabric_flows;
struct fabric_mads;
struct fabric_routers;
struct fabric_event;

/* The listener to events: event.h. hear is NULL: nobody. */
struct fabric_listener {
	void (*hear)(void *arg, const struct fabric_event *event);
	void (*pass_on)(void *arg); /* before the process that made it happen hears of it */
	void *arg;
};

/* On a weak fabric (base/weak.h): the amount that is chosen for @step of the @request-th request of
 * @object. choose is NULL: it is not weak. */
struct fabric_weak {
	uint8_t (*choose)(void *arg, uint32_t object, uint32_t request, enum base_weak_step step);
	void *arg;
};

struct fabric {
	struct shm_region *region;
	struct fabric_attach *attach;   /* attach_table.h */
	struct fabric_flows *flows;     /* flow_state.h */
	struct fabric_mads *mads;       /* mads.h */
	struct fabric_routers *routers; /* routers.h */
	struct shm_settings settings;
	struct fabric_host *host;
	unsigned n_hosts;
	struct fabric_node **node;
	unsigned n_nodes, n_switches;
	struct fabric_port **hca_port; /* by index in the shared port table */
	unsigned n_hca_ports;
	unsigned n_ib_ports; /* the first of them; the others are on Ethernet, and no SM's */
	struct base_hash by_guid, by_alias; /* of HCA ports */
	uint32_t walk;
	uint64_t subnet_prefix; /* host order */
	struct fabric_listener listener;
	/* ports whose state somebody else has set since the embedded subnet manager looked last */
	SLIST_HEAD(, fabric_port) relinked;
	struct fabric_weak weak;
	uint64_t foreign; /* SMPs that may have written tables, switches back without them */
};

/* Lowers what other settings make impossible: max_total_mcast_qp_attach. */
void fabric_settings_fit(struct shm_settings *s);

/* Sets all settings to their defaults. */
void fabric_settings_default(struct shm_settings *s);

/*
 * Sets the setting named @key to @value, a text. @live: the fabric is up, and only some settings
 * may change. Returns 0; -ENOENT: no such setting; -EPERM: it cannot change while the fabric is
 * up; -ERANGE or -EINVAL: it cannot have this value.
 */
int fabric_settings_set(struct shm_settings *s, const char *key, const char *value, bool live);

/* The name and value of setting number @i, from 0. False: there are no more. */
bool fabric_settings_get(const struct shm_settings *s, unsigned i, const char **key,
                         uint32_t *value);

/* The values that the setting @key can have, as text for messages. */
const char *fabric_settings_want(const char *key);

/* The value to take for one that only OpenSM has; NULL: it is nothing of OpenSM's. */
const char *fabric_settings_instead(const char *key, const char *value);

/* The name of a value of the setting "routing"; NULL: there is no such value. */
const char *fabric_routing_name(unsigned routing);

/* The name of the value of setting @i, for example "minhop"; NULL: its values are numbers. */
const char *fabric_settings_name(const struct shm_settings *s, unsigned i);

/* The number of the host named @name, or -1. */
int fabric_host_find(const struct fabric *f, const char *name);

/* Copies the port's state to its record in shared memory. To be called after any change to it. */
void fabric_port_publish(struct fabric *f, struct fabric_port *p);

/* Code that sets ->state, except the embedded subnet manager, calls this: a sweep looks at no other
 * ports. */
void fabric_port_relinked(struct fabric *f, struct fabric_port *p);

/* Has fabric_port_by_gid() find the HCA port by its own GUID. 0 or -ENOMEM. */
int fabric_port_index(struct fabric *f, struct fabric_port *p);

/* The HCA port that has @gid, made from its own GUID or from an alias; or NULL. */
struct fabric_port *fabric_port_by_gid(struct fabric *f, const struct ib_gid *gid);

/*
 * The Ethernet port of this fabric, and of @from's network, that has @gid, and is not down; NULL:
 * there is none. @from comes first, as a link-local address may be in use on several devices.
 */
struct fabric_port *fabric_ethernet_find(const struct fabric *f, struct fabric_port *from,
                                         const struct ib_gid *gid);
/* Likewise, but if none of @from's network has it, one of another network: for connected queue
 * pairs, which meet in memory whatever their networks are. */
struct fabric_port *fabric_ethernet_find_anywhere(const struct fabric *f, struct fabric_port *from,
                                                  const struct ib_gid *gid);

/* Whether the HCA port has @gid. */
bool fabric_port_has_gid(const struct fabric *f, const struct fabric_port *p,
                         const struct ib_gid *gid);

/* GUID number @i of an HCA port; number 0 is its own. 0: there is none. */
uint64_t fabric_port_guid(const struct fabric_port *p, unsigned i);

/*
 * Sets GUID number @i, from 1 to SHM_IB_GIDS - 1, of an HCA port to @guid; 0 removes it. The
 * caller publishes the port. Returns 0 or -ENOMEM.
 */
int fabric_port_set_guid(struct fabric *f, struct fabric_port *p, unsigned i, uint64_t guid);

/* The GID of @guid in this fabric's subnet (InfiniBand specification, section 4.1.1). */
void fabric_gid_make(const struct fabric *f, uint64_t guid, struct ib_gid *gid);

/* PortInfo:CapabilityMask of an HCA's port or a switch's port 0; 0: another port of a switch. */
uint32_t fabric_port_capabilities(const struct fabric_port *p);

/* PortInfo:CapabilityMask2, likewise: of port 0, what any port of the switch can. */
uint16_t fabric_port_capabilities2(const struct fabric_port *p);

/* ---- forwarding tables: what a subnet manager may write ---- */

/*
 * Routes the unicast LID @lid to @port; FABRIC_LFT_NONE: no route. Returns 0; -EINVAL: no unicast
 * LID; -ENOMEM. Flows do not follow by themselves (flow.h).
 */
int fabric_lft_set_new(struct fabric_node *sw, uint16_t lid,
                       uint8_t port); /* it may be too short */
static inline int fabric_lft_set(struct fabric_node *sw, uint16_t lid, uint8_t port)
{
	if (!lid || lid >= sw->lft_size)
		return fabric_lft_set_new(sw, lid, port);
	sw->lft[lid] = port;
	return 0;
}
/* The entry, whether packets are forwarded by it or not. */
static inline uint8_t fabric_lft_get(const struct fabric_node *sw, uint16_t lid)
{
	return lid < sw->lft_size ? sw->lft[lid] : FABRIC_LFT_NONE;
}
/* The port by which packets to the unicast LID @lid leave: no entry above the top counts. */
static inline uint8_t fabric_lft_out(const struct fabric_node *sw, uint16_t lid)
{
	return lid < sw->lft_end ? sw->lft[lid] : FABRIC_LFT_NONE;
}

/* Sets LinearFDBTop: unicast packets to LIDs above it are discarded. Flows do not follow by
 * themselves: fabric_flow_set_lft_top() */
void fabric_lft_set_top(struct fabric_node *sw, uint16_t top);

/*
 * Copies @row to the switch's table as the row of @mlid; all zero: no route. Returns 0; -ENOSPC:
 * @mlid is beyond the switch's capacity; -ENOMEM. Flows do not follow by themselves (flow.h).
 */
int fabric_mft_set(struct fabric *f, struct fabric_node *sw, uint16_t mlid,
                   const struct fabric_mft_row *row);
/* The row of @mlid, whether packets are forwarded by it or not; valid until the next
 * fabric_mft_set() on @sw. NULL: there is none. */
const struct fabric_mft_row *fabric_mft_get(const struct fabric_node *sw, uint16_t mlid);
/* Likewise, of those that packets are forwarded by: no row above MulticastFDBTop counts. */
const struct fabric_mft_row *fabric_mft_out(const struct fabric_node *sw, uint16_t mlid);

/* Sets MulticastFDBTop, an MLID; 0xBFFF: no row counts; 0: all do. Flows do not follow by
 * themselves: fabric_flow_set_mcast() */
void fabric_mft_set_top(struct fabric_node *sw, uint16_t top);
/* Whether @mlid is beyond the table: then the default multicast ports count. */
bool fabric_mft_is_beyond(const struct fabric *f, const struct fabric_node *sw, uint16_t mlid);

/* Whether @out carries data packets: both ends of its link must be ACTIVE. */
static inline bool fabric_port_carries(const struct fabric_port *out)
{
	return out->state == IB_PORT_ACTIVE && out->peer && out->peer->state == IB_PORT_ACTIVE;
}

/*
 * Whether packets with @pkey pass a port inwards, or outwards. A switch's port may block packets
 * of partitions that are not in its P_Key table (PortInfo:PartitionEnforcementInbound and
 * Outbound); an HCA's port blocks none here.
 */
bool fabric_port_admits(const struct fabric_port *in, uint16_t pkey);
bool fabric_port_emits(const struct fabric_port *out, uint16_t pkey);

/* Its lists of flows are empty. */
static inline void fabric_port_init_lists(struct fabric_port *p)
{
	TAILQ_INIT(&p->hops);
	TAILQ_INIT(&p->old_hops);
	TAILQ_INIT(&p->flows);
	TAILQ_INIT(&p->old_flows);
}

static inline bool fabric_row_has(const struct fabric_mft_row *row, unsigned port)
{
	return row && (row->ports[port / 64] >> (port % 64) & 1);
}

static inline bool fabric_row_is_empty(const struct fabric_mft_row *row)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < FABRIC_MFT_BLOCKS; i++)
		any |= row->ports[i];
	return !any;
}

static inline void fabric_row_add(struct fabric_mft_row *row, unsigned port)
{
	row->ports[port / 64] |= 1ull << (port % 64);
}

/* ---- the walk ---- */

/* Callbacks of fabric_walk_*() for each step of a packet; all in the caller's thread. */
struct fabric_walk {
	/* it came in by port number @in and crosses the link from @out on lane @vl;
	 * FABRIC_LANE_NONE: it does not, as it has no lane there */
	void (*hop)(void *arg, struct fabric_port *out, uint8_t in, uint8_t vl);
	void (*reached)(void *arg, struct fabric_port *hca); /* it reaches this HCA port */
	/* a switch drops it at its port @at; may be NULL */
	void (*lost)(void *arg, struct fabric_port *at, enum fabric_loss why);
	void *arg;
	uint16_t pkey; /* of the packet; 0: ignore partitions */
	uint8_t sl;
	uint8_t in;  /* fabric_walk_from_switch(): the port by which it came; 0: any */
	uint8_t mtu; /* result: enum ibv_mtu, the smallest of the links crossed */
};

/* Follows a packet from the HCA port @from to a LID, by the switches' tables. */
void fabric_walk_unicast(struct fabric *f, struct fabric_port *from, uint16_t dlid,
                         struct fabric_walk *w);
void fabric_walk_multicast(struct fabric *f, struct fabric_port *from, uint16_t mlid,
                           struct fabric_walk *w);

/*
 * Follows a multicast packet that came into @sw from some HCA: out of all ports of its row, those
 * to HCAs too.
 */
void fabric_walk_from_switch(struct fabric *f, struct fabric_node *sw, uint16_t mlid,
                             struct fabric_walk *w);

#endif
