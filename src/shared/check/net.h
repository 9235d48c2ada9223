/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A subnet as its tables describe it, from any subnet manager: switches with their links,
 * forwarding tables and lanes, ports of hosts, multicast groups. check.h judges it. The caller
 * fills it in, and says what is linked: the two directions of a cable are two links, each named by
 * the port where it begins. Not thread-safe.
 */
#ifndef CHECK_NET_H
#define CHECK_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_NONE     UINT32_MAX
#define CHECK_NO_ROUTE 255 /* in an LFT */
#define CHECK_ANY_SL   255 /* of a path: any service level will do */
#define CHECK_SLS      16
#define CHECK_LANES    8
#define CHECK_BLOCKS   4 /* of 64 ports, in a row of an MFT */
#define CHECK_MLID     0xC000
#define CHECK_MLIDS    0x4000

/* The kind of a link's end. */
enum check_end { CHECK_TO_NOTHING, CHECK_TO_SWITCH, CHECK_TO_HOST };

/* A P_Key table. */
struct check_keys {
	uint16_t *key; /* from malloc() */
	unsigned n;    /* 0: nobody knows */
};

/* A port of a switch. */
struct check_port {
	enum check_end end;     /* nothing, too: a link that does not carry packets */
	uint32_t to;            /* index of the switch or host there */
	uint8_t to_port;        /* of a switch */
	uint8_t mtu;            /* enum ibv_mtu; 0: unknown */
	uint8_t vls;            /* data lanes in use; 0: all */
	bool idle;              /* its link is up, but carries nothing yet */
	bool inbound, outbound; /* it blocks P_Keys that its table does not have */
	unsigned rate;          /* in 100 Mbit/s; 0: unknown */
	struct check_keys keys;
	/* lanes of packets that leave by it, by the port that they came in by; NULL: SL n has lane
	 * n modulo the lanes in use. From malloc(). */
	uint8_t (*map)[CHECK_SLS];
};

/* The management key of a host's port, or of a switch. */
struct check_m_key {
	uint64_t key;     /* or what stands for it; 0: none */
	uint8_t protect;  /* M_KeyProtectBits */
	unsigned lease_s; /* 0: it never ends */
};

struct check_switch {
	const char *name;
	unsigned n_ports;
	struct check_port *port; /* from 1 */
	uint8_t *lft;            /* out port by LID; from malloc() */
	unsigned n_lids;
	unsigned n_relayed; /* what is for LIDs from here on is discarded; 0: nobody knows */
	uint16_t mlid_top;  /* rows of MLIDs above it do not count; 0: all do */
	bool has_default;   /* a port for what is sent to these */
	uint16_t lid;       /* 0: it has none */
	uint8_t *sl; /* by LID: of packets that hosts here send to it; NULL: any. From malloc() */
	unsigned n_sls;
	struct check_m_key m_key;
	unsigned n_hosts; /* check_net_finish() */
	bool own_levels;  /* likewise: some of its hosts have service levels of their own */
	uint32_t island;  /* likewise: those with the same number are connected by links */
};

/* A port of a host. */
struct check_host {
	const char *name;
	uint32_t at; /* index of its switch; CHECK_NONE: its link carries nothing */
	uint8_t at_port;
	bool idle;       /* as of a switch's port */
	uint8_t mtu;     /* as of a switch's port */
	uint16_t lid;    /* 0: it has none */
	uint16_t n_lids; /* from lid on */
	unsigned rate;
	uint8_t *sl; /* by LID: of packets that it sends there, if its switch's do not hold. From
	              * malloc() */
	unsigned n_sls;
	struct check_keys keys;
	struct check_m_key m_key;
};

/* The ports that a multicast LID leads to. */
struct check_row {
	uint32_t sw;
	uint64_t ports[CHECK_BLOCKS];
};

struct check_tree {
	uint16_t mlid;
	struct check_row *row;
	uint32_t n, room;
};

struct check_member {
	uint32_t host;
	bool sends, receives;
};

struct check_group {
	const char *name;
	uint16_t mlid, pkey; /* pkey 0: unknown */
	uint8_t sl, mtu;     /* mtu 0: unknown */
	unsigned rate;       /* in 100 Mbit/s; 0: unknown */
	bool is_open; /* nobody knows the members: they are the hosts that the tables lead to */
	struct check_member *member;
	uint32_t n, room;
};

