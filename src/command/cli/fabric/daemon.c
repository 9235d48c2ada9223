/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel daemon`: the daemon itself, in the foreground. `umbel up` and `umbel run`
 * start it and pass the descriptors that these options name; a service manager starts
 * it without them. `umbel --help` does not list it.
 */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/base/environ.h"
#include "cli/fabric/fabric_options.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "control/directory.h"
#include "daemon/core/daemon.h"

static const char help[] =
        "Usage: umbel daemon [OPTION]...\n"
        "\n"
        "Runs the daemon of a fabric in the foreground. 'umbel up' does it in the background.\n";

struct options {
	struct cli_fabric_options fabric;
	const char *remove_dir;
};

static int store_fd(const struct cli_value *v, void *fd)
{
	long number;

	if (base_parse_number(v->text, 0, INT_MAX, &number))
		return cli_usage_error(v->cmd, "'%s' is no descriptor", v->text);
	*(int *)fd = (int)number;
	return 0;
}

static const struct cli_option options[] = {
	{ "  -n, --name NAME       the fabric (default: $UMBEL_FABRIC, else 'default')\n",
	  CLI_STORE(cli_store_name, struct options, fabric.daemon.fabric) },
	{ .more = cli_fabric_rows },
	{ "      --topology-fd FD  the text of the topology\n",
	  CLI_STORE(store_fd, struct options, fabric.topology.fd) },
	{ "      --partitions-fd FD  the text of the partitions\n",
	  CLI_STORE(store_fd, struct options, fabric.partitions.fd) },
	{ "      --ready-fd FD     gets notes and a zero byte when it serves, or the error\n",
	  CLI_STORE(store_fd, struct options, fabric.daemon.ready_fd) },
	{ "      --remove-dir DIR  removed, with what is in it, at the end\n",
	  CLI_TEXT(struct options, remove_dir) },
	{ .line = "  -h, --help            this text\n" },
};

/* Programs that the daemon starts find the fabric by the absolute path of its directory. */
static int fix_runtime_dir(void)
{
	char path[PATH_MAX];
	int ret = cli_runtime_dir(path);

	if (!ret)
		setenv("UMBEL_RUNTIME_DIR", path, 1);
	return ret;
}

static int daemon_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const pid_t owner = getppid();
	struct options *o = from;
	struct daemon_options *d = &o->fabric.daemon;
	int ret = 0;

	if (argc > 0)
		ret = cli_usage_error(self, "it takes no '%s'", argv[0]);
	if (!ret)
		ret = cli_fabric_options_end(self, &o->fabric);
	if (!ret && d->own_networks)
		ret = fix_runtime_dir();
	if (!ret) {
		d->fabric = cli_fabric_name(d->fabric);
		d->become = cli_exec_own;
		ret = daemon_main(d);
	}
	/* if it has failed, its owner reads the log first, and removes it */
	if (o->remove_dir && (!ret || getppid() != owner))
		control_remove_dir(o->remove_dir);
	return ret;
}

const struct cli_command cli_daemon = {
	.name = "daemon",
	.help = help,
	CLI_OPTIONS(options, struct options),
	.defaults = &(const struct options){ .fabric = CLI_FABRIC_DEFAULTS },
	.execute = daemon_execute,
};
