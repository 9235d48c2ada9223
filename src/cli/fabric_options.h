/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options that describe a fabric: --hosts, --topology, --set and so on. `up`, `run` and
 * `daemon` have them, `simulate` has some. Their struct begins with a struct cli_fabric_options.
 * Single-threaded.
 */
#ifndef CLI_FABRIC_OPTIONS_H
#define CLI_FABRIC_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"
#include "cli/file.h"
#include "fabric/shape.h"

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
	const char *state;        /* a file for the subnet manager's state; NULL: none */
	char *state_path;         /* the same, absolute; in the end */
	struct cli_list settings; /* "key=value" */
	struct cli_list given;    /* as words for the daemon, without name and state */
};

extern const struct cli_option cli_shape_rows[];  /* hosts, switches and links */
extern const struct cli_option cli_fabric_rows[]; /* these and all others but the name */

/* Take a name of a fabric, and one of its settings. */
int cli_store_name(const struct cli_value *v, void *name);
int cli_store_setting(const struct cli_value *v, void *settings);

/* After the last option: do they go together? Reads the files. 0, or the exit status. */
int cli_fabric_options_end(const struct cli_command *cmd, struct cli_fabric_options *o);
/* What they say of hosts, switches and links. Its text stays that of @o. */
struct fabric_shape cli_fabric_shape(const struct cli_fabric_options *o);

/* clang-format off */
#define CLI_FABRIC_DEFAULTS { .topology = { .fd = -1 }, .partitions = { .fd = -1 } }
/* clang-format on */

#endif
