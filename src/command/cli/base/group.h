/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A multicast group as a user names it: by its MGID, or by the IP address that a program joins.
 * wire_group_gids() has its GIDs. Pure functions.
 */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include <stdbool.h>

#include "wire/text.h"

struct json_object;

struct cli_group {
	const char *text;
	struct ib_gid gid[WIRE_GROUP_GIDS];
	unsigned n;
};

/* False: the text is no group. */
bool cli_group_parse(const char *text, struct cli_group *g);

/* The MGID of the group, as @groups, the view, has it; NULL: it is none of these. */
const char *cli_group_find(const struct cli_group *g, struct json_object *groups);

/* The message about a text that is no group; %s: the text. */
#define CLI_NO_GROUP "'%s' is no multicast GID, and no IPv4 or IPv6 address of a group"

#endif
