/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric as the manager knows it: hosts, HCAs, switches, ports, links, and the
 * forwarding tables that a subnet manager writes into the switches. A packet goes
 * where these tables send it; nobody walks them for each packet, though: flow.h
 * keeps the outcome.
 *
 * The manager's alone; not thread-safe. What other processes must know of ports is
 * mirrored into the shared memory by fabric_port_publish().
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "shm/region.h"
#include "wire/ib.h"

#define FABRIC_NAME       32
#define FABRIC_DESC       65  /* a NodeDescription and its end */
#define FABRIC_MAX_PORTS  254 /* of a switch; 255 means "nowhere" in an LFT */
#define FABRIC_LFT_NONE   255
#define FABRIC_MFT_BLOCKS 4 /* 64 ports each */
#define FABRIC_MAX_HOPS   64
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
	FABRIC_LOST_RELAY,     /* the tables lead nowhere from where it came in */
	FABRIC_LOST_DISCARD,   /* the port that it is to leave by carries nothing */
	FABRIC_LOST_XMIT_PKEY, /* that port, or the one it came in by, holds its partition back */
	FABRIC_LOST_RCV_PKEY,
	FABRIC_LOSSES,
};

#define FABRIC_COUNTERS 13 /* of a port, that its PMA knows */

/* A GUID that a subnet manager has given an HCA's port beside its own (GUIDInfo). */
struct fabric_alias {
	struct base_hash_node by_guid; /* in the fabric's by_alias, unless guid is 0 */
	struct fabric_port *port;
	uint64_t guid;
};

struct fabric_port {
	struct fabric_node *node;
	struct fabric_port *peer; /* other end of the link; NULL: nothing plugged in */
	uint8_t num;
	uint8_t state; /* enum ib_port_state */
	uint8_t mtu;   /* enum ibv_mtu */
	uint8_t lmc;
	uint8_t width, speed;             /* of the link: enum fabric_width, fabric_speed */
	uint8_t width_built, speed_built; /* the most that it can have; 0: the default */
	bool cut;                         /* link.h: somebody took the link down */
	bool disabled;                    /* PortPhysicalState: the link stays down */
	uint16_t lid;                     /* HCA ports and switch port 0 */
	uint32_t index;                   /* HCA ports: in the shared port table */
	uint64_t guid;
	struct base_hash_node by_guid; /* HCA ports */
	struct fabric_alias *alias;    /* by index, [0] unused; NULL: none was ever given */
	struct fabric_port_stats {
		uint64_t xmit_packets, xmit_bytes, recv_packets, recv_bytes;
		uint64_t xmit_mcast, recv_mcast; /* packets to a group, of these */
		uint64_t link_downed;
		uint64_t lost[FABRIC_LOSSES]; /* of a switch's port */
	} stats;                              /* bytes: of UD payload */
	/* what the PMA's counters were when somebody wrote them last: pma.c */
	uint64_t zero[FABRIC_COUNTERS], zero_extended[FABRIC_COUNTERS];
	/* what a subnet manager sets by PortInfo and P_KeyTable: sma.c */
	uint64_t m_key;
	uint16_t m_key_lease;
	uint8_t m_key_protect;
	uint16_t m_key_violations;
	uint16_t p_key_violations;       /* of a switch's port 0 */
	uint64_t m_key_lease_ends;       /* ns; 0: nobody without the key has tried */
	uint64_t p_key_told, p_key_zero; /* HCA ports: of the packets counted in shared memory */
	uint64_t q_key_told, q_key_zero;
	uint8_t sm_sl, subnet_timeout;
	struct fabric_port_link { /* as it was set; but for the first line it changes nothing here
		                   */
		uint8_t width_enabled, speed_enabled, speed_ext_enabled; /* 0: all supported */
		uint8_t vl_high_limit, vl_stall_count, hoq_life;
		uint8_t local_phy_errors, overrun_errors;
		bool partition_inbound, partition_outbound, raw_inbound, raw_outbound;
	} link;
	uint16_t sm_lid;
	uint32_t capabilities; /* of PortInfo:CapabilityMask, those that come and go */
	uint16_t pkey[SHM_PKEYS];
	LIST_HEAD(, fabric_trap) traps;   /* traps.c: of an HCA's port or a switch's port 0 */
	struct fabric_ethernet *ethernet; /* ethernet.h; NULL: the link layer is InfiniBand */
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
	uint32_t vendor_id, device_id; /* as the plan has them; 0: not said */
	bool enhanced_port0;           /* switches */
	unsigned n_ports;
	struct fabric_port *port; /* [0] is a switch's own port 0; an HCA's begin at [1] */
	uint32_t hca;             /* HCAs: index in the shared HCA table */
	uint32_t index;           /* switches: which of them, from 0 */
	uint8_t *lft;             /* switches: out port by LID, FABRIC_LFT_NONE: nowhere */
	uint32_t lft_size;
	struct fabric_mft_row *mft; /* switches: by MLID - 0xC000 */
	uint32_t mft_size;
	uint32_t mark;             /* of the walk that came by last */
	uint16_t lft_top, mft_top; /* switches: SwitchInfo, sma.c */
	uint8_t life_time, state_change;
	bool dead; /* switches: link.h */
};

struct fabric_host {
	char name[FABRIC_NAME];
};

struct fabric_attach;
struct fabric_ethernet;
struct fabric_flows;
struct fabric_mads;
struct fabric_plan;

