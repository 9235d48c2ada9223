/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a fabric lives in the file system: a directory of its user's alone, with
 * one directory a fabric in it, with the daemon's socket, lock and log.
 */
#ifndef CONTROL_PATH_H
#define CONTROL_PATH_H

#include <stddef.h>

#define CONTROL_DEFAULT_FABRIC "default"
#define CONTROL_STAND_INS      "sysfs" /* in a fabric's directory: see src/client/sysfs/stand_in.h */

/*
 * $UMBEL_RUNTIME_DIR, else $XDG_RUNTIME_DIR/umbel, else /tmp/umbel-UID. A set-user-ID program does
 * not look at the environment. 0 or -ENAMETOOLONG. Nothing is checked: see directory.h.
 */
int control_runtime_dir(char *buf, size_t len);

/* The same, whatever $UMBEL_RUNTIME_DIR says: this user's own. */
int control_own_dir(char *buf, size_t len);

/*
 * RUNTIME/@fabric/@leaf; the directory itself if @leaf is NULL. -EINVAL for a name
 * that is not 1 to 32 of [A-Za-z0-9_.-] or begins with '.' or '-'; -ENAMETOOLONG.
 */
int control_path(char *buf, size_t len, const char *fabric, const char *leaf);

/* The fabric that a process belongs to: $UMBEL_FABRIC, else the default. */
const char *control_fabric_name(void);

#define CONTROL_HOST_ROOM 65 /* bytes that a host name may take */

/*
 * The host that a process is on, NULL for all: $UMBEL_HOST. On a host with a network of its own
 * that is the host name, as launchers may give a program the environment of another host.
 */
const char *control_host_name(char buf[static CONTROL_HOST_ROOM]);

#endif
