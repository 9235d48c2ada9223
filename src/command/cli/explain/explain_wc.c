/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel explain wc`: what the status of a completion means, and what has usually caused it
 * (InfiniBand specification volume 1, section 11.6.2; ibv_poll_cq(3)). No fabric is asked, unless
 * the causes are to be judged by a queue pair.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/explain/explain.h"
#include "cli/explain/explain_causes.h"
#include "cli/base/json.h"
#include "cli/base/table.h"
#include "wire/status.h"

#define MOST_CAUSES 5

#define NOT_HERE "not of queue pairs that there are today"

static const struct {
	const char *means;
	struct {
		const char *text;
		cli_judge *judge;
	} cause[MOST_CAUSES];
} statuses[WIRE_STATUSES] = {
	{ "the request or the receive is done", { { NULL } } },
	{ "a length did not fit, at this end",
	  { { "a receive was too short for the message that came", NULL },
	    { "a datagram's receive lacks the 40 bytes for the GRH", NULL },
	    { "a datagram is longer than the MTU, or a message than the port's max_msg_sz",
	      NULL } } },
	{ "the queue pair cannot do that",
	  { { "an operation that its type lacks, or that its flags forbid", NULL },
	    { "an address handle of another protection domain", NULL },
	    { "a memory window, or a key to be invalidated, that may not be used so", NULL } } },
	{ NOT_HERE, { { NULL } } },
	{ "an entry of sg_list is no memory that this queue pair may use",
	  { { "its lkey is none, or of a region that was deregistered", NULL },
	    { "addr and length are not all within the region", NULL },
	    { "the region is in another protection domain than the queue pair", NULL },
	    { "what is written to, by a receive, READ or atomic operation, lacks "
	      "IBV_ACCESS_LOCAL_WRITE",
	      NULL } } },
	{ "it was still to be done when the queue pair went to ERR, or was in it already",
	  { { "an earlier completion of the same queue pair says what went wrong",
	      cli_cause_earlier },
	    { "the peer has disconnected, or rdma_disconnect() was called",
	      cli_cause_disconnected },
	    { "the program has moved the queue pair to ERR itself", cli_cause_own_error } } },
	{ "a memory window could not be bound",
	  { { "the region lacks IBV_ACCESS_MW_BIND, or rights that the window asks for", NULL },
	    { "the window would reach beyond the region", NULL } } },
	{ "the responder's answer was none that could come",
	  { { "a broken or hostile peer, if packets are exchanged", NULL } } },
	{ "memory at this end cannot be accessed so",
	  { { "a WRITE with immediate data that came found a receive it could not complete",
	      NULL } } },
	{ "the responder found the request invalid",
	  { { "a message was longer than the receive that it met at the peer", NULL },
	    { "the peer's queue pair takes no such operation: qp_access_flags",
	      cli_cause_peer_access },
	    { "an atomic operation's address is no multiple of 8", NULL },
	    { "max_dest_rd_atomic of the peer is 0", cli_cause_peer_reads } } },
	{ "the responder does not give access to the memory that was named",
	  { { "rkey is none, or of a region that was deregistered", NULL },
	    { "remote_addr and length are not all within the region", NULL },
	    { "the region lacks REMOTE_WRITE, REMOTE_READ or REMOTE_ATOMIC", NULL },
	    { "the region is in another protection domain than the peer's queue pair", NULL } } },
	{ "the responder could not carry out the request, for reasons of its own",
	  { { "the receive that the message met names memory that the peer may not use", NULL } } },
	{ "nobody has acknowledged a request, which was sent retry_cnt times again after a "
	  "timeout each",
	  { { "the peer's process has died, or has destroyed its queue pair", cli_cause_peer_gone },
	    { "the peer's queue pair is not in RTR or RTS, or is in ERR", cli_cause_peer_state },
	    { "dest_qp_num, the types, or rq_psn and sq_psn of the two, do not match",
	      cli_cause_mismatch },
	    { "no way leads there: a link, a route, a P_Key, or the GID or LID of the path",
	      cli_cause_no_way },
	    { "timeout and retry_cnt are too short for a slow or lossy way", cli_cause_lossy } } },
	{ "the responder had no receive posted, and that rnr_retry times again",
	  { { "the peer posts too few receives, or too late: before it is sent to",
	      cli_cause_no_receives },
	    { "the peer does not poll, so does not post again what was used",
	      cli_cause_not_polled },
	    { "rnr_retry is less than 7 (for ever), or min_rnr_timer of the peer too short",
	      cli_cause_rnr_settings } } },
	{ NOT_HERE, { { NULL } } },
	{ "the responder does not take the READ or atomic operation",
	  { { "more of them are under way than max_dest_rd_atomic of the peer",
	      cli_cause_many_reads } } },
	{ "the operation was aborted at the responder", { { NULL } } },
	{ NOT_HERE, { { NULL } } },
	{ NOT_HERE, { { NULL } } },
	{ "the HCA cannot be used any more",
	  { { "the daemon of the fabric has ended: umbel status", cli_cause_never } } },
	{ "no response came in time", { { NULL } } },
	{ "none of the others", { { NULL } } },
	{ "tag matching failed: no queue pair here has that", { { NULL } } },
	{ "a message that matched a tag is to be fetched: no queue pair here has that",
	  { { NULL } } },
};

static bool has_cause(unsigned status, unsigned i)
{
	return i < MOST_CAUSES && statuses[status].cause[i].text;
}

static struct json_object *make_json(unsigned status, const char *name)
{
	struct json_object *all = json_object_new_object(), *causes = json_object_new_array();

	json_object_object_add(all, "number", json_object_new_int((int)status));
	json_object_object_add(all, "name", json_object_new_string(name));
	json_object_object_add(all, "means", json_object_new_string(statuses[status].means));
	for (unsigned i = 0; has_cause(status, i); i++)
		json_object_array_add(causes,
		                      json_object_new_string(statuses[status].cause[i].text));
	json_object_object_add(all, "causes", causes);
	return all;
}

int cli_explain_wc(const char *text, bool json)
{
	const unsigned status = (unsigned)wire_status_parse(text);
	struct json_object *all;
	char name[40];
	int ret;

	snprintf(name, sizeof(name), "IBV_WC_%s", wire_status_name(status));
	if (json) {
		all = make_json(status, name);
		ret = cli_json_print(all);
		json_object_put(all);
		return ret;
	}
	printf("%s, %u: %s\n", name, status, statuses[status].means);
	for (unsigned i = 0; has_cause(status, i); i++)
		printf("  - %s\n", statuses[status].cause[i].text);
	return CLI_OK;
}

/* ---- of a queue pair ---- */

static const char *const likely_names[] = { "likely", "possible", "not now" };

/* Adds the cause as it was judged, in front of those that are less likely. */
static void add_judged(struct json_object *judged[static CLI_NOT_NOW + 1], enum cli_likely likely,
                       const char *cause, const char *why)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "cause", json_object_new_string(cause));
	json_object_object_add(o, "verdict", json_object_new_string(likely_names[likely]));
	if (*why)
		json_object_object_add(o, "text", json_object_new_string(why));
	json_object_array_add(judged[likely], o);
}

/* The causes in their order: an array, to be put. *@likely: how many are likely. */
static struct json_object *judge(struct cli_case *c, size_t *likely)
{
	struct json_object *judged[CLI_NOT_NOW + 1], *all = json_object_new_array();

	for (unsigned i = 0; i <= CLI_NOT_NOW; i++)
		judged[i] = json_object_new_array();
	if (cli_cause_fault(c) == CLI_LIKELY)
		add_judged(judged, CLI_LIKELY, "a rule of faults has made it", c->text);
	for (unsigned i = 0; has_cause(c->status, i); i++) {
		cli_judge *how = statuses[c->status].cause[i].judge;
		enum cli_likely l;

		*c->text = '\0';
		l = how ? how(c) : CLI_POSSIBLE;
		add_judged(judged, l, statuses[c->status].cause[i].text, c->text);
	}
	*likely = cli_json_count(judged[CLI_LIKELY]);
	for (unsigned i = 0; i <= CLI_NOT_NOW; i++) {
		for (size_t k = 0; k < cli_json_count(judged[i]); k++)
			json_object_array_add(all, json_object_get(cli_json_at(judged[i], k)));
		json_object_put(judged[i]);
	}
	return all;
}

static void print_judged(struct json_object *judged)
{
	static const char *const colours[] = { "\033[31m", "\033[33m", "\033[32m" };
	const bool colour = cli_colour();

	for (size_t i = 0; i < cli_json_count(judged); i++) {
		struct json_object *o = cli_json_at(judged, i);
		const char *verdict = cli_json_text(o, "verdict");
		unsigned k = 0;

		while (strcmp(verdict, likely_names[k]) != 0)
			k++;
		printf("%s%-8s%s  %s\n", colour ? colours[k] : "", verdict, colour ? "\033[0m" : "",
		       cli_json_text(o, "cause"));
		if (json_object_object_get(o, "text"))
			printf("%-8s    %s\n", "", cli_json_text(o, "text"));
	}
}

/* Prints further questions that may help. */
static void print_next(const struct cli_case *c, const char *name)
{
	const char *failed = cli_json_text(c->qp, "failed");

	const bool by_key =
	        !strcmp(name, "IBV_WC_REM_ACCESS_ERR") || !strcmp(name, "IBV_WC_REM_INV_REQ_ERR");

	if (by_key && c->peer)
		printf("what a key allows: umbel explain --rkey KEY --qp %s:%s --op OPERATION "
		       "--address A --length N\n",
		       cli_json_text(c->peer, "host"), cli_json_text(c->peer, "qpn"));
	if (json_object_object_get(c->qp, "failed") && strcmp(failed, name) != 0)
		printf("the request of %s that failed first has %s: umbel explain wc %s --qp "
		       "%s:%s\n",
		       cli_explain_name_qp(c->qp), failed, failed + strlen("IBV_WC_"),
		       cli_json_text(c->qp, "host"), cli_json_text(c->qp, "qpn"));
}

int cli_explain_wc_qp(struct cli_explain *e, const char *text, const char *qp, bool json)
{
	struct cli_case c = { .e = e, .status = (unsigned)wire_status_parse(text) };
	struct json_object *judged, *all;
	char name[40];
	size_t likely;
	int ret = 0;

	c.qp = cli_explain_get_qp(e, qp);
	if (!c.qp) {
		base_log("there is no queue pair '%s': umbel show qps lists them", qp);
		return CLI_FAILED;
	}
	cli_explain_qp(e, qp);
	c.faults = cli_request_json(e->client, "faults");
	if (!c.faults)
		return CLI_FAILED;
	c.peer = json_object_object_get(c.qp, "peer_gid")
	                 ? NULL
	                 : cli_explain_find_qp(e, cli_json_text(c.qp, "peer"));
	judged = judge(&c, &likely);
	snprintf(name, sizeof(name), "IBV_WC_%s", wire_status_name(c.status));
	if (json) {
		all = make_json(c.status, name);
		json_object_object_add(all, "judged", json_object_get(judged));
		ret = cli_json_print(all);
		json_object_put(all);
	} else {
		printf("%s, %u: %s\n", name, c.status, statuses[c.status].means);
		print_judged(judged);
		print_next(&c, name);
	}
	json_object_put(judged);
	json_object_put(c.faults);
	return ret ? ret : likely ? CLI_FAILED : CLI_OK;
}
