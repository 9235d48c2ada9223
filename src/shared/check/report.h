/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The findings, property by property: the first ones as text, and how many there are.
 * If memory runs out the report remembers it, so adding needs no checks. Not thread-safe.
 */
#ifndef CHECK_REPORT_H
#define CHECK_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum check_property {
	CHECK_LINKS,        /* what has a link carries packets: a subnet manager has been there */
	CHECK_LIDS,         /* each port has LIDs of its own */
	CHECK_PATHS,        /* hosts reach each other */
	CHECK_LOOPS,        /* no packet goes round in circles */
	CHECK_SWITCH_PATHS, /* hosts and switches reach each other */
	CHECK_DEADLOCK,     /* links do not wait for each other in circles: messages to LIDs */
	CHECK_DEADLOCK_GROUPS, /* and with messages to groups */
	CHECK_GROUPS,          /* members are reached once, and nobody else */
	CHECK_PARTITIONS,      /* no switch blocks a partition of hosts */
	CHECK_MTU,             /* no link between hosts has less than both of them */
	CHECK_RATE,
	CHECK_M_KEYS, /* all ports have the same management key, which not everybody reads */
	CHECK_PROPERTIES,
};

struct check_result {
	uint64_t checked; /* how many of what the property is about */
	uint64_t found;
	char **text; /* the first findings */
	unsigned n;
};

struct check_report {
	struct check_result result[CHECK_PROPERTIES];
	unsigned keep;        /* so many findings of each property are kept as text */
	uint64_t *routes;     /* by channel: how many paths from hosts cross it */
	uint32_t *trees;      /* by switch: how many trees of groups it has a part in */
	uint64_t unconnected; /* pairs of hosts between which there are no cables */
	unsigned longest;     /* links of the longest path */
	uint64_t assumed;     /* paths of which nobody tells the service level: that of the net */
	unsigned lanes;       /* on how many links wait for each other */
	unsigned guessed;     /* trees whose members are taken to be the hosts that they lead to */
	bool failed;          /* there was no memory */
};

/* The property's name, "deadlock"; and whether it is only a note: real subnets may well have it. */
const char *check_property_name(enum check_property p);
bool check_property_is_note(enum check_property p);

/* The property of that name; CHECK_PROPERTIES: there is none. */
enum check_property check_property_find(const char *name);

/* Adds a finding. The text is not made if it would not be kept: check_is_kept(). */
bool check_is_kept(const struct check_report *r, enum check_property p);
void check_found(struct check_report *r, enum check_property p, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

void check_report_fini(struct check_report *r);

#endif
