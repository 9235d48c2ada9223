/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files whose text goes to the daemon: see file.h. Called by `umbel up` and `umbel run`, which
 * read the file, and by `umbel daemon`, which reads the descriptor that they pass.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/file.h"

#define MAX_FILE (64u << 20)

int cli_file_read(struct cli_file *f)
{
	int fd = f->fd, ret;

	if (fd < 0)
		fd = open(f->name, O_RDONLY | O_CLOEXEC);
	ret = fd < 0 ? -errno : base_read_all(fd, MAX_FILE, &f->text, &f->bytes);
	if (fd >= 0)
		close(fd);
	f->fd = -1;
	if (!ret)
		return 0;
	errno = -ret;
	if (ret != -EFBIG)
		return cli_cannot("read", f->name);
	base_log("%s: larger than %u MiB", f->name, MAX_FILE >> 20);
	return CLI_FAILED;
}

void cli_file_fini(struct cli_file *f)
{
	free(f->text);
	f->text = NULL;
	f->bytes = 0;
}

/* The absolute path of a file in a directory that exists, or NULL and errno. */
static char *path_in_dir(const char *name)
{
	const char *slash = strrchr(name, '/'), *leaf = slash ? slash + 1 : name;
	char *dir = slash ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
	char *real = dir ? realpath(dir, NULL) : NULL, *path = NULL;

	errno = *leaf ? errno : ENOENT;
	if (real && *leaf && asprintf(&path, "%s/%s", real[1] ? real : "", leaf) < 0)
		path = NULL;
	free(dir);
	free(real);
	return path;
}

int cli_file_path(const char *name, char **path)
{
	*path = realpath(name, NULL);
	if (!*path && errno == ENOENT)
		*path = path_in_dir(name);
	if (*path)
		return 0;
	base_log("cannot use '%s': %s", name, strerror(errno));
	return CLI_FAILED;
}

int cli_file_fd(const struct cli_file *f)
{
	int fd = memfd_create("umbel-file", MFD_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = base_write_all(fd, f->text, f->bytes);
	if (!ret && lseek(fd, 0, SEEK_SET) < 0)
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}
