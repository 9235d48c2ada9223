/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that are wrong: the tables of mistakes.c and its neighbours.
 */
#ifndef TESTS_CHECKED_MISTAKES_H
#define TESTS_CHECKED_MISTAKES_H

#include "verbs/lab.h"

struct mistake {
	const char *name, *rule;
	void (*make)(bool wrong);
};

/* Each ends with a row without a name. A row without a rule is for a script that knows it: it needs
 * another fabric, or breaks another rule, too. */
extern const struct mistake group_mistakes[], card_mistakes[];

#endif
