/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of faults: see rules.h.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "base/util.h"
#include "daemon/detour/rules.h"
#include "fabric/agents/training.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/model/event.h"
#include "fabric/plan/port_name.h"
#include "wire/headers.h"
#include "wire/ip.h"
#include "wire/rate.h"
#include "wire/status.h"
#include "wire/text.h"

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull
/* The longest delay. A packet that is held takes memory of the daemon. */
#define MAX_DELAY_NS (10 * NS_PER_S)
#define MAX_TIME_NS  (86400 * NS_PER_S)
/* A link that changes more often keeps its subnet manager from finishing anything. */
#define MIN_EVERY_NS NS_PER_MS

/* A rule that is being read. */
struct reading {
	const struct fabric *f;
	struct daemon_rule *rule;
	const char *word, *value; /* NAME=VALUE; value NULL: it is no such word */
	char *why;
	size_t len;
};

static int wrong(struct reading *r, const char *what)
{
	snprintf(r->why, r->len, "'%s': %s", r->word, what);
	return -EINVAL;
}

/* ---- words ---- */

static int read_number(struct reading *r, uint64_t most, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(r->value, &end, 0);
	if (errno || end == r->value || *end || *r->value == '-' || *number > most) {
		snprintf(r->why, r->len, "'%s': not a number from 0 to %llu", r->word,
		         (unsigned long long)most);
		return -EINVAL;
	}
	return 0;
}

/* The n-th queue pair, as in #2 */
static int read_nth_qp(struct reading *r, const char *digits, uint32_t *nth)
{
	char *end;
	unsigned long number = strtoul(digits, &end, 10);

	if (!isdigit(*digits) || *end || !number || number > SHM_MAX_QPS)
		return wrong(r, "write HOST:#N for the N-th queue pair that begins there, from 1");
	*nth = (uint32_t)number;
	return 0;
}

/* HOST:QPN, HOST:#N, HOST:* or *:* */
static int read_qp(struct reading *r, unsigned *host, uint32_t *qpn, uint32_t *nth)
{
	const char *colon = strrchr(r->value, ':');
	char name[FABRIC_NAME] = "", *end;
	unsigned long number = 0;
	int found = -1;

	if (!colon || colon == r->value || !colon[1] || colon - r->value >= FABRIC_NAME)
		return wrong(r, "write HOST:QPN, as in h1:0x105, or HOST:* for all of the host");
	memcpy(name, r->value, (size_t)(colon - r->value));
	if (strcmp(name, "*") != 0) {
		found = fabric_host_find(r->f, name);
		if (found < 0)
			return wrong(r, "there is no such host");
	}
	if (colon[1] == '#' && found < 0)
		return wrong(r, "the queue pairs of a host are numbered: which host's?");
	if (colon[1] == '#' && read_nth_qp(r, colon + 2, nth))
		return -EINVAL;
	if (colon[1] != '#' && strcmp(colon + 1, "*") != 0) {
		number = strtoul(colon + 1, &end, 0);
		if (*end || !number || number > IB_QPN_MASK)
			return wrong(r, "not the number of a queue pair, 1 to 0xffffff, or *");
	}
	*host = (unsigned)(found + 1);
	*qpn = (uint32_t)number;
	return 0;
}

static int read_from(struct reading *r)
{
	return read_qp(r, &r->rule->from_host, &r->rule->from_qpn, &r->rule->from_nth);
}

static int read_to(struct reading *r)
{
	return read_qp(r, &r->rule->to_host, &r->rule->to_qpn, &r->rule->to_nth);
}

static int read_link(struct reading *r)
{
	const char *colon = strrchr(r->value, ':');
	char name[FABRIC_NAME] = "", *end;
	unsigned long port;

	if (!colon || colon - r->value >= FABRIC_NAME)
		return wrong(r, "write NODE:PORT, as in sw1:3");
	memcpy(name, r->value, (size_t)(colon - r->value));
	port = strtoul(colon + 1, &end, 10);
	if (*end || end == colon + 1 || !port || port > UINT8_MAX)
		return wrong(r, "write NODE:PORT, as in sw1:3");
	return fabric_port_named(r->f, name, (unsigned)port, &r->rule->link)
	               ? wrong(r, "there is no such port")
	               : 0;
}

/* A multicast GID, or an IP address, of which a group may have several GIDs. */
static int read_group(struct reading *r)
{
	r->rule->n_groups = wire_group_gids(r->value, r->rule->group);
	return r->rule->n_groups ? 0 : wrong(r, "not the GID or IP address of a group");
}

