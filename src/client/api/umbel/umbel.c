/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fabric for a unit test: see umbel.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/umbel/command.h"
#include "api/umbel/umbel.h"

#define RULE 512 /* bytes, with the end; the daemon takes fewer, and says so */

const char *umbel_error(void)
{
	return umbel_reason();
}

/* ---- a fabric of its own ---- */

static size_t length_of(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* -1, with errno and the reason. */
static int fail(int error, const char *what)
{
	umbel_set_reason("%s: %s", what, strerror(error));
	errno = error;
	return -1;
}

int umbel_enter(char **argv, const char *const *options)
{
	size_t n_options = length_of(options), n_arguments = length_of((const char *const *)argv);
	size_t n = 0;
	const char *fabric = getenv("UMBEL_FABRIC"); /* empty: as if it were not there */
	char program[PATH_MAX];
	const char **all;
	ssize_t length;
	int error;

	umbel_set_reason("%s", "");
	if (fabric && *fabric)
		return 0;
	length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (length < 0)
		return fail(errno, "cannot tell which program this is");
	all = malloc((n_options + n_arguments + 5) * sizeof(*all));
	if (!all)
		return fail(ENOMEM, "cannot run this program anew");
	program[length] = '\0';
	all[n++] = "umbel";
	all[n++] = "run";
	for (size_t i = 0; i < n_options; i++)
		all[n++] = options[i];
	all[n++] = "--";
	all[n++] = program;
	for (size_t i = 1; i < n_arguments; i++)
		all[n++] = argv[i];
	all[n] = NULL;
	execvp(all[0], (char *const *)all);
	error = errno;
	free(all);
	return fail(error, "cannot run umbel");
}

/* ---- commands ---- */

char *umbel_ask(const char *const *arguments)
{
	return umbel_command(arguments);
}

/* Whether it is a name or a rule, not an option of the command. */
static bool is_word(const char *text)
{
	if (*text != '-')
		return true;
	umbel_set_reason("'%s' begins with '-'", text);
	errno = EINVAL;
	return false;
}

/* Runs it for what it does. */
static int tell(const char *const *arguments)
{
	char *text = umbel_command(arguments);

	free(text);
	return text ? 0 : -1;
}

int umbel_link(const char *port, bool up)
{
	if (!is_word(port))
		return -1;
	return tell((const char *const[]){ "link", up ? "up" : "down", port, NULL });
}

int umbel_switch(const char *name, bool alive)
{
	if (!is_word(name))
		return -1;
	return tell((const char *const[]){ "switch", alive ? "revive" : "kill", name, NULL });
}

int umbel_fault(const char *format, ...)
{
	char rule[RULE], *text;
	va_list args;
	int number;

	va_start(args, format);
	number = vsnprintf(rule, sizeof(rule), format, args);
	va_end(args);
	if (number < 0 || number >= RULE) {
		errno = EMSGSIZE;
		umbel_set_reason("the rule is too long");
		return -1;
	}
	text = is_word(rule) ? umbel_command((const char *const[]){ "fault", "add", rule, NULL })
	                     : NULL;
	if (!text)
		return -1;
	number = atoi(text);
	free(text);
	return number;
}

int umbel_fault_clear(void)
{
	return tell((const char *const[]){ "fault", "clear", NULL });
}

int umbel_wait_group(const char *group, unsigned members, unsigned attached, unsigned seconds)
{
	char m[16], a[16], s[16];

	snprintf(m, sizeof(m), "%u", members);
	snprintf(a, sizeof(a), "%u", attached);
	snprintf(s, sizeof(s), "%u", seconds ? seconds : 1);
	return tell((const char *const[]){ "wait", "--group", group, "--members", m, "--attached",
	                                   a, "--timeout", s, NULL });
}

/* ---- numbers ---- */

static struct json_object *ask_json(const char *const *arguments)
{
	char *text = umbel_command(arguments);
	struct json_object *o = text ? json_tokener_parse(text) : NULL;

	if (text && !o) {
		umbel_set_reason("umbel prints no JSON");
		errno = EPROTO;
	}
	free(text);
	return o;
}

/* The number under @key, if there is one. -1: there is not. */
static int64_t number_in(struct json_object *o, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value) ||
	    !json_object_is_type(value, json_type_int))
		return -1;
	return json_object_get_int64(value);
}

static bool has_text(struct json_object *o, const char *key, const char *text)
{
	const char *value = json_object_get_string(json_object_object_get(o, key));

	return value && !strcmp(value, text);
}

