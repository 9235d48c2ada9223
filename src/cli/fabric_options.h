/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options that describe a fabric: --hosts, --topology, --set and so on. `up`, `run` and
 * `daemon` have them. Single-threaded.
 */
#ifndef CLI_FABRIC_OPTIONS_H
#define CLI_FABRIC_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"
#include "cli/file.h"
#include "fabric/shape.h"

enum {
	CLI_HOSTS_DEFAULT = 4,
	CLI_HOSTS_MAX = 49151, /* there are no more LIDs */
	CLI_RADIX_DEFAULT = 36,
	CLI_ROCE_HOSTS_MAX = 1023, /* a bridge has no more ports */
};

struct cli_fabric_options {
	const char *name;
	long hosts, levels, radix; /* 0: not given */
	const char *roce;          /* names of network devices, with commas between; NULL: none */
	long roce_hosts;           /* 0: none */
	bool ipoib;                /* hosts have interfaces of IP over InfiniBand */
	uint16_t pkey[FABRIC_PLAN_PKEYS]; /* of partitions in which they have one, too */
	unsigned n_pkeys;
	bool own_networks; /* hosts have a network of their own; in the end */
	struct cli_file topology, partitions;
	const char *state;     /* a file for the subnet manager's state; NULL: none */
	char *state_path;      /* the same, absolute; in the end */
	const char **settings; /* "key=value", pointing into argv */
	unsigned n_settings;
};

/* Whether @opt is one of the options below. */
bool cli_is_fabric_option(int opt);

/* Stores one of them in @o. 0, or the exit status. */
int cli_fabric_option(const struct cli_command *cmd, struct cli_fabric_options *o, int opt,
                      const char *value);

/* After the last option: do they go together? Reads the files. 0, or the exit status. */
int cli_fabric_options_end(const struct cli_command *cmd, struct cli_fabric_options *o);
/* What they say of hosts, switches and links. Its text stays that of @o. */
struct fabric_shape cli_fabric_shape(const struct cli_fabric_options *o);

void cli_fabric_options_fini(struct cli_fabric_options *o);

/* clang-format off */
#define CLI_FABRIC_OPTIONS_INIT { .topology = { .fd = -1 }, .partitions = { .fd = -1 } }
#define CLI_FABRIC_LONG_OPTIONS \
	{ "hosts", required_argument, NULL, 'H' }, \
	{ "fat-tree", required_argument, NULL, 'F' }, \
	{ "radix", required_argument, NULL, 'R' }, \
	{ "topology", required_argument, NULL, 'T' }, \
	{ "partitions", required_argument, NULL, 'P' }, \
	{ "state", required_argument, NULL, 'K' }, \
	{ "sm", required_argument, NULL, 'S' }, \
	{ "roce", required_argument, NULL, 'E' }, \
	{ "roce-hosts", required_argument, NULL, 'O' }, \
	{ "ipoib", no_argument, NULL, 'I' }, \
	{ "ipoib-pkey", required_argument, NULL, 'Y' }, \
	{ "set", required_argument, NULL, 's' }
#define CLI_FABRIC_HELP \
	"      --hosts N         how many hosts (default: 4)\n" \
	"      --fat-tree LEVELS the switches form a fat tree of 2 or 3 levels; --hosts N then\n" \
	"                        means fewer hosts than there is room for\n" \
	"      --radix N         ports of a switch of the fat tree (default: 36)\n" \
	"      --topology FILE   hosts, switches and links as in FILE, which ibnetdiscover wrote,\n" \
	"                        or which ibsim reads\n" \
	"      --partitions FILE P_Keys of ports as in FILE, a partitions.conf of OpenSM\n" \
	"      --state FILE      keep LIDs and multicast groups in FILE, also when the fabric ends\n" \
	"                        and starts again\n" \
	"      --sm embedded|none  the subnet manager to start with (default: embedded); with\n" \
	"                        none ports stay in INIT until one is started on a host, such as\n" \
	"                        OpenSM, or by 'umbel sm start'\n" \
	"      --roce IFACE[,...] no switches: one host, with an HCA for each of these network\n" \
	"                        devices, which speaks RoCEv2 on it; with IFACE@HOST it is on a host\n" \
	"                        of the fabric; @HOST alone gets a port as hosts of --roce-hosts\n" \
	"      --roce-hosts N    so many hosts, r1, r2, ..., with RoCEv2 on an Ethernet of their own;\n" \
	"                        each host of the fabric then has a network of its own\n" \
	"      --ipoib           each host has a network of its own (a namespace), with IP over\n" \
	"                        InfiniBand, a host name, and the names of the others\n" \
	"      --ipoib-pkey PKEY with --ipoib: also an interface in this partition, such as\n" \
	"                        ib0.8001 for 0x8001, on hosts whose port is a member; as often as\n" \
	"                        needed\n" \
	"      --set KEY=VALUE   a setting of the fabric, as often as needed\n"
/* clang-format on */

#endif
