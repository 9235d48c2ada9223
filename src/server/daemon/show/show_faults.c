/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The views "faults": the rules, and how often each has fired; and "past_faults": those that were
 * removed and had.
 */
#include "daemon/detour/detour.h"
#include "daemon/show/views.h"

static bool show_rule(const struct daemon_show *s, const struct daemon_rule_list *rules,
                      const struct show_at *at, struct show_json *o)
{
	const struct daemon_rule *r;
	uint32_t i = 0;

	TAILQ_FOREACH(r, rules, entry)
	if (i++ == at->part)
		break;
	if (!r)
		return false;
	show_open(o, NULL, '{');
	show_add_u64(o, "number", r->number);
	show_add_string(o, "rule", r->text);
	show_add_u64(o, "fitted", r->fitted);
	show_add_u64(o, "fired", r->fired);
	if (rules == &s->detour->rules.past)
		show_add_true(o, "cleared");
	show_close(o, '}');
	return true;
}

bool daemon_show_fault(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	return show_rule(s, &s->detour->rules.all, at, o);
}

bool daemon_show_past_fault(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	return show_rule(s, &s->detour->rules.past, at, o);
}
