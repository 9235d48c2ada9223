/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs, what they have to receive by, and their connections: see explain.h.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain/explain.h"
#include "cli/base/json.h"

#define PSN_MASK    0xFFFFFFl
#define MOST_OF_ALL 16 /* queue pairs of a host that are looked at one by one */

static bool is(struct json_object *qp, const char *key, const char *text)
{
	return !strcmp(cli_json_text(qp, key), text);
}

static bool has(struct json_object *qp, const char *key)
{
	return json_object_object_get(qp, key);
}

/* A number that is a text in hex. */
static long hex(struct json_object *qp, const char *key)
{
	return strtol(cli_json_text(qp, key), NULL, 16);
}

const char *cli_explain_name_qp(struct json_object *qp)
{
	static char text[4][128];
	static unsigned next;
	char *to = text[next++ % 4];

	snprintf(to, sizeof(*text), "%s QP %s", cli_json_text(qp, "host"),
	         cli_json_text(qp, "qpn"));
	return to;
}

struct json_object *cli_explain_find_qp(struct cli_explain *e, const char *qpn)
{
	return json_object_object_get(e->by_qpn, qpn);
}

bool cli_explain_receives(struct json_object *qp)
{
	return is(qp, "state", "RTR") || is(qp, "state", "RTS") || is(qp, "state", "SQD") ||
	       is(qp, "state", "SQE");
}

/* ---- datagrams ---- */

/* A queue pair that may have to receive. @must: it fails if it cannot. */
static void check_receives(struct cli_explain *e, struct json_object *qp, bool must)
{
	long n = cli_json_number(qp, "receives"), arrived = cli_json_number(qp, "arrived");

	if (!cli_explain_receives(qp))
		cli_explain_say(e, must ? CLI_FAILS : CLI_HOLDS, "state",
		                !must ? NULL
		                : is(qp, "state", "ERR")
		                        ? "a request has failed: UMBEL_LOG=warning says why"
		                        : "ibv_modify_qp() to RTR and RTS",
		                "%s is in %s, and receives nothing", cli_explain_name_qp(qp),
		                cli_json_text(qp, "state"));
	else if (n)
		cli_explain_say(e, CLI_HOLDS, "receive", NULL,
		                "%s is in %s; %ld receive%s posted, %ld message%s not polled",
		                cli_explain_name_qp(qp), cli_json_text(qp, "state"), n,
		                n == 1 ? " is" : "s are", arrived, arrived == 1 ? " is" : "s are");
	else if (arrived)
		cli_explain_say(e, CLI_FAILS, "receive",
		                "ibv_poll_cq(), and post them again; or post more",
		                "%s has used all its receives: %ld message%s not polled",
		                cli_explain_name_qp(qp), arrived, arrived == 1 ? " is" : "s are");
	else
		cli_explain_say(e, must ? CLI_FAILS : CLI_HOLDS, "receive",
		                must ? "ibv_post_recv(), before the peer sends" : NULL,
		                "%s has no receive posted%s", cli_explain_name_qp(qp),
		                must ? "" : ", and can only send");
}

void cli_explain_attached(struct cli_explain *e, struct json_object *qp, struct json_object *group)
{
	check_receives(e, qp, true);
	if (!has(group, "qkey"))
		return;
	if (hex(qp, "qkey") == hex(group, "qkey"))
		cli_explain_say(e, CLI_HOLDS, "qkey", NULL, "%s has the group's Q_Key, %s",
		                cli_explain_name_qp(qp), cli_json_text(qp, "qkey"));
	else
		cli_explain_say(e, CLI_FAILS, "qkey",
		                "ibv_modify_qp() with the qkey of the join; senders set "
		                "wr.ud.remote_qkey to it",
		                "%s has Q_Key %s, the group %s", cli_explain_name_qp(qp),
		                cli_json_text(qp, "qkey"), cli_json_text(group, "qkey"));
	if ((hex(qp, "pkey") ^ hex(group, "pkey")) & 0x7FFF)
		cli_explain_say(e, CLI_FAILS, "pkey", "ibv_modify_qp() with the right pkey_index",
		                "%s has P_Key %s, the group %s", cli_explain_name_qp(qp),
		                cli_json_text(qp, "pkey"), cli_json_text(group, "pkey"));
}