static int read_opcode(struct reading *r)
{
	for (unsigned i = 0; i < ARRAY_SIZE(wire_opcodes); i++) {
		if (!wire_opcodes[i].name || strcasecmp(wire_opcodes[i].name, r->value) != 0)
			continue;
		r->rule->opcode = 1 + i;
		return 0;
	}
	return wrong(r, "not an opcode, as in RC_SEND_ONLY or RC_ACKNOWLEDGE");
}

static int read_mad(struct reading *r)
{
	r->rule->has_mad = true;
	return wire_mad_kind_parse(r->value, &r->rule->mad)
	               ? 0
	               : wrong(r, "not the name of a MAD, as in REQ, SubnAdmSet(MCMemberRecord), "
	                          "SubnGet or *");
}

/* +N, counted from the connection's first PSN on; +N/M: the one of each M packets. */
static int read_psn_from_first(struct reading *r)
{
	char *end = (char *)r->value;
	unsigned long long psn = WIRE_PSN_MASK, of = 0;
	bool has_of;

	if (isdigit(end[1]))
		psn = strtoull(end + 1, &end, 10);
	has_of = *end == '/' && isdigit(end[1]);
	if (has_of)
		of = strtoull(end + 1, &end, 10);
	if (*end || psn > WIRE_PSN_MASK || of > WIRE_PSN_MASK || (has_of && psn >= of))
		return wrong(r, "write +N from the first PSN on, or +N/M, N less than M, for one "
		                "of each M packets");
	r->rule->psn = 1 + (uint32_t)psn;
	r->rule->psn_from_first = true;
	r->rule->psn_of = (uint32_t)of;
	return 0;
}

static int read_psn(struct reading *r)
{
	uint64_t psn;

	if (*r->value == '+')
		return read_psn_from_first(r);
	if (read_number(r, WIRE_PSN_MASK, &psn))
		return -EINVAL;
	r->rule->psn = 1 + (uint32_t)psn;
	return 0;
}

static int read_nth(struct reading *r)
{
	if (read_number(r, INT64_MAX, &r->rule->nth))
		return -EINVAL;
	return r->rule->nth ? 0 : wrong(r, "the first one is 1");
}

static int read_round(struct reading *r)
{
	uint64_t round;

	if (read_number(r, UINT16_MAX, &round))
		return -EINVAL;
	r->rule->round = (uint32_t)round;
	return round ? 0 : wrong(r, "the first one is 1");
}

static int read_count(struct reading *r)
{
	if (read_number(r, INT64_MAX, &r->rule->count))
		return -EINVAL;
	return r->rule->count ? 0 : wrong(r, "at least 1");
}

static int read_seed(struct reading *r)
{
	return read_number(r, UINT64_MAX, &r->rule->random);
}

/* A part of 1, as in 0.5% */
static int read_chance(struct reading *r)
{
	char *end;
	double percent = strtod(r->value, &end);

	if (end == r->value || strcmp(end, "%") != 0 || !(percent > 0 && percent <= 100))
		return wrong(r, "write a percentage, as in 0.5%");
	r->rule->chance = (uint32_t)(percent / 100 * UINT32_MAX);
	if (!r->rule->chance)
		return wrong(r, "so small a chance is none");
	return 0;
}

/* A time, of @most ns. */
static int read_time(struct reading *r, uint64_t most, uint64_t *ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = { { "us", NS_PER_US }, { "ms", NS_PER_MS }, { "s", NS_PER_S } };
	char *end;
	double n = strtod(r->value, &end);

	for (size_t i = 0; i < ARRAY_SIZE(units) && end != r->value && n > 0; i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		if (n * (double)units[i].ns > (double)most)
			return wrong(r, "that is too long");
		*ns = (uint64_t)(n * (double)units[i].ns);
		return 0;
	}
	return wrong(r, "write a time, as in 5ms: us, ms or s");
}

static int read_delay(struct reading *r)
{
	return read_time(r, MAX_DELAY_NS, &r->rule->delay_ns);
}

static int read_after(struct reading *r)
{
	return read_time(r, MAX_TIME_NS, &r->rule->after_ns);
}

static int read_until(struct reading *r)
{
	return read_time(r, MAX_TIME_NS, &r->rule->until_ns);
}

static int read_every(struct reading *r)
{
	if (read_time(r, MAX_TIME_NS, &r->rule->every_ns))
		return -EINVAL;
	return r->rule->every_ns < MIN_EVERY_NS ? wrong(r, "that is too often: 1ms or more") : 0;
}

static int read_flap(struct reading *r)
{
	return read_time(r, MAX_TIME_NS, &r->rule->down_ns);
}

