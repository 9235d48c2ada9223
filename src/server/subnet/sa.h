/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet administrator (SA), and its multicast part: MCMemberRecord requests
 * (InfiniBand specification volume 1, section 15.2.5.17). These functions work on decoded records
 * and return status values; sa_server.h serves MADs by them.
 *
 * Only the daemon uses this; not thread-safe. Nothing blocks.
 */
#ifndef SUBNET_SA_H
#define SUBNET_SA_H

#include "subnet/sa_state.h"

/*
 * Makes an SA with the groups of the SM's partitions; without partitions, with the IPoIB broadcast
 * group. Returns 0 and *@sa, which sa_free() frees; -ENOSPC: too few MLIDs; -ENOMEM.
 */
int sa_new(struct sa **sa, struct fabric *f, struct sm *sm);

/*
 * The same with the groups of @state, too, which wait for members: until the first full one has
 * come they stay without, and give way to a request that creates the group with other values, or
 * when no MLID is left for another group. Those whose MLID or P_Key cannot be are @misfits.
 */
struct subnet_state;
struct subnet_state_misfits;
int sa_new_restored(struct sa **sa, struct fabric *f, struct sm *sm,
                    const struct subnet_state *state, struct subnet_state_misfits *misfits);

/*
 * After a take-over the caller asks all ports to register their memberships again, and sets
 * ->registering until all have been asked. Whether a request should not be answered until then, so
 * that its sender repeats it. Only joins that name the former MLID are answered: otherwise the
 * first join would create the group anew, with an MLID that its other members do not have.
 */
bool sa_is_too_early(const struct sa *sa, uint16_t attribute, uint64_t mask);

/* The switches' tables stay as they are, as with a subnet manager that is killed. */
void sa_free(struct sa *sa);

/*
 * SubnAdmSet(MCMemberRecord): joins a port to a group; creates the group if it does not exist and
 * @mask has all components that this needs. @rec: the request; with SA_OK it becomes the group's
 * complete record with the port's join_state. The switches forward when this returns, unless the
 * setting mft_delay_ms delays them.
 */
enum sa_status sa_mcmember_set(struct sa *sa, uint64_t mask, struct wire_mcmember *rec);

/*
 * SubnAdmDelete(MCMemberRecord): removes join states, all of which the port must have. The port's
 * membership ends with its last state, the group with its last full member.
 */
enum sa_status sa_mcmember_delete(struct sa *sa, uint64_t mask, struct wire_mcmember *rec);

/*
 * To be called after a sweep of the SM. Removes ports that are DOWN from all groups, and routes the
 * trees again that the sweep made stale. A member that no link reaches stays a member. In slices,
 * as sm_sweep_step(). *@mlid: 0 at first, then where it goes on. True: done.
 */
bool sa_swept_step(struct sa *sa, uint32_t *mlid, uint32_t *budget);

/*
 * The ports have had time to register again after sm_learn_step(): trees are those of the members
 * that have. In slices, as sa_swept_step(). Until an MLID has its turn it is as before.
 */
bool sa_learned_step(struct sa *sa, uint32_t *mlid, uint32_t *budget);

/*
 * To be called when the SM has other partitions (sm_set_partitions()): creates their groups. Groups
 * of the earlier partitions become ordinary ones, which end with their last full member. Returns
 * 0, -ENOSPC: too few MLIDs, or -ENOMEM.
 */
int sa_partitions_changed(struct sa *sa);

/* Whether anybody has subscribed to any notice. */
bool sa_has_subscribers(const struct sa *sa);

/*
 * Has those told of a notice who have subscribed to it (InformInfo) and whose ports may see it now.
 * @number: greater than that of the one before. False: too many wait, and it is lost.
 */
bool sa_notice_add(struct sa *sa, const struct wire_notice *notice, uint64_t number);

/*
 * Tells of the notices that wait, in slices as sa_swept_step(): calls @tell once for each LID and
 * QPN that wants to hear of it, however often it has subscribed. @tell must not change
 * subscriptions. True: none waits any more.
 */
struct sa_told {
	const struct wire_notice *notice;
	uint64_t number;
	uint16_t lid; /* of the subscriber */
	uint32_t qpn;
};
bool sa_notices_step(struct sa *sa, uint32_t *budget,
                     void (*tell)(void *arg, const struct sa_told *told), void *arg);

/* The M_Key of the end port with this LID, which TrapRepress to it needs; 0: it has none. */
uint64_t sa_m_key(const struct sa *sa, uint16_t lid);

#endif
