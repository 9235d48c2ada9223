/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of top_data.c and top_views.c: rows, rates, their order, what is written for a number.
 */
#include <harness.h>
#include <json-c/json.h>
#include <math.h>

#include "cli/show/top_data.h"

#define S 1000000000ull

static const struct cli_top_view *view_of(const char *name)
{
	return &cli_top_views[cli_top_find(name)];
}

static struct cli_top_sample *sample(const char *view, const char *rows, const char *more,
                                     struct cli_top_history *history, uint64_t now)
{
	struct json_object *m = more ? json_tokener_parse(more) : NULL;
	struct cli_top_sample *s =
	        cli_top_sample_new(view_of(view), json_tokener_parse(rows), m, history, now);

	assert_non_null(s);
	json_object_put(m);
	return s;
}

/* The cells of a row must be @wanted, with a blank between two. */
static void assert_row(const struct cli_top_sample *s, size_t row, const char *wanted)
{
	const unsigned n = cli_top_n_columns(s->view);
	char got[512] = "", text[CLI_TOP_CELL];

	for (unsigned i = 0; i < n; i++) {
		size_t at = strlen(got);

		snprintf(got + at, sizeof(got) - at, "%s%s", i ? " " : "",
		         cli_top_cell(s, &s->row[row], i, text));
	}
	assert_string_equal(got, wanted);
}

#define PORT(node, packets, bytes, lost)                                              \
	"{\"node\":\"" node "\",\"port\":1,\"xmit_pkts\":" packets ",\"rcv_pkts\":0," \
	"\"xmit_bytes\":" bytes ",\"rcv_bytes\":0,\"no_receive\":" lost ",\"xmit_mtu\":7}"

static const char texts[] = "{\"hca\":{\"no_receive\":\"\",\"xmit_mtu\":\"\"},"
                            "\"switch\":{\"relay_errors\":\"\"}}";

CASE(a_rate_is_what_has_come_in_a_second)
{
	struct cli_top_history h = { 0 };
	struct cli_top_sample *s;

	s = sample("ports", "[" PORT("h1", "10", "1000", "3") "]", texts, &h, 5 * S);
	assert_row(s, 0, "h1 1 - - - - 3 - 10 0");
	cli_top_sample_free(s);
	s = sample("ports", "[" PORT("h2", "1", "1", "0") "," PORT("h1", "30", "5000", "7") "]",
	           texts, &h, 7 * S);
	assert_row(s, 0, "h2 1 - - - - 0 - 1 0"); /* it is new */
	assert_row(s, 1, "h1 1 2.00K 0 10 0 7 2 30 0");
	cli_top_sample_free(s);
	cli_top_history_fini(&h);
}

CASE(what_counts_anew_has_no_negative_rate)
{
	struct cli_top_history h = { 0 };
	struct cli_top_sample *s;

	cli_top_sample_free(sample("ports", "[" PORT("h1", "10", "1000", "3") "]", texts, &h, S));
	s = sample("ports", "[" PORT("h1", "4", "100", "0") "]", texts, &h, 2 * S);
	assert_row(s, 0, "h1 1 0 0 0 0 0 0 4 0");
	cli_top_sample_free(s);
	s = sample("ports", "[" PORT("h1", "5", "150", "0") "]", texts, &h, 2 * S);
	assert_row(s, 0, "h1 1 - - - - 0 - 5 0"); /* at the same moment */
	cli_top_sample_free(s);
	cli_top_history_fini(&h);
}

