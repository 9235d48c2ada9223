/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel router`: joins two fabrics by a router.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reason.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "cli/base/port.h"
#include "control/client.h"
#include "control/message.h"

static const char help[] =
        "Usage: umbel router [OPTION]... FABRIC[:HOST] FABRIC[:HOST]\n"
        "\n"
        "Joins two fabrics of this machine, each a subnet with a prefix of its own, by a router:\n"
        "datagrams with a GRH go from one to the other, to ports and to groups wider than the\n"
        "link. HOST is one that 'umbel up --router' has made a router; without it, any that is\n"
        "free. It lasts as long as both fabrics; 'umbel show routers' shows it.\n";

struct router {
	bool end;
};

static const struct cli_option options[] = {
	{ "      --end         what FABRIC:HOST routes ends; one of the two ends is enough\n",
	  CLI_FLAG(struct router, end) },
	CLI_HELP_ROW,
};

/* One end, as the command line says it. */
struct end {
	char fabric[CLI_NAME_MAX + 1];
	const char *host; /* "": any */
	struct control_client *client;
};

static int read_end(const struct cli_command *self, const char *text, struct end *end)
{
	const size_t n = strcspn(text, ":");

	if (n >= sizeof(end->fabric))
		return cli_usage_error(self, "'%s': no fabric has so long a name", text);
	memcpy(end->fabric, text, n);
	end->fabric[n] = '\0';
	end->host = text[n] ? text + n + 1 : "";
	return cli_check_name(end->fabric);
}

static int refused(const struct end *end, int error)
{
	char why[BASE_REASON_MAX];

	base_reason_take(error, why);
	if (error == -EBUSY)
		base_log("fabric '%s': each router is in use%s%s", end->fabric,
		         *end->host ? ": " : "", end->host);
	else
		base_log("fabric '%s': %s", end->fabric, *why ? why : cli_refusal(error));
	return CLI_FAILED;
}

static int join(struct end *end, const struct end *other, int fd,
                struct control_router_reply *reply)
{
	int ret = control_join_router(end->client, end->host, other->fabric, fd, reply);

	return ret ? refused(end, ret) : 0;
}

static int join_both(struct end end[2], int fd[2])
{
	struct control_router_reply reply[2] = { 0 };
	int ret = join(&end[0], &end[1], fd[0], &reply[0]);

	if (!ret)
		ret = join(&end[1], &end[0], fd[1], &reply[1]);
	if (ret)
		return ret;
	if (reply[0].prefix == reply[1].prefix) {
		base_log("'%s' and '%s' are subnets with the same prefix, 0x%016llx: start one "
		         "with another --prefix",
		         end[0].fabric, end[1].fabric, (unsigned long long)reply[0].prefix);
		return CLI_FAILED;
	}
	printf("%s:%.32s (0x%016llx) and %s:%.32s (0x%016llx) are joined\n", end[0].fabric,
	       reply[0].node, (unsigned long long)reply[0].prefix, end[1].fabric, reply[1].node,
	       (unsigned long long)reply[1].prefix);
	return 0;
}

static int execute_join(struct end end[2])
{
	int fd[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0) {
		base_log("no socket for the router: %s", strerror(errno));
		return CLI_FAILED;
	}
	ret = join_both(end, fd);
	/* the daemons have copies; if one has none, the other's end sees that now */
	close(fd[0]);
	close(fd[1]);
	return ret;
}

static int execute_end(const struct end *end)
{
	int ret = control_end_router(end->client, end->host);

	return ret ? refused(end, ret) : 0;
}

static int router_execute(const struct cli_command *self, void *given, int argc, char **argv)
{
	const struct router *o = given;
	const int want = o->end ? 1 : 2;
	struct end end[2] = { 0 };
	int ret = 0;

	if (argc != want)
		return cli_usage_error(self, o->end ? "which router? write FABRIC:HOST"
		                                    : "which two fabrics?");
	for (int i = 0; i < want && !ret; i++)
		ret = read_end(self, argv[i], &end[i]);
	if (!ret && o->end && !*end[0].host)
		return cli_usage_error(self, "which router? write FABRIC:HOST");
	for (int i = 0; i < want && !ret; i++)
		ret = cli_connect(&end[i].client, end[i].fabric);
	if (!ret)
		ret = o->end ? execute_end(&end[0]) : execute_join(end);
	for (int i = 0; i < want; i++)
		if (end[i].client)
			control_close(end[i].client);
	return ret;
}

const struct cli_command cli_router = {
	.name = "router",
	.summary = "join two fabrics by a router",
	.help = help,
	CLI_OPTIONS(options, struct router),
	.execute = router_execute,
};
