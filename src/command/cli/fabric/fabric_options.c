/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options that describe a fabric: see fabric_options.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/fabric/fabric_options.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "control/directory.h"
#include "wire/ib.h"

#define HOSTS_DEFAULT    4
#define HOSTS_MAX        49151 /* there are no more LIDs */
#define HCAS_MAX         256   /* FABRIC_MAX_HOST_PORTS */
#define RADIX_DEFAULT    36
#define ROCE_HOSTS_MAX   1023 /* a bridge has no more ports */
#define ROCE_HCAS_MAX    16   /* FABRIC_PLAN_ETHERNET_HCAS */
#define DEVICE_NAMES_MAX 18   /* with the number 255 for %d it fits UMAD_CA_NAME_LEN */
#define NAME_LETTERS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define DIGITS_OF(x)     #x
#define DIGITS(number)   DIGITS_OF(number)

int cli_store_name(const struct cli_value *v, void *name)
{
	cli_store_text(v, name);
	return cli_check_name(v->text);
}

int cli_store_setting(const struct cli_value *v, void *settings)
{
	if (!strchr(v->text, '=') || v->text[0] == '=')
		return cli_usage_error(v->cmd, "'%s' is no setting: write key=value", v->text);
	return cli_store_list(v, settings);
}

static int store_sm(const struct cli_value *v, void *settings)
{
	bool none = !strcmp(v->text, "none");

	if (!none && strcmp(v->text, "embedded"))
		return cli_usage_error(v->cmd, "no subnet manager '%s': embedded or none", v->text);
	return cli_list_add(settings, none ? "sm_embedded=0" : "sm_embedded=1");
}

static int store_radix(const struct cli_value *v, void *radix)
{
	int ret = cli_store_unsigned(v, radix);

	if (ret || *(unsigned *)radix % 2 == 0)
		return ret;
	return cli_usage_error(v->cmd, "'%s' %s", v->text, v->option->wrong);
}

static int store_device_names(const struct cli_value *v, void *names)
{
	const char *number = strstr(v->text, "%d");
	size_t length = strlen(v->text);

	cli_store_text(v, names);
	if (number && length <= DEVICE_NAMES_MAX && v->text[0] != '%' &&
	    strspn(v->text, NAME_LETTERS) == (size_t)(number - v->text) &&
	    strspn(number + 2, NAME_LETTERS) == strlen(number + 2))
		return 0;
	return cli_usage_error(v->cmd,
	                       "'%s': write names as 'mlx5_%%d', with %%d once, and up to %d "
	                       "letters, digits, '_' and '-'",
	                       v->text, DEVICE_NAMES_MAX - 2);
}

/* Stores a prefix that a subnet may have: the first byte 0xFF is of groups' addresses. */
static int store_prefix(const struct cli_value *v, void *to)
{
	char *end;
	unsigned long long prefix;

	errno = 0;
	prefix = strtoull(v->text, &end, 0);
	if (errno || end == v->text || *end || v->text[0] == '-' || !prefix || prefix >> 56 == 0xFF)
		return cli_usage_error(v->cmd, "'%s' is no prefix, as 0xfec0000000000001 is",
		                       v->text);
	*(uint64_t *)to = prefix;
	return 0;
}

/* Full and limited members are in the same partition. */
static int store_pkey(const struct cli_value *v, void *options)
{
	struct daemon_options *o = options;
	long number;

	if (base_parse_number(v->text, 1, UINT16_MAX, &number) || !(number & IB_PKEY_BASE_MASK))
		return cli_usage_error(v->cmd, "'%s' is no P_Key, as 0x8001 is", v->text);
	number |= IB_PKEY_FULL_MEMBER;
	if (number == IB_PKEY_DEFAULT)
		return cli_usage_error(v->cmd, "hosts have an interface in the default partition");
	for (unsigned i = 0; i < o->n_pkeys; i++)
		if (o->pkey[i] == number)
			return cli_usage_error(v->cmd, "--ipoib-pkey has 0x%04lx twice", number);
	if (o->n_pkeys == ARRAY_SIZE(o->pkey))
		return cli_usage_error(v->cmd, "hosts have interfaces in %zu partitions at most",
		                       ARRAY_SIZE(o->pkey));
	o->pkey[o->n_pkeys++] = (uint16_t)number;
	return 0;
}

