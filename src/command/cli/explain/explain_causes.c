/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Judging causes: see explain_causes.h. Most of them look at what `umbel explain --qp` has found.
 */
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain/explain_causes.h"
#include "cli/base/json.h"
#include "wire/status.h"

#define RNR_FOR_EVER 7
#define MOST_TIMEOUT 31

static bool has(struct json_object *o, const char *key)
{
	return json_object_object_get(o, key);
}

static bool is(struct json_object *o, const char *key, const char *text)
{
	return !strcmp(cli_json_text(o, key), text);
}

static void __attribute__((format(printf, 2, 3))) add(struct cli_case *c, const char *format, ...)
{
	size_t n = strlen(c->text);
	va_list args;

	if (n)
		n += (size_t)snprintf(c->text + n, sizeof(c->text) - n, "; ");
	if (n >= sizeof(c->text))
		return;
	va_start(args, format);
	vsnprintf(c->text + n, sizeof(c->text) - n, format, args);
	va_end(args);
}

/* Adds the findings about any of @about, which ends with NULL, to @to, unless that is NULL: those
 * that hold, or those that do not. Their number. */
static unsigned find(const struct cli_case *c, struct cli_case *to, bool holds,
                     const char *const *about)
{
	unsigned n = 0;

	for (size_t i = 0; i < cli_json_count(c->e->findings); i++) {
		struct json_object *f = cli_json_at(c->e->findings, i);

		for (const char *const *a = about; *a; a++)
			if (is(f, "about", *a) && is(f, "verdict", "ok") == holds) {
				if (to)
					add(to, "%s", cli_json_text(f, "text"));
				n++;
			}
	}
	return n;
}

static unsigned add_findings(struct cli_case *c, bool holds, const char *const *about)
{
	return find(c, c, holds, about);
}

static bool is_beyond(const struct cli_case *c)
{
	return has(c->qp, "peer_gid");
}

/* Whether it has failed. */
static bool in_error(const struct cli_case *c)
{
	return is(c->qp, "state", "ERR") || is(c->qp, "state", "SQE");
}

/* ---- faults ---- */

