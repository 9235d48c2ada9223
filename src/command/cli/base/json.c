/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's replies as JSON: see json.h. Called by show, status, up, exec and port.c.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/table.h"
#include "control/client.h"

/* Why the daemon has not replied. */
static const char *reason(int error)
{
	switch (error) {
	case -EIO:
		return "the fabric has ended";
	case -ETIMEDOUT:
		return "it is stopped or stuck";
	default:
		return strerror(-error);
	}
}

struct json_object *cli_request_json(struct control_client *client, const char *what)
{
	struct json_object *reply;
	char *text;
	int ret;

	ret = control_show(client, what, &text);
	if (ret) {
		base_log("the daemon does not show its %s: %s", what, reason(ret));
		return NULL;
	}
	reply = json_tokener_parse(text);
	if (!reply)
		base_log("the daemon's %s are no JSON", what);
	free(text);
	return reply;
}

int cli_ask(const char *name, const char *what, struct json_object **reply)
{
	struct control_client *client;
	int ret = cli_connect(&client, name);

	if (ret)
		return ret;
	*reply = cli_request_json(client, what);
	control_close(client);
	return *reply ? 0 : CLI_FAILED;
}

int cli_request_text(struct control_client *client, const char *what, const char *of)
{
	int fd, ret = control_show_open(client, what, of, &fd);

	if (!ret)
		return fd;
	if (ret == -ENOENT)
		base_log("no switch '%s'", of);
	else
		base_log("the daemon does not show its %s: %s", what, reason(ret));
	return -1;
}

const char *cli_json_text(struct json_object *o, const char *key)
{
	struct json_object *v;
	const char *text;

	if (!json_object_object_get_ex(o, key, &v) || !v)
		return "-";
	text = json_object_get_string(v);
	return *text ? text : "-";
}

long cli_json_number(struct json_object *o, const char *key)
{
	return (long)json_object_get_int64(json_object_object_get(o, key));
}

struct json_object *cli_json_array(struct json_object *o, const char *key)
{
	static struct json_object *empty;
	struct json_object *v;

	if (json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_array))
		return v;
	if (!empty)
		empty = json_object_new_array();
	return empty;
}

size_t cli_json_count(struct json_object *array)
{
	return json_object_array_length(array);
}

struct json_object *cli_json_at(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

int cli_json_print(struct json_object *o)
{
	int flags =
	        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text = json_object_to_json_string_ext(o, flags);

	if (!text)
		return cli_no_memory();
	puts(text);
	return 0;
}

/* ---- tables ---- */

void cli_add_text(struct cli_table *t, struct json_object *element, const char *key)
{
	cli_table_add(t, "%s", cli_json_text(element, key));
}

struct rows {
	struct cli_table *t;
	const struct cli_column *columns;
	const char *const *inner;
	struct json_object *at[3]; /* the element of each depth */
};

static void add_rows(struct rows *r, struct json_object *array, unsigned depth)
{
	const char *inner = r->inner ? r->inner[depth] : NULL;
	const struct cli_column *c;

	for (size_t i = 0; i < json_object_array_length(array); i++) {
		r->at[depth] = json_object_array_get_idx(array, i);
		if (inner)
			add_rows(r, cli_json_array(r->at[depth], inner), depth + 1);
		for (c = r->columns; !inner && c->header; c++)
			c->add(r->t, r->at[c->depth], c->key);
	}
}

int cli_json_print_table(struct json_object *array, const struct cli_column *columns,
                         const char *const *inner)
{
	struct rows r = { .columns = columns, .inner = inner };
	unsigned n = 0;

	while (columns[n].header)
		n++;
	r.t = cli_table_new(n, NULL);
	for (unsigned i = 0; i < n; i++)
		cli_table_add(r.t, "%s", columns[i].header);
	add_rows(&r, array, 0);
	return cli_table_end(r.t);
}

/* ---- text as it comes ---- */

#define INDENT 2

/* Where in the text we are. */
struct pretty {
	unsigned depth;
	bool in_string, escaped; /* the last byte was a backslash */
	bool opened;             /* the last byte opened an object or array */
};

static void new_line(unsigned depth)
{
	putchar_unlocked('\n');
	for (unsigned i = 0; i < depth * INDENT; i++)
		putchar_unlocked(' ');
}

static void print_string_byte(struct pretty *p, char c)
{
	putchar_unlocked(c);
	if (c == '"' && !p->escaped)
		p->in_string = false;
	p->escaped = c == '\\' && !p->escaped;
}

static void print_close(struct pretty *p, char c)
{
	p->depth -= p->depth > 0;
	if (!p->opened)
		new_line(p->depth);
	putchar_unlocked(c);
	p->opened = false;
}

static void print_byte(struct pretty *p, char c)
{
	if (p->in_string) {
		print_string_byte(p, c);
		return;
	}
	if (c == '}' || c == ']') {
		print_close(p, c);
		return;
	}
	if (p->opened)
		new_line(p->depth);
	p->opened = c == '{' || c == '[';
	p->depth += p->opened;
	p->in_string = c == '"';
	putchar_unlocked(c);
	if (c == ':')
		putchar_unlocked(' ');
	if (c == ',')
		new_line(p->depth);
}

int cli_json_print_text(int fd)
{
	struct pretty p = { 0 };
	char text[65536];
	ssize_t n;

	do {
		n = read(fd, text, sizeof(text));
		for (ssize_t i = 0; i < n; i++)
			print_byte(&p, text[i]);
	} while (n > 0 || (n < 0 && errno == EINTR));
	putchar('\n');
	if (n < 0 || p.depth || p.in_string) {
		base_log("the daemon's answer breaks off");
		return CLI_FAILED;
	}
	return CLI_OK;
}
