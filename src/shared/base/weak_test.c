/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <harness.h>

#include "base/util.h"
#include "base/weak.h"

CASE(what_users_say_is_read)
{
	static const struct {
		const char *text;
		bool ok;
		uint32_t seed, kinds;
	} cases[] = {
		{ "0", true, 0, BASE_WEAK_USUAL },
		{ "17", true, 17, BASE_WEAK_USUAL },
		{ "4294967295,gather", true, UINT32_MAX, 1u << BASE_WEAK_GATHER },
		{ "1,place,cm", true, 1, 1u << BASE_WEAK_PLACE | 1u << BASE_WEAK_CM },
		{ "4294967296", false, 0, 0 },
		{ "", false, 0, 0 },
		{ "-1", false, 0, 0 },
		{ "1,", false, 0, 0 },
		{ "1,gathers", false, 0, 0 },
		{ "1,gat", false, 0, 0 },
		{ "1 gather", false, 0, 0 },
		{ "x", false, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct base_weak w;
		char why[200] = "";
		const bool ok = base_weak_parse(cases[i].text, &w, why, sizeof(why));

		if (ok != cases[i].ok || !ok != !!*why)
			fail_msg("'%s' is %s: %s", cases[i].text, ok ? "taken" : "refused", why);
		if (ok && (w.seed != cases[i].seed || w.kinds != cases[i].kinds))
			fail_msg("'%s' is seed %u, kinds 0x%x", cases[i].text, w.seed, w.kinds);
	}
}

/* A number that stands for all that is drawn for these steps. */
static uint64_t drawn_for(enum base_weak_step first, enum base_weak_step last)
{
	const uint64_t process = base_weak_hash_process(42, "h1", 0);
	uint64_t all = 0;

	for (uint32_t object = 0; object < 4; object++)
		for (uint32_t request = 0; request < 1000; request++)
			for (unsigned step = first; step <= last; step++)
				all = all * 31 + base_weak_draw(process, object, request,
				                                (enum base_weak_step)step);
	return all;
}

/* They are the same on each machine: a change of them makes all seeds that users have noted
 * worthless. Steps that are new have a line of their own. */
CASE(choices_are_those_that_they_were)
{
	assert_int_equal(drawn_for(BASE_WEAK_STEP_gather, BASE_WEAK_STEP_answer),
	                 0xc4688de43d4ed5d8);
	assert_int_equal(drawn_for(BASE_WEAK_STEP_change, BASE_WEAK_STEP_others),
	                 0xd38da0f5dc6228cb);
	assert_int_equal(drawn_for(BASE_WEAK_STEP_reregister, BASE_WEAK_STEP_sm),
	                 0xc0dd2ed3800ad4fe);
}

CASE(choices_differ_by_all_that_they_are_of)
{
	const uint64_t process = base_weak_hash_process(1, "h1", 0);
	unsigned late = 0, n = 0;

	assert_int_not_equal(process, base_weak_hash_process(2, "h1", 0));
	assert_int_not_equal(process, base_weak_hash_process(1, "h2", 0));
	assert_int_not_equal(process, base_weak_hash_process(1, "h1", 1));
	for (uint32_t object = 0; object < 64; object++)
		for (uint32_t request = 0; request < 256; request++, n++)
			late += base_weak_draw(process, object, request, BASE_WEAK_STEP_place) > 0;
	/* of four objects one is strong, one seldom late, one now and then, one mostly */
	assert_in_range(late, n / 5, n / 3);
}

CASE(choices_are_written_and_read)
{
	static const struct base_weak_choice choice[] = {
		{ .at = { "h1", 0, 2, 17 }, .step = BASE_WEAK_STEP_gather, .amount = 3 },
		{ .at = { "", 4, 0, UINT32_MAX },
		  .step = BASE_WEAK_STEP_complete,
		  .amount = 64,
		  .by_time = 1 },
	};
	struct base_weak_choice c;
	FILE *f = tmpfile();

	assert_non_null(f);
	fputs("# a comment\n\n", f);
	for (size_t i = 0; i < ARRAY_SIZE(choice); i++)
		base_weak_write(f, &choice[i]);
	rewind(f);
	for (size_t i = 0; i < ARRAY_SIZE(choice); i++) {
		assert_int_equal(base_weak_read(f, &c), 1);
		assert_string_equal(c.at.host, choice[i].at.host);
		assert_int_equal(c.at.process, choice[i].at.process);
		assert_int_equal(c.at.object, choice[i].at.object);
		assert_int_equal(c.at.request, choice[i].at.request);
		assert_int_equal(c.step, choice[i].step);
		assert_int_equal(c.amount, choice[i].amount);
		assert_int_equal(c.by_time, choice[i].by_time);
	}
	assert_int_equal(base_weak_read(f, &c), 0);
	fclose(f);
}

CASE(wrong_lines_are_refused)
{
	static const char *const lines[] = {
		"h1 0 2 17 gather\n",    "h1 0 2 17 gather 0\n", "h1 0 2 17 gather 256\n",
		"h1 0 2 17 gathers 1\n", "h1 0 2 x gather 1\n",  "h1 0 2 17 gather 1 late\n",
		"nothing of the kind\n",
	};
	struct base_weak_choice c;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		FILE *f = tmpfile();

		assert_non_null(f);
		fputs(lines[i], f);
		rewind(f);
		if (base_weak_read(f, &c) != -1)
			fail_msg("read as a choice: %s", lines[i]);
		fclose(f);
	}
}

CASE(each_choice_is_said)
{
	char text[300];

	for (unsigned step = 0; step < BASE_WEAK_STEPS; step++) {
		const struct base_weak_choice c = { .at = { "h1", 0, 2, 17 },
			                            .step = (uint8_t)step,
			                            .amount = 3 };

		base_weak_say(&c, text, sizeof(text));
		if (!strstr(text, "request 17 of queue pair 2 of h1's process 0 "))
			fail_msg("step %u is said as '%s'", step, text);
	}
}
