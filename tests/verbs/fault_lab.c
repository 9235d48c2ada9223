/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of faults: see fault_lab.h.
 */
#include "fault_lab.h"
#include "lab.h"

#include <json-c/json.h>

bool fault_lab_on_roce(void)
{
	return getenv("LAB_HOSTS");
}

int fault_lab_try(const char *text)
{
	char command[512];
	int status;

	snprintf(command, sizeof(command), "umbel fault add %s > /dev/null 2>&1", text);
	for (char *at = command; (at = strchr(at, '@')) != NULL;)
		*at = fault_lab_on_roce() ? 'r' : 'h';
	status = system(command);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

void fault_lab_add(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (fault_lab_try(text))
		fail_msg("the rule '%s' is refused", text);
}

int fault_lab_clean_up(void **state)
{
	int ret = lab_clean_up(state);

	return system("umbel fault clear") ? -1 : ret;
}

uint64_t fault_lab_shown(size_t i, const char *name)
{
	FILE *from = popen("umbel fault show --json", "r");
	char text[65536];
	struct json_object *rules, *of;
	uint64_t n;

	assert_non_null(from);
	text[fread(text, 1, sizeof(text) - 1, from)] = '\0';
	assert_int_equal(pclose(from), 0);
	rules = json_tokener_parse(text);
	assert_non_null(of = json_object_array_get_idx(rules, i));
	n = (uint64_t)json_object_get_int64(json_object_object_get(of, name));
	json_object_put(rules);
	return n;
}

uint64_t fault_lab_fired(size_t i)
{
	return fault_lab_shown(i, "fired");
}
