/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel replay`: does to a fabric what a recording (record.c) says that was done to one, by time:
 * links, switches, the subnet manager, faults, settings, and ports that join groups and leave them.
 * The consequences follow again by themselves. All events are read and checked before any is done.
 */
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/fabric/faults.h"
#include "cli/base/json.h"
#include "cli/record/member.h"
#include "cli/record/monitor.h"
#include "cli/base/options.h"
#include "cli/base/port.h"
#include "control/client.h"
#include "wire/text.h"

static const char help[] =
        "Usage: umbel replay [OPTION]... FILE\n"
        "\n"
        "Does to a fabric what was done to the one of which 'umbel record' wrote the file: takes\n"
        "links down and up, kills switches and revives them, adds faults and clears them, changes\n"
        "settings, and has ports join groups and leave them, at the same times. With --topology\n"
        "it prints what 'umbel up --topology' takes to make that fabric.\n";

#define NS_PER_S   1000000000ull
#define MOST_SPEED 1000000
#define MOST_BYTES (64u << 20) /* of a line: the first one has the topology */

struct replay {
	const char *name, *path;
	bool topology;
	long speed;
	struct json_object *head;
	struct action *action;
	size_t n;
	unsigned room;
	struct control_client *client;
	struct cli_members *members;
	struct json_object *nodes;  /* names of all, with the number of their ports */
	struct json_object *faults; /* by the number in the file: the number here */
};

/* A line of the file. */
struct text {
	char *at;
	unsigned room;
};

/* An event that is done again. */
struct action {
	struct json_object *event;
	const struct kind *kind;
	unsigned line;
};

/* ---- what is done ---- */

static const char *text_of(const struct action *a, const char *key)
{
	return cli_json_text(a->event, key);
}

static long number_of(const struct action *a, const char *key)
{
	return cli_json_number(a->event, key);
}

static struct cli_port port_of(const struct action *a)
{
	struct cli_port port = { .text = text_of(a, "node"),
		                 .port = (unsigned)number_of(a, "port") };

	snprintf(port.node, sizeof(port.node), "%s", port.text);
	return port;
}

static int do_link(struct replay *r, const struct action *a)
{
	const struct cli_port port = port_of(a);
	int ret = control_link(r->client, port.node, port.port, !strcmp(text_of(a, "what"), "up"));

	return ret && ret != -EALREADY ? cli_port_refused(r->client, &port, ret) : 0;
}

static int do_switch(struct replay *r, const struct action *a)
{
	const char *node = text_of(a, "node");
	int ret = control_switch(r->client, node, !strcmp(text_of(a, "what"), "revived"));

	return ret && ret != -EALREADY ? cli_switch_refused(r->client, node, ret) : 0;
}

static int do_sm(struct replay *r, const struct action *a)
{
	static const struct {
		const char *what;
		enum control_sm_event_type type;
	} types[] = {
		{ "start", CONTROL_SM_START },
		{ "stop", CONTROL_SM_STOP },
		{ "lid-change", CONTROL_SM_LID_CHANGE },
		{ "sm-change", CONTROL_SM_CHANGE },
		{ "client-reregister", CONTROL_SM_CLIENT_REREGISTER },
	};
	const struct cli_port port = port_of(a);
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcmp(types[i].what, text_of(a, "what")) != 0)
			continue;
		ret = control_sm_event(r->client, types[i].type, port.port ? port.node : "",
		                       port.port);
		if (!ret || ret == -EALREADY)
			return 0;
		base_log("the subnet manager cannot do '%s': %s", types[i].what, cli_refusal(ret));
		return CLI_FAILED;
	}
	return 0; /* what it did by itself */
}

static int do_set(struct replay *r, const struct action *a)
{
	const char *key = text_of(a, "key"), *value = text_of(a, "value");
	int ret = control_set(r->client, key, value);

	if (!ret)
		return 0;
	base_log("cannot set '%s' to '%s': %s", key, value, cli_refusal(ret));
	return CLI_FAILED;
}

static int add_fault(struct replay *r, const struct action *a)
{
	const char *number = text_of(a, "number");
	unsigned now;

	if (json_object_object_get_ex(r->faults, number, NULL))
		return 0; /* it was recorded twice, as it was added when the recording began */
	if (cli_fault_add(r->client, text_of(a, "rule"), &now))
		return CLI_FAILED;
	json_object_object_add(r->faults, number, json_object_new_int64(now));
	return 0;
}

static int do_fault(struct replay *r, const struct action *a)
{
	const char *what = text_of(a, "what");
	struct control_handle req = { 0 };
	struct json_object *now;
	int ret;

	if (!strcmp(what, "added"))
		return add_fault(r, a);
	if (!strcmp(what, "cleared")) {
		if (!json_object_object_get_ex(r->faults, text_of(a, "number"), &now))
			return 0;
		req.handle = (uint32_t)json_object_get_int64(now);
	} else if (strcmp(what, "all cleared") != 0) {
		return 0; /* it has fired */
	}
	ret = control_request(r->client, CONTROL_CLEAR_FAULT, &req, sizeof(req));
	if (!ret || ret == -ENOENT)
		return 0;
	base_log("cannot clear a fault: %s", cli_refusal(ret));
	return CLI_FAILED;
}

static uint32_t hex_of(const struct action *a, const char *key)
{
	return (uint32_t)strtoul(text_of(a, key), NULL, 0);
}

static uint8_t join_state_of(const struct action *a)
{
	const char *state = text_of(a, "join_state");

	if (!strcmp(state, "full"))
		return IB_JOIN_FULL;
	if (!strcmp(state, "send-only"))
		return IB_JOIN_SEND_ONLY_FULL;
	return !strcmp(state, "non") ? IB_JOIN_NON : IB_JOIN_SEND_ONLY_NON;
}

static uint8_t mtu_of(const struct action *a)
{
	uint8_t mtu = 1;

	while (mtu < 5 && IB_MTU_BYTES(mtu) < (unsigned long)number_of(a, "mtu"))
		mtu++;
	return mtu;
}

static struct wire_mcmember record_of(const struct action *a)
{
	struct wire_mcmember rec = { .qkey = hex_of(a, "qkey"),
		                     .pkey = (uint16_t)hex_of(a, "pkey"),
		                     .mtu = mtu_of(a),
		                     .rate = (uint8_t)number_of(a, "rate"),
		                     .sl = (uint8_t)number_of(a, "sl"),
		                     .tclass = (uint8_t)number_of(a, "tclass"),
		                     .flow_label = (uint32_t)number_of(a, "flow_label"),
		                     .join_state = join_state_of(a) };

	wire_mgid_parse(text_of(a, "mgid"), &rec.mgid);
	return rec;
}

static int do_join(struct replay *r, const struct action *a)
{
	struct wire_mcmember rec = record_of(a);

	return cli_members_join(r->members, text_of(a, "node"), (unsigned)number_of(a, "port"),
	                        &rec);
}

/* A member that was taken out because its port was down is taken out again by itself. */
static int do_leave(struct replay *r, const struct action *a)
{
	struct wire_mcmember rec = record_of(a);

	if (json_object_object_get_ex(a->event, "what", NULL))
		return 0;
	return cli_members_leave(r->members, text_of(a, "node"), (unsigned)number_of(a, "port"),
	                         &rec);
}

struct kind {
	const char *event;
	int (*act)(struct replay *r, const struct action *a);
	bool has_port, has_mgid, has_node;
	const char *what[2]; /* it has to be one of these; NULL: anything */
};

static const struct kind kinds[] = {
	{ .event = "link", .act = do_link, .has_port = true, .what = { "down", "up" } },
	{ .event = "switch", .act = do_switch, .has_node = true, .what = { "killed", "revived" } },
	{ .event = "join", .act = do_join, .has_port = true, .has_mgid = true },
	{ .event = "leave", .act = do_leave, .has_port = true, .has_mgid = true },
	{ .event = "sm", .act = do_sm },
	{ .event = "fault", .act = do_fault },
	{ .event = "set", .act = do_set },
};

/* Whether the event is somebody's action: its consequences are not done again. */
static bool is_done_again(struct json_object *event)
{
	const char *kind = cli_json_text(event, "event"), *what = cli_json_text(event, "what");

	if (!strcmp(kind, "fault"))
		return strcmp(what, "fired") != 0;
	if (!strcmp(kind, "sm"))
		return strcmp(what, "master") != 0 && strcmp(what, "resigned") != 0;
	if (!strcmp(kind, "leave"))
		return !json_object_object_get_ex(event, "what", NULL);
	return true;
}

/* ---- the file ---- */

static int wrong(const struct replay *r, unsigned line, const char *what)
{
	base_log("'%s', line %u: %s", r->path, line, what);
	return CLI_FAILED;
}

/* Takes the event, or leaves it. 0 or CLI_FAILED. */
static int take(struct replay *r, struct json_object *event, unsigned line)
{
	const char *kind = cli_json_text(event, "event");
	struct json_object *time;

	if (!json_object_object_get_ex(event, "time_ns", &time) ||
	    !json_object_is_type(time, json_type_int))
		return wrong(r, line, "an event without a time");
	if (!strcmp(kind, "fabric"))
		return wrong(r, line, "another recording begins here");
	if (!strcmp(kind, "lost"))
		return wrong(r, line, "events are missing here");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].event, kind) != 0 || !is_done_again(event))
			continue;
		if (!strcmp(kind, "sm") && !strcmp(cli_json_text(event, "what"), "partitions"))
			return wrong(r, line,
			             "partitions were changed: their file is not recorded");
		if (base_array_reserve(&r->action, &r->room, r->n + 1))
			return wrong(r, line, strerror(ENOMEM));
		r->action[r->n++] = (struct action){ .event = json_object_get(event),
			                             .kind = &kinds[i],
			                             .line = line };
	}
	return 0;
}

/* The object that the line is, and nothing else, to be put; NULL: it is none. */
static struct json_object *parse(const char *text, size_t bytes)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *event;
	size_t end;

	if (!tokener)
		return NULL;
	event = json_tokener_parse_ex(tokener, text, (int)bytes);
	end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (end + strspn(text + end, " \t\r\n") == bytes &&
	    json_object_is_type(event, json_type_object))
		return event;
	json_object_put(event);
	return NULL;
}

/* Whether it is a recording's first line. */
static bool is_head(struct json_object *event)
{
	struct json_object *settings;

	return !strcmp(cli_json_text(event, "event"), "fabric") &&
	       (!json_object_object_get_ex(event, "settings", &settings) ||
	        json_object_is_type(settings, json_type_object));
}

static int read_line(struct replay *r, const char *text, size_t bytes, unsigned line)
{
	struct json_object *event = parse(text, bytes);
	int ret = 0;

	if (!event || (line == 1 && !is_head(event)))
		ret = wrong(r, line, "it is no recording of umbel record");
	else if (line == 1)
		r->head = json_object_get(event);
	else
		ret = take(r, event, line);
	json_object_put(event);
	return ret;
}

/* The next line, as getline(): but one that never ends is read up to the limit only. */
static size_t next_line(FILE *from, struct text *text)
{
	size_t n = 0;
	int c = 0;

	while (c != '\n' && n < MOST_BYTES && (c = getc_unlocked(from)) != EOF) {
		if (base_array_reserve(&text->at, &text->room, n + 2))
			return 0;
		text->at[n++] = (char)c;
		text->at[n] = '\0';
	}
	return n;
}

static int read_file(struct replay *r)
{
	FILE *from = fopen(r->path, "re");
	struct text text = { .at = NULL };
	unsigned line = 0;
	size_t n;
	int ret = 0;

	if (!from) {
		base_log("cannot read '%s': %s", r->path, strerror(errno));
		return CLI_FAILED;
	}
	while (!ret && (n = next_line(from, &text)) > 0)
		ret = read_line(r, text.at, n, ++line);
	if (!ret && ferror(from)) {
		base_log("cannot read '%s': %s", r->path, strerror(errno));
		ret = CLI_FAILED;
	}
	free(text.at);
	fclose(from);
	return ret || r->head ? ret : wrong(r, 1, "it is no recording of umbel record");
}

/* ---- whether the fabric has what the file names ---- */

static int read_nodes(struct replay *r)
{
	struct json_object *topology = cli_request_json(r->client, "topology"), *nodes;

	if (!topology)
		return CLI_FAILED;
	r->nodes = json_object_new_object();
	nodes = cli_json_array(topology, "nodes");
	for (size_t i = 0; i < cli_json_count(nodes); i++) {
		struct json_object *node = cli_json_at(nodes, i);

		json_object_object_add(r->nodes, cli_json_text(node, "name"),
		                       json_object_new_int64(cli_json_number(node, "n_ports")));
	}
	json_object_put(topology);
	return 0;
}

/* Whatever names a node or a port has to find it. */
static int check_place(const struct replay *r, const struct action *a)
{
	const char *name = text_of(a, "node");
	const long port = number_of(a, "port");
	struct json_object *n_ports;
	char what[160];

	if (!json_object_object_get_ex(r->nodes, name, &n_ports)) {
		snprintf(what, sizeof(what), "this fabric has no '%.40s'", name);
		return wrong(r, a->line, what);
	}
	if (!a->kind->has_port && !json_object_object_get_ex(a->event, "port", NULL))
		return 0;
	if (port >= 1 && port <= json_object_get_int64(n_ports) &&
	    (!a->kind->has_mgid || cli_members_know(r->members, name, (unsigned)port)))
		return 0;
	snprintf(what, sizeof(what), "'%.40s' of this fabric has no port %ld", name, port);
	return wrong(r, a->line, what);
}

static int check(const struct replay *r, const struct action *a)
{
	struct ib_gid mgid;

	if ((a->kind->has_node || a->kind->has_port ||
	     json_object_object_get_ex(a->event, "node", NULL)) &&
	    check_place(r, a))
		return CLI_FAILED;
	if (a->kind->what[0] && strcmp(text_of(a, "what"), a->kind->what[0]) != 0 &&
	    strcmp(text_of(a, "what"), a->kind->what[1]) != 0)
		return wrong(r, a->line, "it does not say what happens");
	if (a->kind->has_mgid && !wire_mgid_parse(text_of(a, "mgid"), &mgid))
		return wrong(r, a->line, "a group without a multicast GID");
	return 0;
}

/* ---- settings, which are the first to be as they were ---- */

/* Settings that cannot change are told of: the command that starts the fabric can set them. */
static int set_all(const struct replay *r)
{
	struct json_object *status = cli_request_json(r->client, "status"), *was, *is, *now;

	if (!status)
		return CLI_FAILED;
	if (!json_object_object_get_ex(r->head, "settings", &was) ||
	    !json_object_object_get_ex(status, "settings", &is)) {
		json_object_put(status);
		return 0;
	}
	json_object_object_foreach(was, key, value)
	{
		if (!json_object_object_get_ex(is, key, &now) || json_object_equal(value, now))
			continue;
		if (control_set(r->client, key, json_object_get_string(value)))
			base_log("the setting %s was %s: umbel up --set %s=%s", key,
			         json_object_get_string(value), key, json_object_get_string(value));
	}
	json_object_put(status);
	return 0;
}

/* ---- by time ---- */

static int64_t time_of(struct json_object *event)
{
	struct json_object *at;

	int64_t ns =
	        json_object_object_get_ex(event, "time_ns", &at) ? json_object_get_int64(at) : 0;

	return ns > 0 ? ns : 0; /* no difference of two overflows */
}

static void wait_for(const struct replay *r, const struct action *a, uint64_t began)
{
	const int64_t after = (time_of(a->event) - time_of(r->head)) / r->speed;
	const uint64_t due = began + (after > 0 ? (uint64_t)after : 0);
	struct timespec until = { .tv_sec = (time_t)(due / NS_PER_S),
		                  .tv_nsec = (long)(due % NS_PER_S) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static int do_all(struct replay *r)
{
	const uint64_t began = base_now_ns();
	int ret = set_all(r);

	for (size_t i = 0; i < r->n && !ret; i++) {
		const struct action *a = &r->action[i];

		wait_for(r, a, began);
		cli_monitor_print(stdout, a->event, (uint64_t)time_of(r->head));
		ret = a->kind->act(r, a);
		if (ret)
			wrong(r, a->line, "it cannot be done again");
	}
	return ret;
}

static int replay(struct replay *r)
{
	int ret = cli_members_open(&r->members, r->name);

	if (!ret)
		ret = read_nodes(r);
	for (size_t i = 0; i < r->n && !ret; i++)
		ret = check(r, &r->action[i]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	r->faults = json_object_new_object();
	if (!ret)
		ret = do_all(r);
	json_object_put(r->faults);
	json_object_put(r->nodes);
	if (r->members)
		cli_members_close(r->members);
	return ret;
}

static void forget(struct replay *r)
{
	for (size_t i = 0; i < r->n; i++)
		json_object_put(r->action[i].event);
	free(r->action);
	json_object_put(r->head);
}

static int print_topology(const struct replay *r)
{
	struct json_object *topology = json_object_object_get(r->head, "topology");

	if (!json_object_is_type(topology, json_type_string))
		return wrong(r, 1, "it has no topology");
	fputs(json_object_get_string(topology), stdout);
	return 0;
}

static const struct replay defaults = { .speed = 1 };

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct replay, name) },
	{ "      --speed N     N times as fast (default: 1)\n",
	  CLI_NUMBER(struct replay, speed, 1, MOST_SPEED) },
	{ "      --topology    print the topology of the recorded fabric, and do nothing\n",
	  CLI_FLAG(struct replay, topology) },
	CLI_HELP_ROW,
};

static int replay_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	struct replay *r = from;
	int ret;

	if (!argc)
		return cli_usage_error(self, "of which file?");
	if (argc > 1)
		return cli_usage_error(self, "one file, not '%s' too", argv[1]);
	r->name = cli_fabric_name(r->name);
	r->path = argv[0];
	ret = read_file(r);
	if (!ret && r->topology)
		ret = print_topology(r);
	else if (!ret)
		ret = cli_connect(&r->client, r->name);
	if (!ret && r->client) {
		ret = replay(r);
		control_close(r->client);
	}
	forget(r);
	return ret;
}

const struct cli_command cli_replay = {
	.name = "replay",
	.summary = "do to a fabric what was done to a recorded one",
	.help = help,
	CLI_OPTIONS(options, struct replay),
	.defaults = &defaults,
	.execute = replay_execute,
};
