/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "faults": the rules, and how often each has fired.
 */
#include "daemon/detour/detour.h"
#include "daemon/show/views.h"

bool daemon_show_fault(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct daemon_rule *r;
	uint32_t i = 0;

	TAILQ_FOREACH(r, &s->detour->rules.all, entry)
	if (i++ == at->part)
		break;
	if (!r)
		return false;
	show_open(o, NULL, '{');
	show_add_u64(o, "number", r->number);
	show_add_string(o, "rule", r->text);
	show_add_u64(o, "fitted", r->fitted);
	show_add_u64(o, "fired", r->fired);
	show_close(o, '}');
	return true;
}