static int read_errors(struct reading *r)
{
	if (read_number(r, UINT32_MAX, &r->rule->errors))
		return -EINVAL;
	return r->rule->errors ? 0 : wrong(r, "at least 1");
}

static int read_recoveries(struct reading *r)
{
	if (read_number(r, UINT32_MAX, &r->rule->recoveries))
		return -EINVAL;
	return r->rule->recoveries ? 0 : wrong(r, "at least 1");
}

/* As in 1x */
static int read_width(struct reading *r)
{
	char *end;
	unsigned long lanes = strtoul(r->value, &end, 10);
	uint8_t width = (uint8_t)wire_link_width(lanes);

	if (!width || !isdigit(*r->value) || strcasecmp(end, "x") != 0)
		return wrong(r, "not a width: 1x, 2x, 4x, 8x or 12x");
	r->rule->up_to = fabric_widths_up_to(width);
	return 0;
}

static int read_speed(struct reading *r)
{
	uint8_t speed = (uint8_t)wire_link_speed_named(r->value, strlen(r->value));

	if (!speed)
		return wrong(r, "not a speed: SDR, DDR, QDR, FDR10, FDR, EDR, HDR or NDR");
	r->rule->up_to = fabric_speeds_up_to(speed);
	return 0;
}

static int read_nak(struct reading *r)
{
	static const struct {
		const char *name;
		uint8_t syndrome;
	} naks[] = {
		{ "rnr", WIRE_AETH_SYNDROME(WIRE_AETH_RNR, 0) },
		{ "sequence", WIRE_AETH_SYNDROME(WIRE_AETH_NAK, WIRE_NAK_SEQUENCE) },
		{ "invalid", WIRE_AETH_SYNDROME(WIRE_AETH_NAK, WIRE_NAK_INVALID_REQUEST) },
		{ "access", WIRE_AETH_SYNDROME(WIRE_AETH_NAK, WIRE_NAK_REMOTE_ACCESS) },
		{ "operation", WIRE_AETH_SYNDROME(WIRE_AETH_NAK, WIRE_NAK_REMOTE_OPERATION) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(naks); i++) {
		if (strcmp(naks[i].name, r->value) != 0)
			continue;
		r->rule->syndrome = naks[i].syndrome;
		return 0;
	}
	return wrong(r, "not a NAK: rnr, sequence, invalid, access or operation");
}

#define LAST_ERRNO 133

static int read_errno(struct reading *r)
{
	for (int error = 1; error <= LAST_ERRNO; error++) {
		if (strcmp(base_error_name(error), r->value) != 0)
			continue;
		r->rule->value = error;
		return 0;
	}
	return wrong(r, "not the name of an error, as ENOMEM");
}

static int read_status(struct reading *r)
{
	r->rule->value = wire_status_parse(r->value);
	return r->rule->value > 0
	               ? 0
	               : wrong(r,
	                       "not a status of completions that fail, as RETRY_EXC or LOC_PROT");
}

/* Of a completion that is made up: it may be a success. */
static int read_made(struct reading *r)
{
	r->rule->value = wire_status_parse(r->value);
	return r->rule->value >= 0
	               ? 0
	               : wrong(r, "not a status of completions, as SUCCESS or RETRY_EXC");
}

static int read_wr_id(struct reading *r)
{
	r->rule->has_wr_id = true;
	return read_number(r, UINT64_MAX, &r->rule->wr_id);
}

static int read_host(struct reading *r)
{
	int found = fabric_host_find(r->f, r->value);

	if (found < 0)
		return wrong(r, "there is no such host");
	r->rule->from_host = (unsigned)(found + 1);
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct reading *r); /* NULL: the word has no value */
	unsigned fault;                 /* what it says; 0: it chooses */
} words[] = {
	{ "qp", read_from, 0 },
	{ "host", read_host, 0 },
	{ "to", read_to, 0 },
	{ "link", read_link, 0 },
	{ "group", read_group, 0 },
	{ "opcode", read_opcode, 0 },
	{ "mad", read_mad, 0 },
	{ "psn", read_psn, 0 },
	{ "round", read_round, 0 },
	{ "nth", read_nth, 0 },
	{ "count", read_count, 0 },
	{ "chance", read_chance, 0 },
	{ "seed", read_seed, 0 },
	{ "after", read_after, 0 },
	{ "until", read_until, 0 },
	{ "every", read_every, 0 },
	{ "loss", read_chance, DAEMON_FAULT_DROP },
	{ "delay", read_delay, DAEMON_FAULT_DELAY },
	{ "drop", NULL, DAEMON_FAULT_DROP },
	{ "corrupt", NULL, DAEMON_FAULT_CORRUPT },
	{ "duplicate", NULL, DAEMON_FAULT_DUPLICATE },
	{ "reorder", NULL, DAEMON_FAULT_REORDER },
	{ "ecn", NULL, DAEMON_FAULT_ECN },
	{ "nak", read_nak, DAEMON_FAULT_NAK },
	{ "post", read_errno, DAEMON_FAULT_CALL_OF(CONTROL_CALL_POST) },
	{ "receive", read_errno, DAEMON_FAULT_CALL_OF(CONTROL_CALL_RECEIVE) },
	{ "wc", read_status, DAEMON_FAULT_CALL_OF(CONTROL_CALL_COMPLETION) },
	{ "register", read_errno, DAEMON_FAULT_CALL_OF(CONTROL_CALL_REGISTER) },
	{ "made", read_made, DAEMON_FAULT_CALL_OF(CONTROL_CALL_MADE) },
	{ "wr_id", read_wr_id, 0 },
	{ "width", read_width, DAEMON_FAULT_WIDTH },
	{ "speed", read_speed, DAEMON_FAULT_SPEED },
	{ "errors", read_errors, DAEMON_FAULT_ERRORS },
	{ "recoveries", read_recoveries, DAEMON_FAULT_RECOVERIES },
	{ "flap", read_flap, DAEMON_FAULT_FLAP },
};

