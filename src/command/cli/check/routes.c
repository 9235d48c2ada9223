/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The switches' tables as people and scripts read them: see routes.h.
 */
#define _GNU_SOURCE
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/check/route_tables.h"
#include "cli/check/routes.h"
#include "cli/base/table.h"

/* How wide the columns are, and whether that of LIDs has MLIDs too. */
struct widths {
	int name, lid, ports;
	bool mlids;
	size_t rows;
};

static int digits(unsigned v)
{
	return v < 10 ? 1 : 1 + digits(v / 10);
}

static void widen(int *width, size_t n)
{
	if ((int)n > *width)
		*width = (int)n;
}

/* The ports of a row of an MFT: "1 5 17". */
static void ports_text(struct json_object *row, char text[static 1024])
{
	struct json_object *ports = cli_json_array(row, "ports");
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < cli_json_count(ports) && len < 1000; i++)
		len += (size_t)sprintf(text + len, "%s%d", i ? " " : "",
		                       json_object_get_int(cli_json_at(ports, i)));
}

static int measure(void *arg, const struct cli_switch *sw)
{
	struct widths *w = arg;
	char text[1024];

	widen(&w->name, strlen(sw->name));
	for (unsigned lid = 0; lid < sw->n_lids; lid++) {
		if (sw->port[lid] == CLI_NO_PORT)
			continue;
		widen(&w->lid, (size_t)digits(lid));
		widen(&w->ports, (size_t)digits(sw->port[lid]));
		w->rows++;
	}
	for (size_t i = 0; i < cli_json_count(sw->mft); i++) {
		ports_text(cli_json_at(sw->mft, i), text);
		widen(&w->lid, strlen(cli_json_text(cli_json_at(sw->mft, i), "mlid")));
		/* one port is a number, several are not */
		w->mlids = true;
		widen(&w->ports, strlen(text));
		w->rows++;
	}
	return 0;
}

/* Writes @v, padded with blanks on the left to @width. Returns what follows. */
static char *put_number(char *to, unsigned v, int width)
{
	int n = digits(v);

	while (width-- > n)
		*to++ = ' ';
	for (int i = n; i-- > 0; v /= 10)
		to[i] = (char)('0' + v % 10);
	return to + n;
}

static void print_lft(const struct widths *w, const struct cli_switch *sw, bool numbers)
{
	char line[128], *to;
	size_t head = (size_t)sprintf(line, "%-*s  ", w->name, sw->name);

	for (unsigned lid = 0; lid < sw->n_lids; lid++) {
		if (sw->port[lid] == CLI_NO_PORT)
			continue;
		to = line + head;
		if (w->mlids)
			to += sprintf(to, "%-*u", w->lid, lid);
		else
			to = put_number(to, lid, w->lid);
		*to++ = ' ';
		*to++ = ' ';
		to = put_number(to, sw->port[lid], numbers ? w->ports : 0);
		*to++ = '\n';
		fwrite_unlocked(line, 1, (size_t)(to - line), stdout);
	}
}

/* Columns are aligned as in table.h: to the right if they have only numbers. */
static int print_switch(void *arg, const struct cli_switch *sw)
{
	const struct widths *w = arg;
	char text[1024];

	print_lft(w, sw, !w->mlids);
	for (size_t i = 0; i < cli_json_count(sw->mft); i++) {
		ports_text(cli_json_at(sw->mft, i), text);
		printf("%-*s  %-*s  %s\n", w->name, sw->name, w->lid,
		       cli_json_text(cli_json_at(sw->mft, i), "mlid"), text);
	}
	return 0;
}

static int print_text(struct cli_tables *t)
{
	struct widths w = { .name = sizeof("SWITCH") - 1,
		            .lid = sizeof("LID") - 1,
		            .ports = sizeof("PORTS") - 1 };
	bool colour = cli_colour();
	int ret = cli_tables_each(t, measure, &w);

	if (ret)
		return ret;
	printf("%s%-*s  %*s  %*s\n%s", colour ? "\033[1m" : "", w.name, "SWITCH",
	       w.mlids || !w.rows ? -w.lid : w.lid, "LID", w.mlids || !w.rows ? 0 : w.ports,
	       "PORTS", colour ? "\033[0m" : "");
	return cli_tables_each(t, print_switch, &w);
}

/* ---- JSON ---- */

static void print_mft(struct json_object *mft)
{
	for (size_t i = 0; i < cli_json_count(mft); i++) {
		struct json_object *ports = cli_json_array(cli_json_at(mft, i), "ports");

		printf("%s\n      {\n        \"mlid\": \"%s\",\n        \"ports\": [", i ? "," : "",
		       cli_json_text(cli_json_at(mft, i), "mlid"));
		for (size_t k = 0; k < cli_json_count(ports); k++)
			printf("%s\n          %d", k ? "," : "",
			       json_object_get_int(cli_json_at(ports, k)));
		fputs("\n        ]\n      }", stdout);
	}
	fputs(cli_json_count(mft) ? "\n    ]" : "]", stdout);
}

static int print_json_switch(void *arg, const struct cli_switch *sw)
{
	bool *any = arg, first = true;

	printf("%s\n  {\n    \"switch\": \"%s\",\n    \"lft\": [", *any ? "," : "", sw->name);
	*any = true;
	for (unsigned lid = 0; lid < sw->n_lids; lid++) {
		char text[96], *to = text;

		if (sw->port[lid] == CLI_NO_PORT)
			continue;
		to = stpcpy(to, first ? "\n      {\n        \"lid\": "
		                      : ",\n      {\n        \"lid\": ");
		to = put_number(to, lid, 0);
		to = stpcpy(to, ",\n        \"port\": ");
		to = put_number(to, sw->port[lid], 0);
		to = stpcpy(to, "\n      }");
		fwrite_unlocked(text, 1, (size_t)(to - text), stdout);
		first = false;
	}
	fputs(first ? "],\n    \"mft\": [" : "\n    ],\n    \"mft\": [", stdout);
	print_mft(sw->mft);
	fputs("\n  }", stdout);
	return 0;
}

static int print_json(struct cli_tables *t)
{
	bool any = false;
	int ret;

	putchar('[');
	ret = cli_tables_each(t, print_json_switch, &any);
	fputs(any ? "\n]\n" : "]\n", stdout);
	return ret;
}

int cli_routes_print(struct control_client *client, const char *of, bool json)
{
	struct cli_tables t;
	int ret = cli_tables_read(&t, client, of);

	if (ret)
		return ret;
	ret = json ? print_json(&t) : print_text(&t);
	cli_tables_free(&t);
	return ret;
}