/* Adds the numbers of the list, each of a @what: of a user or a group, which are of one size. */
static int add_ids(const struct cli_value *v, const char *what, bool (*is_known)(id_t id),
                   id_t ids[static DAEMON_IDS], unsigned *n)
{
	char *list = strdup(v->text), *rest = list, *text;
	int ret = list ? 0 : CLI_FAILED;
	long id;

	while (!ret && (text = strsep(&rest, ","))) {
		if (base_parse_number(text, 0, UINT32_MAX - 1, &id))
			ret = cli_usage_error(v->cmd, "'%s' is no number of a %s", text, what);
		else if (!is_known((id_t)id))
			ret = cli_usage_error(v->cmd,
			                      "in this user namespace %ld means all %ss that it "
			                      "has no number for",
			                      id, what);
		else if (*n == DAEMON_IDS)
			ret = cli_usage_error(v->cmd, "%u %ss may be named at most", DAEMON_IDS,
			                      what);
		else
			ids[(*n)++] = (id_t)id;
	}
	free(list);
	return ret;
}

static int store_users(const struct cli_value *v, void *options)
{
	struct daemon_options *o = options;

	return add_ids(v, "user", control_user_is_known, o->user, &o->n_users);
}

static int store_groups(const struct cli_value *v, void *options)
{
	struct daemon_options *o = options;

	return add_ids(v, "group", control_group_is_known, o->group, &o->n_groups);
}

/* The options that describe a fabric are given again to the daemon, which reads them by the same
 * rows: so each row here is written with STORE() or NUMBER(), which keep the option as given. */
/* clang-format off */
#define GIVEN .given = offsetof(struct cli_fabric_options, given)
#define STORE(how, member) CLI_STORE(how, struct cli_fabric_options, member), GIVEN
#define NUMBER(member, least, most) \
	CLI_STORE_TYPE(cli_store_unsigned, struct cli_fabric_options, member, unsigned), \
	.min = (least), .max = (most), GIVEN

const struct cli_option cli_shape_rows[] = {
	{ "      --hosts N         how many hosts (default: " DIGITS(HOSTS_DEFAULT) ")\n",
	  NUMBER(daemon.shape.hosts, 1, HOSTS_MAX), .wrong = "hosts: a fabric has 1 to " DIGITS(HOSTS_MAX) },
	{ "      --fat-tree LEVELS the switches form a fat tree of 2 or 3 levels; --hosts N then\n"
	  "                        means fewer hosts than there is room for\n",
	  NUMBER(daemon.shape.levels, 2, 3), .wrong = "levels: a fat tree has 2 or 3" },
	{ "      --radix N         ports of a switch of the fat tree (default: " DIGITS(RADIX_DEFAULT) ")\n",
	  STORE(store_radix, daemon.shape.radix), .min = 2, .max = 254,
	  .wrong = "ports: a fat tree's switch has 2 to 254, an even number" },
	{ "      --topology FILE   hosts, switches and links as in FILE, which ibnetdiscover wrote,\n"
	  "                        or which ibsim reads\n",
	  STORE(cli_store_text, topology.name) },
	{ 0 },
};