static int read_word(struct reading *r)
{
	size_t name = strcspn(r->word, "=");

	r->value = r->word[name] ? r->word + name + 1 : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strlen(words[i].name) != name || strncmp(words[i].name, r->word, name) != 0)
			continue;
		if (!words[i].read != !r->value)
			return wrong(r, r->value ? "the word has no value"
			                         : "the word needs a value: NAME=VALUE");
		if (words[i].fault && r->rule->fault)
			return wrong(r, "a rule says one thing that happens; add another rule");
		r->rule->fault |= words[i].fault;
		return r->value ? words[i].read(r) : 0;
	}
	return wrong(r, "unknown; umbel-fault(1) has the words of rules");
}

static bool is_about_calls(const struct daemon_rule *r)
{
	return r->fault >= DAEMON_FAULT_CALL && !daemon_rule_is_about_link(r);
}

/* Whether a rule about calls chooses what only packets have, or a region's queue pair. */
static bool has_wrong_choice(const struct daemon_rule *r)
{
	return is_about_calls(r) && (r->to_host || r->to_qpn || r->link || r->n_groups ||
	                             r->opcode || r->psn || r->round ||
	                             ((r->from_qpn || r->from_nth) &&
	                              r->fault == DAEMON_FAULT_CALL_OF(CONTROL_CALL_REGISTER)));
}

/* Whether the link cannot have more than the rule leaves it. */
static bool has_no_effect(const struct daemon_rule *r)
{
	const struct fabric_port *p = r->link;
	uint8_t all = r->fault == DAEMON_FAULT_WIDTH
	                      ? fabric_widths_supported(p) & fabric_widths_supported(p->peer)
	                      : fabric_speeds_supported(p) & fabric_speeds_supported(p->peer);

	return !(all & ~r->up_to);
}

/* Of a rule about a link: the error in it, or NULL. */
static const char *wrong_with_link(const struct daemon_rule *r)
{
	const bool lasts = r->fault & (DAEMON_FAULT_WIDTH | DAEMON_FAULT_SPEED);

	if (!r->link)
		return "which link? write link=NODE:PORT";
	if (r->from_host || r->from_qpn || r->to_host || r->to_qpn || r->n_groups || r->opcode ||
	    r->psn || r->round || r->nth)
		return "of what happens to a link a rule chooses by link=, after=, until=, every=, "
		       "count= and chance=";
	if (r->link->ethernet)
		return "the port is a network device's: tc and ip link do that there";
	if (!r->link->peer)
		return "nothing is plugged in at that port";
	if (lasts && (r->every_ns || r->count || r->chance))
		return "a width or a speed lasts: from after= to until=";
	if (lasts && has_no_effect(r))
		return "the link has no more than that";
	if (r->count > 1 && !r->every_ns)
		return "several times, but when? write every=TIME";
	if (r->every_ns && r->every_ns <= r->down_ns)
		return "the link must come up before it goes down again: every= more than flap=";
	return NULL;
}

/* Of a rule about MADs: the error in it, or NULL. */
static const char *wrong_with_mad(const struct daemon_rule *r)
{
	if (r->fault & ~(DAEMON_FAULT_DROP | DAEMON_FAULT_DELAY | DAEMON_FAULT_DUPLICATE))
		return "what happens to a MAD is drop, loss=, delay= or duplicate";
	if (r->from_qpn || r->from_nth || r->to_qpn || r->to_nth || r->link || r->n_groups ||
	    r->opcode || r->psn || r->round)
		return "of MADs a rule chooses by mad=, host=, to=HOST:*, nth=, count=, chance=, "
		       "after= and until=";
	return NULL;
}

