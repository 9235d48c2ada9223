/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manager's entry: one process that owns one fabric. It is what the kernel and
 * the firmware are to a real HCA: it makes the shared memory, runs the subnet
 * manager and the subnet administrator, hands out objects to processes, and cleans
 * up after the dead. It is not in the data path and never polls.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

struct fabric_plan;

struct daemon_options {
	const char *fabric; /* its name */
	const struct fabric_plan *plan; /* what to build; finished */
	const char **settings; /* "key=value" */
	unsigned n_settings;
	int ready_fd; /* gets a zero byte once the fabric is up, or a line saying why not; -1: none
	               */
	int life_fd;  /* the manager ends when this reads end-of-file; -1: none */
};

/* Runs the manager in the calling process until it is told to end. Its exit status. */
int daemon_main(const struct daemon_options *o);

#endif
