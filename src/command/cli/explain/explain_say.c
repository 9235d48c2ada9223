/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The findings of `umbel explain`: see explain.h.
 */
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/explain/explain.h"

void cli_explain_say(struct cli_explain *e, enum cli_verdict verdict, const char *about,
                     const char *todo, const char *format, ...)
{
	static const char *const names[] = { "ok", "fails", "lost" };
	struct json_object *finding;
	char text[768];
	va_list args;

	e->n_failed += verdict != CLI_HOLDS;
	if (e->silent || (verdict == CLI_HOLDS && e->quiet))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	finding = json_object_new_object();
	json_object_object_add(finding, "verdict", json_object_new_string(names[verdict]));
	json_object_object_add(finding, "about", json_object_new_string(about));
	json_object_object_add(finding, "text", json_object_new_string(text));
	if (todo)
		json_object_object_add(finding, "do", json_object_new_string(todo));
	json_object_array_add(e->findings, finding);
}
