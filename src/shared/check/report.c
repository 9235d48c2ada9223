/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Findings: see report.h.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/report.h"

static const char *const names[CHECK_PROPERTIES] = {
	[CHECK_LINKS] = "links",
	[CHECK_LIDS] = "lids",
	[CHECK_PATHS] = "paths",
	[CHECK_LOOPS] = "loops",
	[CHECK_SWITCH_PATHS] = "switches",
	[CHECK_DEADLOCK] = "deadlock",
	[CHECK_DEADLOCK_GROUPS] = "deadlock-groups",
	[CHECK_GROUPS] = "groups",
	[CHECK_PARTITIONS] = "partitions",
	[CHECK_MTU] = "mtu",
	[CHECK_RATE] = "rate",
	[CHECK_M_KEYS] = "m-keys",
};

const char *check_property_name(enum check_property p)
{
	return names[p];
}

bool check_property_is_note(enum check_property p)
{
	return p == CHECK_SWITCH_PATHS || p == CHECK_MTU || p == CHECK_RATE || p == CHECK_M_KEYS;
}

enum check_property check_property_find(const char *name)
{
	int p = 0;

	while (p < CHECK_PROPERTIES && strcmp(names[p], name) != 0)
		p++;
	return (enum check_property)p;
}

bool check_is_kept(const struct check_report *r, enum check_property p)
{
	return r->result[p].n < r->keep;
}

void check_found(struct check_report *r, enum check_property p, const char *format, ...)
{
	struct check_result *result = &r->result[p];
	va_list args;
	char *text;

	result->found++;
	if (!check_is_kept(r, p))
		return;
	if (!result->text)
		result->text = calloc(r->keep, sizeof(*result->text));
	va_start(args, format);
	if (!result->text || vasprintf(&text, format, args) < 0)
		r->failed = true;
	else
		result->text[result->n++] = text;
	va_end(args);
}

void check_report_fini(struct check_report *r)
{
	for (int p = 0; p < CHECK_PROPERTIES; p++) {
		for (unsigned i = 0; i < r->result[p].n; i++)
			free(r->result[p].text[i]);
		free(r->result[p].text);
	}
	free(r->routes);
	free(r->trees);
}
