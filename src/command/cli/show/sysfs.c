/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel sysfs`: the files that programs see in /sys by our preloaded library (src/client/sysfs),
 * as real files in a directory: for programs that call the kernel themselves and take the place of
 * /sys as an option.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "sysfs/session.h"
#include "sysfs/tree.h"

#define MOST_SECONDS 86400
#define NEW          ".umbel-new" /* a file that is being written */

static const char help[] =
        "Usage: umbel sysfs [OPTION]... DIRECTORY\n"
        "\n"
        "Writes what programs see of RDMA devices in /sys into the directory, as real files:\n"
        "for a program that does not see it there and can be told where /sys is.\n";

static const char help_end[] =
        "Exit status: 0; 1 if the fabric is not up, or has ended, or a file cannot be written.\n";

struct options {
	const char *name, *host;
	long every; /* seconds; 0: once */
};

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct options, name) },
	{ "      --host HOST   the devices of this host (default: of all)\n",
	  CLI_TEXT(struct options, host) },
	{ "      --every N     again every N seconds, until the fabric ends\n",
	  CLI_NUMBER(struct options, every, 1, MOST_SECONDS) },
	CLI_HELP_ROW,
};

/* Whether the file says that already. */
static bool is_current(int dir, const char *name, const char *text, size_t bytes)
{
	char old[SYSFS_TEXT_ROOM];
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, old, sizeof(old));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)bytes && !memcmp(old, text, bytes);
}

/* A reader of the file has the old text or the new one. 0 or -errno. */
static int write_file(int dir, const char *name, const char *text, size_t bytes)
{
	ssize_t n;
	int fd;

	if (is_current(dir, name, text, bytes))
		return 0;
	fd = openat(dir, NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	n = write(fd, text, bytes);
	if (close(fd) || n < 0)
		return -errno;
	return n < (ssize_t)bytes ? -ENOSPC : renameat(dir, NEW, dir, name) ? -errno : 0;
}

/* A directory of the copy. */
struct place {
	int fd;
	int depth; /* below the place of /sys */
};

static int copy_all(struct place *to, const struct sysfs_node *from);

static int copy_dir(const struct place *above, const char *name, const struct sysfs_node *from)
{
	struct place to = { .depth = above->depth + 1 };
	int ret;

	if (mkdirat(above->fd, name, 0755) && errno != EEXIST)
		return -errno;
	to.fd = openat(above->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to.fd < 0)
		return -errno;
	ret = copy_all(&to, from);
	close(to.fd);
	return ret;
}

/* One that leads to a place in /sys leads to that place in the copy. */
static int copy_link(const struct place *to, const char *name, const struct sysfs_node *from)
{
	char text[SYSFS_TEXT_ROOM], path[SYSFS_TEXT_ROOM + 32] = "";

	if (sysfs_text(from, text) < 0)
		return 0;
	if (!strncmp(text, "/sys/", 5)) {
		for (int i = 0; i < to->depth; i++)
			strncat(path, "../", sizeof(path) - strlen(path) - 1);
		strncat(path, text + 5, sizeof(path) - strlen(path) - 1);
	}
	return symlinkat(*path ? path : text, to->fd, name) && errno != EEXIST ? -errno : 0;
}

static int copy(void *arg, const char *name, const struct sysfs_node *from)
{
	const struct place *to = arg;
	char text[SYSFS_TEXT_ROOM];
	int bytes;

	if (!strcmp(name, "net")) /* by their names in this network, which are no host's */
		return 0;
	switch (sysfs_kind(from)) {
	case SYSFS_OUTSIDE:
	case SYSFS_DIR:
		return copy_dir(to, name, from);
	case SYSFS_LINK:
		return copy_link(to, name, from);
	case SYSFS_FILE:
		bytes = sysfs_text(from, text);
		return bytes < 0 ? 0 : write_file(to->fd, name, text, (size_t)bytes);
	case SYSFS_DEVICE:
		break;
	}
	return 0;
}

static int copy_all(struct place *to, const struct sysfs_node *from)
{
	return sysfs_list(from, copy, to);
}

/* 0 or -errno. */
static int copy_sys(const char *path)
{
	struct place to = { .depth = 0 };
	struct sysfs_node sys;
	int ret = -ENODEV;

	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	to.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to.fd < 0)
		return -errno;
	if (sysfs_session() && !sysfs_find(&sysfs_root, "sys", 3, "", &sys))
		ret = copy_all(&to, &sys);
	close(to.fd);
	return ret;
}

static int sysfs_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct options *o = from;
	const char *name = cli_fabric_name(o->name);
	int ret, error = 0;

	if (argc != 1)
		return cli_usage_error(self, argc ? "one directory" : "which directory?");
	ret = cli_check_host(name, o->host);
	if (!ret)
		ret = cli_environ_set(name, o->host);
	while (!ret && !(error = copy_sys(argv[0])) && o->every) {
		sleep((unsigned)o->every);
		ret = cli_check_host(name, o->host);
	}
	if (error)
		base_log("cannot write in '%s': %s", argv[0], strerror(-error));
	return error ? CLI_FAILED : ret;
}

const struct cli_command cli_sysfs = {
	.name = "sysfs",
	.summary = "copy what programs see in /sys",
	.help = help,
	.help_end = help_end,
	CLI_OPTIONS(options, struct options),
	.execute = sysfs_execute,
};
