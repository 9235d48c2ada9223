/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stand-ins: real directories in the fabric's own directory, which a program gets when it opens
 * a directory of the tree or goes there. So the kernel keeps the descriptors, readdir(), the
 * current directory and the inheritance by children. A stand-in has an entry of the right name and
 * type for each child, but no contents: these are computed when a file is opened. It is made when a
 * program first opens it. The daemon removes all stand-ins when it ends.
 *
 * Thread-safe; several processes may make the same one at the same time.
 */
#ifndef SYSFS_STAND_IN_H
#define SYSFS_STAND_IN_H

#include "sysfs/path.h"

/* Makes the stand-in of the directory at @place. @fill: with its entries. 0 or -errno. */
int sysfs_stand_in_make(const struct sysfs_place *place, bool fill, char path[static PATH_MAX]);

#endif
