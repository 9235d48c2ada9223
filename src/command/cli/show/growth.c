/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * By how much counters have grown: see growth.h.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "cli/show/growth.h"
#include "cli/base/json.h"
#include "cli/base/table.h"

bool cli_growth_is_identity(const char *key, struct json_object *value)
{
	return json_object_is_type(value, json_type_string) || !strcmp(key, "port");
}

static bool is_counter(const char *key, struct json_object *value)
{
	return json_object_is_type(value, json_type_int) && !cli_growth_is_identity(key, value);
}

/* "ports/umbel_h1_0/1/" */
static void name_element(const char *array, struct json_object *element, char *id, size_t size)
{
	size_t n = (size_t)snprintf(id, size, "%s/", array);

	json_object_object_foreach(element, key, value)
	{
		if (n < size && cli_growth_is_identity(key, value))
			n += (size_t)snprintf(id + n, size - n, "%s/",
			                      json_object_get_string(value));
	}
}

/* With one digit behind the point, as JSON too: a double would have seventeen. */
static struct json_object *rate(int64_t by, double seconds)
{
	char text[40];
	const double a_second = seconds > 0 ? (double)by / seconds : 0;

	snprintf(text, sizeof(text), "%.1f", a_second);
	return json_object_new_double_s(a_second, text);
}

static void add_growth(struct json_object *element, struct json_object *before, double seconds)
{
	struct json_object *grew = json_object_new_object(), *rates = json_object_new_object();
	struct json_object *old;

	json_object_object_foreach(element, key, value)
	{
		int64_t by;

		if (!is_counter(key, value) || !json_object_object_get_ex(before, key, &old))
			continue;
		by = json_object_get_int64(value) - json_object_get_int64(old);
		if (by < 0)
			continue;
		json_object_object_add(grew, key, json_object_new_int64(by));
		json_object_object_add(rates, key, rate(by, seconds));
	}
	json_object_object_add(element, "grew", grew);
	json_object_object_add(element, "per_second", rates);
}

/* The elements of the array, and the growth of those that were there @before. */
static void add_array(const struct cli_growth *g, struct json_object *now, const char *name,
                      struct json_object *array, double seconds)
{
	char id[256];

	for (size_t i = 0; i < cli_json_count(array); i++) {
		struct json_object *element = cli_json_at(array, i), *before;

		name_element(name, element, id, sizeof(id));
		before = g->before ? json_object_object_get(g->before, id) : NULL;
		if (before)
			add_growth(element, before, seconds);
		json_object_object_add(now, id, json_object_get(element));
	}
}

void cli_growth_add(struct cli_growth *g, struct json_object *counters, uint64_t now_ns)
{
	struct json_object *now = json_object_new_object();
	double seconds = g->before ? (double)(now_ns - g->at_ns) / 1e9 : 0;
	char text[40];

	json_object_object_foreach(counters, name, array)
	{
		if (json_object_is_type(array, json_type_array))
			add_array(g, now, name, array, seconds);
	}
	snprintf(text, sizeof(text), "%.3f", seconds);
	if (g->before)
		json_object_object_add(counters, "seconds",
		                       json_object_new_double_s(seconds, text));
	json_object_put(g->before);
	*g = (struct cli_growth){ .before = now, .at_ns = now_ns };
}

void cli_growth_fini(struct cli_growth *g)
{
	json_object_put(g->before);
	*g = (struct cli_growth){ 0 };
}

void cli_growth_add_cell(struct cli_table *t, struct json_object *element, const char *key)
{
	struct json_object *grew = json_object_object_get(element, "grew");
	struct json_object *rates = json_object_object_get(element, "per_second");

	if (grew && cli_json_number(grew, key))
		cli_table_add(t, "%s +%s %s/s", cli_json_text(element, key),
		              cli_json_text(grew, key), cli_json_text(rates, key));
	else
		cli_table_add(t, "%s", cli_json_text(element, key));
}
