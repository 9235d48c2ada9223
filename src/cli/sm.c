/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel sm`: has the subnet manager do what it rarely does by itself, so that a
 * program can be tested with it.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/port.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel sm [OPTION]... event EVENT\n"
        "\n"
        "Has the subnet manager do something that programs on a port hear of, by verbs\n"
        "(ibv_get_async_event) and by rdma_cm (members get MULTICAST_ERROR and must join anew):\n"
        "\n"
        "  lid-change HOST:PORT          gives the port another LID\n"
        "  client-reregister HOST:PORT   asks it to register anew\n"
        "  sm-change                     moves on to another host's port\n"
        "\n"
        "  -n, --name NAME   the fabric (default: $UMBEL_FABRIC, else 'default')\n"
        "  -h, --help        this text\n";

static const struct event {
	const char *name;
	enum control_sm_event_type type;
	bool has_port;
} events[] = {
	{ "lid-change", CONTROL_SM_LID_CHANGE, true },
	{ "client-reregister", CONTROL_SM_CLIENT_REREGISTER, true },
	{ "sm-change", CONTROL_SM_CHANGE, false },
};

static const struct event *find_event(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	return NULL;
}

static int send_event(const char *fabric, const struct event *e, const struct cli_port *port)
{
	struct control_client *client;
	int ret = cli_connect(&client, fabric);

	if (ret)
		return ret;
	ret = control_sm_event(client, e->type, port->node, port->port);
	if (ret && e->has_port) {
		ret = cli_port_refused(client, port, ret);
	} else if (ret) {
		base_log("%s: %s", e->name, strerror(-ret));
		ret = CLI_FAILED;
	}
	control_close(client);
	return ret;
}

static int sm_run(const struct cli_command *self, int argc, char **argv)
{
	struct cli_port port = { 0 };
	const struct event *e;
	const char *fabric;
	int status;

	if (cli_words(self, argc, argv, &fabric, &status))
		return status;
	argc -= optind;
	argv += optind;
	if (argc < 1 || strcmp(argv[0], "event"))
		return cli_usage_error(self, "write: umbel sm event EVENT");
	if (argc < 2)
		return cli_usage_error(self, "which? lid-change, client-reregister or sm-change");
	e = find_event(argv[1]);
	if (!e)
		return cli_usage_error(
		        self, "no '%s': there are lid-change, client-reregister and sm-change",
		        argv[1]);
	if (e->has_port && argc < 3)
		return cli_usage_error(self, "which port? write HOST:PORT, as in h2:1");
	if (argc > 2 + e->has_port)
		return cli_usage_error(self, "%s takes no '%s'", e->name, argv[2 + e->has_port]);
	if (e->has_port && cli_port_parse(self, argv[2], &port))
		return CLI_USAGE;
	return send_event(fabric, e, &port);
}

const struct cli_command cli_sm = {
	.name = "sm",
	.summary = "have the subnet manager do something to a port",
	.help = help,
	.run = sm_run,
};
