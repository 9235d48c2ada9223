/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file whose text a command gives to the daemon: a topology, partitions. The command reads it,
 * as the user and in the user's directory. Single-threaded.
 */
#ifndef CLI_FILE_H
#define CLI_FILE_H

#include <stddef.h>

struct cli_file {
	const char *name; /* NULL: none */
	int fd;           /* where to read it, if it is not -1 */
	char *text;       /* what was read */
	size_t bytes;
};

/* Reads it, once: a pipe gives its text no second time. 0 or CLI_FAILED. */
int cli_file_read(struct cli_file *f);
void cli_file_fini(struct cli_file *f);

/* The absolute path of a file that need not exist, for the daemon, to be freed. 0 or CLI_FAILED. */
int cli_file_path(const char *name, char **path);

/* A new descriptor from which the text can be read, for the daemon. Or -errno. */
int cli_file_fd(const struct cli_file *f);

#endif
