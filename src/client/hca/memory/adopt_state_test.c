/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each event in each state of adopted memory, and of its file.
 */
#include <harness.h>

#include "hca/memory/adopt_state.h"

/* One letter a state, in their order; '-': the event cannot happen. */
static const char letters[] = "fsPx-", files[] = "uoe";

static const struct {
	enum hca_adopt_event event;
	const char *name;
	const char *next; /* a letter for each state before */
} events[] = {
	{ HCA_ADOPT_MOVED_IN, "moved in", "s---" },
	{ HCA_ADOPT_DETACHED, "detached", "xPP-" },
	{ HCA_ADOPT_GIVEN_BACK, "given back", "-fx-" },
	{ HCA_ADOPT_CHILD, "a child", "ffff" },
};

static const struct {
	enum hca_adopt_file_event event;
	const char *name;
	const char *next;
} file_events[] = {
	{ HCA_ADOPT_FILE_OFFERED, "offered", "ooe" },
	{ HCA_ADOPT_FILE_OVER, "over", "eee" },
	{ HCA_ADOPT_FILE_CHILD, "a child", "uuu" },
};

CASE(each_event_leads_where_the_table_says)
{
	assert_int_equal(sizeof(events) / sizeof(events[0]), HCA_ADOPT_N_EVENTS);
	for (size_t e = 0; EACH_NAMED(e, events, name); e++) {
		char found[HCA_ADOPT_N_STATES + 1] = "";

		for (unsigned s = 0; s < HCA_ADOPT_N_STATES; s++)
			found[s] =
			        letters[hca_adopt_next((enum hca_adopt_state)s, events[e].event)];
		if (strcmp(found, events[e].next))
			fail_msg("%s: leads from \"fsPx\" to \"%s\", and is to lead to \"%s\"",
			         events[e].name, found, events[e].next);
	}
}

CASE(each_event_of_the_file_leads_where_the_table_says)
{
	assert_int_equal(sizeof(file_events) / sizeof(file_events[0]), HCA_ADOPT_N_FILE_EVENTS);
	for (size_t e = 0; EACH_NAMED(e, file_events, name); e++) {
		char found[HCA_ADOPT_N_FILES + 1] = "";

		for (unsigned f = 0; f < HCA_ADOPT_N_FILES; f++)
			found[f] = files[hca_adopt_file_next((enum hca_adopt_file)f,
			                                     file_events[e].event)];
		if (strcmp(found, file_events[e].next))
			fail_msg("%s: leads from \"uoe\" to \"%s\", and is to lead to \"%s\"",
			         file_events[e].name, found, file_events[e].next);
	}
}

/* A part of the file that a private mapping may show is used again by nobody but a child. */
CASE(a_spent_part_of_the_file_is_left_alone)
{
	enum hca_adopt_state s = HCA_ADOPT_FREE;

	s = hca_adopt_next(s, HCA_ADOPT_MOVED_IN);
	s = hca_adopt_next(s, HCA_ADOPT_DETACHED);
	s = hca_adopt_next(s, HCA_ADOPT_GIVEN_BACK);
	assert_int_equal(s, HCA_ADOPT_SPENT);
	assert_int_equal(hca_adopt_next(s, HCA_ADOPT_MOVED_IN), HCA_ADOPT_N_STATES);
}
