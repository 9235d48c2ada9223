/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel up`: starts a fabric that stays until `umbel down`. It returns when the
 * fabric can be used.
 */
#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "base/weak.h"
#include "cli/fabric/daemon_process.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/options.h"
#include "cli/base/signals.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel up [OPTION]...\n"
        "\n"
        "Starts a fabric: hosts h1, h2, ... with one HCA each, 10.0.0.1, 10.0.0.2, ..., on one\n"
        "switch, or on as many as it takes, with a subnet manager. It stays until 'umbel down'.\n";

/* Whether a daemon of that name is up; if so, says it. */
static bool is_up(const char *name)
{
	struct control_client *client;
	struct json_object *status;
	int ret = cli_try_connect(&client, name);

	if (ret == -ETIMEDOUT)
		cli_say_silent(name);
	if (ret)
		return ret == -ETIMEDOUT;
	status = cli_request_json(client, "status");
	control_close(client);
	base_log("fabric '%s' is already up (pid %ld); 'umbel down%s' ends it", name,
	         status ? cli_json_number(status, "pid") : 0, cli_name_option(name));
	json_object_put(status);
	return true;
}

/* How many hosts the fabric has: only the daemon knows what the options come to. */
static long count_hosts(const char *name)
{
	struct control_client *client;
	struct json_object *status;
	long n = 0;

	if (cli_try_connect(&client, name))
		return 0;
	status = cli_request_json(client, "status");
	control_close(client);
	if (status)
		n = cli_json_number(status, "hosts");
	json_object_put(status);
	return n;
}

/* The signals that end us come by a descriptor, those that are ignored not at all. -1: they end us
 * at once, as one may be denied it. */
static int open_signals(sigset_t *old)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, old);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		sigprocmask(SIG_SETMASK, old, NULL);
	return fd;
}

/* Starts the daemon; a signal ends it again, and then us. 0 or CLI_FAILED. */
static int start_daemon(struct cli_daemon_process *daemon, const struct cli_fabric_options *fabric)
{
	struct cli_daemon_process_start how = { .fabric = fabric };
	int ret, number = 0;
	sigset_t old;
	bool typed;

	how.interrupt_fd = open_signals(&old);
	ret = cli_daemon_process_start(daemon, &how);
	if (how.interrupt_fd < 0)
		return ret;
	number = cli_signals_next(how.interrupt_fd, &typed);
	if (number && !ret) { /* it came at the last moment */
		kill(daemon->pid, SIGTERM);
		cli_daemon_process_stop(daemon);
		if (daemon->stuck)
			cli_daemon_process_remove_leftovers(fabric->daemon.fabric);
		cli_daemon_process_remove_log(fabric->daemon.fabric);
	}
	close(how.interrupt_fd);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (number)
		raise(number);
	return number ? CLI_FAILED : ret;
}

static int start(const struct cli_fabric_options *fabric)
{
	const char *name = fabric->daemon.fabric;
	struct cli_daemon_process daemon;
	long hosts;

	if (cli_check_name(name))
		return CLI_USAGE;
	if (is_up(name) || start_daemon(&daemon, fabric))
		return CLI_FAILED;
	hosts = count_hosts(name);
	printf("fabric '%s' is up: %ld host%s, daemon pid %d\n", name, hosts, hosts == 1 ? "" : "s",
	       (int)daemon.pid);
	return CLI_OK;
}

/* The daemon is told as of any setting. */
static int store_checked(const struct cli_value *v, void *to)
{
	struct cli_list *given = to;
	int ret = cli_list_add(given, "--set");

	(void)v;
	return ret ? ret : cli_list_add(given, "checked=1");
}

static int store_weak(const struct cli_value *v, void *to)
{
	char setting[2][32], why[200];
	struct cli_list *given = to;
	struct base_weak w;
	int ret = 0;

	if (!base_weak_parse(v->text, &w, why, sizeof(why)))
		return cli_usage_error(v->cmd, "--weak: %s", why);
	snprintf(setting[0], sizeof(setting[0]), "weak=%u", w.kinds);
	snprintf(setting[1], sizeof(setting[1]), "weak_seed=%u", w.seed);
	for (unsigned i = 0; i < ARRAY_SIZE(setting) && !ret; i++) {
		char *kept = strdup(setting[i]); /* as long as the command runs */

		ret = kept ? cli_list_add(given, "--set") : CLI_FAILED;
		ret = ret ? ret : cli_list_add(given, kept);
	}
	return ret;
}

static const struct cli_option options[] = {
	{ "  -n, --name NAME       its name (default: $UMBEL_FABRIC, else 'default')\n",
	  CLI_STORE(cli_store_name, struct cli_fabric_options, daemon.fabric) },
	{ .more = cli_fabric_rows },
	{ "      --checked         programs on it are checked, as by 'umbel exec --checked'\n",
	  CLI_STORE(store_checked, struct cli_fabric_options, given) },
	{ "      --weak SEED           it does what the specification allows, as by 'umbel run "
	  "--weak'\n",
	  CLI_STORE(store_weak, struct cli_fabric_options, given) },
	{ .line = "  -h, --help            this text\n" },
};

static int up_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	struct cli_fabric_options *fabric = from;
	int ret;

	if (argc > 0)
		return cli_usage_error(self, "it takes no '%s'", argv[0]);
	fabric->daemon.fabric = cli_fabric_name(fabric->daemon.fabric);
	ret = cli_fabric_options_end(self, fabric);
	return ret ? ret : start(fabric);
}

const struct cli_command cli_up = {
	.name = "up",
	.summary = "start a fabric",
	.help = help,
	CLI_OPTIONS(options, struct cli_fabric_options),
	.defaults = &(const struct cli_fabric_options)CLI_FABRIC_DEFAULTS,
	.execute = up_execute,
};
