/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet administrator's records: its multicast groups with their members, and the subscribers
 * that want to hear from it.
 */
#ifndef SUBNET_SA_STATE_H
#define SUBNET_SA_STATE_H

#include <sys/queue.h>

#include "base/hash.h"
#include "base/idtable.h"
#include "subnet/sm.h"
#include "wire/notice.h"
#include "wire/sa.h"

struct sm_role;

struct sa_member {
	struct fabric_port *port;
	uint8_t join_state; /* enum ib_join_state, ORed */
	bool proxy_join;    /* another port joined it */
};

/*
 * A multicast LID and its groups: one, or several if there are more groups than MLIDs and the
 * setting mlid_sharing allows it.
 */
struct sa_mlid {
	uint16_t mlid;
	TAILQ_HEAD(, sa_group) groups;
};

struct sa_group {
	struct base_hash_node node;
	TAILQ_ENTRY(sa_group) of_mlid;
	struct sa_mlid *mlid;
	struct wire_mcmember rec; /* the group's; without port and join state */
	struct sa_member *member;
	unsigned n_members, room;
	bool well_known; /* it exists without members, such as the IPoIB broadcast group */
	/* it was there before the fabric ended, and no full member has come yet (state.h) */
	bool awaited;
};

/* Where the SA's own notices (traps 64 to 67) go, for subscribers. tell may be NULL. */
struct sa_reports {
	void (*tell)(void *arg, const struct wire_notice *notice);
	void *arg;
};

struct sa {
	struct fabric *f;
	struct sm *sm;
	const struct sm_role *role; /* knows the other subnet managers; NULL: there are none */
	struct base_hash groups;
	struct base_idtable mlids;    /* struct sa_mlid, by MLID - 0xC000 */
	uint32_t next_shared;         /* the MLID that the next group shares */
	bool registering;             /* the owner's: sa_is_too_early() */
	uint64_t changes;             /* of the groups that there are */
	uint32_t made_up;             /* the number of MGIDs that the SA has created */
	uint32_t guids_assigned;      /* sa_guids.c */
	uint16_t *end_of_lid;         /* sa_end_by_lid(): a cache of end port numbers by LID */
	struct sa_services *services; /* sa_services.c */
	struct sa_subscribers *subscribers; /* sa_subscribers.h */
	struct sa_reports reports;
	struct sa_service_state *service_state; /* sa_reports.c */
};

#endif
