/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Directories of the machine that have entries of the tree, such as /sys/class: a program that
 * lists one gets these after the machine's own. Only open lists are remembered; their directories
 * are the real ones. The functions are thread-safe; each list belongs to one thread at a time.
 */
#ifndef SYSFS_LISTING_H
#define SYSFS_LISTING_H

#include <dirent.h>

#include "sysfs/node.h"

/* @dir lists the directory @node of kind SYSFS_OUTSIDE. */
void sysfs_listing_add(DIR *dir, const struct sysfs_node *node);

/* The next entry when the machine has no more; NULL: none. */
struct dirent *sysfs_listing_next(DIR *dir);

/* It starts again; it is closed. */
void sysfs_listing_rewind(DIR *dir);
void sysfs_listing_remove(DIR *dir);

#endif