void cli_explain_bad_qkey(struct cli_explain *e, const struct cli_end *to)
{
	struct json_object *last = json_object_object_get(to->keys, "bad_qkey");
	struct json_object *from, *qp;

	if (!last)
		return;
	from = cli_explain_find_qp(e, cli_json_text(last, "from"));
	qp = cli_explain_find_qp(e, cli_json_text(last, "to"));
	if (!qp || hex(qp, "qkey") == hex(last, "key"))
		return;
	cli_explain_say(e, CLI_FAILS, "qkey",
	                "wr.ud.remote_qkey has to be the receiver's Q_Key; with its highest bit "
	                "set, the sender's own is sent",
	                "%s QP %s sent Q_Key %s to %s, which has %s",
	                from ? cli_json_text(from, "host") : "a", cli_json_text(last, "from"),
	                cli_json_text(last, "key"), cli_explain_name_qp(qp),
	                cli_json_text(qp, "qkey"));
}

/* ---- connections ---- */

/* Whether the other end is there, and names this one. */
static bool check_peer(struct cli_explain *e, struct json_object *qp, struct json_object *peer)
{
	if (!peer && !has(qp, "peer_gone")) {
		cli_explain_say(e, CLI_FAILS, "peer",
		                "dest_qp_num has to be the peer's qp_num, in the byte order of the "
		                "machine",
		                "%s is connected to QP %s, which no queue pair has or had",
		                cli_explain_name_qp(qp), cli_json_text(qp, "peer"));
		return false;
	}
	if (!peer) {
		cli_explain_say(e, CLI_FAILS, "peer",
		                "its process has destroyed it or has ended: connect again",
		                "%s is connected to QP %s, which does not exist",
		                cli_explain_name_qp(qp), cli_json_text(qp, "peer"));
		return false;
	}
	if (!cli_explain_receives(peer)) {
		cli_explain_say(e, CLI_FAILS, "peer",
		                is(peer, "state", "ERR")
		                        ? "a request of it has failed: both have to connect again"
		                        : "it has to be in RTR before anybody sends to it",
		                "the peer, %s, is in %s", cli_explain_name_qp(peer),
		                cli_json_text(peer, "state"));
		return false;
	}
	if (!is(peer, "type", cli_json_text(qp, "type"))) {
		cli_explain_say(e, CLI_FAILS, "peer", "both have to be of one type",
		                "the peer, %s, is of type %s, not %s", cli_explain_name_qp(peer),
		                cli_json_text(peer, "type"), cli_json_text(qp, "type"));
		return false;
	}
	if (!is(peer, "peer", cli_json_text(qp, "qpn"))) {
		cli_explain_say(e, CLI_FAILS, "peer", "exchange dest_qp_num anew",
		                "the peer, %s, is connected to QP %s, not to %s",
		                cli_explain_name_qp(peer), cli_json_text(peer, "peer"),
		                cli_json_text(qp, "qpn"));
		return false;
	}
	cli_explain_say(e, CLI_HOLDS, "peer", NULL, "the peer, %s, is in %s and names %s",
	                cli_explain_name_qp(peer), cli_json_text(peer, "state"),
	                cli_json_text(qp, "qpn"));
	return true;
}

static void check_pkey(struct cli_explain *e, struct json_object *qp, struct json_object *peer)
{
	if (((hex(qp, "pkey") ^ hex(peer, "pkey")) & 0x7FFF) == 0 &&
	    ((hex(qp, "pkey") | hex(peer, "pkey")) & 0x8000))
		cli_explain_say(e, CLI_HOLDS, "pkey", NULL, "both have P_Key %s",
		                cli_json_text(qp, "pkey"));
	else
		cli_explain_say(e, CLI_FAILS, "pkey", "ibv_modify_qp() with another pkey_index",
		                "%s has P_Key %s, %s has %s", cli_explain_name_qp(qp),
		                cli_json_text(qp, "pkey"), cli_explain_name_qp(peer),
		                cli_json_text(peer, "pkey"));
}

