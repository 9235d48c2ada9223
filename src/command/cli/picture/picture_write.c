/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing a picture to a file: see picture.h. Called by show_picture.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/base/command.h"
#include "cli/picture/graphviz.h"
#include "cli/picture/picture.h"

/* Copies the rest of @from. 0 or -1 and errno. */
static int copy(int from, int to)
{
	char bytes[65536];
	ssize_t n;

	do {
		n = read(from, bytes, sizeof(bytes));
		if (n > 0 && base_write_all(to, bytes, (size_t)n))
			return -1;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return (int)n;
}

int cli_picture_write(const char *dot, const char *format, const char *name)
{
	size_t bytes = strlen(dot);
	int from = -1, to = STDOUT_FILENO, ret;

	if (format) {
		from = cli_graphviz(dot, bytes, format);
		if (from < 0)
			return CLI_FAILED;
	}
	if (name)
		to = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	ret = to < 0 ? -1 : from < 0 ? base_write_all(to, dot, bytes) : copy(from, to);
	if (ret)
		ret = cli_cannot("write", name);
	if (name && to >= 0 && close(to) < 0 && !ret)
		ret = cli_cannot("write", name);
	if (from >= 0)
		close(from);
	return ret;
}
