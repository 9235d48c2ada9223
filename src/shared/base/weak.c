/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A weak fabric's choices: see weak.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "base/weak.h"

const char *const base_weak_kind_names[BASE_WEAK_KINDS] = { "gather", "place", "complete",
	                                                    "groups", "cm",    "subnet" };

static const struct {
	const char *name, *before, *behind, *unit;
	enum base_weak_kind kind;
} steps[] = {
#define WEAK_STEP(name, kind, before, behind, unit) \
	[BASE_WEAK_STEP_##name] = { #name, before, behind, unit, BASE_WEAK_##kind },
#include "base/weak_steps.def"
#undef WEAK_STEP
};

/* Requests of one object that stand together are weak together. */
#define BLOCK 32
/* An amount that is nearly always more than the program does meanwhile. */
#define LONG 64

/* ---- what a user says ---- */

static bool parse_kind(const char *name, size_t length, uint32_t *kinds)
{
	for (unsigned i = 0; i < BASE_WEAK_KINDS; i++) {
		if (strlen(base_weak_kind_names[i]) == length &&
		    !memcmp(base_weak_kind_names[i], name, length)) {
			*kinds |= 1u << i;
			return true;
		}
	}
	return false;
}

bool base_weak_parse(const char *text, struct base_weak *w, char *why, size_t room)
{
	const char *at = text;
	char *end;
	unsigned long seed;

	*w = (struct base_weak){ 0 };
	errno = 0;
	seed = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || seed > UINT32_MAX || (*end && *end != ',')) {
		snprintf(why, room, "'%s' begins with no seed, a number up to %" PRIu32, text,
		         UINT32_MAX);
		return false;
	}
	w->seed = (uint32_t)seed;
	for (at = end; *at; at = end) {
		at++;
		end = (char *)at + strcspn(at, ",");
		if (!parse_kind(at, (size_t)(end - at), &w->kinds)) {
			snprintf(why, room,
			         "'%.*s' is nothing that a fabric is weak by: gather, place, "
			         "complete, groups, cm, subnet",
			         (int)(end - at), at);
			return false;
		}
	}
	if (!w->kinds)
		w->kinds = BASE_WEAK_USUAL;
	return true;
}

/* ---- drawing ---- */

uint64_t base_weak_hash_process(uint32_t seed, const char *host, uint32_t process)
{
	return base_hash_of(host, strlen(host), (uint64_t)seed << 32 | process);
}

static uint64_t hash(uint64_t process, uint32_t object, uint32_t request, uint32_t what)
{
	const uint32_t key[] = { object, request, what, 0 };

	return base_hash_of(key, sizeof(key), process);
}

/* How often, of 64, a step is weak: never, seldom, now and then, or mostly. */
static uint32_t often(uint64_t process, uint32_t object, uint32_t request)
{
	static const uint8_t of_64[] = { 0, 2, 16, 48 };

	return of_64[hash(process, object, request / BLOCK, UINT32_MAX) % ARRAY_SIZE(of_64)];
}

uint8_t base_weak_draw(uint64_t process, uint32_t object, uint32_t request,
                       enum base_weak_step step)
{
	const uint64_t h = hash(process, object, request, step);

	if (h % 64 >= often(process, object, request))
		return 0;
	if (step == BASE_WEAK_STEP_pieces)
		return 1 + (h >> 8) % 14; /* some of four */
	if (step == BASE_WEAK_STEP_join)
		return (uint8_t)(8u << (h >> 8) % 4); /* ms: programs take long to begin */
	if ((h >> 8) % 16 == 0)
		return LONG;
	if (step == BASE_WEAK_STEP_lose)
		return 0; /* seldom, as on a link with errors */
	return (uint8_t)(1 + __builtin_ctzll(h >> 16 | 1ull << 7));
}

uint32_t base_weak_patience_us(uint64_t process, uint32_t object, uint32_t request,
                               enum base_weak_step step)
{
	const uint32_t h = (uint32_t)hash(process, object, request, step | 1u << 16) % 512;

	return h < 400 ? 0 : h < 470 ? 5 : h < 505 ? 30 : h < 511 ? 200 : 1000;
}

/* ---- files ---- */

void base_weak_write(FILE *to, const struct base_weak_choice *c)
{
	fprintf(to, "%s %" PRIu32 " %" PRIu32 " %" PRIu32 " %s %u%s\n",
	        *c->at.host ? c->at.host : "-", c->at.process, c->at.object, c->at.request,
	        steps[c->step].name, c->amount, c->by_time ? " time" : "");
}

static bool parse_line(const char *line, struct base_weak_choice *c)
{
	char step[16], more[8] = "";
	unsigned amount;
	int n = sscanf(line, "%31s %" SCNu32 " %" SCNu32 " %" SCNu32 " %15s %u %7s", c->at.host,
	               &c->at.process, &c->at.object, &c->at.request, step, &amount, more);

	if (n < 6 || !amount || amount > UINT8_MAX || (*more && strcmp(more, "time")))
		return false;
	if (!strcmp(c->at.host, "-"))
		*c->at.host = '\0';
	c->amount = (uint8_t)amount;
	c->by_time = *more != '\0';
	for (c->step = 0; c->step < BASE_WEAK_STEPS; c->step++)
		if (!strcmp(step, steps[c->step].name))
			return true;
	return false;
}

int base_weak_read(FILE *from, struct base_weak_choice *c)
{
	char line[160];

	while (fgets(line, sizeof(line), from)) {
		if (*line == '#' || *line == '\n')
			continue;
		*c = (struct base_weak_choice){ 0 };
		return parse_line(line, c) ? 1 : -1;
	}
	return 0;
}

void base_weak_say(const struct base_weak_choice *c, char *text, size_t room)
{
	char what[120];

	if (!strcmp(c->at.host, BASE_WEAK_DAEMON))
		snprintf(what, sizeof(what),
		         base_weak_kind_of(c->step) == BASE_WEAK_SUBNET ? "at moment %" PRIu32
		                                                          " HCA port %" PRIu32
		         : c->step == BASE_WEAK_STEP_join ? "%" PRIu32 " of all, of MLID %" PRIu32
		                                          : "management datagram %" PRIu32
		                                            " from HCA port %" PRIu32,
		         c->at.request, c->at.object);
	else
		snprintf(what, sizeof(what),
		         "request %" PRIu32 " of queue pair %" PRIu32 " of %s's process %" PRIu32,
		         c->at.request, c->at.object, *c->at.host ? c->at.host : "no host",
		         c->at.process);
	snprintf(text, room, "%s%s%s %s %u%s%s", steps[c->step].before,
	         *steps[c->step].before ? " " : "", what, steps[c->step].behind, c->amount,
	         *steps[c->step].unit ? " " : "", steps[c->step].unit);
}

enum base_weak_kind base_weak_kind_of(enum base_weak_step step)
{
	return steps[step].kind;
}