const struct cli_option cli_fabric_rows[] = {
	{ .more = cli_shape_rows },
	{ "      --hcas N          how many HCAs each of these hosts has (default: 1)\n",
	  NUMBER(daemon.shape.hcas, 1, HCAS_MAX), .wrong = "HCAs: a host has 1 to " DIGITS(HCAS_MAX) },
	{ "      --device-names NAMES  what HCAs are called on their hosts, such as 'mlx5_%d': the\n"
	  "                        first one of each host is mlx5_0\n",
	  STORE(store_device_names, daemon.shape.device_names) },
	{ "      --router HOST[,...]  these hosts are routers to other subnets (umbel-router(1))\n",
	  STORE(cli_store_text, daemon.shape.routers) },
	{ "      --prefix PREFIX   of the subnet's GIDs, 64 bits (default: 0xfe80000000000000, which\n"
	  "                        no router forwards to)\n",
	  STORE(store_prefix, daemon.shape.prefix) },
	{ "      --partitions FILE P_Keys of ports as in FILE, a partitions.conf of OpenSM\n",
	  STORE(cli_store_text, partitions.name) },
	{ "      --state FILE      keep LIDs and multicast groups in FILE, also when the fabric ends\n"
	  "                        and starts again\n",
	  CLI_TEXT(struct cli_fabric_options, daemon.state) },
	{ "      --sm embedded|none  the subnet manager to start with (default: embedded); with\n"
	  "                        none ports stay in INIT until one is started on a host, such as\n"
	  "                        OpenSM, or by 'umbel sm start'\n",
	  STORE(store_sm, settings) },
	{ "      --roce IFACE[,...] no switches: one host, with an HCA for each of these network\n"
	  "                        devices, which speaks RoCEv2 on it; with IFACE@HOST it is on a host\n"
	  "                        of the fabric; @HOST alone gets a port as hosts of --roce-hosts\n",
	  STORE(cli_store_text, daemon.roce) },
	{ "      --roce-hosts N    so many hosts, r1, r2, ..., with RoCEv2 on an Ethernet of their own;\n"
	  "                        each host of the fabric then has a network of its own\n",
	  NUMBER(daemon.roce_hosts, 1, ROCE_HOSTS_MAX),
	  .wrong = "hosts with RoCE: there may be 1 to " DIGITS(ROCE_HOSTS_MAX) },
	{ "      --ipoib           each host has a network of its own (a namespace), with IP over\n"
	  "                        InfiniBand, a host name, and the names of the others\n",
	  STORE(cli_store_flag, daemon.ipoib) },
	{ "      --ipoib-pkey PKEY with --ipoib: also an interface in this partition, such as\n"
	  "                        ib0.8001 for 0x8001, on hosts whose port is a member; as often as\n"
	  "                        needed\n",
	  STORE(store_pkey, daemon) },
	{ "      --allow-user UID[,...]  these users, by number, may enter the fabric, too, such as from\n"
	  "                        other containers; see umbel-up(1)\n",
	  STORE(store_users, daemon) },
	{ "      --allow-group GID[,...]  likewise the members of these groups\n",
	  STORE(store_groups, daemon) },
	{ "      --set KEY=VALUE   a setting of the fabric, as often as needed\n",
	  STORE(cli_store_setting, settings) },
	{ 0 },
};
/* clang-format on */

/* Devices without a host are a fabric of their own; those with hosts go with other options. */
static int check_roce(const struct cli_command *cmd, const struct cli_fabric_options *o)
{
	const struct fabric_shape *shape = &o->daemon.shape;
	const char *roce = o->daemon.roce;
	const char *other = shape->hosts         ? "--hosts"
	                    : shape->levels      ? "--fat-tree"
	                    : shape->hcas        ? "--hcas"
	                    : o->topology.name   ? "--topology"
	                    : shape->radix       ? "--radix"
	                    : o->partitions.name ? "--partitions"
	                                         : NULL;
	bool is_beside = strchr(roce, '@');

	if (other && !is_beside)
		return cli_usage_error(
		        cmd, "%s goes with --roce only if that says a host: --roce %.*s@HOST",
		        other, (int)strcspn(roce, ","), roce);
	for (const char *at = roce; at && is_beside;) {
		size_t bytes = strcspn(at, ",");

		if (!memchr(at, '@', bytes))
			return cli_usage_error(cmd, "which host has '%.*s'? %.*s@HOST", (int)bytes,
			                       at, (int)bytes, at);
		at = at[bytes] ? at + bytes + 1 : NULL;
	}
	return 0;
}