/* The error in the choices of the rule, all words of which have been read; or NULL. */
static const char *wrong_with(const struct daemon_rule *r)
{
	if (!r->fault)
		return "the rule does not say what happens: drop, loss=, corrupt, duplicate, "
		       "reorder, delay=, ecn or nak=; post=, receive=, wc=, made= or register=; "
		       "width=, speed=, errors=, recoveries= or flap=";
	if (r->has_wr_id && r->fault != DAEMON_FAULT_CALL_OF(CONTROL_CALL_MADE))
		return "wr_id= is of completions that are made up: made=";
	if (r->until_ns && r->until_ns <= r->after_ns)
		return "the rule ends before it begins: until= more than after=";
	if (daemon_rule_is_about_link(r) && !r->has_mad)
		return wrong_with_link(r);
	if (r->every_ns)
		return "every= is of errors=, recoveries= and flap=; packets and calls come when "
		       "they come";
	if (r->has_mad)
		return wrong_with_mad(r);
	if (has_wrong_choice(r))
		return "of calls a rule chooses by host= or qp=, nth=, count=, chance=, after= and "
		       "until=; of registrations not by a queue pair";
	return NULL;
}

static int read_rule(struct reading *r, char *text)
{
	struct daemon_rule *rule = r->rule;
	const char *wrong;
	char *rest;
	int ret = 0;

	for (char *word = strtok_r(text, " \t", &rest); word && !ret;
	     word = strtok_r(NULL, " \t", &rest)) {
		r->word = word;
		ret = read_word(r);
	}
	if (ret)
		return ret;
	wrong = wrong_with(rule);
	if (wrong) {
		snprintf(r->why, r->len, "%s", wrong);
		return -EINVAL;
	}
	if (!rule->count && ((rule->psn && !rule->psn_of) || rule->nth))
		rule->count = 1; /* what is sent again has its PSN, and gets through */
	return 0;
}

/* ---- the list ---- */

void daemon_rules_init(struct daemon_rules *rules, const struct fabric *f)
{
	*rules = (struct daemon_rules){ .f = f };
	TAILQ_INIT(&rules->all);
	TAILQ_INIT(&rules->past);
}

int daemon_rules_add(struct daemon_rules *rules, const char *text, uint64_t now_ns,
                     struct daemon_rule **out, char *why, size_t len)
{
	struct reading r = { .f = rules->f, .why = why, .len = len };
	char words_of[CONTROL_RULE_BYTES];
	int ret;

	if (rules->n == DAEMON_RULES)
		return -ENOSPC;
	if (!rules->behind)
		rules->behind = calloc(rules->f->n_switches + rules->f->n_hca_ports + 1, 1);
	if (!rules->behind)
		return -ENOMEM;
	if (strlen(text) >= sizeof(words_of)) {
		snprintf(why, len, "a rule has at most %d bytes", CONTROL_RULE_BYTES - 1);
		return -EINVAL;
	}
	r.rule = calloc(1, sizeof(*r.rule));
	if (!r.rule)
		return -ENOMEM;
	strcpy(r.rule->text, text);
	strcpy(words_of, text);
	ret = read_rule(&r, words_of);
	if (!ret && r.rule->round)
		ret = daemon_rounds_begin(&rules->rounds);
	if (ret) {
		free(r.rule);
		return ret;
	}
	r.rule->number = ++rules->last_number;
	r.rule->added_ns = now_ns;
	r.rule->due_ns = now_ns + r.rule->after_ns;
	rules->n++;
	rules->n_calls += is_about_calls(r.rule);
	rules->n_links += daemon_rule_is_about_link(r.rule);
	rules->n_mads += r.rule->has_mad;
	TAILQ_INSERT_TAIL(&rules->all, r.rule, entry);
	*out = r.rule;
	return 0;
}

/* A rule that has fired stays in sight when it is removed: somebody may look only then. */
static void forget(struct daemon_rules *rules, struct daemon_rule *rule)
{
	if (!rule->fired) {
		free(rule);
		return;
	}
	TAILQ_INSERT_TAIL(&rules->past, rule, entry);
	if (++rules->n_past <= DAEMON_RULES)
		return;
	rule = TAILQ_FIRST(&rules->past);
	TAILQ_REMOVE(&rules->past, rule, entry);
	rules->n_past--;
	free(rule);
}

