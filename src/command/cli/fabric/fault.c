/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel fault`: faults of a running fabric, by rules. The daemon reads them
 * (daemon/detour/rules.h).
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/fabric/faults.h"
#include "cli/base/json.h"
#include "cli/base/options.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel fault [OPTION]... add|show|clear [RULE|NUMBER]\n"
        "\n"
        "Has packets of a running fabric get lost, come late, twice, damaged or out of order.\n"
        "A rule says which packets, and what happens to them:\n"
        "\n"
        "  qp=HOST:QPN psn=4 drop        the packet with PSN 4 that a queue pair sends\n"
        "  to=h2:* opcode=RC_ACKNOWLEDGE nth=3 drop    the third acknowledgement to host h2\n"
        "  link=sw1:3 loss=1% seed=5     each hundredth packet that crosses the link\n"
        "  group=ff12::1 delay=5ms       what is sent to a group\n"
        "  link=sw1:3 width=1x           a link is narrow\n"
        "\n"
        "What happens: drop, loss=P%, corrupt, duplicate, reorder, delay=TIME, ecn, nak=KIND.\n"
        "Which: qp=HOST:QPN, to=HOST:QPN, link=NODE:PORT, group=MGID, opcode=NAME; psn=N,\n"
        "round=N, nth=N, count=N, chance=P%, seed=N, after=TIME, until=TIME. RC and UC queue\n"
        "pairs that are connected already are not concerned: add the rules before. Their first\n"
        "ones from then on are HOST:#1, HOST:#2; psn=+0 is the first packet of a connection.\n"
        "Of calls: post=ERROR, receive=ERROR, wc=STATUS, made=STATUS wr_id=N, register=ERROR.\n"
        "Of management datagrams: mad=REQ, mad='SubnAdmSet(MCMemberRecord)'; host=, to=HOST:*.\n"
        "Of a link: width=1x, speed=SDR, errors=N, recoveries=N, flap=TIME; every=TIME. See\n"
        "umbel-fault(1).\n";

#define WORDS 64

struct fault {
	const char *name;
	bool json;
	const char *word[WORDS];
	unsigned n_words;
};

/* The words behind the first one, with blanks between. False: they are longer than any rule. */
static bool join(const struct fault *o, char *text, size_t len)
{
	size_t n = 0;

	for (unsigned i = 1; i < o->n_words && n < len; i++)
		n += (size_t)snprintf(text + n, len - n, "%s%s", i > 1 ? " " : "", o->word[i]);
	return n < len;
}

static int add(const struct cli_command *self, const struct fault *o, struct control_client *client)
{
	char rule[CONTROL_RULE_BYTES];
	unsigned number;
	int ret;

	if (o->n_words == 1)
		return cli_usage_error(self, "which packets, and what is to happen to them?");
	if (!join(o, rule, sizeof(rule)))
		return cli_usage_error(self, "the rule is too long");
	ret = cli_fault_add(client, rule, &number);
	if (!ret)
		printf("%u\n", number);
	return ret;
}

static int show(const struct fault *o, struct control_client *client)
{
	static const struct cli_column columns[] = {
		{ "RULE", "number", cli_add_text, 0 },
		{ "FIRED", "fired", cli_add_text, 0 },
		{ "FITTED", "fitted", cli_add_text, 0 },
		{ "TEXT", "rule", cli_add_text, 0 },
		{ 0 },
	};
	struct json_object *faults = cli_request_json(client, "faults");
	int ret;

	if (!faults)
		return CLI_FAILED;
	ret = o->json ? cli_json_print(faults) : cli_json_print_table(faults, columns, NULL);
	json_object_put(faults);
	return ret;
}

static int clear(const struct cli_command *self, const struct fault *o,
                 struct control_client *client)
{
	struct control_handle req = { 0 };
	long number = 0;
	int ret;

	if (o->n_words > 2)
		return cli_usage_error(self, "one rule at a time, not '%s' too", o->word[2]);
	if (o->n_words == 2 && base_parse_number(o->word[1], 1, INT32_MAX, &number))
		return cli_usage_error(self, "'%s' is no number of a rule", o->word[1]);
	req.handle = (uint32_t)number;
	ret = control_request(client, CONTROL_CLEAR_FAULT, &req, sizeof(req));
	if (!ret)
		return CLI_OK;
	if (ret == -ENOENT)
		base_log("there is no rule %ld", number);
	else
		base_log("cannot clear: %s", cli_refusal(ret));
	return CLI_FAILED;
}

static int take_word(const struct cli_command *self, void *options, const char *word)
{
	struct fault *o = options;

	if (o->n_words == WORDS)
		return cli_usage_error(self, "too many words");
	o->word[o->n_words++] = word;
	return 0;
}

static int fault_execute(const struct cli_command *self, void *options, int argc, char **argv)
{
	const struct fault *o = options;
	struct control_client *client;
	const char *what = o->n_words ? o->word[0] : "";
	int ret;

	(void)argc; /* take_word() has had them */
	(void)argv;
	if (strcmp(what, "add") && strcmp(what, "show") && strcmp(what, "clear"))
		return cli_usage_error(self,
		                       o->n_words ? "'add', 'show' or 'clear', not '%s'"
		                                  : "'add', 'show' or 'clear'?%s",
		                       what);
	if (!strcmp(what, "show") && o->n_words > 1)
		return cli_usage_error(self, "'show' shows all rules");
	if (o->json && strcmp(what, "show"))
		return cli_usage_error(self, "--json goes with show");
	ret = cli_connect(&client, cli_fabric_name(o->name));
	if (ret)
		return ret;
	ret = !strcmp(what, "add")    ? add(self, o, client)
	      : !strcmp(what, "show") ? show(o, client)
	                              : clear(self, o, client);
	control_close(client);
	return ret;
}

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct fault, name) },
	{ "      --json        of show: as JSON\n", CLI_FLAG(struct fault, json) },
	CLI_HELP_ROW,
};

const struct cli_command cli_fault = {
	.name = "fault",
	.summary = "have packets get lost or late, calls fail, and links be bad",
	.help = help,
	CLI_OPTIONS(options, struct fault),
	.word = take_word,
	.execute = fault_execute,
};