struct fabric {
	struct shm_region *region;
	struct fabric_attach *attach; /* attach.h */
	struct fabric_flows *flows;   /* flow.h */
	struct fabric_mads *mads;     /* mads.h */
	struct shm_settings settings;
	struct fabric_host *host;
	unsigned n_hosts;
	struct fabric_node **node;
	unsigned n_nodes, n_switches;
	struct fabric_port **hca_port; /* by index in the shared port table */
	unsigned n_hca_ports;
	struct base_hash by_guid, by_alias; /* of HCA ports */
	uint32_t walk;
	uint64_t subnet_prefix; /* host order */
};

/* Default settings; the ones that a name finds may be changed before the start. */
void fabric_settings_default(struct shm_settings *s);

/* Sets @key to @value (text). @live: the fabric is up, and only some may change. 0; -ENOENT no
 * such setting; -EPERM not while up; -ERANGE, -EINVAL. */
int fabric_settings_set(struct shm_settings *s, const char *key, const char *value, bool live);

/* The name and value of setting @i; false past the last. */
bool fabric_settings_get(const struct shm_settings *s, unsigned i, const char **key,
                         uint32_t *value);

/* What values the setting can have, for messages. */
const char *fabric_settings_want(const char *key);

/* The value's name where setting @i has names for numbers; else NULL. */
const char *fabric_settings_name(const struct shm_settings *s, unsigned i);

/* Builds what @plan says, which is finished (plan.h). Makes the shared memory too. 0 or -errno. */
int fabric_new(struct fabric **f, const struct fabric_plan *plan,
               const struct shm_settings *settings);
void fabric_free(struct fabric *f);

/* The host named @name, or -1. */
int fabric_host_find(const struct fabric *f, const char *name);

/* Mirrors the port into shared memory; after any change to it. */
void fabric_port_publish(struct fabric *f, struct fabric_port *p);

/* The HCA port that has @gid, made of its own GUID or of an alias, or NULL. */
struct fabric_port *fabric_port_by_gid(struct fabric *f, const struct ib_gid *gid);

/* Whether the HCA port has @gid. */
bool fabric_port_has_gid(const struct fabric *f, const struct fabric_port *p,
                         const struct ib_gid *gid);

/* GUID @i of an HCA port, from 0, its own; 0: there is none. */
uint64_t fabric_port_guid(const struct fabric_port *p, unsigned i);

/* Gives it GUID @i, from 1 to SHM_IB_GIDS - 1; 0 takes it away. To be published. 0 or -ENOMEM. */
int fabric_port_set_guid(struct fabric *f, struct fabric_port *p, unsigned i, uint64_t guid);

void fabric_gid_make(const struct fabric *f, uint64_t guid, struct ib_gid *gid);

/* ---- forwarding tables: what a subnet manager may write ---- */

/* Out port for a unicast LID; FABRIC_LFT_NONE: nowhere. 0 or -ENOMEM, -EINVAL. */
int fabric_lft_set(struct fabric_node *sw, uint16_t lid, uint8_t port);
static inline uint8_t fabric_lft_get(const struct fabric_node *sw, uint16_t lid)
{
	return lid < sw->lft_size ? sw->lft[lid] : FABRIC_LFT_NONE;
}

/* The row of @mlid (all zero: nowhere). 0, -ENOSPC beyond the switch's capacity, -ENOMEM. */
int fabric_mft_set(struct fabric *f, struct fabric_node *sw, uint16_t mlid,
                   const struct fabric_mft_row *row);
const struct fabric_mft_row *fabric_mft_get(const struct fabric_node *sw, uint16_t mlid);

/* Whether data packets leave by @out: only an active port carries them. */
static inline bool fabric_port_carries(const struct fabric_port *out)
{
	return out->state == IB_PORT_ACTIVE && out->peer && out->peer->state == IB_PORT_ACTIVE;
}

/*
 * Whether packets with @pkey pass a switch's port, which may hold back those of partitions that
 * are not in its P_Key table (PortInfo:PartitionEnforcementInbound and Outbound); an HCA's do.
 */
bool fabric_port_admits(const struct fabric_port *in, uint16_t pkey);
bool fabric_port_emits(const struct fabric_port *out, uint16_t pkey);

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

/* Where packets go from an HCA port: told port by port. */
struct fabric_walk {
	void (*hop)(void *arg, struct fabric_port *out);     /* a link is crossed, out to peer */
	void (*reached)(void *arg, struct fabric_port *hca); /* an HCA port takes the packet in */
	/* a switch's port drops the packet; may be NULL */
	void (*lost)(void *arg, struct fabric_port *at, enum fabric_loss why);
	void *arg;
	uint16_t pkey; /* of the packet; 0: partitions do not count */
	uint8_t mtu;   /* out: smallest of the links crossed */
};

void fabric_walk_unicast(struct fabric *f, struct fabric_port *from, uint16_t dlid,
                         struct fabric_walk *w);
void fabric_walk_multicast(struct fabric *f, struct fabric_port *from, uint16_t mlid,
                           struct fabric_walk *w);

/* The same for whatever comes into @sw by a port of an HCA: out of all ports, theirs too. */
void fabric_walk_from_switch(struct fabric *f, struct fabric_node *sw, uint16_t mlid,
                             struct fabric_walk *w);

#endif