bool daemon_rules_remove(struct daemon_rules *rules, unsigned number)
{
	struct daemon_rule *rule, *next;
	unsigned before = rules->n;

	for (rule = TAILQ_FIRST(&rules->all); rule; rule = next) {
		next = TAILQ_NEXT(rule, entry);
		if (number && rule->number != number)
			continue;
		TAILQ_REMOVE(&rules->all, rule, entry);
		rules->n--;
		rules->n_calls -= is_about_calls(rule);
		rules->n_links -= daemon_rule_is_about_link(rule);
		rules->n_mads -= rule->has_mad;
		forget(rules, rule);
	}
	if (!rules->n)
		daemon_rounds_end(&rules->rounds);
	return !number || rules->n != before;
}

void daemon_rules_fini(struct daemon_rules *rules)
{
	struct daemon_rule *rule;

	daemon_rules_remove(rules, 0);
	while ((rule = TAILQ_FIRST(&rules->past))) {
		TAILQ_REMOVE(&rules->past, rule, entry);
		free(rule);
	}
	rules->n_past = 0;
	free(rules->behind);
	rules->behind = NULL;
}

void daemon_rules_begins(struct daemon_rules *rules, uint32_t hca, uint32_t qpn)
{
	const unsigned host = 1 + shm_hca_at(rules->f->region, hca)->host_index;
	struct daemon_rule *r;

	daemon_rounds_forget(&rules->rounds, qpn);
	TAILQ_FOREACH(r, &rules->all, entry)
	{
		if (r->from_nth && !r->from_qpn && r->from_host == host &&
		    ++r->from_begun == r->from_nth)
			r->from_qpn = qpn;
		if (r->to_nth && !r->to_qpn && r->to_host == host && ++r->to_begun == r->to_nth)
			r->to_qpn = qpn;
	}
}

/* ---- packets ---- */

static unsigned host_of(const struct daemon_rules *rules, const struct fabric_port *p)
{
	return 1 + shm_hca_at(rules->f->region, p->node->hca)->host_index;
}

static bool crosses(const struct daemon_rule_packet *p, const struct fabric_port *link)
{
	if (p->from == link || (link->peer && p->from == link->peer))
		return true; /* its first link is no hop of the path */
	for (uint32_t i = 0; i < p->path->n_hops; i++)
		if (p->path->hop[i].out == link || p->path->hop[i].out == link->peer)
			return true;
	for (uint32_t i = 0; i < p->path->n_reached; i++)
		if (p->path->reached[i] == link) /* on Ethernet there are no hops */
			return true;
	return p->to == link;
}

static bool reaches_host(const struct daemon_rules *rules, const struct daemon_rule_packet *p,
                         unsigned host)
{
	for (uint32_t i = 0; i < p->path->n_reached; i++)
		if (host_of(rules, p->path->reached[i]) == host)
			return true;
	return p->to && host_of(rules, p->to) == host;
}

/* Whether the packet can meet that at all. A NAK is the responder's, which another machine has. */
static bool can_be(const struct daemon_rule *r, const struct daemon_rule_packet *p)
{
	if (r->has_mad)
		return false;
	if (r->fault == DAEMON_FAULT_NAK)
		return wire_opcode_transport(p->opcode) == WIRE_TRANSPORT_RC &&
		       (wire_opcodes[p->opcode].flags & WIRE_OPCODE_REQUEST) && !p->leaves;
	return r->fault < DAEMON_FAULT_CALL;
}

static bool has_psn(const struct daemon_rule *r, const struct daemon_rule_packet *p)
{
	const enum wire_transport transport = wire_opcode_transport(p->opcode);
	uint32_t psn = p->psn;

	if (!r->psn)
		return true;
	if (r->psn_from_first) {
		if (transport != WIRE_TRANSPORT_RC && transport != WIRE_TRANSPORT_UC)
			return false;
		psn = (psn - p->first_psn) & WIRE_PSN_MASK;
	}
	return r->psn == 1 + (r->psn_of ? psn % r->psn_of : psn);
}

static bool is_its_time(const struct daemon_rule *r, uint64_t now_ns)
{
	return now_ns - r->added_ns >= r->after_ns &&
	       (!r->until_ns || now_ns - r->added_ns < r->until_ns);
}

static bool is_to_group(const struct daemon_rule *r, const struct daemon_rule_packet *p)
{
	for (unsigned i = 0; ib_lid_is_mcast(p->path->key.dlid) && i < r->n_groups; i++)
		if (ib_gid_equal(&r->group[i], &p->path->key.dgid))
			return true;
	return false;
}

