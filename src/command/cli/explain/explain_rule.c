/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Explains a rule for checked programs: `umbel explain rule`.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "checked/rules.h"
#include "cli/base/json.h"
#include "cli/base/table.h"
#include "cli/explain/explain.h"

static struct json_object *describe(const struct checked_rule_text *r)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "rule", json_object_new_string(r->name));
	json_object_object_add(o, "level", json_object_new_string(checked_levels[r->level]));
	json_object_object_add(o, "headline", json_object_new_string(r->headline));
	json_object_object_add(o, "source", json_object_new_string(r->source));
	json_object_object_add(o, "advice", json_object_new_string(r->advice));
	return o;
}

static int print_json(struct json_object *o)
{
	int ret = cli_json_print(o);

	json_object_put(o);
	return ret;
}

static int list(bool json)
{
	struct cli_table *t;
	struct json_object *all;

	if (json) {
		all = json_object_new_array();
		for (unsigned i = 0; i < CHECKED_N_RULES; i++)
			json_object_array_add(all, describe(&checked_rules[i]));
		return print_json(all);
	}
	t = cli_table_new(3, NULL);
	for (unsigned i = 0; i < CHECKED_N_RULES; i++) {
		cli_table_add(t, "%s", checked_rules[i].name);
		cli_table_add(t, "%s", checked_levels[checked_rules[i].level]);
		cli_table_add(t, "%s", checked_rules[i].headline);
	}
	return cli_table_end(t);
}

static int print(const struct checked_rule_text *r, bool json)
{
	if (json)
		return print_json(describe(r));
	printf("%s (%s)\n%s\n\nrule: %s\ndo:   %s\n", r->name, checked_levels[r->level],
	       r->headline, r->source, r->advice);
	return CLI_OK;
}

int cli_explain_rule(const struct cli_command *self, const struct cli_list *words, bool json)
{
	if (words->n == 1)
		return list(json);
	if (words->n > 2)
		return cli_usage_error(self, "behind 'rule' comes one name, not '%s'",
		                       words->at[2]);
	for (unsigned i = 0; i < CHECKED_N_RULES; i++)
		if (!strcmp(words->at[1], checked_rules[i].name))
			return print(&checked_rules[i], json);
	return cli_usage_error(self, "no rule '%s'; 'umbel explain rule' lists them", words->at[1]);
}
