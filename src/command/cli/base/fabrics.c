/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabrics of this user: see fabrics.h. Each has a directory of its name in the runtime
 * directory. Called by the commands.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "control/client.h"
#include "control/directory.h"
#include "control/join.h"
#include "control/path.h"

const char *cli_fabric_name(const char *option)
{
	return option ? option : control_fabric_name();
}

const char *cli_name_option(const char *name)
{
	static char option[sizeof(" --name ") + CLI_NAME_MAX];
	bool is_default = !strcmp(name, CONTROL_DEFAULT_FABRIC) &&
	                  !strcmp(control_fabric_name(), CONTROL_DEFAULT_FABRIC);

	snprintf(option, sizeof(option), "%s%s", is_default ? "" : " --name ",
	         is_default ? "" : name);
	return option;
}

int cli_check_name(const char *name)
{
	char path[PATH_MAX];

	if (control_path(path, sizeof(path), name, NULL) != -EINVAL)
		return 0;
	base_log("'%s' is no name for a fabric: 1 to %d of A-Z a-z 0-9 _ . - and no . or - first",
	         name, CLI_NAME_MAX);
	return CLI_USAGE;
}

int cli_runtime_dir(char buf[static PATH_MAX])
{
	char path[PATH_MAX], cwd[PATH_MAX] = "";
	int ret;

	ret = control_runtime_dir(path, sizeof(path));
	if (!ret && path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		ret = -errno;
	if (ret) {
		base_log("no runtime directory: %s", strerror(-ret));
		return CLI_FAILED;
	}
	if (snprintf(buf, PATH_MAX, "%s%s%s", cwd, *cwd ? "/" : "", path) < PATH_MAX)
		return 0;
	base_log("the path of the runtime directory is too long");
	return CLI_FAILED;
}

int cli_make_dir(const char *path)
{
	char why[CONTROL_WHY_ROOM];
	int fd = control_directory_open(path, true, why);

	if (fd < 0) {
		base_log("no private directory for fabrics: %s; set UMBEL_RUNTIME_DIR to another",
		         why);
		return CLI_FAILED;
	}
	close(fd);
	return 0;
}

static int is_fabric_dir(const struct dirent *entry)
{
	char path[PATH_MAX];

	/* control_path() refuses what is no fabric's name: '.' and '..' too */
	return (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
	       !control_path(path, sizeof(path), entry->d_name, NULL);
}

int cli_each_fabric(int (*each)(const char *name, void *arg), void *arg)
{
	struct dirent **entries;
	char dir[PATH_MAX];
	int n, ret = 0;

	if (cli_runtime_dir(dir))
		return CLI_FAILED;
	n = scandir(dir, &entries, is_fabric_dir, alphasort);
	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0 && errno == EACCES && access(dir, X_OK) == 0)
		return each(cli_fabric_name(NULL), arg); /* another user's: we may pass */
	if (n < 0)
		return cli_cannot("read", dir);
	for (int i = 0; i < n; i++) {
		if (!ret)
			ret = each(entries[i]->d_name, arg);
		free(entries[i]);
	}
	free(entries);
	return ret;
}

const char *cli_refusal(int error)
{
	static char room[CONTROL_WHY_ROOM];
	const char *why = control_refusal(error, room);

	if (error == -EACCES)
		return "only the fabric's owner may do that";
	return why ? why : strerror(-error);
}

void cli_say_silent(const char *name)
{
	base_log("fabric '%s' does not answer: its daemon is stopped or stuck; 'umbel down%s' ends "
	         "it",
	         name, cli_name_option(name));
}

void cli_say_other_version(const char *name)
{
	base_log("fabric '%s' is of another version of Umbel: use that one's command, or end it by "
	         "'umbel down%s'",
	         name, cli_name_option(name));
}

int cli_socket_path(char path[static PATH_MAX], const char *name)
{
	char why[CONTROL_WHY_ROOM];
	int dir = control_fabric_open(name, false, why);

	if (dir < 0)
		return dir;
	close(dir); /* it is proven private: the path leads there again */
	return control_path(path, PATH_MAX, name, "ctl");
}

/* As cli_try_connect(), as a program on @host (NULL: on all). -EHOSTUNREACH: no such host. */
static int try_connect(struct control_client **client, const char *name, const char *host)
{
	char path[PATH_MAX];
	int ret = cli_socket_path(path, name);

	return ret ? ret : control_connect(client, path, CONTROL_ROLE_CLI, host);
}

int cli_try_connect(struct control_client **client, const char *name)
{
	return try_connect(client, name, NULL);
}

int cli_connect(struct control_client **client, const char *name)
{
	return cli_connect_host(client, name, NULL);
}

/* Why no connection to that fabric came about. */
static void say_unusable(const char *name, int error)
{
	char why[CONTROL_WHY_ROOM], dir[PATH_MAX];

	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
	case -ECONNREFUSED:
		if (!cli_runtime_dir(dir))
			base_log("no fabric '%s' is up in '%s'; start one with: umbel up%s", name,
			         dir, cli_name_option(name));
		break;
	case -EPERM:
	case -ELOOP:
	case -EACCES:
		if (control_fabric_open(name, false, why) < 0)
			base_log("fabric '%s' is not safe to use: %s", name, why);
		else
			base_log("fabric '%s' belongs to another user", name);
		break;
	case -CONTROL_REFUSED:
	case -ENFILE:
		base_log("fabric '%s' cannot be used: %s", name, cli_refusal(error));
		break;
	case -ETIMEDOUT:
		cli_say_silent(name);
		break;
	case -EPROTO:
		cli_say_other_version(name);
		break;
	default:
		base_log("fabric '%s' does not answer: %s", name, strerror(-error));
	}
}

int cli_connect_host(struct control_client **client, const char *name, const char *host)
{
	int ret;

	if (cli_check_name(name))
		return CLI_USAGE;
	ret = try_connect(client, name, host);
	if (ret == -EHOSTUNREACH)
		return CLI_NO_HOST;
	if (ret) {
		say_unusable(name, ret);
		return CLI_FAILED;
	}
	return 0;
}