/* False: nothing gets through, as the ends do not begin with the same PSN. */
static bool check_first_psns(struct cli_explain *e, struct json_object *qp,
                             struct json_object *peer)
{
	if (!has(qp, "sq_psn") || !has(peer, "rq_psn") ||
	    cli_json_number(qp, "sq_psn") == cli_json_number(peer, "rq_psn"))
		return true;
	cli_explain_say(e, CLI_FAILS, "psn", "rq_psn of each end has to be sq_psn of the other one",
	                "%s sends PSN %ld, the peer expects %ld", cli_explain_name_qp(qp),
	                cli_json_number(qp, "sq_psn"), cli_json_number(peer, "rq_psn"));
	return false;
}

/* Longer messages than the smaller one fail. */
static void check_path_mtus(struct cli_explain *e, struct json_object *qp, struct json_object *peer)
{
	if (!has(qp, "path_mtu") || !has(peer, "path_mtu") ||
	    cli_json_number(qp, "path_mtu") == cli_json_number(peer, "path_mtu"))
		return;
	cli_explain_say(e, CLI_FAILS, "mtu", "ibv_modify_qp() with one path_mtu at both ends",
	                "%s has path_mtu %ld, the peer has %ld: longer messages than the smaller "
	                "one fail",
	                cli_explain_name_qp(qp), cli_json_number(qp, "path_mtu"),
	                cli_json_number(peer, "path_mtu"));
}

/* The state of the packets, if the queue pair sends packets: @peer may be unknown. */
static void check_packets(struct cli_explain *e, struct json_object *qp, struct json_object *peer)
{
	long next = cli_json_number(qp, "next_psn"), acked = cli_json_number(qp, "acked_psn");
	long expected = cli_json_number(peer, "expected_psn");
	long used = cli_json_number(qp, "retries"), rnr = cli_json_number(qp, "rnr_retries");
	long most = cli_json_number(qp, "retry_cnt");

	if (!has(qp, "next_psn"))
		return;
	if (peer && has(peer, "next_psn") &&
	    ((expected - acked) & PSN_MASK) > ((next - acked) & PSN_MASK))
		cli_explain_say(e, CLI_FAILS, "psn",
		                "rq_psn of each end has to be sq_psn of the other one",
		                "%s sends PSN %ld, the peer expects %ld", cli_explain_name_qp(qp),
		                acked, expected);
	else
		cli_explain_say(e, CLI_HOLDS, "psn", NULL,
		                "%s has sent up to PSN %ld; %ld packets are not acknowledged",
		                cli_explain_name_qp(qp), (next - 1) & PSN_MASK,
		                (next - acked) & PSN_MASK);
	if (used)
		cli_explain_say(e, CLI_FAILS, "retries",
		                "do packets or acknowledgements get lost? umbel fault show, "
		                "umbel show drops",
		                "nothing comes back: %ld of %ld retries are used up",
		                used < most ? used : most, most);
	if (rnr)
		cli_explain_say(e, CLI_FAILS, "retries", "the peer has to post receives",
		                "the peer was not ready: %ld of %s RNR retries are used up", rnr,
		                cli_json_text(qp, "rnr_retry"));
	if (cli_json_number(qp, "retransmissions"))
		cli_explain_say(e, CLI_LOST, "packets", "umbel fault show, umbel show drops",
		                "%s has sent %s packets again", cli_explain_name_qp(qp),
		                cli_json_text(qp, "retransmissions"));
}

/* Requests that wait. @peer: NULL if it is not of this fabric; @ready: it can be reached. */
static void check_waiting(struct cli_explain *e, struct json_object *qp, struct json_object *peer,
                          bool ready)
{
	long n = cli_json_number(qp, "waiting");

	if (has(qp, "failed"))
		cli_explain_say(e, CLI_FAILS, "requests",
		                "ibv_poll_cq() has it; UMBEL_LOG=warning says why",
		                "a request of %s has failed with %s", cli_explain_name_qp(qp),
		                cli_json_text(qp, "failed"));
	else if (n && !ready)
		cli_explain_say(e, CLI_FAILS, "requests", NULL,
		                "%ld request%s of %s wait%s for it, until timeout and retry_cnt "
		                "are over: IBV_WC_RETRY_EXC_ERR",
		                n, n == 1 ? "" : "s", cli_explain_name_qp(qp), n == 1 ? "s" : "");
	else if (n && peer && !cli_json_number(peer, "receives"))
		cli_explain_say(
		        e, CLI_FAILS, "receive",
		        cli_json_number(peer, "arrived")
		                ? "the peer has to poll and post receives again"
		                : "the peer has to post receives before it is sent to (RNR)",
		        "%ld request%s of %s wait%s, and %s has no receive posted", n,
		        n == 1 ? "" : "s", cli_explain_name_qp(qp), n == 1 ? "s" : "",
		        cli_explain_name_qp(peer));
	else if (n)
		cli_explain_say(e, CLI_HOLDS, "requests", NULL, "%ld request%s of %s under way", n,
		                n == 1 ? "" : "s", cli_explain_name_qp(qp));
	else
		cli_explain_say(e, CLI_HOLDS, "requests", NULL, "no request of %s waits",
		                cli_explain_name_qp(qp));
}

