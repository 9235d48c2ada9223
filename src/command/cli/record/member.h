/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memberships of multicast groups that ports get and give up by MADs to the subnet administrator,
 * as a program with libibumad would, whichever subnet manager there is. They stay when we end.
 * Single-threaded. A function that fails has printed its one line.
 */
#ifndef CLI_MEMBER_H
#define CLI_MEMBER_H

#include <stdbool.h>

#include "wire/sa.h"

struct cli_members;

/* On all hosts of fabric @name. 0 or CLI_FAILED. */
int cli_members_open(struct cli_members **all, const char *name);
void cli_members_close(struct cli_members *all);

/* Whether there is such an HCA with such a port. */
bool cli_members_know(const struct cli_members *all, const char *hca, unsigned port);

/* Has the port join the group of @rec with the states there, or leave it; the rest of @rec is for a
 * group that has to be made. 0 or CLI_FAILED. */
int cli_members_join(struct cli_members *all, const char *hca, unsigned port,
                     struct wire_mcmember *rec);
int cli_members_leave(struct cli_members *all, const char *hca, unsigned port,
                      struct wire_mcmember *rec);

#endif
