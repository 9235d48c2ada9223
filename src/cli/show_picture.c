/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show ... --svg`, --png and --dot: see show_picture.h. Called by show.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/graphviz.h"
#include "cli/options.h"
#include "cli/picture.h"
#include "cli/show_picture.h"

#define MOST 48 /* boxes and lines that a person looks at */

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
	if (!cli_wants_picture(s))
		return group || path
		               ? cli_usage_error(
		                         self, "a %s is a picture: say --svg, --png or --dot", what)
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

/* ---- writing ---- */

static int cannot_write(const char *name)
{
	base_log("cannot write '%s': %s", name ? name : "-", strerror(errno));
	return CLI_FAILED;
}

static int write_all(int fd, const char *at, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* What is left to read from @from. 0 or -1 and errno. */
static int copy(int from, int to)
{
	char bytes[65536];
	ssize_t n;

	do {
		n = read(from, bytes, sizeof(bytes));
		if (n > 0 && write_all(to, bytes, (size_t)n))
			return -1;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return (int)n;
}

/* Writes the text, or the picture that dot makes of it. */
static int put(const struct cli_show_picture *s, const char *dot)
{
	size_t bytes = strlen(dot);
	int from = -1, to = STDOUT_FILENO, ret;

	if (!s->dot) {
		from = cli_graphviz(dot, bytes, s->svg ? "svg" : "png");
		if (from < 0)
			return CLI_FAILED;
	}
	if (s->output)
		to = open(s->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	ret = to < 0 ? -1 : from < 0 ? write_all(to, dot, bytes) : copy(from, to);
	if (ret)
		ret = cannot_write(s->output);
	if (s->output && to >= 0 && close(to) < 0 && !ret)
		ret = cannot_write(s->output);
	if (from >= 0)
		close(from);
	return ret;
}

int cli_show_picture(const struct cli_show_picture *s, struct control_client *client,
                     const char *fabric, const struct cli_list *words, bool routes)
{
	struct cli_picture p;
	char *dot = NULL;
	int ret = cli_picture_read(&p, client, fabric);

	if (!ret)
		ret = fill(&p, client, words, routes);
	if (!ret) {
		dot = cli_picture_dot(&p, s->most ? (unsigned)s->most : MOST);
		if (!dot)
			base_log("%s", strerror(ENOMEM));
		ret = dot ? put(s, dot) : CLI_FAILED;
	}
	free(dot);
	cli_picture_fini(&p);
	return ret;
}
