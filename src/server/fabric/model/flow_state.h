/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All flows of a fabric. flow.c adds and removes them, mcast_path.c compiles them, collect.c
 * collects what is counted on them.
 */
#ifndef FABRIC_FLOW_STATE_H
#define FABRIC_FLOW_STATE_H

#include <sys/queue.h>

#include "base/hash.h"
#include "base/idtable.h"
#include "fabric/model/fabric.h"
#include "shm/extent.h"

struct fabric_flow_key {
	uint32_t qpn; /* of the sender */
	uint16_t dlid;
	uint8_t path_bits;
	bool is_global;
	uint8_t sl;
	struct ib_gid dgid; /* zero if not global */
	/* of what a router sends on, and no queue pair of this subnet has sent; 0: a queue pair's
	 */
	uint16_t pkey;
};

struct fabric_mcast_path;

/* Whether its packets get into the subnet, over their first link. */
enum fabric_flow_start {
	FABRIC_FLOW_CUT,    /* no: the link is not active */
	FABRIC_FLOW_BARRED, /* no: the switch's port blocks their partition */
	FABRIC_FLOW_IN,
};

struct fabric_flow {
	uint32_t id; /* index of its record */
	struct fabric_flow_key key;
	struct fabric_port *from;
	struct fabric_mcast_path *path; /* mcast_path.h: its receivers, and the way */
	LIST_ENTRY(fabric_flow) of_mcast_path, of_sender; /* of_sender: its owner's */
	TAILQ_ENTRY(fabric_flow) of_port;
	enum fabric_flow_start start;   /* when its record was written */
	uint8_t vl;                     /* of the first link, likewise */
	struct fabric_mcast_path *back; /* the way of the responses; NULL: none have come */
	uint32_t n_under_way;           /* packets of it that somebody keeps for later */
	bool is_given_up;               /* its sender has none any more; it waits for these */
	uint64_t passed_packets, passed_bytes; /* that went by the daemon, which counts them */
};

/* How many of a flow's packets, and of the responses, have been added to the ports' counters. In an
 * array: a collection looks at all of them. */
struct fabric_flow_counted {
	uint64_t packets, bytes, back_packets, back_bytes;
};

struct fabric_collect {
	TAILQ_HEAD(, fabric_reader) waiting; /* in the order of their passes */
	uint64_t begun, done;                /* passes */
	uint32_t at;                         /* how far the present one has come */
	uint32_t spare;                      /* work that is left for those who shall not wait */
	uint64_t turn;                       /* of the loop, from 1 */
	/* Asks the owner to call fabric_collect_run() soon. NULL: nobody waits, however long it
	 * takes. */
	void (*wake)(void *arg);
	void *arg;
};

/* Changes of groups that flows follow in slices (forwarding/change.h): those that wait, the first
 * of them under way; and how far it has come. */
struct fabric_changes {
	TAILQ_HEAD(, fabric_change) waiting;
	uint64_t added, done;           /* how many, ever */
	struct fabric_mcast_path *path; /* that is changed now, or next */
	struct fabric_flow *flow;       /* that follows next, if some do */
	uint64_t old_list;              /* of the path, which these still have; 0: none */
	bool begun, moves;              /* the first one; the flows of the path follow */
	bool counts, writes;            /* what they have sent; their records */
	bool skipped;                   /* path has moved on, as the one before has ended */
	bool turn;                      /* it was the changes' */
};

struct fabric_flows {
	struct base_idtable ids;
	bool detoured; /* packets have gone by the daemon, ever */
	/* Which flows have their packets go by the daemon. NULL: none. */
	struct fabric_flow_detour {
		bool (*takes)(void *arg, const struct fabric_flow *flow);
		void *arg;
	} detour;
	struct fabric_flow_counted *counted; /* by the flow's number */
	uint32_t counted_room;
	struct fabric_collect collect;
	struct base_hash by_gid;         /* struct fabric_mcast_group */
	struct base_hash by_lid, by_key; /* struct fabric_mcast_path */
	LIST_HEAD(, fabric_mcast_path)
	lacking;                                  /* paths that may cross links they are not in the
	                                           * lists of: all changes of links concern them */
	TAILQ_HEAD(, fabric_mcast_path) unpruned; /* they may list queue pairs that are gone */
	TAILQ_HEAD(, fabric_mcast_path) stale;    /* they are to be compiled again, */
	TAILQ_HEAD(, fabric_port) changed;        /* and those that leave these ports, */
	struct fabric_flow_marks {                /* those to these LIDs, and all flows */
		uint64_t lid[(1 << 16) / 64];
		bool any_lid;
		unsigned word;  /* of lid, where the search goes on */
		uint32_t flows; /* that are still to be looked at, from this number on */
		uint32_t at;
		uint32_t size;  /* of the table of flows, as far as flows counts it */
		uint64_t round; /* paths that were compiled in an earlier one are stale */
	} marks;
	struct fabric_changes changes;
	struct shm_extents lists;
	uint32_t *list; /* scratch: where a list of receivers is built */
	uint32_t n_list, list_room;
	/* how much has been done to compile flows: 1 is a flow, a link that it crosses, a receiver;
	 * or so many looks at flows, or queue pairs, that may have to change and do not; and the
	 * trees of groups: 1 is a member or a switch */
#define FABRIC_FLOW_LOOKS 16
	uint64_t work;
	uint64_t compiled; /* how often a path was */
};

#endif
