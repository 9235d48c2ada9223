/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel wait`: until a multicast group has members, so that a script need not guess when its
 * receivers are ready.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/base/group.h"
#include "cli/base/json.h"
#include "cli/base/options.h"
#include "control/client.h"

#define NS_PER_MS    1000000ull
#define NS_PER_S     1000000000ull
#define SHORTEST_MS  5 /* between two looks; each time twice as long */
#define LONGEST_MS   100
#define GRACE_MS     1000     /* behind the timeout, for a daemon that is only busy */
#define PROGRESS_NS  NS_PER_S /* after this the user sees the progress */
#define MOST         1000000
#define MOST_SECONDS 1000000

static const char help[] =
        "Usage: umbel wait [OPTION]... --group GROUP\n"
        "Wait until a multicast group has members, and queue pairs that are attached to it.\n";

struct wait {
	const char *name, *group;
	long members, attached, timeout;
};

static const struct wait defaults = { .attached = 1, .timeout = 60 };

static const struct cli_option options[] = {
	{ "  -n, --name NAME         the fabric (default: $UMBEL_FABRIC, else 'default')\n",
	  CLI_TEXT(struct wait, name) },
	{ "      --group GROUP       its MGID (umbel show groups), or its IP address\n",
	  CLI_TEXT(struct wait, group) },
	{ "      --members N         ports that have joined, at least (default: 0)\n",
	  CLI_NUMBER(struct wait, members, 0, MOST) },
	{ "      --attached N        queue pairs that are attached, at least (default: 1)\n",
	  CLI_NUMBER(struct wait, attached, 0, MOST) },
	{ "      --timeout SECONDS   how long at most (default: 60; 0: for ever)\n",
	  CLI_NUMBER(struct wait, timeout, 0, MOST_SECONDS) },
	{ .line = "  -h, --help              this text\n" },
};

/* The group's present numbers. */
struct count {
	long members, attached;
};

static bool is_enough(const struct wait *w, const struct count *n)
{
	return n->members >= w->members && n->attached >= w->attached;
}

/* 0, or CLI_FAILED. Nothing is there of a group that is not. */
static int look(struct control_client *client, const struct cli_group *g, struct count *n)
{
	struct json_object *groups = cli_request_json(client, "groups");
	const char *mgid = groups ? cli_group_find(g, groups) : NULL;

	*n = (struct count){ 0 };
	if (!groups)
		return CLI_FAILED;
	for (size_t i = 0; mgid && i < json_object_array_length(groups); i++) {
		struct json_object *group = json_object_array_get_idx(groups, i);

		if (strcmp(cli_json_text(group, "mgid"), mgid) != 0)
			continue;
		n->members = (long)json_object_array_length(cli_json_array(group, "members"));
		n->attached = (long)json_object_array_length(cli_json_array(group, "attached"));
	}
	json_object_put(groups);
	return CLI_OK;
}

static void progress(const struct wait *w, const struct count *n)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%ld of %ld members, %ld of %ld queue pairs", n->members,
		        w->members, n->attached, w->attached);
}

static void end_progress(uint64_t waited_ns)
{
	if (waited_ns > PROGRESS_NS && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* Looks, in the end every LONGEST_MS, as a look at many groups costs the daemon some time. */
static int wait_for(const struct wait *w, struct control_client *client, const struct cli_group *g)
{
	const uint64_t began = base_now_ns();
	const uint64_t most = (uint64_t)w->timeout * NS_PER_S;
	uint64_t ms = SHORTEST_MS, waited = 0;
	struct count n;
	int ret;

	for (;;) {
		if (most) /* of a daemon that stands still, too */
			control_limit_wait(client,
			                   (unsigned)((most - waited) / NS_PER_MS) + GRACE_MS);
		ret = look(client, g, &n);
		waited = base_now_ns() - began;
		if (ret || is_enough(w, &n) || (most && waited >= most))
			break;
		if (waited > PROGRESS_NS)
			progress(w, &n);
		nanosleep(&(struct timespec){ .tv_nsec = (long)(ms * NS_PER_MS) }, NULL);
		ms = 2 * ms < LONGEST_MS ? 2 * ms : LONGEST_MS;
	}
	end_progress(waited);
	if (ret || is_enough(w, &n))
		return ret;
	base_log("group %s has %ld of %ld members and %ld of %ld queue pairs after %ld s", w->group,
	         n.members, w->members, n.attached, w->attached, w->timeout);
	return CLI_FAILED;
}

static int wait_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct wait *w = from;
	struct control_client *client;
	struct cli_group group;
	int ret;

	if (argc > 0)
		return cli_usage_error(self, "it takes no '%s'", argv[0]);
	if (!w->group)
		return cli_usage_error(self, "for which group? --group GROUP");
	if (!cli_group_parse(w->group, &group))
		return cli_usage_error(self, CLI_NO_GROUP, w->group);
	ret = cli_connect(&client, cli_fabric_name(w->name));
	if (ret)
		return ret;
	ret = wait_for(w, client, &group);
	control_close(client);
	return ret;
}

const struct cli_command cli_wait = {
	.name = "wait",
	.summary = "wait until a multicast group has members",
	.help = help,
	CLI_OPTIONS(options, struct wait),
	.defaults = &defaults,
	.execute = wait_execute,
};
