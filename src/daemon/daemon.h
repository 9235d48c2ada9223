/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's entry: one process that owns one fabric. It is what the kernel and
 * the firmware are to a real HCA: it makes the shared memory, runs the subnet
 * manager and the subnet administrator, makes objects for processes, and cleans up
 * after the dead. It is not in the data path and never polls.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <stdbool.h>
#include <stddef.h>

#include "subnet/partitions.h"

/* Hosts, switches and links: those of network devices if there are any, else from a file's text if
 * there is one, else a fat tree if it has levels, else a plain tree. */
struct daemon_shape {
	const char *roce;       /* names of network devices, with commas between */
	unsigned hosts;         /* of a fat tree, 0: as many as there is room for */
	unsigned levels, radix; /* of a fat tree */
	const char *topology;   /* the file's name, for messages */
	char *text;             /* from malloc(): daemon_main() frees it */
	size_t text_bytes;
};

struct daemon_options {
	const char *fabric; /* its name */
	struct daemon_shape shape;
	struct partitions_file partitions; /* without a name: none */
	const char **settings;             /* "key=value" */
	unsigned n_settings;
	bool ipoib; /* hosts have a network of their own */
	/* In a process on @host: becomes the program argv[0] of ours. Returns if that fails, after
	 * it has said why. */
	void (*become)(const char *fabric, const char *host, char **argv);
	int ready_fd; /* gets a zero byte once the fabric is up, or a line saying why not; -1: none
	               */
	int life_fd;  /* the daemon ends when this reads end-of-file; -1: none */
};

/* Runs the daemon in the calling process until it is told to end. Its exit status. */
int daemon_main(const struct daemon_options *o);

#endif
