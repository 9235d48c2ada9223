/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel explain`: why a message does not arrive. It walks from the sender to the receiver, as a
 * packet would, and says of each condition whether it holds.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/explain/explain.h"
#include "cli/base/fabrics.h"
#include "cli/base/group.h"
#include "cli/base/json.h"
#include "cli/base/options.h"
#include "cli/base/table.h"
#include "control/client.h"
#include "wire/status.h"

#define MOST_SHOWN 8 /* receivers of a group; if there are more, only failures are shown */

static const char help[] =
        "Usage: umbel explain [OPTION]... --from HOST --to HOST\n"
        "       umbel explain [OPTION]... --group GROUP --from HOST [--to HOST]\n"
        "       umbel explain [OPTION]... --qp HOST:QPN\n"
        "       umbel explain [OPTION]... --rkey KEY [--host HOST] [--from HOST --to HOST]\n"
        "       umbel explain [OPTION]... wc STATUS [--qp HOST:QPN]\n"
        "       umbel explain [--json] rule [NAME]\n"
        "Walk the way of a message and say what holds, what fails, and what to do about it; or\n"
        "say what memory a key names, and whether a request may go there; or what the status of\n"
        "a completion means, as RETRY_EXC or 12; or what a rule of 'umbel run --checked' says.\n";

struct explain {
	const char *name, *from, *to, *group, *qp;
	const char *rkey, *host, *op, *address, *length;
	bool json;
	struct cli_list words;
};

static const struct cli_option options[] = {
	{ "  -n, --name NAME     the fabric (default: $UMBEL_FABRIC, else 'default')\n",
	  CLI_TEXT(struct explain, name) },
	{ "      --from HOST     who sends; HOST:PORT if not by port 1\n",
	  CLI_TEXT(struct explain, from) },
	{ "      --to HOST       who should receive; of a group: all who have joined\n",
	  CLI_TEXT(struct explain, to) },
	{ "      --group GROUP   to a group: its MGID (umbel show groups), or IP address\n",
	  CLI_TEXT(struct explain, group) },
	{ "      --qp HOST:QPN   a queue pair and its connection, as in 'umbel show qps';\n"
	  "                      after 'wc STATUS': which of its causes are likely\n",
	  CLI_TEXT(struct explain, qp) },
	{ "      --rkey KEY      the key of a memory region or window; --qp, or --from and --to,\n"
	  "                      say which queue pair answers the request\n",
	  CLI_TEXT(struct explain, rkey) },
	{ "      --host HOST     the key of a process of this host\n",
	  CLI_TEXT(struct explain, host) },
	{ "      --op OPERATION  of a key: whether it allows a write, a read or an atomic\n",
	  CLI_TEXT(struct explain, op) },
	{ "      --address A     likewise, by its remote_addr\n",
	  CLI_TEXT(struct explain, address) },
	{ "      --length N      and of so many bytes (default: 1; of an atomic: 8)\n",
	  CLI_TEXT(struct explain, length) },
	{ "      --json          as JSON\n", CLI_FLAG(struct explain, json) },
	{ .line = "  -h, --help          this text\n" },
};

/* ---- from one host to another ---- */

static const char *const sent[] = { "xmit_discards", "xmit_mtu", "no_payload_slot", NULL };
static const char *const received[] = { "no_receive", "bad_qkey", "bad_pkey", "no_qp", NULL };
static const char *const sent_group[] = {
	"xmit_discards", "xmit_mtu", "no_payload_slot", "mcast_unheard", "not_mcast_qpn",
	"mcast_by_lid",  NULL
};
static const char *const received_group[] = { "no_receive", "bad_qkey", "bad_pkey",
	                                      "mcast_unattached", NULL };

static void say_mtu(struct cli_explain *e, long mtu)
{
	if (mtu)
		cli_explain_say(e, CLI_HOLDS, "mtu", NULL, "datagrams may have up to %ld bytes",
		                mtu);
}

static void explain_pair(struct cli_explain *e, const struct explain *x)
{
	struct cli_end from, to;
	bool up;

	if (!cli_explain_end(e, x->from, &from) || !cli_explain_end(e, x->to, &to))
		return;
	up = cli_explain_link(e, &from);
	if (cli_explain_link(e, &to) && up)
		say_mtu(e, cli_explain_route(e, &from, &to));
	if (!json_object_object_get(from.link, "device"))
		cli_explain_pkeys(e, &from, &to);
	cli_explain_between(e, &from, &to);
	cli_explain_bad_qkey(e, &to);
	cli_explain_losses(e, &from, sent);
	cli_explain_losses(e, &to, received);
}

/* ---- groups ---- */

/* The group, with what several records of it say: on Ethernet each HCA has one. To be put; NULL:
 * nobody knows it. */
static struct json_object *find_group(struct cli_explain *e, const char *mgid)
{
	struct json_object *found = NULL;

	for (size_t i = 0; i < json_object_array_length(e->groups); i++) {
		struct json_object *g = json_object_array_get_idx(e->groups, i), *attached;

		if (strcmp(cli_json_text(g, "mgid"), mgid) != 0)
			continue;
		if (!found) {
			found = json_object_get(g);
			continue;
		}
		attached = cli_json_array(g, "attached");
		for (size_t k = 0; k < json_object_array_length(attached); k++)
			json_object_array_add(
			        cli_json_array(found, "attached"),
			        json_object_get(json_object_array_get_idx(attached, k)));
	}
	return found;
}

/* The group's members or attached queue pairs by host: each an array. As a part of the group. */
static void add_by_host(struct json_object *group, const char *key, const char *as)
{
	struct json_object *all = cli_json_array(group, key), *by_host = json_object_new_object();

	for (size_t i = 0; i < json_object_array_length(all); i++) {
		struct json_object *o = json_object_array_get_idx(all, i);
		const char *host = cli_json_text(o, "host");

		if (!json_object_object_get(by_host, host))
			json_object_object_add(by_host, host, json_object_new_array());
		json_object_array_add(json_object_object_get(by_host, host), json_object_get(o));
	}
	json_object_object_add(group, as, by_host);
}

static struct json_object *of_host(struct json_object *group, const char *as, const char *host)
{
	return cli_json_array(json_object_object_get(group, as), host);
}

/* How the host has joined; NULL: it has not. */
static const char *join_of(struct json_object *group, const char *host)
{
	struct json_object *all = of_host(group, "members_by_host", host);

	return json_object_array_length(all)
	               ? cli_json_text(json_object_array_get_idx(all, 0), "join_state")
	               : NULL;
}

static void check_joined(struct cli_explain *e, struct json_object *group, const char *host)
{
	const char *join = join_of(group, host);

	if (join && strncmp(join, "send-only", 9) != 0)
		cli_explain_say(e, CLI_HOLDS, "joined", NULL, "%s has joined the group (%s)", host,
		                join);
	else if (join)
		cli_explain_say(e, CLI_FAILS, "joined", "join as full member to receive",
		                "%s has joined as %s member, and receives nothing", host, join);
	else
		cli_explain_say(e, CLI_FAILS, "joined", "rdma_join_multicast()",
		                "%s has not joined the group", host);
}

/* How one that is attached is a member on its network: on Ethernet. */
static void check_member(struct cli_explain *e, struct json_object *attached, const char *host)
{
	const char *by = cli_json_text(attached, "member_by");

	if (!json_object_object_get(attached, "member_by"))
		return; /* on InfiniBand */
	if (!strcmp(by, "join"))
		cli_explain_say(e, CLI_HOLDS, "joined", NULL, "%s has joined the group", host);
	else if (!strcmp(by, "attach"))
		cli_explain_say(
		        e, CLI_HOLDS, "joined", NULL,
		        "%s has attached without a join: here that joins (roce_attach_joins), "
		        "but a card behind a switch that snoops would hear nothing",
		        host);
	else
		cli_explain_say(e, CLI_FAILS, "joined", "rdma_join_multicast(), as full member",
		                "%s has attached without a join: what others send into the network "
		                "does not reach it",
		                host);
}

/* The queue pairs of the host that are attached. */
static void check_attached(struct cli_explain *e, struct json_object *group, const char *host)
{
	struct json_object *attached = of_host(group, "attached_by_host", host), *qp;
	unsigned n = 0;

	for (size_t i = 0; i < json_object_array_length(attached); i++) {
		struct json_object *a = json_object_array_get_idx(attached, i);

		qp = cli_explain_find_qp(e, cli_json_text(a, "qpn"));
		if (!qp)
			continue; /* it has gone since */
		if (!n++)
			check_member(e, a, host);
		cli_explain_say(e, CLI_HOLDS, "attached", NULL, "%s QP %s is attached", host,
		                cli_json_text(a, "qpn"));
		cli_explain_attached(e, qp, group);
	}
	if (!n)
		cli_explain_say(e, CLI_FAILS, "attached",
		                "ibv_attach_mcast() with the MGID and MLID of the join",
		                "no queue pair of %s is attached to the group", host);
}

/* @reached: by name, the HCAs where the tree leads; NULL: there is none, on Ethernet. */
static void check_receiver(struct cli_explain *e, struct json_object *group,
                           struct json_object *reached, const struct cli_end *to)
{
	bool up = cli_explain_link(e, to);

	if (json_object_object_get(group, "members"))
		check_joined(e, group, to->host);
	if (json_object_object_get(group, "pkey"))
		cli_explain_group_pkey(e, to, strtol(cli_json_text(group, "pkey"), NULL, 16));
	if (up && reached && json_object_object_get(reached, to->node))
		cli_explain_say(e, CLI_HOLDS, "tree", NULL, "the tree leads to %s", to->host);
	else if (up && reached)
		cli_explain_unreached(e, to, group);
	check_attached(e, group, to->host);
	cli_explain_bad_qkey(e, to);
	cli_explain_losses(e, to, received_group);
}

/* All hosts that have joined or are attached, but for the sender. */
static void check_receivers(struct cli_explain *e, struct json_object *group,
                            struct json_object *reached, const struct cli_end *from)
{
	struct json_object *hosts = json_object_new_object();
	static const char *const from_arrays[] = { "members", "attached" };
	size_t n = 0, failing = 0;

	for (size_t k = 0; k < 2; k++) {
		struct json_object *array = cli_json_array(group, from_arrays[k]);

		for (size_t i = 0; i < json_object_array_length(array); i++) {
			struct json_object *o = json_object_array_get_idx(array, i);
			const char *host = cli_json_text(o, "host");

			if (strcmp(host, from->host) != 0 &&
			    strncmp(cli_json_text(o, "join_state"), "send-only", 9) != 0)
				json_object_object_add(hosts, host, NULL);
		}
	}
	n = (size_t)json_object_object_length(hosts);
	if (!n)
		cli_explain_say(e, CLI_FAILS, "joined", "receivers join it first: umbel wait",
		                "nobody but %s has joined the group", from->host);
	e->quiet = n > MOST_SHOWN;
	json_object_object_foreach(hosts, host, none)
	{
		unsigned before = e->n_failed;
		struct cli_end to;

		(void)none;
		if (cli_explain_end(e, host, &to))
			check_receiver(e, group, reached, &to);
		failing += e->n_failed > before;
		e->silent = failing >= MOST_SHOWN;
	}
	e->quiet = e->silent = false;
	if (failing > MOST_SHOWN)
		cli_explain_say(e, CLI_FAILS, "receivers", "--to says it of one",
		                "%zu more receivers miss something", failing - MOST_SHOWN);
	if (n > MOST_SHOWN)
		cli_explain_say(e, CLI_HOLDS, "receivers", NULL,
		                "%zu receivers; what holds there is not said", n);
	json_object_put(hosts);
}

static void check_group(struct cli_explain *e, const struct explain *x, struct json_object *group,
                        const struct cli_end *from)
{
	bool routed = json_object_object_get(group, "tree");
	struct json_object *reached = NULL;
	const char *join = join_of(group, from->host);
	struct cli_end to;

	if (json_object_object_get(group, "mtu"))
		cli_explain_say(e, CLI_HOLDS, "group", NULL,
		                "%s has MLID %s; datagrams may have up to %s bytes",
		                cli_json_text(group, "mgid"), cli_json_text(group, "mlid"),
		                cli_json_text(group, "mtu"));
	if (join)
		cli_explain_say(e, CLI_HOLDS, "joined", NULL, "%s has joined the group (%s)",
		                from->host, join);
	if (cli_explain_link(e, from) && routed)
		reached = cli_explain_tree(e, from, group);
	if (json_object_object_get(group, "pkey"))
		cli_explain_group_pkey(e, from, strtol(cli_json_text(group, "pkey"), NULL, 16));
	if (!x->to)
		check_receivers(e, group, reached, from);
	else if (cli_explain_end(e, x->to, &to))
		check_receiver(e, group, reached, &to);
	json_object_put(reached);
	cli_explain_losses(e, from, sent_group);
}

/* A port whose link is down is in no group. */
static void explain_no_group(struct cli_explain *e, const struct explain *x, const char *mgid)
{
	struct cli_end end;

	if (cli_explain_end(e, x->from, &end))
		cli_explain_link(e, &end);
	if (x->to && cli_explain_end(e, x->to, &end))
		cli_explain_link(e, &end);
	cli_explain_say(e, CLI_FAILS, "group",
	                "nobody has joined it: rdma_join_multicast(), then umbel wait",
	                "there is no group %s", mgid);
}

static void explain_group(struct cli_explain *e, const struct explain *x, const char *mgid)
{
	struct json_object *group = find_group(e, mgid);
	struct cli_end from;

	if (!group) {
		explain_no_group(e, x, mgid);
	} else if (cli_explain_end(e, x->from, &from)) {
		add_by_host(group, "members", "members_by_host");
		add_by_host(group, "attached", "attached_by_host");
		check_group(e, x, group, &from);
	}
	json_object_put(group);
}

/* ---- output ---- */

/* A line for each finding. */
static void print_text(struct cli_explain *e)
{
	static const char *const colours[] = { "\033[32m", "\033[31m", "\033[33m" };
	bool colour = cli_colour();
	int wide = 0;

	for (size_t i = 0; i < json_object_array_length(e->findings); i++) {
		struct json_object *f = json_object_array_get_idx(e->findings, i);
		int n = (int)strlen(cli_json_text(f, "about"));

		wide = n > wide ? n : wide;
	}
	for (size_t i = 0; i < json_object_array_length(e->findings); i++) {
		struct json_object *f = json_object_array_get_idx(e->findings, i);
		const char *verdict = cli_json_text(f, "verdict");
		unsigned k = *verdict == 'o' ? CLI_HOLDS : *verdict == 'f' ? CLI_FAILS : CLI_LOST;

		printf("%s%-5s%s  %-*s  %s", colour ? colours[k] : "",
		       k == CLI_FAILS ? "FAILS" : verdict, colour ? "\033[0m" : "", wide,
		       cli_json_text(f, "about"), cli_json_text(f, "text"));
		if (json_object_object_get(f, "do"))
			printf(": %s", cli_json_text(f, "do"));
		putchar('\n');
	}
}

static int print(struct cli_explain *e, bool json)
{
	struct json_object *all;
	int ret;

	if (e->broken)
		return CLI_FAILED;
	if (!json) {
		print_text(e);
		return e->n_failed ? CLI_FAILED : CLI_OK;
	}
	all = json_object_new_object();
	json_object_object_add(all, "holds", json_object_new_boolean(!e->n_failed));
	if (e->status)
		json_object_object_add(all, "status", json_object_new_string(e->status));
	json_object_object_add(all, "findings", json_object_get(e->findings));
	ret = cli_json_print(all);
	json_object_put(all);
	return ret ? ret : e->n_failed ? CLI_FAILED : CLI_OK;
}

/* ---- input ---- */

/* The elements of an array by the text under @key; with @number, "TEXT:NUMBER". */
static struct json_object *by(struct json_object *array, const char *key, const char *number)
{
	struct json_object *all = json_object_new_object();
	char name[160];

	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *o = json_object_array_get_idx(array, i);

		snprintf(name, sizeof(name), "%s%s%s", cli_json_text(o, key), number ? ":" : "",
		         number ? cli_json_text(o, number) : "");
		json_object_object_add(all, name, json_object_get(o));
	}
	return all;
}

/* The view of one key, as JSON; NULL: it did not come. */
static struct json_object *request_key(struct control_client *client, const char *rkey)
{
	char key[16];
	struct json_object *reply;
	int fd;

	snprintf(key, sizeof(key), "0x%lx", strtoul(rkey, NULL, 0));
	fd = cli_request_text(client, "key", key);
	reply = fd < 0 ? NULL : json_object_from_fd(fd);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && !reply)
		base_log("the daemon's key is no JSON");
	return reply;
}

/* Requests the views to look at for a key. False: a view did not come. */
static bool request_of_key(struct cli_explain *e, const char *rkey)
{
	e->findings = json_object_new_array();
	e->hosts = cli_request_json(e->client, "hosts");
	e->qps = e->hosts ? cli_request_json(e->client, "qps") : NULL;
	e->places = e->qps ? request_key(e->client, rkey) : NULL;
	if (!e->places)
		return false;
	e->by_host = by(e->hosts, "name", NULL);
	e->by_qpn = by(e->qps, "qpn", NULL);
	return true;
}

/* False: a view did not come. */
static bool request(struct cli_explain *e, bool groups)
{
	e->findings = json_object_new_array();
	e->hosts = cli_request_json(e->client, "hosts");
	e->topology = e->hosts ? cli_request_json(e->client, "topology") : NULL;
	e->ports = e->topology ? cli_request_json(e->client, "ports") : NULL;
	e->counters = e->ports ? cli_request_json(e->client, "counters") : NULL;
	e->texts = e->counters ? cli_request_json(e->client, "counter_texts") : NULL;
	e->qps = e->texts ? cli_request_json(e->client, "qps") : NULL;
	e->groups = e->qps && groups ? cli_request_json(e->client, "groups") : NULL;
	if (!e->qps || (groups && !e->groups))
		return false;
	e->by_host = by(e->hosts, "name", NULL);
	e->by_node = by(cli_json_array(e->topology, "nodes"), "name", NULL);
	e->keys_by_node = by(e->ports, "node", NULL);
	e->by_qpn = by(e->qps, "qpn", NULL);
	e->by_port = by(cli_json_array(e->counters, "ports"), "node", "port");
	return true;
}

static void put_all(struct cli_explain *e)
{
	json_object_put(e->findings);
	json_object_put(e->by_port);
	json_object_put(e->by_qpn);
	json_object_put(e->keys_by_node);
	json_object_put(e->by_node);
	json_object_put(e->by_host);
	json_object_put(e->places);
	json_object_put(e->groups);
	json_object_put(e->qps);
	json_object_put(e->texts);
	json_object_put(e->counters);
	json_object_put(e->ports);
	json_object_put(e->topology);
	json_object_put(e->hosts);
}

static int check_qp(const struct cli_command *self, const char *qp)
{
	return strchr(qp, ':') ? 0 : cli_usage_error(self, "'%s' is no HOST:QPN", qp);
}

/* Checks the options beside 'wc STATUS'. 0 or CLI_USAGE. */
static int check_status(const struct cli_command *self, const struct explain *x)
{
	if (x->words.n != 2 || strcmp(x->words.at[0], "wc") != 0)
		return cli_usage_error(self, "it takes no '%s' but in 'wc STATUS'",
		                       x->words.at[x->words.n > 2 ? 2 : 0]);
	if (x->from || x->to || x->group || x->rkey || x->host || x->op || x->address || x->length)
		return cli_usage_error(self, "'wc STATUS' goes with --qp alone");
	if (wire_status_parse(x->words.at[1]) < 0)
		return cli_usage_error(self, "'%s' is no status of completions, as RETRY_EXC or 12",
		                       x->words.at[1]);
	return x->qp ? check_qp(self, x->qp) : 0;
}

/* Checks which options go together. 0 or CLI_USAGE. */
static int check(const struct cli_command *self, const struct explain *x,
                 const struct cli_explain_rkey *key)
{
	struct cli_group group;

	if (x->qp && check_qp(self, x->qp))
		return CLI_USAGE;
	if (x->rkey && x->group)
		return cli_usage_error(self, "groups have no keys");
	if (x->rkey || x->host || x->op || x->address || x->length)
		return cli_explain_rkey_check(self, key);
	if (x->qp ? x->from || x->to || x->group : !x->from || (!x->to && !x->group))
		return cli_usage_error(
		        self, "which way? --from and --to, --group and --from, or --qp alone");
	if (x->group && !cli_group_parse(x->group, &group))
		return cli_usage_error(self, CLI_NO_GROUP, x->group);
	return 0;
}

/* False: a view did not come. */
static bool explain(struct cli_explain *e, const struct explain *x,
                    const struct cli_explain_rkey *key)
{
	struct cli_group group;
	const char *mgid;

	if (!(x->rkey ? request_of_key(e, x->rkey) : request(e, x->group)))
		return false;
	if (x->rkey) {
		cli_explain_rkey(e, key);
	} else if (x->qp) {
		cli_explain_qp(e, x->qp);
	} else if (x->group) {
		cli_group_parse(x->group, &group);
		mgid = cli_group_find(&group, e->groups);
		explain_group(e, x, mgid ? mgid : x->group);
	} else {
		explain_pair(e, x);
	}
	return true;
}

static int explain_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct explain *x = from;
	const struct cli_explain_rkey key = { x->rkey, x->host, x->from,    x->to,
		                              x->qp,   x->op,   x->address, x->length };
	struct cli_explain e = { 0 };
	int ret;

	(void)argc; /* take_word() has had them */
	(void)argv;
	if (x->words.n && !strcmp(x->words.at[0], "rule"))
		return cli_explain_rule(self, &x->words, x->json);
	if (x->words.n) {
		ret = check_status(self, x);
		if (ret || !x->qp)
			return ret ? ret : cli_explain_wc(x->words.at[1], x->json);
	} else {
		ret = check(self, x, &key);
	}
	if (!ret)
		ret = cli_connect(&e.client, cli_fabric_name(x->name));
	if (ret)
		return ret;
	if (x->words.n)
		ret = request(&e, false) ? cli_explain_wc_qp(&e, x->words.at[1], x->qp, x->json)
		                         : CLI_FAILED;
	else
		ret = explain(&e, x, &key) ? print(&e, x->json) : CLI_FAILED;
	put_all(&e);
	control_close(e.client);
	return ret;
}

/* 'wc' and a status, or 'rule' and a name, before or behind options. */
static int take_word(const struct cli_command *self, void *options, const char *word)
{
	struct explain *x = options;

	(void)self;
	return cli_list_add(&x->words, word);
}

const struct cli_command cli_explain = {
	.name = "explain",
	.summary = "say why a message does not arrive",
	.help = help,
	CLI_OPTIONS(options, struct explain),
	.word = take_word,
	.execute = explain_execute,
};
