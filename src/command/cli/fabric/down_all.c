/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel down --all`: see down.h. Other jobs of the same user may have fabrics, too: so the
 * command says what it would end, and leaves fabrics on which programs run. Single-threaded.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/fabric/daemon_process.h"
#include "cli/fabric/down.h"
#include "control/client.h"

struct found {
	char name[CLI_NAME_MAX + 1];
	long programs; /* -1: the daemon does not say */
};

struct all {
	struct found *fabric;
	size_t n;
	const struct cli_down_all *how;
};

/* ---- what there is ---- */

static bool is_counted_before(struct json_object *processes, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (cli_json_number(cli_json_at(processes, k), "pid") ==
		    cli_json_number(cli_json_at(processes, i), "pid"))
			return true;
	return false;
}

/* How many programs of the user run there: a process is one, whatever it uses. Interfaces of IPoIB
 * are the fabric's own. */
static long count_programs(const char *name)
{
	struct control_client *client;
	struct json_object *processes;
	long n = 0;

	if (cli_try_connect(&client, name))
		return -1;
	processes = cli_request_json(client, "processes");
	control_close(client);
	if (!processes)
		return -1;
	for (size_t i = 0; i < cli_json_count(processes); i++)
		n += strcmp(cli_json_text(cli_json_at(processes, i), "program"), "umbel-ipoib") !=
		             0 &&
		     !is_counted_before(processes, i);
	json_object_put(processes);
	return n;
}

/* Whether a daemon of that name is there; what a dead one has left goes. */
static bool is_up(const char *name)
{
	char path[PATH_MAX];
	pid_t pid;
	int sock = cli_socket_path(path, name);

	if (!sock)
		sock = control_find_daemon(path, &pid);
	if (sock == -ECONNREFUSED)
		cli_daemon_process_remove_leftovers(name);
	if (sock >= 0)
		close(sock);
	/* not private: no daemon of ours has used it */
	return sock != -ENOENT && sock != -ECONNREFUSED && sock != -EPERM && sock != -ELOOP;
}

static int add(const char *name, void *arg)
{
	struct all *all = arg;
	struct found *more;

	if (!is_up(name))
		return 0;
	more = realloc(all->fabric, (all->n + 1) * sizeof(*more));
	if (!more)
		return cli_no_memory();
	all->fabric = more;
	more += all->n++;
	snprintf(more->name, sizeof(more->name), "%s", name);
	more->programs = count_programs(name);
	return 0;
}

/* ---- what is to be done ---- */

static bool stays(const struct all *all, const struct found *f)
{
	return f->programs && !all->how->force;
}

static void say(const struct all *all, const struct found *f)
{
	const char *verdict = stays(all, f) ? "stays (--force ends it, too)" : "ends";

	if (f->programs < 0)
		base_log("fabric '%s', whose daemon does not answer, %s", f->name, verdict);
	else if (f->programs)
		base_log("fabric '%s', on which %ld program%s run%s, %s", f->name, f->programs,
		         f->programs == 1 ? "" : "s", f->programs == 1 ? "s" : "", verdict);
	else
		base_log("fabric '%s' %s", f->name, verdict);
}

/* Whether the user wants that. 0, CLI_USAGE, or CLI_FAILED. */
static int ask(const struct cli_command *self, const struct all *all)
{
	char answer[8] = "";

	if (all->how->yes)
		return 0;
	for (size_t i = 0; i < all->n; i++)
		say(all, &all->fabric[i]);
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return cli_usage_error(self, "--all needs --yes where nobody can be asked");
	fputs("Is that right? [y/N] ", stderr);
	return fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y')
	               ? 0
	               : CLI_FAILED;
}

int cli_down_all(const struct cli_command *self, const struct cli_down_all *how)
{
	struct all all = { .how = how };
	int ret = cli_each_fabric(add, &all), status = CLI_OK;

	if (!ret && all.n)
		ret = ask(self, &all);
	for (size_t i = 0; !ret && i < all.n; i++) {
		if (stays(&all, &all.fabric[i])) {
			if (how->yes)
				say(&all, &all.fabric[i]);
			status = CLI_FAILED;
		} else if (how->end(all.fabric[i].name)) {
			status = CLI_FAILED;
		}
	}
	free(all.fabric);
	return ret ? ret : status;
}
