/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The members of the groups that share a multicast LID. Single-threaded.
 */
#ifndef CHECK_MEMBERS_H
#define CHECK_MEMBERS_H

#include "check/net.h"

struct check_members {
	uint16_t mlid;
	const struct check_tree *tree;   /* NULL: no switch forwards it */
	const struct check_group *group; /* one of those with the LID; NULL: none is known */
	const char *name;                /* of the group, or the LID's */
	bool is_open;                    /* nobody knows the members */
	uint16_t sls;                    /* the groups' service levels, bit by bit */
	struct check_member *member;     /* in the order of hosts, each once */
	uint32_t n, room;
	char text[16];
};

/* Makes the members of all groups of @mlid, in the place of others. 0 or -ENOMEM. */
int check_members_of(struct check_members *m, const struct check_net *net, uint16_t mlid);
void check_members_fini(struct check_members *m);

/* Calls @each for every LID that has a tree or a group, until it returns nonzero. That or 0. */
int check_each_mlid(const struct check_net *net, int (*each)(void *arg, struct check_members *m),
                    void *arg);

#endif
