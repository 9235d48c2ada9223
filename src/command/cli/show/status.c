/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel status`: the fabrics of this user, a line each; with --name one fabric and its
 * settings.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/options.h"
#include "cli/base/table.h"
#include "control/client.h"

static const char help[] = "Usage: umbel status [OPTION]...\n"
                           "\n"
                           "Shows the fabrics of this user, or one with its settings.\n";

static void add_time(struct cli_table *t, struct json_object *status, const char *key)
{
	time_t since = cli_json_number(status, key);
	char when[64] = "-";
	struct tm tm;

	if (since && localtime_r(&since, &tm))
		strftime(when, sizeof(when), "%F %T", &tm);
	cli_table_add(t, "%s", when);
}

static int print_table(struct json_object *fabrics)
{
	static const struct cli_column columns[] = {
		{ "NAME", "name", cli_add_text, 0 },     { "HOSTS", "hosts", cli_add_text, 0 },
		{ "PID", "pid", cli_add_text, 0 },       { "CLIENTS", "clients", cli_add_text, 0 },
		{ "QPS", "qps", cli_add_text, 0 },       { "GROUPS", "groups", cli_add_text, 0 },
		{ "UP SINCE", "up_since", add_time, 0 }, { 0 },
	};

	return cli_json_print_table(fabrics, columns, NULL);
}

/* "ports with a cable: 12 active, 4 init": the best state first. */
static void print_ports(struct json_object *status)
{
	static const char *const states[] = { "active", "armed", "init", "down" };
	struct json_object *ports = json_object_object_get(status, "ports");
	const char *separator = ": ";

	printf("\nports with a cable");
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		long n = cli_json_number(ports, states[i]);

		if (!n)
			continue;
		printf("%s%ld %s", separator, n, states[i]);
		separator = ", ";
	}
	puts(*separator == ':' ? ": none" : "");
}

static void print_sm(struct json_object *status)
{
	struct json_object *sm = json_object_object_get(status, "sm");

	printf("embedded subnet manager: %s, at %s", cli_json_text(sm, "state"),
	       cli_json_text(sm, "port"));
	if (json_object_object_get(sm, "routing"))
		printf(", has routed by %s", cli_json_text(sm, "routing"));
	putchar('\n');
}

static int print_settings(struct json_object *status)
{
	static const char *const setting_headers[] = { "SETTING", "VALUE" };
	struct json_object *settings = json_object_object_get(status, "settings");
	struct cli_table *t;

	if (!json_object_is_type(settings, json_type_object))
		return 0;
	t = cli_table_new(ARRAY_SIZE(setting_headers), setting_headers);
	json_object_object_foreach(settings, key, value)
	{
		(void)value;
		cli_table_add(t, "%s", key);
		cli_table_add(t, "%s", cli_json_text(settings, key));
	}
	putchar('\n');
	return cli_table_end(t);
}

/* The fabrics that are up. */
struct found {
	struct json_object *fabrics;
	bool silent; /* one does not answer, or not in words that we know */
};

/* Adds the status of a fabric to @arg, if it is up. It need not be, or not any more. */
static int collect(const char *name, void *arg)
{
	struct found *found = arg;
	struct control_client *client;
	struct json_object *status;
	int ret = cli_try_connect(&client, name);

	if (ret == -ETIMEDOUT) {
		cli_say_silent(name);
		found->silent = true;
	}
	if (ret == -EPROTO) {
		cli_say_other_version(name);
		found->silent = true;
	}
	if (ret)
		return 0;
	status = cli_request_json(client, "status");
	control_close(client);
	if (!status)
		return CLI_FAILED;
	json_object_array_add(found->fabrics, status);
	return 0;
}

static int show_all(bool json)
{
	struct found found = { .fabrics = json_object_new_array() };
	char dir[PATH_MAX];
	int ret;

	ret = cli_each_fabric(collect, &found);
	if (!ret && json)
		ret = cli_json_print(found.fabrics);
	else if (!ret && json_object_array_length(found.fabrics))
		ret = print_table(found.fabrics);
	else if (!ret && !found.silent && !(ret = cli_runtime_dir(dir)))
		printf("no fabric is up in '%s'; start one with: umbel up\n", dir);
	json_object_put(found.fabrics);
	return !ret && found.silent ? CLI_FAILED : ret;
}

static int show_one(const char *name, bool json)
{
	struct json_object *fabrics, *status;
	int ret = cli_ask(name, "status", &status);

	if (ret)
		return ret;
	fabrics = json_object_new_array();
	json_object_array_add(fabrics, status);
	if (json)
		ret = cli_json_print(status);
	else if (!(ret = print_table(fabrics))) {
		print_ports(status);
		print_sm(status);
		ret = print_settings(status);
	}
	json_object_put(fabrics);
	return ret;
}

struct options {
	const char *name;
	bool json;
};

static const struct cli_option options[] = {
	{ "  -n, --name NAME   this one; fails if it is not up\n", CLI_TEXT(struct options, name) },
	{ "      --json        as JSON\n", CLI_FLAG(struct options, json) },
	CLI_HELP_ROW,
};

static int status_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct options *o = from;

	if (argc > 0)
		return cli_usage_error(self, "it takes no '%s'; a fabric is named with --name",
		                       argv[0]);
	return o->name ? show_one(o->name, o->json) : show_all(o->json);
}

const struct cli_command cli_status = {
	.name = "status",
	.summary = "show the fabrics that are up",
	.help = help,
	CLI_OPTIONS(options, struct options),
	.execute = status_execute,
};
