/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Partitions as a partitions.conf of OpenSM describes them (opensm(8), PARTITION
 * CONFIGURATION): which ports are full or limited members of which P_Key, and which
 * multicast groups are there from the start. From a text to lists; what becomes of them is
 * the subnet manager's (sm.h) and the administrator's.
 *
 * Where OpenSM passes over what it does not understand, this is an error: a mistyped
 * "limited" would let ports talk that should not.
 */
#ifndef SUBNET_PARTITIONS_H
#define SUBNET_PARTITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib.h"

enum partition_ports {
	PARTITION_PORT, /* the one with that GUID */
	PARTITION_ALL,
	PARTITION_ALL_CAS,
	PARTITION_ALL_SWITCHES,
	PARTITION_ALL_ROUTERS,
	PARTITION_SELF, /* the subnet manager's */
};

enum partition_membership { PARTITION_LIMITED = 1, PARTITION_FULL = 2, PARTITION_BOTH = 3 };

/* Makes ports members. A later rule of the same partition takes the place of an earlier one. */
struct partition_rule {
	unsigned partition; /* its number */
	enum partition_ports ports;
	uint64_t guid;
	enum partition_membership membership;
	bool index0; /* the P_Key goes to index 0 of the table, where else the default one is */
};

struct partition {
	char *name;    /* "" if it has none */
	uint16_t pkey; /* its 15 bits */
};

/* A multicast group that is always there. */
struct partition_group {
	struct ib_gid mgid;
	uint16_t pkey; /* of full members */
	uint32_t qkey;
	uint8_t mtu, rate; /* enum ibv_mtu, enum ibv_rate */
	uint8_t sl, tclass;
	uint32_t flow_label;
};

/* Partition 0 is the default one, 0x7fff, whatever the file says. */
struct partitions {
	struct partition *partition;
	struct partition_rule *rule; /* in the order in which they hold */
	struct partition_group *group;
	unsigned n, n_rules, n_groups;
};

struct partitions_file {
	const char *name; /* for messages */
	const char *text; /* need not end in a zero byte */
	size_t bytes;
};

/*
 * Any text is fine as input. 0, and @out to be freed; -EINVAL with "NAME:LINE: expected ...,
 * found ..." in @why; -ENOMEM.
 */
int partitions_parse(struct partitions **out, const struct partitions_file *file, char *why,
                     size_t len);
void partitions_free(struct partitions *p);

#endif
