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
#include <stdint.h>
#include <sys/types.h>

#include "fabric/plan/shape.h"
#include "subnet/partitions.h"

#define DAEMON_IDS 64

struct daemon_options {
	const char *fabric;  /* its name */
	const char *roce;    /* names of network devices, with commas between; NULL: none */
	unsigned roce_hosts; /* hosts with RoCE alone, which come last */
	/* without hosts, levels and topology: only network devices; daemon_main() frees the text */
	struct fabric_shape shape;
	struct partitions_file partitions; /* without a name: none */
	const char *state; /* a file that keeps the subnet manager's state (state.h); NULL: none */
	const char **settings; /* "key=value" */
	unsigned n_settings;
	bool ipoib;                       /* hosts have interfaces of IP over InfiniBand */
	uint16_t pkey[FABRIC_PLAN_PKEYS]; /* of partitions in which they have one, too */
	unsigned n_pkeys;
	bool own_networks;      /* hosts have a network of their own: so with those */
	uid_t user[DAEMON_IDS]; /* these may enter the fabric, besides its owner and root */
	unsigned n_users;
	gid_t group[DAEMON_IDS]; /* and members of which groups */
	unsigned n_groups;
	/* In a process on @host: becomes the program argv[0] of ours. Returns if that fails, after
	 * it has said why. */
	void (*become)(const char *fabric, const char *host, char **argv);
	int ready_fd; /* gets a zero byte once the fabric is up, or a line saying why not; -1: none
	               */
};

/* Runs the daemon in the calling process until it is told to end. Its exit status. */
int daemon_main(const struct daemon_options *o);

#endif
