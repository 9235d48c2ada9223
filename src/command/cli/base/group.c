/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Groups as users name them: see group.h.
 */
#include <string.h>

#include "cli/base/group.h"
#include "cli/base/json.h"

bool cli_group_parse(const char *text, struct cli_group *g)
{
	g->text = text;
	g->n = wire_group_gids(text, g->gid);
	return g->n;
}

const char *cli_group_find(const struct cli_group *g, struct json_object *groups)
{
	for (unsigned i = 0; i < g->n; i++) {
		const char *mgid = wire_gid_text(&g->gid[i]); /* as the daemon has it */

		for (size_t k = 0; k < cli_json_count(groups); k++) {
			const char *found = cli_json_text(cli_json_at(groups, k), "mgid");

			if (!strcmp(found, mgid))
				return found;
		}
	}
	return NULL;
}
