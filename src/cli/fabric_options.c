/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options that describe a fabric: see fabric_options.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/fabric_options.h"
#include "cli/fabrics.h"
#include "wire/ib.h"

static int add_setting(const struct cli_command *cmd, struct cli_fabric_options *o,
                       const char *setting)
{
	const char **grown;

	if (!strchr(setting, '=') || setting[0] == '=')
		return cli_usage_error(cmd, "'%s' is no setting: write key=value", setting);
	grown = realloc(o->settings, (o->n_settings + 1) * sizeof(*grown));
	if (!grown) {
		base_log("%s", strerror(ENOMEM));
		return CLI_FAILED;
	}
	grown[o->n_settings++] = setting;
	o->settings = grown;
	return 0;
}

/* Full and limited members are in the same partition. */
static int add_pkey(const struct cli_command *cmd, struct cli_fabric_options *o, const char *value)
{
	long number;

	if (base_parse_number(value, 1, UINT16_MAX, &number) || !(number & IB_PKEY_BASE_MASK))
		return cli_usage_error(cmd, "'%s' is no P_Key, as 0x8001 is", value);
	number |= IB_PKEY_FULL_MEMBER;
	if (number == IB_PKEY_DEFAULT)
		return cli_usage_error(cmd, "hosts have an interface in the default partition");
	for (unsigned i = 0; i < o->n_pkeys; i++)
		if (o->pkey[i] == number)
			return cli_usage_error(cmd, "--ipoib-pkey has 0x%04lx twice", number);
	if (o->n_pkeys == ARRAY_SIZE(o->pkey))
		return cli_usage_error(cmd, "hosts have interfaces in %zu partitions at most",
		                       ARRAY_SIZE(o->pkey));
	o->pkey[o->n_pkeys++] = (uint16_t)number;
	return 0;
}

bool cli_is_fabric_option(int opt)
{
	return opt > 0 && opt < 128 && strchr("nHFRTPKSEOIYs", opt);
}

int cli_fabric_option(const struct cli_command *cmd, struct cli_fabric_options *o, int opt,
                      const char *value)
{
	switch (opt) {
	case 'n':
		o->name = value;
		return cli_check_name(value);
	case 'H':
		if (base_parse_number(value, 1, CLI_HOSTS_MAX, &o->hosts))
			return cli_usage_error(cmd, "'%s' hosts: a fabric has 1 to %d", value,
			                       CLI_HOSTS_MAX);
		return 0;
	case 'F':
		if (base_parse_number(value, 2, 3, &o->levels))
			return cli_usage_error(cmd, "'%s' levels: a fat tree has 2 or 3", value);
		return 0;
	case 'R':
		if (base_parse_number(value, 2, 254, &o->radix) || o->radix % 2)
			return cli_usage_error(
			        cmd, "'%s' ports: a fat tree's switch has 2 to 254, an even number",
			        value);
		return 0;
	case 'T':
		o->topology.name = value;
		return 0;
	case 'P':
		o->partitions.name = value;
		return 0;
	case 'K':
		o->state = value;
		return 0;
	case 'S':
		if (strcmp(value, "embedded") && strcmp(value, "none"))
			return cli_usage_error(cmd, "no subnet manager '%s': embedded or none",
			                       value);
		return add_setting(cmd, o, *value == 'n' ? "sm_embedded=0" : "sm_embedded=1");
	case 'E':
		o->roce = value;
		return 0;
	case 'O':
		if (base_parse_number(value, 1, CLI_ROCE_HOSTS_MAX, &o->roce_hosts))
			return cli_usage_error(cmd, "'%s' hosts with RoCE: there may be 1 to %d",
			                       value, CLI_ROCE_HOSTS_MAX);
		return 0;
	case 'I':
		o->ipoib = true;
		return 0;
	case 'Y':
		return add_pkey(cmd, o, value);
	default:
		return add_setting(cmd, o, value);
	}
}

/* Devices without a host are a fabric of their own; those with hosts go with other options. */
static int check_roce(const struct cli_command *cmd, const struct cli_fabric_options *o)
{
	const char *other = o->hosts             ? "--hosts"
	                    : o->levels          ? "--fat-tree"
	                    : o->topology.name   ? "--topology"
	                    : o->radix           ? "--radix"
	                    : o->partitions.name ? "--partitions"
	                                         : NULL;
	bool is_beside = strchr(o->roce, '@');

	if (other && !is_beside)
		return cli_usage_error(
		        cmd, "%s goes with --roce only if that says a host: --roce %.*s@HOST",
		        other, (int)strcspn(o->roce, ","), o->roce);
	for (const char *at = o->roce; at && is_beside;) {
		size_t bytes = strcspn(at, ",");

		if (!memchr(at, '@', bytes))
			return cli_usage_error(cmd, "which host has '%.*s'? %.*s@HOST", (int)bytes,
			                       at, (int)bytes, at);
		at = at[bytes] ? at + bytes + 1 : NULL;
	}
	return 0;
}

/* How many ports of the hosts' own Ethernet --roce asks for. */
static long count_bridged(const char *roce)
{
	long n = 0;

	for (const char *at = roce; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
		n += *at == '@';
	return n;
}

/* Whether nothing asks for InfiniBand. */
static bool is_plain(const struct cli_fabric_options *o)
{
	return !o->hosts && !o->levels && !o->ipoib;
}

int cli_fabric_options_end(const struct cli_command *cmd, struct cli_fabric_options *o)
{
	int ret;

	if (o->topology.name && (o->hosts || o->levels || o->radix))
		return cli_usage_error(cmd, "%s does not go with --topology: the file says it",
		                       o->hosts    ? "--hosts"
		                       : o->levels ? "--fat-tree"
		                                   : "--radix");
	ret = o->roce ? check_roce(cmd, o) : 0;
	if (ret)
		return ret;
	o->own_networks = o->ipoib || o->roce_hosts || count_bridged(o->roce);
	if (o->roce_hosts + count_bridged(o->roce) > CLI_ROCE_HOSTS_MAX)
		return cli_usage_error(cmd, "the hosts' Ethernet has %d ports", CLI_ROCE_HOSTS_MAX);
	if (o->n_pkeys && !o->ipoib)
		return cli_usage_error(cmd, "--ipoib-pkey needs --ipoib");
	if (o->radix && !o->levels)
		return cli_usage_error(cmd, "--radix needs --fat-tree");
	if (o->partitions.name && cli_file_read(&o->partitions))
		return CLI_FAILED;
	if (o->state && cli_file_path(o->state, &o->state_path))
		return CLI_FAILED;
	if (o->topology.name)
		return cli_file_read(&o->topology);
	if ((o->roce && !strchr(o->roce, '@')) || (!o->roce && o->roce_hosts && is_plain(o)))
		return 0;
	if (o->levels && !o->radix)
		o->radix = CLI_RADIX_DEFAULT;
	if (!o->levels && !o->hosts)
		o->hosts = CLI_HOSTS_DEFAULT;
	return 0;
}

struct fabric_shape cli_fabric_shape(const struct cli_fabric_options *o)
{
	return (struct fabric_shape){
		.hosts = (unsigned)o->hosts,
		.levels = (unsigned)o->levels,
		.radix = (unsigned)o->radix,
		.topology = o->topology.name,
		.text = o->topology.text,
		.text_bytes = o->topology.bytes,
	};
}

void cli_fabric_options_fini(struct cli_fabric_options *o)
{
	cli_file_fini(&o->topology);
	cli_file_fini(&o->partitions);
	free(o->state_path);
	free(o->settings);
	o->state_path = NULL;
	o->settings = NULL;
	o->n_settings = 0;
}
