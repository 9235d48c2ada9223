/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the switches' tables: see route_tables.h.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/check/route_tables.h"
#include "control/client.h"

int cli_tables_read(struct cli_tables *t, struct control_client *client, const char *of)
{
	int ret;

	*t = (struct cli_tables){ 0 };
	ret = control_show_of(client, "routes", of, &t->text);
	if (ret == -ENOENT)
		base_log("no switch '%s'", of);
	else if (ret)
		base_log("the daemon does not show its routes: %s", strerror(-ret));
	if (ret)
		return CLI_FAILED;
	t->end = t->text + strlen(t->text);
	t->tokener = json_tokener_new();
	if (t->tokener)
		return 0;
	base_log("%s", strerror(ENOMEM));
	free(t->text);
	return CLI_FAILED;
}

void cli_tables_free(struct cli_tables *t)
{
	json_tokener_free(t->tokener);
	free(t->port);
	free(t->text);
}

static unsigned hex(char c)
{
	return c <= '9' ? (unsigned)c - '0' : (unsigned)c - 'a' + 10;
}

/* Fills in the out ports, two hex digits each. 0 or -ENOMEM. */
static int decode(struct cli_tables *t, struct json_object *lft, struct cli_switch *sw)
{
	const char *text = json_object_get_string(lft);
	size_t n = text ? strlen(text) / 2 : 0;

	if (n > t->port_room) {
		uint8_t *grown = realloc(t->port, n);

		if (!grown)
			return -ENOMEM;
		t->port = grown;
		t->port_room = n;
	}
	for (size_t i = 0; i < n; i++)
		t->port[i] = (uint8_t)(hex(text[2 * i]) << 4 | hex(text[2 * i + 1]));
	sw->port = t->port;
	sw->n_stored = (unsigned)n;
	sw->n_lids = sw->lft_top < n ? sw->lft_top + 1 : (unsigned)n;
	return 0;
}

/* The next element of the array in the text at *@at, or NULL at its end. */
static struct json_object *next(struct cli_tables *t, const char **at)
{
	size_t left = (size_t)(t->end - *at); /* json-c takes an int: an element is far shorter */
	struct json_object *o;

	json_tokener_reset(t->tokener);
	o = json_tokener_parse_ex(t->tokener, *at, left < 1 << 30 ? (int)left : 1 << 30);
	if (o)
		*at += json_tokener_get_parse_end(t->tokener);
	return o;
}

int cli_tables_each(struct cli_tables *t, int (*each)(void *arg, const struct cli_switch *sw),
                    void *arg)
{
	const char *at = t->text;
	int ret = 0;

	while (!ret && (*at == '[' || *at == ',') && at[1] == '{') {
		struct json_object *o;
		struct cli_switch sw;

		at++;
		o = next(t, &at);
		sw.name = cli_json_text(o, "switch");
		sw.lft_top = (unsigned)cli_json_number(o, "lft_top");
		sw.mft_top = (unsigned)cli_json_number(o, "mft_top");
		sw.mft_default = json_object_object_get(o, "mft_default") != NULL;
		sw.mft = cli_json_array(o, "mft");
		if (!o || decode(t, json_object_object_get(o, "lft"), &sw)) {
			base_log("%s", o ? strerror(ENOMEM) : "the daemon's routes are no JSON");
			ret = CLI_FAILED;
		}
		if (!ret)
			ret = each(arg, &sw);
		json_object_put(o);
	}
	if (ret || !strcmp(at, "]") || !strcmp(at, "[]"))
		return ret;
	base_log("the daemon's routes break off");
	return CLI_FAILED;
}
