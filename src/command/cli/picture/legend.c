/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The legend of counters: see legend.h.
 */
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/json.h"
#include "cli/picture/legend.h"

bool cli_legend_fits(struct json_object *element, struct json_object *texts)
{
	json_object_object_foreach(texts, name, text)
	{
		(void)text;
		if (!json_object_object_get_ex(element, name, NULL))
			return false;
	}
	return true;
}

/* Whether an element of the array that has all counters of @texts has one of @name that is not 0.
 */
static bool is_counted(struct json_object *array, struct json_object *texts, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *element = json_object_array_get_idx(array, i);

		if (cli_json_number(element, name) && cli_legend_fits(element, texts))
			return true;
	}
	return false;
}

static bool is_counted_anywhere(struct json_object *counters, struct json_object *texts,
                                const char *name)
{
	json_object_object_foreach(counters, key, array)
	{
		(void)key;
		if (json_object_is_type(array, json_type_array) && is_counted(array, texts, name))
			return true;
	}
	return false;
}

static void add(struct json_object *legend, const char *of, const char *name, const char *text)
{
	struct json_object *row = json_object_new_object();

	json_object_object_add(row, "counter", json_object_new_string(name));
	json_object_object_add(row, "of", json_object_new_string(of));
	json_object_object_add(row, "text", json_object_new_string(text));
	json_object_array_add(legend, row);
}

struct json_object *cli_legend(struct json_object *counters, struct json_object *texts)
{
	struct json_object *legend = json_object_new_array();

	json_object_object_foreach(texts, of, table)
	{
		json_object_object_foreach(table, name, text)
		{
			if (is_counted_anywhere(counters, table, name))
				add(legend, of, name, json_object_get_string(text));
		}
	}
	return legend;
}

void cli_legend_print(struct json_object *legend)
{
	size_t n = json_object_array_length(legend), wide = 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *row = json_object_array_get_idx(legend, i);
		size_t len = strlen(cli_json_text(row, "counter"));

		wide = len > wide ? len : wide;
	}
	if (n)
		putchar('\n');
	for (size_t i = 0; i < n; i++) {
		struct json_object *row = json_object_array_get_idx(legend, i);

		printf("%-*s  %s\n", (int)wide, cli_json_text(row, "counter"),
		       cli_json_text(row, "text"));
	}
}
