/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The multicast groups of the SA themselves: how one comes about, with what MTU, rate and
 * MLID, and how it ends. Who may join and leave is sa.c's. For the SA's own files.
 */
#ifndef SUBNET_SA_GROUPS_H
#define SUBNET_SA_GROUPS_H

#include "subnet/sa.h"

/* Makes those that are there by themselves, as the partitions say. 0, -ENOSPC: no MLID, -ENOMEM. */
int sa_groups_add_well_known(struct sa *sa);

/*
 * Creates the group that @rec asks for by way of @port; its MTU and rate are what the request
 * selects, as good as the port's. An MGID that the SA makes up is written to @rec.
 */
enum sa_status sa_group_create(struct sa *sa, struct fabric_port *port, uint64_t mask,
                               struct wire_mcmember *rec, struct sa_group **group);

/* Sets @g up in the tables, with an MLID. SA_OK or SA_NO_RESOURCES. */
enum sa_status sa_group_add(struct sa *sa, struct sa_group *g);
void sa_group_free(struct sa *sa, struct sa_group *g);

/* Tells the SM who is in the group. 0, -ENOSPC, -ENOMEM. */
int sa_group_route(struct sa *sa, const struct sa_group *g);

/* Whether a port can take what the group sends: MTU and rate (section 15.2.5.17, o15-0.2.3). */
bool sa_group_suits(const struct sa_group *g, const struct fabric_port *port);

#endif