static void check_own_state(struct cli_explain *e, struct json_object *qp)
{
	const char *state = cli_json_text(qp, "state");

	if (!strcmp(state, "RTS") || !strcmp(state, "RTR") || !strcmp(state, "SQD"))
		cli_explain_say(e, CLI_HOLDS, "state", NULL, "%s, %s of process %s, is in %s",
		                cli_explain_name_qp(qp), cli_json_text(qp, "type"),
		                cli_json_text(qp, "pid"), state);
	else
		cli_explain_say(e, CLI_FAILS, "state",
		                !strcmp(state, "ERR")
		                        ? "a request of it or of its peer has failed, "
		                          "or it was disconnected: connect again"
		                        : "ibv_modify_qp() to RTR and RTS",
		                "%s, %s of process %s, is in %s", cli_explain_name_qp(qp),
		                cli_json_text(qp, "type"), cli_json_text(qp, "pid"), state);
}

static void check_mtu(struct cli_explain *e, struct json_object *qp, long mtu)
{
	long path = cli_json_number(qp, "path_mtu");

	if (path > mtu)
		cli_explain_say(e, CLI_FAILS, "mtu", "ibv_modify_qp() with a smaller path_mtu",
		                "%s sends packets of %ld bytes, the path carries %ld",
		                cli_explain_name_qp(qp), path, mtu);
	else
		cli_explain_say(e, CLI_HOLDS, "mtu", NULL, "the path carries packets of %ld bytes",
		                mtu);
}

/* Whether it sends to a LID of the peer's port. A path of one that is not connected is unknown. */
static bool check_lid(struct cli_explain *e, struct json_object *qp, const struct cli_end *to)
{
	long dlid = cli_json_number(qp, "dlid"), lid = cli_json_number(to->link, "lid");

	if (!dlid || !lid ||
	    dlid >> cli_json_number(to->keys, "lmc") == lid >> cli_json_number(to->keys, "lmc"))
		return true;
	cli_explain_say(e, CLI_FAILS, "path", "exchange LIDs anew, or ask for a path record",
	                "%s sends to LID %ld, port %ld of %s has LID %ld", cli_explain_name_qp(qp),
	                dlid, to->port, to->host, lid);
	return false;
}

/* The ways there and back. False: there is none. */
static bool check_ways(struct cli_explain *e, struct json_object *qp, struct json_object *peer)
{
	struct cli_end from, to;
	char text[2][160];
	long there, back;
	bool up;

	snprintf(text[0], sizeof(*text), "%s:%s", cli_json_text(qp, "host"),
	         cli_json_text(qp, "port"));
	snprintf(text[1], sizeof(*text), "%s:%s", cli_json_text(peer, "host"),
	         cli_json_text(peer, "port"));
	if (!cli_explain_end(e, text[0], &from) || !cli_explain_end(e, text[1], &to))
		return false;
	up = cli_explain_link(e, &from);
	if (!cli_explain_link(e, &to) || !up || !check_lid(e, qp, &to) ||
	    !check_lid(e, peer, &from))
		return false;
	there = cli_explain_route(e, &from, &to);
	back = cli_explain_route(e, &to, &from);
	if (there && back)
		check_mtu(e, qp, there < back ? there : back);
	return there && back;
}