static bool is_chosen(const struct daemon_rules *rules, const struct daemon_rule *r,
                      const struct daemon_rule_packet *p)
{
	return can_be(r, p) && is_its_time(r, p->now_ns) &&
	       (!r->from_host || r->from_host == host_of(rules, p->from)) &&
	       (r->from_qpn ? r->from_qpn == p->src_qpn : !r->from_nth) &&
	       (r->to_qpn ? r->to_qpn == p->dest_qpn : !r->to_nth) &&
	       (!r->opcode || r->opcode == 1u + p->opcode) && has_psn(r, p) &&
	       (!r->round || r->round == p->round) && (!r->n_groups || is_to_group(r, p)) &&
	       (!r->to_host || reaches_host(rules, p, r->to_host)) &&
	       (!r->link || crosses(p, r->link));
}

/* splitmix64: any seed will do, 0 as well. */
static uint32_t next_random(struct daemon_rule *r)
{
	uint64_t z = (r->random += 0x9E3779B97F4A7C15u);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return (uint32_t)((z ^ (z >> 31)) >> 32);
}

#define TOLD_FIRST 4 /* and then each time that its number is a power of two */

static void tell_fired(const struct daemon_rules *rules, const struct daemon_rule *r)
{
	if (r->fired <= TOLD_FIRST || !(r->fired & (r->fired - 1)))
		fabric_tell(rules->f, &(struct fabric_event){ .kind = "fault",
		                                              .what = "fired",
		                                              .number = r->number,
		                                              .fired = r->fired,
		                                              .rule = r->text });
}

bool daemon_rule_fires(const struct daemon_rules *rules, struct daemon_rule *r)
{
	r->fitted++;
	if (r->nth && (r->fitted < r->nth || r->fitted - r->nth >= r->count))
		return false;
	if (r->count && r->fired >= r->count)
		return false;
	if (r->chance && next_random(r) > r->chance)
		return false;
	r->fired++;
	tell_fired(rules, r);
	return true;
}

/* ---- packets that come damaged ---- */

/* Where the packet comes out of the link. */
static struct fabric_port *end_of(const struct daemon_rule_packet *p, struct fabric_port *link)
{
	if (p->from == link)
		return link->peer;
	for (uint32_t i = 0; i < p->path->n_hops; i++)
		if (p->path->hop[i].out == link)
			return link->peer;
	return link;
}

/* The port that drops it notices: behind the link that the rule names, or where it ends. */
static void note_damage(const struct daemon_rule *r, const struct daemon_rule_packet *p)
{
	struct fabric_port *at = r->link ? end_of(p, r->link) : NULL;

	if (at)
		at->stats.damaged++;
	for (uint32_t i = 0; !r->link && i < p->path->n_reached; i++)
		p->path->reached[i]->stats.damaged++;
}

/* Whether packets that the rule loses, or damages, get no further than this link. A rule that names
 * none loses them on the last one; without links, there it is. */
static bool loses_on(const struct daemon_rules *rules, const struct daemon_rule *r,
                     const struct fabric_port *out)
{
	if (out->ethernet)
		return true;
	if (r->link)
		return out == r->link || out == r->link->peer;
	if (!out->peer || out->peer->node->type == FABRIC_SWITCH)
		return false;
	return !r->to_host || host_of(rules, out->peer) == r->to_host;
}

enum fabric_fate daemon_rules_fate(void *arg, const struct fabric_port *out)
{
	const struct daemon_rules *rules = arg;
	enum fabric_fate fate = FABRIC_FATE_ARRIVES;

	for (unsigned i = 0; i < rules->n_losing && fate != FABRIC_FATE_LOST; i++)
		if (loses_on(rules, rules->losing[i], out))
			fate = rules->losing[i]->fault == DAEMON_FAULT_DROP ? FABRIC_FATE_LOST
			                                                    : FABRIC_FATE_DAMAGED;
	return fate;
}

uint8_t *daemon_rules_scratch(struct daemon_rules *rules)
{
	memset(rules->behind, 0, rules->f->n_switches + rules->f->n_hca_ports);
	return rules->behind;
}

/* ---- copies of multicast packets ---- */

/* Whether the rule is about some copies of the packet: it drops these, and no others. */
static bool is_about_copies(const struct daemon_rule *r, const struct daemon_rule_packet *p)
{
	return ib_lid_is_mcast(p->path->key.dlid) &&
	       (r->fault == DAEMON_FAULT_DROP || r->fault == DAEMON_FAULT_CORRUPT) &&
	       (r->to_host || (r->link && p->from != r->link && p->from != r->link->peer));
}

