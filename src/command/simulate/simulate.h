/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fabric without processes: `umbel simulate`. It is built as the daemon builds it, the embedded
 * subnet manager routes it, links and switches fail, and a traffic pattern (pattern.h) is walked
 * through the switches' tables. The links carry what the ports of a fabric that is up would count,
 * were the same messages sent, each of one packet.
 *
 * In this order: simulate_open(), simulate_pattern_*() on ->pattern, simulate_join(),
 * simulate_fail_*(), simulate_reroute() unless the subnet manager shall not have noticed yet,
 * simulate_count(), simulate_time(), simulate_credits() if packets shall wait for credits;
 * simulate_close() in any case. Not thread-safe.
 */
#ifndef SIMULATE_SIMULATE_H
#define SIMULATE_SIMULATE_H

#include "fabric/plan/shape.h"
#include "simulate/arrivals.h"
#include "simulate/credits.h"
#include "simulate/load.h"
#include "simulate/pattern.h"

struct sm;

struct simulation {
	struct fabric *f;
	struct sm *sm;
	struct simulate_pattern pattern;
	struct load_net net;             /* what was counted; switches and hosts by their index */
	char (*failed)[2 * FABRIC_NAME]; /* names of what has failed: "leaf1", "leaf2:19" */
	uint32_t n_failed, failed_room;
	struct simulate_arrivals *arrivals; /* NULL: each message is sent once, at the start */
	const struct credits_arbitration *arbitration; /* of all links; NULL: lanes take turns */
	struct credits credits;                        /* simulate_credits() */
	uint32_t *first_link;                 /* by switch: the number of the link at its port 0 */
	const struct fabric_port **link_from; /* by the link's number; NULL: there is none */
	/* what is being done and how much of it; may be NULL */
	void (*progress)(void *arg, const char *what, unsigned percent);
	void *arg;
};

/* Builds the fabric and has it routed. 0, or -errno with @why or without. */
int simulate_open(struct simulation *s, const struct fabric_shape *shape,
                  const struct shm_settings *settings, char *why, size_t len);
void simulate_close(struct simulation *s);

/* The hosts join the groups of the pattern. 0; -ENOSPC: a switch has no room for so many; -ENOMEM.
 */
int simulate_join(struct simulation *s);

/* The link at port @num of the node named @name fails; or with @num 0 that switch. 0; -ENOENT,
 * -EMLINK, -ERANGE (fabric/plan/port_name.h); -ENOTTY: no switch; -ENOTCONN: nothing is plugged in
 * there; -EALREADY: it has failed; -ENOMEM. */
int simulate_fail(struct simulation *s, const char name[static FABRIC_NAME], unsigned num);

/* @n links between switches fail, or @n switches, whichever @r says. 0; -ERANGE: there are not so
 * many; -ENOMEM. */
int simulate_fail_links(struct simulation *s, unsigned n, struct simulate_random *r);
int simulate_fail_switches(struct simulation *s, unsigned n, struct simulate_random *r);

/* The subnet manager sweeps. 0, -ENOSPC, -ENOMEM. */
int simulate_reroute(struct simulation *s);

/* Counts what the pattern's messages do. 0 or -ENOMEM. */
int simulate_count(struct simulation *s);

/* Links, one after the other: those of hosts, then those of switches. NULL: there are no more. The
 * walk has all links that were plugged in, also those that have failed. */
struct simulate_link {
	const struct fabric_port *from;
	struct load_crossed crossed;
	unsigned host, sw, port; /* where the next one is looked for */
};
const struct fabric_port *simulate_next_link(const struct simulation *s, struct simulate_link *l);

/*
 * How long the pattern takes, at least: the busiest link sends without a pause, at its data rate,
 * and the last message then takes the longest path. A message of @bytes to a host is sent in
 * packets of the MTU, as connected queue pairs send it. One to a group is a datagram: one packet,
 * of the MTU at most (simulate_check_size()).
 */
#define SIMULATE_HEADERS       26 /* of a packet to a host: LRH, BTH, ICRC, VCRC */
#define SIMULATE_GROUP_HEADERS 74 /* to a group: LRH, GRH, BTH, DETH, ICRC, VCRC */
struct simulate_cost {
	uint64_t bytes;
	unsigned hop_ns; /* a link and the switch behind it */
};
struct simulate_time {
	double transfer_ns, hosts_ns; /* of the busiest link; of the busiest one of a host */
	double path_ns;
	struct simulate_link busiest; /* from NULL: nothing is sent */
};
/* 0, or -EMSGSIZE: messages to groups of the pattern have more @bytes than the MTU. */
int simulate_check_size(const struct simulation *s, uint64_t bytes);

void simulate_time(const struct simulation *s, const struct simulate_cost *cost,
                   struct simulate_time *t);

/*
 * After simulate_count(): sends the pattern's messages, all ready at once or as ->arrivals says,
 * over links with finite buffers: ->credits has what became of them. A lane of a link has room for
 * @buffer packets at its end. Packets have the service levels that the subnet manager tells, else
 * those of the pattern. ->hop_ns of @cost is what a packet's head takes for a link, and a credit
 * back. 0; -EFBIG: the messages cross more than SIMULATE_MOST_HOPS links; -ERANGE:
 * simulate_arrivals_draw(); -ENOLINK: a lane that messages cross is in no table of ->arbitration
 * (credits_unserved()); -ENOMEM.
 */
#define SIMULATE_MOST_HOPS (1u << 25)
int simulate_credits(struct simulation *s, const struct simulate_cost *cost, unsigned buffer);

/* ---- for the files of this folder ---- */

static inline void simulate_tell(const struct simulation *s, const char *what, uint64_t done,
                                 uint64_t of)
{
	if (s->progress)
		s->progress(s->arg, what, of ? (unsigned)(done * 100 / of) : 0);
}

/* Bits per nanosecond of a link's data: its nominal rate without 8b/10b or 64b/66b, where that does
 * not count it out. */
double simulate_data_rate(const struct fabric_port *p);

/* The number of the link that begins at @from, in ->credits. */
uint32_t simulate_link_number(const struct simulation *s, const struct fabric_port *from);

/* The packets that have crossed the link that begins at @from. */
static inline struct load_crossed *simulate_link_at(const struct simulation *s,
                                                    const struct fabric_port *from)
{
	if (from->node->type == FABRIC_HCA)
		return &s->net.host[from->index].crossed;
	return &s->net.sw[from->node->index].port[from->num].crossed;
}

/* traffic.c: those of pairs and of groups. 0 or -ENOMEM. */
int simulate_count_pairs(struct simulation *s);
int simulate_count_groups(struct simulation *s);

/* The MLID of group number @i. The first one of a fabric is that of IP over InfiniBand. */
#define SIMULATE_MLID(i) ((uint16_t)(IB_LID_MCAST_FIRST + 1 + (i)))

#endif
