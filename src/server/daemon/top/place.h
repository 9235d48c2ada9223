/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a fabric is: a private directory by its name, with the lock that says that a daemon lives
 * and the socket at which it listens.
 */
#ifndef DAEMON_PLACE_H
#define DAEMON_PLACE_H

#include "control/directory.h"

#define DAEMON_PATH_LEN 512

struct daemon_place {
	char dir[DAEMON_PATH_LEN], socket[DAEMON_PATH_LEN], lock[DAEMON_PATH_LEN];
	bool open;
	int lock_fd, listen_fd; /* -1: not yet */
	int owner_fd; /* hangs up when the `umbel run` ends whose directory it is; -1: none */
};

/* Makes the directory, proven private, and locks it. @open: other users may pass, and connect.
 * 0; -EEXIST: a daemon lives there; -errno, with @why unless the number says it all. */
int daemon_place_occupy(struct daemon_place *p, const char *fabric, bool open,
                        char why[static CONTROL_WHY_ROOM]);

/* Makes the socket that clients connect to, ->listen_fd. 0 or -errno. */
int daemon_place_listen(struct daemon_place *p);

/* Removes the socket, so that nobody connects any more; and then the rest. */
void daemon_place_unlisten(struct daemon_place *p);
void daemon_place_leave(struct daemon_place *p);

#endif
