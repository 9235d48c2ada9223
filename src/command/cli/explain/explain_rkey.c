/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel explain --rkey`: what a key names, and whether a request by it would be carried out. It
 * looks at what a responder looks at, in its order (hca/transport/responder.c). See explain.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/command.h"
#include "cli/explain/explain.h"
#include "cli/base/json.h"
#include "cli/base/options.h"

#define MOST_SHOWN 8 /* processes that have the key, or queue pairs that are asked about */

#define INVALID "IBV_WC_REM_INV_REQ_ERR"
#define REFUSED "IBV_WC_REM_ACCESS_ERR"

static const struct operation {
	const char *name, *access, *flag, *as;
	bool is_read, is_word;
} operations[] = {
	{ "write", "remote_write", "IBV_ACCESS_REMOTE_WRITE", "a WRITE", false, false },
	{ "read", "remote_read", "IBV_ACCESS_REMOTE_READ", "a READ", true, false },
	{ "atomic", "remote_atomic", "IBV_ACCESS_REMOTE_ATOMIC", "an atomic operation", true,
	  true },
};

#define N_OPERATIONS (sizeof(operations) / sizeof(*operations))

/* The question, as numbers. */
struct request {
	const struct operation *op; /* NULL: of no operation */
	uint32_t key;
	uint64_t address, length;
	bool has_address;
	const char *host; /* whose process is meant; NULL: all */
};

static bool holds_word(struct json_object *array, const char *word)
{
	for (size_t i = 0; i < cli_json_count(array); i++)
		if (!strcmp(json_object_get_string(cli_json_at(array, i)), word))
			return true;
	return false;
}

static bool is(struct json_object *o, const char *key, const char *text)
{
	return !strcmp(cli_json_text(o, key), text);
}

static uint64_t hex(struct json_object *o, const char *key)
{
	return strtoull(cli_json_text(o, key), NULL, 16);
}

/* ---- whose it is ---- */

/* Of the process of @place, whether one of its queue pairs of that host is of this PD; any: of any
 * host. */
static bool has_domain(struct cli_explain *e, struct json_object *place, const char *host)
{
	for (size_t i = 0; i < cli_json_count(e->qps); i++) {
		struct json_object *qp = cli_json_at(e->qps, i);

		if (cli_json_number(qp, "client") == cli_json_number(place, "client") &&
		    json_object_object_get(qp, "pd") &&
		    cli_json_number(qp, "pd") == cli_json_number(place, "pd") &&
		    (!host || is(qp, "host", host)))
			return true;
	}
	return false;
}

/* A process may be on several hosts; then the queue pairs of its protection domain tell. */
static bool is_on(struct cli_explain *e, struct json_object *place, const char *host)
{
	struct json_object *hosts = cli_json_array(place, "hosts");

	if (!holds_word(hosts, host))
		return false;
	return cli_json_count(hosts) < 2 || !json_object_object_get(place, "key") ||
	       !has_domain(e, place, NULL) || has_domain(e, place, host);
}

/* "h3 process 4711 (rping)". In a static buffer. */
static const char *whose(struct cli_explain *e, struct json_object *place)
{
	struct json_object *hosts = cli_json_array(place, "hosts");
	static char text[256];
	size_t n = 0, shown = 0;

	for (size_t i = 0; i < cli_json_count(hosts) && shown < 4; i++) {
		const char *host = json_object_get_string(cli_json_at(hosts, i));

		if (!is_on(e, place, host))
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.40s ", host);
		shown++;
	}
	snprintf(text + n, sizeof(text) - n, "process %s (%.32s)", cli_json_text(place, "pid"),
	         cli_json_text(place, "program"));
	return text;
}

/* ---- what it names ---- */

/* Whether @place has @key itself, not another one in its place. */
static bool is_live(struct json_object *place, uint32_t key)
{
	return json_object_object_get(place, "key") && hex(place, "key") == key;
}

static void say_names(struct cli_explain *e, struct json_object *place)
{
	struct json_object *access = cli_json_array(place, "access");
	uint64_t from = hex(place, "iova"),
	         length = json_object_get_uint64(json_object_object_get(place, "length"));
	bool window = holds_word(access, "window");
	char text[200] = "", bound[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < cli_json_count(access); i++) {
		const char *name = json_object_get_string(cli_json_at(access, i));

		if (strcmp(name, "window") != 0 && n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
			                      name);
	}
	if (json_object_object_get(place, "qpn"))
		snprintf(bound, sizeof(bound), " bound to QP %s", cli_json_text(place, "qpn"));
	cli_explain_say(e, CLI_HOLDS, "key", NULL,
	                "%s: %s%s, 0x%" PRIx64 " to 0x%" PRIx64 " (%" PRIu64 " bytes), PD %s, %s",
	                whose(e, place), window ? "memory window" : "memory region", bound, from,
	                from + length, length, cli_json_text(place, "pd"),
	                *text ? text : "no access but to read it there");
}

/* The process had something there, or has something else. */
static void say_stale(struct cli_explain *e, struct json_object *place, uint32_t key)
{
	if (json_object_object_get(place, "key"))
		cli_explain_say(e, CLI_FAILS, "key", "have the peer tell its rkey again",
		                "%s has 0x%08" PRIx64 " in the place of 0x%08x: that was "
		                "deregistered or bound again, or never was",
		                whose(e, place), hex(place, "key"), key);
	else if (json_object_object_get(place, "was_qpn"))
		cli_explain_say(e, CLI_FAILS, "key", "bind it again, and tell the peer the new key",
		                "%s had a window there, bound to QP %s, which was invalidated or "
		                "freed",
		                whose(e, place), cli_json_text(place, "was_qpn"));
	else
		cli_explain_say(
		        e, CLI_FAILS, "key", "keep the region until the peer's requests are done",
		        "%s had a key there, which was deregistered or unbound", whose(e, place));
}

/* No process that is meant has the key. Says which had it. */
static void say_none(struct cli_explain *e, const struct request *r)
{
	unsigned n = 0;

	for (size_t i = 0; i < cli_json_count(e->places) && n < MOST_SHOWN; i++) {
		struct json_object *place = cli_json_at(e->places, i);

		if (is_live(place, r->key) || (r->host && !is_on(e, place, r->host)))
			continue;
		say_stale(e, place, r->key);
		n++;
	}
	if (!n)
		cli_explain_say(e, CLI_FAILS, "key",
		                "umbel show mrs has those of programs with connected queue pairs",
		                "no process%s%s has key 0x%08x", r->host ? " of " : "",
		                r->host ? r->host : "", r->key);
}

/* ---- whether a request is carried out ---- */

/* The request fails, with the status that its requester gets; the first reason counts. */
static bool refuse(struct cli_explain *e, const char *status)
{
	if (!e->status)
		e->status = status;
	return false;
}

/* Checks whether the queue pair itself lets the operation in. */
static bool check_operation(struct cli_explain *e, struct json_object *qp, const struct request *r)
{
	const struct operation *op = r->op;

	if (is(qp, "type", "UC") && op->is_read) {
		cli_explain_say(e, CLI_FAILS, "operation", "connect queue pairs of type RC",
		                "queue pairs of type UC have no READ and no atomic operations");
		return refuse(e, NULL);
	}
	if (op->is_word && r->has_address && r->address % 8) {
		cli_explain_say(e, CLI_FAILS, "address", "atomic operations are on 8 aligned bytes",
		                "0x%" PRIx64 " is no multiple of 8", r->address);
		return refuse(e, INVALID);
	}
	if (op->is_read && !cli_json_number(qp, "max_dest_rd_atomic")) {
		cli_explain_say(e, CLI_FAILS, "operation",
		                "ibv_modify_qp() to RTR with max_dest_rd_atomic of 1 or more",
		                "%s has max_dest_rd_atomic 0", cli_explain_name_qp(qp));
		return refuse(e, INVALID);
	}
	if (!holds_word(cli_json_array(qp, "access"), op->access)) {
		cli_explain_say(e, CLI_FAILS, "operation",
		                "ibv_modify_qp() to INIT with it in qp_access_flags",
		                "%s does not let %ss in: qp_access_flags lack %s",
		                cli_explain_name_qp(qp), strchr(op->as, ' ') + 1, op->flag);
		return refuse(e, INVALID);
	}
	cli_explain_say(e, CLI_HOLDS, "operation", NULL, "%s lets %ss in", cli_explain_name_qp(qp),
	                strchr(op->as, ' ') + 1);
	return true;
}

static bool check_domain(struct cli_explain *e, struct json_object *place, struct json_object *qp)
{
	if (cli_json_number(place, "pd") == cli_json_number(qp, "pd")) {
		cli_explain_say(e, CLI_HOLDS, "pd", NULL, "the key and %s are in PD %s",
		                cli_explain_name_qp(qp), cli_json_text(qp, "pd"));
		return true;
	}
	cli_explain_say(e, CLI_FAILS, "pd", "register it in the ibv_pd of the queue pair",
	                "the key is in PD %s, %s in PD %s", cli_json_text(place, "pd"),
	                cli_explain_name_qp(qp), cli_json_text(qp, "pd"));
	return refuse(e, REFUSED);
}

static bool check_access(struct cli_explain *e, struct json_object *place,
                         const struct operation *op)
{
	if (holds_word(cli_json_array(place, "access"), op->access)) {
		cli_explain_say(e, CLI_HOLDS, "access", NULL, "the key gives %s", op->access);
		return true;
	}
	cli_explain_say(e, CLI_FAILS, "access",
	                holds_word(cli_json_array(place, "access"), "window")
	                        ? "bind the window with it in mw_access_flags"
	                        : "ibv_reg_mr() with it",
	                "%s needs %s, which the key does not give", op->as, op->flag);
	return refuse(e, REFUSED);
}

static bool check_window(struct cli_explain *e, struct json_object *place, struct json_object *qp)
{
	if (!json_object_object_get(place, "qpn") || hex(place, "qpn") == hex(qp, "qpn"))
		return true;
	cli_explain_say(e, CLI_FAILS, "window", "bind it by the queue pair that peers will use",
	                "the window is bound to QP %s, and %s may not use it",
	                cli_json_text(place, "qpn"), cli_explain_name_qp(qp));
	return refuse(e, REFUSED);
}

static bool check_range(struct cli_explain *e, struct json_object *place, const struct request *r)
{
	uint64_t from = hex(place, "iova"), offset = r->address - from;
	uint64_t length = json_object_get_uint64(json_object_object_get(place, "length"));

	if (r->address < from) {
		cli_explain_say(e, CLI_FAILS, "range", "remote_addr is an address of the peer's",
		                "0x%" PRIx64 " is %" PRIu64 " bytes before its first byte, "
		                "0x%" PRIx64,
		                r->address, from - r->address, from);
		return refuse(e, REFUSED);
	}
	if (offset > length || length - offset < r->length) {
		cli_explain_say(e, CLI_FAILS, "range", "remote_addr is an address of the peer's",
		                "%" PRIu64 " bytes at 0x%" PRIx64 " go beyond its end, 0x%" PRIx64
		                ", by %" PRIu64,
		                r->length, r->address, from + length,
		                offset > length ? offset - length + r->length
		                                : r->length - (length - offset));
		return refuse(e, REFUSED);
	}
	cli_explain_say(e, CLI_HOLDS, "range", NULL,
	                "%" PRIu64 " bytes at 0x%" PRIx64 " are within it, from byte %" PRIu64
	                " on",
	                r->length, r->address, offset);
	return true;
}

/* Up to the first reason why not. @qp: the responder; NULL: it is not known. */
static bool check(struct cli_explain *e, struct json_object *place, struct json_object *qp,
                  const struct request *r)
{
	return (!qp || check_domain(e, place, qp)) && (!r->op || check_access(e, place, r->op)) &&
	       (!qp || check_window(e, place, qp)) && (!r->has_address || check_range(e, place, r));
}

/* Says the status of the requester's completion. */
static void say_status(struct cli_explain *e, struct json_object *qp, bool answers)
{
	if (e->status && is(qp, "type", "UC")) {
		cli_explain_say(e, CLI_FAILS, "completion", NULL,
		                "IBV_WC_SUCCESS, and nothing is done: the responder of UC says "
		                "nothing");
		e->status = NULL;
	} else if (e->status) {
		cli_explain_say(e, CLI_FAILS, "completion", "umbel explain wc says more",
		                "%sthe requester gets %s, and its queue pair goes to ERR",
		                answers || !strcmp(e->status, "IBV_WC_RETRY_EXC_ERR")
		                        ? ""
		                        : "once it is in RTR or RTS, ",
		                e->status);
	} else {
		cli_explain_say(e, CLI_HOLDS, "completion", NULL,
		                "IBV_WC_SUCCESS, if it arrives: --qp without --rkey says that");
	}
}

/* The key as it stands in the process of that queue pair, which is the responder. */
static struct json_object *place_of(struct cli_explain *e, struct json_object *qp)
{
	for (size_t i = 0; i < cli_json_count(e->places); i++)
		if (cli_json_number(cli_json_at(e->places, i), "client") ==
		    cli_json_number(qp, "client"))
			return cli_json_at(e->places, i);
	return NULL;
}

/* That the responder's process has no such key. */
static void say_missing(struct cli_explain *e, struct json_object *qp, struct json_object *place,
                        const struct request *r)
{
	struct json_object *peer = cli_explain_find_qp(e, cli_json_text(qp, "peer"));
	struct json_object *other = peer ? place_of(e, peer) : NULL;

	if (place)
		say_stale(e, place, r->key);
	else if (other && is_live(other, r->key))
		cli_explain_say(e, CLI_FAILS, "key",
		                "rkey has to be of the responder's process, not of the requester's",
		                "the process of %s has no key 0x%08x; that of its peer, %s, has it",
		                cli_explain_name_qp(qp), r->key, cli_explain_name_qp(peer));
	else
		cli_explain_say(e, CLI_FAILS, "key", "umbel show mrs lists them",
		                "the process of %s has no key 0x%08x", cli_explain_name_qp(qp),
		                r->key);
}

static void explain_responder(struct cli_explain *e, struct json_object *qp,
                              const struct request *r)
{
	struct json_object *place = place_of(e, qp);
	const bool answers = cli_explain_receives(qp), in_error = is(qp, "state", "ERR");

	e->status = NULL;
	if (!is(qp, "type", "RC") && !is(qp, "type", "UC")) {
		cli_explain_say(e, CLI_FAILS, "qp", NULL,
		                "%s is of type %s: of RC and UC it can be said",
		                cli_explain_name_qp(qp), cli_json_text(qp, "type"));
		return;
	}
	if (!answers)
		cli_explain_say(e, CLI_FAILS, "state",
		                in_error ? "a request of it or its peer has failed: connect again"
		                         : "ibv_modify_qp() to RTR and RTS",
		                "%s is in %s, and answers nothing now", cli_explain_name_qp(qp),
		                cli_json_text(qp, "state"));
	if (!answers && !in_error) {
		e->status = "IBV_WC_RETRY_EXC_ERR";
	} else if (r->op && !check_operation(e, qp, r)) {
		if (!e->status) /* it cannot be posted */
			return;
	} else if (r->op && r->has_address && !r->length) {
		cli_explain_say(e, CLI_HOLDS, "range", NULL,
		                "for 0 bytes the key is not looked at");
	} else if (!place || !is_live(place, r->key)) {
		say_missing(e, qp, place, r);
		e->status = REFUSED;
	} else {
		say_names(e, place);
		check(e, place, qp, r);
	}
	if (!answers && !e->status)
		e->status = "IBV_WC_RETRY_EXC_ERR";
	if (r->op || e->status)
		say_status(e, qp, answers);
}

/* ---- what is asked ---- */

/* Of all processes that have the key, or of those of one host. */
static void explain_holders(struct cli_explain *e, const struct request *r)
{
	unsigned n = 0;

	for (size_t i = 0; i < cli_json_count(e->places); i++) {
		struct json_object *place = cli_json_at(e->places, i);

		if (!is_live(place, r->key) || (r->host && !is_on(e, place, r->host)))
			continue;
		if (n++ >= MOST_SHOWN)
			continue;
		say_names(e, place);
		check(e, place, NULL, r);
	}
	if (!n)
		say_none(e, r);
	else if (n > MOST_SHOWN)
		cli_explain_say(e, CLI_HOLDS, "key", NULL,
		                "%u more processes have that key: --host, --qp", n - MOST_SHOWN);
}

/* Of the queue pairs of @to that are connected to one of @from. */
static void explain_responders(struct cli_explain *e, const struct cli_explain_rkey *x,
                               const struct request *r)
{
	unsigned n = 0;

	for (size_t i = 0; i < cli_json_count(e->qps); i++) {
		struct json_object *qp = cli_json_at(e->qps, i);

		if (is(qp, "host", x->to) && is(qp, "peer_host", x->from) && n++ < MOST_SHOWN)
			explain_responder(e, qp, r);
	}
	if (!n)
		cli_explain_say(e, CLI_FAILS, "qp", "umbel show connections",
		                "no queue pair of %s is connected to one of %s", x->to, x->from);
	else if (n > MOST_SHOWN)
		cli_explain_say(e, CLI_HOLDS, "qp", NULL,
		                "%u more queue pairs are not looked at: --qp", n - MOST_SHOWN);
}

static bool host_exists(struct cli_explain *e, const char *host)
{
	if (!host || json_object_object_get(e->by_host, host))
		return true;
	cli_explain_say(e, CLI_FAILS, "host", "umbel show hosts lists them",
	                "there is no host '%s'", host);
	return false;
}

/* A number without a sign, of up to @max. False: it is none. */
static bool number_of(const char *text, uint64_t max, uint64_t *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 0);
	return !*end && !errno && *number <= max;
}

static int read_request(const struct cli_command *self, const struct cli_explain_rkey *x,
                        struct request *r)
{
	uint64_t key;

	if (!number_of(x->rkey, UINT32_MAX, &key))
		return cli_usage_error(self, "'%s' is no key, as 0x00000201", x->rkey);
	r->key = (uint32_t)key;
	r->host = x->host;
	for (size_t i = 0; x->op && i < N_OPERATIONS; i++)
		if (!strcmp(operations[i].name, x->op))
			r->op = &operations[i];
	if (x->op && !r->op)
		return cli_usage_error(self, "no operation '%s': write, read or atomic", x->op);
	r->length = r->op && r->op->is_word ? 8 : 1;
	r->has_address = x->address;
	if (x->address && !number_of(x->address, UINT64_MAX, &r->address))
		return cli_usage_error(self, "'%s' is no address", x->address);
	if (x->length && !x->address)
		return cli_usage_error(self, "--length needs --address");
	if (x->length && !number_of(x->length, UINT32_MAX, &r->length))
		return cli_usage_error(self, "'%s' is no length of a request, in bytes", x->length);
	if (r->op && r->op->is_word && r->length != 8)
		return cli_usage_error(self, "atomic operations are on 8 bytes");
	return 0;
}

int cli_explain_rkey_check(const struct cli_command *self, const struct cli_explain_rkey *x)
{
	struct request r = { 0 };

	if (!x->rkey)
		return cli_usage_error(self, "--host, --op, --address and --length go with --rkey");
	if ((x->from || x->to) && !(x->from && x->to))
		return cli_usage_error(self, "--from and --to go together with --rkey");
	if (!!x->from + !!x->qp + !!x->host > 1)
		return cli_usage_error(self, "whose key? --host, --from and --to, or --qp");
	return read_request(self, x, &r);
}

void cli_explain_rkey(struct cli_explain *e, const struct cli_explain_rkey *x)
{
	struct request r = { 0 };
	struct json_object *qp;

	read_request(NULL, x, &r); /* it has been checked */
	if (!host_exists(e, x->host) || !host_exists(e, x->from) || !host_exists(e, x->to))
		return;
	if (x->qp) {
		qp = cli_explain_get_qp(e, x->qp);
		if (qp)
			explain_responder(e, qp, &r);
	} else if (x->from) {
		explain_responders(e, x, &r);
	} else {
		explain_holders(e, &r);
	}
}
