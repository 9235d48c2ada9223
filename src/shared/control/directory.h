/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opens the directories that hold a fabric's socket, lock and log, and proves before that they
 * are private: no other user can put a socket, a file or a symbolic link there. A program that
 * connects to a daemon, starts one or writes its files calls these functions first.
 *
 * The directory itself must belong to this user, nobody else may enter it, and it must not be a
 * symbolic link. Every directory above it must belong to root or to this user, and if other
 * users may write to one, it must be sticky (/tmp). So the proof stays valid, and a path into
 * the directory may be used again later. Two cases are special:
 *
 *  - In a user namespace that does not map root, the owner of "/" counts as root. If it does not
 *    map this user either, owners cannot be compared; then the kernel's own check proves the
 *    owner: nobody else can enter a directory of mode 0700.
 *  - Root may use a fabric of another user, but only one that $UMBEL_RUNTIME_DIR names. The
 *    directories may then belong to that user.
 *  - So may any other user that the owner names (umbel up --allow-user, --allow-group): the
 *    directories then have mode 0711, which lets others pass, and no more. Nobody but root, this
 *    user and the owner could have put them where they are.
 *
 * Thread-safe.
 */
#ifndef CONTROL_DIRECTORY_H
#define CONTROL_DIRECTORY_H

#include <stdbool.h>
#include <sys/types.h>

#define CONTROL_WHY_ROOM 640

/*
 * Opens the directory @path. @make: missing directories of the path are made. @why: what
 * is wrong, in words, on failure. Returns the descriptor; -ENOENT: it does not exist; -EPERM: it
 * is not private; -ELOOP: it is a symbolic link; -errno.
 */
int control_directory_open(const char *path, bool make, char why[static CONTROL_WHY_ROOM]);

/* Opens the directory of fabric @name in the same way. -EINVAL: no fabric can have this name. */
int control_fabric_open(const char *name, bool make, char why[static CONTROL_WHY_ROOM]);

/* Whether a daemon of that user may serve this process, at that socket in a directory as above. */
bool control_user_is_trusted(uid_t uid, const char *socket);

/* By this number the kernel shows all users, and groups, that have no number in a user
 * namespace. */
#define CONTROL_UNKNOWN_USER 65534

/* Whether this number means one user: outside of user namespaces each does. */
bool control_user_is_known(uid_t uid);

/* The same of a group. */
bool control_group_is_known(gid_t gid);

/* Removes the directory and all that is in it; links in it are removed, not followed. */
void control_remove_dir(const char *path);

/* The mode of a fabric's directory, and of the directory that it is in, if others may enter the
 * fabric. */
#define CONTROL_PASSABLE 0711

#endif
