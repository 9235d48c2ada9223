/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of the tree that the program has open. A descriptor of a file is one of memory that holds
 * the text of the moment; one of a device is /dev/null's, or for issmN the FIFO's. Which descriptor
 * is which is remembered, so that fstat() says what stat() says, and a program that reads a file
 * again from its start reads what is true then, as with the kernel's files.
 *
 * The program may close a descriptor without our knowing: the entry of a descriptor counts only
 * while its inode is still the same. Thread-safe.
 */
#ifndef SYSFS_OPENED_H
#define SYSFS_OPENED_H

#include <sys/stat.h>

#include "sysfs/path.h"

/* Opens what is at @place, with @flags of open(2). The descriptor; -1 and errno. */
int sysfs_open_place(const struct sysfs_place *place, int flags);

/* A descriptor from elsewhere: an entry of its number is old. */
void sysfs_opened_forget(int fd);

/* Whether @fd is an open file or device of the tree. */
bool sysfs_opened_find(int fd, struct sysfs_node *node);

/* @fd is an open directory of the machine's to which the tree adds entries; and whether it is. */
void sysfs_opened_note_dir(int fd, const struct sysfs_node *node);
bool sysfs_opened_find_dir(int fd, struct sysfs_node *node);

/* The program has opened @path, which is none of the tree: if it says thereby that there is a
 * subnet manager at a port, that is true when this returns. */
void sysfs_opened_look_at_issm(int fd, const char *path);

/* The program reads @fd from its start. */
void sysfs_opened_refresh(int fd);

/* Fills in @st as stat() does. 0; -1 and errno. */
int sysfs_stat_place(const struct sysfs_place *place, struct stat *st);
int sysfs_stat_node(const struct sysfs_node *node, struct stat *st);

#endif
