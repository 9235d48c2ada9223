/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * By how much counters have grown: see growth.h.
 */
#include <harness.h>
#include <json-c/json.h>

#include "cli/show/growth.h"
#include "cli/base/json.h"

static struct cli_growth growth;

/* The counters of @text, at @seconds; to be put. */
static struct json_object *at(const char *text, double seconds)
{
	struct json_object *counters = json_tokener_parse(text);

	assert_non_null(counters);
	cli_growth_add(&growth, counters, (uint64_t)(seconds * 1e9) + 5);
	return counters;
}

static struct json_object *port(struct json_object *counters, size_t i)
{
	return cli_json_at(cli_json_array(counters, "ports"), i);
}

static long grew(struct json_object *counters, size_t i, const char *key)
{
	return cli_json_number(json_object_object_get(port(counters, i), "grew"), key);
}

static int tear_down(void **state)
{
	(void)state;
	cli_growth_fini(&growth);
	return 0;
}

CASE_WITH(the_first_time_has_none, NULL, tear_down)
{
	struct json_object *c = at("{\"ports\":[{\"node\":\"a\",\"port\":1,\"n\":7}]}", 0);

	assert_null(json_object_object_get(c, "seconds"));
	assert_null(json_object_object_get(port(c, 0), "grew"));
	assert_int_equal(cli_json_number(port(c, 0), "n"), 7);
	json_object_put(c);
}

CASE_WITH(growth_is_since_the_last_time, NULL, tear_down)
{
	struct json_object *c;

	json_object_put(at("{\"ports\":[{\"node\":\"a\",\"port\":1,\"n\":7}]}", 1));
	json_object_put(at("{\"ports\":[{\"node\":\"a\",\"port\":1,\"n\":9}]}", 2));
	c = at("{\"ports\":[{\"node\":\"a\",\"port\":1,\"n\":19}]}", 6);
	assert_string_equal(cli_json_text(c, "seconds"), "4.000");
	assert_int_equal(grew(c, 0, "n"), 10);
	assert_string_equal(cli_json_text(json_object_object_get(port(c, 0), "per_second"), "n"),
	                    "2.5");
	assert_null(json_object_object_get(json_object_object_get(port(c, 0), "grew"), "port"));
	json_object_put(c);
}

CASE_WITH(elements_are_told_apart, NULL, tear_down)
{
	struct json_object *c;

	json_object_put(at("{\"ports\":[{\"node\":\"a\",\"port\":1,\"n\":1},"
	                   "{\"node\":\"a\",\"port\":2,\"n\":10}],"
	                   "\"mads\":[{\"node\":\"a\",\"port\":1,\"n\":100}]}",
	                   0));
	/* in another order, with one that is new */
	c = at("{\"mads\":[{\"node\":\"a\",\"port\":1,\"n\":104}],"
	       "\"ports\":[{\"node\":\"b\",\"port\":1,\"n\":50},{\"node\":\"a\",\"port\":2,\"n\":"
	       "13},"
	       "{\"node\":\"a\",\"port\":1,\"n\":3}]}",
	       1);
	assert_null(json_object_object_get(port(c, 0), "grew"));
	assert_int_equal(grew(c, 1, "n"), 3);
	assert_int_equal(grew(c, 2, "n"), 2);
	assert_int_equal(cli_json_number(json_object_object_get(
	                                         cli_json_at(cli_json_array(c, "mads"), 0), "grew"),
	                                 "n"),
	                 4);
	json_object_put(c);
}

/* Somebody has reset it. */
CASE_WITH(what_became_less_began_anew, NULL, tear_down)
{
	struct json_object *c;

	json_object_put(at("{\"ports\":[{\"node\":\"a\",\"n\":7,\"m\":1}]}", 0));
	c = at("{\"ports\":[{\"node\":\"a\",\"n\":2,\"m\":1}]}", 1);
	assert_null(json_object_object_get(json_object_object_get(port(c, 0), "grew"), "n"));
	assert_non_null(json_object_object_get(json_object_object_get(port(c, 0), "grew"), "m"));
	json_object_put(c);
	c = at("{\"ports\":[{\"node\":\"a\",\"n\":5,\"m\":1}]}", 2);
	assert_int_equal(grew(c, 0, "n"), 3);
	json_object_put(c);
}

/* Two looks in one moment. */
CASE_WITH(no_time_is_no_rate, NULL, tear_down)
{
	struct json_object *c;

	json_object_put(at("{\"ports\":[{\"node\":\"a\",\"n\":7}]}", 0));
	c = at("{\"ports\":[{\"node\":\"a\",\"n\":9}]}", 0);
	assert_int_equal(grew(c, 0, "n"), 2);
	assert_string_equal(cli_json_text(json_object_object_get(port(c, 0), "per_second"), "n"),
	                    "0.0");
	json_object_put(c);
}
