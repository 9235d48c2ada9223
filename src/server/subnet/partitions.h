/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses a partitions.conf of OpenSM (opensm(8), PARTITION CONFIGURATION): which ports are full or
 * limited members of which P_Key, and which multicast groups exist from the start. The result is
 * lists; the subnet manager (sm.h) and the subnet administrator apply them.
 *
 * OpenSM ignores what it does not understand. Here it is an error, as a mistyped "limited" would
 * let ports communicate that should not.
 */
#ifndef SUBNET_PARTITIONS_H
#define SUBNET_PARTITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib.h"

enum partition_ports {
	PARTITION_PORT, /* the port with the rule's GUID */
	PARTITION_ALL,
	PARTITION_ALL_CAS,
	PARTITION_ALL_SWITCHES,
	PARTITION_ALL_ROUTERS,
	PARTITION_SELF, /* the subnet manager's port */
};

enum partition_membership { PARTITION_LIMITED = 1, PARTITION_FULL = 2, PARTITION_BOTH = 3 };

/* Makes ports members. A later rule of the same partition replaces an earlier one. */
struct partition_rule {
	unsigned partition; /* its index */
	enum partition_ports ports;
	uint64_t guid;
	enum partition_membership membership;
	bool index0; /* the P_Key goes to index 0 of the table, instead of the default P_Key */
};

struct partition {
	char *name;    /* "" if it has none */
	uint16_t pkey; /* 15 bits, without the membership bit */
	uint8_t sl;    /* of paths in it */
};

/* A multicast group that always exists. */
struct partition_group {
	struct ib_gid mgid;
	uint16_t pkey; /* of full members */
	uint32_t qkey;
	uint8_t mtu, rate; /* enum ibv_mtu, enum ibv_rate */
	uint8_t sl, tclass;
	uint32_t flow_label;
};

/* Partition 0 is always the default partition, 0x7fff. */
struct partitions {
	struct partition *partition;
	struct partition_rule *rule; /* in the order of the file: the later one holds */
	struct partition_group *group;
	unsigned n, n_rules, n_groups;
	uint32_t room, rule_room, group_room;
	/* the numbers of rules, ascending: of those for one port by its GUID, and of all others */
	unsigned *by_guid, *general;
	unsigned n_by_guid, n_general;
};

/* The first of by_guid[] whose rule's GUID is @guid or greater; n_by_guid: there is none. */
unsigned partitions_rules_of(const struct partitions *p, uint64_t guid);

struct partitions_file {
	const char *name; /* for messages */
	const char *text; /* need not end in a zero byte */
	size_t bytes;
};

/*
 * Any text is safe as input. Returns 0 and *@out, which partitions_free() frees; -EINVAL: @why (at
 * most @len bytes) has "NAME:LINE: expected ..., found ..."; -ENOMEM.
 */
int partitions_parse(struct partitions **out, const struct partitions_file *file, char *why,
                     size_t len);
void partitions_free(struct partitions *p);

#endif
