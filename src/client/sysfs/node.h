/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node of the tree (tree.h): a row of its table, and of which HCA, port or entry it is.
 */
#ifndef SYSFS_NODE_H
#define SYSFS_NODE_H

#include <stdint.h>

#define SYSFS_NAME_ROOM 64
#define SYSFS_TEXT_ROOM 256

enum sysfs_kind {
	SYSFS_OUTSIDE, /* a directory of the machine's that is on the way to ours */
	SYSFS_DIR,
	SYSFS_LINK,
	SYSFS_FILE,
	SYSFS_DEVICE, /* a character device */
};

struct sysfs_node {
	uint16_t row;
	uint16_t index; /* of a GID or P_Key */
	uint32_t unit;  /* index of an HCA, a port or a netdev, as the row says */
};

#endif