/* Whether the rule has @word, or one that begins so if that ends with '='. The rest of the word. */
static const char *word_of(const char *rule, const char *word)
{
	const size_t n = strlen(word);

	for (const char *at = rule; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
		if (!strncmp(at, word, n) && (word[n - 1] == '=' || at[n] == ' ' || !at[n]))
			return at + n;
	return NULL;
}

/* The status that requests get by the rule; -1: none by itself. */
static int status_by(const char *rule)
{
	static const struct {
		const char *name, *status;
	} naks[] = {
		{ "rnr", "RNR_RETRY_EXC" },
		{ "invalid", "REM_INV_REQ" },
		{ "access", "REM_ACCESS" },
		{ "operation", "REM_OP" },
	};
	const char *wc = word_of(rule, "wc="), *nak = word_of(rule, "nak=");
	char name[64];

	if (!wc)
		wc = word_of(rule, "made=");
	snprintf(name, sizeof(name), "%.*s", wc ? (int)strcspn(wc, " ") : 0, wc ? wc : "");
	if (wc)
		return wire_status_parse(name);
	for (size_t i = 0; nak && i < sizeof(naks) / sizeof(*naks); i++)
		if (!strncmp(nak, naks[i].name, strcspn(nak, " ")) &&
		    strlen(naks[i].name) == strcspn(nak, " "))
			return wire_status_parse(naks[i].status);
	return -1;
}

/* Whether the rule has made a request complete with the status. */
static bool has_made_it(const struct cli_case *c, struct json_object *fault)
{
	return cli_json_number(fault, "fired") &&
	       status_by(cli_json_text(fault, "rule")) == (int)c->status;
}

enum cli_likely cli_cause_fault(struct cli_case *c)
{
	bool any = false;

	for (size_t i = 0; i < cli_json_count(c->faults); i++) {
		struct json_object *f = cli_json_at(c->faults, i);

		if (!has_made_it(c, f))
			continue;
		any = true;
		add(c, "fault %s, '%s', has fired %s times", cli_json_text(f, "number"),
		    cli_json_text(f, "rule"), cli_json_text(f, "fired"));
	}
	return any ? CLI_LIKELY : CLI_NOT_NOW;
}

/* Adds the rules that have kept packets from arriving. Whether there are any. */
static bool add_losing_faults(struct cli_case *c)
{
	static const char *const loses[] = { "drop", "loss=", "corrupt", "delay=" };
	bool any = false;

	for (size_t i = 0; i < cli_json_count(c->faults); i++) {
		struct json_object *f = cli_json_at(c->faults, i);

		for (size_t k = 0; k < sizeof(loses) / sizeof(*loses); k++) {
			if (!cli_json_number(f, "fired") ||
			    !word_of(cli_json_text(f, "rule"), loses[k]))
				continue;
			any = true;
			add(c, "fault %s, '%s', has fired %s times", cli_json_text(f, "number"),
			    cli_json_text(f, "rule"), cli_json_text(f, "fired"));
			break;
		}
	}
	return any;
}

/* ---- nobody answers ---- */

enum cli_likely cli_cause_peer_gone(struct cli_case *c)
{
	static const char *const about[] = { "peer", NULL };

	if (!has(c->qp, "peer") || is_beyond(c))
		return CLI_POSSIBLE;
	if (c->peer || !has(c->qp, "peer_gone"))
		return CLI_NOT_NOW;
	add_findings(c, false, about);
	return CLI_LIKELY;
}

enum cli_likely cli_cause_peer_state(struct cli_case *c)
{
	if (!c->peer)
		return has(c->qp, "peer") && !is_beyond(c) ? CLI_NOT_NOW : CLI_POSSIBLE;
	add(c, "%s is in %s", cli_explain_name_qp(c->peer), cli_json_text(c->peer, "state"));
	return cli_explain_receives(c->peer) ? CLI_NOT_NOW : CLI_LIKELY;
}

enum cli_likely cli_cause_mismatch(struct cli_case *c)
{
	static const char *const psn[] = { "psn", NULL }, *const about[] = { "peer", NULL };

	if (!has(c->qp, "peer")) {
		add(c, "%s is not connected", cli_explain_name_qp(c->qp));
		return CLI_POSSIBLE;
	}
	if (!c->peer && !is_beyond(c) && !has(c->qp, "peer_gone"))
		return add_findings(c, false, about) ? CLI_LIKELY : CLI_POSSIBLE;
	if (!c->peer)
		return CLI_POSSIBLE;
	if (!is(c->peer, "type", cli_json_text(c->qp, "type"))) {
		add(c, "%s is of type %s, not %s", cli_explain_name_qp(c->peer),
		    cli_json_text(c->peer, "type"), cli_json_text(c->qp, "type"));
		return CLI_LIKELY;
	}
	if (cli_explain_receives(c->peer) && !is(c->peer, "peer", cli_json_text(c->qp, "qpn"))) {
		add(c, "%s is connected to QP %s, not to %s", cli_explain_name_qp(c->peer),
		    cli_json_text(c->peer, "peer"), cli_json_text(c->qp, "qpn"));
		return CLI_LIKELY;
	}
	return add_findings(c, false, psn) ? CLI_LIKELY : CLI_NOT_NOW;
}

enum cli_likely cli_cause_no_way(struct cli_case *c)
{
	static const char *const about[] = { "link", "path", "route", "pkey", "mtu", "host", NULL };
	static const char *const route[] = { "route", NULL };
	bool leads;

	if (add_findings(c, false, about))
		return CLI_LIKELY;
	leads = add_findings(c, true, route);
	*c->text = '\0'; /* each switch of the way: that is for --qp alone */
	return leads ? CLI_NOT_NOW : CLI_POSSIBLE;
}

enum cli_likely cli_cause_lossy(struct cli_case *c)
{
	static const char *const about[] = { "retries", "packets", NULL };
	static const char *const psn[] = { "psn", NULL };
	bool lossy = add_findings(c, false, about), faults = add_losing_faults(c);
	long timeout = cli_json_number(c->qp, "timeout");

	if (has(c->qp, "timeout") && timeout > 0 && timeout <= MOST_TIMEOUT)
		add(c, "%s has timeout %ld (%.6g ms) and retry_cnt %s", cli_explain_name_qp(c->qp),
		    timeout, 0.004096 * (double)(1ull << timeout),
		    cli_json_text(c->qp, "retry_cnt"));
	/* what comes with a wrong PSN is not acknowledged either */
	return (lossy && !find(c, NULL, false, psn)) || faults ? CLI_LIKELY : CLI_POSSIBLE;
}

/* ---- no receive is posted ---- */

enum cli_likely cli_cause_no_receives(struct cli_case *c)
{
	if (!c->peer || !has(c->peer, "receives"))
		return CLI_POSSIBLE;
	add(c, "%s has %ld receives posted, %ld messages are not polled",
	    cli_explain_name_qp(c->peer), cli_json_number(c->peer, "receives"),
	    cli_json_number(c->peer, "arrived"));
	if (cli_json_number(c->peer, "receives"))
		return CLI_NOT_NOW;
	return cli_json_number(c->peer, "arrived") ? CLI_POSSIBLE : CLI_LIKELY;
}

enum cli_likely cli_cause_not_polled(struct cli_case *c)
{
	long arrived = cli_json_number(c->peer, "arrived");

	if (!c->peer)
		return CLI_POSSIBLE;
	if (!arrived || cli_json_number(c->peer, "receives"))
		return CLI_NOT_NOW;
	add(c, "%s has used all its receives, and has not polled %ld messages",
	    cli_explain_name_qp(c->peer), arrived);
	return CLI_LIKELY;
}

/* A sender that has failed and would find receives now came too early, unless a rule has refused
 * it. */
enum cli_likely cli_cause_rnr_settings(struct cli_case *c)
{
	bool refused = false;

	if (has(c->qp, "rnr_retry"))
		add(c, "%s has rnr_retry %s", cli_explain_name_qp(c->qp),
		    cli_json_text(c->qp, "rnr_retry"));
	for (size_t i = 0; i < cli_json_count(c->faults); i++)
		refused |= has_made_it(c, cli_json_at(c->faults, i));
	if (!refused && in_error(c) && cli_json_number(c->peer, "receives")) {
		add(c, "%s has %ld receives posted now", cli_explain_name_qp(c->peer),
		    cli_json_number(c->peer, "receives"));
		return CLI_LIKELY;
	}
	return cli_json_number(c->qp, "rnr_retry") == RNR_FOR_EVER ? CLI_NOT_NOW : CLI_POSSIBLE;
}

/* ---- the peer refuses ---- */

enum cli_likely cli_cause_peer_access(struct cli_case *c)
{
	static const char *const names[] = { "remote_write", "remote_read", "remote_atomic" };
	struct json_object *access = cli_json_array(c->peer, "access");
	char lacks[64] = "";

	if (!c->peer)
		return CLI_POSSIBLE;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		bool given = false;

		for (size_t k = 0; k < cli_json_count(access); k++)
			given |= !strcmp(json_object_get_string(cli_json_at(access, k)), names[i]);
		if (!given)
			snprintf(lacks + strlen(lacks), sizeof(lacks) - strlen(lacks), " %s",
			         names[i]);
	}
	if (!*lacks)
		return CLI_NOT_NOW;
	add(c, "qp_access_flags of %s lack%s", cli_explain_name_qp(c->peer), lacks);
	return CLI_POSSIBLE;
}

