/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files by which Linux shows RDMA devices, in /sys and /dev, as one tree from "/" on. A node
 * is a value, computed from the shared memory whenever somebody looks, so nothing gets old.
 *
 * Thread-safe.
 */
#ifndef SYSFS_TREE_H
#define SYSFS_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "sysfs/node.h"

extern const struct sysfs_node sysfs_root;

enum sysfs_kind sysfs_kind(const struct sysfs_node *n);

/*
 * The child of @dir of that name, @length bytes of @name. 0; -ENOENT; -ENOTDIR: @dir has none at
 * all. @rest: the rest of the path, for a directory of the machine's is in the tree only if the
 * path leads on into it.
 */
int sysfs_find(const struct sysfs_node *dir, const char *name, size_t length, const char *rest,
               struct sysfs_node *child);

/* Whether something of ours may be where a path goes on with @rest behind the name of a netdev. */
bool sysfs_netdev_has(const char *rest);

/* Calls @each for every child of @dir until it returns nonzero; returns that, or 0. */
typedef int sysfs_each_child(void *arg, const char *name, const struct sysfs_node *child);
int sysfs_list(const struct sysfs_node *dir, sysfs_each_child *each, void *arg);

/* Likewise for the counters of a port (an index) that are its device's own: "hw_counters". */
int sysfs_list_counters(uint32_t port, sysfs_each_child *each, void *arg);

/* Whether @dir, a directory of the machine's, has entries of ours. */
bool sysfs_adds_to(const struct sysfs_node *dir);

/* Whether the machine has an entry of that name itself in @dir, a directory of its own. */
bool sysfs_machine_has(const struct sysfs_node *dir, const char *name);

/* The content of a file, or the target of a link. Its length, or -errno as read() of the kernel's
 * file has it. */
int sysfs_text(const struct sysfs_node *n, char text[static SYSFS_TEXT_ROOM]);

/* The number of a device. */
uint64_t sysfs_device(const struct sysfs_node *n);

/* Whether a device is issmN; *@port: the index of its port. */
bool sysfs_is_issm(const struct sysfs_node *n, uint32_t *port);

/* The node as one number, never 0, and back. */
uint64_t sysfs_pack(const struct sysfs_node *n);
struct sysfs_node sysfs_unpack(uint64_t packed);

#endif
