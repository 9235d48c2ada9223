/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel monitor`: prints what happens to a fabric, as it happens. The daemon writes an event as a
 * line of JSON; here it becomes a line for people.
 */
#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/options.h"
#include "cli/record/output.h"
#include "cli/base/signals.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel monitor [OPTION]...\n"
        "\n"
        "Prints what happens to a fabric, as it happens: ports join and leave groups, links go\n"
        "down and up, switches die, the subnet manager sweeps, programs come and go, queue pairs\n"
        "are made and fail, faults fire, settings change. Ends by a signal (Ctrl-C), or when the\n"
        "fabric does.\n";

#define NS_PER_S 1000000000ull

/* ---- the stream ---- */

static int stream = -1; /* the signal handler ends it */

static void on_signal(int number)
{
	(void)number;
	cli_output_end();
	shutdown(stream, SHUT_RDWR);
}

/* Events from now on. 0 or CLI_FAILED. */
static int open_stream(struct control_client *client, const char *fabric)
{
	int ret = control_call(client,
	                       &(struct control_call){ .type = CONTROL_MONITOR, .fd = &stream });

	if (!ret) {
		cli_signals_catch(on_signal); /* the first one has the stream end */
		return 0;
	}
	if (ret == -EUSERS)
		base_log("too many programs read the events of fabric '%s' already", fabric);
	else
		base_log("cannot read the fabric's events: %s", cli_refusal(ret));
	return CLI_FAILED;
}

/* Calls @each with every line, its end of line included, until that returns other than 0, a signal
 * comes or the fabric ends. 0, what @each returned, or CLI_FAILED. */
static int read_stream(int (*each)(void *arg, const char *line), void *arg)
{
	FILE *from = fdopen(stream, "r");
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	if (!from) {
		base_log("%s", strerror(errno));
		return CLI_FAILED;
	}
	while (!ret) {
		const ssize_t n = getline(&line, &room, from);

		if (n < 0 && errno == EINTR && !feof(from)) {
			clearerr(from);
			continue;
		}
		if (n <= 0 || line[n - 1] != '\n') /* the end, or of a daemon that has died */
			break;
		ret = each(arg, line);
	}
	free(line);
	fclose(from);
	return ret;
}

/* ---- for people ---- */

/* The text of an event: the values of the keys in braces. Text in brackets is left out if a key in
 * it is not there. */
static const struct {
	const char *event, *text;
} texts[] = {
	{ "join", "{node}:{port} joins {mgid}, {join_state}" },
	{ "leave", "{node}:{port} leaves {mgid}, {join_state}[: {what}]" },
	{ "group", "{mgid} {what}, MLID {mlid}" },
	{ "link", "{node}:{port} - {peer}:{peer_port} {what}" },
	{ "port", "{node}:{port} {state}" },
	{ "switch", "{node} {what}" },
	{ "sm", "{what}[ {node}:{port}]" },
	{ "sweep", "{what}, {engine}, {took_us} us" },
	{ "program", "{program} {what}[, host {host}][, PID {pid}], {uses}" },
	{ "qp", "{host} {qpn} {what}[, {mgid}]" },
	{ "fault", "[{number} ]{what}[, {fired} times][: {rule}]" },
	{ "set", "{key}={value}" },
	{ "lost", "{count} events: too many at once, or they were read too slowly" },
};

struct text {
	char at[1024];
	size_t n;
};

static void put(struct text *t, const char *from, size_t n)
{
	if (n > sizeof(t->at) - t->n)
		n = sizeof(t->at) - t->n;
	memcpy(t->at + t->n, from, n);
	t->n += n;
}

/* Puts the value of the key up to the brace. False: there is none. */
static bool put_value(struct text *t, struct json_object *event, const char *key, size_t n)
{
	struct json_object *value;
	const char *text;
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)n, key);
	if (!json_object_object_get_ex(event, name, &value)) {
		put(t, "-", 1);
		return false;
	}
	text = json_object_get_string(value); /* of a number, too */
	put(t, text, strlen(text));
	return true;
}

static void put_event(struct text *t, struct json_object *event, const char *text)
{
	size_t before = 0;
	bool all = true;

	for (; *text; text++) {
		if (*text == '[') {
			before = t->n;
			all = true;
		} else if (*text == ']') {
			t->n = all ? t->n : before;
		} else if (*text == '{') {
			size_t n = strcspn(text, "}") - 1;

			all &= put_value(t, event, text + 1, n);
			text += n + 1;
		} else {
			put(t, text, 1);
		}
	}
}

/* Prints an event for people, with the seconds since @began_ns. A newer daemon may tell of what we
 * do not know: then all of it is printed. */
static void print_event(FILE *to, struct json_object *event, uint64_t began_ns)
{
	const char *kind = cli_json_text(event, "event"), *all;
	struct json_object *at;
	struct text t = { .n = 0 };
	int64_t ns = 0;

	if (json_object_object_get_ex(event, "time_ns", &at) && json_object_get_int64(at) > 0)
		ns = json_object_get_int64(at) - (int64_t)began_ns;
	for (size_t i = 0; i < ARRAY_SIZE(texts) && !t.n; i++)
		if (!strcmp(texts[i].event, kind))
			put_event(&t, event, texts[i].text);
	if (!t.n) {
		all = json_object_to_json_string_ext(event, JSON_C_TO_STRING_PLAIN);
		put(&t, all, strlen(all));
	}
	fprintf(to, "%12.6f  %-7s  %.*s\n", ns > 0 ? (double)ns / (double)NS_PER_S : 0, kind,
	        (int)t.n, t.at);
}

/* Where it goes, and since when. */
struct output {
	FILE *to;
	uint64_t began_ns;
};

static int print(void *arg, const char *line)
{
	const struct output *o = arg;
	struct json_object *event = json_tokener_parse(line);

	if (!event) {
		base_log("what the daemon says is no JSON: %s", line);
		return CLI_FAILED;
	}
	print_event(o->to, event, o->began_ns);
	json_object_put(event);
	return ferror(o->to) ? cli_output_failed() : 0;
}

static int print_json(void *arg, const char *line)
{
	const struct output *o = arg;

	return fputs(line, o->to) < 0 ? cli_output_failed() : 0;
}

struct monitor {
	const char *name;
	bool json;
};

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct monitor, name) },
	{ "      --json        as JSON, an object a line\n", CLI_FLAG(struct monitor, json) },
	CLI_HELP_ROW,
};

static int monitor_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct monitor *m = from;
	const char *fabric = cli_fabric_name(m->name);
	struct control_client *client;
	int ret, out = STDOUT_FILENO;
	struct output o;

	if (argc > 0)
		return cli_usage_error(self, "it takes no '%s'", argv[0]);
	ret = cli_connect(&client, fabric);
	if (ret)
		return ret;
	o = (struct output){ .to = cli_output_open(&out), .began_ns = base_real_ns() };
	ret = o.to ? open_stream(client, fabric) : cli_output_failed();
	control_close(client);
	if (ret)
		goto out;
	setvbuf(o.to, NULL, _IOLBF, 0);
	if (isatty(STDERR_FILENO))
		base_log("watching fabric '%s'; Ctrl-C ends it", fabric);
	ret = read_stream(m->json ? print_json : print, &o);
out:
	if (o.to)
		fclose(o.to);
	return ret;
}

const struct cli_command cli_monitor = {
	.name = "monitor",
	.summary = "print what happens to a fabric, as it happens",
	.help = help,
	CLI_OPTIONS(options, struct monitor),
	.execute = monitor_execute,
};
