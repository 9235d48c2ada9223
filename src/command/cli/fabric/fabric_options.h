/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options that describe a fabric: --hosts, --topology, --set and so on. `up`, `run` and
 * `daemon` have them, `simulate` has some. Their struct begins with a struct cli_fabric_options.
 * Single-threaded.
 */
#ifndef CLI_FABRIC_OPTIONS_H
#define CLI_FABRIC_OPTIONS_H

#include "cli/base/command.h"
#include "cli/base/file.h"
#include "cli/base/options.h"
#include "daemon/core/daemon.h"

struct cli_fabric_options {
	struct daemon_options daemon; /* of the shape, 0: not given */
	struct cli_file topology, partitions;
	struct cli_list settings;
	struct cli_list given; /* as words for the daemon, without name and state */
};

extern const struct cli_option cli_shape_rows[];  /* hosts, switches and links */
extern const struct cli_option cli_fabric_rows[]; /* these and all others but the name */

/* Take a name of a fabric, and one of its settings. */
int cli_store_name(const struct cli_value *v, void *name);
int cli_store_setting(const struct cli_value *v, void *settings);

/* After the last option: do they go together? Reads the files, and completes what the daemon gets.
 * 0, or the exit status. */
int cli_fabric_options_end(const struct cli_command *cmd, struct cli_fabric_options *o);

/* clang-format off */
#define CLI_FABRIC_DEFAULTS \
	{ .daemon = { .ready_fd = -1 }, .topology = { .fd = -1 }, .partitions = { .fd = -1 } }
/* clang-format on */

#endif
