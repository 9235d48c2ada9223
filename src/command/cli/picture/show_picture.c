/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show ... --svg`, --png and --dot, and a path as text: see show_picture.h. Called by
 * show.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/options.h"
#include "cli/picture/picture.h"
#include "cli/picture/show_picture.h"

int cli_show_picture_check(const struct cli_command *self, const struct cli_show_picture *s,
                           const struct cli_list *words)
{
	const char *what = words->at[0];
	bool group = !strcmp(what, "group"), path = !strcmp(what, "path");
	unsigned n = group ? 2 : path ? 3 : 1;

	if (s->svg + s->png + s->dot > 1)
		return cli_usage_error(self, "one of --svg, --png and --dot at a time");
	if (!cli_wants_picture(s) && (s->output || s->most))
		return cli_usage_error(self, "%s goes with --svg, --png or --dot",
		                       s->output ? "--output" : "--lines");
	if (!cli_wants_picture(s) && !path)
		return group ? cli_usage_error(self,
		                               "a group is a picture: say --svg, --png or --dot")
		             : 0;
	if (!group && !path && strcmp(what, "topology") != 0)
		return cli_usage_error(
		        self, "there are pictures of topology, group and path, not of %s", what);
	if (words->n < n)
		return cli_usage_error(self, group ? "group which? its MGID"
		                                   : "path from where to where? two hosts");
	if (words->n > n)
		return cli_usage_error(self, "one thing at a time, not '%s' too", words->at[n]);
	return 0;
}

static int fill(struct cli_picture *p, struct control_client *client, const struct cli_list *words,
                bool routes)
{
	int ret = 0;

	if (words->n == 2)
		ret = cli_picture_light_group(p, client, words->at[1]);
	else if (words->n == 3)
		ret = cli_picture_light_path(p, client, words->at[1], words->at[2]);
	if (!ret && routes)
		ret = cli_picture_count_routes(p, client);
	else if (!ret && words->n == 1)
		ret = cli_picture_count_bytes(p, client);
	return ret;
}

static const char *format_of(const struct cli_show_picture *s)
{
	return s->dot ? NULL : s->svg ? "svg" : "png";
}

int cli_show_picture(const struct cli_show_picture *s, struct control_client *client,
                     const char *fabric, const struct cli_list *words, bool routes)
{
	struct cli_picture p;
	char *dot = NULL;
	int ret = cli_picture_read(&p, client, fabric);

	if (!ret && !cli_wants_picture(s))
		p.way = stdout;
	if (!ret)
		ret = fill(&p, client, words, routes);
	if (!ret && p.way)
		puts(p.about);
	if (!ret && !p.way) {
		dot = cli_picture_dot(&p, s->most ? (unsigned)s->most : CLI_PICTURE_MOST);
		if (!dot)
			base_log("%s", strerror(ENOMEM));
		ret = dot ? cli_picture_write(dot, format_of(s), s->output) : CLI_FAILED;
	}
	free(dot);
	cli_picture_fini(&p);
	return ret;
}
