/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The language of litmus tests: see litmus.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "litmus/litmus.h"
#include "litmus/world.h"

/* The words of an operation: q queue pair, r register, t to, f from, v value, * flags. */
static const struct {
	const char *name, *words;
} operations[] = {
	[LITMUS_ST] = { "st", "tv" },      [LITMUS_LD] = { "ld", "rf" },
	[LITMUS_PUT] = { "put", "qtfv*" }, [LITMUS_GET] = { "get", "qtfv*" },
	[LITMUS_FAA] = { "faa", "qtfv*" }, [LITMUS_RCV] = { "rcv", "qt" },
	[LITMUS_SND] = { "snd", "qf*" },   [LITMUS_POLL] = { "poll", "q" },
	[LITMUS_TRY] = { "try", "rq" },    [LITMUS_RPOLL] = { "rpoll", "q" },
	[LITMUS_RTRY] = { "rtry", "rq" },
};

static bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 10);
	return *text && !*end && *value <= most;
}

static bool parse_word(const char *text, unsigned *at)
{
	const unsigned node = (unsigned)(text[0] - 'A');
	uint64_t word;

	if (node >= LITMUS_NODES || text[1] != '.' ||
	    !parse_number(text + 2, LITMUS_WORDS - 1, &word))
		return false;
	*at = node * LITMUS_WORDS + (unsigned)word;
	return true;
}

static bool parse_register(const char *text, unsigned *reg)
{
	uint64_t v;

	if (text[0] != 'r' || !parse_number(text + 1, LITMUS_REGISTERS - 1, &v))
		return false;
	*reg = (unsigned)v;
	return true;
}

static bool parse_flags(const char *text, struct litmus_step *s)
{
	s->unsignaled = strchr(text, 'u');
	s->is_inline = strchr(text, 'i');
	s->fence = strchr(text, 'f');
	return strspn(text, "uif") == strlen(text);
}

static bool parse_operand(char what, const char *text, struct litmus_step *s)
{
	uint64_t q;

	switch (what) {
	case 'q':
		if (!parse_number(text, LITMUS_QPS - 1, &q))
			return false;
		s->q = (unsigned)q;
		return true;
	case 'r':
		return parse_register(text, &s->reg);
	case 't':
		return parse_word(text, &s->to);
	case 'f':
		return parse_word(text, &s->from);
	case 'v':
		return parse_number(text, UINT32_MAX, &s->value);
	default:
		return parse_flags(text, s);
	}
}

static bool parse_step(char *text, struct litmus_step *s)
{
	char *rest = NULL, *name = strtok_r(text, " ", &rest), *word;
	const char *what;

	for (unsigned op = 0; name && op < sizeof(operations) / sizeof(operations[0]); op++) {
		if (strcmp(name, operations[op].name))
			continue;
		*s = (struct litmus_step){ .op = (enum litmus_op)op, .value = 1 };
		for (what = operations[op].words; *what; what++) {
			word = strtok_r(NULL, " ", &rest);
			if (!word) /* a number of words and flags may be left out */
				return *what == '*' || (*what == 'v' && what[1] == '*');
			if (!parse_operand(*what, word, s))
				return false;
		}
		return !strtok_r(NULL, " ", &rest);
	}
	return false;
}

static bool parse_thread(char *text, struct litmus_thread *t)
{
	char *rest = NULL;

	for (char *s = strtok_r(text, ";", &rest); s; s = strtok_r(NULL, ";", &rest))
		if (t->n == LITMUS_STEPS || !parse_step(s, &t->step[t->n++]))
			return false;
	return t->n;
}

/* Where the left side of a condition is. */
static uint64_t *value_of(const char *name, struct litmus_state *s)
{
	unsigned at;

	if (parse_register(name, &at))
		return &s->reg[at];
	return parse_word(name, &at) ? &s->word[at] : NULL;
}

/* Calls @each for each equation. */
static bool walk(const char *text, struct litmus_state *s, bool (*each)(uint64_t *at, uint64_t v))
{
	char copy[200], *rest = NULL, *equals;
	uint64_t v, *at;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *e = strtok_r(copy, " ", &rest); e; e = strtok_r(NULL, " ", &rest)) {
		equals = strchr(e, '=');
		if (!equals)
			return false;
		*equals = '\0';
		at = value_of(e, s);
		if (!at || !parse_number(equals + 1, UINT32_MAX, &v) || !each(at, v))
			return false;
	}
	return true;
}

static bool set(uint64_t *at, uint64_t v)
{
	*at = v;
	return true;
}

static bool is_equal(uint64_t *at, uint64_t v)
{
	return *at == v;
}

bool litmus_holds(const char *condition, const struct litmus_state *s)
{
	return walk(condition, (struct litmus_state *)s, is_equal);
}

bool litmus_parse(const struct litmus *t, struct litmus_parsed *p)
{
	char copy[800], *at = copy, *bar;
	struct litmus_state any = { 0 };
	bool ok;

	*p = (struct litmus_parsed){ 0 };
	snprintf(copy, sizeof(copy), "%s", t->program);
	ok = walk(t->init, &p->init, set);
	while (ok && at) {
		bar = strstr(at, "||");
		if (bar)
			*bar = '\0';
		ok = p->n < LITMUS_THREADS && parse_thread(at, &p->thread[p->n++]);
		at = bar ? bar + 2 : NULL;
	}
	for (unsigned i = 0; ok && i < LITMUS_OUTCOMES && t->outcome[i].is; i++)
		ok = walk(t->outcome[i].is, &any, set);
	if (!ok)
		fprintf(stderr, "umbel-litmus: '%s' is not well-formed\n", t->name);
	return ok;
}
