/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manager's answers, which are JSON texts: asked for, parsed, looked into and
 * printed. Called by show, status, down and exec. What an answer lacks is shown as
 * '-' or taken as 0: an older or newer manager is no error.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "control/client.h"

struct json_object *cli_ask(struct control_client *client, const char *what)
{
	struct json_object *answer;
	char *text;
	int ret;

	ret = control_show(client, what, &text);
	if (ret) {
		base_log("the manager does not show its %s: %s", what, strerror(-ret));
		return NULL;
	}
	answer = json_tokener_parse(text);
	if (!answer)
		base_log("the manager's %s are no JSON", what);
	free(text);
	return answer;
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

int cli_json_print(struct json_object *o)
{
	int flags =
	        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text = json_object_to_json_string_ext(o, flags);

	if (!text) {
		base_log("%s", strerror(ENOMEM));
		return CLI_FAILED;
	}
	puts(text);
	return 0;
}
