/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SA's multicast groups: how a group is created, with which MTU, rate and MLID, and freed. sa.c
 * decides who may join and leave. For the SA's own files.
 */
#ifndef SUBNET_SA_GROUPS_H
#define SUBNET_SA_GROUPS_H

#include "subnet/sa_state.h"

struct subnet_state;
struct subnet_state_misfits;

/* The group with this MGID, or NULL. */
struct sa_group *sa_group_find(const struct sa *sa, const struct ib_gid *mgid);

/* The port's membership, or NULL. */
struct sa_member *sa_member_find(const struct sa_group *g, const struct fabric_port *port);

/* Creates the groups of the partitions. Returns 0; -ENOSPC: no MLID is left; -ENOMEM. */
int sa_groups_add_well_known(struct sa *sa);

/* Makes those of @state that can be, which are awaited. */
void sa_groups_restore(struct sa *sa, const struct subnet_state *state,
                       struct subnet_state_misfits *misfits);

/* Whether sa_group_create() can make a group of the request, if there are resources. */
bool sa_group_may_create(const struct sa *sa, const struct fabric_port *port, uint64_t mask,
                         const struct wire_mcmember *rec);

/*
 * Creates the group that the request @rec of @port describes. Its MTU and rate are the best that
 * the request selects and the port has. If the SA chooses the MGID, it is written to @rec.
 */
enum sa_status sa_group_create(struct sa *sa, struct fabric_port *port, uint64_t mask,
                               struct wire_mcmember *rec, struct sa_group **group);

/*
 * Gives @g an MLID and adds it to the tables. SA_OK or SA_NO_RESOURCES. sa_group_free() undoes it.
 */
enum sa_status sa_group_add(struct sa *sa, struct sa_group *g);
void sa_group_free(struct sa *sa, struct sa_group *g);

/* The same, but the tables of the switches stay. */
void sa_group_forget(struct sa *sa, struct sa_group *g);

/* The service level of a group for which @sl was asked: where routing gives paths lanes, messages
 * to groups have the one of theirs (sm_group_sl()). */
uint8_t sa_group_sl(const struct sa *sa, uint8_t sl);

/* Has the SM route the group to its members. Returns 0, -ENOSPC or -ENOMEM (sm_route_mcast()). */
int sa_group_route(struct sa *sa, const struct sa_group *g);

/* Whether a port has at least the group's MTU and rate (section 15.2.5.17, o15-0.2.3). */
bool sa_group_suits(const struct sa_group *g, const struct fabric_port *port);

#endif
