/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports of tests: what any bytes become. tests/system/run_junit.sh has them read.
 */
#include <harness.h>

#include "cli/run/junit.h"

static void expect_escaped(const char *text, size_t most, const char *expected)
{
	char *got = NULL;
	size_t bytes;
	FILE *to = open_memstream(&got, &bytes);

	assert_non_null(to);
	cli_junit_escape(to, text, most);
	fclose(to);
	assert_string_equal(got, expected);
	free(got);
}

#define REPLACED "\xEF\xBF\xBD"

CASE(text_stays_as_it_is)
{
	expect_escaped("", 100, "");
	expect_escaped("qp=h1:* loss=1% /tmp", 100, "qp=h1:* loss=1% /tmp");
	expect_escaped("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", 100,
	               "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
}

CASE(what_is_markup_is_escaped)
{
	expect_escaped("<&>\"'", 100, "&#60;&#38;&#62;&#34;&#39;");
	expect_escaped("\t\n\r", 100, "&#9;&#10;&#13;");
}

CASE(what_xml_has_not_is_replaced)
{
	expect_escaped("\x01\x1B[0m\x7F", 100, REPLACED REPLACED "[0m\x7F");
	/* no UTF-8: bytes alone, too long, surrogates, beyond the last; what is cut */
	expect_escaped("\xFF\x80", 100, REPLACED REPLACED);
	expect_escaped("\xC0\xAF", 100, REPLACED REPLACED);
	expect_escaped("\xED\xA0\x80", 100, REPLACED);
	expect_escaped("\xF4\x90\x80\x80", 100, REPLACED);
	expect_escaped("\xEF\xBF\xBF", 100, REPLACED);
	expect_escaped("\xE2\x82", 100, REPLACED REPLACED);
	expect_escaped("\xE2<", 100, REPLACED "&#60;");
}

CASE(a_long_text_is_cut_between_characters)
{
	expect_escaped("12345", 5, "12345");
	expect_escaped("123456", 5, "12345...");
	expect_escaped("1234\xC3\xA4", 5, "1234...");
}
