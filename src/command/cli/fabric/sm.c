/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel sm`: makes the subnet manager do what it rarely does by itself, to test programs.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/fabrics.h"
#include "cli/base/file.h"
#include "cli/base/options.h"
#include "cli/base/port.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel sm [OPTION]... start|stop\n"
        "       umbel sm [OPTION]... partitions FILE\n"
        "       umbel sm [OPTION]... event EVENT\n"
        "\n"
        "Starts the embedded subnet manager, or stops it as if it were killed: it says nothing to\n"
        "anybody. Beside others, such as OpenSM on a host, the one with the higher priority is "
        "the\n"
        "master (setting sm_priority; of equals the one with the lower GUID), the rest stand by.\n"
        "\n"
        "Or gives ports other P_Keys, as FILE says, a partitions.conf of OpenSM, in place of "
        "those\n"
        "of 'umbel up --partitions'. Programs hear of it (IBV_EVENT_PKEY_CHANGE).\n"
        "\n"
        "Or has it do something that programs on a port hear of, by verbs\n"
        "(ibv_get_async_event) and by rdma_cm (members get MULTICAST_ERROR and must join anew):\n"
        "\n"
        "  lid-change HOST:PORT          gives the port another LID\n"
        "  client-reregister HOST:PORT   asks it to register anew\n"
        "  sm-change                     moves on to another host's port\n";

static const struct event {
	const char *name;
	enum control_sm_event_type type;
	bool has_port;
} events[] = {
	{ "lid-change", CONTROL_SM_LID_CHANGE, true },
	{ "client-reregister", CONTROL_SM_CLIENT_REREGISTER, true },
	{ "sm-change", CONTROL_SM_CHANGE, false },
};

static const struct event start = { "start", CONTROL_SM_START, false };
static const struct event stop = { "stop", CONTROL_SM_STOP, false };

static const struct event *find_event(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	return NULL;
}

static int refused(struct control_client *client, const struct event *e,
                   const struct cli_port *port, int error)
{
	switch (error) {
	case -ESRCH:
		base_log("the embedded subnet manager is not the master");
		break;
	case -EALREADY:
		base_log("the embedded subnet manager %s",
		         e->type == CONTROL_SM_START ? "runs already" : "does not run");
		break;
	case -EOPNOTSUPP:
		base_log("RoCE has no subnet manager");
		break;
	case -EBUSY:
		base_log("no port is left for the embedded subnet manager");
		break;
	default:
		if (e->has_port)
			return cli_port_refused(client, port, error);
		base_log("%s: %s", e->name, cli_refusal(error));
	}
	return CLI_FAILED;
}

static int send_event(const char *fabric, const struct event *e, const struct cli_port *port)
{
	struct control_client *client;
	int ret = cli_connect(&client, fabric);

	if (ret)
		return ret;
	ret = control_sm_event(client, e->type, port->node, port->port);
	if (ret)
		ret = refused(client, e, port, ret);
	control_close(client);
	return ret;
}

static int send_partitions(const char *fabric, const char *name)
{
	struct cli_file file = { .name = name, .fd = -1 };
	struct control_client *client;
	char why[512] = "";
	int fd, ret = cli_file_read(&file);

	if (ret)
		return ret;
	fd = cli_file_fd(&file);
	cli_file_fini(&file);
	if (fd < 0) {
		base_log("%s", strerror(-fd));
		return CLI_FAILED;
	}
	ret = cli_connect(&client, fabric);
	if (!ret) {
		ret = control_partitions(client, name, fd, why);
		if (ret)
			base_log("%s", *why ? why : cli_refusal(ret));
		control_close(client);
		ret = ret ? CLI_FAILED : CLI_OK;
	}
	close(fd);
	return ret;
}

static int sm_execute(const struct cli_command *self, void *options, int argc, char **argv)
{
	const char *fabric = cli_fabric_name(((struct cli_name_options *)options)->name);
	struct cli_port port = { 0 };
	const struct event *e;

	e = argc < 1                    ? NULL
	    : !strcmp(argv[0], "start") ? &start
	    : !strcmp(argv[0], "stop")  ? &stop
	                                : NULL;
	if (e && argc > 1)
		return cli_usage_error(self, "%s takes no '%s'", e->name, argv[1]);
	if (e)
		return send_event(fabric, e, &port);
	if (argc == 2 && !strcmp(argv[0], "partitions"))
		return send_partitions(fabric, argv[1]);
	if (argc < 1 || strcmp(argv[0], "event"))
		return cli_usage_error(self, "write: start, stop, partitions FILE or event EVENT");
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
	.summary = "start or stop the subnet manager, have it do something",
	.help = help,
	CLI_OPTIONS(cli_name_options, struct cli_name_options),
	.execute = sm_execute,
};
