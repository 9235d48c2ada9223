/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load that the switches' tables put on the links: how many packets cross each of them. Packets
 * to one LID are counted together, switch by switch, as they have one way out of a switch wherever
 * they come from: so all pairs of 40,000 hosts take seconds. For `umbel show routes --load`, whose
 * tables are the daemon's, and `umbel simulate` (simulate.h), whose fabric is its own.
 *
 * The two directions of a cable are two links, each named by the port where it begins. The caller
 * fills in a struct load_net with what is linked and which tables there are, and reads the counts.
 * Not thread-safe.
 */
#ifndef SIMULATE_LOAD_H
#define SIMULATE_LOAD_H

#include <stddef.h>
#include <stdint.h>

#define LOAD_NOWHERE (~0u)     /* a link that does not carry packets, or no link */
#define LOAD_HOST    (~0u - 1) /* a link to a host */

/* A packet that has come through more switches is lost: FABRIC_MAX_HOPS. */
#define LOAD_MAX_SWITCHES 64

/* The messages that have crossed a link: all of them, and those that are to groups. */
struct load_crossed {
	uint64_t messages, to_groups;
};

/* A link that begins at a switch's port. */
struct load_link {
	uint32_t to;   /* index of the switch there, LOAD_HOST or LOAD_NOWHERE */
	uint32_t host; /* LOAD_HOST: index of the host */
	struct load_crossed crossed;
	uint64_t lids; /* LIDs that messages crossed it for, counted by load_count() */
};

struct load_switch {
	const char *name;
	unsigned n_ports;
	struct load_link *port; /* from 1 */
	const uint8_t *lft;     /* out port by LID */
	unsigned n_lids;
	uint64_t hosts; /* that send from here */
};

/* A port of a host. */
struct load_host {
	const char *name;
	unsigned lid; /* 0: it has none */
	unsigned at;  /* index of its switch; LOAD_NOWHERE: its link carries nothing */
	struct load_crossed crossed; /* its link to the switch */
};

/* The fate of messages. */
struct load_sum {
	uint64_t sent, lost;
	uint64_t links[LOAD_MAX_SWITCHES +
	               2]; /* those that arrived, by how many links they crossed */
};

struct load_net {
	struct load_switch *sw;
	struct load_host *host;
	unsigned n, n_hosts;
	struct load_sum sum;
	struct load_step *step; /* scratch, by switch */
	unsigned *order;
	uint32_t turn;
};

/* Makes room for @n switches and @n_hosts hosts, all zero. 0 or -ENOMEM; load_fini() is due in any
 * case. */
int load_init(struct load_net *net, unsigned n, unsigned n_hosts);
void load_fini(struct load_net *net);

/* Gives @sw its ports, none of which leads anywhere. 0 or -ENOMEM. */
int load_set_ports(struct load_switch *sw, unsigned n_ports);

/*
 * Counts a message to host number @to from each host that sends, but itself, on all links but those
 * from hosts to switches. A message that gets into a circle, or has too many switches before it, is
 * lost and counted on no link.
 */
void load_count(struct load_net *net, unsigned to);

#endif
