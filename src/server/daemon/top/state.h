/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file in which the embedded subnet manager's state outlives the fabric (--state): read when
 * the fabric starts, written when something in it has changed, and at the end.
 *
 * The file is replaced as a whole, so a daemon that is killed at any moment leaves the old one or
 * the new one. A thread writes it, as the disk may take its time; the daemon copies what is to be
 * in it, in slices, once in a while. Only the subnet manager's own knowledge is kept: while it is
 * not the master the file stays as it is.
 *
 * A lock on the file keeps other fabrics away from it. One that is not there is made, empty, and
 * locked before it counts as ours, so one fabric has it, however many begin at once. Each new file
 * is locked before it takes the place of the last one.
 */
#ifndef DAEMON_STATE_H
#define DAEMON_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/subnet/subnet.h"
#include "subnet/state.h"

struct daemon_state {
	struct daemon_loop *loop;
	struct daemon_subnet *subnet;
	char *name;       /* of the file; NULL: there is none */
	const char *leaf; /* its last part: */
	int dir;          /* in this directory */
	int fd;           /* the file, locked */
	uint64_t seen[2]; /* changes of subnet and groups that were noticed */
	bool dirty;       /* something has changed since the last copy was begun */
	bool failed;      /* the last writing did; the writer's while it runs */
	uint64_t hash;    /* of the text in the file; likewise */
	struct base_timer timer;
	/* the copy: the writer's while it runs */
	struct subnet_state copy;
	unsigned at;
	uint64_t changes; /* when it was begun */
	pthread_t writer;
	bool writing;        /* there is a writer, */
	atomic_bool written; /* which has ended */
};

/*
 * Reads the file, which is made if it is not there, for the first take-over of @subnet. NULL: no
 * file. 0, or -errno with @why: it is none of ours, another fabric uses it, it cannot be written.
 * daemon_state_fini() is due in any case.
 */
int daemon_state_open(struct daemon_state *s, const char *name, struct daemon_subnet *subnet,
                      char *why, size_t len);

/* The subnet manager has taken over: appends a line to @notes about what does not fit. */
void daemon_state_note(const struct daemon_state *s, char *notes, size_t len);

/* To be called after each turn of the loop: looks whether anything has changed. */
void daemon_state_look(struct daemon_state *s);

/* The fabric ends: writes what has not been written. 0 or -errno. */
int daemon_state_save(struct daemon_state *s);
void daemon_state_fini(struct daemon_state *s);

#endif
