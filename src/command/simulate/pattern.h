/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traffic patterns: which host sends a message to which, and to which groups. A host is a port of
 * an HCA, by its index in struct fabric. The builders add to a pattern, which is all zero at first;
 * all return 0 or -ENOMEM if they say nothing else. Not thread-safe.
 */
#ifndef SIMULATE_PATTERN_H
#define SIMULATE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulate/random.h"

struct fabric;

struct simulate_pair {
	uint32_t from, to;
	uint8_t sl;
};

struct simulate_list {
	uint32_t *host;
	uint32_t n, room;
};

/* Each sender sends a message to all members, a host that is twice a sender two. */
struct simulate_group {
	struct simulate_list members, senders; /* no member twice */
	bool has_senders;                      /* false: the members are the senders */
	uint8_t sl;
};

struct simulate_pattern {
	bool all_to_all; /* each host to each other one; besides what follows */
	uint8_t sl;      /* service level of what is added */
	struct simulate_pair *pair;
	struct simulate_group *group;
	uint32_t n_pairs, pair_room, n_groups, group_room;
};

void simulate_pattern_fini(struct simulate_pattern *p);

/* Host i sends to host i + @by, of @hosts, around in a circle. */
int simulate_pattern_shift(struct simulate_pattern *p, unsigned hosts, unsigned by);

/* Each of @hosts sends to one other, and one sends to each. */
int simulate_pattern_permutation(struct simulate_pattern *p, unsigned hosts,
                                 struct simulate_random *r);

/* @n groups, each of @members of the @hosts, at most all of them. */
struct simulate_groups {
	unsigned n, members;
};
int simulate_pattern_groups(struct simulate_pattern *p, unsigned hosts,
                            const struct simulate_groups *groups, struct simulate_random *r);

/*
 * The lines of a file; '#' begins a comment. Hosts are named as fabric/plan/port_name.h says, with
 * ":PORT" if there are several.
 *
 *	sl N			what follows has service level N, if routes do not need theirs
 *	unicast FROM TO...	FROM sends a message to each TO
 *	group HOST...		the hosts join a new group
 *	multicast HOST...	each sends a message to the group of the last such line; without
 *				this line its members do
 *
 * Any text is safe as input. 0; -EINVAL with @why, "NAME:LINE: ..."; -ENOMEM.
 */
struct simulate_pattern_file {
	const char *name; /* for messages */
	const char *text; /* need not end in a zero byte */
	size_t bytes;
};
int simulate_pattern_read(struct simulate_pattern *p, const struct fabric *f,
                          const struct simulate_pattern_file *file, char *why, size_t len);

/* For the builders. */
int simulate_pattern_add_pair(struct simulate_pattern *p, uint32_t from, uint32_t to);
int simulate_pattern_add_group(struct simulate_pattern *p);
int simulate_list_add(struct simulate_list *l, uint32_t host);

#endif
