/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages to multicast groups. Where each link of a tree is in the tables of both its ends, and no
 * switch is reached by two ways, all who send into the tree reach the same; so it is walked once,
 * and again only from switches where that does not hold. Of a tree whose members nobody knows, the
 * hosts that it leads to are taken for members. Single-threaded.
 */
#ifndef CHECK_GROUPS_H
#define CHECK_GROUPS_H

#include "check/report.h"
#include "check/waits.h"

/* Checks which members the members of each group reach. 0 or -ENOMEM. */
int check_groups(const struct check_net *net, struct check_report *r);

/* Adds to @w which links wait for which as members send; and to @r, unless NULL, the ports that
 * have no lane for it. 0 or -ENOMEM. */
int check_groups_wait(const struct check_net *net, struct check_waits *w, struct check_report *r);

#endif
