/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of views.c: what counters look like, whatever their names.
 */
#include <harness.h>
#include <json-c/json.h>

#include "cli/show/views.h"

/* The output of `umbel show counters` for the daemon's @reply must be @expected. */
static void check(const char *reply, const char *expected)
{
	struct json_object *o = json_tokener_parse(reply);
	FILE *printed = tmpfile();
	int saved = dup(STDOUT_FILENO);
	char text[2048];
	size_t n;

	assert_non_null(o);
	fflush(stdout);
	dup2(fileno(printed), STDOUT_FILENO);
	assert_int_equal(cli_view_find("counters")->print(o), 0);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(printed);
	n = fread(text, 1, sizeof(text) - 1, printed);
	text[n] = '\0';
	fclose(printed);
	json_object_put(o);
	assert_string_equal(text, expected);
}

CASE(a_counter_that_moved_has_a_column_whatever_its_name)
{
	check("{\"ports\":[{\"node\":\"h1\",\"port\":1,\"sent\":7,\"lost\":0},"
	      "{\"node\":\"h2\",\"port\":12,\"sent\":0,\"new_one\":3,\"lost\":0}]}",
	      "node  port  sent  new_one\n"
	      "h1       1     7        -\n"
	      "h2      12     0        3\n");
}

CASE(what_else_counts_has_a_table_of_its_own)
{
	check("{\"ports\":[{\"node\":\"h1\",\"port\":1,\"sent\":7}],"
	      "\"idle\":[{\"name\":\"x\",\"count\":0}],"
	      "\"queues\":[{\"host\":\"h1\",\"qpn\":\"0x2\",\"retries\":5}]}",
	      "node  port  sent\n"
	      "h1       1     7\n"
	      "\n"
	      "host  qpn  retries\n"
	      "h1    0x2        5\n");
}

CASE(counters_that_are_all_0_are_said_to_be)
{
	check("{\"ports\":[{\"node\":\"h1\",\"port\":1,\"sent\":0}]}", "all counters are 0\n");
	check("{\"ports\":[]}", "all counters are 0\n");
	check("{}", "all counters are 0\n");
}

CASE(there_is_no_view_of_what_is_unknown)
{
	assert_null(cli_view_find("weather"));
}
