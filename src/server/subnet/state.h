/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state that the subnet manager keeps when the fabric ends and starts again: the LIDs of ports,
 * the GUIDs that they were given, the places of P_Keys in their tables, and the multicast groups
 * with their MLIDs. It is a text, which docs/subnet.md describes. Here is also how it is taken from
 * a fabric and given to another one.
 *
 * The text's functions work on their arguments alone, in any thread; the others are the daemon's.
 */
#ifndef SUBNET_STATE_H
#define SUBNET_STATE_H

#include <stddef.h>

#include "wire/sa.h"

struct fabric;
struct sa;

/* The state of the end port with this GUID. */
struct state_port {
	uint64_t guid;
	uint32_t line; /* of the text; 0: it comes from a fabric */
	uint16_t lid;  /* the first one; 0: nothing is said of it */
};

/* Likewise of an entry of one of its tables. */
struct state_entry {
	uint64_t guid, value;
	uint32_t line, index;
};

struct state_group {
	struct wire_mcmember rec; /* without port and join state */
	uint32_t line;
};

struct subnet_state {
	struct state_port *port;
	struct state_entry *alias, *pkey; /* of GUIDInfo; of P_KeyTable */
	struct state_group *group;
	uint32_t n_ports, n_aliases, n_pkeys, n_groups;
	uint32_t port_room, alias_room, pkey_room, group_room;
};

struct subnet_state_text {
	const char *name; /* for messages */
	const char *text; /* need not end in a zero byte */
	size_t bytes;
};

void subnet_state_init(struct subnet_state *s);
void subnet_state_fini(struct subnet_state *s);

/*
 * Any text is safe as input; an empty one has no entries.
 * Returns 0; -EINVAL: @why (at most @len bytes) has "NAME:LINE: expected ..., found ..."; -ENOMEM.
 * The caller calls subnet_state_fini() in any case.
 */
int subnet_state_parse(struct subnet_state *s, const struct subnet_state_text *from, char *why,
                       size_t len);

/* Makes the text: 0 and *@text, to be freed, of *@bytes; or -ENOMEM. */
int subnet_state_format(const struct subnet_state *s, char **text, size_t *bytes);

/*
 * Adds what is to be kept of the end ports of @f from number *@at on, which it advances; of @n at
 * most. Returns 0: there are more; 1: these were the last; -ENOMEM.
 */
int subnet_state_add_ports(struct subnet_state *s, const struct fabric *f, unsigned *at,
                           unsigned n);

/* Adds the groups. Returns 0 or -ENOMEM. */
int subnet_state_add_groups(struct subnet_state *s, const struct sa *sa);

/* How many entries do not fit the fabric, and the line of the first one. */
struct subnet_state_misfits {
	uint32_t n, line;
};

void subnet_state_note_misfit(struct subnet_state_misfits *m, uint32_t line);

/*
 * Before the first sweep: gives ports without a LID the one that they had, and GUIDs; with
 * partitions, the P_Keys too, of which the sweep leaves what the partitions say at its place.
 * Entries about ports that @f lacks are misfits. Returns 0 or -ENOMEM.
 */
int subnet_state_restore_ports(const struct subnet_state *s, struct fabric *f, bool has_partitions,
                               struct subnet_state_misfits *misfits);

/* After it: those whose ports did not keep the LID are misfits, too. Returns 0 or -ENOMEM. */
int subnet_state_check_lids(const struct subnet_state *s, const struct fabric *f,
                            struct subnet_state_misfits *misfits);

#endif