int64_t umbel_fault_fired(int number)
{
	struct json_object *rules =
	        ask_json((const char *const[]){ "fault", "show", "--json", NULL });
	int64_t fired = -1;

	if (!rules)
		return -1;
	for (size_t i = 0; fired < 0 && i < json_object_array_length(rules); i++) {
		struct json_object *rule = json_object_array_get_idx(rules, i);

		if (number_in(rule, "number") == number)
			fired = number_in(rule, "fired");
	}
	json_object_put(rules);
	if (fired < 0) {
		umbel_set_reason("there is no rule %d", number);
		errno = ENOENT;
	}
	return fired;
}

/* The name of the HCA that the port of host @name has; @name itself if it is no host's. To be
 * freed. */
static char *node_of(const char *name)
{
	struct json_object *hosts =
	        ask_json((const char *const[]){ "show", "hosts", "--json", NULL });
	const char *node = name;
	char *copy;

	if (!hosts)
		return NULL;
	for (size_t i = 0; i < json_object_array_length(hosts); i++) {
		struct json_object *host = json_object_array_get_idx(hosts, i);
		struct json_object *hcas = json_object_object_get(host, "hcas");

		if (has_text(host, "name", name) && json_object_array_length(hcas) > 0)
			node = json_object_get_string(
			        json_object_object_get(json_object_array_get_idx(hcas, 0), "name"));
	}
	copy = strdup(node);
	json_object_put(hosts);
	return copy;
}

static int64_t counter_of(const char *node, int port, const char *counter)
{
	struct json_object *all =
	        ask_json((const char *const[]){ "show", "counters", "--json", NULL });
	struct json_object *ports = json_object_object_get(all, "ports");
	int64_t value = -1;

	for (size_t i = 0; ports && i < json_object_array_length(ports); i++) {
		struct json_object *p = json_object_array_get_idx(ports, i);

		if (has_text(p, "node", node) && number_in(p, "port") == port)
			value = number_in(p, counter);
	}
	if (all && value < 0) {
		umbel_set_reason("port %d of '%s' has no counter '%s'", port, node, counter);
		errno = ENOENT;
	}
	json_object_put(all);
	return value;
}

/* Digits only: the number of a port; else -1. */
static int port_number(const char *text)
{
	const size_t n = strlen(text);

	return n && n <= 3 && strspn(text, "0123456789") == n ? atoi(text) : -1;
}

int64_t umbel_counter(const char *port, const char *counter)
{
	const char *colon = strrchr(port, ':');
	const int number = colon && colon > port ? port_number(colon + 1) : -1;
	char *host, *node;
	int64_t value;

	if (number < 0) {
		umbel_set_reason("'%s' is no port: write NODE:PORT, as in h2:1", port);
		errno = EINVAL;
		return -1;
	}
	host = strndup(port, (size_t)(colon - port));
	if (!host)
		return fail(ENOMEM, "cannot read counters");
	node = node_of(host);
	value = node ? counter_of(node, number, counter) : -1;
	free(node);
	free(host);
	return value;
}

/* ---- captures: a struct umbel_capture is the command that runs ---- */

#define CAPTURE_BEGINS "capturing on fabric"

struct umbel_capture *umbel_capture_begin(const char *file, const char *const *options)
{
	const size_t n = length_of(options);
	const char **all = malloc((n + 4) * sizeof(*all));
	struct umbel_running *r;

	if (!all) {
		fail(ENOMEM, "cannot run umbel");
		return NULL;
	}
	all[0] = "capture";
	all[1] = "--output";
	all[2] = file;
	if (n)
		memcpy(all + 3, options, n * sizeof(*all));
	all[3 + n] = NULL;
	r = umbel_command_begin(all, CAPTURE_BEGINS);
	free(all);
	return (struct umbel_capture *)r;
}

int64_t umbel_capture_end(struct umbel_capture *capture, int64_t *lost)
{
	char *text = umbel_command_end((struct umbel_running *)capture);
	const char *line = text ? strstr(text, " packets captured, ") : NULL;
	long long captured = -1, missed = -1;

	if (!text)
		return -1;
	while (line && line > text && line[-1] != '\n')
		line--;
	if (!line ||
	    sscanf(line, "umbel: %lld packets captured, %lld lost", &captured, &missed) != 2) {
		umbel_set_reason("umbel does not say what it has captured");
		errno = EPROTO;
		captured = -1;
	} else if (lost) {
		*lost = missed;
	}
	free(text);
	return captured;
}