CASE(a_process_sends_what_its_queue_pairs_do)
{
	static const char rows[] = "[{\"pid\":7,\"program\":\"a\",\"uses\":\"verbs\",\"uid\":1,"
	                           "\"hosts\":[\"h1\",\"h2\",\"h3\"],\"qps\":2},"
	                           "{\"pid\":7,\"program\":\"a\",\"uses\":\"umad\",\"hosts\":[]}]";
	struct cli_top_history h = { 0 };
	struct cli_top_sample *s;

	cli_top_sample_free(sample("processes", rows,
	                           "[{\"pid\":7,\"sent_packets\":1,\"sent_bytes\":10}]", &h, S));
	s = sample("processes", rows,
	           "[{\"pid\":7,\"sent_packets\":2,\"sent_bytes\":30},"
	           "{\"pid\":7,\"sent_packets\":4,\"sent_bytes\":50},"
	           "{\"pid\":8,\"sent_packets\":400,\"sent_bytes\":5000}]",
	           &h, 2 * S);
	assert_row(s, 0, "7 a h1 +2 2 - - - - 70 5 1 verbs");
	assert_row(s, 1, "7 a - - - - - - - - - umad");
	cli_top_sample_free(s);
	cli_top_history_fini(&h);
}

static void assert_order(const struct cli_top_sample *s, const struct cli_top_order *order,
                         const char *wanted)
{
	char got[32] = "";
	uint32_t which[8];
	size_t n = cli_top_order(s, order, which);

	for (size_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%u", which[i]);
	assert_string_equal(got, wanted);
}

CASE(rows_are_sorted_and_chosen)
{
	static const char rows[] = "[{\"host\":\"h10\",\"qpn\":\"1\",\"receives\":5},"
	                           "{\"host\":\"h2\",\"qpn\":\"2\",\"receives\":9},"
	                           "{\"host\":\"h1\",\"qpn\":\"3\"},"
	                           "{\"host\":\"h3\",\"qpn\":\"4\",\"receives\":5}]";
	struct cli_top_history h = { 0 };
	struct cli_top_sample *s = sample("qps", rows, NULL, &h, S);

	assert_order(s, &(struct cli_top_order){ 0, false, "" }, "2130"); /* h1 h2 h3 h10 */
	assert_order(s, &(struct cli_top_order){ 0, true, "" }, "0312");
	assert_order(s, &(struct cli_top_order){ 5, false, "" }, "1032"); /* unknown: last */
	assert_order(s, &(struct cli_top_order){ 5, true, "" }, "0312");
	assert_order(s, &(struct cli_top_order){ 0, false, "H1" }, "20");
	assert_order(s, &(struct cli_top_order){ 0, false, "5" }, ""); /* no number */
	cli_top_sample_free(s);
	s = sample("qps", "[]", NULL, &h, S);
	assert_order(s, &(struct cli_top_order){ 0, false, "" }, "");
	cli_top_sample_free(s);
	cli_top_history_fini(&h);
}

CASE(a_number_takes_few_characters)
{
	static const struct {
		const char *number, *text;
	} cases[] = {
		{ "0", "0" },           { "99999", "99999" },
		{ "100000", "100K" },   { "999499", "999K" },
		{ "999500", "1.00M" },  { "9994999", "9.99M" },
		{ "9995000", "10.0M" }, { "99949999", "99.9M" },
		{ "99950000", "100M" }, { "9223372036854775807", "9.22E" },
	};
	struct cli_top_history h = { 0 };
	char rows[128], text[CLI_TOP_CELL];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cli_top_sample *s;

		snprintf(rows, sizeof(rows), "[{\"host\":\"h1\",\"receives\":%s}]",
		         cases[i].number);
		s = sample("qps", rows, NULL, &h, S);
		assert_string_equal(cli_top_cell(s, &s->row[0], 5, text), cases[i].text);
		cli_top_sample_free(s);
	}
	cli_top_history_fini(&h);
}

/* With one blank between two: the other columns are for wider terminals. */
CASE(the_first_columns_of_a_view_fit_80_characters)
{
	static const unsigned needed[CLI_TOP_VIEWS] = { 8, 7, 8, 10, 10 };

	for (unsigned i = 0; i < CLI_TOP_VIEWS; i++) {
		unsigned width = needed[i] - 1;

		for (unsigned k = 0; k < needed[i]; k++)
			width += cli_top_views[i].columns[k].width;
		assert_in_range(width, 60, 80);
		assert_in_range(cli_top_views[i].sort, 0, needed[i] - 1);
	}
	assert_int_equal(cli_top_find("weather"), -1);
}
