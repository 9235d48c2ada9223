/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules that a checked program is held to (rules.def), as a table. The commands have it, too.
 */
#ifndef CHECKED_RULES_H
#define CHECKED_RULES_H

enum checked_level { CHECKED_NOTE, CHECKED_WARNING, CHECKED_ERROR, CHECKED_N_LEVELS };

#define RULE(id, name, level, headline, source, advice) CHECKED_RULE_##id,
enum checked_rule {
#include "checked/rules.def"
	CHECKED_N_RULES
};
#undef RULE

struct checked_rule_text {
	const char *name;
	enum checked_level level;
	const char *headline;
	const char *source; /* the page or section that says so */
	const char *advice;
};

#define RULE(id, name_, level_, headline_, source_, advice_) \
	[CHECKED_RULE_##id] = { name_, CHECKED_##level_, headline_, source_, advice_ },
static const struct checked_rule_text checked_rules[] = {
#include "checked/rules.def"
};
#undef RULE

static const char *const checked_levels[] = {
	[CHECKED_NOTE] = "note",
	[CHECKED_WARNING] = "warning",
	[CHECKED_ERROR] = "error",
};

#endif
