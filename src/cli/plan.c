/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plan of a fabric out of the options that describe it. Called by `umbel up` and `umbel
 * run`, so that what is wrong is said before a manager is started, and by the manager itself,
 * which is given the same options.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "fabric/plan.h"
#include "fabric/topology_file.h"

#define MAX_FILE  (64u << 20)
#define MAX_WORDS 512

/* All that can be read from @fd, which need not be a file. 0, -EFBIG, -errno. */
static int read_all(int fd, char **text, size_t *bytes)
{
	size_t room = 0;

	*text = NULL;
	*bytes = 0;
	for (;;) {
		ssize_t n;

		if (*bytes == room) {
			char *grown = realloc(*text, room = room ? room * 2 : 1 << 16);

			if (!grown)
				return -ENOMEM;
			*text = grown;
		}
		n = read(fd, *text + *bytes, room - *bytes);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		*bytes += n > 0 ? (size_t)n : 0;
		if (*bytes > MAX_FILE)
			return -EFBIG;
	}
}

/* Reads the topology once; what was read stays, for the manager. */
static int read_topology(struct cli_fabric_options *o)
{
	int fd = o->topology_fd, ret;

	if (fd < 0)
		fd = open(o->topology, O_RDONLY | O_CLOEXEC);
	ret = fd < 0 ? -errno : read_all(fd, &o->text, &o->text_bytes);
	if (fd >= 0)
		close(fd);
	o->topology_fd = -1;
	if (!ret)
		return 0;
	if (ret == -EFBIG)
		base_log("%s: larger than %u MiB", o->topology, MAX_FILE >> 20);
	else
		base_log("cannot read '%s': %s", o->topology, strerror(-ret));
	return CLI_FAILED;
}

static int check(const struct cli_command *cmd, const struct cli_fabric_options *o)
{
	if (o->topology && (o->hosts || o->levels || o->radix))
		return cli_usage_error(cmd, "with --topology, %s is the file's to say",
		                       o->hosts    ? "--hosts"
		                       : o->levels ? "--fat-tree"
		                                   : "--radix");
	if (o->radix && !o->levels)
		return cli_usage_error(cmd, "--radix is of a --fat-tree");
	return 0;
}

static int make(struct fabric_plan *plan, const struct cli_fabric_options *o, char *why, size_t len)
{
	const struct fabric_fat_tree shape = {
		.levels = (unsigned)o->levels,
		.radix = (unsigned)(o->radix ? o->radix : CLI_RADIX_DEFAULT),
		.hosts = (unsigned)o->hosts,
	};

	if (o->topology)
		return fabric_topology_parse(
		        plan, &(struct fabric_topology_file){ o->topology, o->text, o->text_bytes },
		        why, len);
	if (o->levels)
		return fabric_plan_fat_tree(plan, &shape, why, len);
	return fabric_plan_tree(plan, (unsigned)(o->hosts ? o->hosts : CLI_HOSTS_DEFAULT));
}

int cli_plan_make(const struct cli_command *cmd, struct cli_fabric_options *o,
                  struct fabric_plan *plan)
{
	char why[MAX_WORDS] = "";
	int ret = check(cmd, o);

	if (!ret && o->topology)
		ret = read_topology(o);
	if (ret)
		return ret;
	fabric_plan_init(plan);
	ret = make(plan, o, why, sizeof(why));
	if (!ret)
		return 0;
	fabric_plan_fini(plan);
	base_log("%s", *why ? why : strerror(-ret));
	return CLI_FAILED;
}

int cli_plan_text_fd(const struct cli_fabric_options *o)
{
	int fd = memfd_create("umbel-topology", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < o->text_bytes) {
		ssize_t n = write(fd, o->text + done, o->text_bytes - done);

		if (n < 0) {
			int ret = -errno;

			close(fd);
			return ret;
		}
		done += (size_t)n;
	}
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return fd;
}
