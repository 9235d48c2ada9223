/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet administrator's multicast part: MCMemberRecord requests as an
 * SA answers them (InfiniBand specification volume 1, section 15.2.5.17). Records
 * and status values in, records and status values out; whoever asks is named by the
 * port that the request came from.
 *
 * The manager's; not thread-safe.
 */
#ifndef SUBNET_SA_H
#define SUBNET_SA_H

#include <sys/queue.h>

#include "base/hash.h"
#include "base/idtable.h"
#include "subnet/sm.h"
#include "subnet/sm_role.h"
#include "wire/notice.h"
#include "wire/sa.h"

struct sa_member {
	struct fabric_port *port;
	uint8_t join_state; /* enum ib_join_state, ORed */
	bool proxy_join;    /* somebody else joined it */
};

/* A multicast LID, and who has it: one group, or several if there are more groups than MLIDs and
 * they may share (setting mlid_sharing). */
struct sa_mlid {
	uint16_t mlid;
	TAILQ_HEAD(, sa_group) groups;
};

struct sa_group {
	struct base_hash_node node;
	TAILQ_ENTRY(sa_group) of_mlid;
	struct sa_mlid *mlid;
	struct wire_mcmember rec; /* of the group: no port, no join state */
	struct sa_member *member;
	unsigned n_members, room;
	bool well_known; /* stays without members: the IPoIB broadcast group */
};

/* Takes what the SA itself has to tell (traps 64 to 67), for who subscribed; may be NULL. */
struct sa_reports {
	void (*tell)(void *arg, const struct wire_notice *notice);
	void *arg;
};

struct sa {
	struct fabric *f;
	struct sm *sm;
	const struct sm_role *role; /* who knows of other subnet managers; NULL: nobody does */
	struct base_hash groups;
	struct base_idtable mlids;        /* struct sa_mlid, by MLID - 0xC000 */
	uint32_t next_shared;             /* whose turn it is to be shared */
	uint64_t made_up;                 /* counts MGIDs that we made up */
	uint32_t guids_assigned;          /* sa_guids.c */
	uint16_t *end_of_lid;             /* sa_end_by_lid(): which has it, when last looked */
	LIST_HEAD(, sa_service) services; /* sa_services.c */
	LIST_HEAD(, sa_inform) informs;   /* sa_informs.c */
	unsigned n_services, n_informs;
	struct sa_reports reports;
	struct sa_service_state *service_state; /* sa_reports.c */
};

/* Creates the groups of the SM's partitions, the IPoIB broadcast groups first of all. 0 or -errno.
 */
int sa_new(struct sa **sa, struct fabric *f, struct sm *sm);
void sa_free(struct sa *sa);

/*
 * SubnAdmSet(MCMemberRecord): joins a port to a group, creating it if it is not
 * there and @mask says enough. @rec: the request; with SA_OK the complete record,
 * join_state that of the port. "Joined" means that the switches forward, unless the
 * setting mft_delay_ms is not 0.
 */
enum sa_status sa_mcmember_set(struct sa *sa, uint64_t mask, struct wire_mcmember *rec);

/*
 * SubnAdmDelete(MCMemberRecord): takes the named join states back, all of which the
 * port must have. The member goes with its last bit, the group with its last full member.
 */
enum sa_status sa_mcmember_delete(struct sa *sa, uint64_t mask, struct wire_mcmember *rec);

/*
 * The SM has swept. A port that is DOWN is a member no more, of any group; for all other
 * members, trees are routed anew. A member that no link leads to stays one.
 */
void sa_swept(struct sa *sa);

/*
 * The SM's partitions are others (sm_set_partitions()): their groups are there, and those of the
 * ones before are as others now, and end with their last full member. 0, -ENOSPC, -ENOMEM.
 */
int sa_partitions_changed(struct sa *sa);

/*
 * Calls @tell for each subscription (InformInfo) that wants this notice and may know of it: with
 * where it came from. Nobody may unsubscribe meanwhile.
 */
void sa_each_subscriber(struct sa *sa, const struct wire_notice *notice,
                        void (*tell)(void *arg, uint16_t lid, uint32_t qpn), void *arg);

/* The M_Key of the end port with this LID, which an answer to its trap needs; 0: it has none. */
uint64_t sa_m_key(const struct sa *sa, uint16_t lid);

struct sa_group *sa_group_find(const struct sa *sa, const struct ib_gid *mgid);

/* The port's membership, or NULL. */
struct sa_member *sa_member_find(const struct sa_group *g, const struct fabric_port *port);

/* Whether @have is what selector and value, if the mask has @both bits, ask for. */
bool sa_selects(uint64_t mask, uint64_t both, uint8_t selector, unsigned want, unsigned have);

#endif
