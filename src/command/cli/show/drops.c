/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Losses: see drops.h. They are the counters that count losses and are not 0, and the faults that
 * have fired, whether they were cleared since or not. Single-threaded.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/exit.h"
#include "cli/show/drops.h"
#include "cli/base/json.h"
#include "cli/base/table.h"
#include "cli/picture/legend.h"

/* Adds what @element has lost, by the counters of one kind of port. */
static void add_losses(struct json_object *drops, struct json_object *element,
                       struct json_object *texts)
{
	const char *node = cli_json_text(element, "node");

	json_object_object_foreach(texts, counter, text)
	{
		struct json_object *row, *port = json_object_object_get(element, "port");
		long n = cli_json_number(element, counter);

		if (!n)
			continue;
		row = json_object_new_object();
		/* MADs are counted for the whole fabric */
		json_object_object_add(row, "node", json_object_new_string(node));
		if (port)
			json_object_object_add(row, "port", json_object_get(port));
		json_object_object_add(row, "counter", json_object_new_string(counter));
		json_object_object_add(row, "count", json_object_new_int64(n));
		json_object_object_add(row, "text", json_object_get(text));
		json_object_array_add(drops, row);
	}
}

static int largest_first(const void *a, const void *b)
{
	long m = cli_json_number(*(struct json_object *const *)a, "count");
	long n = cli_json_number(*(struct json_object *const *)b, "count");

	return m < n ? 1 : -(m > n);
}

/* All that was lost, the largest number first. */
static struct json_object *find_losses(struct json_object *counters, struct json_object *texts)
{
	struct json_object *drops = json_object_new_array();

	json_object_object_foreach(counters, kind, array)
	{
		(void)kind;
		for (size_t i = 0;
		     json_object_is_type(array, json_type_array) && i < cli_json_count(array);
		     i++) {
			json_object_object_foreach(texts, of, table)
			{
				(void)of;
				if (cli_legend_fits(cli_json_at(array, i), table))
					add_losses(drops, cli_json_at(array, i), table);
			}
		}
	}
	json_object_array_sort(drops, largest_first);
	return drops;
}

/* Adds those that have fired. */
static void find_fired(struct json_object *fired, struct json_object *faults)
{
	for (size_t i = 0; i < cli_json_count(faults); i++)
		if (cli_json_number(cli_json_at(faults, i), "fired"))
			json_object_array_add(fired, json_object_get(cli_json_at(faults, i)));
}

/* The rule, and whether it is one no more. */
static void add_rule(struct cli_table *t, struct json_object *fault, const char *key)
{
	const bool cleared = json_object_get_boolean(json_object_object_get(fault, "cleared"));

	cli_table_add(t, "%s%s", cli_json_text(fault, key), cleared ? " (cleared)" : "");
}

/* Each reason once. */
static void print_reasons(struct json_object *drops)
{
	struct json_object *seen = json_object_new_object(), *legend = json_object_new_array();

	for (size_t i = 0; i < cli_json_count(drops); i++) {
		const char *text = cli_json_text(cli_json_at(drops, i), "text");

		if (json_object_object_get_ex(seen, text, NULL))
			continue;
		json_object_object_add(seen, text, NULL);
		json_object_array_add(legend, json_object_get(cli_json_at(drops, i)));
	}
	cli_legend_print(legend);
	json_object_put(legend);
	json_object_put(seen);
}

static int print_text(struct json_object *drops, struct json_object *fired)
{
	static const struct cli_column columns[] = {
		{ "NODE", "node", cli_add_text, 0 },
		{ "PORT", "port", cli_add_text, 0 },
		{ "COUNTER", "counter", cli_add_text, 0 },
		{ "COUNT", "count", cli_add_text, 0 },
		{ 0 },
	};
	static const struct cli_column faults[] = {
		{ "FAULT", "number", cli_add_text, 0 },
		{ "FIRED", "fired", cli_add_text, 0 },
		{ "RULE", "rule", add_rule, 0 },
		{ 0 },
	};
	int ret = 0;

	if (!cli_json_count(drops) && !cli_json_count(fired))
		puts("nothing was lost");
	if (cli_json_count(drops)) {
		ret = cli_json_print_table(drops, columns, NULL);
		print_reasons(drops);
	}
	if (cli_json_count(drops) && cli_json_count(fired))
		putchar('\n');
	if (!ret && cli_json_count(fired))
		ret = cli_json_print_table(fired, faults, NULL);
	return ret;
}

static int print(struct json_object *drops, struct json_object *fired, bool json)
{
	struct json_object *all;
	int ret;

	if (!json)
		return print_text(drops, fired);
	all = json_object_new_object();
	json_object_object_add(all, "drops", json_object_get(drops));
	json_object_object_add(all, "faults", json_object_get(fired));
	ret = cli_json_print(all);
	json_object_put(all);
	return ret;
}

int cli_drops_print(struct control_client *client, bool json)
{
	struct json_object *counters = cli_request_json(client, "counters");
	struct json_object *texts = counters ? cli_request_json(client, "loss_texts") : NULL;
	struct json_object *faults = texts ? cli_request_json(client, "faults") : NULL;
	struct json_object *past = faults ? cli_request_json(client, "past_faults") : NULL;
	int ret = CLI_FAILED;

	if (past) {
		struct json_object *drops = find_losses(counters, texts);
		struct json_object *fired = json_object_new_array();

		find_fired(fired, faults);
		find_fired(fired, past);
		ret = print(drops, fired, json);
		json_object_put(fired);
		json_object_put(drops);
	}
	json_object_put(past);
	json_object_put(faults);
	json_object_put(texts);
	json_object_put(counters);
	return ret;
}
