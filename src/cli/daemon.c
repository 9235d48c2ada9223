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
#include "cli/environ.h"
#include "cli/fabric_options.h"
#include "cli/fabrics.h"
#include "daemon/daemon.h"

static const char help[] =
        "Usage: umbel daemon [OPTION]...\n"
        "\n"
        "Runs the daemon of a fabric in the foreground. 'umbel up' does it in the background.\n"
        "\n"
        "  -n, --name NAME       the fabric (default: $UMBEL_FABRIC, else "
        "'default')\n" CLI_FABRIC_HELP "      --topology-fd FD  the text of the topology\n"
        "      --partitions-fd FD  the text of the partitions\n"
        "      --ready-fd FD     gets notes and a zero byte when it serves, or the error\n"
        "      --remove-dir DIR  removed, with what is in it, at the end\n"
        "  -h, --help            this text\n";

static int read_fd(const struct cli_command *self, const char *text, int *fd)
{
	long v;

	if (base_parse_number(text, 0, INT_MAX, &v))
		return cli_usage_error(self, "'%s' is no descriptor", text);
	*fd = (int)v;
	return 0;
}

/* Programs that the daemon starts find the fabric by the absolute path of its directory. */
static int fix_runtime_dir(void)
{
	char path[PATH_MAX];
	int ret = cli_runtime_dir(path);

	if (!ret)
		setenv("UMBEL_RUNTIME_DIR", path, 1);
	return ret;
}

static int daemon_run(const struct cli_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		CLI_FABRIC_LONG_OPTIONS,
		{ "topology-fd", required_argument, NULL, 't' },
		{ "partitions-fd", required_argument, NULL, 'p' },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "remove-dir", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct cli_fabric_options fabric = CLI_FABRIC_OPTIONS_INIT;
	struct daemon_options o = { .ready_fd = -1 };
	const char *remove_dir = NULL;
	const pid_t owner = getppid();
	int opt, ret = 0;

	while (!ret && (opt = getopt_long(argc, argv, "+:n:h", options, NULL)) != -1) {
		if (opt == 'r')
			ret = read_fd(self, optarg, &o.ready_fd);
		else if (opt == 'd')
			remove_dir = optarg;
		else if (opt == 't')
			ret = read_fd(self, optarg, &fabric.topology.fd);
		else if (opt == 'p')
			ret = read_fd(self, optarg, &fabric.partitions.fd);
		else if (cli_is_fabric_option(opt))
			ret = cli_fabric_option(self, &fabric, opt, optarg);
		else
			return cli_option_end(self, opt, argv);
	}
	if (!ret && optind < argc)
		ret = cli_usage_error(self, "it takes no '%s'", argv[optind]);
	if (!ret)
		ret = cli_fabric_options_end(self, &fabric);
	if (!ret && fabric.own_networks)
		ret = fix_runtime_dir();
	if (!ret) {
		o.fabric = cli_fabric_name(fabric.name);
		o.roce = fabric.roce;
		o.roce_hosts = (unsigned)fabric.roce_hosts;
		o.shape = cli_fabric_shape(&fabric);
		o.partitions =
		        (struct partitions_file){ fabric.partitions.name, fabric.partitions.text,
			                          fabric.partitions.bytes };
		o.state = fabric.state_path;
		o.settings = fabric.settings;
		o.n_settings = fabric.n_settings;
		o.ipoib = fabric.ipoib;
		o.pkey = fabric.pkey;
		o.n_pkeys = fabric.n_pkeys;
		o.own_networks = fabric.own_networks;
		o.become = cli_exec_own;
		fabric.topology.text = NULL; /* the daemon frees it */
		ret = daemon_main(&o);
	}
	if (remove_dir && (!ret || getppid() != owner)) /* else the owner does, and reads the log */
		cli_remove_dir(remove_dir);
	cli_fabric_options_fini(&fabric);
	return ret;
}

const struct cli_command cli_daemon = {
	.name = "daemon",
	.help = help,
	.run = daemon_run,
};