static void check_connection(struct cli_explain *e, struct json_object *qp, bool ways)
{
	struct json_object *peer = NULL;
	bool ready = true;

	check_own_state(e, qp);
	if (!has(qp, "peer")) {
		cli_explain_say(e, CLI_FAILS, "peer", "ibv_modify_qp() to RTR with dest_qp_num",
		                "%s is not connected", cli_explain_name_qp(qp));
		return;
	}
	if (has(qp, "peer_gid")) {
		cli_explain_say(e, CLI_HOLDS, "peer", NULL,
		                "the peer is not of this fabric: QP %s at %s",
		                cli_json_text(qp, "peer"), cli_json_text(qp, "peer_gid"));
	} else if (strncmp(cli_json_text(qp, "type"), "XRC", 3) != 0) {
		peer = cli_explain_find_qp(e, cli_json_text(qp, "peer"));
		ready = check_peer(e, qp, peer);
		if (ready && ways)
			ready = check_ways(e, qp, peer);
		if (ready) {
			check_pkey(e, qp, peer);
			check_path_mtus(e, qp, peer);
			ready = check_first_psns(e, qp, peer);
		}
	}
	check_packets(e, qp, peer);
	check_waiting(e, qp, peer, ready);
	if (peer && is(peer, "peer", cli_json_text(qp, "qpn")))
		check_waiting(e, peer, qp, ready);
}

/* ---- what is asked ---- */

static void explain_datagrams(struct cli_explain *e, struct json_object *qp)
{
	static const char *const losses[] = { "no_receive",    "bad_qkey", "bad_pkey",
		                              "xmit_discards", "xmit_mtu", NULL };
	struct cli_end end;
	char text[160];

	check_own_state(e, qp);
	snprintf(text, sizeof(text), "%s:%s", cli_json_text(qp, "host"), cli_json_text(qp, "port"));
	if (!cli_json_number(qp, "port") || !cli_explain_end(e, text, &end))
		return;
	cli_explain_link(e, &end);
	check_receives(e, qp, cli_explain_counter(e, &end, "no_receive") > 0);
	cli_explain_bad_qkey(e, &end);
	cli_explain_losses(e, &end, losses);
}

struct json_object *cli_explain_get_qp(struct cli_explain *e, const char *text)
{
	const char *colon = strchr(text, ':');
	struct json_object *qp = NULL;
	char qpn[32], *end;
	unsigned long number = colon ? strtoul(colon + 1, &end, 0) : 0;

	snprintf(qpn, sizeof(qpn), "0x%06lx", number);
	if (colon && colon[1] && !*end)
		qp = cli_explain_find_qp(e, qpn);
	if (qp && !strncmp(cli_json_text(qp, "host"), text, (size_t)(colon - text)) &&
	    !cli_json_text(qp, "host")[colon - text])
		return qp;
	cli_explain_say(e, CLI_FAILS, "qp", "umbel show qps lists them",
	                "there is no queue pair '%s'", text);
	return NULL;
}

void cli_explain_qp(struct cli_explain *e, const char *text)
{
	struct json_object *qp = cli_explain_get_qp(e, text);

	if (!qp)
		return;
	if (is(qp, "type", "UD") || is(qp, "type", "RAW") || is(qp, "type", "XRC_SRQ"))
		explain_datagrams(e, qp);
	else
		check_connection(e, qp, true);
}

void cli_explain_between(struct cli_explain *e, const struct cli_end *from,
                         const struct cli_end *to)
{
	/* a program that only sends has no receives, and one that has not begun is in RESET: that
	 * fails if it has cost messages */
	bool no_receive = cli_explain_counter(e, to, "no_receive") > 0;
	bool no_qp = cli_explain_counter(e, to, "no_qp") > 0;
	unsigned n = 0;

	for (size_t i = 0; i < cli_json_count(e->qps); i++) {
		struct json_object *qp = cli_json_at(e->qps, i);
		bool connects = is(qp, "host", from->host) && is(qp, "peer_host", to->host);

		if (!connects && !(is(qp, "host", to->host) && is(qp, "type", "UD")))
			continue;
		if (n++ >= MOST_OF_ALL)
			continue;
		if (connects)
			check_connection(e, qp, false);
		else
			check_receives(e, qp, cli_explain_receives(qp) ? no_receive : no_qp);
	}
	if (n > MOST_OF_ALL)
		cli_explain_say(e, CLI_HOLDS, "qp", NULL,
		                "%u more queue pairs are not looked at: umbel show qps, --qp",
		                n - MOST_OF_ALL);
}
