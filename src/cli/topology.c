/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options that say what a fabric looks like: whether they go together, and the text of a
 * topology file, which the command reads, where its user is, and the manager makes a fabric
 * of. Called by `umbel up` and `umbel run`, and for the same text by the manager.
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

#define MAX_FILE (64u << 20)

/* All that can be read from @fd, which need not be a file. 0, -EFBIG, -errno. */
static int read_all(int fd, char **text, size_t *bytes)
{
	size_t room = 0;

	for (;;) {
		ssize_t n;

		if (*bytes == room) {
			size_t more = room ? room * 2 : 1 << 16;
			char *grown = realloc(*text, more);

			if (!grown)
				return -ENOMEM;
			*text = grown;
			room = more;
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

/* Reads the topology, once: a pipe gives it no second time. */
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

int cli_fabric_options_end(const struct cli_command *cmd, struct cli_fabric_options *o)
{
	if (o->topology && (o->hosts || o->levels || o->radix))
		return cli_usage_error(cmd, "with --topology, %s is the file's to say",
		                       o->hosts    ? "--hosts"
		                       : o->levels ? "--fat-tree"
		                                   : "--radix");
	if (o->roce && (o->hosts || o->levels || o->radix || o->topology))
		return cli_usage_error(cmd, "with --roce there is one host and no switch: no %s",
		                       o->hosts      ? "--hosts"
		                       : o->levels   ? "--fat-tree"
		                       : o->topology ? "--topology"
		                                     : "--radix");
	if (o->radix && !o->levels)
		return cli_usage_error(cmd, "--radix is of a --fat-tree");
	if (o->topology)
		return read_topology(o);
	if (o->roce)
		return 0;
	if (o->levels && !o->radix)
		o->radix = CLI_RADIX_DEFAULT;
	if (!o->levels && !o->hosts)
		o->hosts = CLI_HOSTS_DEFAULT;
	return 0;
}

int cli_topology_fd(const struct cli_fabric_options *o)
{
	int fd = memfd_create("umbel-topology", MFD_CLOEXEC), ret;
	size_t done = 0;

	if (fd < 0)
		return -errno;
	while (done < o->text_bytes) {
		ssize_t n = write(fd, o->text + done, o->text_bytes - done);

		if (n < 0)
			goto err_close;
		done += (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		goto err_close;
	return fd;
err_close:
	ret = -errno;
	close(fd);
	return ret;
}
