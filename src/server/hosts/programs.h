/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs that the keeper runs on the hosts: started side by side, started again if they end,
 * asked for their status. They end with the keeper, however that ends.
 */
#ifndef HOSTS_PROGRAMS_H
#define HOSTS_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hosts/namespaces.h"
#include "hosts/plan.h"

struct hosts_program {
	pid_t pid;                   /* 0: it does not run */
	int status_fd, control_fd;   /* -1: closed */
	bool ready;                  /* it has said so */
	uint64_t started_ns, due_ns; /* due: to be started again; 0: not */
};

struct hosts_programs {
	const struct hosts_plan *plan;
	const struct hosts_namespaces *ns; /* by host */
	int epoll_fd; /* status descriptors are added with the program's number */
	struct hosts_program *of;
	unsigned n_started; /* of those that are to be started first */
	unsigned unready;   /* of all those: neither ready nor ended yet */
	unsigned failed;    /* of those: have ended */

	pid_t collector; /* of answers, for a viewer; 0: none */
	int viewer[16];  /* descriptors of those whose turn has not come */
	unsigned n_viewers;
};

/* 0 or -ENOMEM. */
int hosts_programs_init(struct hosts_programs *p);

/* Starts all. Does not wait until they are ready. */
void hosts_programs_start(struct hosts_programs *p);

/* Program @i has written to its status descriptor, or closed it. */
void hosts_programs_heard(struct hosts_programs *p, unsigned i);

/* Children have ended. Programs that were ready once will be started again. */
void hosts_programs_reap(struct hosts_programs *p);

/* Starts those that are due. Returns after how many milliseconds the next one is; -1: none. */
int hosts_programs_restart(struct hosts_programs *p);

/* Writes the status of all to a copy of @fd, as JSON, by processes of its own: here nobody waits,
 * for a program that is stopped or a reader that does not read. With too many readers at once @fd
 * ends without a word. */
void hosts_programs_show(struct hosts_programs *p, int fd);

/* Kills all, and waits for their ends. */
void hosts_programs_kill(struct hosts_programs *p);

#endif
