/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel check`: proves that the tables of a subnet, of whichever subnet manager, are as they
 * should be. Where they come from is in subnet*.c, how they are judged in src/shared/check, what is
 * printed in findings.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/check/findings.h"
#include "cli/base/options.h"
#include "cli/check/subnet.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel check [OPTION]...\n"
        "\n"
        "Judges the switches' tables as they stand, whoever wrote them:\n"
        "\n"
        "  links            what has a link is active\n"
        "  lids             each port has LIDs of its own\n"
        "  paths            hosts reach each other\n"
        "  loops            no packet goes round in circles\n"
        "  switches         hosts and switches reach each other (a note)\n"
        "  deadlock         links do not wait for each other in circles, in any lane\n"
        "  deadlock-groups  nor with messages to groups\n"
        "  groups           members are reached once by each sender, nobody else is\n"
        "  partitions       no switch blocks a partition of hosts\n"
        "  mtu              no link between hosts has less than both (a note)\n"
        "  rate             likewise\n";

struct check {
	const char *name, *paths;
	struct cli_subnet_files files;
	struct cli_list except;
	long most, balance, sl;
	bool hosts_only, strict, json;
};

static const struct check defaults = { .files.topology.fd = -1, .most = 3 };

/* clang-format off */
static const struct cli_option options[] = {
	{ "  -n, --name NAME       the fabric (default: $UMBEL_FABRIC, else 'default')\n",
	  CLI_TEXT(struct check, name) },
	{ "      --topology FILE   no fabric: nodes and links as ibnetdiscover printed them\n",
	  CLI_TEXT(struct check, files.topology.name) },
	{ "      --lfts FILE       with --topology: the tables, as dump_lfts printed them\n",
	  CLI_TEXT(struct check, files.lfts) },
	{ "      --mfts FILE       with --topology: multicast tables, as dump_mfts printed them\n",
	  CLI_TEXT(struct check, files.mfts) },
	{ "      --paths FILE      the service levels of paths, as saquery -p printed them\n",
	  CLI_TEXT(struct check, paths) },
	{ "      --sl N            the service level of paths that may have any (default: 0)\n",
	  CLI_NUMBER(struct check, sl, 0, CHECK_SLS - 1) },
	{ "      --hosts-only      what hosts send to switches makes no links wait\n",
	  CLI_FLAG(struct check, hosts_only) },
	{ "      --except WHAT     what need not hold, as often as needed\n",
	  CLI_LIST(struct check, except) },
	{ "      --strict          notes are wrong, too\n", CLI_FLAG(struct check, strict) },
	{ "      --balance PERCENT a link may carry so much of the mean of its kind\n",
	  CLI_NUMBER(struct check, balance, 100, 1000000) },
	{ "      --most N          how many findings of each kind to show (default: 3)\n",
	  CLI_NUMBER(struct check, most, 0, CLI_FINDINGS_KEPT) },
	{ "      --json            as JSON\n", CLI_FLAG(struct check, json) },
	{ .line = "  -h, --help            this text\n" },
};
/* clang-format on */

static int read_except(const struct cli_command *self, const struct check *c, unsigned *excepted)
{
	for (unsigned i = 0; i < c->except.n; i++) {
		enum check_property p = check_property_find(c->except.at[i]);

		if (p == CHECK_PROPERTIES)
			return cli_usage_error(self, "'%s' is nothing that is checked",
			                       c->except.at[i]);
		*excepted |= 1u << p;
	}
	return 0;
}

static int check_options(const struct cli_command *self, const struct check *c)
{
	const struct cli_subnet_files *f = &c->files;

	if (!f->topology.name && (f->lfts || f->mfts))
		return cli_usage_error(self, "%s needs --topology", f->lfts ? "--lfts" : "--mfts");
	if (f->topology.name && !f->lfts)
		return cli_usage_error(self, "--topology needs --lfts");
	if (f->topology.name && c->name)
		return cli_usage_error(self, "--name does not go with --topology");
	return 0;
}

/* The subnet, from files or from the daemon. */
static int read_subnet(const struct check *c, struct cli_subnet *s)
{
	struct cli_subnet_files files = c->files;
	struct control_client *client;
	int ret;

	*s = (struct cli_subnet){ 0 };
	if (files.topology.name) {
		ret = cli_subnet_read_files(s, &files);
		cli_file_fini(&files.topology);
		return ret;
	}
	ret = cli_connect(&client, cli_fabric_name(c->name));
	if (ret)
		return ret;
	ret = cli_subnet_read(s, client);
	control_close(client);
	return ret;
}

static int judge(const struct check *c, struct cli_subnet *s, unsigned excepted)
{
	struct check_report report = { .keep = CLI_FINDINGS_KEPT };
	const struct cli_findings f = { .net = &s->net,
		                        .report = &report,
		                        .routing = s->routing,
		                        .excepted = excepted,
		                        .strict = c->strict,
		                        .most = c->most,
		                        .balance = c->balance };
	int ret;

	s->net.sl = (uint8_t)c->sl;
	s->net.hosts_only = c->hosts_only;
	ret = check_net_finish(&s->net);
	if (!ret)
		ret = check_run(&s->net, &report);
	if (ret) {
		base_log("%s", strerror(-ret));
		ret = CLI_FAILED;
	} else {
		ret = c->json ? cli_findings_json(&f) : cli_findings_text(&f);
	}
	check_report_fini(&report);
	return ret;
}

static int check(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct check *c = from;
	struct cli_subnet s;
	unsigned excepted = 0;
	int ret;

	if (argc > 0)
		return cli_usage_error(self, "it takes no '%s'", argv[0]);
	ret = check_options(self, c);
	if (!ret)
		ret = read_except(self, c, &excepted);
	if (ret)
		return ret;
	ret = read_subnet(c, &s);
	if (!ret && c->paths)
		ret = cli_subnet_read_paths(&s, c->paths);
	if (!ret)
		ret = judge(c, &s, excepted);
	cli_subnet_fini(&s);
	return ret;
}

const struct cli_command cli_check = {
	.name = "check",
	.summary = "prove that the switches' tables are as they should be",
	.help = help,
	CLI_OPTIONS(options, struct check),
	.defaults = &defaults,
	.execute = check,
};
