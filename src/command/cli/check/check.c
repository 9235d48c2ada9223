/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel check`: proves that the tables of a subnet, of whichever subnet manager, are as they
 * should be. Where they come from is in subnet*.c, how they are judged in src/shared/check, what is
 * printed in findings.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/check/findings.h"
#include "cli/check/levels.h"
#include "cli/base/options.h"
#include "cli/check/subnet.h"
#include "control/client.h"

#define LOOK_AGAIN_S 2
#define MOST_LOOKS   5
#define OF_GROUPS    (1u << CHECK_GROUPS | 1u << CHECK_DEADLOCK_GROUPS)

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

/* ---- one look ---- */

/* A subnet as it was read, and what was found. */
struct look {
	struct cli_subnet s;
	struct check_report report;
	const char *levels; /* of where service levels are from */
};

static bool has_circles(const struct check_report *r)
{
	return r->result[CHECK_DEADLOCK].found || r->result[CHECK_DEADLOCK_GROUPS].found;
}

static int run(struct look *l)
{
	check_report_fini(&l->report);
	l->report = (struct check_report){ .keep = CLI_FINDINGS_KEPT };
	return check_run(&l->s.net, &l->report);
}

/* Has the subnet administrator asked, if it may know service levels that we do not. */
static void ask_levels(const struct check *c, struct look *l)
{
	int ret;

	if (c->files.topology.name || !l->s.foreign) {
		l->levels = "";
		return;
	}
	ret = cli_levels_ask(&l->s, cli_fabric_name(c->name));
	if (!ret)
		l->levels = "the subnet administrator tells service levels";
	else if (ret == -ENXIO || ret == -ETIMEDOUT)
		l->levels = "no subnet administrator responds";
	else
		l->levels = "the subnet administrator cannot be asked";
}

/*
 * Service levels decide only where links would wait for each other if all lanes were one, or where
 * a port has no lane for some. So they are asked for only then: a table for each host is much on a
 * large fabric. 0 or -ENOMEM.
 */
static int judge(const struct check *c, struct look *l)
{
	struct check_net *net = &l->s.net;
	int ret = check_net_finish(net);

	net->sl = (uint8_t)c->sl;
	net->hosts_only = c->hosts_only;
	net->one_lane = !l->s.levels && !check_net_drops(net);
	if (c->paths)
		l->levels = "the file tells service levels";
	else
		l->levels = l->s.levels ? "the subnet manager tells service levels"
		                        : "whatever service levels packets have";
	if (!l->s.levels && !net->one_lane)
		ask_levels(c, l);
	if (!ret)
		ret = run(l);
	if (ret || !net->one_lane || !has_circles(&l->report))
		return ret;
	net->one_lane = false;
	ask_levels(c, l);
	return run(l);
}

static void look_end(struct look *l)
{
	check_report_fini(&l->report);
	cli_subnet_fini(&l->s);
}

/* Reads and judges. 0 or CLI_FAILED; look_end() is due in any case. */
static int look(const struct check *c, struct look *l)
{
	int ret;

	*l = (struct look){ .levels = "" };
	ret = read_subnet(c, &l->s);
	if (!ret && c->paths)
		ret = cli_subnet_read_paths(&l->s, c->paths);
	if (ret)
		return ret;
	ret = judge(c, l);
	if (ret)
		base_log("%s", strerror(-ret));
	return ret ? CLI_FAILED : 0;
}

/* ---- looks at what changes ---- */

static bool are_same(const struct check_result *a, const struct check_result *b)
{
	bool same = a->found == b->found && a->n == b->n;

	for (unsigned i = 0; i < a->n && same; i++)
		same = !strcmp(a->text[i], b->text[i]);
	return same;
}

static bool groups_wrong(const struct check_report *r)
{
	return r->result[CHECK_GROUPS].found || r->result[CHECK_DEADLOCK_GROUPS].found;
}

/*
 * Looks again as long as groups are wrong, and not as they were: a subnet manager that has just
 * heard of a member writes one table after the other. A fault counts if it is found twice, some
 * time apart.
 */
static int look_again(const struct check *c, struct look *l)
{
	int ret = 0;

	for (unsigned i = 0; i < MOST_LOOKS && !ret && groups_wrong(&l->report); i++) {
		const struct timespec pause = { .tv_sec = LOOK_AGAIN_S };
		struct look next;
		bool same;

		nanosleep(&pause, NULL);
		ret = look(c, &next);
		same = !ret &&
		       are_same(&l->report.result[CHECK_GROUPS],
		                &next.report.result[CHECK_GROUPS]) &&
		       are_same(&l->report.result[CHECK_DEADLOCK_GROUPS],
		                &next.report.result[CHECK_DEADLOCK_GROUPS]);
		look_end(l);
		*l = next;
		if (same)
			break;
	}
	return ret;
}

static int tell(const struct check *c, const struct look *l, unsigned excepted)
{
	const struct cli_findings f = { .net = &l->s.net,
		                        .report = &l->report,
		                        .routing = l->s.routing,
		                        .levels = l->levels,
		                        .excepted = excepted,
		                        .strict = c->strict,
		                        .most = c->most,
		                        .balance = c->balance };

	return c->json ? cli_findings_json(&f) : cli_findings_text(&f);
}

static int check(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct check *c = from;
	struct look l;
	unsigned excepted = 0;
	int ret;

	if (argc > 0)
		return cli_usage_error(self, "it takes no '%s'", argv[0]);
	ret = check_options(self, c);
	if (!ret)
		ret = read_except(self, c, &excepted);
	if (ret)
		return ret;
	ret = look(c, &l);
	if (!ret && !c->files.topology.name && (excepted & OF_GROUPS) != OF_GROUPS)
		ret = look_again(c, &l);
	if (!ret)
		ret = tell(c, &l, excepted);
	look_end(&l);
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
