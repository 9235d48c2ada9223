/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subscribers to notices, and the notices that wait to be told. For sa_informs.c, which adds
 * and removes subscriptions, and sa_notices.c, which finds the subscribers that are to be told.
 */
#ifndef SUBNET_SA_SUBSCRIBERS_H
#define SUBNET_SA_SUBSCRIBERS_H

#include "subnet/sa_state.h"

/* A subscription. */
struct sa_inform {
	bool trusted;
	uint64_t since; /* the number of the last notice before it */
	struct wire_inform_info info;
};

/* A subscriber: a LID of a port, and a QPN. It has at least one subscription. */
struct sa_subscriber {
	struct base_hash_node node;
	TAILQ_ENTRY(sa_subscriber) entry;
	LIST_ENTRY(sa_subscriber) of_port;
	struct sa_subscriber_port *port;
	uint32_t id;
	uint16_t lid;
	uint32_t qpn;
	struct sa_inform *inform;
	uint32_t n, room;
};

/* A port with subscribers. */
struct sa_subscriber_port {
	struct base_hash_node node;
	struct fabric_port *port;
	LIST_HEAD(, sa_subscriber) subscribers;
	unsigned n_informs; /* of all of them */
};

/* A notice that waits, and what a port must be to see it. */
struct sa_notice {
	STAILQ_ENTRY(sa_notice) entry;
	struct wire_notice notice;
	uint64_t number;
	bool is_security;
	const struct fabric_port *about; /* NULL, or a port that it must share a partition with */
	uint16_t pkey;                   /* 0, or the partition that it must be in */
};

struct sa_subscribers {
	struct base_hash by_address, by_port;
	struct base_idtable by_id; /* for those who list them in slices */
	TAILQ_HEAD(sa_subscriber_list, sa_subscriber) all;
	unsigned n_informs;
	STAILQ_HEAD(, sa_notice) notices;
	unsigned n_notices;
	uint64_t last_notice;       /* its number */
	bool telling;               /* of the first notice: */
	struct sa_subscriber *next; /* the next to hear of it; NULL: there is none */
};

/* Whether only trusted subscribers may hear of the trap. */
bool sa_is_security_trap(unsigned is_generic, unsigned trap_number);

/* Forgets the notices that wait. */
void sa_notices_free(struct sa *sa);

#endif
