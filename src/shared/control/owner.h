/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a runtime directory: the `umbel run` whose private directory it is. It listens at a
 * socket there and accepts nobody. Each daemon in the directory connects to it, those too that an
 * `umbel up` inside has started; and when the owner ends, however it ends, the kernel ends these
 * connections. So no fabric outlives the directory in which it can be found. Thread-safe.
 */
#ifndef CONTROL_OWNER_H
#define CONTROL_OWNER_H

/* A private directory's name begins so; nobody but its owner makes one. */
#define CONTROL_OWNED_PREFIX ".run-"

/* Makes the calling process the owner of @dir until the descriptor is closed, which is returned.
 * -ENAMETOOLONG: the path is too long for a socket; -errno. */
int control_owner_become(const char *dir);

/* A socket that hangs up when the owner of the runtime directory ends. -ENOENT: it has no owner;
 * -ECONNREFUSED: its owner has ended; -errno. */
int control_owner_watch(void);

#endif