struct check_net {
	struct check_switch *sw;
	struct check_host *host;
	uint32_t n, n_hosts;
	struct check_tree *tree;
	uint32_t n_trees, trees_room;
	struct check_group *group;
	uint32_t n_groups, groups_room;
	uint32_t *tree_of; /* by MLID - CHECK_MLID: index, or CHECK_NONE */
	uint8_t sl;        /* of paths that may have any */
	bool has_m_keys;   /* those of hosts and switches are known */
	bool hosts_only;   /* messages to switches make no links wait */
	/* all lanes count as one: links that do not wait for each other in a circle then, do not
	 * whatever service levels packets have */
	bool one_lane;
	/* check_net_finish(): a channel is a port of a switch, as packets leave by it */
	uint32_t *first;      /* by switch: its channel 0 */
	uint32_t *channel_at; /* by channel: the switch */
	uint32_t n_channels;
};

/* Makes room for @n switches and @n_hosts ports of hosts, all zero. 0 or -ENOMEM; check_net_fini()
 * is due in any case. */
int check_net_init(struct check_net *net, uint32_t n, uint32_t n_hosts);
void check_net_fini(struct check_net *net);

/* Gives @sw its ports, none of which leads anywhere. 0 or -ENOMEM. */
int check_set_ports(struct check_switch *sw, unsigned n_ports);

/* Links port @port of switch @from to the switch @to, this direction alone; or both directions of a
 * switch's port and a host's. */
void check_link(struct check_net *net, uint32_t from, unsigned port, uint32_t to, unsigned to_port);
void check_link_host(struct check_net *net, uint32_t sw, unsigned port, uint32_t host);

/* Switch @sw forwards @mlid to @ports. 0 or -ENOMEM. */
int check_add_row(struct check_net *net, uint16_t mlid, uint32_t sw,
                  const uint64_t ports[CHECK_BLOCKS]);

/* A new group, which is valid until the next one; NULL: there is no memory. */
struct check_group *check_add_group(struct check_net *net);
int check_add_member(struct check_group *group, const struct check_member *member);

/* After all has been filled in. 0 or -ENOMEM. */
int check_net_finish(struct check_net *net);

/* The tree of @mlid, or NULL. */
const struct check_tree *check_tree_of(const struct check_net *net, uint16_t mlid);

/* Packets from @host to @lid have @sl. 0 or -ENOMEM. */
int check_set_level(struct check_host *host, unsigned lid, uint8_t sl);

/* Packets from @host have @sl[LID], of @n from malloc(), which the net owns from now on: for all
 * hosts of its switch where they are the first. */
void check_give_levels(struct check_net *net, uint32_t host, uint8_t *sl, unsigned n);

/* Likewise after service levels have been set again. */
void check_net_find_levels(struct check_net *net);

/* Whether a port of a switch has no lane for some service level: then it matters which packets
 * have. */
bool check_net_drops(const struct check_net *net);

/* The lane of packets with @sl that came into the switch @at by port @in and leave by @out;
 * CHECK_LANES or more: they are dropped. */
static inline unsigned check_lane(const struct check_net *net, uint32_t at, unsigned out,
                                  unsigned in, unsigned sl)
{
	const struct check_port *p = &net->sw[at].port[out];
	unsigned vls = p->vls ? p->vls : CHECK_LANES;

	if (net->one_lane)
		return 0;
	if (!p->map)
		return sl % vls;
	return p->map[in][sl] < vls ? p->map[in][sl] : CHECK_LANES;
}

/* Whether the switch has no row for the MLID, whatever is in its table. */
static inline bool check_is_beyond(const struct check_switch *sw, uint16_t mlid)
{
	return sw->mlid_top && mlid > sw->mlid_top;
}

static inline bool check_row_has(const struct check_row *row, unsigned port)
{
	return row->ports[port / 64] >> port % 64 & 1;
}

/* Whether the table has the P_Key, of a full or a limited member; also if nobody knows it. */
bool check_has_key(const struct check_keys *keys, uint16_t pkey);

#endif