/* The mark of where the hop leads to: of a switch, or of an HCA's port. */
static uint8_t *mark_of(const struct daemon_rules *rules, const struct fabric_port *to)
{
	return to->node->type == FABRIC_SWITCH ? &rules->behind[to->node->index]
	                                       : &rules->behind[rules->f->n_switches + to->index];
}

/* Cuts off the ports that packets reach by way of the link. A hop comes behind the one that leads
 * to it. */
static void cut_behind(struct daemon_rules *rules, const struct daemon_rule_packet *p,
                       const struct fabric_port *link, uint8_t *cut)
{
	daemon_rules_scratch(rules);
	for (uint32_t i = 0; i < p->path->n_hops; i++) {
		const struct fabric_port *out = p->path->hop[i].out;

		if (out == link || out == link->peer ||
		    (out->node->type == FABRIC_SWITCH && rules->behind[out->node->index]))
			*mark_of(rules, out->peer) = 1;
	}
	for (uint32_t i = 0; i < p->path->n_reached; i++)
		cut[p->path->reached[i]->index] |=
		        *mark_of(rules, p->path->reached[i]) || p->path->reached[i] == link;
}

/* Notes whose copies the rule drops. */
static void cut_copies(struct daemon_rules *rules, const struct daemon_rule *r,
                       const struct daemon_rule_packet *p, struct daemon_verdict *v)
{
	if (!v->cut)
		v->cut = calloc(rules->f->n_hca_ports, 1);
	if (!v->cut)
		return;
	if (r->link) {
		cut_behind(rules, p, r->link, v->cut);
		return;
	}
	for (uint32_t i = 0; i < p->path->n_reached; i++)
		v->cut[p->path->reached[i]->index] |=
		        host_of(rules, p->path->reached[i]) == r->to_host;
}

const struct daemon_rule *daemon_rules_judge_call(struct daemon_rules *rules, unsigned kind,
                                                  uint32_t hca, uint32_t qpn, uint64_t now_ns)
{
	const unsigned host = 1 + shm_hca_at(rules->f->region, hca)->host_index;
	const struct daemon_rule *last = NULL;
	struct daemon_rule *r;

	TAILQ_FOREACH(r, &rules->all, entry)
	{
		if (r->fault == DAEMON_FAULT_CALL_OF(kind) && is_its_time(r, now_ns) &&
		    (!r->from_host || r->from_host == host) &&
		    (r->from_qpn ? r->from_qpn == qpn : !r->from_nth) &&
		    daemon_rule_fires(rules, r))
			last = r;
	}
	return last;
}

/* Whether the port is of that host, if the rule names one. */
static bool is_of_host(const struct daemon_rules *rules, unsigned host, const struct fabric_port *p)
{
	return !host || (p && p->node->type == FABRIC_HCA && host_of(rules, p) == host);
}

struct daemon_verdict daemon_rules_judge_mad(struct daemon_rules *rules,
                                             const struct fabric_port *from,
                                             const struct fabric_port *to, const uint8_t *mad,
                                             uint64_t now_ns)
{
	struct daemon_verdict v = { .faults = 0 };
	struct daemon_rule *r;

	TAILQ_FOREACH(r, &rules->all, entry)
	{
		if (!r->has_mad || !wire_mad_is(&r->mad, mad) || !is_its_time(r, now_ns) ||
		    !is_of_host(rules, r->from_host, from) || !is_of_host(rules, r->to_host, to) ||
		    !daemon_rule_fires(rules, r))
			continue;
		v.faults |= r->fault;
		v.delay_ns += r->delay_ns;
	}
	return v;
}

struct daemon_verdict daemon_rules_judge(struct daemon_rules *rules,
                                         struct daemon_rule_packet *packet)
{
	struct daemon_verdict v = { .faults = 0 };
	struct daemon_rule *r;

	packet->round = daemon_rounds_count(&rules->rounds, packet->src_qpn, packet->opcode,
	                                    packet->psn, packet->begins);
	rules->n_losing = 0;
	TAILQ_FOREACH(r, &rules->all, entry)
	{
		if (!is_chosen(rules, r, packet) || !daemon_rule_fires(rules, r))
			continue;
		if (r->fault & (DAEMON_FAULT_DROP | DAEMON_FAULT_CORRUPT))
			rules->losing[rules->n_losing++] = r;
		if (r->fault == DAEMON_FAULT_CORRUPT)
			note_damage(r, packet);
		if (is_about_copies(r, packet)) {
			cut_copies(rules, r, packet, &v);
			continue;
		}
		v.faults |= r->fault;
		v.delay_ns += r->delay_ns;
		if (r->syndrome)
			v.syndrome = r->syndrome;
	}
	return v;
}