/* How many ports of the hosts' own Ethernet --roce asks for. */
static unsigned count_bridged(const char *roce)
{
	unsigned n = 0;

	for (const char *at = roce; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
		n += *at == '@';
	return n;
}

/* Whether the hosts' own Ethernet has room. */
static int check_ethernet(const struct cli_command *cmd, const struct daemon_options *d,
                          unsigned bridged)
{
	unsigned hcas = d->shape.hcas ? d->shape.hcas : 1;

	if (d->roce_hosts && hcas > ROCE_HCAS_MAX)
		return cli_usage_error(cmd, "hosts with RoCE have 1 to %d HCAs", ROCE_HCAS_MAX);
	if (d->roce_hosts * hcas + bridged > ROCE_HOSTS_MAX)
		return cli_usage_error(cmd, "the hosts' Ethernet has %d ports", ROCE_HOSTS_MAX);
	return 0;
}

/* How many hosts, and ports of a switch, if the options do not say it. */
static void set_default_shape(struct daemon_options *d)
{
	struct fabric_shape *shape = &d->shape;
	bool plain = !shape->hosts && !shape->levels && !d->ipoib; /* nothing is InfiniBand's */

	if (d->roce ? !strchr(d->roce, '@') : d->roce_hosts && plain)
		return;
	if (shape->levels && !shape->radix)
		shape->radix = RADIX_DEFAULT;
	if (!shape->levels && !shape->hosts)
		shape->hosts = HOSTS_DEFAULT;
}

/* Reads the files. 0 or CLI_FAILED. */
static int read_files(struct cli_fabric_options *o)
{
	struct daemon_options *d = &o->daemon;
	char *path;

	if (o->partitions.name && cli_file_read(&o->partitions))
		return CLI_FAILED;
	d->partitions = (struct partitions_file){ o->partitions.name, o->partitions.text,
		                                  o->partitions.bytes };
	if (d->state && cli_file_path(d->state, &path))
		return CLI_FAILED;
	d->state = d->state ? path : NULL;
	if (o->topology.name && cli_file_read(&o->topology))
		return CLI_FAILED;
	d->shape.topology = o->topology.name;
	d->shape.text = o->topology.text;
	d->shape.text_bytes = o->topology.bytes;
	return 0;
}

int cli_fabric_options_end(const struct cli_command *cmd, struct cli_fabric_options *o)
{
	struct daemon_options *d = &o->daemon;
	unsigned bridged = count_bridged(d->roce);
	int ret;

	if (o->topology.name &&
	    (d->shape.hosts || d->shape.hcas || d->shape.levels || d->shape.radix))
		return cli_usage_error(cmd, "%s does not go with --topology: the file says it",
		                       d->shape.hosts    ? "--hosts"
		                       : d->shape.hcas   ? "--hcas"
		                       : d->shape.levels ? "--fat-tree"
		                                         : "--radix");
	ret = d->roce ? check_roce(cmd, o) : 0;
	if (!ret)
		ret = check_ethernet(cmd, d, bridged);
	if (ret)
		return ret;
	if (d->n_pkeys && !d->ipoib)
		return cli_usage_error(cmd, "--ipoib-pkey needs --ipoib");
	if (d->shape.radix && !d->shape.levels)
		return cli_usage_error(cmd, "--radix needs --fat-tree");
	d->own_networks = d->ipoib || d->roce_hosts || bridged;
	d->settings = o->settings.at;
	d->n_settings = o->settings.n;
	ret = read_files(o);
	if (!ret && !o->topology.name)
		set_default_shape(d);
	return ret;
}