enum cli_likely cli_cause_peer_reads(struct cli_case *c)
{
	if (!c->peer)
		return CLI_POSSIBLE;
	add(c, "%s has max_dest_rd_atomic %s", cli_explain_name_qp(c->peer),
	    cli_json_text(c->peer, "max_dest_rd_atomic"));
	return cli_json_number(c->peer, "max_dest_rd_atomic") ? CLI_NOT_NOW : CLI_POSSIBLE;
}

enum cli_likely cli_cause_many_reads(struct cli_case *c)
{
	cli_cause_peer_reads(c);
	return CLI_POSSIBLE;
}

/* ---- flushed ---- */

/* Its state is all that is left of a failure that the program has polled. */
enum cli_likely cli_cause_earlier(struct cli_case *c)
{
	if (!has(c->qp, "failed"))
		return in_error(c) ? CLI_POSSIBLE : CLI_NOT_NOW;
	add(c, "a request of %s has failed with %s", cli_explain_name_qp(c->qp),
	    cli_json_text(c->qp, "failed"));
	return CLI_LIKELY;
}

/* Whether the peer has ended, or is not ready any more. */
static bool has_left(const struct cli_case *c)
{
	return has(c->qp, "peer") && !is_beyond(c) && (!c->peer || !cli_explain_receives(c->peer));
}

enum cli_likely cli_cause_disconnected(struct cli_case *c)
{
	static const char *const about[] = { "peer", NULL };

	if (!has_left(c))
		return c->peer ? CLI_NOT_NOW : CLI_POSSIBLE;
	add_findings(c, false, about);
	return has(c->qp, "failed") ? CLI_POSSIBLE : CLI_LIKELY;
}

enum cli_likely cli_cause_own_error(struct cli_case *c)
{
	add(c, "%s is in %s", cli_explain_name_qp(c->qp), cli_json_text(c->qp, "state"));
	return in_error(c) ? CLI_POSSIBLE : CLI_NOT_NOW;
}

enum cli_likely cli_cause_never(struct cli_case *c)
{
	add(c, "it replies");
	return CLI_NOT_NOW;
}
